/* SPDX-License-Identifier: MIT
 * A semaphore beside the other resources: checks how many clients hold a permit, and how long a
 * free permit may stay unfound. Among the numbers of keys, its slots follow the resources.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_PERMIT_H
#define SIM_PERMIT_H

#include "world.h"

#define SIM_SEMAPHORE "s" /* the name of the semaphore */
#define SIM_NAME_MAX  8   /* bytes of the name of a key, with its end */

/* Writes the name of a key to `name` and returns it: r0, r1, ..., or s{#0}, s{#1}, ... */
struct rl_arg sim_key_name(unsigned key, char name[SIM_NAME_MAX]);
/* Returns the number of the key of that name; ends the program if there is none. */
unsigned sim_key_of_name(const char *name, size_t len);

/* Chooses whether the next lock of a user is a permit. Returns the number of permits of the
 * semaphore as this client knows it, or 0 for another kind of lock. */
unsigned sim_choose_permits(struct sim_client *client);
/* Makes the slot that the user's lock tries to acquire its resource; does nothing for other locks.
 */
void sim_permit_follow(struct sim_user *user);
/* Checks that there are never more holders than permits, and that no free permit stays unfound.
 * Called after every event. `holder` has the client that holds each key; negative: none. */
void sim_permit_check(struct sim_world *world, const int holder[SIM_KEYS_MAX]);
/* When the faults end, leaves keys of foreign clients: one that holds a slot, and on each other
 * slot one of a client that died in its attempt. */
void sim_permit_leave_foreign(struct sim_world *world);

#endif
