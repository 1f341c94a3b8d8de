/* SPDX-License-Identifier: MIT
 * Adopting a lock without its token is refused with a message and starts nothing, in particular no
 * acquisition. Needs no server. */
#include <redlock/redlock.h>

#include <string.h>

#include "suite.h"

static redlock_t *client;
static unsigned reports; /* calls of on_done() */

/* Fixture: creates a client of a server that does not exist. */
static void setup(void)
{
    redlock_config_t *config = NULL;
    reports = 0;
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, "unix:///nowhere/at/all"), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
}

/* Fixture: frees the client and checks that no operation has had a callback. */
static void teardown(void)
{
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
    ck_assert_uint_eq(reports, 0);
}

/* Counts the end of an operation; none may be started. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl, (void)status, (void)lock, (void)report, (void)userdata;
    reports++;
}

/* Checks that the client has neither attempts nor waiters. */
static void check_nothing_started(void)
{
    redlock_stats_t stats;
    ck_assert_int_eq(redlock_get_stats(client, &stats, sizeof stats), REDLOCK_OK);
    ck_assert_uint_eq(stats.attempts, 0);
    ck_assert_uint_eq(stats.waiting, 0);
}

static const char *const TOKENS[] = {NULL, ""};

START_TEST(adopt)
{
    const redlock_opts_t opts = redlock_opts(5000);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    redlock_report_info_t info;
    int status = redlock_adopt(client, "resource", TOKENS[_i], &opts, &lock, &report);
    ck_assert_str_eq(redlock_error_name(status), "REDLOCK_EINVAL");
    ck_assert_ptr_null(lock);
    ck_assert_ptr_nonnull(report);
    ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
    ck_assert_int_eq(info.status, REDLOCK_EINVAL);
    ck_assert_ptr_nonnull(strstr(redlock_report_text(report), "token is empty"));
    ck_assert_ptr_nonnull(strstr(redlock_report_text(report), "redlock_lock_token()"));
    redlock_report_free(report);
    check_nothing_started();
    ck_assert_int_eq(redlock_adopt(client, "resource", TOKENS[_i], &opts, &lock, NULL),
                     REDLOCK_EINVAL);
}
END_TEST

START_TEST(adopt_start)
{
    const redlock_opts_t opts = redlock_opts(5000);
    int status = redlock_adopt_start(client, "resource", TOKENS[_i], &opts, on_done, NULL);
    ck_assert_str_eq(redlock_error_name(status), "REDLOCK_EINVAL");
    check_nothing_started();
}
END_TEST

static Suite *adopt_without_token_suite(void)
{
    Suite *suite = suite_create("api_adopt_without_token");
    TCase *tcase = tcase_create("no token");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, adopt, 0, 2);
    tcase_add_loop_test(tcase, adopt_start, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run_nofork(adopt_without_token_suite());
}
