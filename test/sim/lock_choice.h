/* SPDX-License-Identifier: MIT
 * What the users of a client want: which locks, and with which options. */
#ifndef SIM_LOCK_CHOICE_H
#define SIM_LOCK_CHOICE_H

#include "world.h"

struct rl_lease_params sim_workload_params(struct sim_client *client, uint8_t kind);
/* One resource, or several; bit by bit. */
unsigned sim_workload_resources(struct sim_world *world);
/* The slot's next operation is about these. */
void sim_workload_for(struct sim_slot *slot, unsigned resources);

#endif
