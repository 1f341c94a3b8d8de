/* SPDX-License-Identifier: MIT
 * TLS of a fake server: OpenSSL between two memory BIOs, so that this file decides what the socket
 * gets, record by record. */
#include "fake_tls.h"

#include "certificates.h"
#include "fake_store.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HEADER_LEN    5  /* bytes in front of each record */
#define FLOOD_AT_ONCE 64 /* requests for new keys in one turn */

/* Aborts the test if setting it up fails. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fake_tls: %s\n", #condition);                                         \
            ERR_print_errors_fp(stderr);                                                           \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct fake_tls_server {
    SSL_CTX *native;
    struct fake_tls_profile profile;
};

struct fake_tls {
    SSL *ssl; /* owns both BIOs */
    BIO *in, *out;
    int fd;
    struct fake_tls_profile profile;
    struct fake_bytes raw;  /* what OpenSSL wrote and is not a complete record yet */
    struct fake_bytes wire; /* what the socket gets */
    size_t wire_at;         /* how many bytes of it the socket has */
    unsigned records;       /* complete records that OpenSSL wrote */
    bool asked;             /* FAKE_TLS_RENEGOTIATE was done */
    bool stalled;           /* later records are dropped */
    bool ending;            /* the connection ends when the socket has `wire` */
};

/* What servers and clients use unless a test says otherwise; NULL before fake_tls_enable(). */
static struct certificate *issuer, *usual;

/* Has all servers speak TLS, and clients trust them. */
void fake_tls_enable(void)
{
    char path[CERTIFICATE_PATH_BYTES];

    if (issuer != NULL)
        return;
    MUST(OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) == 1);
    issuer = certificate_sign(&(struct certificate_terms){.subject = "Test CA", .is_issuer = true},
                              NULL);
    usual = certificate_sign(&(struct certificate_terms){.subject = "fake server",
                                                         .names = "DNS:localhost,IP:127.0.0.1"},
                             issuer);
    (void)certificate_publish(issuer, path);
    MUST(setenv("SSL_CERT_FILE", path, 1) == 0);
}

/* Reads the environment before main(), because forked test cases share the certificates. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *value = getenv("REDLOCK_TEST_TLS");

    if (value != NULL && strcmp(value, "1") == 0)
        fake_tls_enable();
}

/* Returns whether fake servers speak TLS unless a test says otherwise. */
bool fake_tls_is_wanted(void)
{
    return issuer != NULL;
}

/* Returns the issuer that clients trust. */
const struct certificate *fake_tls_issuer(void)
{
    return issuer;
}

/* Makes how a server speaks TLS. */
struct fake_tls_server *fake_tls_server_new(const struct fake_tls_profile *profile)
{
    struct fake_tls_server *server = calloc(1, sizeof *server);

    MUST(server != NULL);
    server->profile = *profile;
    const struct certificate *own = profile->own != NULL ? profile->own : usual;
    SSL_CTX *native = server->native = SSL_CTX_new(TLS_server_method());
    MUST(native != NULL && own != NULL);
    MUST(SSL_CTX_use_certificate(native, own->x509) == 1);
    MUST(SSL_CTX_use_PrivateKey(native, own->key) == 1);
    MUST(SSL_CTX_set_session_id_context(native, (const unsigned char *)"fake", 4) == 1);
    if (profile->intermediate != NULL)
        MUST(SSL_CTX_add1_chain_cert(native, profile->intermediate->x509) == 1);
    MUST(SSL_CTX_set_min_proto_version(native, profile->version != 0 ? profile->version
                                                                     : TLS1_2_VERSION) == 1);
    MUST(SSL_CTX_set_max_proto_version(native, profile->version) == 1);
    if (profile->version != 0 && profile->version < TLS1_2_VERSION)
        MUST(SSL_CTX_set_cipher_list(native, "DEFAULT:@SECLEVEL=0") == 1);
    if (profile->client_issuer != NULL) {
        SSL_CTX_set_verify(native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        MUST(X509_STORE_add_cert(SSL_CTX_get_cert_store(native), profile->client_issuer->x509) ==
             1);
    }
    return server;
}

/* Frees how a server speaks TLS. */
void fake_tls_server_free(struct fake_tls_server *server)
{
    if (server == NULL)
        return;
    SSL_CTX_free(server->native);
    free(server);
}

/* Tells the runner, with the first connection of the process, that the environment has changed what
 * this program tests (test/runner/over_tls.py). */
static void print_mark(void)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;

