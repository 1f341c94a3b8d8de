/* SPDX-License-Identifier: MIT
 * Ten servers in two shards, and a client of both. */
#ifndef TEST_LIVE_TWO_SETS_H
#define TEST_LIVE_TWO_SETS_H

#include "live.h"

#define EACH    5
#define SERVERS (2 * EACH)

/* Names of the two shards. name_in() computes which of them a resource belongs to, except where
 * that is tested. */
extern const char *const SETS[2];

void start_servers(void);
/* Appends "name=url,...;" with the addresses of the servers from `first` on. */
void add_set(char *text, size_t size, const char *name, unsigned first);
redlock_config_t *config_of(const char *east, const char *west);
/* Creates live.client with both shards. */
void connect_client(void);
/* Returns the i-th name that begins with `stem` and belongs to the shard. */
const char *name_in(unsigned set, const char *stem, unsigned i, char ret[64]);
/* Returns how many servers of the shard have the key. */
unsigned count_in(unsigned set, const char *key);
redlock_stats_t set_stats(unsigned set);

#endif
