/* SPDX-License-Identifier: MIT
 * Counts the votes of one round: one request to all nodes of a shard. A pure state machine: votes
 * go in, an outcome comes out.
 *
 * The quorum is floor(nodes / 2) + 1 of the configured nodes, never of the reachable ones: any two
 * quorums of the same nodes then share a node, and that node grants only one of two contenders. */
#ifndef RL_CORE_QUORUM_H
#define RL_CORE_QUORUM_H

#include "core/protocol.h"
#include "core/types.h"

/* What the votes of a round add up to. */
enum rl_outcome {
    RL_OUTCOME_OPEN = 0,   /* undecided: votes are missing that can decide it */
    RL_OUTCOME_WON = 1,    /* a quorum granted; release: a quorum does not have the key any more;
                            * inspection: a quorum replied */
    RL_OUTCOME_FAILED = 2, /* a quorum has become impossible */
    RL_OUTCOME_LOST = 3    /* release, verify: proven that no quorum has the key */
};

/* One round of a lease. A lease has one round at a time and reuses the struct; only quorum.c and
 * the core/lease*.c that own the lease change it. Invariants, checked after each change:
 *   - `granted`, `denied` and `failed` are disjoint;
 *   - `granted` and `denied` are subsets of `requested`;
 *   - `deferred` is disjoint from `requested` and `failed`. */
struct rl_round {
    uint32_t number; /* counts the rounds of the lease from 1 on; 0: none yet. Requests and ballots
                      * carry it, and a ballot of another round is not counted */
    uint8_t verb;    /* enum rl_verb of the request */
    uint8_t outcome; /* enum rl_outcome; it changes only once, when it leaves OPEN */
    uint8_t nodes;   /* configured nodes of the shard, 1 to RL_NODES_MAX */
    uint8_t quorum;  /* votes that a decision needs; more than half of `nodes` */
    rl_nodes requested; /* the request was handed to the node's connection */
    rl_nodes deferred;  /* to be asked later, when the preferred node has granted or is late */
    rl_nodes absent;   /* not to be asked in this round; RELEASE: because the key is known not to be
                        * there */
    rl_nodes excluded; /* may reply, but a grant does not count */
    rl_nodes granted;  /* have voted GRANTED */
    rl_nodes denied;   /* have voted DENIED */
    rl_nodes failed;   /* could not be asked, or replied with no vote */
    rl_nodes suspect;  /* requested; the node has not replied for longer than usual */
    struct rl_now t1;  /* T1: read before the first byte of the round was sent */
    int64_t t1_wall_us; /* rl_view.wall_us at T1 */
    uint32_t *rtt_us;   /* round trip of each node in microseconds; 0: no reply. `nodes` elements,
                         * owned by the caller of rl_round_init() */
    uint8_t *cause;     /* enum redlock_cause of each failed, excluded or suspect node; 0: none.
                         * `nodes` elements, same owner */
};

/* The view: what the engine knows of its nodes and clocks. The engine makes one in each tick, that
 * is, each time it processes what has come or is due. All leases of the tick read the same one. A
 * set contains the nodes of which its comment is true. */
struct rl_view {
    struct rl_now now;           /* the time of the tick */
    int64_t wall_us;             /* wall clock minus boot clock, in microseconds; changes when the
                                  * wall clock is set */
    rl_nodes up;                 /* can be asked now: connected or connecting, and not suspect */
    rl_nodes suspect;            /* connected, but suspect: asked only if there is no quorum without
                                  * them, and for undos */
    rl_nodes slow;               /* their smoothed and their longest recent round trip are much
                                  * longer than that of the quorum-th fastest node */
    rl_nodes notifying;          /* can send a notification when a key changes */
    rl_nodes lines;              /* can keep a line, and notify this client of its turn, now or
                                  * once the connection for notifications is there */
    rl_nodes eligible;           /* their grant of a new lock counts */
    rl_nodes excluded;           /* not even their grant of an extension counts */
    bool duplicate;              /* two configured addresses lead to one server */
    uint8_t cause[RL_NODES_MAX]; /* enum redlock_cause: why a node is not up, not eligible or
                                  * excluded */
    uint64_t random;             /* a new random word in each tick */
    uint64_t round_trip_ns;      /* smoothed round trip of the quorum-th fastest node */
};

