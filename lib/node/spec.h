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

/* How far the certificate of a server is verified; the numbers are those of enum
 * redlock_tls_verify. */
enum rl_tls_verify {
    RL_TLS_VERIFY_FULL = 0,  /* issuer, dates and name */
    RL_TLS_VERIFY_CHAIN = 1, /* issuer and dates */
    RL_TLS_VERIFY_NONE = 2   /* not at all */
};

#define RL_FILE_MAX 1023 /* bytes of the path of a file with certificates or a key */

/* What TLS connections need. NULL: not given. The owner of the struct owns the strings. */
struct rl_tls_settings {
    char *cacert;   /* file or directory with the issuers that are trusted; NULL: those of the
                     * system */
    char *cert;     /* file with the certificate of the client, and its chain */
    char *key;      /* file with its private key */
    char *sni;      /* name that the server's certificate must have; NULL: the host */
    uint8_t verify; /* enum rl_tls_verify */
};

/* The parsed address of one server. api/url.c fills it; afterwards it is constant. It owns `user`,
 * `password` and the strings of `tls_settings`, which rl_node_spec_done() frees. */
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
    bool tls;               /* connections use TLS */
    bool has_verify;        /* the address says how to verify the server */
    struct rl_tls_settings tls_settings; /* valid if `tls` */
    char *user;                          /* user to log in as; NULL: the default user */
    char *password; /* NULL: the password of the configuration is used, if there is one */
    char name[300]; /* shown in messages, without secrets: "host:port", "[::1]:6379/2",
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

/* Copies `from` to `to`, with copies of its strings. Returns 0, or REDLOCK_ENOMEM with a zeroed
 * `to`. */
int rl_node_spec_copy(const struct rl_mem *mem, struct rl_node_spec *to,
                      const struct rl_node_spec *from);

/* What to do about an address with TLS in a library that is built without TLS. */
#define RL_TLS_MISSING                                                                             \
    "this library was built without TLS; build it with -Dtls=enabled, or use redis:// on a "       \
    "trusted network"

/* tls_context.c or tls_without.c: returns whether the library was built with TLS. */
bool rl_node_spec_tls_is_built(void);

/* Copies the settings with their strings. Returns 0, or REDLOCK_ENOMEM with zeroed settings. */
int rl_node_spec_tls_copy(const struct rl_mem *mem, struct rl_tls_settings *to,
                          const struct rl_tls_settings *from);
/* Frees the strings and zeroes the settings. */
void rl_node_spec_tls_done(const struct rl_mem *mem, struct rl_tls_settings *settings);
/* Returns true if both settings use the same files in the same way; `sni` is not compared. */
bool rl_node_spec_tls_same(const struct rl_tls_settings *a, const struct rl_tls_settings *b);

/* Wipes and frees what the spec owns, and zeroes the spec. A zeroed spec is allowed. */
void rl_node_spec_done(const struct rl_mem *mem, struct rl_node_spec *spec);

#endif
