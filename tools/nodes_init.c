/* SPDX-License-Identifier: MIT
 * `redlock nodes --init`: takes the fence records of all servers into use again, after an
 * operator has decided that lost records, or those of another configuration, may be replaced.
 */
#include <poll.h>
#include <stdio.h>

#include "client.h"
#include "clock.h"
#include "commands.h"
#include "exits.h"
#include "json.h"
#include "reports.h"
#include "say.h"

/* Time limit for taking the records into use; time limit for closing the client; pause between two
 * looks at the nodes. */
#define INIT_MS         5000
#define CLOSE_BUDGET_MS 200
#define PAUSE_MS        5

/* Returns true if the server cannot be reached, or its state is not known yet. */
static bool is_away(const redlock_node_stats_t *node)
{
    return !node->eligible &&
           (node->cause == REDLOCK_CAUSE_NONE || cause_is_unreachable(node->cause));
}

/* Returns how many servers cannot be reached. With `warn`, prints a warning for each. */
static size_t count_away(redlock_t *rl, bool warn)
{
    redlock_node_stats_t node;
    size_t away = 0;

    for (size_t i = 0; i < redlock_node_count(rl); i++) {
        if (redlock_get_node_stats(rl, i, &node, sizeof node) != REDLOCK_OK || !is_away(&node))
            continue;
        away++;
        if (warn)
            say(SAY_WARNING, "nodes --init: %s is left out: %s", node.node,
                *node.text ? node.text : "no reply");
    }
    return away;
}

/* Waits until all servers can be reached, at most for `patience_ms`. A first connection may fail
 * on a busy machine, and the client tries again. */
static void wait_for_all(redlock_t *rl, uint64_t patience_ms)
{
    uint64_t give_up_ns = boottime_ns() + patience_ms * NS_PER_MS;

    while (count_away(rl, false) > 0 && boottime_ns() < give_up_ns)
        poll(NULL, 0, PAUSE_MS);
}

/* Runs `nodes --init`: waits for the servers, warns about those that are left out, and has the
 * library take the fence records of the others into use. Returns EXIT_OK, or an exit code after a
 * message. */
int nodes_init(const struct options *options)
{
    struct settings settings;
    redlock_t *rl;

    int result = client_open(options, &settings, &rl);
    if (result >= 0)
        return result;
    /* A server that is excluded now needs another --init. */
    wait_for_all(rl, client_timeout_ms(&settings));
    (void)count_away(rl, true);
    int error = redlock_init_fence_records(rl, INIT_MS);
    if (error != REDLOCK_OK)
        say(SAY_ERROR, "nodes --init: %s",
            error == REDLOCK_ENOQUORUM ? "a majority of the servers must reply; nothing was changed"
            : error == REDLOCK_EFENCE
                ? "too few servers put their fence record into use; run redlock nodes --fence"
                : redlock_strerror(error));
    else if (options->json)
        json_print(json_pack("{s:s, s:b}", "schema", "redlock.nodes_init/1", "initialized", 1));
    else
        printf("fence records are in use\n");
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return error == REDLOCK_OK ? EXIT_OK : exit_of_error(error, EXIT_HELD);
}
