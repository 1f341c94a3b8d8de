/* SPDX-License-Identifier: MIT
 * A semaphore beside the other resources: checks how many clients hold a permit, and how long a
 * free permit may stay unfound. The keys of its slots follow those of the resources. */
#ifndef SIM_PERMIT_H
#define SIM_PERMIT_H

#include "world.h"

#define SIM_SEMAPHORE "s"
#define SIM_NAME_MAX  8

/* Returns the name of a key: r0, r1, ..., or s{#0}, s{#1}, ... */
struct rl_arg sim_key_name(unsigned key, char name[SIM_NAME_MAX]);
unsigned sim_key_of_name(const char *name, size_t len);

/* Returns the number of permits of which this user wants one; 0: it wants another kind of lock. */
unsigned sim_permit_workload(struct sim_client *client);
/* Reads from the engine which slot the lock tries to acquire. */
void sim_permit_follow(struct sim_slot *slot);
/* Checks that there are never more holders than permits. Called after every event. */
void sim_permit_check(struct sim_world *world, const int holder[SIM_KEYS_MAX]);
/* When the faults end, leaves keys of foreign clients: one that holds a slot, and on each other
 * slot one of a client that died in its attempt. */
void sim_permit_leave_foreign(struct sim_world *world);

#endif
