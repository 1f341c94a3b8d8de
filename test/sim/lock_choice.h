/* SPDX-License-Identifier: MIT
 * Chooses the resources of the locks that the users of a client acquire, and their options.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_LOCK_CHOICE_H
#define SIM_LOCK_CHOICE_H

#include "world.h"

/* Returns random parameters for an operation of that kind (RL_LEASE_*). */
struct rl_lease_params sim_choose_params(struct sim_client *client, uint8_t kind);
/* Returns a set of one or several resources. */
unsigned sim_choose_resources(struct sim_world *world);
/* Sets the resources of the user's next operation, which are a set. */
void sim_user_set_resources(struct sim_user *user, unsigned resources);

#endif
