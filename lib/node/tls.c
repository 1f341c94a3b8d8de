/* SPDX-License-Identifier: MIT
 * The TLS state of one connection: an SSL object of OpenSSL on a BIO of our own.
 *
 * A BIO is the pair of functions through which OpenSSL reads and writes. Ours works on the socket:
 * - bio_write() always accepts all bytes. It hands them to the kernel, and keeps what the kernel
 *   does not take in rl_tls.rest. So SSL_write() never has to be repeated with the same bytes.
 * - bio_read() calls recv() as often as rl_tls_permit() allows, and not again after a call that has
 *   returned less than it could: the kernel has nothing more then. Because reading ends with
 *   RL_TLS_AGAIN only when OpenSSL has no bytes left, the poller's report of the socket is enough.
 *
 * The thread may belong to a program that uses OpenSSL itself, and have errors of that program in
 * its queue of OpenSSL. The functions add none, and leave those alone. But OpenSSL itself empties
 * the queue at each step of a handshake, and when it reads a session ticket after one. */
#include "node/tls_parts.h"
#include "node/tls_records.h"
#include "platform/errno_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* The session of a server is dropped after this many handshakes in a row that were given up. By
 * default their time limits are 250 ms, 1 s and 4 s. */
#define GIVEN_UP_MAX 3

#define RECORD_MAX   ((size_t)16 << 10) /* most plaintext bytes of one record */
/* Most bytes that wait for the kernel: one record, and OpenSSL's replies to KeyUpdate messages of a
 * server that does not read. */
#define REST_MAX ((size_t)128 << 10)

struct rl_tls {
    SSL *ssl;
    const struct rl_mem *mem;
    struct rl_tls_server *server;
    unsigned generation; /* of the context when the connection began */
    int64_t expiry_s;    /* see rl_tls_expiry_s(); before that, of the session that is offered */
    int fd;              /* borrowed */
    char *rest;          /* encrypted bytes that the kernel has not taken yet */
    size_t rest_at;      /* where they begin */
    size_t rest_len;
    size_t rest_cap;
    struct rl_tls_records records; /* that were sent */
    unsigned permitted;            /* further calls of recv() */
    bool secured;                  /* the handshake is complete */
    bool starved;                  /* the last bio_read() of the present call had no bytes */
    bool ended;                    /* receiving: the socket has ended or failed */
    bool broken;         /* sending: `rest` could not be kept, or the socket does not take it */
    bool reset;          /* `broken`, because the server has closed or reset the connection */
    bool refused;        /* see rl_tls_is_refused() */
    bool has_wrong_name; /* the certificate does not have the name of the server */
    char text[RL_TEXT_MAX];
};

/* Notes why send() or recv() has failed, with `error` (an errno). The end by the server is
 * explained later: an alert may say why. */
static void note_lost(struct rl_tls *tls, int error)
{
    if (error != EPIPE && error != ECONNRESET && tls->text[0] == '\0')
        snprintf(tls->text, sizeof tls->text, "connection lost: %s", rl_errno_text(error));
}

/* Notes that send() has failed, with `error` (an errno), for another reason than a full buffer. */
static void note_broken(struct rl_tls *tls, int error)
{
    tls->broken = true;
    tls->reset = tls->reset || error == EPIPE || error == ECONNRESET;
    if (!tls->reset)
        note_lost(tls, error);
}

