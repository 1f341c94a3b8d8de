/* SPDX-License-Identifier: MIT
 * Contention: many clients that want the same lock, again and again, in a world that was made for
 * one question: which client gets the lock, how soon, and at what cost. The oracle checks exclusion
 * as in any other run. */
#ifndef SIM_CONTENTION_H
#define SIM_CONTENTION_H

#include "world.h"

#define SIM_CONTENTION_MAX 100
#define SIM_WAITS_MAX      16384
#define SIM_FOREIGN_MAX    8

/* Limits of what a case may measure; 0: no limit. The case computes them from what it has set up.
 */
struct sim_bounds {
    uint64_t longest_ns;       /* longest wait of any client */
    uint64_t average_ns;       /* average of all waits */
    uint64_t half_ns, most_ns; /* time from a release to the next grant: 50 % and 99 % of them are
                                * shorter */
    uint64_t splits;           /* split votes per 1000 grants */
    uint64_t attempts;         /* attempts per 1000 grants */
    uint64_t grants_min;
    uint64_t share_max, share_min; /* grants of one client, of 1000 */
    uint64_t jain_min;             /* Jain's index, of 1000: 1000 means equal shares; 1000 / n means
                                    * that one of n clients gets all */
};

/* The state of one client of another make. */
struct sim_foreigner {
    unsigned attempt, votes;
    bool holds;
};

/* The settings of a case and its measurements. contention.c owns it. */
struct sim_contention {
    uint64_t hold_ns, think_ns; /* how long each client holds the lock, and the longest pause before
                                 * it tries again */
    unsigned first_slots;       /* number of users of the first client; the others have one each */
    unsigned dialects;          /* number of groups of clients that use different names for the
                                 * nodes */
    unsigned foreign;           /* number of clients of another make, which poll */
    struct sim_foreigner foreigners[SIM_FOREIGN_MAX];
    unsigned slow; /* the node that replies slow_ns later than the others */
    uint64_t slow_ns;
    uint64_t
        spread_ns;   /* each client is so much farther from all nodes than the client before it */
    uint8_t orphans; /* set of the nodes with a key that is never released */
    struct sim_bounds bounds;
    /* Measured until the faults end: */
    bool over;
    uint64_t grants[SIM_CONTENTION_MAX], all, longest_ns, waited_ns;
    uint64_t splits, attempts, commands, wakeups, foreign_grants, span_ns;
    uint64_t handovers, handover_ns[SIM_WAITS_MAX]; /* of the first SIM_WAITS_MAX hand-overs */
    uint64_t released_ns;                           /* the last release; 0: the lock is held, or was
                                                     * never held */
    unsigned holder;
    uint8_t order[RL_NODES_MAX]; /* order in which the first client would ask the nodes */
};

/* One question, with a function that sets up the world for it. */
struct sim_case {
    const char *name;
    void (*set_up)(struct sim_plan *plan, struct sim_contention *contention);
};
extern const struct sim_case sim_cases[];
extern const unsigned sim_case_count;

/* Returns the case of that name, or NULL. */
const struct sim_case *sim_case_find(const char *name);
/* Runs a case. Returns false after a violation or if a bound was exceeded; world->violation says
 * which. Call sim_world_free() afterwards. */
bool sim_case_run(const struct sim_case *it, uint64_t seed, bool trace, struct sim_world *world,
                  struct sim_contention *contention);
/* Prints one line with what the run has measured. */
void sim_case_print(const struct sim_case *it, const struct sim_world *world,
                    const struct sim_contention *contention);

/* Returns Jain's index of the numbers of grants, of 1000. */
uint64_t sim_contention_jain(const struct sim_world *world);
/* Returns the longest round trip of this plan. */
uint64_t sim_contention_trip_ns(const struct sim_plan *plan);
/* Returns the nodes in the order in which contenders ask them. */
const uint8_t *sim_contention_order(void);
/* Returns a percentile of the hand-over times, which must be sorted. */
uint64_t sim_contention_percentile_ns(const struct sim_contention *contention, unsigned of_100);

/* Called by the rest of the simulator at the events that their names say. */
void sim_contention_name(const struct sim_plan *plan, unsigned client, struct rl_node_spec *spec);
void sim_contention_begin(struct sim_world *world);
void sim_contention_end(struct sim_world *world);
uint64_t sim_contention_think_ns(struct sim_client *client);
void sim_contention_lock_choice(const struct sim_plan *plan, struct rl_lease_params *params);
void sim_contention_granted(struct sim_client *client, unsigned at);
void sim_contention_released(struct sim_client *client);

/* Clients of another make (contention_foreign.c). */
void sim_foreign_begin(struct sim_world *world);
void sim_foreign_act(struct sim_world *world, unsigned who, unsigned which);
bool sim_foreign_holds(const struct sim_world *world);

#endif
