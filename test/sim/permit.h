/* SPDX-License-Identifier: MIT
 * A semaphore beside the other resources: who may hold a permit, and how long a free one may stay
 * unfound. Its slots are keys behind those of the resources. */
#ifndef SIM_PERMIT_H
#define SIM_PERMIT_H

#include "world.h"

#define SIM_SEMAPHORE "s"
#define SIM_NAME_MAX  8

/* The name of a key: r0, r1, ..., or s{#0}, s{#1}, ... */
struct rl_arg sim_key_name(unsigned key, char name[SIM_NAME_MAX]);
unsigned sim_key_of_name(const char *name, size_t len);

/* How many permits this user wants one of; 0: he wants something else. */
unsigned sim_permit_workload(struct sim_client *client);
/* A lock for a permit: which slot it goes for. */
void sim_permit_follow(struct sim_slot *slot);
/* Who holds which key: never more than there are permits. Called after every event. */
void sim_permit_check(struct sim_world *world, const int holder[SIM_KEYS_MAX]);
/* When the trouble ends, others are left: one holds a slot, and one has died on the way to each of
 * the others. */
void sim_permit_leave_foreign(struct sim_world *world);

#endif
