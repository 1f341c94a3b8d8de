/* SPDX-License-Identifier: MIT
 * Why a connection with TLS has failed or ended, in words, and which name the server must have.
 *
 * Uses tls_rig.h: the library's TLS over a pair of sockets to a server in the same thread, without
 * a node. The test is the program that uses the library: it leaves errors in the queue of OpenSSL.
 */
#include "tls_rig.h"

#include "node/tls_parts.h"
#include "platform/errno_text.h"
#include "platform/log.h"
#include "redlock/redlock.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

#define FOR_HOST    "wrong certificate: it is for \"" TLS_RIG_HOST "\", not for "
#define USE_NAME    "; use one of its names as address, or as sni"
#define NOT_TRUSTED "the certificate is not from an issuer that is trusted "
#define OWN_REASON  123 /* of the program's error */

static struct tls_rig *rig;

/* Fixture: makes a rig. */
static void setup(void)
{
    rig = tls_rig_new();
}

/* Fixture: frees the rig. */
static void teardown(void)
{
    tls_rig_done(rig);
}

/* Leaves only an error of the program in the queue of OpenSSL. */
static void leave_own_error(void)
{
    ERR_clear_error();
    ERR_put_error(ERR_LIB_USER, 0, OWN_REASON, __FILE__, __LINE__);
}

/* Checks that the queue has only the error of the program (`own`), or none. */
static void check_queue(bool own)
{
    unsigned long first = ERR_get_error();

    ck_assert_int_eq(ERR_GET_REASON(first), own ? OWN_REASON : 0);
    ck_assert_uint_eq(ERR_get_error(), 0);
}

/* The server closes in order, with close_notify; in the odd case the program has left an error. */
START_TEST(an_orderly_end_is_no_error_of_the_program)
{
    bool own = _i == 1;
    struct tls_link link = tls_rig_connect(rig);

    ck_assert_int_eq(tls_rig_receive(&link), RL_TLS_AGAIN);
    tls_rig_end_server(&link);
    if (own)
        leave_own_error();
    ck_assert_int_eq(tls_rig_receive(&link), RL_TLS_FAILED);
    ck_assert(!rl_tls_is_refused(link.client));
    ck_assert_str_eq(rl_tls_text(link.client), "connection closed by the server");
    check_queue(own);
    tls_rig_close(&link);
}
END_TEST

/* recv() fails for another reason than a reset by the server: the descriptor is no socket any more.
 */
START_TEST(a_connection_is_lost)
{
    struct tls_link link = tls_rig_connect(rig);
    char expected[RL_TEXT_MAX];
    int fds[2];

    tls_rig_end_server(&link);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_ge(dup3(fds[0], link.client_fd, O_CLOEXEC), 0);
    ck_assert_int_eq(tls_rig_receive(&link), RL_TLS_FAILED);
    snprintf(expected, sizeof expected, "connection lost: %s", rl_errno_text(ENOTSOCK));
    ck_assert_str_eq(rl_tls_text(link.client), expected);
    ck_assert(!rl_tls_is_refused(link.client));
    close(fds[0]);
    close(fds[1]);
    tls_rig_close(&link);
}
END_TEST

/* The server requires a certificate of the client, which it says after the client's handshake; in
 * the odd case the program has left an error. */
START_TEST(an_alert_is_the_reason)
{
    struct tls_link link = tls_rig_open(rig);

    SSL_set_verify(link.server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    ck_assert_int_eq(tls_rig_handshake(&link), RL_TLS_OK);
    if (_i == 1)
        leave_own_error();
    ck_assert_int_eq(tls_rig_receive(&link), RL_TLS_FAILED);
    ck_assert(rl_tls_is_refused(link.client));
    ck_assert_str_eq(
        rl_tls_text(link.client),
        "TLS: the server requires a certificate of the client; give one and its key (cert, key)");
    tls_rig_close(&link);
}
END_TEST

static const struct {
    const char *host, *sni; /* of the address; NULL: no sni */
    const char *sent;       /* the name that is sent to the server */
    const char *text;       /* the reason of the refusal; NULL: the server is accepted */
} NAMES[] = {
    {TLS_RIG_HOST, NULL, TLS_RIG_HOST, NULL},
    {TLS_RIG_HOST ".", NULL, TLS_RIG_HOST, NULL},
    {"127.0.0.1", TLS_RIG_HOST ".", TLS_RIG_HOST, NULL},
    {"127.0.0.1", NULL, NULL, FOR_HOST "\"127.0.0.1\"" USE_NAME},
    {TLS_RIG_HOST, "other.test.", "other.test", FOR_HOST "\"other.test\"" USE_NAME},
    {"a." TLS_RIG_HOST, NULL, "a." TLS_RIG_HOST, FOR_HOST "\"a." TLS_RIG_HOST "\"" USE_NAME},
};

/* Keeps the name that the client has sent in the array `arg`. */
static int note_name(SSL *ssl, int *alert, void *arg)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    (void)alert;
    snprintf(arg, RL_HOST_MAX + 1, "%s", name != NULL ? name : "none");
    return SSL_TLSEXT_ERR_OK;
}

