/* SPDX-License-Identifier: MIT
 * `redlock nodes --init`: an operator's decision to go on with fence records that were lost or
 * belong to another configuration.
 */
#include <stdio.h>

#include "client.h"
#include "commands.h"
#include "exits.h"
#include "json.h"
#include "say.h"

#define INIT_MS         5000
#define CLOSE_BUDGET_MS 200

int nodes_init(const struct options *options)
{
    struct settings settings;
    redlock_t *rl;

    int result = client_open(options, &settings, &rl);
    if (result >= 0)
        return result;
    /* A server that is left out now needs another --init. */
    client_settle(rl, client_patience_ms(&settings));
    int error = redlock_fence_init(rl, INIT_MS);
    if (error != REDLOCK_OK)
        say(SAY_ERROR, "nodes --init: %s",
            error == REDLOCK_ENOQUORUM
                ? "a majority of the servers must answer; nothing was changed"
            : error == REDLOCK_EFENCE
                ? "too few servers took their fence record into use; see redlock nodes"
                : redlock_strerror(error));
    else if (options->json)
        json_print(json_pack("{s:s, s:b}", "schema", "redlock.nodes_init/1", "initialized", 1));
    else
        printf("fence records are in use\n");
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return error == REDLOCK_OK ? EXIT_OK : exit_of_error(error, EXIT_HELD);
}
