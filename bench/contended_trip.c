/* SPDX-License-Identifier: MIT
 * Measures round trips with PING, through the same proxy as the requests of the contenders, but on
 * connections of its own. */
#include "baseline_tls.h"
#include "contended.h"
#include "result.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_MS    2000 /* for a server to reply */
#define SAMPLES_MAX 4096 /* round trips kept for each server; later ones are not recorded */

/* A blocking connection to each server, and the round trips since the last evaluation. */
struct trips {
    size_t count; /* of connections */
    int fds[SERVERS_MAX];
    struct ssl_st *ssl[SERVERS_MAX]; /* NULL: without TLS */
    size_t samples[SERVERS_MAX];     /* number of values in ns[] of this server */
    uint64_t ns[SERVERS_MAX][SAMPLES_MAX];
};

/* Connects to one server, and begins TLS if `tls`. Returns whether it has succeeded. */
static bool connect_to(struct trips *trips, const struct server *server, bool tls)
{
    char error[256];
    int fd = servers_connect(server, tls, error, sizeof error);

    if (fd < 0)
        return false;
    trips->fds[trips->count++] = fd;
    struct ssl_st **ssl = &trips->ssl[trips->count - 1];
    return !tls || (*ssl = baseline_tls_open(fd, server, error, sizeof error)) != NULL;
}

/* Connects to the servers of a list of URLs, which is `measured` or leads to it through a proxy.
 * Returns NULL if one of them is not reachable. */
struct trips *trips_open(const struct servers *measured, const char *list)
{
    static struct servers servers;
    char error[256];
    bool tls = measured->tls;
    struct trips *trips = calloc(1, sizeof *trips);

    servers = *measured;
    if (trips == NULL || (tls ? servers_add_tls(&servers, list, error, sizeof error)
                              : servers_parse(&servers, list, error, sizeof error)) != 0) {
        free(trips);
        return NULL;
    }
    for (size_t i = 0; i < servers.count; i++) {
        if (!connect_to(trips, &servers.list[i], tls)) {
            trips_close(trips);
            return NULL;
        }
    }
    return trips;
}

/* Sends PING to a server and receives the reply. Returns whether it has come. */
static bool ping(const struct trips *trips, size_t index)
{
    static const char request[] = "PING\r\n";
    const ssize_t len = (ssize_t)strlen(request);
    struct ssl_st *ssl = trips->ssl[index];
    char reply[64];
    size_t got = 0;
    ssize_t put = ssl != NULL ? baseline_tls_send(ssl, request, (size_t)len)
                              : send(trips->fds[index], request, (size_t)len, MSG_NOSIGNAL);

    while (put == len && (got == 0 || reply[got - 1] != '\n')) {
        size_t room = sizeof reply - got;
        ssize_t more = ssl != NULL ? baseline_tls_receive(ssl, reply + got, room)
                                   : recv(trips->fds[index], reply + got, room, 0);
        struct pollfd readable = {.fd = trips->fds[index], .events = POLLIN};
        if (more > 0)
            got += (size_t)more;
        else if (more == 0 || errno != EAGAIN || poll(&readable, 1, REPLY_MS) != 1)
            return false;
    }
    return got > 0 && reply[0] == '+';
}

/* Sends one PING to each server in turn and records how long each reply took. */
void trips_ping(struct trips *trips)
{
    for (size_t i = 0; i < trips->count; i++) {
        uint64_t start_ns = result_now_ns();
        bool replied = ping(trips, i);
        uint64_t end_ns = result_now_ns();
        if (replied && trips->samples[i] < SAMPLES_MAX)
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
    for (size_t i = 0; trips != NULL && i < trips->count; i++) {
        baseline_tls_close(trips->ssl[i]);
        (void)close(trips->fds[i]);
    }
    free(trips);
}
