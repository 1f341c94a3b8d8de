/* SPDX-License-Identifier: MIT
 * The table of all tokens of a run: the client of each token, the replies about it that clients
 * have received, and whether its keys are still needed.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include "world.h"

/* Returns the number of a token, 1 or larger; 0: not a token of the simulated clients. A new token
 * is added to the table for that client and that set of resources. */
uint32_t sim_token_number(struct sim_world *world, const char *text, size_t len, unsigned client,
                          unsigned resources);
/* Returns the number of a token; 0: it is not in the table. */
uint32_t sim_token_find(const struct sim_world *world, const char *text, size_t len);
/* Returns the token with that number, which is not 0, until the next token is added. */
struct sim_token *sim_token_at(const struct sim_world *world, uint32_t number);

/* Notes that the reply with this outcome has reached the client. */
void sim_token_outcome(struct sim_world *world, const struct sim_outcome *outcome, unsigned client,
                       unsigned node);

#endif
