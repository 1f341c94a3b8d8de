/* SPDX-License-Identifier: MIT
 * Ten servers in two shards, and a client of both. */
#ifndef TEST_LIVE_TWO_SHARDS_H
#define TEST_LIVE_TWO_SHARDS_H

#include "live.h"

#define EACH    5
#define SERVERS (2 * EACH)

/* Names of the two shards. */
extern const char *const SHARD_NAMES[2];

/* Starts the servers: the first EACH of them for shard 0, the others for shard 1. */
void start_servers(void);
/* Appends "name=url,...;" with the addresses of EACH servers from `first` on. */
void add_shard(char *text, size_t size, const char *name, unsigned first);
/* Returns a configuration with both shards under these names. */
redlock_config_t *config_of_shards(const char *east, const char *west);
/* Creates live.client with both shards. */
void connect_both(void);
/* Writes the i-th name that begins with `stem` and belongs to the shard to `ret`, and returns it.
 */
const char *resource_in(unsigned shard, const char *stem, unsigned i, char ret[64]);
/* Returns how many servers of the shard have the key. */
unsigned count_in(unsigned shard, const char *key);
/* Returns the statistics that live.client has of the shard. */
redlock_stats_t shard_stats(unsigned shard);

#endif
