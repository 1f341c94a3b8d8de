/* SPDX-License-Identifier: MIT
 * Faults: what they do, and what takes them back. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "world.h"

void sim_fault_plan(struct sim_world *world);
void sim_fault_begin(struct sim_world *world, unsigned at);
void sim_fault_mend(struct sim_world *world, unsigned at);
/* SIM_CORRECT, of a freeze. */
void sim_fault_correct(struct sim_world *world, unsigned at);

#endif
