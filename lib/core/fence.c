/* SPDX-License-Identifier: MIT
 * Chooses fences; makes fingerprints of the configuration. fence.h has the algorithm and its proof.
 */
#include "core/fence.h"

#include <string.h>

#define DIGITS_MAX 16 /* decimal digits of numbers below 2^53 */

uint64_t rl_fence_propose(uint64_t hint, uint64_t wall_us)
{
    return rl_min_u64(rl_max_u64(rl_add_sat(hint, 1), wall_us), RL_FENCE_CORRUPT - 1);
}

unsigned rl_fence_stripe(uint64_t hash)
{
    return (unsigned)(hash % RL_FENCE_STRIPES);
}

void rl_fence_begin(struct rl_fence *fence, uint64_t proposal)
{
    RL_ASSERT(proposal > 0 && proposal < RL_FENCE_CORRUPT);
    memset(fence, 0, sizeof *fence);
    fence->proposal = proposal;
}

bool rl_fence_grant(struct rl_fence *fence, unsigned node, uint64_t previous, bool accepted)
{
    /* Strictly larger: of two attempts that propose the same number, only one may use it. */
    bool stored = accepted && fence->proposal > previous;
    uint64_t now = rl_max_u64(previous, stored ? fence->proposal : 0);

    RL_ASSERT(previous < RL_FENCE_CORRUPT);
    if (fence->chosen != 0 && (!fence->raising || now >= fence->chosen))
        return false;
    fence->used |= RL_NODE(node);
    fence->accepted |= stored ? RL_NODE(node) : 0;
    fence->top = rl_max_u64(fence->top, now);
    return fence->chosen != 0;
}

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

void rl_fence_raised(struct rl_fence *fence, unsigned node, bool acked)
{
    rl_nodes bit = RL_NODE(node) & fence->used & ~(fence->acked | fence->failed);

    fence->acked |= acked ? bit : 0;
    fence->failed |= acked ? 0 : bit;
}

enum rl_fence_outcome rl_fence_judge(const struct rl_fence *fence, rl_nodes counted,
                                     rl_nodes pending, unsigned quorum)
{
    if (fence->chosen == 0)
        return RL_FENCE_OPEN;
    if (!fence->raising)
        return RL_FENCE_AGREED;
    rl_nodes agreed = fence->acked & counted;
    rl_nodes open = (fence->used & counted & ~(fence->acked | fence->failed)) | pending;
    if (rl_nodes_count(agreed) >= quorum)
        return RL_FENCE_AGREED;
    return rl_nodes_count(agreed | open) < quorum ? RL_FENCE_FAILED : RL_FENCE_OPEN;
}

/* Writes `text` and a NUL to `ret` at offset `at`. Returns the offset of the NUL. */
static size_t put(char *ret, size_t at, const char *text)
{
    size_t len = strlen(text);

    RL_ASSERT(at + len <= RL_FENCE_TEXT_MAX);
    memcpy(ret + at, text, len + 1);
    return at + len;
}

/* Writes `name` and the decimal digits of `value` as put() does. */
static size_t put_integer(char *ret, size_t at, const char *name, uint64_t value)
{
    char digits[24];
    size_t first = sizeof digits;

    digits[--first] = '\0';
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return put(ret, put(ret, at, name), digits + first);
}

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
