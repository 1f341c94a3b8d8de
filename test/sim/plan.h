/* SPDX-License-Identifier: MIT
 * The plan that follows from one seed: the size of the world, how often its users do what, and its
 * faults. Each seed switches each kind of fault on or off (swarm testing), because a run with all
 * kinds of faults would hide effects of two of them together. `of 1000` marks probabilities in
 * thousandths. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "core/backoff.h"
#include "core/drift.h"
#include "random.h"

#define SIM_NODES_MAX     7
#define SIM_CLIENTS_MAX   6
#define SIM_USERS_MAX     16
#define SIM_RESOURCES_MAX 3
#define SIM_PERMITS_MAX   4
#define SIM_KEYS_MAX                                                                               \
    (SIM_RESOURCES_MAX + SIM_PERMITS_MAX + 1) /* one slot more than there                          \
                                               * are permits */
#define SIM_FAULTS_MAX 20

enum sim_fault_kind {
    SIM_STALL = 0,    /* a link delays everything */
    SIM_PARTITION,    /* nodes on one side, clients on the other */
    SIM_ONE_WAY,      /* a partition in one direction only */
    SIM_DISCONNECT,   /* a connection breaks, at different times for its two ends */
    SIM_CRASH,        /* a server dies and is restarted with its data */
    SIM_CRASH_EMPTY,  /* the same without its data */
    SIM_HANG,         /* a server is stopped and later continues */
    SIM_BUSY,         /* another client's slow script blocks the server */
    SIM_SCRIPT_FLUSH, /* the scripts are removed */
    SIM_FULL,         /* memory is full, and no key is evicted */
    SIM_EVICT,        /* keys are evicted */
    SIM_FLUSH_ALL,    /* all keys are removed */
    SIM_DEMOTE,       /* a master becomes a replica for a while */
    SIM_PROMOTE,      /* an address leads to a former replica, which lacks the latest writes */
    SIM_NODE_STEP,    /* a node's clock is stepped */
    SIM_STOP,         /* a client process is stopped and later continues */
    SIM_SUSPEND,      /* its machine sleeps: one of its clocks stands still */
    SIM_FREEZE,    /* its virtual machine stands still with all its clocks, until its wall clock is
                    * set right */
    SIM_KILL,      /* a client process dies and a new one starts */
    SIM_LEAVE,     /* a client is closed in order and a new one starts */
    SIM_NO_MEMORY, /* a client's allocations fail */
    SIM_RATE,      /* a clock runs faster or slower than the drift allows */
    SIM_SHORTEN,   /* a third party sets an earlier expiry of keys, on one node or on all */
    SIM_KINDS,
    /* Not planned one by one: */
    SIM_CANCELED = SIM_KINDS, /* a user canceled its operation */
    SIM_LATE_TURN,            /* a process lost the processor inside a turn of its loop */
    SIM_SEED_REFUSED, /* a server has no memory for its fence record: a first start breaks off */
    SIM_COUNTED
};
extern const char *const sim_fault_names[SIM_COUNTED];

/* One planned fault. The fields from `client` on apply to the kinds that need them. fault.c sets
 * `mended`; the other fields do not change during the run. */
struct sim_fault {
    uint8_t kind;           /* enum sim_fault_kind */
    uint8_t client, node;   /* where it happens */
    uint8_t clients, nodes; /* partitions: sets of those on the other side; SIM_EVICT: `nodes` may
                             * be the index of the only resource whose key is evicted */
    uint8_t way;         /* one-way partitions: enum sim_way; crashes: not 0 if connections get no
                          * reset; SIM_SHORTEN: not 0 for all nodes; SIM_LEAVE: not 0 if the
                          * client shuts down before */
    bool mended;         /* it has ended, or did not happen */
    uint64_t at_ns;      /* since the beginning of the run */
    uint64_t for_ns;     /* how long it lasts; 0: it has no end */
    uint64_t correct_ns; /* time from the end of a freeze until the wall clock is set right;
                          * UINT64_MAX: never */
    int64_t step_ns;     /* of a stepped clock; SIM_RATE: negative if the clock becomes slow */
};

