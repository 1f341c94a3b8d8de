/* SPDX-License-Identifier: MIT
 * Invalid arguments: EINVAL at once, a message that names the error and the remedy, and no request
 * to any server.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_acquire(), live_extend() and live_release() return
 * the status of one call and keep its report, which live_info() and live_text() read.
 * CHECK_STATUS() compares two REDLOCK_* codes. From live_events.h: note_done() stores the result
 * of an asynchronous call in a struct outcome, and outcome_wait() waits for it and returns its
 * status. */
#include "live_events.h"
#include "suite.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_TTL_MS 1000 /* max_ttl of the clients */

/* Creates live.client with MAX_TTL_MS, and resets the servers' counts of commands. */
static void connect_counted(void)
{
    live.max_ttl_ms = MAX_TTL_MS;
    live_connect();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT"));
}

/* Checks by the servers' counts that no command about a key was sent since connect_counted(). */
static void check_nothing_was_sent(void)
{
    static const char *const commands[] = {"set", "get", "pttl", "evalsha", "eval", "del"};
    for (unsigned i = 0; i < NODES; i++)
        for (size_t k = 0; k < sizeof commands / sizeof commands[0]; k++)
            ck_assert_msg(live_calls(i, commands[k]) == 0, "node %u was sent %s", i, commands[k]);
}

/* Checks a refusal: EINVAL, a report without nodes, and these words in its text. */
static void check_refusal(const char *what, int status, redlock_report_t *report, const char *words)
{
    redlock_node_report_t node;
    ck_assert_msg(status == REDLOCK_EINVAL, "%s: %s", what, redlock_error_name(status));
    ck_assert_msg(report != NULL, "%s: no report", what);
    live_keep_report(report);
    const char *text = redlock_report_text(report);
    ck_assert_msg(strstr(text, words) != NULL, "%s: \"%s\" without \"%s\"", what, text, words);
    ck_assert_int_eq(live_info().status, REDLOCK_EINVAL);
    ck_assert_uint_eq(live_info().nodes, 0);
    ck_assert_int_eq(redlock_report_get_node(report, 0, &node, sizeof node), REDLOCK_EINVAL);
}

/* Invalid options of an acquisition. */
struct bad_opts {
    const char *what; /* the error, for messages of the test */
    redlock_opts_t opts;
    const char *words[3]; /* what is wrong, its value or limit, what to do */
};

/* The field `size` of valid options, which each row begins with. */
#define SIZE .size = sizeof(redlock_opts_t)
/* One row for each invalid option. Every acquisition with it must be refused with the words. */
static const struct bad_opts bad_opts[] = {
    {"TTL of 0", {SIZE, .ttl_ms = 0}, {"opts.ttl_ms is 0 ms", "at least 10", "must be"}},
    {"TTL below the least", {SIZE, .ttl_ms = 9}, {"opts.ttl_ms is 9 ms", "at least 10", "must be"}},
    {"TTL above max_ttl_ms",
     {SIZE, .ttl_ms = MAX_TTL_MS + 1},
     {"opts.ttl_ms is 1001 ms", "max_ttl_ms, which is 1000", "equally in all clients"}},
    {"TTL far above", {SIZE, .ttl_ms = UINT64_MAX}, {"opts.ttl_ms", "max_ttl_ms", "shorten"}},
    {"hold_ms_max below validity_ms_min",
     {SIZE, .ttl_ms = 500, .hold_ms_max = 100, .validity_ms_min = 100},
     {"opts.hold_ms_max = 100", "validity_ms_min", "raise opts.hold_ms_max"}},
    {"validity_ms_min that cannot be",
     {SIZE, .ttl_ms = 500, .validity_ms_min = 495},
     {"opts.validity_ms_min = 495", "drift", "raise opts.ttl_ms"}},
    {"extend_at_ms that cannot be",
     {SIZE, .ttl_ms = 500, .extend_at_ms = 500},
     {"opts.extend_at_ms = 500", "drift", "raise opts.ttl_ms"}},
    {"margin_ms that cannot be",
     {SIZE, .ttl_ms = 500, .margin_ms = UINT64_MAX},
     {"opts.margin_ms", "drift", "raise opts.ttl_ms"}},
    {"negative wait_ms",
     {SIZE, .ttl_ms = 500, .wait_ms = (uint64_t)-2},
     {"opts.wait_ms", "a negative number", "REDLOCK_WAIT_FOREVER"}},
    {"wait_ms that is just negative",
     {SIZE, .ttl_ms = 500, .wait_ms = (uint64_t)INT64_MIN},
     {"opts.wait_ms", "9223372036854775808 ms", "use 0 to 9223372036854775807"}},
    {"negative hold_ms_max",
     {SIZE, .ttl_ms = 500, .hold_ms_max = UINT64_MAX},
     {"opts.hold_ms_max", "a negative number", "use 0 to 9223372036854775807"}},
    {"unknown flag", {SIZE, .ttl_ms = 500, .flags = 1u << 31}, {"flags", "0x80000000", "unknown"}},
    {"unknown flag with a known one",
     {SIZE, .ttl_ms = 500, .flags = REDLOCK_FLAG_AUTO_EXTEND | 1u << 30},
     {"flags", "0x40000001", "unknown bit"}},
    {"no size", {.ttl_ms = 500}, {"opts", "size", "redlock_opts(ttl_ms)"}},
    {"too small", {.size = 8, .ttl_ms = 500}, {"opts", "size", "redlock_opts(ttl_ms)"}},
};