    if (atomic_flag_test_and_set(&printed))
        return;
    printf("# the servers speak TLS\n");
    fflush(stdout);
}

/* Begins TLS on an accepted socket. */
struct fake_tls *fake_tls_open(struct fake_tls_server *server, int fd)
{
    struct fake_tls *tls = calloc(1, sizeof *tls);

    MUST(tls != NULL);
    tls->fd = fd;
    tls->profile = server->profile;
    if (server->profile.fault == FAKE_TLS_FLOOD) /* what is not read waits in the client */
        MUST(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int)) == 0);
    tls->ssl = SSL_new(server->native);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    MUST(tls->ssl != NULL && tls->in != NULL && tls->out != NULL);
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_accept_state(tls->ssl);
    print_mark();
    return tls;
}

/* Frees the TLS state of a connection. */
void fake_tls_close(struct fake_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    ERR_clear_error();
    fake_bytes_free(&tls->raw);
    fake_bytes_free(&tls->wire);
    free(tls);
}

/* ---- what the socket gets ---- */

/* Moves what OpenSSL has written to `raw`. */
static void take_output(struct fake_tls *tls)
{
    char bytes[4096];
    int got;

    while ((got = BIO_read(tls->out, bytes, sizeof bytes)) > 0)
        fake_bytes_add(&tls->raw, bytes, (size_t)got);
}

/* Appends a close_notify: encrypted if the handshake is complete. */
static void add_close_notify(struct fake_tls *tls)
{
    static const char plain[] = {21, 3, 3, 0, 2, 1, 0};

    tls->raw.len = 0;
    if (!SSL_is_init_finished(tls->ssl)) {
        fake_bytes_add(&tls->wire, plain, sizeof plain);
        return;
    }
    (void)SSL_shutdown(tls->ssl);
    take_output(tls);
    fake_bytes_add(&tls->wire, tls->raw.data, tls->raw.len);
    tls->raw.len = 0;
}

/* Hands a record of `len` bytes to the socket, as the fault says. */
static void pass_record(struct fake_tls *tls, const char *bytes, size_t len)
{
    const struct fake_tls_profile *profile = &tls->profile;
    bool is_due = tls->records++ == profile->at;

    if (tls->stalled || tls->ending)
        return;
    switch (is_due ? profile->fault : 0) {
    case FAKE_TLS_INSERT:
        fake_bytes_add(&tls->wire, profile->bytes,
                       profile->len != 0 ? profile->len : strlen(profile->bytes));
        fake_bytes_add(&tls->wire, bytes, len);
        break;
    case FAKE_TLS_STALL:
        tls->stalled = true;
        break;
    case FAKE_TLS_NOTIFY:
        tls->ending = true;
        add_close_notify(tls);
        break;
    case FAKE_TLS_CUT_INSIDE:
        fake_bytes_add(&tls->wire, bytes, len / 2);
        tls->ending = true;
        break;
    case FAKE_TLS_CUT:
    case FAKE_TLS_RESET:
        tls->ending = true;
        break;
    default:
        fake_bytes_add(&tls->wire, bytes, len);
    }
}

/* Passes each complete record that OpenSSL has written. */
static void pass_records(struct fake_tls *tls)
{
    size_t done = 0;

    take_output(tls);
    while (tls->raw.len >= done + HEADER_LEN) {
        const unsigned char *header = (const unsigned char *)tls->raw.data + done;
        size_t len = HEADER_LEN + ((size_t)header[3] << 8 | header[4]);
        if (tls->raw.len < done + len)
            break;
        char *record = malloc(len); /* `raw` may change meanwhile */
        MUST(record != NULL);
        memcpy(record, header, len);
        pass_record(tls, record, len);
        free(record);
        if (tls->raw.len == 0)
            return;
        done += len;
    }
    if (done > 0) {
        tls->raw.len -= done;
        memmove(tls->raw.data, tls->raw.data + done, tls->raw.len);
    }
}

