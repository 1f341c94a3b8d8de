/* SPDX-License-Identifier: MIT
 * TLS as a careful programmer adds it to a loop over non-blocking sockets: the socket's own BIO,
 * partial writes, and read-ahead, so that a record needs one recv() and not two. */
#include "baseline_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#define HANDSHAKE_S 2 /* longest wait for a part of the handshake, in seconds */

/* Makes a context that trusts the authority of the server. Returns NULL on failure. */
static SSL_CTX *make_context(const struct server *server)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL)
        return NULL;
    bool own = server->cacert[0] != '\0';
    bool fine = own ? SSL_CTX_load_verify_locations(context, server->cacert, NULL) == 1
                    : SSL_CTX_set_default_verify_paths(context) == 1;
    if (!fine) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    return context;
}

/* Sets the name or address that the certificate must have. Returns whether that worked. */
static bool set_name(SSL *ssl, const char *host)
{
    struct in6_addr address;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* Makes the handshake with a blocking socket, which is non-blocking afterwards. Returns whether it
 * has succeeded. */
static bool shake_hands(SSL *ssl, int fd)
{
    const struct timeval limit = {.tv_sec = HANDSHAKE_S};
    int off = 0, on = 1;
    return ioctl(fd, FIONBIO, &off) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
           SSL_connect(ssl) == 1 && ioctl(fd, FIONBIO, &on) == 0;
}

/* Makes the handshake. Returns NULL and a text in `error` on failure. SIGPIPE is ignored from then
 * on, because OpenSSL writes to the socket without MSG_NOSIGNAL. */
struct ssl_st *baseline_tls_open(int fd, const struct server *server, char *error,
                                 size_t error_size)
{
    (void)signal(SIGPIPE, SIG_IGN);
    SSL_CTX *context = make_context(server);
    SSL *ssl = context == NULL ? NULL : SSL_new(context);
    SSL_CTX_free(context); /* the SSL has a reference of its own */
    if (ssl != NULL && SSL_set_fd(ssl, fd) == 1 && set_name(ssl, server->tls_host) &&
        shake_hands(ssl, fd))
        return ssl;
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(error, error_size, "%s:%s: TLS: %s", server->tls_host, server->tls_port,
             reason == NULL ? "no handshake" : reason);
    SSL_free(ssl);
    return NULL;
}

/* Returns the result of a call that has transferred nothing as recv() and send() return it. */
static ssize_t nothing(const SSL *ssl, int result)
{
    int reason = SSL_get_error(ssl, result);
    if (reason == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

/* Encrypts and sends. */
ssize_t baseline_tls_send(struct ssl_st *ssl, const char *bytes, size_t len)
{
    int put = SSL_write(ssl, bytes, (int)len);
    return put > 0 ? put : nothing(ssl, put);
}

/* Receives and decrypts. */
ssize_t baseline_tls_receive(struct ssl_st *ssl, char *bytes, size_t size)
{
    int got = SSL_read(ssl, bytes, (int)size);
    return got > 0 ? got : nothing(ssl, got);
}

/* Returns whether OpenSSL has bytes. */
bool baseline_tls_has_more(const struct ssl_st *ssl)
{
    return SSL_has_pending(ssl) == 1;
}

/* Frees the TLS state. */
void baseline_tls_close(struct ssl_st *ssl)
{
    SSL_free(ssl);
}
