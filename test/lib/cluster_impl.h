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
    struct server_opts opts;                 /* of each server process */
    char dir[SERVER_PATH_MAX - 16];          /* temporary directory; leaves room for "/n30" */
    char urls[CLUSTER_NODES_MAX * URL_MAX];  /* all addresses, separated by commas */
    char url[CLUSTER_NODES_MAX][URL_MAX];    /* the address of each server */
    bool paused[CLUSTER_NODES_MAX];          /* by cluster_pause(), until it is resumed or killed */
    unsigned count;                          /* number of servers */
    bool guarded, with_clocks, with_network; /* the options guarded, clocks, network */
    bool with_tls;                           /* the option tls */
    char cacert[SERVER_PATH_MAX];            /* file of the issuer; only if with_tls */
    struct clockshim *clock[CLUSTER_NODES_MAX]; /* settings of its clocks; NULL without `clocks` */
    struct network network;                     /* the links; only if with_network */
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
