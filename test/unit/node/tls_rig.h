/* SPDX-License-Identifier: MIT
 * The library's TLS without a node: a context with files of the test, and connections over a pair
 * of sockets to a server of OpenSSL in the same thread. No call waits for the other side, because
 * the bytes are in the socket when a call returns. */
#ifndef TEST_TLS_RIG_H
#define TEST_TLS_RIG_H

#include "node/tls.h"

#include <openssl/ssl.h>

#define TLS_RIG_HOST        "server.test"
#define TLS_RIG_ISSUERS     "issuer" /* name of the certificate whose file the context reads */
#define TLS_RIG_DEADLINE_MS 10000

/* One context, one server and its certificates. */
struct tls_rig {
    char dir[128];            /* of the certificates */
    char issuers[160];        /* path of the file with the trusted issuers */
    struct rl_mem mem;        /* libc's allocator, but see `no_memory` */
    bool no_memory;           /* set by the test: each allocation of the library fails */
    struct rl_log log;        /* logs nothing */
    struct rl_node_spec spec; /* the address TLS_RIG_HOST, and the settings */
    struct rl_tls_context *contexts;
    struct rl_tls_server server; /* what the library knows of the server */
    SSL_CTX *native;             /* what the server has */
    int wake_fd;                 /* eventfd that the end of a reload writes to */
};

/* A connection of the rig. */
struct tls_link {
    int client_fd, server_fd; /* -1: closed */
    struct rl_tls *client;    /* of the library */
    SSL *server;              /* NULL: the server has ended */
};

/* Returns a fresh rig: the server has a certificate for TLS_RIG_HOST from the issuer that the
 * context trusts. There is one in the process. */
struct tls_rig *tls_rig_new(void);
/* Frees everything. All links must be closed. */
void tls_rig_done(struct tls_rig *rig);

/* Gives the server a new certificate for TLS_RIG_HOST from the issuer, which expires `lifetime_s`
 * from now. The server keeps the key of its session tickets. */
void tls_rig_certify(struct tls_rig *rig, int lifetime_s);
/* Gives the server a new certificate from the issuer with these names as subjectAltName, such as
 * "DNS:server.test". NULL: none. */
void tls_rig_certify_as(struct tls_rig *rig, const char *names);
/* Replaces the trusted issuer by another one with the same name. The certificate of the server is
 * from the earlier one. */
void tls_rig_replace_issuer(struct tls_rig *rig);
/* Checks that the context notices changed files, and uses them after the reload. */
void tls_rig_reload(struct tls_rig *rig);

/* Connects the sockets, without a byte of TLS. */
struct tls_link tls_rig_open(struct tls_rig *rig);
/* Completes the handshake, or lets it fail. Returns the result of the library. What the server has
 * sent after it, such as session tickets, has not been read. */
enum rl_tls_result tls_rig_handshake(struct tls_link *link);
/* Opens a link and completes the handshake, which must succeed. */
struct tls_link tls_rig_connect(struct tls_rig *rig);
/* Reads what the server has sent, without data. Returns the result of the library. */
enum rl_tls_result tls_rig_receive(struct tls_link *link);
/* Ends the server's side, with close_notify. */
void tls_rig_end_server(struct tls_link *link);
/* Closes both sides. */
void tls_rig_close(struct tls_link *link);

#endif