/* A dot at the end of a name is part of neither the certificate nor the name that is sent. */
START_TEST(the_name_is_verified_without_its_last_dot)
{
    char sni[RL_HOST_MAX + 1], sent[RL_HOST_MAX + 1] = "";

    snprintf(rig->spec.host, sizeof rig->spec.host, "%s", NAMES[_i].host);
    snprintf(sni, sizeof sni, "%s", NAMES[_i].sni != NULL ? NAMES[_i].sni : "");
    rig->spec.tls_settings.sni = NAMES[_i].sni != NULL ? sni : NULL;
    SSL_CTX_set_tlsext_servername_callback(rig->native, note_name);
    SSL_CTX_set_tlsext_servername_arg(rig->native, sent);
    struct tls_link link = tls_rig_open(rig);
    enum rl_tls_result result = tls_rig_handshake(&link);
    if (NAMES[_i].text != NULL)
        ck_assert_str_eq(rl_tls_text(link.client), NAMES[_i].text);
    ck_assert_int_eq(result, NAMES[_i].text != NULL ? RL_TLS_FAILED : RL_TLS_OK);
    ck_assert(rl_tls_is_refused(link.client) == (NAMES[_i].text != NULL));
    ck_assert_str_eq(sent, NAMES[_i].sent != NULL ? NAMES[_i].sent : "none");
    tls_rig_close(&link);
}
END_TEST

/* The client supports TLS 1.3 only, as openssl.cnf may say, and the server TLS 1.2 only. */
START_TEST(no_common_version_is_the_reason)
{
    SSL_CTX *client = rl_tls_context_native(rig->server.context);

    ck_assert_int_eq(SSL_CTX_set_min_proto_version(client, TLS1_3_VERSION), 1);
    ck_assert_int_eq(SSL_CTX_set_max_proto_version(rig->native, TLS1_2_VERSION), 1);
    struct tls_link link = tls_rig_open(rig);
    ck_assert_int_eq(tls_rig_handshake(&link), RL_TLS_FAILED);
    ck_assert(rl_tls_is_refused(link.client));
    ck_assert_str_eq(rl_tls_text(link.client),
                     "TLS: the server does not support TLS 1.3, and openssl.cnf of this machine "
                     "permits no other version (MinProtocol); change one of them");
    tls_rig_close(&link);
}
END_TEST

#define WRONG     "wrong certificate: it is for "
#define AS_DNS    " as a DNS name; in subjectAltName, write an address as IP:..., not DNS:..."
#define LONG_NAME "node-0.servers-of-the-locks.production.svc.cluster.test"

static const struct {
    const char *names; /* subjectAltName of the certificate; NULL: it has none */
    const char *text;  /* the reason of the refusal of TLS_RIG_HOST */
} CERTIFICATES[] = {
    {"DNS:a.test,IP:10.0.0.1,IP:fe80::1,DNS:*.b_c-d.test", WRONG
     "\"a.test\", \"10.0.0.1\", \"fe80::1\", \"*.b_c-d.test\", not for \"server.test\"" USE_NAME},
    {"DNS:use verify=none;\n\x1b[1m(and \"restart\")",
     WRONG "\"use?verify?none????1m?and??restart??\", not for \"server.test\"" USE_NAME},
    {NULL, "wrong certificate: it has no DNS name or IP address in subjectAltName; \"server.test\" "
           "is needed"},
    {"email:a@b.test", "wrong certificate: it has no DNS name or IP address in subjectAltName; "
                       "\"server.test\" is needed"},
    {"DNS:" LONG_NAME ",DNS:" LONG_NAME,
     WRONG "\"" LONG_NAME "\", ..., not for \"server.test\"" USE_NAME},
    {"DNS:a.test,DNS:" LONG_NAME "." LONG_NAME,
     WRONG "\"a.test\", ..., not for \"server.test\"" USE_NAME},
    {"DNS:" LONG_NAME "." LONG_NAME,
     WRONG "\"" LONG_NAME
           ".node-0.servers-of-the-locks.production.svc.clu...\", not for \"server.test\""},
};

/* The names of a certificate are printed as a list of whole names in quotes. Bytes that no name of
 * a host has are not, because the server chooses them. */
