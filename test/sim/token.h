/* SPDX-License-Identifier: MIT
 * Every token that ever reached a server: its client, what was reported about it to which client,
 * and whether its keys are still needed. */
#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include "world.h"

/* Returns the number of a token (from 1 on), which is created if it is new; 0: not a token of the
 * simulated clients. `resources` is a set. */
uint32_t sim_token_number(struct sim_world *world, const char *text, size_t len, unsigned client,
                          unsigned resources);
/* Returns the number of a token; 0: never seen. */
uint32_t sim_token_find(const struct sim_world *world, const char *text, size_t len);
struct sim_token *sim_token_at(const struct sim_world *world, uint32_t number);

/* Notes that a reply about the token has reached the client. */
void sim_token_said(struct sim_world *world, const struct sim_sent_text *said, unsigned client,
                    unsigned node);

#endif
