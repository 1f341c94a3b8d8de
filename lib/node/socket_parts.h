/* SPDX-License-Identifier: MIT
 * What socket.c and socket_open.c share. No other file includes it. */
#ifndef RL_NODE_SOCKET_PARTS_H
#define RL_NODE_SOCKET_PARTS_H

#include "node/socket.h"

#define RL_RECEIVES_PER_TICK 8 /* most calls of recv() for one socket in one tick */

/* socket.c: returns the poller tag of the socket. */
uint32_t rl_socket_tag(const struct rl_sockets *sockets, const struct rl_socket *sock);
/* socket.c: has the poller watch the socket for writing, or no longer (`on`). Returns false if it
 * cannot; the next call tries again. */
bool rl_socket_watch_writing(struct rl_sockets *sockets, struct rl_socket *sock, bool on);
/* socket.c: frees the TLS state of the socket, if there is one. */
void rl_socket_drop_tls(struct rl_socket *sock);

/* socket_open.c: implements rl_transport.open. */
void rl_socket_open(void *ctx, unsigned connection);
/* socket_open.c: notes whether the attempt to connect waits for certificates that are being read.
 */
void rl_socket_set_waiting(struct rl_sockets *sockets, struct rl_socket *sock, bool waits);
/* socket_open.c: reads the result of connect(): reports it, tries the next address, or begins TLS.
 */
void rl_socket_connected(struct rl_sockets *sockets, struct rl_socket *sock);
/* socket_open.c: continues the TLS handshake, and reports its end. Returns true if the connection
 * is open now. */
bool rl_socket_secure(struct rl_sockets *sockets, struct rl_socket *sock);

#endif
