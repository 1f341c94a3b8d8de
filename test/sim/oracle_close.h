/* SPDX-License-Identifier: MIT
 * Checks what a client that was closed in order leaves on the servers. */
#ifndef SIM_ORACLE_CLOSE_H
#define SIM_ORACLE_CLOSE_H

#include "world.h"

/* Notes that the client, which ends, closes a connection for requests without a reset. The requests
 * without replies must still be in its pipeline. */
void sim_oracle_closes(const struct sim_client *client, struct sim_conn *conn);
/* Checks that no key is left that was set on this connection, because the server reads no more from
 * it. */
void sim_oracle_closed(struct sim_world *world, const struct sim_conn *conn);

#endif
