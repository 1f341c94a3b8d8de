/* SPDX-License-Identifier: MIT
 * What must be true after every event. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "world.h"

/* Exclusion and validity, of all locks. */
void sim_oracle_step(struct sim_world *world);
/* After whatever touched a client: which tokens are not wanted any more. */
void sim_oracle_client(struct sim_client *client);
/* Its loop has turned once: what was lost while its machine stood still is known to be lost now. */
void sim_oracle_probed(struct sim_client *client);
/* Its process ends; its keys may stay. */
void sim_oracle_client_ends(struct sim_client *client);
/* The engine counted votes, and took (held) or extended a lock: was each of them given, and good?
 */
void sim_oracle_votes(struct sim_client *client, struct sim_slot *slot, bool held);
/* Its user was told just now that it holds the lock. */
void sim_oracle_granted(struct sim_client *client, unsigned slot);
/* The deadline is a new one: look again around it. */
void sim_oracle_deadline(struct sim_client *client, unsigned slot);
/* SIM_LEFT */
void sim_oracle_left(struct sim_world *world, uint32_t token);
/* All is quiet: nothing may be left on any server. */
void sim_oracle_end(struct sim_world *world);

#endif
