/* SPDX-License-Identifier: MIT
 * What a connection of the command to one server takes from the list of addresses, and from the
 * name that the library gives the server. It is separate from the library's parser, because the
 * public header does not return what that has read. The library refuses wrong lists before, and
 * test_server_address.c compares the settings of TLS with those of the library.
 */
#ifndef TOOLS_SERVER_ADDRESS_H
#define TOOLS_SERVER_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/redlock.h"

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

/* Whether connections to a server use TLS, and the parameters of TLS in its address. The owner of
 * the struct owns the texts; NULL: not given. */
struct server_security {
    bool used; /* the address begins with rediss:// or valkeys:// */
    char *cacert, *cert, *key, *sni;
    bool has_verify; /* the address says how to verify the server */
    int verify;      /* enum redlock_tls_verify */
};

/* Returns that of entry `index` of a list of addresses. To be freed with server_security_free(). */
struct server_security server_security_of(const char *list, size_t index);
/* Puts what an address says of TLS in place of the common settings in `tls`, as the library does.
 * Then `tls` borrows texts of `own`. */
void server_security_apply(const struct server_security *own, redlock_tls_t *tls);
/* Frees all texts. */
void server_security_free(struct server_security *security);

#endif