/* Hands the bytes that wait to the kernel. Returns false if the connection is broken. */
bool rl_tls_flush(struct rl_tls *tls)
{
    while (tls->rest_len > 0 && !tls->broken) {
        ssize_t sent =
            send(tls->fd, tls->rest + tls->rest_at, tls->rest_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            tls->rest_at += (size_t)sent;
            tls->rest_len -= (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            note_broken(tls, errno);
        }
    }
    return !tls->broken;
}

/* Appends bytes to those that wait. Returns false, with the reason in tls->text, without memory, or
 * if there are too many. */
static bool keep(struct rl_tls *tls, const char *bytes, size_t len)
{
    size_t needed = tls->rest_len + len;

    if (tls->rest_len == 0)
        tls->rest_at = 0;
    if (needed > REST_MAX) {
        snprintf(tls->text, sizeof tls->text, "the server reads nothing, and too much waits");
        return false;
    }
    if (tls->rest_at + needed > tls->rest_cap) {
        size_t cap = needed < 2 * tls->rest_len ? 2 * tls->rest_len : needed;
        char *grown = rl_realloc_array(tls->mem, NULL, cap, 1);
        if (grown == NULL) {
            snprintf(tls->text, sizeof tls->text, "out of memory");
            return false;
        }
        if (tls->rest_len > 0)
            memcpy(grown, tls->rest + tls->rest_at, tls->rest_len);
        rl_free(tls->mem, tls->rest);
        tls->rest = grown;
        tls->rest_cap = cap;
        tls->rest_at = 0;
    }
    memcpy(tls->rest + tls->rest_at + tls->rest_len, bytes, len);
    tls->rest_len = needed;
    return true;
}

/* Implements BIO_write(): accepts all bytes, unless the connection is broken. */
static int bio_write(BIO *bio, const char *bytes, int len)
{
    struct rl_tls *tls = BIO_get_data(bio);
    size_t done = 0, all = (size_t)len;

    BIO_clear_retry_flags(bio);
    while (tls->rest_len == 0 && done < all && !tls->broken) {
        ssize_t sent = send(tls->fd, bytes + done, all - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            done += (size_t)sent;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else if (errno != EINTR)
            note_broken(tls, errno);
    }
    if (done < all && !tls->broken && !keep(tls, bytes + done, all - done))
        tls->broken = true;
    return tls->broken ? -1 : len;
}

/* Implements BIO_read(): receives, as far as rl_tls_permit() allows. */
static int bio_read(BIO *bio, char *buffer, int size)
{
    struct rl_tls *tls = BIO_get_data(bio);
    ssize_t got = -1;

    BIO_clear_retry_flags(bio);
    tls->starved = false;
    if (tls->ended)
        return 0;
    if (tls->permitted > 0) {
        tls->permitted--;
        do {
            got = recv(tls->fd, buffer, (size_t)size, MSG_DONTWAIT);
        } while (got < 0 && errno == EINTR);
        tls->ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
        if (got < 0 && tls->ended)
            note_lost(tls, errno);
        if (got < size)
            tls->permitted = 0;
    }
    tls->starved = got < 0 && !tls->ended;
    if (tls->starved)
        BIO_set_retry_read(bio);
    return got > 0 ? (int)got : tls->ended ? 0 : -1;
}

/* Implements BIO_ctrl(): there is nothing to control, and a flush succeeds. */
static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* Makes the functions of the BIO. Returns NULL without memory. */
BIO_METHOD *rl_tls_bio_new(void)
{
    ERR_set_mark();
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "redlock");
    if (method != NULL &&
        (!BIO_meth_set_write(method, bio_write) || !BIO_meth_set_read(method, bio_read) ||
         !BIO_meth_set_ctrl(method, bio_ctrl))) {
        BIO_meth_free(method);
        method = NULL;
    }
    ERR_pop_to_mark();
    return method;
}

/* Returns when a certificate expires, in seconds of Unix time; 0: not known. */
static int64_t expiry_of(const X509 *certificate)
{
    struct tm date;

    return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &date) == 1 ? (int64_t)timegm(&date)
                                                                        : 0;
}

/* Notes the earliest date at which a certificate expires. A resumed session keeps the date that is
 * stored with it. Without verification the server chooses the other certificates of the chain. */
static void note_expiry(struct rl_tls *tls)
{
    bool verified = tls->server->spec->tls_settings.verify != RL_TLS_VERIFY_NONE;

    if (SSL_session_reused(tls->ssl))
        return;
    STACK_OF(X509) *chain = verified ? SSL_get0_verified_chain(tls->ssl) : NULL;
    X509 *certificate = SSL_get_peer_certificate(tls->ssl);
    tls->expiry_s = certificate != NULL ? expiry_of(certificate) : 0;
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t expiry_s = expiry_of(sk_X509_value(chain, i));
        tls->expiry_s = expiry_s < tls->expiry_s ? expiry_s : tls->expiry_s;
    }
    X509_free(certificate);
}

/* Keeps a session for the next connection to the server. Returns 1 if the reference was taken, or
 * 0. A session that was made with files which have been replaced since is not kept: it would be
 * resumed without a look at the issuers that are trusted now. */
int rl_tls_keep_session(SSL *ssl, SSL_SESSION *session)
{
    struct rl_tls *tls = SSL_get_app_data(ssl);

    if (tls->generation != rl_tls_context_generation(tls->server->context))
        return 0;
    note_expiry(tls); /* with TLS 1.2 the handshake is not complete yet */
    SSL_SESSION_free(tls->server->session);
    tls->server->session = session;
    tls->server->expiry_s = tls->expiry_s;
    tls->server->generation = tls->generation;
    tls->server->given_up = 0;
    return 1;
}

