/* SPDX-License-Identifier: MIT
 * A crowd: many clients that want the same lock, again and again, in a world that was made for one
 * question: who gets it, how soon, and what it costs. Exclusion is watched as in any other run. */
#ifndef SIM_CONTENTION_H
#define SIM_CONTENTION_H

#include "world.h"

#define SIM_CONTENTION_MAX 100
#define SIM_WAITS_MAX      16384
#define SIM_FOREIGN_MAX    8

/* 0: no limit. Computed by the case from what it has set up. */
struct sim_bounds {
    uint64_t longest_ns;       /* that anybody waited */
    uint64_t average_ns;       /* of all waits */
    uint64_t half_ns, most_ns; /* from a release to the next holder: 50 %, 99 % of them */
    uint64_t splits;           /* per 1000 grants */
    uint64_t attempts;         /* per 1000 grants */
    uint64_t grants_min;
    uint64_t share_max, share_min; /* of 1000 grants: of one client */
    uint64_t jain_min;             /* of 1000: equal shares; 1000 / n: all for one of n */
};

struct sim_foreigner {
    unsigned attempt, votes;
    bool holds;
};

struct sim_contention {
    uint64_t hold_ns, think_ns; /* how long each holds, and at most thinks before the next time */
    unsigned first_slots;       /* users of the first client; the others have one */
    unsigned dialects;          /* so many groups of clients, each with other names for the nodes */
    unsigned foreign;           /* clients of another make, that poll */
    struct sim_foreigner foreigners[SIM_FOREIGN_MAX];
    unsigned slow; /* this node answers so much later than the others */
    uint64_t slow_ns;
    uint64_t spread_ns; /* each client is so much farther from all nodes than the one before */
    uint8_t orphans;    /* nodes, bit by bit, with a key that nobody gives back */
    struct sim_bounds bounds;
    /* Measured until the world heals: */
    bool over;
    uint64_t grants[SIM_CONTENTION_MAX], all, longest_ns, waited_ns;
    uint64_t splits, attempts, commands, wakeups, foreign_grants, span_ns;
    uint64_t handovers, handover_ns[SIM_WAITS_MAX]; /* the first ones */
    uint64_t released_ns;                           /* the last time; 0: it is held, or was never */
    unsigned holder;
    uint8_t order[RL_NODES_MAX]; /* in which the first client would ask the nodes */
};

/* One question. */
struct sim_case {
    const char *name;
    void (*set_up)(struct sim_plan *plan, struct sim_contention *contention);
};
extern const struct sim_case sim_cases[];
extern const unsigned sim_case_count;

/* NULL: there is none of this name. */
const struct sim_case *sim_case_find(const char *name);
/* false: a violation, or out of bounds; world->violation says which. sim_world_free() afterwards.
 */
bool sim_case_run(const struct sim_case *it, uint64_t seed, bool trace, struct sim_world *world,
                  struct sim_contention *contention);
/* Prints one line: what the run of the case measured. */
void sim_case_print(const struct sim_case *it, const struct sim_world *world,
                    const struct sim_contention *contention);

/* Jain's index of the numbers of grants, of 1000. */
uint64_t sim_contention_jain(const struct sim_world *world);
/* A round trip of this plan, at the most. */
uint64_t sim_contention_trip_ns(const struct sim_plan *plan);
/* The nodes in the order in which contenders ask them. */
const uint8_t *sim_contention_order(void);
/* From a sorted list. */
uint64_t sim_contention_percentile_ns(const struct sim_contention *contention, unsigned of_100);

/* For the rest of the simulator. */
void sim_contention_name(const struct sim_plan *plan, unsigned client, struct rl_node_spec *spec);
void sim_contention_begin(struct sim_world *world);
void sim_contention_end(struct sim_world *world);
uint64_t sim_contention_think_ns(struct sim_client *client);
void sim_contention_lock_choice(const struct sim_plan *plan, struct rl_lease_params *params);
void sim_contention_granted(struct sim_client *client, unsigned at);
void sim_contention_released(struct sim_client *client);

/* contention_foreign.c */
void sim_foreign_begin(struct sim_world *world);
void sim_foreign_act(struct sim_world *world, unsigned who, unsigned which);
bool sim_foreign_holds(const struct sim_world *world);

#endif