/* One vote: what one node's reply to one request means for the round. */
struct rl_ballot {
    uint8_t node;  /* index of the node */
    uint8_t vote;  /* enum rl_vote: GRANTED, DENIED, FAILED or SUSPECT */
    uint8_t cause; /* enum redlock_cause; with FAILED and SUSPECT */
    uint8_t verb;  /* enum rl_verb of the request */
    bool unsent;   /* with FAILED: no byte of the request was sent, so it was not executed */
    uint16_t slot; /* semaphore: the slot whose key the request was about */
    bool accepted; /* fenced vote, GRANTED: the register now holds the proposal */
    uint8_t
        record;  /* enum rl_record_state: the node's fence record, as far as the reply shows it */
    uint8_t key; /* DENIED, lock of several keys: the first key that exists, counted from 1;
                  * 0: the reply does not say */
    uint32_t round;          /* rl_round.number of the request */
    uint32_t rtt_us;         /* round trip in microseconds; 0: no reply */
    uint64_t register_value; /* fenced vote: what the node's register held before it */
    uint64_t pttl_ms;        /* time to live of the key that exists; 0: the reply does not say */
};

/* Makes a round of `nodes` nodes with a quorum of `quorum`, before its first request. Both arrays
 * have an element for each node and are zero; they stay the caller's and must outlive the round. */
void rl_round_init(struct rl_round *round, unsigned nodes, unsigned quorum, uint32_t *rtt_us,
                   uint8_t *cause);
/* Copies the contents of `from`, a round of as many nodes; `round` keeps its own arrays. */
void rl_round_copy(struct rl_round *round, const struct rl_round *from);

/* Opens the next round: sets `requested` to the nodes of `targets` that can be asked, T1 to
 * view->now, and increments the number. The caller then sends the requests. Suspect nodes are asked
 * if the verb removes keys, or if there is no quorum without them. The other nodes of `targets`
 * count as failed, with the view's cause. Grants of `excluded` nodes do not count. */
void rl_round_open(struct rl_round *round, enum rl_verb verb, rl_nodes targets, rl_nodes excluded,
                   const struct rl_view *view);

/* Moves `nodes` from requested to deferred: they are asked later. Call it right after
 * rl_round_open(), before a request is sent. */
void rl_round_defer(struct rl_round *round, rl_nodes nodes);
/* Moves all deferred nodes to requested and returns those to be asked now. Nodes that cannot be
 * asked any more count as failed. */
rl_nodes rl_round_take_deferred(struct rl_round *round, const struct rl_view *view);

/* Copies from `later`, a round of the same nodes that was abandoned, the votes of the nodes that
 * this round never asked. Only for the report. */
void rl_round_complete(struct rl_round *round, const struct rl_round *later);

/* Counts all deferred nodes as failed, with `cause`: they are never asked. */
void rl_round_fail_deferred(struct rl_round *round, uint8_t cause);

/* Excludes `nodes` from now on: none of their grants counts, earlier ones included. The view has
 * the causes. */
void rl_round_exclude(struct rl_round *round, rl_nodes nodes, const struct rl_view *view);

/* Counts one vote. Ignores a vote of another round, a second vote of a node, and a vote of a node
 * that was not asked. Returns true if the vote was counted. */
bool rl_round_count(struct rl_round *round, const struct rl_ballot *ballot);

/* Returns the outcome of the present votes and stores it. A round waits for suspect nodes if only
 * they can complete a quorum. An attempt that was denied somewhere does not: it fails at once,
 * because another contender needs the votes that it got. */
enum rl_outcome rl_round_judge(struct rl_round *round);

/* As rl_round_judge(), for a round that verifies a held lock. WON: a quorum of grants that count.
 * LOST: too many denials for a quorum; denials of excluded nodes count, too. FAILED: the missing
 * votes can lead to neither. */
enum rl_outcome rl_round_judge_verify(struct rl_round *round);

/* Returns the nodes that were asked and have not voted. */
rl_nodes rl_round_pending(const struct rl_round *round);

/* Returns whether a round of EXTEND in which a node has denied may still show that no quorum has
 * the key: the nodes of `gone`, which do not have it, are too few for that, but would be enough
 * together with those that may still deny. Suspect nodes are not waited for. */
bool rl_round_may_show_loss(const struct rl_round *round, rl_nodes gone);

/* Returns the nodes whose grants count: granted and not excluded. */
rl_nodes rl_round_counted(const struct rl_round *round);

/* Returns why a round failed: ECONTENDED, ENOQUORUM, EEXCLUDED, EFENCE, EAUTH or ENOMEM. If the
 * round is still open, because the caller abandons it, pending and deferred nodes count as failed.
 */
int rl_round_status(const struct rl_round *round);

#endif
