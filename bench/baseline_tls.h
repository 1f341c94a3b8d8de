/* SPDX-License-Identifier: MIT
 * TLS of the baseline with OpenSSL: an SSL object on the socket of each connection. The functions
 * to send and receive behave as send() and recv() on a non-blocking socket. */
#ifndef BENCH_BASELINE_TLS_H
#define BENCH_BASELINE_TLS_H

#include "servers.h"

struct ssl_st; /* the SSL of OpenSSL */

/* Makes the handshake on a connected socket, and verifies the certificate and its name. Waits up to
 * two seconds for each part of the reply. The socket is borrowed. Returns NULL and a text in
 * `error` on failure. */
struct ssl_st *baseline_tls_open(int fd, const struct server *server, char *error,
                                 size_t error_size);
/* Sends at most `len` bytes. Returns their number, or -1 and errno. After EAGAIN the next call must
 * begin with the same bytes. */
ssize_t baseline_tls_send(struct ssl_st *ssl, const char *bytes, size_t len);
/* Receives at most `size` bytes. Returns their number, 0 at the end, or -1 and errno. */
ssize_t baseline_tls_receive(struct ssl_st *ssl, char *bytes, size_t size);
/* Returns whether bytes that the kernel does not have any more can be received. */
bool baseline_tls_has_more(const struct ssl_st *ssl);
/* Frees the TLS state; NULL does nothing. */
void baseline_tls_close(struct ssl_st *ssl);

#endif
