/* SPDX-License-Identifier: MIT
 * TLS on a blocking socket, with OpenSSL. OpenSSL reads and writes memory only: pump_out() and
 * pump_in() move the bytes between it and the socket, so that a broken connection raises no SIGPIPE
 * and a handshake has a time limit.
 */
#include "server_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "clock.h"
#include "say.h"

/* Bytes that are moved at once. */
#define PIECE 16384
/* Size of the buffer for a name to verify: no host name has more than 255 bytes. */
#define NAME_SIZE 300

struct server_tls {
    int fd;          /* the socket; borrowed */
    SSL *ssl;        /* owned */
    BIO *in, *out;   /* what was received and what is to be sent; owned by `ssl` */
    uint64_t end_ns; /* CLOCK_BOOTTIME at which the handshake must be complete; 0: it is */
};

/* Sends all that OpenSSL has encrypted. Returns false with errno if that fails. */
static bool pump_out(struct server_tls *tls)
{
    char piece[PIECE];
    int len;

    while ((len = BIO_read(tls->out, piece, sizeof piece)) > 0) {
        for (int done = 0; done < len;) {
            ssize_t sent = send(tls->fd, piece + done, (size_t)(len - done), MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR)
                continue;
            if (sent < 0)
                return false;
            done += (int)sent;
        }
    }
    return true;
}

/* Waits until the socket is readable, at most until the end of the handshake's time. Returns false
 * with errno ETIMEDOUT if that has passed. */
static bool wait_readable(const struct server_tls *tls)
{
    struct pollfd poll_fd = {.fd = tls->fd, .events = POLLIN};

    while (boottime_ns() < tls->end_ns)
        if (poll(&poll_fd, 1, poll_timeout(boottime_ns(), tls->end_ns)) > 0)
            return true;
    errno = ETIMEDOUT;
    return false;
}

/* Receives bytes for OpenSSL. Returns as recv(). */
static ssize_t pump_in(struct server_tls *tls)
{
    char piece[PIECE];
    ssize_t len;

    if (tls->end_ns && !wait_readable(tls))
        return -1;
    do {
        len = recv(tls->fd, piece, sizeof piece, 0);
    } while (len < 0 && errno == EINTR);
    if (len > 0)
        BIO_write(tls->in, piece, (int)len);
    return len;
}

/* Refuses to give OpenSSL a passphrase, for which it would ask on the terminal. */
static int refuse_passphrase(char *buffer, int size, int writing, void *userdata)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)userdata;
    return -1;
}

/* Makes an OpenSSL object from the files of the settings. Returns NULL if that fails. */
static SSL_CTX *load(const redlock_tls_t *settings)
{
    SSL_CTX *native = SSL_CTX_new(TLS_client_method());
    const char *path = settings->cacert, *key = settings->key ? settings->key : settings->cert;
    struct stat found;
    bool folder = path && stat(path, &found) == 0 && S_ISDIR(found.st_mode);

    must(native);
    SSL_CTX_set_default_passwd_cb(native, refuse_passphrase);
    SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    if (settings->verify != REDLOCK_TLS_VERIFY_NONE)
        SSL_CTX_set_verify(native, SSL_VERIFY_PEER, NULL);
    /* openssl.cnf may permit TLS 1.3 only. */
    bool good = SSL_CTX_get_min_proto_version(native) >= TLS1_2_VERSION ||
                SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) == 1;
    if (path)
        good = good && SSL_CTX_load_verify_locations(native, folder ? NULL : path,
                                                     folder ? path : NULL) == 1;
    else if (settings->verify != REDLOCK_TLS_VERIFY_NONE)
        good = good && SSL_CTX_set_default_verify_paths(native) == 1;
    if (settings->cert)
        good = good && SSL_CTX_use_certificate_chain_file(native, settings->cert) == 1 &&
               SSL_CTX_use_PrivateKey_file(native, key, SSL_FILETYPE_PEM) == 1;
    if (good)
        return native;
    SSL_CTX_free(native);
    return NULL;
}

/* Copies the name to verify without the zone of an IPv6 address or the dot at the end of a name, as
 * the library does. A name of more than NAME_SIZE - 1 bytes is cut. */
static void copy_name(char to[NAME_SIZE], const char *name)
{
    size_t len = strcspn(name, "%");

    if (len > 1 && !name[len] && name[len - 1] == '.')
        len--;
    snprintf(to, NAME_SIZE, "%.*s", (int)len, name);
}