START_TEST(the_names_of_the_certificate_are_listed)
{
    tls_rig_certify_as(rig, CERTIFICATES[_i].names);
    struct tls_link link = tls_rig_open(rig);

    ck_assert_int_eq(tls_rig_handshake(&link), RL_TLS_FAILED);
    ck_assert(rl_tls_is_refused(link.client));
    ck_assert_str_eq(rl_tls_text(link.client), CERTIFICATES[_i].text);
    tls_rig_close(&link);
}
END_TEST

static const struct {
    const char *names, *host, *text;
} ADDRESSES[] = {
    {"DNS:127.0.0.1", "127.0.0.1", "\"127.0.0.1\"" AS_DNS},
    {"DNS:a.test,DNS:FE80::1", "fe80::1%eth0", "\"fe80::1\"" AS_DNS},
    {"DNS:127.0.0.1", "127.0.0.2", NULL},
    {"DNS:127.0.0.1", TLS_RIG_HOST, NULL},
};

/* An address that a certificate has as a DNS name does not count, and the text says so. */
START_TEST(an_address_as_dns_name)
{
    char expected[RL_TEXT_MAX];

    tls_rig_certify_as(rig, ADDRESSES[_i].names);
    snprintf(rig->spec.host, sizeof rig->spec.host, "%s", ADDRESSES[_i].host);
    struct tls_link link = tls_rig_open(rig);
    ck_assert_int_eq(tls_rig_handshake(&link), RL_TLS_FAILED);
    if (ADDRESSES[_i].text != NULL)
        snprintf(expected, sizeof expected, "wrong certificate: it has %s", ADDRESSES[_i].text);
    else
        snprintf(expected, sizeof expected, WRONG "\"127.0.0.1\", not for \"%s\"" USE_NAME,
                 ADDRESSES[_i].host);
    ck_assert_str_eq(rl_tls_text(link.client), expected);
    tls_rig_close(&link);
}
END_TEST

/* Another key than that of the issuer has signed the certificate, which has a wrong name, too, or
 * in the odd case the right one. Its names are not printed. */
START_TEST(the_names_of_a_forged_certificate_are_not_listed)
{
    tls_rig_certify_as(rig, _i == 1 ? "DNS:" TLS_RIG_HOST : "DNS:call-this-number.test");
    X509 *forged = X509_dup(SSL_CTX_get0_certificate(rig->native));
    ck_assert_int_gt(X509_sign(forged, SSL_CTX_get0_privatekey(rig->native), EVP_sha256()), 0);
    ck_assert_int_eq(SSL_CTX_use_certificate(rig->native, forged), 1);
    X509_free(forged);
    struct tls_link link = tls_rig_open(rig);

    ck_assert_int_eq(tls_rig_handshake(&link), RL_TLS_FAILED);
    ck_assert(rl_tls_is_refused(link.client));
    ck_assert_str_eq(rl_tls_text(link.client),
                     NOT_TRUSTED "(wrong signature); cacert has another CA of the same name");
    tls_rig_close(&link);
}
END_TEST

static const struct {
    int error, depth;
    const char *text;
} REFUSALS[] = {
    {X509_V_ERR_EE_KEY_TOO_SMALL, 0, "the certificate was not accepted: " RL_TLS_SHORT_KEY},
    {X509_V_ERR_CA_KEY_TOO_SMALL, 1,
     "the certificate of the issuer was not accepted: " RL_TLS_SHORT_KEY},
    {X509_V_ERR_CA_MD_TOO_WEAK, 0, "the certificate was not accepted: " RL_TLS_WEAK_DIGEST},
    {X509_V_ERR_CA_MD_TOO_WEAK, 1,
     "the certificate of the issuer was not accepted: " RL_TLS_WEAK_DIGEST},
};

/* Errors of a certificate that no trusted issuer has signed. */
static const struct {
    int error;
    bool has_cacert;
    const char *file; /* in the directory of the system's issuers; NULL: it is empty */
    const char *text;
} ISSUERS[] = {
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, true, NULL,
     "(unknown CA); cacert has another CA, or the server's tls-cert-file lacks an intermediate "
     "certificate"},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, true, NULL,
     "(unknown CA); cacert has another CA, or the server's tls-cert-file lacks an intermediate "
     "certificate"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, true, NULL,
     "(self-signed); cacert has another certificate"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, true, NULL, "(unknown CA); cacert has another CA"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, false, "0123abcd.0",
     "(unknown CA); give its CA (cacert)"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, false, "0123abcd.0",
     "(self-signed); give its CA (cacert)"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, false, "0123abcd.0",
     "(unknown CA); give its CA (cacert), or add the intermediate certificate to the server's "
     "tls-cert-file"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, false, "ca.pem",
     "(unknown CA); this machine has no issuers: install ca-certificates, or give its CA (cacert)"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, false, NULL,
     "(unknown CA); this machine has no issuers: install ca-certificates, or give its CA (cacert)"},
};

