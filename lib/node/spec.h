/* SPDX-License-Identifier: MIT
 * Where a node is and how to log in there, as parsed from its address. */
#ifndef RL_NODE_SPEC_H
#define RL_NODE_SPEC_H

#include "core/types.h"
#include "platform/memory.h"

#define RL_HOST_MAX     255
#define RL_PATH_MAX     107 /* what fits into sockaddr_un with its NUL */
#define RL_DB_MAX       INT32_MAX
#define RL_USER_MAX     256
#define RL_PASSWORD_MAX 4096 /* tokens of identity services are passwords, too */
#define RL_ID_MAX       64
#define RL_PORT_DEFAULT 6379

struct rl_node_spec {
    bool is_unix;
    char host[RL_HOST_MAX + 1]; /* lower case, IPv6 without brackets; "" if is_unix */
    uint16_t port;              /* 0 if is_unix */
    char path[RL_PATH_MAX + 1]; /* absolute; "" unless is_unix */
    unsigned db;
    bool durable;           /* attested: never loses keys over a restart */
    bool fresh;             /* attested: no lock was ever here before we came */
    char id[RL_ID_MAX + 1]; /* how all clients call it, whatever its address; "": as its address */
    char *user;             /* NULL: the default user */
    char *password;         /* NULL: none of its own */
    char name[300]; /* for people, never a secret: "host:port", "[::1]:6379/2", "unix:/path?db=2" */
};

/* Writes spec->name from the other fields. */
void rl_node_spec_name(struct rl_node_spec *spec);

/* What clients have to agree on: its id, or its name. */
const char *rl_node_spec_id(const struct rl_node_spec *spec);

/* Whether both lead to one server. Databases of a server share its fate, so db does not matter. */
bool rl_node_spec_same_server(const struct rl_node_spec *a, const struct rl_node_spec *b);

/* A deep copy; 0 or REDLOCK_ENOMEM, and then `to` holds nothing. */
int rl_node_spec_copy(const struct rl_mem *mem, struct rl_node_spec *to,
                      const struct rl_node_spec *from);

/* Wipes and frees what the spec owns and leaves it empty; allowed on a zeroed one. */
void rl_node_spec_done(const struct rl_mem *mem, struct rl_node_spec *spec);

#endif
