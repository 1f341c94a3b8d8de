/* SPDX-License-Identifier: MIT
 * A caller's token that an acquisition cannot use is refused with a message and starts nothing.
 * Needs no server. */
#include <redlock/redlock.h>

#include <string.h>

#include "suite.h"

static redlock_t *client;
static unsigned reports; /* calls of on_done() */
static char too_long[1026];

/* Fixture: creates a client of a server that does not exist, and a token that is too long. */
static void setup(void)
{
    redlock_config_t *config = NULL;
    reports = 0;
    memset(too_long, 'x', sizeof too_long - 1);
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

/* Counts the ends of operations; none may be started. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl, (void)status, (void)lock, (void)report, (void)userdata;
    reports++;
}

static const struct refused {
    const char *name, *token;
    uint64_t wait_ms;
    uint32_t kind;
    const char *words;
} REFUSED[] = {
    {"wait", "token", 1, REDLOCK_KIND_EXCLUSIVE, "opts.wait_ms must be 0"},
    {"wait forever", "token", REDLOCK_WAIT_FOREVER, REDLOCK_KIND_EXCLUSIVE,
     "opts.wait_ms must be 0"},
    {"permit", "token", 0, REDLOCK_KIND_PERMIT, "a permit may take several"},
    {"empty", "", 0, REDLOCK_KIND_EXCLUSIVE, "opts.token is empty"},
    {"long", too_long, 0, REDLOCK_KIND_EXCLUSIVE, "longer than 1024 bytes"},
};
#define REFUSED_COUNT ((int)(sizeof REFUSED / sizeof REFUSED[0]))

/* Returns the options of this row. */
static redlock_opts_t opts_of(const struct refused *row)
{
    redlock_opts_t opts = redlock_opts(5000);
    opts.token = row->token;
    opts.wait_ms = row->wait_ms;
    opts.kind = row->kind;
    opts.permits = row->kind == REDLOCK_KIND_PERMIT ? 3 : 0;
    return opts;
}

/* Checks that a call was refused with these words in the report, and has started nothing. */
static void check_refusal(int status, redlock_report_t *report, const char *name, const char *words)
{
    redlock_stats_t stats;
    ck_assert_msg(status == REDLOCK_EINVAL, "%s: %s", name, redlock_error_name(status));
    ck_assert_msg(strstr(redlock_report_text(report), words) != NULL, "%s: %s", name,
                  redlock_report_text(report));
    redlock_report_free(report);
    ck_assert_int_eq(redlock_get_stats(client, &stats, sizeof stats), REDLOCK_OK);
    ck_assert_uint_eq(stats.attempts, 0);
    ck_assert_uint_eq(stats.waiting, 0);
}

START_TEST(acquire)
{
    const struct refused *row = &REFUSED[_i];
    const redlock_opts_t opts = opts_of(row);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    const int status = redlock_acquire(client, "resource", &opts, &lock, &report);
    check_refusal(status, report, row->name, row->words);
    ck_assert_ptr_null(lock);
    ck_assert_int_eq(redlock_acquire_start(client, "resource", &opts, on_done, NULL),
                     REDLOCK_EINVAL);
}
END_TEST

START_TEST(adopt)
{
    redlock_opts_t opts = redlock_opts(5000);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    opts.token = "token";
    const int status = redlock_adopt(client, "resource", "token", &opts, &lock, &report);
    check_refusal(status, report, "adopt", "an adoption takes the token as an argument");
    ck_assert_ptr_null(lock);
}
END_TEST

static Suite *caller_token_suite(void)
{
    Suite *suite = suite_create("api_caller_token");
    TCase *tcase = tcase_create("refused");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, acquire, 0, REFUSED_COUNT);
    tcase_add_test(tcase, adopt);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run_nofork(caller_token_suite());
}
