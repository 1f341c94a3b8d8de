/* SPDX-License-Identifier: MIT
 * Randomness: tokens that cannot be guessed, and cheap random words for jitter. */
#ifndef RL_PLATFORM_TOKEN_H
#define RL_PLATFORM_TOKEN_H

#include "core/types.h"

/* Bytes of the pool from which tokens are made. One refill serves many tokens, because a system
 * call would be most of a token's cost. */
#define RL_RANDOM_POOL 1000 /* 50 tokens of 20 bytes */

/* The source of random bytes: the kernel, or the seed of a simulated run. */
struct rl_entropy {
    void (*fill)(void *ctx, void *bytes, size_t size); /* writes `size` random bytes; cannot fail */
    void *ctx;                                         /* first argument of `fill` */
};

/* A source of tokens and random words. Only token.c changes it, and one thread at a time may use
 * it. Invariant: the first `used` bytes of the pool are wiped. */
struct rl_random {
    struct rl_entropy entropy;    /* where seeds come from */
    uint64_t word;                /* state of rl_random_u64(), which is seeded once */
    size_t used;                  /* bytes of the pool that tokens have used, from its start */
    uint8_t pool[RL_RANDOM_POOL]; /* secret random bytes */
};

/* Initializes libsodium; call it before all other functions of this file. Any thread may call it,
 * any number of times. Returns 0 or REDLOCK_ESYS. */
int rl_random_init(void);

/* Returns the kernel's source of random bytes. */
struct rl_entropy rl_entropy_kernel(void);

/* Initializes `random`, whose random bytes come from `entropy`. Do not copy the struct, and do not
 * use it after fork() in the child: two copies would make the same tokens. */
void rl_random_seed(struct rl_random *random, struct rl_entropy entropy);

/* Returns a uniformly distributed word for jitter. Not for secrets. */
uint64_t rl_random_u64(struct rl_random *random);

/* Writes a fresh token to `out`: 40 hex digits (160 random bits), then '@' and the `owner_len`
 * bytes of `owner` if owner_len > 0, and a NUL. Returns the token's length in bytes, without the
 * NUL. owner_len <= RL_OWNER_MAX. */
size_t rl_token_make(struct rl_random *random, const char *owner, size_t owner_len,
                     char out[RL_TOKEN_MAX + 1]);

#endif