/* Each row of bad_opts is refused by acquiring, adopting and starting, with all words of the row
 * in the message. No callback runs and no request is sent. */
START_TEST(invalid_options_are_refused)
{
    connect_counted();
    for (size_t i = 0; i < sizeof bad_opts / sizeof bad_opts[0]; i++) {
        const struct bad_opts *bad = &bad_opts[i];
        struct outcome outcome = OUTCOME;
        redlock_lock_t *lock = NULL;
        for (size_t k = 0; k < 3; k++) {
            redlock_report_t *report = NULL;
            int status = redlock_acquire(live.client, "bad", &bad->opts, &lock, &report);
            check_refusal(bad->what, status, report, bad->words[k]);
            status = redlock_adopt(live.client, "bad", "token", &bad->opts, &lock, &report);
            check_refusal(bad->what, status, report, bad->words[k]);
        }
        CHECK_STATUS(redlock_acquire_start(live.client, "bad", &bad->opts, note_done, &outcome),
                     REDLOCK_EINVAL);
        ck_assert_ptr_null(lock);
        ck_assert_uint_eq(outcome_calls(&outcome), 0);
    }
    check_nothing_was_sent();
}
END_TEST

/* Log function that copies the line to `userdata`, a buffer of 256 bytes. Only errors may be
 * logged. */
static void keep_line(int level, const char *message, void *userdata)
{
    ck_assert_int_eq(level, REDLOCK_LOG_ERROR);
    snprintf(userdata, 256, "%s", message);
}

/* Without a report, the message is written to the log. */
START_TEST(refusals_are_logged_without_a_report)
{
    char line[256];
    live.max_ttl_ms = MAX_TTL_MS;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_log(config, REDLOCK_LOG_ERROR, keep_line, line),
                     REDLOCK_OK);
    live.client = live_open(config);
    for (size_t i = 0; i < sizeof bad_opts / sizeof bad_opts[0]; i++) {
        const struct bad_opts *bad = &bad_opts[i];
        struct outcome outcome = OUTCOME;
        redlock_lock_t *lock = NULL;
        for (int blocking = 0; blocking < 2; blocking++) {
            line[0] = '\0';
            const int status =
                blocking
                    ? redlock_acquire(live.client, "bad", &bad->opts, &lock, NULL)
                    : redlock_acquire_start(live.client, "bad", &bad->opts, note_done, &outcome);
            ck_assert_int_eq(status, REDLOCK_EINVAL);
            ck_assert_msg(strncmp(line, "refused: ", 9) == 0 && strstr(line, bad->words[0]) != NULL,
                          "%s: \"%s\"", bad->what, line);
        }
    }
}
END_TEST

