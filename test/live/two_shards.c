/* SPDX-License-Identifier: MIT
 * Ten servers in two shards, and a client of both. */
#include "two_shards.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

const char *const SHARD_NAMES[2] = {"east", "west"};

/* Starts SERVERS servers for both shards. */
void start_servers(void)
{
    const struct cluster_opts opts = {.nodes = SERVERS};
    live_start_servers_with(&opts);
}

/* Appends "name=url,url,...;" with the addresses of EACH servers from number `first` on to the
 * text. `size` is that of the whole buffer. */
void add_shard(char *text, size_t size, const char *name, unsigned first)
{
    size_t at = strlen(text);
    at += (size_t)snprintf(text + at, size - at, "%s=", name);
    for (unsigned i = first; i < first + EACH; i++)
        at += (size_t)snprintf(text + at, size - at, "%s,", cluster_url(live.cluster, i));
    snprintf(text + at, size - at, ";");
}

/* Returns a configuration with two shards of these names: `east` on the first EACH servers,
 * `west` on the others. The caller frees it. */
redlock_config_t *config_of_shards(const char *east, const char *west)
{
    char text[SERVERS * 256] = "";
    add_shard(text, sizeof text, east, 0);
    add_shard(text, sizeof text, west, EACH);
    return live_config_of(text);
}

/* Creates live.client with both shards and waits until all nodes are eligible. */
void connect_both(void)
{
    live.client = live_open(config_of_shards(SHARD_NAMES[0], SHARD_NAMES[1]));
}

/* Writes the i-th (from 0) of the names stem-0, stem-1, ... that belong to the shard to `ret`,
 * and returns `ret`. */
const char *resource_in(unsigned shard, const char *stem, unsigned i, char ret[64])
{
    for (unsigned at = 0;; at++) {
        snprintf(ret, 64, "%s-%u", stem, at);
        if (redlock_shard_of(live.client, ret) == (int)shard && i-- == 0)
            return ret;
    }
}

/* Returns how many running servers of the shard have the key. */
unsigned count_in(unsigned shard, const char *key)
{
    unsigned count = 0;
    for (unsigned i = shard * EACH; i < (shard + 1) * EACH; i++)
        count += cluster_pid(live.cluster, i) != 0 && live_has_key(i, key);
    return count;
}

/* Returns the statistics that live.client keeps for the shard. */
redlock_stats_t shard_stats(unsigned shard)
{
    redlock_stats_t stats;
    ck_assert_int_eq(redlock_get_shard_stats(live.client, shard, &stats, sizeof stats), REDLOCK_OK);
    return stats;
}
