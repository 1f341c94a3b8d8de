/* SPDX-License-Identifier: MIT
 * The functions of fake_tls.h in a build without OpenSSL: no server speaks TLS. Those that need a
 * server with TLS are never called, and abort. */
#include "fake_tls.h"

#include <stdlib.h>

/* Aborts: there is no TLS. */
void fake_tls_enable(void)
{
    abort();
}

/* Returns NULL: there is no issuer. */
const struct certificate *fake_tls_issuer(void)
{
    return NULL;
}

/* Returns false: no server speaks TLS. */
bool fake_tls_is_wanted(void)
{
    return false;
}

/* Aborts. */
struct fake_tls_server *fake_tls_server_new(const struct fake_tls_profile *profile)
{
    (void)profile;
    abort();
}

/* Does nothing: there is no such server. */
void fake_tls_server_free(struct fake_tls_server *server)
{
    (void)server;
}

/* Aborts. */
struct fake_tls *fake_tls_open(struct fake_tls_server *server, int fd)
{
    (void)server;
    (void)fd;
    abort();
}

/* Does nothing: no connection has TLS. */
void fake_tls_close(struct fake_tls *tls)
{
    (void)tls;
}

/* Aborts. */
ssize_t fake_tls_recv(struct fake_tls *tls, void *bytes, size_t size)
{
    (void)tls;
    (void)bytes;
    (void)size;
    abort();
}

/* Aborts. */
ssize_t fake_tls_send(struct fake_tls *tls, const void *bytes, size_t len)
{
    (void)tls;
    (void)bytes;
    (void)len;
    abort();
}

/* Aborts. */
bool fake_tls_flush(struct fake_tls *tls, bool *ret_reset)
{
    (void)tls;
    (void)ret_reset;
    abort();
}

/* Aborts. */
bool fake_tls_wants_write(const struct fake_tls *tls)
{
    (void)tls;
    abort();
}

/* Aborts. */
bool fake_tls_wants_read(const struct fake_tls *tls)
{
    (void)tls;
    abort();
}

/* Aborts. */
int fake_tls_pause_ms(const struct fake_tls *tls)
{
    (void)tls;
    abort();
}
