/* SPDX-License-Identifier: MIT
 * Chooses the locks that the users of a client request, and their options. */
#ifndef SIM_LOCK_CHOICE_H
#define SIM_LOCK_CHOICE_H

#include "world.h"

/* Returns random parameters for an operation of that kind (RL_LEASE_*). */
struct rl_lease_params sim_workload_params(struct sim_client *client, uint8_t kind);
/* Returns a set of one or several resources. */
unsigned sim_workload_resources(struct sim_world *world);
/* Sets the resources of the slot's next operation. */
void sim_workload_for(struct sim_slot *slot, unsigned resources);

#endif
