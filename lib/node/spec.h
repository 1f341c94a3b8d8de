/* SPDX-License-Identifier: MIT
 * The parsed address of a server: where it is, how to log in, and what its operator attests. */
#ifndef RL_NODE_SPEC_H
#define RL_NODE_SPEC_H

#include "core/types.h"
#include "platform/memory.h"

/* Limits of the parts of an address, without terminating NULs. */
#define RL_HOST_MAX     255       /* bytes of a host name or a numeric address */
#define RL_PATH_MAX     107       /* bytes of a path; fits into sockaddr_un with its NUL */
#define RL_DB_MAX       INT32_MAX /* largest database number */
#define RL_USER_MAX     256       /* bytes of a user name */
#define RL_PASSWORD_MAX 4096      /* bytes; enough for tokens of identity services */
#define RL_ID_MAX       64        /* bytes of the id of a server */
#define RL_PORT_DEFAULT 6379      /* port, if an address has none */

/* The parsed address of one server. api/url.c fills it; afterwards it is constant. It owns `user`
 * and `password`, which rl_node_spec_done() frees. */
struct rl_node_spec {
    bool is_unix;               /* true: a unix socket at `path`; false: TCP to `host` and `port` */
    char host[RL_HOST_MAX + 1]; /* name or address in lower case, IPv6 without brackets; "" if
                                 * is_unix */
    uint16_t port;              /* TCP port; 0 if is_unix */
    char path[RL_PATH_MAX + 1]; /* absolute path of the socket; "" unless is_unix */
    unsigned db;                /* number of the database; 0 to RL_DB_MAX */
    bool durable;               /* attested: the server loses no acknowledged write in a restart */
    bool fresh;                 /* attested: no client has used the server for locks before */
    char id[RL_ID_MAX + 1]; /* name of the server for all its clients, if they reach it by different
                             * addresses; "": they all use `name` */
    char *user;             /* user to log in as; NULL: the default user */
    char *password;         /* NULL: the password of the configuration is used, if there is one */
    char name[300];         /* shown in messages, without secrets: "host:port", "[::1]:6379/2",
                             * "unix:/path?db=2" */
};

/* Writes spec->name, which is made of the place and the number of the database. */
void rl_node_spec_name(struct rl_node_spec *spec);

/* Returns the name by which all clients of the server know it: its id, or if it has none, its name.
 * Borrowed from the spec. */
const char *rl_node_spec_id(const struct rl_node_spec *spec);

/* Returns true if both specs have the same path, or the same host and port. The databases of one
 * server fail together, so `db` is not compared. */
bool rl_node_spec_same_server(const struct rl_node_spec *a, const struct rl_node_spec *b);

/* Copies `from` to `to`, with copies of the user and the password. Returns 0, or REDLOCK_ENOMEM
 * with a zeroed `to`. */
int rl_node_spec_copy(const struct rl_mem *mem, struct rl_node_spec *to,
                      const struct rl_node_spec *from);

/* Wipes and frees what the spec owns, and zeroes the spec. A zeroed spec is allowed. */
void rl_node_spec_done(const struct rl_mem *mem, struct rl_node_spec *spec);

#endif
