/* SPDX-License-Identifier: MIT
 * The scripts of fences on a fake server, and its fence record. */
#ifndef TEST_FAKE_FENCE_H
#define TEST_FAKE_FENCE_H

#include "fake_store.h"

/* Executes a call of ACQUIRE, RAISE, READ or SEED as a script (`verb` is an enum rl_verb) and adds
 * the reply. argv is the whole command, which begins with EVALSHA or EVAL. */
void fake_fence_execute(struct fake_store *store, int verb, uint64_t now_ms,
                        const struct fake_arg *argv, size_t argc, struct fake_bytes *reply);

#endif