/* Assumptions about the environment that a run breaks. The oracle then does not check exclusion. */
#define SIM_OUTSIDE_LOST_KEYS (1u << 0)
#define SIM_OUTSIDE_STEP      (1u << 1)
#define SIM_OUTSIDE_RATE      (1u << 2)
/* The clocks of a machine stood still, and its wall clock was not set right at once, or the time
 * was too short to be noticed. */
#define SIM_OUTSIDE_FREEZE (1u << 3)

struct sim_contention;

/* All that distinguishes one run from another. It does not change during the run. */
struct sim_plan {
    uint64_t seed;
    unsigned nodes, clients, resources;
    unsigned users;               /* of each client */
    unsigned rounds;              /* number of operations that each user begins */
    uint64_t ttl_ns;              /* the longest TTL of a lock, and max_ttl of the clients */
    uint64_t span_ns;             /* how long faults occur */
    uint64_t delay_ns, jitter_ns; /* of a link, one way: the least delay, and how much is added */
    uint64_t latency_ns; /* the longest time until a loop turns when it has something to do */
    size_t window;       /* bytes that a connection holds before it blocks */
    size_t read_max;     /* bytes that a server reads at once */
    uint8_t records;     /* set of the nodes whose links carry TLS records */
    struct rl_drift drift;
    struct rl_backoff backoff;
    uint64_t connect_timeout_ns, node_timeout_ns; /* of the clients' configuration; 0: automatic */
    int64_t ppm_max;   /* largest error of rate of all clocks, in millionths */
    bool early_expiry; /* servers expire a key in the millisecond when it is due, not in the next
                        * one */
    bool has_password, has_db;  /* the servers require AUTH; the clients must SELECT */
    bool wakeups;               /* clients request notifications */
    bool lines;                 /* the clients use lines */
    uint8_t no_tracking;        /* set of the nodes that do not support TRACKING */
    unsigned lost_notification; /* of 1000 notifications, the number that are lost */
    bool durable;               /* an operator attests that no server loses data in a restart */
    uint8_t evicting;           /* set of the nodes that evict keys */
    uint64_t heartbeat_ns;      /* time between two heartbeats */
    uint64_t wall_slack_us;     /* how far a wall clock may be ahead unnoticed */
    bool fences_env;        /* an operator attests durability, but a promotion loses data: fencing
                             * tokens are not checked */
    unsigned permits;       /* of the semaphore; 0: there is none */
    bool fewer;             /* some clients count one permit less */
    unsigned seeds_refused; /* number of requests of a first start that servers refuse */
    bool foreign;           /* foreign clients have left keys of slots behind when the faults end */
    /* Of 1000: how often users choose each option of a lock, */
    unsigned permit;       /* a permit of the semaphore */
    unsigned many;         /* several resources */
    unsigned fence;        /* a fencing token */
    unsigned wait_forever; /* no time limit for waiting */
    unsigned wait_never;   /* a single attempt, if there is a time limit */
    unsigned auto_extend;
    /* how often they choose each action, */
    unsigned extend;  /* extend on request */
    unsigned cancel;  /* cancel an acquisition */
    unsigned detach;  /* detach, and offer the token to another user */
    unsigned keep;    /* release with a delay */
    unsigned lapse;   /* hold for longer */
    unsigned inspect; /* inspect instead of acquiring */
    unsigned die;     /* die during an attempt; a supervisor then adopts its token. 0: tokens of
                       * processes that die are not adopted */
    /* and how often each disturbance occurs. */
    unsigned split;       /* a reply arrives in two segments */
    unsigned late_turn;   /* the process loses the processor inside a turn */
    unsigned late_report; /* a result reaches the user late */
    unsigned far_link;    /* a link has four times the delay */
    unsigned env_faults;  /* set of SIM_OUTSIDE_* */
    struct sim_contention
        *contention; /* all users want one lock and are measured; NULL: an ordinary run */
    unsigned fault_count;
    struct sim_fault faults[SIM_FAULTS_MAX];
};

/* Makes the plan of a seed. */
void sim_plan_make(struct sim_plan *plan, uint64_t seed);
/* Returns whether the wall clock is set ahead so far after this freeze that a lock must not
 * survive. */
bool sim_plan_is_noticed(const struct sim_plan *plan, const struct sim_fault *freeze);

#endif