/* Writes what a fault sends after the handshake. */
static void misbehave(struct fake_tls *tls)
{
    if (!SSL_is_init_finished(tls->ssl))
        return;
    if (tls->profile.fault == FAKE_TLS_RENEGOTIATE && !tls->asked) {
        tls->asked = true;
        MUST(SSL_renegotiate(tls->ssl) == 1);
        (void)SSL_do_handshake(tls->ssl);
    }
    bool floods = tls->profile.fault == FAKE_TLS_FLOOD && tls->wire.len == 0;
    for (int i = 0; floods && i < FLOOD_AT_ONCE; i++) {
        MUST(SSL_key_update(tls->ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        (void)SSL_do_handshake(tls->ssl);
    }
    pass_records(tls);
    ERR_clear_error();
}

/* Gives the socket what waits for it. */
bool fake_tls_flush(struct fake_tls *tls, bool *ret_reset)
{
    bool drips = tls->profile.fault == FAKE_TLS_DRIP || tls->profile.fault == FAKE_TLS_DRIP_SLOWLY;

    *ret_reset = tls->profile.fault == FAKE_TLS_RESET;
    misbehave(tls);
    while (tls->wire_at < tls->wire.len) {
        size_t left = drips ? 1 : tls->wire.len - tls->wire_at;
        ssize_t sent =
            send(tls->fd, tls->wire.data + tls->wire_at, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        tls->wire_at += (size_t)sent;
        if (drips)
            break;
    }
    if (tls->wire_at == tls->wire.len)
        tls->wire.len = tls->wire_at = 0;
    return tls->wire.len > 0 || !tls->ending;
}

/* Returns whether bytes wait until the socket is writable. */
bool fake_tls_wants_write(const struct fake_tls *tls)
{
    bool floods = tls->profile.fault == FAKE_TLS_FLOOD && SSL_is_init_finished(tls->ssl);

    return tls->profile.fault != FAKE_TLS_DRIP_SLOWLY && (floods || tls->wire.len > 0);
}

/* Returns whether the socket is read. */
bool fake_tls_wants_read(const struct fake_tls *tls)
{
    return tls->profile.fault != FAKE_TLS_FLOOD || !SSL_is_init_finished(tls->ssl);
}

/* Returns the time after which the server calls fake_tls_flush() again; -1: none. */
int fake_tls_pause_ms(const struct fake_tls *tls)
{
    return tls->profile.fault == FAKE_TLS_DRIP_SLOWLY && tls->wire.len > 0 ? FAKE_TLS_DRIP_MS : -1;
}

/* ---- what arrives, and what is sent ---- */

/* Hands what has arrived to OpenSSL. Returns false if the connection has ended, with an error in
 * errno or, at an orderly end, 0. */
static bool feed(struct fake_tls *tls)
{
    char bytes[16384];
    ssize_t got;

    while ((got = recv(tls->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        if (tls->profile.fault == FAKE_TLS_PLAIN && !tls->ending) {
            fake_bytes_add(&tls->wire, tls->profile.bytes, strlen(tls->profile.bytes));
            tls->ending = true;
        }
        if (!tls->ending)
            MUST(BIO_write(tls->in, bytes, (int)got) == got);
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    errno = got == 0 ? 0 : errno;
    return false;
}

/* Receives as recv() does. */
ssize_t fake_tls_recv(struct fake_tls *tls, void *bytes, size_t size)
{
    bool goes_on = feed(tls);
    int error = errno;
    int got = tls->ending ? -1 : SSL_read(tls->ssl, bytes, (int)size);
    int reason = got > 0 || tls->ending ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, got);

    ERR_clear_error();
    pass_records(tls);
    if (got > 0)
        return got;
    if (reason == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (reason == SSL_ERROR_SSL)
        tls->ending = true; /* once the client has the alert */
    errno = goes_on ? EAGAIN : error;
    return goes_on || error != 0 ? -1 : 0;
}

/* Sends as send() does. */
ssize_t fake_tls_send(struct fake_tls *tls, const void *bytes, size_t len)
{
    int sent = -1;

    if (tls->wire.len == 0 && !tls->ending && SSL_is_init_finished(tls->ssl))
        sent = SSL_write(tls->ssl, bytes, (int)(len < 16384 ? len : 16384));
    ERR_clear_error();
    pass_records(tls);
    errno = EAGAIN;
    return sent > 0 ? sent : -1;
}
