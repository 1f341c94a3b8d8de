/* SPDX-License-Identifier: MIT
 * TLS on a connected, blocking socket of the command. It is separate from node/tls.h, because the
 * command uses the library through its public header only, which has no SCAN and no INFO. It
 * does not use the SSL layer of hiredis, because hiredis 0.14 has none, and later ones do not
 * verify names. It is built with OpenSSL if the library is (REDLOCK_HAS_TLS). Otherwise the library
 * refuses addresses with TLS, and these functions are not called with one.
 */
#ifndef TOOLS_SERVER_TLS_H
#define TOOLS_SERVER_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "redlock/redlock.h"

/* Size of the buffer for an error text. */
#define LINK_ERROR_MAX 160

/* The TLS state of one connection. */
struct server_tls;

/* Makes the TLS handshake on the socket `fd`, which stays the caller's, within `timeout_ms`, and
 * verifies the server as `settings` say; `host` is the host of its address. Returns NULL, with the
 * reason in `error`, if that fails. */
struct server_tls *server_tls_open(int fd, const redlock_tls_t *settings, const char *host,
                                   uint64_t timeout_ms, char error[LINK_ERROR_MAX]);
/* Frees the state without sending anything. Accepts NULL. */
void server_tls_close(struct server_tls *tls);

/* Encrypts and sends all bytes. Returns false with errno if that fails. */
bool server_tls_send(struct server_tls *tls, const char *bytes, size_t len);
/* Waits for bytes, and decrypts up to `size` of them. Returns their number; 0 if the server has
 * closed the connection; -1 with errno if it is broken, or the time limit of the socket has passed.
 */
ssize_t server_tls_receive(struct server_tls *tls, char *buffer, size_t size);

/* What the certificates of a file say. Times are Unix time in seconds; 0: not known. */
struct certificates_read {
    int64_t first_expiry_s, last_expiry_s; /* when the first and the last of them expires */
    int64_t valid_from_s;                  /* when all of them have become valid */
    bool not_for_clients;                  /* the first one is not meant for clients */
};

/* Reads the certificates of the file `path`. All fields are 0 if it is no regular file, or has no
 * certificate. */
struct certificates_read server_tls_read(const char *path);

#endif
