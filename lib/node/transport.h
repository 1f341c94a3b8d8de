/* SPDX-License-Identifier: MIT
 * The interfaces to the network and the clocks that a node is given. socket.c implements the
 * network with sockets; a test may simulate it. The implementation reports events of a connection
 * with rl_node_opened(), rl_node_received(), rl_node_closed() and rl_node_flush(). A node may have
 * a second connection, for notifications, and for a short time a third one, for a trial. Their
 * events are reported with the functions of node/tracker.h and node/trial.h. */
#ifndef RL_NODE_TRANSPORT_H
#define RL_NODE_TRANSPORT_H

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The number of a node's second connection is the index of the node plus this number. No
 * configuration has more nodes than this. */
#define RL_TRACKER_CONNECTION 32u
/* The same for the connection of a trial (trial.h). */
#define RL_TRIAL_CONNECTION 64u

/* Bytes that a server reads at once from a connection without TLS. It executes all requests that it
 * has read, even if the connection has ended meanwhile. */
#define RL_READ_AT_ONCE ((uint64_t)16 << 10)

/* The network. `connection` is the index of a node, or that plus one of the two numbers
 * above. */
struct rl_transport {
    /* Starts to connect. The connection must be closed. The implementation reports the result with
     * rl_node_opened(), rl_tracker_opened() or rl_trial_opened(), maybe before this call returns.
     */
    void (*open)(void *ctx, unsigned connection);
    /* Sends up to `len` > 0 bytes. Returns how many were accepted, or -1 if the connection is
     * broken. If fewer than `len` bytes were accepted, also 0, the implementation calls
     * rl_node_flush() or rl_tracker_flush() as soon as it can accept more. On the connection of
     * a trial, which sends a few bytes once, it does not. */
    ssize_t (*send)(void *ctx, unsigned connection, const char *bytes, size_t len);
    /* Closes the connection; does nothing if it is closed already. `abortive` true: discards bytes
     * that were accepted but not delivered, and resets the connection. False: those bytes are still
     * delivered. */
    void (*close)(void *ctx, unsigned connection, bool abortive);
    /* Returns how many of the bytes that were accepted last are in a TLS record that the kernel has
     * only in part. A close drops these bytes. NULL: no connection has records. */
    uint64_t (*held)(void *ctx, unsigned connection);
    /* The server has not read the last `unread` bytes that were accepted. Returns how many of them,
     * counted from their beginning, it executes even if the connection ends now; maybe more than
     * `unread`. NULL: RL_READ_AT_ONCE on all connections. */
    uint64_t (*reach)(void *ctx, unsigned connection, uint64_t unread);
    /* Returns in words why send() has failed. Called right after that; the text is valid until the
     * next send(). NULL: no reason is known. */
    const char *(*reason)(void *ctx, unsigned connection);
    void *ctx; /* first argument of the functions */
};

/* Calls transport->held(), if there is one. */
static inline uint64_t rl_transport_held(const struct rl_transport *transport, unsigned connection)
{
    return transport->held != NULL ? transport->held(transport->ctx, connection) : 0;
}

/* Calls transport->reach(), if there is one. */
static inline uint64_t rl_transport_reach(const struct rl_transport *transport, unsigned connection,
                                          uint64_t unread)
{
    return transport->reach != NULL ? transport->reach(transport->ctx, connection, unread)
                                    : RL_READ_AT_ONCE;
}

/* Calls transport->reason(), if there is one. */
static inline const char *rl_transport_reason(const struct rl_transport *transport,
                                              unsigned connection)
{
    return transport->reason != NULL ? transport->reason(transport->ctx, connection)
                                     : "connection lost";
}

/* The clocks: the boot clock and the raw clock. */
struct rl_clocks {
    /* Reads both clocks. A node calls it where the time at which the tick has begun is too old: a
     * reply may have arrived later. */
    struct rl_now (*now)(void *ctx);
    void *ctx; /* first argument of `now` */
};

#endif
