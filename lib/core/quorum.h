/* SPDX-License-Identifier: MIT
 * One question put to all nodes, and what their answers add up to. A pure step function: a vote
 * goes in, an outcome comes out. Sets of nodes are bit masks, so a round is small and a step costs
 * a few instructions. */
#ifndef RL_CORE_QUORUM_H
#define RL_CORE_QUORUM_H

#include "core/protocol.h"
#include "core/types.h"

enum rl_outcome {
    RL_OUTCOME_OPEN = 0,   /* votes that matter are still missing */
    RL_OUTCOME_WON = 1,    /* a majority agreed */
    RL_OUTCOME_FAILED = 2, /* a majority has become impossible */
    RL_OUTCOME_GONE = 3    /* release: proven that a majority did not have our key */
};

struct rl_round {
    uint32_t number; /* names the question: an answer to another number is not an answer to this */
    uint8_t verb;    /* enum rl_verb */
    uint8_t outcome; /* enum rl_outcome; once it has left OPEN it never changes */
    uint8_t nodes, quorum;
    rl_nodes requested; /* the request was handed to the node's connection */
    rl_nodes deferred;  /* will be asked when the first of the round has granted */
    rl_nodes absent;    /* known beforehand not to have our key (release) */
    rl_nodes excluded;  /* may answer, does not count */
    rl_nodes granted;   /* granted, denied and failed are disjoint */
    rl_nodes denied;
    rl_nodes failed;
    rl_nodes suspect;   /* asked, and without an answer for longer than usual */
    struct rl_now t1;   /* read before the first byte was sent */
    int64_t t1_wall_us; /* rl_view.wall_us at T1 */
    uint32_t *rtt_us;   /* of each node; 0: no answer */
    uint8_t *cause;     /* enum redlock_cause of failed and barred nodes */
};

/* What the engine knows of the nodes; the same for every lease of a tick. */
struct rl_view {
    struct rl_now now;
    int64_t wall_us;             /* wall clock minus boot clock: changes when somebody sets it */
    rl_nodes up;                 /* may be asked now: connected or connecting, not suspect */
    rl_nodes suspect;            /* suspect: connected; asked where it cannot be done without */
    rl_nodes slow;               /* answer much later than the quorum-th fastest */
    rl_nodes notifying;          /* tell when a key changes that they were asked about */
    rl_nodes eligible;           /* their grant of a new lock counts, as far as is known */
    rl_nodes excluded;           /* not even their word that our key is still there counts */
    bool duplicate;              /* two addresses show one server */
    uint8_t cause[RL_NODES_MAX]; /* why a node is not up, not a voter or unfit */
    uint64_t random;             /* fresh in every tick */
    uint64_t round_trip_ns;      /* smoothed, of the quorum-th fastest node */
};

/* One vote. */
struct rl_ballot {
    uint8_t node;
    uint8_t vote;   /* enum rl_vote: GRANTED, DENIED, FAILED or SILENT */
    uint8_t cause;  /* enum redlock_cause; with FAILED and SILENT */
    uint8_t verb;   /* enum rl_verb that was asked */
    bool unsent;    /* with FAILED: proven that no byte of the request was sent */
    uint16_t slot;  /* of a semaphore: whose key it is about */
    bool accepted;  /* a fenced vote, GRANTED: the proposal was stored */
    uint8_t record; /* enum rl_record_state: of the node's fence record, if the answer shows it */
    uint8_t key;    /* DENIED, of several keys: the first that was taken, from 1 on; 0: not said */
    uint32_t round;
    uint32_t rtt_us;
    uint64_t register_value; /* a fenced vote: what the node's register held before */
    uint64_t pttl_ms;        /* of the key that is there, if the answer says it; 0: it does not */
};

/* A round of so many nodes before its first question; both arrays have an element for each node,
 * are zero, and stay the owner's. */
void rl_round_init(struct rl_round *round, unsigned nodes, unsigned quorum, uint32_t *rtt_us,
                   uint8_t *cause);
/* All that is known of another round of as many nodes. */
void rl_round_copy(struct rl_round *round, const struct rl_round *from);

/* Opens a round: asks the nodes of `ask` that are up (silent ones, too, to give keys back, and
 * where there is no majority without them), counts the others of `ask` as failed with the view's
 * cause. `register_value` is increased. */
void rl_round_open(struct rl_round *round, enum rl_verb verb, rl_nodes ask, rl_nodes excluded,
                   const struct rl_view *view);

/* These are not asked yet, right after rl_round_open(). */
void rl_round_defer(struct rl_round *round, rl_nodes nodes);
/* The nodes held back that are to be asked now; those that are not up by now count as failed. */
rl_nodes rl_round_take_deferred(struct rl_round *round, const struct rl_view *view);

/* Takes what a later round of the same nodes, one that was given up, knows of those that this round
 * held back to its end. For reports. */
void rl_round_complete(struct rl_round *round, const struct rl_round *later);

/* They will not be asked. */
void rl_round_fail_deferred(struct rl_round *round, uint8_t cause);

/* From here on votes of these nodes do not count, not even those that were given already; the view
 * says why. */
void rl_round_exclude(struct rl_round *round, rl_nodes nodes, const struct rl_view *view);

/* Counts one vote of this round; a second vote of a node and votes of nodes that were not asked are
 * ignored. Returns true if the vote was counted in. */
bool rl_round_count(struct rl_round *round, const struct rl_ballot *ballot);

/* The outcome that the votes so far add up to, and keeps it. A majority that only silent nodes
 * could still make is waited for, with one exception: an attempt that was denied somewhere concedes
 * at once, because others wait for the votes it has. */
enum rl_outcome rl_round_judge(struct rl_round *round);

/* The same for a round that asks whether a key is still ours. WON: a majority of votes that count
 * says so. GONE: there are too many denials for a majority; the denial of a barred node counts,
 * too. FAILED: the nodes that are left can bring about neither. */
enum rl_outcome rl_round_judge_verify(struct rl_round *round);

/* Nodes that were asked and have not answered. */
rl_nodes rl_round_pending(const struct rl_round *round);

/* Grants that count. */
rl_nodes rl_round_counted(const struct rl_round *round);

/* Why a round failed: ECONTENDED, ENOQUORUM, EEXCLUDED, EFENCE, EAUTH or ENOMEM. In a round that is
 * given up before its decision, nodes without an answer count as if they had failed. */
int rl_round_status(const struct rl_round *round);

#endif
