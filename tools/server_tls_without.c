/* SPDX-License-Identifier: MIT
 * The functions of server_tls.h for a command without TLS. The library refuses addresses with TLS
 * before one of them is called.
 */
#include "server_tls.h"

#include <errno.h>
#include <stdio.h>

/* Fails. */
struct server_tls *server_tls_open(int fd, const redlock_tls_t *settings, const char *host,
                                   uint64_t timeout_ms, char error[LINK_ERROR_MAX])
{
    (void)fd;
    (void)settings;
    (void)host;
    (void)timeout_ms;
    snprintf(error, LINK_ERROR_MAX, "this command was built without TLS");
    return NULL;
}

/* Does nothing. */
void server_tls_close(struct server_tls *tls)
{
    (void)tls;
}

/* Fails. */
bool server_tls_send(struct server_tls *tls, const char *bytes, size_t len)
{
    (void)tls;
    (void)bytes;
    (void)len;
    errno = ENOTSUP;
    return false;
}

/* Fails. */
ssize_t server_tls_receive(struct server_tls *tls, char *buffer, size_t size)
{
    (void)tls;
    (void)buffer;
    (void)size;
    errno = ENOTSUP;
    return -1;
}

/* Returns that nothing is known. */
struct certificates_read server_tls_read(const char *path)
{
    (void)path;
    return (struct certificates_read){.first_expiry_s = 0};
}
