/* SPDX-License-Identifier: MIT
 * Fences: checks that fencing tokens increase, and acts as the operator, who restarts the fence
 * records if the clients cannot.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_FENCE_H
#define SIM_FENCE_H

#include "world.h"

/* Checks the fencing token of a lock that the engine has just acquired: larger than all that were
 * granted before its attempt began, and stored by a majority of nodes. */
void sim_fence_granted(struct sim_client *client, const struct sim_user *user,
                       const struct sim_token *token);

/* Handles SIM_OPERATOR: restarts the records if a majority has lost them. */
void sim_fence_operate(struct sim_world *world);
/* Returns how long after the faults fenced locks must be granted again at the latest. */
uint64_t sim_fence_timeout_ns(const struct sim_world *world);

#endif
