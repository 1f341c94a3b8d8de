/* SPDX-License-Identifier: MIT
 * The invariants that must hold after every event. Each function records a violation if one does
 * not.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "world.h"

/* Checks exclusion and validity of all locks. */
void sim_oracle_step(struct sim_world *world);
/* Notes which tokens have ended, after anything that touched a client. */
void sim_oracle_client(struct sim_client *client);
/* Checks that the client has lost all locks from before the correction of its wall clock, which
 * follows a time in which the clocks of its machine stood still. Called after each turn of its
 * loop.
 */
void sim_oracle_turned(struct sim_client *client);
/* Excuses the keys of a client whose process ends. */
void sim_oracle_client_ends(struct sim_client *client);
/* Checks the votes that the engine counted when it acquired (`held`) or extended a lock: each must
 * have been sent by its server and must still count. */
void sim_oracle_votes(struct sim_client *client, struct sim_user *user, bool held);
/* Checks a lock at the moment when its grant is reported to its user. */
void sim_oracle_granted(struct sim_client *client, unsigned user);
/* Plans checks right before and after the deadline of the user's lock. */
void sim_oracle_deadline(struct sim_client *client, unsigned user);
/* Handles SIM_LEFT: checks that no key is left of a token whose attempt or lock has ended. Plans
 * the next check if an undo may still be under way. */
void sim_oracle_left(struct sim_world *world, uint32_t token);
/* Checks at the end of a run that no key is left on any server. */
void sim_oracle_end(struct sim_world *world);

#endif
