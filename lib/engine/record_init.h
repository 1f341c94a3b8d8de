/* SPDX-License-Identifier: MIT
 * The initialization of the fence records by an operator (redlock nodes --init): the records of all
 * nodes are read, then all nodes that have replied take their records into use, with the largest of
 * the fencing tokens found. A fence record is the hash in which one server keeps these numbers.
 * READ is the request that reads a record, SEED the one that writes it and takes it into use.
 *
 * A node that is late is waited for, or asked again, within the operator's time limit. If the
 * node were left out because the machine is busy, it would refuse fenced votes until an operator
 * finds out why. Reading ends after the first half of that time, so that the second half is left
 * for writing. For record.c only. */
#ifndef RL_ENGINE_RECORD_INIT_H
#define RL_ENGINE_RECORD_INIT_H

#include "core/types.h"

struct rl_engine;

/* Begins the initialization, which may take `wait_ns` nanoseconds. The caller begins the reading.
 */
void rl_record_init_begin(struct rl_engine *engine, uint64_t wait_ns);
/* Returns the boot time until which replies of the present phase are awaited. */
uint64_t rl_record_init_limit_ns(const struct rl_engine *engine);
/* Returns whether the late reply of this node is still awaited. As long as it is, the node is not
 * asked again on the same connection: a server that is slow with each reply would get more and more
 * requests. */
bool rl_record_init_waits(const struct rl_engine *engine, unsigned node);
/* Returns the nodes whose request has timed out and that can be asked again; none after the time
 * limit. */
rl_nodes rl_record_init_timed_out(const struct rl_engine *engine);
/* Returns the nodes that get SEED, after the reading has ended: all that have replied. Returns 0 if
 * these are fewer than a quorum or the time limit has passed. Raises each number to be written at
 * least to the wall clock in microseconds, so that it exceeds numbers that all records have lost.
 */
rl_nodes rl_record_init_choose(struct rl_engine *engine);

#endif
