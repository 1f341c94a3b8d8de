/* SPDX-License-Identifier: MIT
 * Implements the transport of one shard's nodes with non-blocking TCP and unix sockets, up to
 * three for each node, which the client's poller watches. */
#ifndef RL_NODE_SOCKET_H
#define RL_NODE_SOCKET_H

#include "node/node.h"
#include "node/resolve.h"
#include "node/spec.h"
#include "node/tls.h"
#include "platform/poller.h"

#define RL_RECEIVE_BYTES (16 * 1024) /* most bytes that one recv() reads */
/* Number of connections, and of poller tags, of one shard: three for each of up to 32 nodes. A
 * poller tag is the number by which the poller reports a descriptor. */
#define RL_SOCKET_TAGS (3 * RL_TRACKER_CONNECTION)

/* What a connection of a node is for, and so which functions its events are reported with. */
enum rl_socket_role {
    RL_SOCKET_REQUESTS = 0, /* the first connection: rl_node_... */
    RL_SOCKET_TRACKER = 1,  /* the second one: rl_tracker_... */
    RL_SOCKET_TRIAL = 2     /* the one of a trial: rl_trial_... */
};

/* One connection of a node, open or closed. Owner: socket.c. In an unused element of
 * rl_sockets.list `spec` is NULL.
 *
 * The addresses of a host name are tried in order. If all addresses of a look-up have failed, the
 * name is looked up again, and the result begins with the first address that was not tried yet. */
struct rl_socket {
    const struct rl_node_spec *spec; /* the address of the server; borrowed */
    struct rl_node *node;            /* the node that events are reported to; borrowed */
    uint8_t role;                    /* enum rl_socket_role */
    struct rl_lookup *lookup;        /* the running look-up of the name; NULL: none */
    struct rl_addresses addresses;   /* the result of the last look-up; empty after a connection was
                                      * made */
    unsigned next_address;           /* index in `addresses` of the one that is tried next */
    unsigned first_address; /* argument `first` of rl_lookup_start(): how many addresses of the
                             * name have failed since the last success */
    struct rl_tls_server
        *server;          /* the server as TLS knows it; its `context` is NULL without TLS */
    struct rl_tls *tls;   /* the TLS state of the connection; NULL: none */
    bool waits_for_files; /* the connection begins when certificates have been read anew */
    bool gave_up_files;   /* the last attempt was given up while it waited for them */
    bool securing;        /* the TLS handshake is not complete */
    int fd;               /* the socket; -1: none */
    bool connecting;      /* connect() was called, and its result is not known yet */
    bool want_write;      /* the poller watches `fd` for writing, too */
};

/* All connections of one shard's nodes. Owner: socket.c, except for `now_ns`. */
struct rl_sockets {
    struct rl_poller *poller;                   /* borrowed: watches all sockets of the client */
    uint32_t tag;                               /* poller tag of list[0]; list[i] has `tag` + i */
    struct rl_socket list[RL_SOCKET_TAGS];      /* indexed by the `connection` of rl_transport */
    struct rl_tls_server servers[RL_NODES_MAX]; /* indexed as the nodes */
    unsigned keepalive_s;                       /* see rl_sockets_init() */
    unsigned count;                             /* number of nodes that were added */
    unsigned file_waits;                        /* sockets with waits_for_files */
    unsigned lookups;              /* number of look-ups that run or whose result was not read */
    uint64_t now_ns;               /* set by the client: boot clock at the start of the tick */
    char reason[RL_TEXT_MAX];      /* why sending has failed last, on any connection */
    char buffer[RL_RECEIVE_BYTES]; /* the bytes that were received last, by any connection */
};

/* Prepares the connections of a shard. Their poller tags are `tag` to `tag` + RL_SOCKET_TAGS - 1.
 * `keepalive_s`: seconds without traffic after which the kernel probes a TCP connection; 0: it does
 * not. */
void rl_sockets_init(struct rl_sockets *sockets, struct rl_poller *poller, uint32_t tag,
                     unsigned keepalive_s);
/* Adds the connections of a node, all closed. Borrows the node, its address `spec`, and the
 * certificates `context` for connections with TLS (NULL: without). Called once for each node, in
 * the order of their indices. */
void rl_sockets_add(struct rl_sockets *sockets, const struct rl_node_spec *spec,
                    struct rl_node *node, struct rl_tls_context *context);
/* Returns the transport to hand to the nodes, which works on `sockets`. */
struct rl_transport rl_sockets_transport(struct rl_sockets *sockets);

/* Handles what the poller has reported about one socket: ends its attempt to connect, continues its
 * TLS handshake, or lets the node continue to send, and receives once. Received bytes are passed to
 * the node and stay valid until the next call for any socket. Returns true if the caller must call
 * again as soon as the node has read the first ones, because more bytes may have arrived. `turn` is
 * the number of such calls, 0 for the first; it limits how much one socket receives in a tick, so
 * that one server with many replies does not delay the others. */
bool rl_sockets_ready(struct rl_sockets *sockets, const struct rl_ready *ready, unsigned turn);
/* Reads the results of look-ups and of renewed certificates that have ended: connects to the
 * addresses, or reports the failure. Called in every tick. */
void rl_sockets_tick(struct rl_sockets *sockets);

/* Treats all connections as lost, because the program has closed their descriptors. Does not close
 * them: their numbers may be those of other files by now. */
void rl_sockets_forget(struct rl_sockets *sockets);
/* Forgets the TLS sessions. All connections must be closed. */
void rl_sockets_done(struct rl_sockets *sockets);
/* Closes the descriptors in a forked child, whose parent goes on using the connections, or after
 * all connections were closed. Sends nothing, so that the servers do not notice. `frees`: also
 * frees the TLS states; false if a thread of the parent may have been changing them. */
void rl_sockets_abandon(struct rl_sockets *sockets, bool frees);

#endif
