/* SPDX-License-Identifier: MIT
 * Every token that ever reached a server: whose it is, what was said of it to whom, and whether
 * anybody still has a use for its keys. */
#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include "world.h"

/* Its number (from 1 on), made up if it is new; 0: not one of our tokens. `resources`: bit by bit.
 */
uint32_t sim_token_number(struct sim_world *world, const char *text, size_t len, unsigned client,
                          unsigned resources);
/* 0: never seen. */
uint32_t sim_token_find(const struct sim_world *world, const char *text, size_t len);
struct sim_token *sim_token_at(const struct sim_world *world, uint32_t number);

/* A reply was handed to the client. */
void sim_token_said(struct sim_world *world, const struct sim_sent_text *said, unsigned client,
                    unsigned node);

#endif
