/* SPDX-License-Identifier: MIT
 * The server's end of a connection. */
#include "tls_peer.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICKET_DAYS 6 /* for so long the server resumes sessions; TLS 1.3 permits a week */

struct tls_peer tls_peer;

static SSL_CTX *native; /* common to all connections */

/* Implements the callback of SSL_CTX_set_keylog_callback(): keeps the secrets of the server. */
static void on_secret(const SSL *ssl, const char *line)
{
    unsigned char bytes[TLS_SECRET_BYTES];
    const bool early = strncmp(line, "SERVER_HANDSHAKE_TRAFFIC_SECRET ", 32) == 0;
    const char *hex = strrchr(line, ' ') + 1;

    (void)ssl;
    if ((!early && strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) != 0) ||
        strlen(hex) != 2 * sizeof bytes)
        return;
    for (unsigned i = 0; i < sizeof bytes; i++)
        MUST(sscanf(hex + (size_t)2 * i, "%2hhx", &bytes[i]) == 1);
    tls_secret_set(early ? &tls_peer.handshake : &tls_peer.application, bytes);
    tls_peer.secrets = early ? 1 : 2;
}

/* Accepts each certificate of a client. */
static int accept_client(X509_STORE_CTX *store, void *userdata)
{
    (void)store;
    (void)userdata;
    return 1;
}

/* Prepares what all connections have in common. */
void tls_peer_make(void)
{
    native = SSL_CTX_new(TLS_server_method());
    MUST(native != NULL);
    SSL_CTX_set_keylog_callback(native, on_secret);
    SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF); /* tickets need none */
    SSL_CTX_set_timeout(native, TICKET_DAYS * CERTIFICATE_DAY_S);
    SSL_CTX_set_cert_verify_callback(native, accept_client, NULL);
    MUST(SSL_CTX_set_session_id_context(native, (const unsigned char *)"fuzz", 4) == 1);
    MUST(SSL_CTX_set_ciphersuites(native, "TLS_AES_128_GCM_SHA256") == 1);
    MUST(SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) == 1);
    tls_peer.fd = -1;
}

/* Configures the end as `how` chooses. */
static void configure(SSL *ssl, unsigned how)
{
    static const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};

    MUST(SSL_set_max_proto_version(ssl, versions[how & 1]) == 1);
    if (how & 2)
        SSL_set_verify(ssl, SSL_VERIFY_PEER | (how & 4 ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       NULL);
    if (how & 8) /* the client begins with another one, and is asked for this */
        MUST(SSL_set1_groups_list(ssl, "P-256") == 1);
    if (how & 16)
        MUST(SSL_set_cipher_list(ssl, "ECDHE-ECDSA-AES128-SHA") == 1);
    if (how & 32)
        SSL_set_options(ssl, SSL_OP_NO_TICKET);
    MUST(SSL_set_num_tickets(ssl, how >> 6) == 1);
    tls_peer.wants_certificate = (how & 6) == 6;
}

/* Begins a connection. */
void tls_peer_begin(int fd, struct fuzz_input *input)
{
    struct fuzz_input none = {NULL, 0};
    const unsigned kind = input != NULL ? fuzz_below(input, TLS_CERTIFICATES) : 0;
    const unsigned how = input != NULL ? fuzz_byte(input) : 64;

    tls_peer_done();
    tls_peer.fd = fd;
    tls_peer.written = tls_peer.read = 0;
    tls_peer.failed = tls_peer.changed = tls_peer.forged = false;
    tls_peer.renegotiates = false;
    tls_peer.error = 0;
    tls_peer.secrets = tls_peer.count = 0;
    tls_peer.at = 0;
    tls_shown_init(&tls_peer.shown, kind, input != NULL ? input : &none);
    SSL *ssl = SSL_new(native);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    MUST(ssl != NULL && in != NULL && out != NULL);
    SSL_set_bio(ssl, in, out);
    SSL_set_accept_state(ssl);
    MUST(SSL_use_certificate(ssl, tls_peer.shown.native) == 1);
    MUST(SSL_use_PrivateKey(ssl, tls_peer.shown.own->key) == 1);
    if (tls_peer.shown.chain != NULL)
        MUST(SSL_add1_chain_cert(ssl, tls_peer.shown.chain->x509) == 1);
    configure(ssl, how);
    tls_peer.ssl = ssl;
}

/* Ends the connection. */
void tls_peer_done(void)
{
    SSL_free(tls_peer.ssl);
    tls_peer.ssl = NULL;
    tls_shown_done(&tls_peer.shown);
    tls_peer_hang_up(false);
}

/* Takes the record that OpenSSL has written next to the queue. Returns false if there is none. */
static bool take_record(void)
{
    BIO *out = SSL_get_wbio(tls_peer.ssl);
    struct tls_queued *record = &tls_peer.queue[tls_peer.count];

    if (BIO_pending(out) == 0)
        return false;
    MUST(tls_peer.count < TLS_QUEUE);
    MUST(BIO_read(out, record->bytes, TLS_HEADER) == TLS_HEADER);
    const size_t len = (size_t)record->bytes[3] << 8 | record->bytes[4];
    MUST(TLS_HEADER + len <= sizeof record->bytes);
    MUST(BIO_read(out, record->bytes + TLS_HEADER, (int)len) == (int)len);
    record->len = TLS_HEADER + len;
    record->sealed = false;
    tls_peer.count++;
    return true;
}

