/* SPDX-License-Identifier: MIT
 * What one seed stands for: the size of the world, the habits of its users, and its faults. Every
 * seed switches each kind of trouble on or off (swarm testing): a run with everything in it hides
 * what a run with two things in it would show. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "core/backoff.h"
#include "core/drift.h"
#include "random.h"

#define SIM_NODES_MAX     7
#define SIM_CLIENTS_MAX   6
#define SIM_SLOTS_MAX     16
#define SIM_RESOURCES_MAX 3
#define SIM_PERMITS_MAX   4
#define SIM_KEYS_MAX      (SIM_RESOURCES_MAX + SIM_PERMITS_MAX + 1) /* one that nobody may use */
#define SIM_FAULTS_MAX    20

enum sim_fault_kind {
    SIM_STALL = 0,    /* a link holds everything back */
    SIM_PARTITION,    /* nodes on one side, clients on the other */
    SIM_ONE_WAY,      /* the same in one direction only */
    SIM_DISCONNECT,   /* a connection breaks, at different times for its two ends */
    SIM_CRASH,        /* a server dies and comes back with its data */
    SIM_CRASH_EMPTY,  /* without */
    SIM_HANG,         /* a server is stopped and goes on */
    SIM_BUSY,         /* a slow script of somebody else */
    SIM_SCRIPT_FLUSH, /* */
    SIM_FULL,         /* memory is full, nothing is evicted */
    SIM_EVICT,        /* keys are evicted */
    SIM_FLUSH_ALL,    /* */
    SIM_DEMOTE,       /* a master becomes a replica for a while */
    SIM_PROMOTE,      /* an address leads to a former replica, which lacks the latest writes */
    SIM_NODE_STEP,    /* a node's clock jumps */
    SIM_STOP,         /* a client process is stopped and goes on */
    SIM_SUSPEND,      /* its machine sleeps: one of its clocks stands */
    SIM_FREEZE,    /* its virtual machine stands still: all its clocks do, until its wall clock is
                      set right */
    SIM_KILL,      /* a client process dies, a new one begins */
    SIM_LEAVE,     /* a client is closed in order, a new one begins */
    SIM_NO_MEMORY, /* a client's allocations fail */
    SIM_RATE,      /* a clock runs faster or slower than the drift allows */
    SIM_SHORTEN,   /* a third party sets an earlier expiry of keys, on one node or on all */
    SIM_KINDS,
    /* Not planned one by one: */
    SIM_CANCELED = SIM_KINDS, /* a user gave up */
    SIM_LATE_TURN,            /* a process lost the processor inside a turn of its loop */
    SIM_SEED_REFUSED, /* a server has no memory for its fence record: a first start breaks off */
    SIM_COUNTED
};
extern const char *const sim_fault_names[SIM_COUNTED];

struct sim_fault {
    uint8_t kind;
    uint8_t client, node;
    uint8_t clients, nodes; /* partitions: who is on the other side, bit by bit */
    uint8_t way;
    bool mended;
    uint64_t at_ns, for_ns;
    uint64_t correct_ns; /* so long after a freeze its wall clock is set right; or UINT64_MAX */
    int64_t step_ns;
};

/* Promises of the environment that a run breaks: then exclusion is not claimed. */
#define SIM_OUTSIDE_LOST_KEYS (1u << 0)
#define SIM_OUTSIDE_STEP      (1u << 1)
#define SIM_OUTSIDE_RATE      (1u << 2)
/* A machine that stood still, and whose wall clock was not set right at once, or that stood for so
 * short a time that it is allowed not to matter. */
#define SIM_OUTSIDE_FREEZE (1u << 3)

struct sim_contention;

struct sim_plan {
    uint64_t seed;
    unsigned nodes, clients, slots, resources;
    unsigned rounds; /* operations of each slot */
    uint64_t ttl_ns;
    uint64_t span_ns; /* how long the trouble lasts */
    uint64_t delay_ns, jitter_ns;
    uint64_t latency_ns; /* until a loop turns when it has something to do */
    size_t window;       /* bytes that a connection takes before it blocks */
    size_t read_max;     /* bytes that a server reads at once */
    struct rl_drift drift;
    struct rl_backoff backoff;
    uint64_t connect_timeout_ns, node_timeout_ns;
    int64_t ppm_max;   /* of all clocks */
    bool early_expiry; /* servers expire a key in the millisecond it is due, not in the next one */
    bool has_password, has_db;
    bool wakeups;               /* clients ask to be told of changes */
    uint8_t mute;               /* nodes, bit by bit, that cannot */
    unsigned lost_notification; /* of 1000 things that were to be told, so many are not */
    bool durable;               /* an operator attests that nothing is lost over a restart */
    uint8_t evicting;           /* nodes, bit by bit, that evict keys, and say so */
    uint64_t heartbeat_ns;
    uint64_t wall_slack_us; /* a wall clock may be set ahead so far */
    bool fences_env;        /* and one does not */
    unsigned permits;       /* of the semaphore; 0: there is none */
    bool fewer;             /* some clients count one less */
    unsigned seeds_refused; /* at the first start, one after the other */
    bool foreign;           /* others have left keys of slots behind when the trouble ends */
    /* Of 1000: */
    unsigned permit, many, fence, wait_forever, wait_never, auto_extend, extend, cancel, detach,
        keep, lapse, inspect, split, late_turn, late_report, far_link;
    unsigned env_faults; /* SIM_OUTSIDE_* */
    struct sim_contention
        *contention; /* they want one thing only, and are measured; NULL: nobody is */
    unsigned fault_count;
    struct sim_fault faults[SIM_FAULTS_MAX];
};

void sim_plan_make(struct sim_plan *plan, uint64_t seed);
/* The wall clock is set ahead by so much that a lock must not survive it. */
bool sim_plan_is_noticed(const struct sim_plan *plan, const struct sim_fault *freeze);

#endif
