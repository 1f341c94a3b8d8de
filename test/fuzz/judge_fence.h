/* SPDX-License-Identifier: MIT
 * Judges replies to the scripts of fences with a parser that shares no code with the library. */
#ifndef TEST_FUZZ_JUDGE_FENCE_H
#define TEST_FUZZ_JUDGE_FENCE_H

#include "core/protocol.h"
#include "core/wire_fence.h"

/* Classifies the reply as that of each fence script, and fails unless the library's result is
 * allowed. */
void judge_fence(const struct rl_reply *reply);

#endif
