/* SPDX-License-Identifier: MIT
 * The server's end of a TLS connection in a fuzz target, and the network between the ends.
 *
 * The end is OpenSSL on buffers in memory. What it writes becomes a queue of records, which
 * tls_peer_mangle() changes, and tls_peer_deliver() sends on the socket as far as it is told. With
 * TLS 1.3 the secrets of the server are known, so that also encrypted content can be changed. What
 * the client sends is never changed, but the server may leave it unread.
 *
 * The plaintext of each direction is a fixed sequence of bytes, tls_peer_byte(), so that its
 * reader can check each byte. */
#ifndef TEST_FUZZ_TLS_PEER_H
#define TEST_FUZZ_TLS_PEER_H

#include "fuzz.h"
#include "tls_certificates.h"
#include "tls_seal.h"

#include <openssl/ssl.h>

#define TLS_QUEUE      48 /* most records that are not delivered yet */
#define TLS_QUEUE_FULL 24 /* with so many, the server begins nothing that writes more */

/* A record of the server that is not wholly delivered, or bytes in place of one. */
struct tls_queued {
    unsigned char bytes[TLS_HEADER + TLS_CONTENT_MAX + 512];
    size_t len;
    bool sealed;        /* encrypted with `key` */
    struct tls_key key; /* valid if `sealed` */
};

/* The server's end of the connection that is open, or was open last. */
struct tls_peer {
    SSL *ssl;               /* NULL: none */
    int fd;                 /* -1: closed */
    struct tls_shown shown; /* its certificate */
    uint64_t written;       /* plaintext bytes that it has written */
    uint64_t read;          /* plaintext bytes that it has read */
    bool failed;            /* it reads and writes no more: an error, or it was told to end */
    int error;              /* reason of OpenSSL for that; 0: none */
    bool renegotiates;      /* it has asked for another handshake */
    bool changed;           /* the client gets something else than an honest server sends */
    bool forged;            /* content that the server has not written was encrypted with its key */
    bool wants_certificate; /* the server requires a certificate of the client */
    struct tls_secret handshake, application; /* of the server, with TLS 1.3 */
    unsigned secrets;                         /* how many of the two are known */
    size_t at;      /* bytes of the first record of the queue that are delivered */
    unsigned count; /* records in the queue */
    struct tls_queued queue[TLS_QUEUE];
};

extern struct tls_peer tls_peer;

/* Prepares what all connections have in common, once in a process. */
void tls_peer_make(void);
/* Begins a connection on the socket `fd`, which it takes. `input` chooses certificate, version and
 * what else a server can be configured to; NULL: an honest server with TLS 1.3. */
void tls_peer_begin(int fd, struct fuzz_input *input);
/* Ends the connection, and closes its socket. */
void tls_peer_done(void);

/* Reads up to `limit` bytes of the client, and does what they ask for. Returns their number. */
size_t tls_peer_read(size_t limit);
/* Writes `len` bytes of plaintext, at least 1. */
void tls_peer_write(size_t len);
/* Sends a message of TLS itself: asks for new keys, sends a session ticket, renegotiates, says that
 * it ends the connection, as `what` chooses. */
void tls_peer_tell(unsigned what);
/* Closes the socket, or only its sending half. */
void tls_peer_hang_up(bool half);

/* tls_network.c: delivers up to `limit` bytes of the queue. Returns how many. */
size_t tls_peer_deliver(size_t limit);
/* tls_network.c: changes the queue as the input chooses. */
void tls_peer_mangle(struct fuzz_input *input);

/* Returns byte number `at` of the plaintext of the server, or of the client. */
static inline unsigned char tls_peer_byte(bool of_server, uint64_t at)
{
    return (unsigned char)((at + (of_server ? 1 : 77)) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

#endif
