/* SPDX-License-Identifier: MIT
 * Ten servers in two sets, and a client of both. */
#ifndef TEST_LIVE_TWO_SETS_H
#define TEST_LIVE_TWO_SETS_H

#include "live.h"

#define EACH    5
#define SERVERS (2 * EACH)

/* Which of them a name belongs to is asked for, except where it is tested. */
extern const char *const SETS[2];

void start_servers(void);
/* Adds "name=url,...;" to the text, with the servers from `first` on. */
void add_set(char *text, size_t size, const char *name, unsigned first);
redlock_config_t *config_of(const char *east, const char *west);
/* live.client, with both sets. */
void connect_client(void);
/* The i-th name that begins with `stem` and belongs to the set. */
const char *name_in(unsigned set, const char *stem, unsigned i, char ret[64]);
/* How many servers of the set have the key. */
unsigned count_in(unsigned set, const char *key);
redlock_stats_t set_stats(unsigned set);

#endif