/* Forgets the session of the server. */
void rl_tls_server_done(struct rl_tls_server *server)
{
    SSL_SESSION_free(server->session);
    server->session = NULL;
    server->given_up = 0;
}

/* Decides whether OpenSSL goes on after it has verified one property of a certificate (`ok`), and
 * keeps in words why not. A reason that concerns the issuer or the dates goes before a wrong name,
 * because the names may be forged as long as the signature is not verified. So OpenSSL goes on
 * after a wrong name, and the certificate is refused when OpenSSL reports it as verified. */
int rl_tls_judge_certificate(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct rl_tls *tls = ssl != NULL ? SSL_get_app_data(ssl) : NULL;
    int error = X509_STORE_CTX_get_error(store);

    if (tls == NULL)
        return ok;
    if (!ok && !tls->has_wrong_name &&
        (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH)) {
        tls->has_wrong_name = true;
        return 1;
    }
    if (ok && tls->has_wrong_name && X509_STORE_CTX_get_error_depth(store) == 0)
        ok = 0;
    if (!ok && tls->text[0] == '\0') {
        rl_tls_explain_certificate(tls->text, store, tls->server);
        tls->refused = true;
    }
    return ok;
}

/* Returns the name to verify, without the zone of an IPv6 address or the dot at the end of a name.
 */
const char *rl_tls_name(const struct rl_tls_server *server, char *buffer, bool *ret_ip)
{
    const char *sni = server->spec->tls_settings.sni;
    const char *name = sni != NULL ? sni : server->spec->host;
    size_t len = strcspn(name, "%");
    struct in6_addr address;

    if (len > 1 && name[len] == '\0' && name[len - 1] == '.')
        len--;
    memcpy(buffer, name, len);
    buffer[len] = '\0';
    *ret_ip =
        inet_pton(AF_INET, buffer, &address) == 1 || inet_pton(AF_INET6, buffer, &address) == 1;
    return buffer;
}

/* Sets which name OpenSSL verifies, and sends it to the server unless it is an IP address. Only
 * names in subjectAltName count, and a wildcard stands for one whole label. */
static bool set_name(SSL *ssl, const struct rl_tls_server *server)
{
    char buffer[RL_HOST_MAX + 1];
    bool ip;
    const char *name = rl_tls_name(server, buffer, &ip);
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (!ip && SSL_set_tlsext_host_name(ssl, name) != 1)
        return false;
    if (server->spec->tls_settings.verify != RL_TLS_VERIFY_FULL)
        return true;
    return ip ? X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1
              : X509_VERIFY_PARAM_set1_host(param, name, 0) == 1;
}

/* Offers a copy of the session to the server, so that the session that is kept can be resumed
 * again: with TLS 1.3, OpenSSL makes the offered one unusable when the handshake is complete. The
 * next connection needs it if this one ends before it has read a new ticket, as many do when a
 * server is busy. Returns false without memory. */
static bool offer_session(SSL *ssl, SSL_SESSION *session)
{
    SSL_SESSION *copy = SSL_SESSION_dup(session);
    bool offered = copy != NULL && SSL_set_session(ssl, copy) == 1;

    SSL_SESSION_free(copy);
    return offered;
}

/* Makes the SSL object, with the name to verify and the session to resume. Returns false without
 * memory. */
static bool make_ssl(struct rl_tls *tls)
{
    struct rl_tls_server *server = tls->server;
    BIO *bio = NULL;

    tls->ssl = SSL_new(rl_tls_context_native(server->context));
    if (tls->ssl == NULL || SSL_set_app_data(tls->ssl, tls) != 1 || !set_name(tls->ssl, server) ||
        (bio = BIO_new(rl_tls_context_bio(server->context))) == NULL)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_connect_state(tls->ssl);
    /* With an expired certificate, the session would be refused at the end of the handshake,
     * although the server may have another certificate by now. */
    if (server->session != NULL &&
        (server->generation != tls->generation || server->expiry_s <= rl_tls_now_s()))
        rl_tls_server_done(server);
    tls->expiry_s = server->expiry_s;
    return server->session == NULL || offer_session(tls->ssl, server->session);
}

