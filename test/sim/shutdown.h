/* SPDX-License-Identifier: MIT
 * Shuts clients down, as redlock_shutdown() and then redlock_free() do, and starts new ones. */
#ifndef SIM_SHUTDOWN_H
#define SIM_SHUTDOWN_H

#include "world.h"

/* Begins the shutdown of the client: its users have no locks any more, and its undos are awaited.
 */
void sim_shutdown_begin(struct sim_world *world, unsigned index);
/* Ends the shutdown of the client, if it shuts down and its undos are done. After each turn. */
void sim_shutdown_review(struct sim_client *client);
/* Handles SIM_CLOSE: ends the shutdown with this number, because its time limit has come. */
void sim_shutdown_limit(struct sim_world *world, unsigned index, uint32_t stamp);

#endif
