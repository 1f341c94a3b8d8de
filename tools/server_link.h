/* SPDX-License-Identifier: MIT
 * A connection of the command to one server, beside those of the library. It is for commands about
 * all keys of a server, which the library does not have.
 */
#ifndef TOOLS_SERVER_LINK_H
#define TOOLS_SERVER_LINK_H

#include <hiredis/hiredis.h>
#include <stddef.h>

#include "redlock/redlock.h"
#include "settings.h"

/* Size of the buffer for an error text. */
#define LINK_ERROR_MAX 160

/* Connects to the server of `node`, logs in as the library does, and selects its database. `place`
 * is the position of the server in its shard, from 0. Blocks for at most the connect timeout, and a
 * name look-up; commands on the connection block for at most `reply_ms`. Returns the connection, to
 * be freed with redisFree(); or NULL, with the reason in `error`. */
redisContext *server_connect(const struct settings *settings, const redlock_node_stats_t *node,
                             size_t place, uint32_t reply_ms, char error[LINK_ERROR_MAX]);

/* Where a server is, as the library names it. */
struct server_place {
    char host[300]; /* host name or address, without brackets; "" if `path` is set */
    char path[300]; /* path of a unix socket; "" if `host` is set */
    int port;       /* TCP port */
    int db;         /* number of the database */
};

/* Parses the name that the library gives a server: "host:port", "[::1]:port", with "/db" if that is
 * not 0, "unix:/path", with "?db=N". */
struct server_place server_place_of(const char *node);

/* A user and a password. NULL: none. */
struct server_login {
    char *user, *password;
};

/* Returns the login in entry `index` of a list of addresses, "a,redis://user:password@b,c";
 * percent-decoded. Both are NULL if the entry has none. To be freed with server_login_free(). */
struct server_login server_login_of(const char *list, size_t index);
/* Overwrites and frees both texts. */
void server_login_free(struct server_login *login);

#endif
