/* SPDX-License-Identifier: MIT
 * Makes tokens and random words for jitter, by means of libsodium. Tokens are secrets, so their
 * bytes come from a pool that is filled from the kernel (or, in a simulation, from the run's seed).
 * Random words are cheap: a counter whose values are mixed. */
#include "platform/token.h"

#include <redlock/redlock.h>
#include <sodium.h>
#include <string.h>

#define TOKEN_BYTES (RL_TOKEN_HEX / 2) /* random bytes of one token, two hex digits each */

_Static_assert(RL_RANDOM_POOL % TOKEN_BYTES == 0, "the pool holds whole tokens");

/* Initializes libsodium. Returns 0 or REDLOCK_ESYS. */
int rl_random_init(void)
{
    return sodium_init() < 0 ? REDLOCK_ESYS : 0; /* its result 1: was initialized before */
}

/* Implements rl_entropy.fill: writes `size` random bytes of the kernel to `bytes`. */
static void fill_from_kernel(void *ctx, void *bytes, size_t size)
{
    (void)ctx;
    randombytes_buf(bytes, size);
}

/* Returns the kernel as a source of random bytes. */
struct rl_entropy rl_entropy_kernel(void)
{
    return (struct rl_entropy){fill_from_kernel, NULL};
}

/* Initializes `random` with an empty pool and a random first word, both to come from `entropy`. */
void rl_random_seed(struct rl_random *random, struct rl_entropy entropy)
{
    random->entropy = entropy;
    random->used = RL_RANDOM_POOL;
    entropy.fill(entropy.ctx, &random->word, sizeof random->word);
}

/* Returns a uniformly distributed word for jitter. Not for secrets: it can be predicted from
 * others. */
uint64_t rl_random_u64(struct rl_random *random)
{
    return rl_mix(random->word += RL_MIX_STEP);
}

/* Fills the pool with the ChaCha20 stream of a fresh seed, which costs less than reading the whole
 * pool from the kernel. The seed is used once: a kept seed would make the same tokens in two copies
 * of a virtual machine. */
static void refill(struct rl_random *random)
{
    uint8_t seed[randombytes_SEEDBYTES];
    random->entropy.fill(random->entropy.ctx, seed, sizeof seed);
    randombytes_buf_deterministic(random->pool, sizeof random->pool, seed);
    sodium_memzero(seed, sizeof seed);
    random->used = 0;
}

/* Returns the hex digit of `nibble`, 0 to 15. Computes it without a table, so that a secret leaves
 * no trace in the cache. */
static char hex_digit(unsigned nibble)
{
    return (char)(nibble + '0' + ((9u - nibble) >> 8 & (unsigned)('a' - '0' - 10)));
}

/* Writes a fresh token to `out`: hex digits of TOKEN_BYTES bytes of the pool, then "@owner" if
 * owner_len > 0, and a NUL. Wipes these bytes of the pool. Returns the token's length in bytes. */
size_t rl_token_make(struct rl_random *random, const char *owner, size_t owner_len,
                     char out[RL_TOKEN_MAX + 1])
{
    RL_ASSERT(owner_len <= RL_OWNER_MAX);
    if (random->used == RL_RANDOM_POOL) {
        refill(random);
    }
    uint8_t *bytes = random->pool + random->used;
    for (size_t i = 0; i < TOKEN_BYTES; i++) {
        out[2 * i] = hex_digit(bytes[i] >> 4);
        out[2 * i + 1] = hex_digit(bytes[i] & 15u);
    }
    sodium_memzero(bytes, TOKEN_BYTES); /* a later leak of memory shows no old token */
    random->used += TOKEN_BYTES;

    size_t len = RL_TOKEN_HEX;
    if (owner_len > 0) {
        out[len++] = '@';
        memcpy(out + len, owner, owner_len);
        len += owner_len;
    }
    out[len] = '\0';
    return len;
}