/* Begins TLS as a client on a connected socket. Returns NULL without memory. */
struct rl_tls *rl_tls_open(struct rl_tls_server *server, int fd)
{
    const struct rl_mem *mem = rl_tls_context_mem(server->context);
    struct rl_tls *tls = rl_alloc(mem, sizeof *tls);

    if (tls == NULL)
        return NULL;
    tls->mem = mem;
    tls->server = server;
    tls->generation = rl_tls_context_generation(server->context);
    tls->fd = fd;
    ERR_set_mark();
    if (!make_ssl(tls)) {
        snprintf(tls->text, sizeof tls->text, "out of memory");
        rl_tls_close(tls);
        tls = NULL;
    }
    ERR_pop_to_mark();
    return tls;
}

/* Decides whether the session of the server stays for the next connection. It goes if this one has
 * failed because of TLS, or has ended in its handshake. If the handshake was only given up for lack
 * of time, it stays, because resuming costs a busy server less, until GIVEN_UP_MAX handshakes in a
 * row were given up. A failure for another reason, which is a lack of memory, changes nothing. */
static void judge_session(struct rl_tls *tls)
{
    struct rl_tls_server *server = tls->server;

    if (tls->secured && !tls->refused)
        server->given_up = 0;
    else if (tls->refused || tls->ended || tls->broken)
        rl_tls_server_done(server);
    else if (tls->text[0] == '\0' && ++server->given_up == GIVEN_UP_MAX)
        rl_tls_server_done(server);
}

/* Frees the state of a connection, and notes what its failure may say about the session and the
 * certificates in use. */
void rl_tls_close(struct rl_tls *tls)
{
    if (tls == NULL)
        return;
    ERR_set_mark();
    /* Without it OpenSSL makes the session unusable, because no close_notify was sent. */
    if (tls->ssl != NULL)
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    judge_session(tls);
    if (tls->refused && tls->generation == rl_tls_context_generation(tls->server->context))
        rl_tls_context_doubt(tls->server->context);
    SSL_free(tls->ssl);
    ERR_pop_to_mark();
    rl_free(tls->mem, tls->rest);
    rl_free(tls->mem, tls);
}

/* Frees what OpenSSL knows nothing of. */
void rl_tls_abandon(struct rl_tls *tls)
{
    if (tls == NULL)
        return;
    rl_free(tls->mem, tls->rest);
    rl_free(tls->mem, tls);
}

/* Returns whether an OpenSSL call has failed only for lack of bytes from the server.
 * SSL_want_read() must not be used for that: it is also true after an alert of the server in a
 * handshake. The caller has set `starved` to false before the call. After a reset, the poller
 * reports the socket again, and the bytes that have arrived are read then. */
static bool is_starved(const struct rl_tls *tls)
{
    return tls->starved && (!tls->broken || tls->reset);
}

/* Notes why the connection has failed, if it is not known yet. Returns RL_TLS_FAILED. */
static enum rl_tls_result fail(struct rl_tls *tls)
{
    /* In a handshake OpenSSL has emptied the queue before, so its first error is the reason. Later
     * the queue may have errors of the program, and after a close_notify no others. */
    unsigned long code = !tls->secured                ? ERR_peek_error()
                         : SSL_in_init(tls->ssl) != 0 ? ERR_peek_last_error()
                                                      : 0;

    if (tls->text[0] != '\0')
        return RL_TLS_FAILED;
    if ((tls->ended || tls->broken) && !rl_tls_is_alert(code))
        code = 0; /* OpenSSL only reports that the stream has ended */
    rl_tls_explain_error(tls->text, tls->ssl, code, tls->secured, &tls->refused);
    return RL_TLS_FAILED;
}

/* Verifies at the end of the handshake what OpenSSL has verified during it, without relying on
 * state that an allocation failure may have changed; and the dates also of certificates whose
 * session was resumed. */
static bool verify_again(struct rl_tls *tls)
{
    const struct rl_tls_settings *settings = &tls->server->spec->tls_settings;
    unsigned flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
    char buffer[RL_HOST_MAX + 1];
    bool ip;
    const char *name = rl_tls_name(tls->server, buffer, &ip);

    note_expiry(tls);
    if (settings->verify == RL_TLS_VERIFY_NONE)
        return true;
    X509 *certificate = SSL_get_peer_certificate(tls->ssl);
    bool ok = certificate != NULL && SSL_get_verify_result(tls->ssl) == X509_V_OK &&
              tls->expiry_s > rl_tls_now_s();
    if (!ok) {
        long result = SSL_get_verify_result(tls->ssl);
        const char *why = result != X509_V_OK ? X509_verify_cert_error_string(result) : "expired";
        snprintf(tls->text, sizeof tls->text, "the certificate of the server was not accepted: %s",
                 certificate != NULL ? why : "there is none");
    } else if (settings->verify == RL_TLS_VERIFY_FULL) {
        ok = ip ? X509_check_ip_asc(certificate, name, flags) == 1
                : X509_check_host(certificate, name, 0, flags, NULL) == 1;
        if (!ok)
            rl_tls_explain_name(tls->text, certificate, tls->server);
    }
    tls->refused = tls->refused || !ok;
    X509_free(certificate);
    return ok;
}

