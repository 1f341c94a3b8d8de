/* SPDX-License-Identifier: MIT
 * Inspects and disturbs the servers of the live tests. */
#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stops (SIGSTOP) `count` servers from number `first` on. */
void live_pause(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        cluster_pause(live.cluster, i);
}

/* Lets all stopped servers continue. */
void live_resume_all(void)
{
    for (unsigned i = 0; i < cluster_nodes(live.cluster); i++)
        cluster_resume(live.cluster, i);
}

/* Restarts all servers that do not run, without their data. */
void live_restart_dead(void)
{
    for (unsigned i = 0; i < cluster_nodes(live.cluster); i++)
        if (cluster_pid(live.cluster, i) == 0)
            cluster_restart(live.cluster, i, false);
}

/* Returns whether the server has the key. */
bool live_has_key(unsigned node, const char *key)
{
    return cluster_integer(live.cluster, node, "EXISTS %s", key) == 1;
}

/* Returns the number of servers that have the key. All servers must run. */
unsigned live_nodes_with(const char *key)
{
    unsigned count = 0;
    for (unsigned i = 0; i < cluster_nodes(live.cluster); i++)
        count += live_has_key(i, key);
    return count;
}

/* Prints a few keys of each node. */
static void print_keys(void)
{
    for (unsigned i = 0; i < cluster_nodes(live.cluster); i++) {
        if (cluster_pid(live.cluster, i) == 0)
            continue;
        char **keys = cluster_keys(live.cluster, i);
        for (char **key = keys; *key != NULL && key - keys < 8; key++)
            printf("# node %u has the key %.40s\n", i, *key);
        cluster_keys_free(keys);
    }
    fflush(stdout);
}

/* Waits until no running server has a key. Prints the keys that are left and returns false after
 * the deadline. */
bool live_wait_no_keys(uint64_t deadline_ms)
{
    if (WAIT_UNTIL(cluster_count_all_keys(live.cluster) == 0, deadline_ms))
        return true;
    print_keys();
    return false;
}

/* Returns how often the server has executed this command, by its INFO commandstats. 0 if never. */
uint64_t live_calls(unsigned node, const char *command)
{
    char field[64];
    uint64_t calls = 0;
    snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    char *info = cluster_command(live.cluster, node, "INFO commandstats");
    ck_assert_ptr_nonnull(info);
    const char *at = strstr(info, field);
    if (at != NULL)
        calls = strtoull(at + strlen(field), NULL, 10);
    free(info);
    return calls;
}
