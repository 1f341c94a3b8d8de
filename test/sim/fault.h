/* SPDX-License-Identifier: MIT
 * Faults: begins and ends what the plan contains. `at` is the index in sim_plan.faults.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "world.h"

/* Appends the events of all planned faults. */
void sim_fault_plan(struct sim_world *world);
/* Handles SIM_FAULT: begins a fault, unless it cannot happen now. */
void sim_fault_begin(struct sim_world *world, unsigned at);
/* Handles SIM_MEND: ends a fault that lasts. Does nothing if it has ended. */
void sim_fault_mend(struct sim_world *world, unsigned at);
/* Handles SIM_CORRECT: sets the wall clock right after a freeze. */
void sim_fault_correct(struct sim_world *world, unsigned at);
/* Kills (`dies`) or closes a client, and starts a new process. */
void sim_fault_replace_client(struct sim_world *world, unsigned client, bool dies);

#endif
