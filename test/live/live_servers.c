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

/* Sets a line of one waiter with that label, which expires after a minute. */
void live_set_line(unsigned node, const char *key, const char *label)
{
    /* \032 is a blank for Lua: a command of the tests is divided at blanks. */
    ck_assert(cluster_replies(live.cluster, node, "OK",
                              "EVAL return(redis.call('SET',KEYS[1],'redlock-line\\n"
                              "7\\0320\\032w\\0320\\0321\\032%s\\n','PX',60000)) 1 %s",
                              label, key));
}

/* Returns a few keys of each running server but the key `except` (NULL: none), and the values of
 * those in database 0. One line for each, for messages. The text is valid until the next call. */
const char *live_keys_text(const char *except)
{
    static char text[8192];
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < cluster_nodes(live.cluster); i++) {
        if (cluster_pid(live.cluster, i) == 0)
            continue;
        char **keys = cluster_keys(live.cluster, i);
        for (char **key = keys; *key != NULL && key - keys < 8; key++) {
            if (len >= sizeof text || (except != NULL && strcmp(*key, except) == 0))
                continue;
            char *value = cluster_command(live.cluster, i, "GET %s", *key);
            len += (size_t)snprintf(text + len, sizeof text - len,
                                    "# node %u has the key %.40s: %.80s\n", i, *key,
                                    value == NULL ? "" : value);
            free(value);
        }
        cluster_keys_free(keys);
    }
    return text;
}

/* Waits until no running server has a key. Prints the keys that are left and returns false after
 * the deadline. */
bool live_wait_no_keys(uint64_t deadline_ms)
{
    if (WAIT_UNTIL(cluster_count_all_keys(live.cluster) == 0, deadline_ms))
        return true;
    printf("%s", live_keys_text(NULL));
    fflush(stdout);
    return false;
}

/* Returns whether a server has a connection of the library. */
static bool is_connected(unsigned node)
{
    char *list = cluster_command(live.cluster, node, "CLIENT LIST TYPE normal");
    ck_assert_ptr_nonnull(list);
    const bool connected = strstr(list, "name=redlock") != NULL;
    free(list);
    return connected;
}

/* With TLS, deletes the keys that a client which was freed without a shutdown has left on servers
 * that were stopped or slow. A server with TLS reads one record at a time, and notices the end of
 * the connection when it replies to the first one. So it may execute a SET, and not the undo in a
 * later record. Waits until all connections have ended, so that no SET is executed afterwards. */
void live_delete_leftovers(void)
{
    if (!live_is_tls())
        return;
    for (unsigned i = 0; i < cluster_nodes(live.cluster); i++)
        ck_assert(WAIT_UNTIL(!is_connected(i), TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "FLUSHALL");
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
