/* SPDX-License-Identifier: MIT
 * The invariants of lines. They are checked at the servers, from the requests that these execute,
 * and not from the state of the line alone. Each function records a violation if one does not hold.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named node or resource are
 * indexes. `id` is that of a waiter. */
#ifndef SIM_ORACLE_LINE_H
#define SIM_ORACLE_LINE_H

#include "world.h"

/* Called before a server executes a request to a line. Notes that the waiter is in the line from
 * now on, if the request joins. If the request makes the waiter leave because the node has granted
 * the lock, checks that no earlier waiter is still in the line, where the case promises that order.
 */
void sim_oracle_line_begins(struct sim_world *world, unsigned node, unsigned resource,
                            const struct sim_line_request *request, bool has_token);
/* Checks that the waiter that is notified of its turn has joined the line. */
void sim_oracle_turn(struct sim_world *world, unsigned node, unsigned resource, const char *id);
/* Called after the request: forgets waiters that are in the line no more. */
void sim_oracle_line_ends(struct sim_world *world, unsigned node, unsigned resource);
/* Notes that the request came on a connection that its client had closed: it may have been executed
 * after a later one on another connection. */
void sim_oracle_line_late(struct sim_world *world, unsigned node, unsigned resource,
                          const char *id);
/* Checks at the end of a run that no waiter of a running client is left in a line, unless a fault
 * may have lost its last request. */
void sim_oracle_lines_left(struct sim_world *world);

#endif
