/* SPDX-License-Identifier: MIT
 * The inside of a cluster, shared by cluster.c, cluster_command.c and cluster_faults.c. Tests do
 * not include this file. */
#ifndef TEST_CLUSTER_IMPL_H
#define TEST_CLUSTER_IMPL_H

#include <hiredis/hiredis.h>

#include "cluster.h"
#include "network.h"
#include "server.h"

#define URL_MAX 256

/* One set of servers. cluster.c creates and changes it; cluster_faults.c changes `paused`, clocks
 * and links. */
struct cluster {
    struct cluster *next; /* list of the clusters that exit() has to stop */
    pid_t owner;          /* the process that started it; a forked child must not stop its parent's
                           * clusters */
    struct server_opts opts;
    char dir[SERVER_PATH_MAX - 16];
    char urls[CLUSTER_NODES_MAX * URL_MAX];
    char url[CLUSTER_NODES_MAX][URL_MAX];
    bool paused[CLUSTER_NODES_MAX];
    unsigned count;
    bool guarded, with_clocks, with_network;
    struct clockshim *clock[CLUSTER_NODES_MAX];
    struct network network;
    /* One connection for each server, or NULL if `lasting` was not chosen. */
    redisContext **lasting;
    struct server server[CLUSTER_NODES_MAX];
};

/* Prints "test harness: …" with the last lines of the node's log (if any) and aborts. */
_Noreturn void cluster_die(const struct cluster *cluster, unsigned node, const char *text);

/* Open and close the lasting connections, if the option was chosen. */
void cluster_open_lasting(struct cluster *cluster);
void cluster_close_lasting(struct cluster *cluster);

/* Aborts unless `node` is an index in this cluster. */
void cluster_check_node(const struct cluster *cluster, unsigned node);

#endif
