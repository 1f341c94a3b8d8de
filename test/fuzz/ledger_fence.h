/* SPDX-License-Identifier: MIT
 * A record of a fenced attempt that shares no code with the library: which fencing tokens the nodes
 * had, which nodes were requested to raise theirs, and which did. */
#ifndef TEST_FUZZ_LEDGER_FENCE_H
#define TEST_FUZZ_LEDGER_FENCE_H

#include "fuzz.h"

#include "core/lease.h"

/* One attempt. Only ledger_fence.c changes it. */
struct ledger_fence {
    uint64_t proposal, number;    /* of the attempt; number 0: not chosen yet */
    uint64_t held;                /* fencing token of the lock that is held */
    uint64_t highest;             /* largest that any node has reported */
    uint64_t holds[RL_NODES_MAX]; /* what the register of each node held after its vote */
    /* nodes that stored the proposal, got a RAISE, replied to it, and confirmed it */
    rl_nodes stored, raised, answered, acked;
};

/* Begins a new attempt and chooses its proposal. */
void ledger_fence_begin(struct ledger_fence *fence, struct rl_lease *lease, uint64_t random);
/* Turns a ballot into one of a fenced attempt: a vote with a fencing token, or a reply to a RAISE.
 */
void ledger_fence_draw(struct ledger_fence *fence, struct fuzz_input *input,
                       const struct rl_lease *lease, struct rl_ballot *ballot);
/* Records the first grant of a node in this round. */
void ledger_fence_granted(struct ledger_fence *fence, const struct rl_ballot *ballot);
/* Records a reply to a RAISE. Returns false if the node has replied before. */
bool ledger_fence_raised(struct ledger_fence *fence, const struct rl_ballot *ballot);
/* Checks, after each step, what was requested; `counted` are the grants that count. */
void ledger_fence_step(struct ledger_fence *fence, const struct rl_lease *lease,
                       const struct rl_effects *fx, rl_nodes counted);
/* Checks that the lock may be held from this step on. */
void ledger_fence_won(struct ledger_fence *fence, const struct rl_lease *lease, rl_nodes counted);

#endif
