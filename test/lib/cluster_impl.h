/* SPDX-License-Identifier: MIT
 * What cluster.c and cluster_command.c share. Not for tests. */
#ifndef TEST_CLUSTER_IMPL_H
#define TEST_CLUSTER_IMPL_H

#include <hiredis/hiredis.h>

#include "cluster.h"
#include "network.h"
#include "server.h"

#define URL_MAX 256

struct cluster {
    struct cluster *next; /* of the clusters that exit() has to clean up */
    pid_t owner;          /* a forked child must not clean up its parent's */
    struct server_opts opts;
    char dir[SERVER_PATH_MAX - 16];
    char urls[CLUSTER_NODES_MAX * URL_MAX];
    char url[CLUSTER_NODES_MAX][URL_MAX];
    bool paused[CLUSTER_NODES_MAX];
    unsigned count;
    bool guarded, with_clocks, with_network;
    struct clockshim *clock[CLUSTER_NODES_MAX];
    struct network network;
    redisContext **lasting; /* one for each node, or NULL */
    struct server server[CLUSTER_NODES_MAX];
};

/* Prints "test harness: …" with the last lines of the node's log (if any) and aborts. */
_Noreturn void cluster_die(const struct cluster *cluster, unsigned node, const char *text);

/* The lasting connections, if they were chosen; closes them. */
void cluster_open_lasting(struct cluster *cluster);
void cluster_close_lasting(struct cluster *cluster);

void cluster_check_node(const struct cluster *cluster, unsigned node);

#endif
