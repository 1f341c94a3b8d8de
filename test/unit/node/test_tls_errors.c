/* SPDX-License-Identifier: MIT
 * What an error of OpenSSL means, in words, and whether TLS itself is the reason. */
#include "node/tls_parts.h"
#include "platform/errno_text.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

#define NO_TLS "the server does not speak TLS on this port; use its tls-port"
#define NO_SIGNATURE                                                                               \
    "TLS: the server could not verify a signature of this client; use a certificate that the CA "  \
    "in its tls-ca-cert-file has signed"
#define INVALID "TLS: the server takes a message of this client for invalid; read its log"

static SSL_CTX *native;
static SSL *ssl; /* of the client */

/* Fixture: makes what the client has. */
static void setup(void)
{
    native = SSL_CTX_new(TLS_client_method());
    ck_assert_ptr_nonnull(native);
    ssl = SSL_new(native);
    ck_assert_ptr_nonnull(ssl);
    ck_assert_int_eq(SSL_set_min_proto_version(ssl, TLS1_2_VERSION), 1);
    ck_assert_int_eq(SSL_set_max_proto_version(ssl, 0), 1);
}

/* Fixture: frees it. */
static void teardown(void)
{
    SSL_free(ssl);
    SSL_CTX_free(native);
}

/* Returns the code of an error, as OpenSSL reports it: that of an errno has a form of its own. */
static unsigned long code_of(int library, int reason)
{
    ERR_clear_error();
    ERR_put_error(library, 0, reason, __FILE__, __LINE__);
    return ERR_get_error();
}

/* Returns the code of an alert of the server. */
static unsigned long alert(int number)
{
    return code_of(ERR_LIB_SSL, SSL_AD_REASON_OFFSET + number);
}

/* Explains an error. Checks that it is one of TLS, and that the text was not cut. */
static const char *explain(unsigned long code)
{
    static char text[RL_TEXT_MAX];
    bool refused = false;

    rl_tls_explain_error(text, ssl, code, false, &refused);
    ck_assert(refused);
    ck_assert_uint_lt(strlen(text), RL_TEXT_MAX - 1);
    return text;
}

static const struct {
    int library, reason;
    const char *text;
} ERRORS[] = {
    {ERR_LIB_SSL, SSL_R_WRONG_VERSION_NUMBER, NO_TLS},
    {ERR_LIB_SSL, SSL_R_HTTP_REQUEST, NO_TLS},
    {ERR_LIB_EC, SSL_R_HTTP_REQUEST, "TLS: bad signature"},
    {ERR_LIB_EVP, EVP_R_UNSUPPORTED_ALGORITHM, "TLS: unsupported algorithm"},
    {ERR_LIB_SSL, SSL_R_DH_KEY_TOO_SMALL,
     "TLS: the Diffie-Hellman parameters of the server are too short; make longer ones (its "
     "tls-dh-params-file)"},
    {ERR_LIB_SSL, SSL_R_NO_CIPHERS_AVAILABLE,
     "TLS: openssl.cnf of this machine permits no cipher; change its CipherString"},
    {ERR_LIB_SSL, SSL_R_NO_PROTOCOLS_AVAILABLE,
     "TLS: openssl.cnf of this machine permits neither TLS 1.2 nor TLS 1.3; change its MinProtocol "
     "or MaxProtocol"},
};

START_TEST(an_error_is_explained)
{
    ck_assert_str_eq(explain(code_of(ERRORS[_i].library, ERRORS[_i].reason)), ERRORS[_i].text);
}
END_TEST

/* Alerts by their numbers. */
static const struct {
    int number;
    const char *text;
} ALERTS[] = {
    {SSL_AD_UNEXPECTED_MESSAGE, INVALID},
    {SSL_AD_BAD_RECORD_MAC, INVALID},
    {SSL_AD_RECORD_OVERFLOW, INVALID},
    {SSL_AD_HANDSHAKE_FAILURE,
     "TLS: the server refuses the handshake: it may require a certificate of the client: give one "
     "and its key (cert, key); or no cipher is common: check tls-ciphers"},
    {SSL_AD_ILLEGAL_PARAMETER, INVALID},
    {SSL_AD_DECODE_ERROR, INVALID},
    {SSL_AD_DECRYPT_ERROR, NO_SIGNATURE},
    {SSL_AD_INSUFFICIENT_SECURITY,
     "TLS: the server demands stronger ciphers; change its tls-ciphers, or CipherString in "
     "openssl.cnf of this machine"},
    {SSL_AD_USER_CANCELLED, "TLS: the server has given up the handshake; read its log"},
    {SSL_AD_MISSING_EXTENSION, INVALID},
    {SSL_AD_UNRECOGNIZED_NAME, "TLS: the server does not know the name that it is addressed by; "
                               "give another one (sni)"},
    {SSL_AD_NO_APPLICATION_PROTOCOL,
     "TLS: the server demands another protocol than that of Redis (ALPN); use its tls-port"},
};

START_TEST(an_alert_is_explained)
{
    ck_assert_str_eq(explain(alert(ALERTS[_i].number)), ALERTS[_i].text);
}
END_TEST

