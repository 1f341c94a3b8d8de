/* SPDX-License-Identifier: MIT
 * An operator's decision about the fence records: all nodes that answer are read, then told to take
 * theirs into use with the largest numbers found.
 *
 * Who is late is waited for, or asked again, as long as the operator waits: a node that is passed
 * by because the machine is busy would refuse fenced votes until somebody looks why. Reading ends
 * with the first half of the time, so that there is some left to act on it. */
#ifndef RL_ENGINE_RECORD_INIT_H
#define RL_ENGINE_RECORD_INIT_H

#include "core/types.h"

struct rl_engine;

void rl_record_init_begin(struct rl_engine *engine, uint64_t wait_ns);
/* Until when (boot clock) answers are waited for, in the phase that it is in. */
uint64_t rl_record_init_limit_ns(const struct rl_engine *engine);
/* The node is late, but may still answer in time: it is not asked again on the same connection. A
 * server that needs longer than the limit for each question would be asked more and more. */
bool rl_record_init_waits(const struct rl_engine *engine, unsigned node);
/* Those that will not answer any more, and can be asked again in time. */
rl_nodes rl_record_init_timed_out(const struct rl_engine *engine);
/* All that can be read was: who is to be told; nobody if too few answered, or nobody waits. */
rl_nodes rl_record_init_choose(struct rl_engine *engine);

#endif
