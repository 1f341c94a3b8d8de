/* SPDX-License-Identifier: MIT
 * What a node needs of the world: connect, send, close, and the clocks. One implementation is
 * sockets (socket.c); another may be a simulated network. Events come back through
 * rl_node_opened(), rl_node_received() and rl_node_closed(); for the second connection of a node,
 * whose number is that of the node and RL_TRACKER_CONNECTION, through those of node/tracker.h. */
#ifndef RL_NODE_TRANSPORT_H
#define RL_NODE_TRANSPORT_H

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RL_TRACKER_CONNECTION 32u

struct rl_transport {
    /* Starts a connection to the node; how that ends is told by rl_node_opened(), maybe from inside
     * this call. The last connection was closed before. */
    void (*open)(void *ctx, unsigned node);
    /* Bytes taken (may be fewer, or 0 if the way is blocked; rl_node_flush() follows), or -1:
     * the connection is broken. */
    ssize_t (*send)(void *ctx, unsigned node, const char *bytes, size_t len);
    /* abortive: undelivered bytes are thrown away and the peer sees a reset. */
    void (*close)(void *ctx, unsigned node, bool abortive);
    void *ctx;
};

/* Reads the clocks now: a reply may be younger than the tick that takes it. */
struct rl_clocks {
    struct rl_now (*now)(void *ctx);
    void *ctx;
};

#endif
