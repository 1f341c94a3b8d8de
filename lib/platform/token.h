/* SPDX-License-Identifier: MIT
 * Randomness: tokens nobody can guess, and cheap words for jitter. */
#ifndef RL_PLATFORM_TOKEN_H
#define RL_PLATFORM_TOKEN_H

#include "core/types.h"

/* Random bytes are fetched many tokens at a time: a system call for each would be most of its cost.
 */
#define RL_RANDOM_POOL 1000

/* Where random bytes come from: the kernel, or the seed of a simulated run. */
struct rl_entropy {
    void (*fill)(void *ctx, void *bytes, size_t size);
    void *ctx;
};

struct rl_random {
    struct rl_entropy entropy;
    uint64_t word; /* state of the jitter generator */
    size_t used;   /* bytes of the pool that were handed out, and wiped */
    uint8_t pool[RL_RANDOM_POOL];
};

/* Once before anything else here; any thread, any number of times. 0 or REDLOCK_ESYS. */
int rl_random_init(void);

/* The kernel's random bytes. */
struct rl_entropy rl_entropy_kernel(void);

/* Starts `random`; one user at a time from then on. Not to be copied, nor used after fork(): two
 * copies would hand out the same tokens. */
void rl_random_seed(struct rl_random *random, struct rl_entropy entropy);

/* A uniformly distributed word that is good for jitter and not for secrets. */
uint64_t rl_random_u64(struct rl_random *random);

/* A fresh token: 40 hex digits, then "@owner" if there is an owner. Terminated; returns its length.
 */
size_t rl_token_make(struct rl_random *random, const char *owner, size_t owner_len,
                     char out[RL_TOKEN_MAX + 1]);

#endif
