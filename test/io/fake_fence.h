/* SPDX-License-Identifier: MIT
 * The scripts of fences on a fake server, and its fence record. */
#ifndef TEST_FAKE_FENCE_H
#define TEST_FAKE_FENCE_H

#include "fake_store.h"

/* A call of ACQUIRE, RAISE, READ or SEED as a script (enum rl_verb); argv as it came, EVALSHA or
 * EVAL first. */
void fake_fence_execute(struct fake_store *store, int verb, uint64_t now_ms,
                        const struct fake_arg *argv, size_t argc, struct fake_bytes *reply);

#endif
