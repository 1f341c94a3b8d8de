/* SPDX-License-Identifier: MIT
 * What the embedded and the threaded side have in common. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

static void log_line(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    fprintf(stderr, "redlock-bench: %s\n", message);
}

redlock_t *client_new(const struct client_settings *settings, int mode, char *error,
                      size_t error_size)
{
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    int status = redlock_config_new(&config, NULL);
    if (status == REDLOCK_OK)
        status = redlock_config_add_nodes(config, settings->servers);
    if (status == REDLOCK_OK)
        status = redlock_config_set_mode(config, mode);
    if (status == REDLOCK_OK)
        status = redlock_config_set_node_timeout_ms(config, settings->node_timeout_ms);
    if (status == REDLOCK_OK && settings->fence_key != NULL)
        status = redlock_config_set_fence_key(config, settings->fence_key);
    /* Nobody needs the numbers after a restart of a server. */
    if (status == REDLOCK_OK)
        status = redlock_config_set_fence_records(config, REDLOCK_FENCE_VOLATILE);
    if (status == REDLOCK_OK && settings->verbose)
        status = redlock_config_set_log(config, REDLOCK_LOG_DEBUG, log_line, NULL);
    if (status == REDLOCK_OK)
        status = redlock_new(&client, config);
    if (status != REDLOCK_OK)
        snprintf(error, error_size, "%s: %s", redlock_strerror(status),
                 config == NULL ? "" : redlock_config_error(config));
    redlock_config_free(config);
    return client;
}

redlock_opts_t client_opts(const struct client_settings *settings)
{
    redlock_opts_t opts = redlock_opts(settings->ttl_ms);
    opts.wait_ms = settings->wait_ms;
    opts.flags = settings->fence_key != NULL ? REDLOCK_FENCE : 0;
    return opts;
}

void client_add_stats(redlock_t *client, int sign, struct result *result)
{
    redlock_stats_t stats;
    if (redlock_get_stats(client, &stats, sizeof stats) != REDLOCK_OK)
        return;
    result->attempts += sign > 0 ? stats.attempts : -stats.attempts;
    result->one_round += sign > 0 ? stats.fence_one_round : -stats.fence_one_round;
    result->two_rounds += sign > 0 ? stats.fence_two_rounds : -stats.fence_two_rounds;
}

struct holding *client_holdings(const struct client_settings *settings)
{
    struct holding *holdings = calloc(settings->resources, sizeof *holdings);
    for (unsigned i = 0; holdings != NULL && i < settings->resources; i++)
        snprintf(holdings[i].resource, sizeof holdings[i].resource, "%s%u", settings->prefix, i);
    return holdings;
}

void holding_taken(struct holding *holding, struct result *result)
{
    if (atomic_fetch_add(&holding->held, 1) != 0)
        result->violations++;
}

void holding_given_back(struct holding *holding)
{
    atomic_fetch_sub(&holding->held, 1);
}
