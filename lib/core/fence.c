/* SPDX-License-Identifier: MIT
 * Chooses the fence of an attempt, and makes fingerprints of the configuration. fence.h has the
 * algorithm and its proof. In short: every grant returns what the node's register held before. If a
 * quorum stored the proposal, the proposal is the fence. Otherwise the fence is one more than the
 * largest number seen, and a second round of requests (RAISE) writes it to the registers.
 *
 * The functions are called in this order: rl_fence_begin(), rl_fence_grant() for each grant,
 * rl_fence_choose() once a quorum has granted, rl_fence_raised() for each reply to a RAISE, and
 * rl_fence_judge() after each of these. */
#include "core/fence.h"

#include <string.h>

#define DIGITS_MAX 16 /* decimal digits of numbers below 2^53 */

/* Returns the number that an attempt proposes: one more than `hint`, the largest number that this
 * client has seen in the register; or `wall_us`, the wall clock in microseconds since 1970, if that
 * is larger. The result is below RL_FENCE_CORRUPT. */
uint64_t rl_fence_propose(uint64_t hint, uint64_t wall_us)
{
    return rl_min_u64(rl_max_u64(rl_add_sat(hint, 1), wall_us), RL_FENCE_CORRUPT - 1);
}

/* Returns the stripe, 0 to RL_FENCE_STRIPES - 1, of the resource whose key has this hash. */
unsigned rl_fence_stripe(uint64_t hash)
{
    return (unsigned)(hash % RL_FENCE_STRIPES);
}

/* Starts the choice of a fence for a new attempt, with this proposal. */
void rl_fence_begin(struct rl_fence *fence, uint64_t proposal)
{
    RL_ASSERT(proposal > 0 && proposal < RL_FENCE_CORRUPT);
    memset(fence, 0, sizeof *fence);
    fence->proposal = proposal;
}

/* Takes a grant of `node`, whose register held `previous` before it. `accepted`: the node says that
 * it stored the proposal. The node becomes one of `used`. After the choice, it does so only if a
 * second round is under way and its register holds less than the number chosen. Returns true in
 * that case: the caller must send the node a RAISE. Returns false for every grant before the
 * choice. */
bool rl_fence_grant(struct rl_fence *fence, unsigned node, uint64_t previous, bool accepted)
{
    /* Strictly larger: of two attempts that propose the same number, only one may use it. */
    bool stored = accepted && fence->proposal > previous;
    uint64_t after = rl_max_u64(previous, stored ? fence->proposal : 0); /* in the register */

    RL_ASSERT(previous < RL_FENCE_CORRUPT);
    if (fence->chosen != 0 && (!fence->raising || after >= fence->chosen))
        return false;
    fence->used |= RL_NODE(node);
    fence->accepted |= stored ? RL_NODE(node) : 0;
    fence->top = rl_max_u64(fence->top, after);
    return fence->chosen != 0;
}

/* Chooses the fence, once a quorum of the nodes that count has granted: the proposal, if a quorum
 * has stored it; else one more than the largest number seen, which a second round must write.
 * `counted` are the nodes whose grants count. Returns the nodes to which the caller must send a
 * RAISE; 0 if no second round is needed. */
rl_nodes rl_fence_choose(struct rl_fence *fence, rl_nodes counted, unsigned quorum)
{
    RL_ASSERT(fence->chosen == 0);
    RL_ASSERT(rl_nodes_count(fence->used & counted) >= quorum);
    if (rl_nodes_count(fence->accepted & counted) >= quorum) {
        fence->chosen = fence->proposal;
        return 0;
    }
    fence->chosen = fence->top + 1;
    fence->raising = true;
    return fence->used;
}

/* Notes the result of the RAISE to `node`. `acked`: the register of the node now holds the fence,
 * or more. Not `acked`: the RAISE was denied, has failed or could not be sent. Only the first
 * result of a node counts. */
void rl_fence_raised(struct rl_fence *fence, unsigned node, bool acked)
{
    rl_nodes bit = RL_NODE(node) & fence->used & ~(fence->acked | fence->failed);

    fence->acked |= acked ? bit : 0;
    fence->failed |= acked ? 0 : bit;
}

/* Returns whether a quorum holds the fence. Only the nodes of `counted` count; those of `pending`
 * have not voted on the attempt yet. OPEN before the choice; AGREED after the choice, if no second
 * round is needed. In a second round: AGREED once a quorum has granted the RAISE, FAILED once a
 * quorum has become impossible, else OPEN. */
enum rl_fence_outcome rl_fence_judge(const struct rl_fence *fence, rl_nodes counted,
                                     rl_nodes pending, unsigned quorum)
{
    if (fence->chosen == 0)
        return RL_FENCE_OPEN;
    if (!fence->raising)
        return RL_FENCE_AGREED;
    rl_nodes agreed = fence->acked & counted;
    /* Nodes that may still grant a RAISE. */
    rl_nodes open = (fence->used & counted & ~(fence->acked | fence->failed)) | pending;
    if (rl_nodes_count(agreed) >= quorum)
        return RL_FENCE_AGREED;
    return rl_nodes_count(agreed | open) < quorum ? RL_FENCE_FAILED : RL_FENCE_OPEN;
}

/* Writes `text` and a NUL into the fingerprint `ret` at offset `at`. Returns the offset of the NUL.
 * Aborts if the fingerprint would be longer than RL_FENCE_TEXT_MAX. */
static size_t put(char *ret, size_t at, const char *text)
{
    size_t len = strlen(text);

    RL_ASSERT(at + len <= RL_FENCE_TEXT_MAX);
    memcpy(ret + at, text, len + 1);
    return at + len;
}

/* Writes `name` and then the decimal digits of `value` into the fingerprint `ret` at offset `at`,
 * and a NUL. Returns the offset of the NUL. */
static size_t put_integer(char *ret, size_t at, const char *name, uint64_t value)
{
    char digits[24]; /* up to 20 digits and the NUL */
    size_t first = sizeof digits;

    digits[--first] = '\0';
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return put(ret, put(ret, at, name), digits + first);
}

/* Writes the fingerprint of `config` to `ret`, terminated. Returns its length in bytes. The text is
 * "v1 k=STRIPES nodes=N max_ttl=MS durable=0|1 set=HASH prefix=HASH;". The hashes stand for the
 * addresses of the shard and for the key prefix. */
size_t rl_fence_fingerprint(char ret[RL_FENCE_TEXT_MAX + 1], const struct rl_fence_config *config)
{
    size_t at = put_integer(ret, 0, "v1 k=", RL_FENCE_STRIPES);

    at = put_integer(ret, at, " nodes=", config->nodes);
    at = put_integer(ret, at, " max_ttl=", config->max_ttl_ms);
    at = put_integer(ret, at, " durable=", config->durable);
    at = put(ret, put(ret, at, " set="), config->shard);
    at = put(ret, put(ret, at, " prefix="), config->prefix);
    return put(ret, at, ";");
}

/* Reads a number of 1 to DIGITS_MAX decimal digits into `*ret`. Returns false if the text is
 * anything else, or if the number is not below RL_FENCE_CORRUPT. */
bool rl_fence_parse(const char *text, size_t len, uint64_t *ret)
{
    uint64_t value = 0;

    if (len == 0 || len > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = value;
    return value < RL_FENCE_CORRUPT;
}
