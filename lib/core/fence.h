/* SPDX-License-Identifier: MIT
 * Choosing a fence: a number that grows with every later grant of a resource, whatever clocks do.
 *
 * Each node keeps registers that never decrease, one for each stripe of resources. A vote carries a
 * proposal; a node that grants says what its register held before, and stores the proposal if that
 * is larger. A majority that stored it has agreed on it: one round trip. Otherwise a number above
 * all that was seen is written to the same nodes in a second round, guarded by the owner's token.
 *
 * Why it holds: any two majorities share a node. There the tokens of two attempts live one after
 * the other, and whatever the first wrote, it wrote while its token was there. So the later one saw
 * at least the earlier one's fence, and takes a larger one. A grant that comes after the choice
 * counts in the second round too, if what it saw is smaller than what was chosen. */
#ifndef RL_CORE_FENCE_H
#define RL_CORE_FENCE_H

#include "core/types.h"

#define RL_FENCE_STRIPES  1024u
#define RL_FENCE_END      (UINT64_C(1) << 53) /* scripts compare numbers as doubles */
#define RL_FENCE_CORRUPT  (RL_FENCE_END - 2)  /* a stored number from here on was not ours */
#define RL_FENCE_TEXT_MAX 160                 /* of a fingerprint, without a NUL */

enum rl_fence_outcome {
    RL_FENCE_OPEN = 0,   /* answers that matter are missing */
    RL_FENCE_AGREED = 1, /* `chosen` is the fence */
    RL_FENCE_FAILED = 2  /* a majority for `chosen` has become impossible */
};

/* The fence of one attempt, and then of what is held. */
struct rl_fence {
    uint64_t proposal;
    uint64_t chosen;   /* what was chosen; 0: nothing yet */
    uint64_t top;      /* largest number on the nodes of `used` after their votes */
    rl_nodes used;     /* grants that saw, and after their vote hold, less than `chosen` */
    rl_nodes accepted; /* of them: stored the proposal */
    rl_nodes acked;    /* of `used`: hold the number */
    rl_nodes failed;   /* of `used`: will not */
    bool raising;      /* the second round runs, or ran */
};

/* The proposal of an attempt: above all that this client has seen of the stripe, and like a clock,
 * so that numbers still grow if the registers are lost. */
uint64_t rl_fence_propose(uint64_t hint, uint64_t wall_us);

/* Which register belongs to a resource, by the hash of its key. */
unsigned rl_fence_stripe(uint64_t hash);

/* A new attempt. */
void rl_fence_begin(struct rl_fence *fence, uint64_t proposal);

/* A node granted; its register held `previous` and, if `accepted`, holds the proposal now. Before
 * the choice all grants are used; after it those that do not contradict it. true: the node is to be
 * sent a RAISE. */
bool rl_fence_grant(struct rl_fence *fence, unsigned node, uint64_t previous, bool accepted);

/* A majority has granted (`counted`): chooses the number. Returns the nodes to be sent a RAISE;
 * none if the proposal was agreed on. */
rl_nodes rl_fence_choose(struct rl_fence *fence, rl_nodes counted, unsigned quorum);

/* The answer to a RAISE, or `acked` false: it could not be sent, was lost, or the key was gone. */
void rl_fence_raised(struct rl_fence *fence, unsigned node, bool acked);

/* Where the number stands, if only nodes of `counted` count. `pending`: their votes are missing,
 * and may come to be used. */
enum rl_fence_outcome rl_fence_judge(const struct rl_fence *fence, rl_nodes counted,
                                     rl_nodes pending, unsigned quorum);

/* What all clients of a fence record must agree on. The hashes are texts without blanks. */
struct rl_fence_config {
    unsigned nodes;
    uint64_t max_ttl_ms;
    bool durable;       /* records survive restarts; else they are bound to one run of the server */
    const char *shard;  /* hash of the addresses, in any order */
    const char *prefix; /* hash of the key prefix */
};
/* Writes the fingerprint, which no other fingerprint begins with. Returns its length. */
size_t rl_fence_fingerprint(char ret[RL_FENCE_TEXT_MAX + 1], const struct rl_fence_config *config);

/* Digits only, at most 16, below RL_FENCE_CORRUPT: a number that may stand in a register. */
bool rl_fence_parse(const char *text, size_t len, uint64_t *ret);

#endif
