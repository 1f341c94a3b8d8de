/* SPDX-License-Identifier: MIT
 * A connection of the command to one server, beside those of the library. It is for commands about
 * all keys of a server, which the library does not have.
 */
#ifndef TOOLS_SERVER_LINK_H
#define TOOLS_SERVER_LINK_H

#include <hiredis/hiredis.h>
#include <stddef.h>

#include "redlock/redlock.h"
#include "server_tls.h"
#include "settings.h"

/* A connection. Owner: server_link.c, except that anyone may read `error`. */
struct server_link {
    redisContext *context;      /* has the socket, and the parser of replies */
    struct server_tls *tls;     /* NULL: the connection is in plain text */
    char error[LINK_ERROR_MAX]; /* why the last call has failed */
};

/* Connects to the server of `node`, with TLS if its address says so, logs in as the library does,
 * and selects its database. `place` is the position of the server in its shard, from 0. Blocks for
 * at most the connect timeout, twice that with TLS, and a name look-up; commands on the connection
 * block for at most `reply_ms`. Returns the connection, to be freed with server_close(); or NULL,
 * with the reason in `error`. */
struct server_link *server_connect(const struct settings *settings,
                                   const redlock_node_stats_t *node, size_t place,
                                   uint32_t reply_ms, char error[LINK_ERROR_MAX]);
/* Closes and frees the connection. Accepts NULL. */
void server_close(struct server_link *link);

/* Sends one command of `count` words. Returns false, with link->error, if the connection is broken.
 */
bool server_send(struct server_link *link, const char *const *words, int count);
/* Waits for the next reply. Returns it, to be freed with freeReplyObject(); NULL, with link->error,
 * if the connection is broken or no reply arrives in time. */
redisReply *server_receive(struct server_link *link);

#endif
