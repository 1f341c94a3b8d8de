/* SPDX-License-Identifier: MIT
 * Cases of contention: many clients acquire the same lock again and again; in some cases permits of
 * one semaphore, or several keys at once. A case measures which client gets the lock, how soon, and
 * at what cost, and compares the results with bounds. The oracle checks exclusion as in any other
 * run. */
#ifndef SIM_CONTENTION_H
#define SIM_CONTENTION_H

#include "world.h"

#define SIM_CONTENTION_MAX 256   /* clients */
#define SIM_WAITS_MAX      16384 /* hand-overs whose times are kept */
#define SIM_FOREIGN_MAX    16    /* foreign clients */
#define SIM_IDLERS_MAX     4     /* waiters of a line that never acquire */

/* Bounds for the results of a case, which the case computes from its settings; 0: no bound. */
struct sim_bounds {
    uint64_t longest_ns;        /* longest wait of any client */
    uint64_t average_ns;        /* average of all waits */
    uint64_t median_ns, p99_ns; /* percentiles of the hand-over time, from a release to the next
                                 * grant to another client; of several keys: from the last release
                                 * of one of them */
    uint64_t splits;            /* split votes per 1000 grants */
    uint64_t attempts;          /* attempts per 1000 grants */
    uint64_t commands;          /* commands that servers execute, per 1000 grants */
    uint64_t notifications;     /* notifications that servers send, per 1000 grants */
    uint64_t grants_min;
    uint64_t share_max, share_min; /* grants of one client, of 1000 */
    uint64_t jain_min;             /* Jain's index, of 1000: 1000 means equal shares; 1000 / n means
                                    * that one of n clients gets all */
};

/* One foreign client: one that does not use this library. contention_foreign.c owns it. */
struct sim_foreigner {
    unsigned attempt; /* number of its present attempt, a part of its token */
    unsigned votes;   /* grants of this attempt */
    bool holds;       /* it has a majority */
};

/* The settings of a case and its measurements. contention.c owns it. */
struct sim_contention {
    uint64_t hold_ns;     /* how long each client holds the lock */
    uint64_t think_ns;    /* the longest pause before it acquires again */
    unsigned lineless;    /* number of clients, the last ones, that do not use lines */
    unsigned first_users; /* number of users of the first client; the others have one each */
    unsigned name_groups; /* number of groups of clients that use different names for the
                           * nodes */
    unsigned foreign;     /* number of foreign clients, which poll */
    struct sim_foreigner foreigners[SIM_FOREIGN_MAX];
    unsigned slow; /* the node that replies slow_ns later than the others */
    uint64_t slow_ns;
    uint64_t spread_ns; /* added to all delays of each client, compared with the client before it */
    uint8_t orphans;    /* set of the nodes with a key that is never released */
    bool fenced;        /* each grant has a fencing token */
    bool fresh;         /* a client ends after its release, and a new one begins */
    unsigned pausing;   /* of 1000 turns in the line: the client stops for 0.5 to 1.5 s */
    unsigned dying;     /* of 1000 turns in the line: the client dies, and a new one begins */
    unsigned early;     /* of 1000 keys that a server begins to track: it notifies at once */
    unsigned idlers;    /* waiters that join the line of the preferred node and never acquire */
    uint8_t lines_taken; /* set of the nodes where a key of a user has the name of the line */
    uint8_t no_getex;   /* set of the nodes that refuse GETEX: the user may not, or it is unknown */
    uint8_t no_publish; /* set of the nodes where the user may not publish turns */
    uint8_t no_turns;   /* set of the nodes where the user may not subscribe to turns */
    unsigned rounds;    /* about how many grants each client gets */
    bool in_order;      /* clients get the lock in the order in which they have joined the line */
    struct sim_bounds bounds;          /* with lines and without */
    struct sim_bounds line_bounds;     /* with lines */
    struct sim_bounds fallback_bounds; /* without lines: measured with 30 seeds, plus a margin */
    /* Measured until the faults end: */
    bool measured;                       /* the measurement has ended */
    uint64_t grants[SIM_CONTENTION_MAX]; /* per client */
    uint64_t all;                        /* sum of `grants` */
    uint64_t longest_ns, waited_ns;      /* the longest wait, and the sum of all waits that ended */
    uint64_t splits, attempts, wakeups;  /* counts of all clients */
    uint64_t commands, notifications;    /* counts of all servers */
    uint64_t foreign_grants;             /* grants to foreign clients */
    uint64_t span_ns;                    /* duration of the measurement */
    uint64_t handovers, handover_ns[SIM_WAITS_MAX]; /* of the first SIM_WAITS_MAX hand-overs */
    uint64_t released_ns[SIM_KEYS_MAX]; /* per key: its last release; 0: it is held, or was never
                                         * held */
    unsigned holder[SIM_KEYS_MAX];      /* per key: client that released it */
    uint8_t order[RL_NODES_MAX];        /* order in which the first client would ask the nodes */
};

