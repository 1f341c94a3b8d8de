/* SPDX-License-Identifier: MIT
 * What a fenced attempt rests on, kept apart from the code under test: which numbers the nodes said
 * they had, who was asked to raise to which, and who did. */
#ifndef TEST_FUZZ_LEDGER_FENCE_H
#define TEST_FUZZ_LEDGER_FENCE_H

#include "fuzz.h"

#include "core/lease.h"

struct ledger_fence {
    uint64_t proposal, number;    /* of the attempt; 0: nothing was chosen yet */
    uint64_t held;                /* the fence of the lock that is held */
    uint64_t highest;             /* of all that any node has shown */
    uint64_t holds[RL_NODES_MAX]; /* what the register of a node held after its vote */
    rl_nodes stored, raised, answered, acked;
};

/* A new attempt: chooses what it proposes. */
void ledger_fence_begin(struct ledger_fence *fence, struct rl_lease *lease, uint64_t random);
/* Makes a ballot one of a fenced attempt: a vote with a number, or an answer to a RAISE. */
void ledger_fence_draw(struct ledger_fence *fence, struct fuzz_input *input,
                       const struct rl_lease *lease, struct rl_ballot *ballot);
/* The first grant of a node in this round. */
void ledger_fence_granted(struct ledger_fence *fence, const struct rl_ballot *ballot);
/* An answer to a RAISE; false: the node has answered before. */
bool ledger_fence_raised(struct ledger_fence *fence, const struct rl_ballot *ballot);
/* After each step: what was asked for; `counted` are the grants that count. */
void ledger_fence_step(struct ledger_fence *fence, const struct rl_lease *lease,
                       const struct rl_effects *fx, rl_nodes counted);
/* The lock is held from this step on. */
void ledger_fence_won(struct ledger_fence *fence, const struct rl_lease *lease, rl_nodes counted);

#endif
