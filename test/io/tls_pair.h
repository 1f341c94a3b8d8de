/* SPDX-License-Identifier: MIT
 * Both ends of one TLS connection in one thread: the client's end is node/tls.h on one end of a
 * socket pair, the server's is OpenSSL. Nothing waits, so that a case takes about a millisecond and
 * is the same each time. */
#ifndef TEST_TLS_PAIR_H
#define TEST_TLS_PAIR_H

#include "certificates.h"
#include "node/tls.h"

#include <openssl/ssl.h>

struct tls_pair {
    SSL_CTX *native;             /* of the server */
    SSL *ssl;                    /* its end of the connection */
    int fd[2];                   /* the client's end, the server's end; -1: closed */
    size_t sent;                 /* bytes that the server has sent on this connection */
    size_t limit;                /* after so many bytes it closes; SIZE_MAX: never */
    size_t changed;              /* number of the byte that is sent inverted; SIZE_MAX: none */
    void (*exempt)(bool on);     /* called around what is not the library's; NULL: none */
    struct rl_mem mem;           /* of the client */
    struct rl_log log;           /* without a function */
    struct rl_node_spec spec;    /* the address that the client verifies */
    struct rl_tls_context *list; /* its certificates */
    struct rl_tls_server server; /* the server as it knows it */
    struct rl_tls *tls;          /* its end; NULL: none */
    char error[400];             /* why the certificates could not be read */
};

/* Prepares a server with this certificate, and a client that connects to `host` and trusts the
 * issuer in the file `cacert`; borrows both. `version`: as TLS1_2_VERSION; 0: TLS 1.2 and 1.3. */
void tls_pair_init(struct tls_pair *pair, const struct certificate *own, const char *host,
                   const char *cacert, int version);
/* Frees everything. */
void tls_pair_done(struct tls_pair *pair);

/* Reads the certificates of the client, and begins a connection. Returns false without memory, or
 * with a reason in `error`. */
bool tls_pair_open(struct tls_pair *pair);
/* Closes the connection, and forgets its certificates and session. */
void tls_pair_close(struct tls_pair *pair);

/* Lets the server read what has arrived and send what it has to send. */
void tls_pair_serve(struct tls_pair *pair);
/* Completes the handshake, or returns RL_TLS_FAILED, or RL_TLS_AGAIN if neither end has anything
 * left to do. */
enum rl_tls_result tls_pair_handshake(struct tls_pair *pair);
/* Receives what the server has sent. Returns as rl_tls_receive(). */
enum rl_tls_result tls_pair_receive(struct tls_pair *pair, char *buffer, size_t size,
                                    size_t *ret_len);

#endif
