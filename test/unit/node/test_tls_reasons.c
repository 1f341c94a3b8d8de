/* SPDX-License-Identifier: MIT
 * Why a connection with TLS has failed or ended, in words, and which name the server must have.
 *
 * Uses tls_rig.h: the library's TLS over a pair of sockets to a server in the same thread, without
 * a node. The test is the program that uses the library: it leaves errors in the queue of OpenSSL.
 */
#include "tls_rig.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

#define OWN_REASON 123 /* of the program's error */

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
    ck_assert_str_eq(rl_tls_text(link.client),
                     "TLS: the server requires a certificate of the client; give cert and key");
    tls_rig_close(&link);
}
END_TEST

static const struct {
    const char *host, *sni; /* of the address; NULL: no sni */
    const char *sent;       /* the name that the server is told */
    const char *text;       /* the reason of the refusal; NULL: the server is accepted */
} NAMES[] = {
    {TLS_RIG_HOST, NULL, TLS_RIG_HOST, NULL},
    {TLS_RIG_HOST ".", NULL, TLS_RIG_HOST, NULL},
    {"127.0.0.1", TLS_RIG_HOST ".", TLS_RIG_HOST, NULL},
    {"127.0.0.1", NULL, NULL, "wrong certificate: it is for " TLS_RIG_HOST ", not for 127.0.0.1"},
    {TLS_RIG_HOST, "other.test.", "other.test",
     "wrong certificate: it is for " TLS_RIG_HOST ", not for other.test"},
    {"a." TLS_RIG_HOST, NULL, "a." TLS_RIG_HOST,
     "wrong certificate: it is for " TLS_RIG_HOST ", not for a." TLS_RIG_HOST},
};

/* Keeps the name that the server was told in the array `arg`. */
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

int main(void)
{
    Suite *suite = suite_create("node_tls_reasons");
    TCase *tcase = tcase_create("reasons");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, an_orderly_end_is_no_error_of_the_program, 0, 2);
    tcase_add_loop_test(tcase, an_alert_is_the_reason, 0, 2);
    tcase_add_loop_test(tcase, the_name_is_verified_without_its_last_dot, 0,
                        (int)(sizeof NAMES / sizeof NAMES[0]));
    return suite_run(suite);
}
