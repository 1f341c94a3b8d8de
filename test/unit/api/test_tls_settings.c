/* SPDX-License-Identifier: MIT
 * Settings of TLS that redlock_config_set_tls() refuses, and what it says. */
#include "engine/params.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

/* The struct of a caller with a newer header: one field more. */
struct newer {
    redlock_tls_t tls;
    int more;
};

static redlock_config_t *config;

/* Fixture: makes a configuration. */
static void setup(void)
{
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
}

/* Fixture: frees it. */
static void teardown(void)
{
    redlock_config_free(config);
}

/* Checks that the settings are refused with this text. */
static void check_refused(const redlock_tls_t *tls, const char *text)
{
    ck_assert_int_eq(redlock_config_set_tls(config, tls), REDLOCK_EINVAL);
    ck_assert_str_eq(redlock_config_error(config), text);
}

/* Each mistake has a text of its own. */
START_TEST(a_wrong_struct)
{
    struct newer newer = {.tls = {.size = sizeof newer}, .more = 0};
    char expected[128];

    snprintf(expected, sizeof expected, "TLS: size is 5; set it to sizeof(redlock_tls_t): %zu",
             sizeof(redlock_tls_t));
    check_refused(&(redlock_tls_t){.size = 5}, expected);
    newer.more = 1;
    check_refused(&newer.tls, "TLS: the struct has a field that this version of the library does "
                              "not know; leave it zero, or use a newer library");
    check_refused(&(redlock_tls_t){.size = sizeof(redlock_tls_t), .verify = -1},
                  "TLS: verify is -1; use one of enum redlock_tls_verify, 0 to 2");
    check_refused(&(redlock_tls_t){.size = sizeof(redlock_tls_t), .verify = 3},
                  "TLS: verify is 3; use one of enum redlock_tls_verify, 0 to 2");
    newer.more = 0;
    if (rl_node_spec_tls_is_built())
        ck_assert_int_eq(redlock_config_set_tls(config, &newer.tls), REDLOCK_OK);
}
END_TEST

static const struct {
    const char *text, *flaw; /* NULL: it is accepted */
} TEXTS[] = {
    {"/a\nb", "contains a control byte"},
    {"/a\tb", "contains a control byte"},
    {"/a\x7f", "contains a control byte"},
    {"/a b/\xc3\xa9\xff", NULL},
};

/* Paths have the bytes that they may have in an address. */
START_TEST(bytes_of_a_path)
{
    static const char *const names[] = {"cacert", "cert", "key"};
    const char *text = TEXTS[_i].text;
    char expected[128];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const redlock_tls_t tls = {.size = sizeof tls,
                                   .cacert = i == 0 ? text : NULL,
                                   .cert = i == 1   ? text
                                           : i == 2 ? "/c"
                                                    : NULL,
                                   .key = i == 2 ? text : NULL};
        snprintf(expected, sizeof expected, "TLS: %s %s", names[i],
                 TEXTS[_i].flaw != NULL ? TEXTS[_i].flaw : "");
        if (TEXTS[_i].flaw != NULL)
            check_refused(&tls, expected);
        else
            ck_assert_int_eq(redlock_config_set_tls(config, &tls), REDLOCK_OK);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_tls_settings");
    TCase *tcase = tcase_create("settings");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_wrong_struct);
    if (rl_node_spec_tls_is_built())
        tcase_add_loop_test(tcase, bytes_of_a_path, 0, (int)(sizeof TEXTS / sizeof TEXTS[0]));
    return suite_run(suite);
}
