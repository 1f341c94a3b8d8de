/* SPDX-License-Identifier: MIT
 * Fences: what must be true of their numbers, and the operator who puts records into use that the
 * clients cannot. */
#ifndef SIM_FENCE_H
#define SIM_FENCE_H

#include "world.h"

/* The engine holds a lock with a fence now. */
void sim_fence_granted(struct sim_client *client, const struct sim_slot *slot,
                       const struct sim_token *token);

/* SIM_OPERATOR */
void sim_fence_operate(struct sim_world *world);
/* How long it may take after the trouble until fenced locks are granted again. */
uint64_t sim_fence_timeout_ns(const struct sim_world *world);

#endif