/* Options of a later version: fields that this version does not know must be 0. */
START_TEST(options_of_other_sizes_are_accepted)
{
    struct {
        redlock_opts_t opts;
        unsigned char more[24];
    } newer = {.opts = redlock_opts(500)};
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    connect_counted();
    newer.opts.size = sizeof newer;
    newer.more[23] = 1;
    int status = redlock_acquire(live.client, "newer", &newer.opts, &lock, &report);
    check_refusal("newer", status, report, "does not know");
    check_nothing_was_sent();
    newer.more[23] = 0;
    CHECK_STATUS(redlock_acquire(live.client, "newer", &newer.opts, &lock, NULL), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    /* Options of an earlier version, which ended after wait_ms: later fields are ignored. */
    newer.opts.size = offsetof(redlock_opts_t, validity_ms_min);
    newer.opts.flags = UINT32_MAX;
    CHECK_STATUS(redlock_acquire(live.client, "older", &newer.opts, &lock, NULL), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Returns a name of that length. */
static char *resource_of(size_t len)
{
    static char name[1024];
    memset(name, 'x', len);
    name[len] = '\0';
    return name;
}

/* Names that are missing, empty or longer than 512 bytes are refused by each function that takes
 * a name. A name of 512 bytes works. */
START_TEST(invalid_names_are_refused)
{
    static const struct {
        const char *what;
        size_t len; /* SIZE_MAX: NULL */
        const char *words;
    } rows[] = {
        {"NULL", SIZE_MAX, "resource is empty: give the name"},
        {"empty", 0, "resource is empty: give the name"},
        {"too long", 513, "resource is longer than 512 bytes: shorten"},
    };
    const redlock_opts_t opts = redlock_opts(500);
    connect_counted();
    redlock_t *rl = live.client;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *name = rows[i].len == SIZE_MAX ? NULL : resource_of(rows[i].len);
        redlock_lock_t *lock = NULL;
        redlock_report_t *report = NULL;
        struct outcome outcome = OUTCOME;
        int status = redlock_acquire(rl, name, &opts, &lock, &report);
        check_refusal(rows[i].what, status, report, rows[i].words);
        status = redlock_adopt(rl, name, "token", &opts, &lock, &report);
        check_refusal(rows[i].what, status, report, rows[i].words);
        status = redlock_release_token(rl, name, "token", &report);
        check_refusal(rows[i].what, status, report, rows[i].words);
        status = redlock_inspect(rl, name, &report);
        check_refusal(rows[i].what, status, report, rows[i].words);
        status = redlock_break(rl, name, &report);
        check_refusal(rows[i].what, status, report, rows[i].words);
        CHECK_STATUS(redlock_acquire_start(rl, name, &opts, note_done, &outcome), REDLOCK_EINVAL);
        CHECK_STATUS(redlock_inspect_start(rl, name, NULL, note_done, &outcome), REDLOCK_EINVAL);
    }
    check_nothing_was_sent();
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire(resource_of(512), 500, 0, &lock), REDLOCK_OK);
    ck_assert_uint_eq(strlen(redlock_lock_resource(lock, 0)), 512);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Tokens that are missing, empty or longer than 1024 bytes are refused. */
START_TEST(invalid_tokens_are_refused)
{
    const redlock_opts_t opts = redlock_opts(500);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    char longest[1026];
    memset(longest, 't', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    connect_counted();
    redlock_t *rl = live.client;
    int status = redlock_adopt(rl, "a", "", &opts, &lock, &report);
    check_refusal("empty token", status, report, "token is empty: give what redlock_lock_token()");
    status = redlock_adopt(rl, "a", NULL, &opts, &lock, &report);
    check_refusal("no token", status, report, "token is empty: give what redlock_lock_token()");
    status = redlock_adopt(rl, "a", longest, &opts, &lock, &report);
    check_refusal("long token", status, report, "token is longer than 1024 bytes");
    status = redlock_release_token(rl, "a", NULL, &report);
    check_refusal("no token", status, report, "token is empty: give what redlock_lock_token()");
    status = redlock_release_token(rl, "a", longest, &report);
    check_refusal("long token", status, report, "token is longer than 1024 bytes");
    check_nothing_was_sent();
}
END_TEST

/* Body for redlock_with() in calls that are refused, so that it never runs. */
static int unused_body(redlock_lock_t *lock, void *userdata)
{
    (void)lock;
    (void)userdata;
    return 0;
}

/* NULL for an argument that is needed: EINVAL, 0, NULL or "". The report is then NULL or says
 * what is missing, and never left as it was. */
START_TEST(missing_arguments_are_refused)
{
    const redlock_opts_t opts = redlock_opts(500);
    redlock_lock_t *lock = NULL;
    redlock_cancel_t *cancel = NULL;
    redlock_stats_t stats;
    redlock_node_stats_t node;
    redlock_report_t *report = NULL, *const untouched = (redlock_report_t *)&stats;
    connect_counted();
    redlock_t *rl = live.client;
    int status = redlock_acquire(rl, "a", &opts, NULL, &report);
    check_refusal("ret_lock", status, report, "ret_lock is NULL");
    status = redlock_acquire(rl, "a", NULL, &lock, &report);
    check_refusal("opts", status, report, "opts is missing");
    status = redlock_with(rl, "a", &opts, NULL, &report, NULL, NULL);
    check_refusal("body", status, report, "body is NULL");
    report = untouched; /* calls always write it */
    ck_assert_int_eq(redlock_acquire(NULL, "a", &opts, &lock, &report), REDLOCK_EINVAL);
    ck_assert_ptr_null(report);
    report = untouched;
    ck_assert_int_eq(redlock_extend(NULL, 0, &report), REDLOCK_EINVAL);
    ck_assert_ptr_null(report);
    report = untouched;
    ck_assert_int_eq(redlock_with(NULL, "a", &opts, NULL, &report, unused_body, NULL),
                     REDLOCK_EINVAL);
    ck_assert_ptr_null(report);
    ck_assert_int_eq(redlock_release(NULL, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_inspect(NULL, "a", NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_wait_ready(NULL, 0), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_shutdown(NULL, 0), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_acquire_start(rl, "a", &opts, NULL, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_acquire_start(NULL, "a", &opts, note_done, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_extend_start(NULL, 0, note_done, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_release_start(NULL, NULL, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_cancel_new(NULL, rl), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_cancel_new(&cancel, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_get_fd(NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_process(NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_get_stats(NULL, &stats, sizeof stats), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_get_stats(rl, NULL, sizeof stats), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_get_node_stats(rl, 0, NULL, sizeof node), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_get_node_stats(rl, SIZE_MAX, &node, sizeof node), REDLOCK_EINVAL);
    ck_assert_uint_eq(redlock_node_count(NULL), 0);
    ck_assert_int_eq(redlock_lock_check(NULL, 0), REDLOCK_EINVAL);
    ck_assert_uint_eq(redlock_lock_remaining_ms(NULL), 0);
    ck_assert_int_eq(redlock_lock_fd(NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_lock_detach(NULL), REDLOCK_EINVAL);
    ck_assert_ptr_null(redlock_lock_resource(NULL, 0));
    ck_assert_ptr_null(redlock_lock_token(NULL));
    ck_assert_str_eq(redlock_report_text(NULL), "");
    check_nothing_was_sent();
}
END_TEST

/* An extension or a delay above max_ttl, or an extension below 10 ms, is refused; the lock stays
 * held. */
START_TEST(invalid_times_are_refused)
{
    redlock_report_t *report = NULL;
    live.max_ttl_ms = MAX_TTL_MS;
    live_connect();
    redlock_lock_t *lock = live_lock("extended", MAX_TTL_MS);
    int status = redlock_extend(lock, MAX_TTL_MS + 1, &report);
    check_refusal("extension", status, report, "ttl_ms is 1001 ms, more than max_ttl_ms");
    status = redlock_extend(lock, 9, &report);
    check_refusal("extension", status, report, "must be at least 10");
    status = redlock_release_after(lock, MAX_TTL_MS + 1, &report);
    check_refusal("delay", status, report, "delay_ms is 1001 ms, more than max_ttl_ms");
    status = redlock_release_after(lock, UINT64_MAX, &report);
    check_refusal("delay", status, report, "delay_ms");
    CHECK_STATUS(live_extend(lock, MAX_TTL_MS), REDLOCK_OK); /* the lock is unaffected */
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A cancel object works only with the client for which it was made. */
START_TEST(a_cancel_of_another_client_is_refused)
{
    redlock_cancel_t *cancel = NULL;
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    redlock_opts_t opts = redlock_opts(500);
    live.max_ttl_ms = MAX_TTL_MS;
    redlock_t *other = live_open(live_config());
    /* Its greeting runs a script, which is not to be counted. */
    ck_assert(WAIT_UNTIL(live_voters(other) == NODES, TIME_LIMIT_MS));
    connect_counted();
    ck_assert_int_eq(redlock_cancel_new(&cancel, other), REDLOCK_OK);
    opts.cancel = cancel;
    const int status = redlock_acquire(live.client, "a", &opts, &lock, &report);
    check_refusal("cancel", status, report, "belongs to another client");
    redlock_cancel_free(cancel);
    ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
    check_nothing_was_sent();
}
END_TEST

/* A TTL of which the drift leaves no validity. */
START_TEST(a_ttl_below_the_drift_is_refused)
{
    redlock_lock_t *lock = NULL;
    redlock_t *client = NULL;
    live.max_ttl_ms = MAX_TTL_MS;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_drift(config, 500000, 100000), REDLOCK_OK);
    live.client = live_open(config);
    ck_assert_int_eq(live_acquire("drift", 200, 0, &lock), REDLOCK_EINVAL);
    ck_assert_msg(strstr(live_text(), "clock drift (200 ms)") != NULL, "%s", live_text());
    ck_assert_msg(strstr(live_text(), "raise opts.ttl_ms") != NULL, "%s", live_text());
    CHECK_STATUS(live_acquire("drift", 1000, 0, &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);

    live.max_ttl_ms = 200;
    config = live_config();
    ck_assert_int_eq(redlock_config_set_drift(config, 500000, 100000), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_EINVAL);
    ck_assert_ptr_null(client);
    ck_assert_msg(strstr(redlock_config_error(config), "drift") != NULL, "%s",
                  redlock_config_error(config));
    redlock_config_free(config);
}
END_TEST

/* Each function of the configuration refuses values out of range, and redlock_config_error()
 * says why. A configuration without nodes makes no client. */
START_TEST(invalid_configurations_are_refused)
{
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    ck_assert_int_eq(redlock_config_new(NULL, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_new(NULL, config), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_EINVAL);
    ck_assert_msg(strstr(redlock_config_error(config), "redlock_config_add_nodes()") != NULL, "%s",
                  redlock_config_error(config));
#define REFUSED(call, words)                                                                       \
    do {                                                                                           \
        ck_assert_int_eq(call, REDLOCK_EINVAL);                                                    \
        ck_assert_msg(strstr(redlock_config_error(config), words) != NULL, "%s: \"%s\"", #call,    \
                      redlock_config_error(config));                                               \
    } while (0)
    REFUSED(redlock_config_add_nodes(config, NULL), "redis://host:6379");
    REFUSED(redlock_config_add_nodes(config, ""), "redis://host:6379");
    REFUSED(redlock_config_add_nodes(config, "a:1,b:2,a:1"), "same server as number 1");
    REFUSED(redlock_config_add_nodes(config, "redis+sentinel://a"), "Sentinel is not supported");
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_EINVAL); /* all or none */
    REFUSED(redlock_config_set_mode(config, 0), "mode: 0");
    REFUSED(redlock_config_set_max_ttl_ms(config, 0), "use 10 to 86400000");
    REFUSED(redlock_config_set_max_ttl_ms(config, 86400001), "max_ttl");
    REFUSED(redlock_config_set_connect_timeout_ms(config, 0), "connect timeout");
    REFUSED(redlock_config_set_node_timeout_ms(config, 60001), "node timeout");
    REFUSED(redlock_config_set_retry_ms(config, 0, 10), "lower retry delay");
    REFUSED(redlock_config_set_retry_ms(config, 20, 10), "upper retry delay");
    REFUSED(redlock_config_set_drift(config, 500001, 0), "drift");
    REFUSED(redlock_config_set_owner(config, "two words"), "blank");
    REFUSED(redlock_config_set_key_prefix(config, NULL), "use \"\" for none");
    REFUSED(redlock_config_set_auth(config, "user", NULL), "without a password");
    REFUSED(redlock_config_set_log(config, 9, (redlock_log_fn)(uintptr_t)1, NULL), "log level");
    ck_assert_ptr_null(client);
    redlock_config_free(config);
    redlock_config_free(NULL);
    ck_assert_str_ne(redlock_config_error(NULL), "");
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *bad_input_suite(void)
{
    Suite *suite = suite_create("bad input");
    live_add(suite, "options", invalid_options_are_refused);
    live_add(suite, "words", refusals_are_logged_without_a_report);
    live_add(suite, "versions", options_of_other_sizes_are_accepted);
    live_add(suite, "resources", invalid_names_are_refused);
    live_add(suite, "tokens", invalid_tokens_are_refused);
    live_add(suite, "missing", missing_arguments_are_refused);
    live_add(suite, "times", invalid_times_are_refused);
    live_add(suite, "cancel", a_cancel_of_another_client_is_refused);
    live_add(suite, "drift", a_ttl_below_the_drift_is_refused);
    live_add(suite, "configuration", invalid_configurations_are_refused);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(bad_input_suite());
    live_stop_servers();
    return status;
}