/* The advice depends on whether issuers were given, and whether the system has some. */
START_TEST(no_trusted_issuer)
{
    char text[RL_TEXT_MAX] = "", expected[RL_TEXT_MAX + 60], file[192], dirs[192], dir[160];
    X509_STORE *issuers = X509_STORE_new();
    X509_STORE_CTX *store = X509_STORE_CTX_new();

    snprintf(dir, sizeof dir, "%s/system", rig->dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    snprintf(dirs, sizeof dirs, "/nowhere:%s", dir);
    snprintf(file, sizeof file, "%s/%s", dir, ISSUERS[_i].file != NULL ? ISSUERS[_i].file : "");
    if (ISSUERS[_i].file != NULL)
        ck_assert_int_eq(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    ck_assert_int_eq(setenv("SSL_CERT_DIR", dirs, 1), 0);
    rig->spec.tls_settings.cacert = ISSUERS[_i].has_cacert ? rig->issuers : NULL;
    ck_assert_int_eq(X509_STORE_CTX_init(store, issuers, NULL, NULL), 1);
    X509_STORE_CTX_set_error(store, ISSUERS[_i].error);
    rl_tls_explain_certificate(text, store, &rig->server);
    snprintf(expected, sizeof expected, NOT_TRUSTED "%s", ISSUERS[_i].text);
    ck_assert_str_eq(text, expected);
    X509_STORE_CTX_free(store);
    X509_STORE_free(issuers);
    unsetenv("SSL_CERT_DIR");
    (void)unlink(file);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* What OpenSSL reports about a certificate is said in words, which are not cut. */
START_TEST(what_is_wrong_with_a_certificate)
{
    X509_STORE_CTX *store = X509_STORE_CTX_new();
    char text[RL_TEXT_MAX] = "";

    ck_assert_ptr_nonnull(store);
    X509_STORE_CTX_set_error(store, REFUSALS[_i].error);
    X509_STORE_CTX_set_error_depth(store, REFUSALS[_i].depth);
    rl_tls_explain_certificate(text, store, &rig->server);
    ck_assert_str_eq(text, REFUSALS[_i].text);
    X509_STORE_CTX_free(store);
}
END_TEST

/* Implements rl_log.fn: keeps the message in the array `userdata` of RL_LOG_MAX bytes. */
static void keep_message(int level, const char *message, void *userdata)
{
    ck_assert_int_eq(level, REDLOCK_LOG_ERROR);
    snprintf(userdata, RL_LOG_MAX, "%s", message);
}

/* The log says once that it is about TLS. */
START_TEST(changed_files_that_cannot_be_used_are_logged)
{
    char message[RL_LOG_MAX] = "", expected[RL_LOG_MAX];
    FILE *file = fopen(rig->issuers, "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("x", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    rig->log = (struct rl_log){REDLOCK_LOG_ERROR, keep_message, message, NULL};
    tls_rig_reload(rig);
    snprintf(expected, sizeof expected,
             "TLS: certificate files have changed and cannot be used, so the earlier ones stay in "
             "use: certificates of issuers %s: ",
             rig->issuers);
    ck_assert_msg(strncmp(message, expected, strlen(expected)) == 0, "%s", message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tls_reasons");
    TCase *tcase = tcase_create("reasons");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, an_orderly_end_is_no_error_of_the_program, 0, 2);
    tcase_add_test(tcase, a_connection_is_lost);
    tcase_add_loop_test(tcase, an_alert_is_the_reason, 0, 2);
    tcase_add_test(tcase, no_common_version_is_the_reason);
    tcase_add_loop_test(tcase, the_name_is_verified_without_its_last_dot, 0,
                        (int)(sizeof NAMES / sizeof NAMES[0]));
    tcase_add_loop_test(tcase, the_names_of_the_certificate_are_listed, 0,
                        (int)(sizeof CERTIFICATES / sizeof CERTIFICATES[0]));
    tcase_add_loop_test(tcase, an_address_as_dns_name, 0,
                        (int)(sizeof ADDRESSES / sizeof ADDRESSES[0]));
    tcase_add_loop_test(tcase, the_names_of_a_forged_certificate_are_not_listed, 0, 2);
    tcase_add_loop_test(tcase, no_trusted_issuer, 0, (int)(sizeof ISSUERS / sizeof ISSUERS[0]));
    tcase_add_loop_test(tcase, what_is_wrong_with_a_certificate, 0,
                        (int)(sizeof REFUSALS / sizeof REFUSALS[0]));
    tcase_add_test(tcase, changed_files_that_cannot_be_used_are_logged);
    return suite_run(suite);
}