/* Continues the handshake, and verifies the server at its end. */
enum rl_tls_result rl_tls_handshake(struct rl_tls *tls)
{
    enum rl_tls_result result = RL_TLS_OK;

    ERR_set_mark();
    tls->starved = false;
    if (SSL_do_handshake(tls->ssl) == 1) {
        if (!verify_again(tls))
            result = RL_TLS_FAILED;
        tls->secured = result == RL_TLS_OK;
    } else {
        result = is_starved(tls) ? RL_TLS_AGAIN : fail(tls);
    }
    ERR_pop_to_mark();
    return result;
}

/* Encrypts one record at most. Returns the plaintext bytes in it; 0: the kernel does not have the
 * last record yet; -1: the connection is broken. */
ssize_t rl_tls_send(struct rl_tls *tls, const char *bytes, size_t len)
{
    if (!rl_tls_flush(tls))
        return -1;
    if (tls->rest_len > 0)
        return 0;
    ERR_set_mark();
    int sent = SSL_write(tls->ssl, bytes, (int)(len < RECORD_MAX ? len : RECORD_MAX));
    if (sent <= 0 && !tls->reset)
        (void)fail(tls);
    ERR_pop_to_mark();
    if (sent <= 0)
        return -1;
    rl_tls_records_add(&tls->records, (size_t)sent);
    return sent;
}

/* Returns whether the server has closed or reset the connection, as sending has shown. */
bool rl_tls_is_reset(const struct rl_tls *tls)
{
    return tls->reset;
}

/* Returns whether bytes wait for the kernel. */
bool rl_tls_has_rest(const struct rl_tls *tls)
{
    return tls->rest_len > 0;
}

/* Returns the plaintext bytes of a record of which the kernel does not have all bytes. */
uint64_t rl_tls_held(const struct rl_tls *tls)
{
    return tls->rest_len > 0 ? rl_tls_records_last(&tls->records) : 0;
}

/* Returns how many of the last `unread` bytes the server executes although the connection ends. */
uint64_t rl_tls_reach(const struct rl_tls *tls, uint64_t unread)
{
    return rl_tls_records_reach(&tls->records, unread);
}

/* Permits `count` more calls of recv(). */
void rl_tls_permit(struct rl_tls *tls, unsigned count)
{
    tls->permitted = count;
}

/* Decrypts what has arrived, until the buffer is full or nothing is left. */
enum rl_tls_result rl_tls_receive(struct rl_tls *tls, char *buffer, size_t size, size_t *ret_len,
                                  bool *ret_more)
{
    enum rl_tls_result result = RL_TLS_OK;
    size_t len = 0;

    ERR_set_mark();
    while (len < size && result == RL_TLS_OK) {
        tls->starved = false;
        int got = SSL_read(tls->ssl, buffer + len, (int)(size - len));
        if (got > 0) {
            len += (size_t)got;
            if (tls->permitted == 0 && !SSL_has_pending(tls->ssl))
                result = RL_TLS_AGAIN; /* a further call would find nothing */
        } else if (is_starved(tls))
            result = RL_TLS_AGAIN;
        else
            result = fail(tls);
    }
    ERR_pop_to_mark();
    *ret_len = len;
    *ret_more = len > 0 && result != RL_TLS_AGAIN;
    return len > 0 ? RL_TLS_OK : result;
}

/* Returns why the connection has failed, in words. */
const char *rl_tls_text(const struct rl_tls *tls)
{
    return tls->text[0] != '\0' ? tls->text : "connection lost";
}

/* Returns whether TLS itself is the reason of the failure. */
bool rl_tls_is_refused(const struct rl_tls *tls)
{
    return tls->refused;
}

/* Returns the earliest date at which a certificate expires. */
int64_t rl_tls_expiry_s(const struct rl_tls *tls)
{
    return tls->expiry_s;
}
