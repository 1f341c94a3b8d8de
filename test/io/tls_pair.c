/* SPDX-License-Identifier: MIT
 * Both ends of one TLS connection in one thread. */
#include "tls_pair.h"

#include <openssl/err.h>
#include <redlock/redlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS_MAX 40 /* far more turns than a handshake needs */
#define RECEIVES   8  /* calls of recv() that each turn of the client permits, as in socket.c */

/* Aborts the test if setting it up fails. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "tls_pair: %s\n", #condition);                                         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Calls pair->exempt(), if there is one. */
static void exempt(const struct tls_pair *pair, bool on)
{
    if (pair->exempt != NULL)
        pair->exempt(on);
}

/* Prepares both ends. */
void tls_pair_init(struct tls_pair *pair, const struct certificate *own, const char *host,
                   const char *cacert, int version)
{
    memset(pair, 0, sizeof *pair);
    pair->fd[0] = pair->fd[1] = -1;
    pair->limit = pair->changed = SIZE_MAX;
    pair->mem = rl_mem_libc();
    pair->spec.tls = true;
    snprintf(pair->spec.host, sizeof pair->spec.host, "%s", host);
    pair->spec.tls_settings.cacert = (char *)(uintptr_t)cacert;
    MUST(OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1);
    pair->native = SSL_CTX_new(TLS_server_method());
    MUST(pair->native != NULL);
    MUST(SSL_CTX_use_certificate(pair->native, own->x509) == 1);
    MUST(SSL_CTX_use_PrivateKey(pair->native, own->key) == 1);
    MUST(SSL_CTX_set_min_proto_version(pair->native, version != 0 ? version : TLS1_2_VERSION) == 1);
    MUST(SSL_CTX_set_max_proto_version(pair->native, version) == 1);
}

/* Begins the server's end. */
static void open_server(struct tls_pair *pair)
{
    exempt(pair, true);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair->fd) == 0);
    pair->ssl = SSL_new(pair->native);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    MUST(pair->ssl != NULL && in != NULL && out != NULL);
    SSL_set_bio(pair->ssl, in, out);
    SSL_set_accept_state(pair->ssl);
    pair->sent = 0;
    exempt(pair, false);
}

/* Reads the certificates of the client, and begins a connection. */
bool tls_pair_open(struct tls_pair *pair)
{
    open_server(pair);
    pair->error[0] = '\0';
    if (rl_tls_contexts_add(&pair->list, &pair->mem, &pair->log, &pair->spec.tls_settings,
                            pair->error, sizeof pair->error) != REDLOCK_OK)
        return false;
    pair->server.spec = &pair->spec;
    pair->server.context = rl_tls_contexts_find(pair->list, &pair->spec.tls_settings);
    pair->tls = rl_tls_open(&pair->server, pair->fd[0]);
    return pair->tls != NULL;
}

/* Closes the connection, and forgets its certificates and session. */
void tls_pair_close(struct tls_pair *pair)
{
    rl_tls_close(pair->tls);
    pair->tls = NULL;
    rl_tls_server_done(&pair->server);
    rl_tls_contexts_free(pair->list, false);
    pair->list = NULL;
    exempt(pair, true);
    SSL_free(pair->ssl);
    pair->ssl = NULL;
    for (int i = 0; i < 2; i++) {
        if (pair->fd[i] >= 0)
            close(pair->fd[i]);
        pair->fd[i] = -1;
    }
    exempt(pair, false);
}

/* Frees everything. */
void tls_pair_done(struct tls_pair *pair)
{
    tls_pair_close(pair);
    SSL_CTX_free(pair->native);
}

/* Sends what OpenSSL has written, as far as `limit` and `changed` say. */
static void send_output(struct tls_pair *pair)
{
    char bytes[4096];
    int got;

    while ((got = BIO_read(SSL_get_wbio(pair->ssl), bytes, sizeof bytes)) > 0) {
        size_t len = (size_t)got, left = pair->limit - pair->sent;
        if (pair->fd[1] < 0)
            continue;
        if (pair->changed >= pair->sent && pair->changed < pair->sent + len)
            bytes[pair->changed - pair->sent] ^= (char)0xff;
        len = len < left ? len : left;
        MUST(len == 0 || send(pair->fd[1], bytes, len, MSG_NOSIGNAL) >= 0 || pair->tls == NULL);
        pair->sent += len;
        if (pair->sent == pair->limit) {
            close(pair->fd[1]);
            pair->fd[1] = -1;
        }
    }
}

/* Lets the server read what has arrived and send what it has to send. */
void tls_pair_serve(struct tls_pair *pair)
{
    char bytes[16384];
    ssize_t got;

    exempt(pair, true);
    while (pair->fd[1] >= 0 && (got = recv(pair->fd[1], bytes, sizeof bytes, 0)) > 0)
        MUST(BIO_write(SSL_get_rbio(pair->ssl), bytes, (int)got) == got);
    if (!SSL_is_init_finished(pair->ssl))
        (void)SSL_do_handshake(pair->ssl);
    send_output(pair);
    ERR_clear_error();
    exempt(pair, false);
}

/* Completes the handshake. */
enum rl_tls_result tls_pair_handshake(struct tls_pair *pair)
{
    enum rl_tls_result result = RL_TLS_AGAIN;

    for (int i = 0; result == RL_TLS_AGAIN && i < ROUNDS_MAX; i++) {
        tls_pair_serve(pair);
        rl_tls_permit(pair->tls, RECEIVES);
        result = rl_tls_handshake(pair->tls);
    }
    tls_pair_serve(pair);
    return result;
}

/* Receives what the server has sent. */
enum rl_tls_result tls_pair_receive(struct tls_pair *pair, char *buffer, size_t size,
                                    size_t *ret_len)
{
    bool more;

    rl_tls_permit(pair->tls, RECEIVES);
    return rl_tls_receive(pair->tls, buffer, size, ret_len, &more);
}
