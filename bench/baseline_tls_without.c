/* SPDX-License-Identifier: MIT
 * The baseline in a build without OpenSSL: no connection has TLS. */
#include "baseline_tls.h"

#include <errno.h>
#include <stdio.h>

/* Refuses to open a connection with TLS. */
struct ssl_st *baseline_tls_open(int fd, const struct server *server, char *error,
                                 size_t error_size)
{
    (void)fd;
    snprintf(error, error_size, "%s:%s: this build has no TLS", server->tls_host, server->tls_port);
    return NULL;
}

/* Fails; there is no connection to call it for, nor for the next three. */
ssize_t baseline_tls_send(struct ssl_st *ssl, const char *bytes, size_t len)
{
    (void)ssl;
    (void)bytes;
    (void)len;
    errno = ENOTCONN;
    return -1;
}

/* Fails. */
ssize_t baseline_tls_receive(struct ssl_st *ssl, char *bytes, size_t size)
{
    (void)ssl;
    (void)bytes;
    (void)size;
    errno = ENOTCONN;
    return -1;
}

/* Returns false. */
bool baseline_tls_has_more(const struct ssl_st *ssl)
{
    (void)ssl;
    return false;
}

/* Does nothing. */
void baseline_tls_close(struct ssl_st *ssl)
{
    (void)ssl;
}
