/* SPDX-License-Identifier: MIT
 * Implements the transport of one shard's nodes with non-blocking TCP and unix sockets, up to two
 * for each node, which the client's poller watches. */
#ifndef RL_NODE_SOCKET_H
#define RL_NODE_SOCKET_H

#include "node/node.h"
#include "node/resolve.h"
#include "node/spec.h"
#include "platform/poller.h"

#define RL_RECEIVE_BYTES (16 * 1024)                 /* received at a time */
#define RL_SOCKET_TAGS   (2 * RL_TRACKER_CONNECTION) /* poller tags of one shard */

/* One connection of a node. Only socket.c changes it. Unused elements of the list have `spec` NULL.
 *
 * Addresses are tried in order, one for each attempt to connect. If all have failed, the name is
 * looked up again, from the first address on that was not tried yet. */
struct rl_socket {
    const struct rl_node_spec *spec; /* where to connect to; borrowed */
    struct rl_node *node;            /* to which events are reported; borrowed */
    bool for_tracker;                /* the node's second connection, for notifications */
    struct rl_lookup *lookup;        /* the running look-up of the name; NULL: none */
    struct rl_addresses addresses;   /* of the last look-up; empty after a success */
    unsigned next_address;           /* index in `addresses` of the next attempt */
    unsigned first_address;          /* number of the first address that the next look-up keeps */
    int fd;                          /* -1: no socket */
    bool connecting;                 /* connect() was called and has not ended */
    bool want_write;                 /* the poller watches `fd` for writing, too */
};

/* All connections of one shard's nodes. Only socket.c changes it, except `now_ns`. */
struct rl_sockets {
    struct rl_poller *poller;              /* borrowed */
    uint32_t tag;                          /* poller tag of list[0]; the others follow */
    struct rl_socket list[RL_SOCKET_TAGS]; /* indexed by the `connection` of rl_transport */
    unsigned count;                        /* nodes that were added */
    unsigned lookups;                      /* running look-ups */
    uint64_t now_ns;                       /* set by the owner: boot time of this tick */
    char buffer[RL_RECEIVE_BYTES];         /* the bytes that were received last */
};

/* Prepares the connections of a shard. Their poller tags are `tag` to `tag` + RL_SOCKET_TAGS - 1.
 */
void rl_sockets_init(struct rl_sockets *sockets, struct rl_poller *poller, uint32_t tag);
/* Adds a node with its address, both borrowed. Call it once for each node, in the order of their
 * indices. */
void rl_sockets_add(struct rl_sockets *sockets, const struct rl_node_spec *spec,
                    struct rl_node *node);
/* Returns the transport to hand to the nodes. Its `ctx` is `sockets`. */
struct rl_transport rl_sockets_transport(struct rl_sockets *sockets);

/* Handles what the poller has reported about one socket: completes its connect, or lets the node
 * continue to send, and receives once. Received bytes are passed to the node and stay valid until
 * the next call for any socket. Returns true if there may be more: call again as soon as the node
 * has read these. */
bool rl_sockets_ready(struct rl_sockets *sockets, const struct rl_ready *ready);
/* Connects, or reports a failure, where a look-up has ended. Call it in every tick. */
void rl_sockets_tick(struct rl_sockets *sockets);

/* Closes the descriptors without anything that the servers could notice. For a forked child, whose
 * parent goes on using the connections. */
void rl_sockets_abandon(struct rl_sockets *sockets);

#endif
