/* SPDX-License-Identifier: MIT
 * The transport of real life: non-blocking TCP and unix sockets of our own (close-on-exec, no
 * SIGPIPE, TCP_NODELAY), up to two per node, watched by the client's poller under their numbers. */
#ifndef RL_NODE_SOCKET_H
#define RL_NODE_SOCKET_H

#include "node/node.h"
#include "node/resolve.h"
#include "node/spec.h"
#include "platform/poller.h"

#define RL_RECEIVE_BYTES (16 * 1024)
#define RL_SOCKET_TAGS   (2 * RL_TRACKER_CONNECTION)

struct rl_socket {
    const struct rl_node_spec *spec;
    struct rl_node *node;
    bool for_tracker;         /* the second connection: node/tracker.h */
    struct rl_lookup *lookup; /* a name is being looked up */
    struct rl_addresses addresses;
    unsigned next_address;
    unsigned
        first_address; /* the number with which the next look-up begins: those before it failed */
    int fd;            /* -1: none */
    bool connecting, want_write;
};

struct rl_sockets {
    struct rl_poller *poller;
    uint32_t tag;                          /* what the poller calls number 0 */
    struct rl_socket list[RL_SOCKET_TAGS]; /* by the number that the transport is called with */
    unsigned count;
    unsigned lookups; /* that are running */
    uint64_t now_ns;  /* boot clock of this tick */
    char buffer[RL_RECEIVE_BYTES];
};

/* Their tags are RL_SOCKET_TAGS numbers from `tag` on. */
void rl_sockets_init(struct rl_sockets *sockets, struct rl_poller *poller, uint32_t tag);
void rl_sockets_add(struct rl_sockets *sockets, const struct rl_node_spec *spec,
                    struct rl_node *node);
/* ctx: struct rl_sockets */
struct rl_transport rl_sockets_transport(struct rl_sockets *sockets);

/* Tells the node what the poller said of the socket with the tag `ready->tag`, and receives once.
 * Bytes that the node is handed stay valid until the next call for any socket. true: more may have
 * come, call again when the node has read those. */
bool rl_sockets_ready(struct rl_sockets *sockets, const struct rl_ready *ready);
/* Takes up name look-ups that are done; once in every tick. */
void rl_sockets_tick(struct rl_sockets *sockets);

/* After fork(), in the child: closes descriptors and nothing else; the peer sees nothing as long as
 * the parent lives. */
void rl_sockets_abandon(struct rl_sockets *sockets);

#endif
