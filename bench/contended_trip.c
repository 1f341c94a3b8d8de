/* SPDX-License-Identifier: MIT
 * Measures round trips with PING, through the same proxy as the requests of the contenders, but on
 * connections of its own. */
#include "contended.h"
#include "result.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define SAMPLES_MAX 4096 /* round trips kept for each server; later ones are not recorded */

/* A blocking connection to each server, and the round trips since the last evaluation. */
struct trips {
    size_t count; /* of connections */
    redisContext *contexts[SERVERS_MAX];
    size_t samples[SERVERS_MAX]; /* number of values in ns[] of this server */
    uint64_t ns[SERVERS_MAX][SAMPLES_MAX];
};

/* Connects to the servers of a list of URLs. Returns NULL if one of them is not reachable. */
struct trips *trips_open(const char *list)
{
    static struct servers servers;
    const struct timeval timeout = {.tv_sec = 2, .tv_usec = 0};
    char error[256];
    struct trips *trips = calloc(1, sizeof *trips);
    if (trips == NULL || servers_parse(&servers, list, error, sizeof error) != 0) {
        free(trips);
        return NULL;
    }
    for (; trips->count < servers.count; trips->count++) {
        const struct server *server = &servers.list[trips->count];
        redisContext *context = redisConnectWithTimeout(server->host, atoi(server->port), timeout);
        if (context == NULL || context->err != 0 || redisSetTimeout(context, timeout) != REDIS_OK) {
            redisFree(context);
            trips_close(trips);
            return NULL;
        }
        trips->contexts[trips->count] = context;
    }
    return trips;
}

/* Sends one PING to each server in turn and records how long each reply took. */
void trips_ping(struct trips *trips)
{
    for (size_t i = 0; i < trips->count; i++) {
        uint64_t start_ns = result_now_ns();
        redisReply *reply = redisCommand(trips->contexts[i], "PING");
        uint64_t end_ns = result_now_ns();
        if (reply == NULL)
            continue;
        freeReplyObject(reply);
        if (trips->samples[i] < SAMPLES_MAX)
            trips->ns[i][trips->samples[i]++] = end_ns - start_ns;
    }
}

/* Orders numbers, the smallest first, for qsort(). */
static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the q-th smallest of the servers' median round trips (q: quorum), and forgets all
 * samples. A server without a sample counts as UINT64_MAX. */
uint64_t trips_quorum_ns(struct trips *trips)
{
    uint64_t medians[SERVERS_MAX];
    for (size_t i = 0; i < trips->count; i++) {
        qsort(trips->ns[i], trips->samples[i], sizeof trips->ns[i][0], compare_u64);
        medians[i] = trips->samples[i] == 0 ? UINT64_MAX : trips->ns[i][trips->samples[i] / 2];
        trips->samples[i] = 0;
    }
    qsort(medians, trips->count, sizeof medians[0], compare_u64);
    return medians[trips->count / 2];
}

/* Closes the connections and frees `trips`; NULL does nothing. */
void trips_close(struct trips *trips)
{
    for (size_t i = 0; trips != NULL && i < trips->count; i++)
        redisFree(trips->contexts[i]);
    free(trips);
}
