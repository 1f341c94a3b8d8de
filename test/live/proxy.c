/* SPDX-License-Identifier: MIT
 * One thread accepts connections, connects each to its server, and copies bytes in both directions.
 * A pair of sockets that was forgotten stays open, and is not polled any more. */
#include "proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 512
#define WAIT_MS   10 /* a change of `forgotten` or `ending` is noticed after this time at most */

/* A connection of the client, and the one to its server. */
struct pair {
    int fds[2];    /* -1: closed */
    unsigned made; /* value of `forgotten` when it was made; of no use once that is larger */
};

struct proxy {
    unsigned count; /* of servers */
    int listeners[CLUSTER_NODES_MAX];
    int ports[CLUSTER_NODES_MAX]; /* of the servers */
    char urls[CLUSTER_NODES_MAX * 256];
    struct pair pairs[PAIRS_MAX];
    unsigned pair_count;
    atomic_uint forgotten; /* number of calls of proxy_forget() */
    atomic_bool ending;
    pthread_t thread;
};

/* Fails the program if a step has failed. */
static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

/* Returns the loopback address with this port. */
static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

/* Listens on a free port, and writes the address of the proxy behind the others. */
static void listen_for(struct proxy *proxy, const struct cluster *cluster, unsigned node)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof address;
    size_t used = strlen(proxy->urls);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    must(fd >= 0 && bind(fd, (const struct sockaddr *)&address, len) == 0 && listen(fd, 64) == 0 &&
             getsockname(fd, (struct sockaddr *)&address, &len) == 0,
         "listen");
    proxy->listeners[node] = fd;
    proxy->ports[node] = cluster_port(cluster, node);
    snprintf(proxy->urls + used, sizeof proxy->urls - used, "%s%s127.0.0.1:%d?fresh=1",
             used > 0 ? "," : "", cluster_scheme(cluster), ntohs(address.sin_port));
}

/* Accepts a connection to a server, and connects to that server. */
static void add_pair(struct proxy *proxy, unsigned node)
{
    struct sockaddr_in address = loopback(proxy->ports[node]);
    struct pair *pair = &proxy->pairs[proxy->pair_count];
    int fd = accept4(proxy->listeners[node], NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return; /* the client has closed it already */
    must(proxy->pair_count < PAIRS_MAX, "too many connections");
    pair->fds[0] = fd;
    pair->fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pair->made = atomic_load(&proxy->forgotten);
    must(pair->fds[1] >= 0 &&
             connect(pair->fds[1], (const struct sockaddr *)&address, sizeof address) == 0,
         "connect");
    proxy->pair_count++;
}

/* Closes both sides. */
static void close_pair(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        if (pair->fds[i] >= 0)
            close(pair->fds[i]);
        pair->fds[i] = -1;
    }
}

/* Copies what has arrived on one side to the other one, or closes both after an end. */
static void copy(struct pair *pair, unsigned from)
{
    char bytes[16384];
    ssize_t got = recv(pair->fds[from], bytes, sizeof bytes, 0);

    if (got <= 0 || send(pair->fds[1 - from], bytes, (size_t)got, MSG_NOSIGNAL) != got)
        close_pair(pair);
}

/* Returns true if bytes pass on the pair. */
static bool is_alive(const struct proxy *proxy, const struct pair *pair)
{
    return pair->fds[0] >= 0 && pair->made == atomic_load(&proxy->forgotten);
}

/* Waits for one turn, and handles what is ready. */
static void turn(struct proxy *proxy)
{
    struct pollfd fds[CLUSTER_NODES_MAX + 2 * PAIRS_MAX];
    unsigned pairs = proxy->pair_count, at = proxy->count;

    for (unsigned i = 0; i < proxy->count; i++)
        fds[i] = (struct pollfd){.fd = proxy->listeners[i], .events = POLLIN};
    for (unsigned i = 0; i < 2 * pairs; i++, at++) {
        const struct pair *pair = &proxy->pairs[i / 2];
        int fd = is_alive(proxy, pair) ? pair->fds[i % 2] : -1;
        fds[at] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    if (poll(fds, at, WAIT_MS) <= 0)
        return;
    for (unsigned i = 0; i < 2 * pairs; i++) {
        struct pair *pair = &proxy->pairs[i / 2];
        if (fds[proxy->count + i].revents != 0 && is_alive(proxy, pair))
            copy(pair, i % 2);
    }
    for (unsigned i = 0; i < proxy->count; i++) {
        if (fds[i].revents != 0)
            add_pair(proxy, i);
    }
}

/* The thread. */
static void *run(void *arg)
{
    struct proxy *proxy = arg;

    while (!atomic_load(&proxy->ending))
        turn(proxy);
    return NULL;
}

struct proxy *proxy_start(const struct cluster *cluster)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);

    must(proxy != NULL, "calloc");
    proxy->count = cluster_nodes(cluster);
    for (unsigned i = 0; i < proxy->count; i++)
        listen_for(proxy, cluster, i);
    must(pthread_create(&proxy->thread, NULL, run, proxy) == 0, "pthread_create");
    return proxy;
}

void proxy_stop(struct proxy *proxy)
{
    if (proxy == NULL)
        return;
    atomic_store(&proxy->ending, true);
    pthread_join(proxy->thread, NULL);
    for (unsigned i = 0; i < proxy->pair_count; i++)
        close_pair(&proxy->pairs[i]);
    for (unsigned i = 0; i < proxy->count; i++)
        close(proxy->listeners[i]);
    free(proxy);
}

const char *proxy_urls(const struct proxy *proxy)
{
    return proxy->urls;
}

void proxy_forget(struct proxy *proxy)
{
    atomic_fetch_add(&proxy->forgotten, 1);
}