/* Takes all records that OpenSSL has written to the queue. `secrets`: how many of the server's
 * secrets were known before it wrote them. Those of the first flight have the first one. */
static void take_output(unsigned secrets)
{
    const bool early = secrets < 2;

    while (take_record()) {
        struct tls_queued *record = &tls_peer.queue[tls_peer.count - 1];
        struct tls_secret *secret = early ? &tls_peer.handshake : &tls_peer.application;
        record->sealed = tls_peer.secrets > 0 && record->bytes[0] == SSL3_RT_APPLICATION_DATA;
        if (record->sealed) {
            record->key = secret->next;
            secret->next.number++;
        }
    }
    ERR_clear_error();
}

/* Notes the error of OpenSSL that a call with this result has had, if it has had one. */
static void note_error(int result)
{
    const int kind = SSL_get_error(tls_peer.ssl, result);

    MUST(kind != SSL_ERROR_ZERO_RETURN); /* the client never sends close_notify */
    if (kind == SSL_ERROR_NONE || kind == SSL_ERROR_WANT_READ)
        return;
    tls_peer.failed = true;
    tls_peer.error = ERR_GET_REASON(ERR_peek_error());
    MUST(tls_peer.error != 0);
}

/* Reads the plaintext that has arrived, and checks that it is what the client has sent. */
static void read_plaintext(void)
{
    static unsigned char bytes[4096];
    int got;

    while ((got = SSL_read(tls_peer.ssl, bytes, sizeof bytes)) > 0)
        for (int i = 0; i < got; i++)
            MUST(bytes[i] == tls_peer_byte(false, tls_peer.read++));
    note_error(got);
}

/* Reads up to `limit` bytes of the client. */
size_t tls_peer_read(size_t limit)
{
    static char bytes[65536];
    const unsigned secrets = tls_peer.secrets;

    if (tls_peer.fd < 0 || tls_peer.failed || tls_peer.count > TLS_QUEUE_FULL)
        return 0;
    ssize_t got = recv(tls_peer.fd, bytes, limit < sizeof bytes ? limit : sizeof bytes, 0);
    if (got > 0)
        MUST(BIO_write(SSL_get_rbio(tls_peer.ssl), bytes, (int)got) == got);
    if (!SSL_is_init_finished(tls_peer.ssl))
        note_error(SSL_do_handshake(tls_peer.ssl));
    if (!tls_peer.failed && SSL_is_init_finished(tls_peer.ssl))
        read_plaintext();
    take_output(secrets);
    return got > 0 ? (size_t)got : 0;
}

/* Returns whether the server may write something of its own. */
static bool may_write(void)
{
    return tls_peer.fd >= 0 && !tls_peer.failed && tls_peer.count <= TLS_QUEUE_FULL &&
           SSL_is_init_finished(tls_peer.ssl);
}

/* Writes plaintext. */
void tls_peer_write(size_t len)
{
    static unsigned char bytes[TLS_CONTENT_MAX];

    if (!may_write())
        return;
    len = len < sizeof bytes ? len : sizeof bytes;
    for (size_t i = 0; i < len; i++)
        bytes[i] = tls_peer_byte(true, tls_peer.written + i);
    MUST(SSL_write(tls_peer.ssl, bytes, (int)len) == (int)len);
    tls_peer.written += len;
    take_output(tls_peer.secrets);
}

/* Asks for new keys, or changes only those of the server. */
static void update_keys(bool asks)
{
    if (SSL_version(tls_peer.ssl) != TLS1_3_VERSION)
        return;
    MUST(SSL_key_update(tls_peer.ssl,
                        asks ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
    MUST(SSL_do_handshake(tls_peer.ssl) == 1);
    take_output(2);
    tls_secret_update(&tls_peer.application);
}

/* Sends a session ticket. */
static void send_ticket(void)
{
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    if (SSL_version(tls_peer.ssl) == TLS1_3_VERSION && SSL_new_session_ticket(tls_peer.ssl) == 1)
        MUST(SSL_do_handshake(tls_peer.ssl) == 1);
#endif
    take_output(2);
}

/* Asks the client for another handshake, which TLS 1.3 does not have and the client refuses. */
static void renegotiate(void)
{
    if (SSL_version(tls_peer.ssl) != TLS1_2_VERSION)
        return;
    (void)SSL_renegotiate(tls_peer.ssl);
    (void)SSL_do_handshake(tls_peer.ssl);
    tls_peer.changed = tls_peer.renegotiates = true;
    take_output(tls_peer.secrets);
}

/* Sends a message of TLS itself. */
void tls_peer_tell(unsigned what)
{
    if (!may_write())
        return;
    switch (what % 5) {
    case 0:
    case 1:
        update_keys(what % 5 == 0);
        return;
    case 2:
        send_ticket();
        return;
    case 3:
        renegotiate();
        return;
    default:
        (void)SSL_shutdown(tls_peer.ssl);
        take_output(tls_peer.secrets);
        tls_peer.failed = true; /* writes no more, but the client may */
        return;
    }
}

/* Closes the socket, or its sending half. */
void tls_peer_hang_up(bool half)
{
    if (tls_peer.fd < 0)
        return;
    tls_peer.failed = true;
    if (half) {
        (void)shutdown(tls_peer.fd, SHUT_WR);
        return;
    }
    close(tls_peer.fd);
    tls_peer.fd = -1;
}
