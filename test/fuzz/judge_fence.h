/* SPDX-License-Identifier: MIT
 * A reply as the answer to the scripts of fences, judged by a reader of our own. */
#ifndef TEST_FUZZ_JUDGE_FENCE_H
#define TEST_FUZZ_JUDGE_FENCE_H

#include "core/protocol.h"
#include "core/wire_fence.h"

void judge_fence(const struct rl_reply *reply);

#endif