/* One case, with a function that changes the common settings for it and sets its bounds. */
struct sim_case {
    const char *name;
    void (*set_up)(struct sim_plan *plan, struct sim_contention *contention);
};
/* The cases of any contention (contention_cases.c), and those of lines (contention_lines.c). */
extern const struct sim_case sim_common_cases[], sim_line_cases[];
extern const unsigned sim_common_case_count, sim_line_case_count;

/* Returns how many cases there are. */
unsigned sim_case_count(void);
/* Returns the case with this number: first the common ones, then those of lines. */
const struct sim_case *sim_case_at(unsigned number);
/* Returns the case of that name, or NULL. */
const struct sim_case *sim_case_find(const char *name);
/* Runs a case, with clients that use lines or do not. Returns false after a violation, or if a
 * result is not within its bound; world->violation has the message. Call sim_world_free()
 * afterwards. */
bool sim_case_run(const struct sim_case *scenario, uint64_t seed, bool lines, bool trace,
                  struct sim_world *world, struct sim_contention *contention);
/* Prints one line with the results. */
void sim_case_print(const struct sim_case *scenario, const struct sim_world *world,
                    const struct sim_contention *contention);

/* Returns Jain's index of the numbers of grants, of 1000. */
uint64_t sim_contention_jain(const struct sim_world *world);
/* Returns the longest round trip of this plan. */
uint64_t sim_contention_trip_ns(const struct sim_plan *plan);
/* Returns the average round trip of this plan. */
uint64_t sim_contention_average_trip_ns(const struct sim_plan *plan);
/* Plans a fault that begins at `at_ns` and lasts for `for_ns`. */
void sim_contention_fault(struct sim_plan *plan, enum sim_fault_kind kind, unsigned client,
                          unsigned node, uint64_t at_ns, uint64_t for_ns);
/* Returns the nodes in the order in which contenders ask them. */
const uint8_t *sim_contention_order(void);
/* Returns a percentile of the hand-over times, which must be sorted; 0: there are none. */
uint64_t sim_contention_percentile_ns(const struct sim_contention *contention, unsigned of_100);

/* Called by the rest of the simulator. */

/* Changes the name by which a client knows a node, if the case has several groups of names. */
void sim_contention_name(const struct sim_plan *plan, unsigned client, struct rl_node_spec *spec);
/* Returns whether a client may use lines: not if the case says that it does without. */
bool sim_contention_has_lines(const struct sim_plan *plan, unsigned client);
/* Applies the settings of the case to a new world. */
void sim_contention_begin(struct sim_world *world);
/* Ends the measurement, and counts the waits that have not ended. */
void sim_contention_end(struct sim_world *world);
/* Returns a random pause before a user acquires again. */
uint64_t sim_contention_think_ns(struct sim_client *client);
/* Sets the parameters of a lock: the same for all users. */
void sim_contention_lock_choice(const struct sim_plan *plan, struct rl_lease_params *params);
/* Measures a grant to a user, or a release by that user. */
void sim_contention_granted(struct sim_client *client, unsigned user);
void sim_contention_released(struct sim_client *client, unsigned user);

/* Disturbances (contention_disturb.c). */

/* Notes that a server has notified the client of its turn: it may stop or die. */
void sim_contention_turn(struct sim_world *world, unsigned client);
/* Handles SIM_DISTURB: disturbs the client as sim_contention_turn() has decided, or has a waiter
 * that never acquires join the line. */
void sim_contention_disturb(struct sim_world *world, unsigned target, unsigned what);
/* Returns whether the client is to be replaced now, after a release; plans that. */
bool sim_contention_replaces(struct sim_client *client);
/* Plans the first request of each waiter that never acquires. */
void sim_contention_begin_idlers(struct sim_world *world);

/* Foreign clients (contention_foreign.c). */

/* Plans the first attempt of each foreign client. */
void sim_foreign_begin(struct sim_world *world);
/* Handles SIM_FOREIGN: executes a step of a foreign client. */
void sim_foreign_act(struct sim_world *world, unsigned client, unsigned step_and_node);
/* Returns whether a foreign client holds the lock. */
bool sim_foreign_holds(const struct sim_world *world);

#endif
