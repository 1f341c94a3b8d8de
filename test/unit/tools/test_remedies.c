/* SPDX-License-Identifier: MIT
 * What `redlock nodes` advises about the texts of the library, and what it says if it could not
 * check a server. */
#include <stdlib.h>
#include <string.h>

#include "../../../tools/findings.h"
#include "redlock/redlock.h"
#include "suite.h"

static const struct {
    int cause;
    const char *text, *code, *advice; /* the advice has this part */
} REMEDIES[] = {
    {REDLOCK_CAUSE_TLS, "wrong certificate: it has \"10.0.0.1\" as a DNS name", "tls",
     "IP:ADDRESS"},
    {REDLOCK_CAUSE_TLS, "wrong certificate: it is for \"a\", not for \"b\"", "tls", "?sni=NAME"},
    {REDLOCK_CAUSE_TLS, "TLS: the server demands stronger ciphers", "tls", "openssl.cnf"},
    {REDLOCK_CAUSE_TLS, "the certificate is not from an issuer that is trusted", "tls",
     "intermediate"},
    {REDLOCK_CAUSE_CONNECT, "OpenSSL has failed on this machine: Too many open files", "connect",
     "this process"},
    {REDLOCK_CAUSE_DISCONNECT,
     "OpenSSL has failed on this machine: x; does the server require a "
     "certificate of the client?",
     "disconnect", "this process"},
    {REDLOCK_CAUSE_NO_INFO, "does not know INFO: it is a proxy", "no_info", "proxy"},
    {REDLOCK_CAUSE_NO_INFO, "does not report its identity", "no_info", "+info"},
    {REDLOCK_CAUSE_TIMEOUT, "no reply to the greeting", "unresponsive", "--connect-timeout"},
    {REDLOCK_CAUSE_TIMEOUT, "no connection in time", "unresponsive", "--connect-timeout"},
    {REDLOCK_CAUSE_DISCONNECT, "the server reads nothing, and too much waits", "unresponsive",
     "hangs"},
    {REDLOCK_CAUSE_DISCONNECT, "connection closed by the server", "disconnect", "server's log"},
};

/* The advice suits the text. */
START_TEST(remedy)
{
    const struct remedy *found = remedy_of(REMEDIES[_i].cause, REMEDIES[_i].text);

    ck_assert_str_eq(found->code, REMEDIES[_i].code);
    ck_assert_msg(strstr(found->advice, REMEDIES[_i].advice) != NULL, "%s", found->advice);
}
END_TEST

#define UNCHECKED "could not be checked: "

static const struct {
    int error;
    const char *why;
    int cause;
    const char *text;
} UNCHECKED_SERVERS[] = {
    {REDLOCK_ESYS, "no descriptor", REDLOCK_CAUSE_NO_SOCKET,
     UNCHECKED "this process has too few descriptors or threads"},
    {REDLOCK_ESYS, NULL, REDLOCK_CAUSE_NO_SOCKET,
     UNCHECKED "this process has too few descriptors or threads"},
    {REDLOCK_ESYS, "TLS: certificate /nfs/a.crt: Stale file handle", REDLOCK_CAUSE_TLS,
     UNCHECKED "TLS: certificate /nfs/a.crt: Stale file handle"},
    {REDLOCK_EINVAL, "TLS: certificate /a.crt: No such file or directory", REDLOCK_CAUSE_TLS,
     UNCHECKED "TLS: certificate /a.crt: No such file or directory"},
    {REDLOCK_ENOMEM, "", REDLOCK_CAUSE_NO_MEMORY, UNCHECKED "out of memory"},
};

/* Files that cannot be read for the moment are no lack of descriptors. */
START_TEST(server_that_could_not_be_checked)
{
    struct trouble trouble = {0};

    trouble_incomplete(&trouble, UNCHECKED_SERVERS[_i].error, UNCHECKED_SERVERS[_i].why);
    ck_assert(trouble.unchecked);
    ck_assert_int_eq(trouble.cause, UNCHECKED_SERVERS[_i].cause);
    ck_assert_str_eq(trouble.text, UNCHECKED_SERVERS[_i].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_remedies");
    TCase *tcase = tcase_create("remedies");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, remedy, 0, (int)(sizeof REMEDIES / sizeof REMEDIES[0]));
    tcase_add_loop_test(tcase, server_that_could_not_be_checked, 0,
                        (int)(sizeof UNCHECKED_SERVERS / sizeof UNCHECKED_SERVERS[0]));
    return suite_run(suite);
}