/* Returns true if the name is an IP address. */
static bool is_ip(const char *name)
{
    struct in6_addr address;

    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* Sets the name that the server is addressed by, and that its certificate must have. Returns false
 * if OpenSSL refuses it. */
static bool set_name(SSL *ssl, const redlock_tls_t *settings, const char *name)
{
    X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
    bool ip = is_ip(name);

    if (!ip && SSL_set_tlsext_host_name(ssl, name) != 1)
        return false;
    if (settings->verify != REDLOCK_TLS_VERIFY_FULL)
        return true;
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return ip ? X509_VERIFY_PARAM_set1_ip_asc(rules, name) == 1
              : X509_VERIFY_PARAM_set1_host(rules, name, 0) == 1;
}

/* Verifies after the handshake what OpenSSL has verified during it, because it may have skipped
 * that if an allocation has failed. */
static bool verify_again(SSL *ssl, const redlock_tls_t *settings, const char *name)
{
    unsigned flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;

    if (settings->verify == REDLOCK_TLS_VERIFY_NONE)
        return true;
    X509 *certificate = SSL_get_peer_certificate(ssl);
    bool good = certificate && SSL_get_verify_result(ssl) == X509_V_OK;
    if (good && settings->verify == REDLOCK_TLS_VERIFY_FULL)
        good = is_ip(name) ? X509_check_ip_asc(certificate, name, flags) == 1
                           : X509_check_host(certificate, name, 0, flags, NULL) == 1;
    X509_free(certificate);
    return good;
}

/* Makes the handshake. Returns NULL on success, else why it has failed; that is borrowed. */
static const char *shake_hands(struct server_tls *tls)
{
    for (;;) {
        int result = SSL_do_handshake(tls->ssl);
        if (!pump_out(tls))
            return strerror(errno);
        if (result == 1)
            return NULL;
        if (SSL_get_error(tls->ssl, result) != SSL_ERROR_WANT_READ)
            break;
        ssize_t len = pump_in(tls);
        if (len <= 0)
            return len < 0 ? strerror(errno) : "the server has closed the connection";
    }
    if (SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE &&
        SSL_get_verify_result(tls->ssl) != X509_V_OK)
        return X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl));
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    return why ? why : "unknown error";
}

/* Makes the TLS handshake on the socket and verifies the server. */
struct server_tls *server_tls_open(int fd, const redlock_tls_t *settings, const char *host,
                                   uint64_t timeout_ms, char error[LINK_ERROR_MAX])
{
    const char *why = NULL;
    char name[NAME_SIZE];
    struct server_tls *tls = must(calloc(1, sizeof *tls));

    copy_name(name, settings->sni ? settings->sni : host);
    ERR_clear_error();
    SSL_CTX *native = load(settings);
    tls->fd = fd;
    tls->end_ns = boottime_ns() + timeout_ms * NS_PER_MS;
    if (native) {
        tls->ssl = must(SSL_new(native));
        tls->in = must(BIO_new(BIO_s_mem()));
        tls->out = must(BIO_new(BIO_s_mem()));
        SSL_set_bio(tls->ssl, tls->in, tls->out);
        SSL_set_connect_state(tls->ssl);
        SSL_CTX_free(native); /* `ssl` has a reference of its own */
    }
    if (!native || !set_name(tls->ssl, settings, name)) {
        why = ERR_reason_error_string(ERR_peek_last_error());
        why = why ? why : "the settings cannot be used";
    } else {
        why = shake_hands(tls);
        if (!why && !verify_again(tls->ssl, settings, name))
            why = "the certificate of the server was not accepted";
    }
    ERR_clear_error();
    tls->end_ns = 0;
    if (!why)
        return tls;
    snprintf(error, LINK_ERROR_MAX, "TLS: %s", why);
    server_tls_close(tls);
    return NULL;
}

/* Frees the state of a connection. */
void server_tls_close(struct server_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

/* Encrypts and sends all bytes. */
bool server_tls_send(struct server_tls *tls, const char *bytes, size_t len)
{
    errno = EPROTO;
    return SSL_write(tls->ssl, bytes, (int)len) > 0 && pump_out(tls);
}

/* Waits for bytes and decrypts them. */
ssize_t server_tls_receive(struct server_tls *tls, char *buffer, size_t size)
{
    for (;;) {
        ERR_clear_error();
        int len = SSL_read(tls->ssl, buffer, (int)size);
        if (len > 0)
            return len;
        int reason = SSL_get_error(tls->ssl, len);
        if (reason == SSL_ERROR_ZERO_RETURN)
            return 0;
        if (reason != SSL_ERROR_WANT_READ) {
            errno = EPROTO;
            return -1;
        }
        if (!pump_out(tls)) /* a reply of OpenSSL, such as one to a key update */
            return -1;
        ssize_t got = pump_in(tls);
        if (got <= 0)
            return got;
    }
}

/* Returns the date of a certificate in seconds of Unix time; 0: it cannot be read. */
static int64_t unix_time_of(const ASN1_TIME *date)
{
    struct tm parts;

    return ASN1_TIME_to_tm(date, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

/* Adds what one certificate says. `first`: it is the first one of the file. */
static void add_certificate(struct certificates_read *all, X509 *certificate, bool first)
{
    int64_t from_s = unix_time_of(X509_get0_notBefore(certificate));
    int64_t expiry_s = unix_time_of(X509_get0_notAfter(certificate));

    if (first)
        all->not_for_clients = X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) != 1;
    if (from_s > all->valid_from_s)
        all->valid_from_s = from_s;
    if (expiry_s != 0 && (all->first_expiry_s == 0 || expiry_s < all->first_expiry_s))
        all->first_expiry_s = expiry_s;
    if (expiry_s > all->last_expiry_s)
        all->last_expiry_s = expiry_s;
}

/* Reads the certificates of the file, one after the other. */
struct certificates_read server_tls_read(const char *path)
{
    struct certificates_read all = {.first_expiry_s = 0};
    struct stat found;
    BIO *file = stat(path, &found) == 0 && S_ISREG(found.st_mode) ? BIO_new_file(path, "r") : NULL;
    X509 *certificate;

    for (bool first = true;
         file && (certificate = PEM_read_bio_X509_AUX(file, NULL, refuse_passphrase, NULL));
         first = false) {
        add_certificate(&all, certificate, first);
        X509_free(certificate);
    }
    BIO_free(file);
    ERR_clear_error();
    return all;
}