/* The versions that openssl.cnf of the client permits; 0: the highest one. */
static const struct {
    int min, max;
    const char *text;
} VERSIONS[] = {
    {TLS1_2_VERSION, 0,
     "TLS: the server supports neither TLS 1.2 nor TLS 1.3; change its tls-protocols"},
    {TLS1_2_VERSION, TLS1_3_VERSION,
     "TLS: the server supports neither TLS 1.2 nor TLS 1.3; change its tls-protocols"},
    {TLS1_3_VERSION, 0,
     "TLS: the server does not support TLS 1.3, and openssl.cnf of this machine permits no other "
     "version (MinProtocol); change one of them"},
    {TLS1_2_VERSION, TLS1_2_VERSION,
     "TLS: the server does not support TLS 1.2, and openssl.cnf of this machine permits no other "
     "version (MaxProtocol); change one of them"},
};

/* The server refuses the versions of the client, or chooses another one. */
START_TEST(no_common_version)
{
    ck_assert_int_eq(SSL_set_min_proto_version(ssl, VERSIONS[_i].min), 1);
    ck_assert_int_eq(SSL_set_max_proto_version(ssl, VERSIONS[_i].max), 1);
    ck_assert_str_eq(explain(alert(SSL_AD_PROTOCOL_VERSION)), VERSIONS[_i].text);
    ck_assert_str_eq(explain(code_of(ERR_LIB_SSL, SSL_R_UNSUPPORTED_PROTOCOL)), VERSIONS[_i].text);
}
END_TEST

/* The reasons have the same numbers in other libraries of OpenSSL. */
START_TEST(an_error_of_another_library_is_not_of_the_server)
{
    static const int reasons[] = {SSL_R_WRONG_VERSION_NUMBER, SSL_R_UNSUPPORTED_PROTOCOL,
                                  SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE};

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        const char *text = explain(code_of(ERR_LIB_EC, reasons[i]));
        ck_assert_msg(strncmp(text, "TLS: ", 5) == 0 && strstr(text, "server") == NULL, "%s", text);
    }
}
END_TEST

/* A system call that has failed in OpenSSL is neither a fault of the server nor one of TLS. */
START_TEST(an_error_of_the_system_is_of_this_machine)
{
    char text[RL_TEXT_MAX] = "", expected[RL_TEXT_MAX];
    bool refused = true;

    snprintf(expected, sizeof expected, "OpenSSL has failed on this machine: %s",
             rl_errno_text(EMFILE));
    rl_tls_explain_error(text, ssl, code_of(ERR_LIB_SYS, EMFILE), _i == 1, &refused);
    ck_assert_str_eq(text, expected);
    ck_assert(!refused);
}
END_TEST

/* Nor is a lack of memory, in any library of OpenSSL. */
START_TEST(a_lack_of_memory_is_of_this_process)
{
    static const int libraries[] = {ERR_LIB_SSL, ERR_LIB_EVP, ERR_LIB_X509};
    char text[RL_TEXT_MAX] = "";
    bool refused = true;

    rl_tls_explain_error(text, ssl, code_of(libraries[_i], ERR_R_MALLOC_FAILURE), false, &refused);
    ck_assert_str_eq(text, "out of memory");
    ck_assert(!refused);
}
END_TEST

/* Only what the server has sent is an alert. */
START_TEST(which_errors_are_alerts)
{
    ck_assert(rl_tls_is_alert(alert(SSL_AD_HANDSHAKE_FAILURE)));
    ck_assert(rl_tls_is_alert(alert(SSL_AD_UNKNOWN_PSK_IDENTITY)));
    ck_assert(!rl_tls_is_alert(0));
    ck_assert(!rl_tls_is_alert(code_of(ERR_LIB_SSL, SSL_R_WRONG_VERSION_NUMBER)));
    ck_assert(!rl_tls_is_alert(code_of(ERR_LIB_SSL, ERR_R_MALLOC_FAILURE)));
    ck_assert(!rl_tls_is_alert(code_of(ERR_LIB_SSL, ERR_R_INTERNAL_ERROR)));
    ck_assert(!rl_tls_is_alert(code_of(ERR_LIB_EVP, SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE)));
}
END_TEST

/* The end of a connection is no error of TLS. */
START_TEST(an_end_without_an_error)
{
    char text[RL_TEXT_MAX] = "";
    bool refused = true;

    rl_tls_explain_error(text, ssl, 0, _i == 1, &refused);
    ck_assert_str_eq(text,
                     _i == 1 ? "connection closed by the server"
                             : "the server has ended the TLS handshake: does this port speak TLS?");
    ck_assert(!refused);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tls_errors");
    TCase *tcase = tcase_create("errors");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, an_error_is_explained, 0, (int)(sizeof ERRORS / sizeof ERRORS[0]));
    tcase_add_loop_test(tcase, an_alert_is_explained, 0, (int)(sizeof ALERTS / sizeof ALERTS[0]));
    tcase_add_loop_test(tcase, no_common_version, 0, (int)(sizeof VERSIONS / sizeof VERSIONS[0]));
    tcase_add_test(tcase, an_error_of_another_library_is_not_of_the_server);
    tcase_add_loop_test(tcase, an_error_of_the_system_is_of_this_machine, 0, 2);
    tcase_add_loop_test(tcase, a_lack_of_memory_is_of_this_process, 0, 3);
    tcase_add_test(tcase, which_errors_are_alerts);
    tcase_add_loop_test(tcase, an_end_without_an_error, 0, 2);
    return suite_run(suite);
}
