/* SPDX-License-Identifier: MIT
 * Creates the client and the resources that the embedded and the threaded loop share. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

#define ALSO_NAME_MAX 112 /* bytes of a further resource's name: a name of 96 and "+N" */

/* Prints one log message of the library on stderr. The signature is that of
 * redlock_config_set_log(). */
static void log_line(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    fprintf(stderr, "redlock-bench: %s\n", message);
}

/* Creates a client with these settings in `mode`. Returns NULL and a text in `error` on failure. */
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
    if (status == REDLOCK_OK && settings->connect_timeout_ms != 0)
        status = redlock_config_set_connect_timeout_ms(config, settings->connect_timeout_ms);
    if (status == REDLOCK_OK)
        status = redlock_config_set_node_timeout_ms(config, settings->node_timeout_ms);
    if (status == REDLOCK_OK && settings->fence_key != NULL)
        status = redlock_config_set_fence_key(config, settings->fence_key);
    /* The benchmark restarts no server whose fencing tokens it needs later, so volatile records
     * do. */
    if (status == REDLOCK_OK)
        status = redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE);
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

/* Returns the options of an acquisition; the caller sets opts.also where also_count is not 0. */
redlock_opts_t client_opts(const struct client_settings *settings)
{
    redlock_opts_t opts = redlock_opts(settings->ttl_ms);
    opts.wait_ms = settings->wait_ms;
    opts.kind = settings->permits != 0 ? REDLOCK_KIND_PERMIT : REDLOCK_KIND_EXCLUSIVE;
    opts.permits = settings->permits;
    opts.also_count = settings->also;
    opts.flags = settings->fence_key != NULL ? REDLOCK_FLAG_FENCE : 0;
    return opts;
}

/* Adds the client's counts of attempts and fence rounds to `result`, or subtracts them if `sign` is
 * negative. */
void client_add_stats(redlock_t *client, int sign, struct result *result)
{
    redlock_stats_t stats;
    if (redlock_get_stats(client, &stats, sizeof stats) != REDLOCK_OK)
        return;
    result->attempts += sign > 0 ? stats.attempts : -stats.attempts;
    result->one_round += sign > 0 ? stats.fence_one_round : -stats.fence_one_round;
    result->two_rounds += sign > 0 ? stats.fence_two_rounds : -stats.fence_two_rounds;
}

/* Returns `also` names made from `resource`, in one block that the caller frees: the pointers
 * first, then the texts. NULL if out of memory. */
static const char **also_names(const char *resource, unsigned also)
{
    const char **list = calloc(also, sizeof *list + ALSO_NAME_MAX);
    char *names = list == NULL ? NULL : (char *)(list + also);
    for (unsigned i = 0; list != NULL && i < also; i++) {
        char *name = names + (size_t)i * ALSO_NAME_MAX;
        snprintf(name, ALSO_NAME_MAX, "%s+%u", resource, i);
        list[i] = name;
    }
    return list;
}

/* Allocates the resources <prefix>0, <prefix>1, … that the settings require. Returns NULL if out of
 * memory. */
struct holding *client_holdings(const struct client_settings *settings)
{
    struct holding *holdings = calloc(settings->resources, sizeof *holdings);
    for (unsigned i = 0; holdings != NULL && i < settings->resources; i++) {
        struct holding *holding = &holdings[i];
        snprintf(holding->resource, sizeof holding->resource, "%s%u", settings->prefix, i);
        holding->holders_max = settings->permits == 0 ? 1 : settings->permits;
        if (settings->also == 0)
            continue;
        holding->also = also_names(holding->resource, settings->also);
        if (holding->also == NULL) {
            client_free_holdings(holdings, settings);
            return NULL;
        }
    }
    return holdings;
}

/* Frees the resources of client_holdings(); NULL does nothing. */
void client_free_holdings(struct holding *holdings, const struct client_settings *settings)
{
    for (unsigned i = 0; holdings != NULL && i < settings->resources; i++)
        free((void *)holdings[i].also);
    free(holdings);
}

/* Counts one holder more, and a violation if there were `holders_max` holders already. */
void holding_acquired(struct holding *holding, struct result *result)
{
    if (atomic_fetch_add(&holding->held, 1) >= holding->holders_max)
        result->violations++;
}

/* Counts one holder less. */
void holding_released(struct holding *holding)
{
    atomic_fetch_sub(&holding->held, 1);
}
