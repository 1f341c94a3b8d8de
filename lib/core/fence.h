/* SPDX-License-Identifier: MIT
 * Chooses the fencing token (short: fence) of an attempt: a number that is larger than the fence of
 * every earlier holder of the resource, independent of clocks.
 *
 * Each server keeps registers that never decrease, one for each stripe. The request of an attempt
 * carries a proposal. A server that grants returns what its register held before, and stores the
 * proposal if it is larger. If a quorum stored the proposal, the proposal is the fence, after one
 * round trip. Otherwise the fence is one more than the largest number seen, and a second round
 * (RAISE) writes it to the servers that granted. A server executes RAISE only if the key still has
 * the attempt's token. The second round needs a quorum, too.
 *
 * Proof: two quorums share a node. On that node the keys of two attempts exist one after the other.
 * The first attempt wrote its fence there while its key existed, so the grant of the second attempt
 * returned at least that fence, and the second attempt chose a larger one. A grant that arrives
 * after the choice may count in the second round if what its register holds is smaller than the
 * fence chosen. */
#ifndef RL_CORE_FENCE_H
#define RL_CORE_FENCE_H

#include "core/types.h"

#define RL_FENCE_STRIPES  1024u               /* registers of a fence record */
#define RL_FENCE_END      (UINT64_C(1) << 53) /* scripts compare numbers as doubles, exact below */
#define RL_FENCE_CORRUPT  (RL_FENCE_END - 2)  /* no client writes this number or a larger one */
#define RL_FENCE_TEXT_MAX 160                 /* bytes of a fingerprint, without the NUL */

/* The state of the choice. */
enum rl_fence_outcome {
    RL_FENCE_OPEN = 0,   /* undecided: replies are missing that can decide it */
    RL_FENCE_AGREED = 1, /* a quorum holds `chosen`: it is the fence */
    RL_FENCE_FAILED = 2  /* a quorum for `chosen` has become impossible */
};

/* The fence of one attempt, and of the lock once it is held. Only fence.c changes it after
 * rl_fence_begin(). Invariants: `accepted`, `acked` and `failed` are subsets of `used`; `acked` and
 * `failed` are disjoint; `chosen` is set once and is at least the proposal or larger than `top` was
 * at that time. */
struct rl_fence {
    uint64_t proposal; /* the number that the attempt proposes */
    uint64_t chosen;   /* the number chosen; 0: none yet */
    uint64_t top;      /* largest number that a register of the `used` nodes held right after its
                        * node's grant */
    rl_nodes used;     /* nodes whose grant counts for the fence: all grants before the choice, and
                        * later ones whose register then holds less than `chosen` */
    rl_nodes accepted; /* of `used`: stored the proposal */
    rl_nodes acked;    /* of `used`: granted the RAISE, so the register holds `chosen` or more */
    rl_nodes failed;   /* of `used`: the RAISE was denied, failed, or could not be sent */
    bool raising;      /* the second round has begun */
};

/* Returns the proposal of an attempt: larger than `hint`, the largest number that this client has
 * seen of the stripe, and at least `wall_us`, the wall clock in microseconds since 1970. Because
 * of the clock, proposals still grow if the registers are lost. */
uint64_t rl_fence_propose(uint64_t hint, uint64_t wall_us);

/* Returns the stripe of a resource, 0 to RL_FENCE_STRIPES - 1, from the hash of its key. */
unsigned rl_fence_stripe(uint64_t hash);

/* Starts the choice for a new attempt; 0 < `proposal` < RL_FENCE_CORRUPT. */
void rl_fence_begin(struct rl_fence *fence, uint64_t proposal);

/* Takes a grant. The node's register held `previous` before it; `accepted`: the node reports that
 * it stored the proposal. Returns true if the choice was made earlier and the caller must send the
 * node a RAISE. */
bool rl_fence_grant(struct rl_fence *fence, unsigned node, uint64_t previous, bool accepted);

/* Chooses the fence; called once, when a quorum has granted. `counted` are the nodes whose grants
 * count. Returns the nodes to which the caller must send a RAISE; 0 if the proposal is the fence.
 */
rl_nodes rl_fence_choose(struct rl_fence *fence, rl_nodes counted, unsigned quorum);

/* Takes the result of a RAISE. `acked` is false if the RAISE was denied, failed or not sent. Only
 * the first result of a node counts. */
void rl_fence_raised(struct rl_fence *fence, unsigned node, bool acked);

/* Returns the state of the choice, if only the nodes of `counted` count. `pending` are the nodes
 * that have not voted and whose grants could still be used. */
enum rl_fence_outcome rl_fence_judge(const struct rl_fence *fence, rl_nodes counted,
                                     rl_nodes pending, unsigned quorum);

/* The settings that all clients of one fence record must have in common. The hashes are texts
 * without blanks. */
struct rl_fence_config {
    unsigned nodes;      /* number of nodes of the shard */
    uint64_t max_ttl_ms; /* longest TTL that any client may use */
    bool durable;      /* records survive restarts; false: each is bound to one run of its server */
    const char *shard; /* hash of the addresses, independent of their order */
    const char *prefix; /* hash of the key prefix */
};
/* Writes the fingerprint of `config` as terminated text and returns its length in bytes. No
 * fingerprint is a prefix of another one. */
size_t rl_fence_fingerprint(char ret[RL_FENCE_TEXT_MAX + 1], const struct rl_fence_config *config);

/* Reads a number that a register may hold into `*ret`. Returns false if the text is not 1 to 16
 * decimal digits, or the number is not below RL_FENCE_CORRUPT. */
bool rl_fence_parse(const char *text, size_t len, uint64_t *ret);

#endif
