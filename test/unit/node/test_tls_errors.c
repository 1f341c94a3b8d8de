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

/* Returns the code of an error, as OpenSSL reports it: that of an errno has a form of its own. */
static unsigned long code_of(int library, int reason)
{
    ERR_clear_error();
    ERR_put_error(library, 0, reason, __FILE__, __LINE__);
    return ERR_get_error();
}

static const struct {
    int library, reason;
    const char *text;
    bool refused;
} ERRORS[] = {
    {ERR_LIB_SSL, SSL_R_WRONG_VERSION_NUMBER, NO_TLS, true},
    {ERR_LIB_SSL, SSL_R_HTTP_REQUEST, NO_TLS, true},
    {ERR_LIB_EC, SSL_R_HTTP_REQUEST, "TLS: bad signature", true},
    {ERR_LIB_EVP, EVP_R_UNSUPPORTED_ALGORITHM, "TLS: unsupported algorithm", true},
};

START_TEST(an_error_is_explained)
{
    char text[RL_TEXT_MAX] = "";
    bool refused = !ERRORS[_i].refused;

    rl_tls_explain_error(text, code_of(ERRORS[_i].library, ERRORS[_i].reason), false, &refused);
    ck_assert_str_eq(text, ERRORS[_i].text);
    ck_assert_int_eq(refused, ERRORS[_i].refused);
}
END_TEST

/* The reasons have the same numbers in other libraries of OpenSSL. */
START_TEST(an_error_of_another_library_is_not_of_the_server)
{
    static const int reasons[] = {SSL_R_WRONG_VERSION_NUMBER, SSL_R_UNSUPPORTED_PROTOCOL,
                                  SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE};
    char text[RL_TEXT_MAX] = "";
    bool refused;

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        rl_tls_explain_error(text, code_of(ERR_LIB_EC, reasons[i]), false, &refused);
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
    rl_tls_explain_error(text, code_of(ERR_LIB_SYS, EMFILE), _i == 1, &refused);
    ck_assert_str_eq(text, expected);
    ck_assert(!refused);
}
END_TEST

/* The end of a connection is no error of TLS. */
START_TEST(an_end_without_an_error)
{
    char text[RL_TEXT_MAX] = "";
    bool refused = true;

    rl_tls_explain_error(text, 0, _i == 1, &refused);
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
    tcase_add_loop_test(tcase, an_error_is_explained, 0, (int)(sizeof ERRORS / sizeof ERRORS[0]));
    tcase_add_test(tcase, an_error_of_another_library_is_not_of_the_server);
    tcase_add_loop_test(tcase, an_error_of_the_system_is_of_this_machine, 0, 2);
    tcase_add_loop_test(tcase, an_end_without_an_error, 0, 2);
    return suite_run(suite);
}
