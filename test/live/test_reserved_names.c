/* SPDX-License-Identifier: MIT
 * Names whose key is that of the fence record or of a line, and time budgets that are negative
 * numbers: refused with EINVAL and a message, without a request.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_acquire(),
 * live_release() and live_inspect() return the status of one call and keep its report.
 * live_check_works() acquires, extends and releases a lock, which must succeed. CHECK_STATUS()
 * compares two REDLOCK_* codes. From live_events.h: note_done() stores the result of an
 * asynchronous call in a struct outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define MAX_TTL_MS 1000 /* max_ttl of the clients */

/* Checks a refusal: EINVAL, and a report that contains the words. */
static void check_refusal(const char *what, int status, redlock_report_t *report, const char *words)
{
    ck_assert_msg(status == REDLOCK_EINVAL, "%s: %s", what, redlock_error_name(status));
    ck_assert_msg(report != NULL, "%s: no report", what);
    live_keep_report(report);
    const char *text = redlock_report_text(report);
    ck_assert_msg(strstr(text, words) != NULL, "%s: \"%s\" without \"%s\"", what, text, words);
}

/* Log function that copies the line to `userdata`, a buffer of 256 bytes. Only errors may be
 * logged. */
static void keep_line(int level, const char *message, void *userdata)
{
    ck_assert_int_eq(level, REDLOCK_LOG_ERROR);
    snprintf(userdata, 256, "%s", message);
}

/* Checks that all calls that would change the key of this name are refused. */
static void check_name_refused(const char *name, const char *words)
{
    redlock_opts_t opts = redlock_opts(500);
    const char *const list[] = {"another", name};
    redlock_t *rl = live.client;
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;

    int status = redlock_acquire(rl, name, &opts, &lock, &report);
    check_refusal("acquire", status, report, words);
    status = redlock_adopt(rl, name, "token", &opts, &lock, &report);
    check_refusal("adopt", status, report, words);
    status = redlock_release_token(rl, name, "token", &report);
    check_refusal("release by token", status, report, words);
    status = redlock_release_token_all(rl, list, 2, "token", &report);
    check_refusal("release all by token", status, report, words);
    status = redlock_break(rl, name, &report);
    check_refusal("break", status, report, words);
    opts.also = &list[1];
    opts.also_count = 1;
    status = redlock_acquire(rl, "another", &opts, &lock, &report);
    check_refusal("acquire several", status, report, words);
}

/* Checks that a permit of this semaphore is refused. */
static void check_permits_refused(const char *name, uint32_t permits, const char *words)
{
    redlock_opts_t opts = redlock_opts(500);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;

    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = permits;
    const int status = redlock_acquire(live.client, name, &opts, &lock, &report);
    check_refusal("permit", status, report, words);
}

/* Returns a configuration with this prefix of keys and this key of the fence record. */
static redlock_config_t *config_with_record(const char *prefix, const char *key)
{
    live.max_ttl_ms = MAX_TTL_MS;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_key_prefix(config, prefix), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_fence_key(config, key), REDLOCK_OK);
    return config;
}

/* A name whose key would be the fence record is refused by each function that writes, also as a
 * slot of a semaphore. Names with another key work. */
START_TEST(the_key_of_the_fence_record_is_refused)
{
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(500);

    live_connect();
    check_name_refused("redlock:fence", "'redlock:fence' is the key of the fence record");
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(cluster_count_keys(live.cluster, i), 0);
    CHECK_STATUS(live_inspect("redlock:fence"), REDLOCK_OK); /* only reads */
    live_disconnect();

    live.client = live_open(config_with_record("app:", "app:numbers{#2}"));
    check_name_refused("numbers{#2}", "choose another name");
    check_permits_refused("numbers", 3, "slot 2 of 'numbers'");
    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = 2; /* without slot 2 */
    CHECK_STATUS(redlock_acquire(live.client, "numbers", &opts, &lock, NULL), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    CHECK_STATUS(live_acquire("app:numbers{#2}", 500, 0, &lock), REDLOCK_OK); /* another key */
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A name whose key would be that of a line is refused by each function that writes, also with the
 * prefix, and as the name of a semaphore. Names that only look similar work. */
START_TEST(the_key_of_a_line_is_refused)
{
    static const char *const others[] = {"job{#q}x", "job{#Q}", "job{q}", "job#q}", "#q}"};
    redlock_lock_t *lock = NULL;

    live_connect();
    check_name_refused("job{#q}", "'job{#q}' is the key of a line");
    check_permits_refused("job{#q}", 3, "choose another name");
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(cluster_count_keys(live.cluster, i), 0);
    CHECK_STATUS(live_inspect("job{#q}"), REDLOCK_OK); /* only reads */
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CHECK_STATUS(live_acquire(others[i], 500, 0, &lock), REDLOCK_OK);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
    live_disconnect();

    live.client = live_open(config_with_record("app{#", "redlock:fence"));
    check_name_refused("q}", "'q}' is the key of a line");
    check_name_refused("job{#q}", "choose another name");
    CHECK_STATUS(live_acquire("q", 500, 0, &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* The key of the fence record cannot be that of a line, which a server would overwrite. */
START_TEST(the_fence_record_has_no_key_of_a_line)
{
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_fence_key(config, "numbers{#q}"), REDLOCK_EINVAL);
    ck_assert_ptr_nonnull(strstr(redlock_config_error(config), "the key of a line"));
    ck_assert_int_eq(redlock_config_set_fence_key(config, "#q}"), REDLOCK_OK);
    redlock_config_free(config);
}
END_TEST

/* A budget that looks like a negative number is refused with EINVAL by each function that takes
 * one, and logged. */
START_TEST(negative_budgets_are_refused)
{
    char line[256];
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_log(config, REDLOCK_LOG_ERROR, keep_line, line),
                     REDLOCK_OK);
    live.client = live_open(config);
    struct outcome outcome = OUTCOME;
    redlock_t *rl = live.client;
    const uint64_t negative = (uint64_t)-1000;
#define REFUSED_WITH_A_LINE(call)                                                                  \
    do {                                                                                           \
        line[0] = '\0';                                                                            \
        ck_assert_int_eq(call, REDLOCK_EINVAL);                                                    \
        ck_assert_msg(strstr(line, "a negative number") != NULL, "%s: \"%s\"", #call, line);       \
    } while (0)
    REFUSED_WITH_A_LINE(redlock_wait_ready(rl, negative));
    REFUSED_WITH_A_LINE(redlock_wait_ready_start(rl, negative, NULL, note_done, &outcome));
    REFUSED_WITH_A_LINE(redlock_init_fence_records(rl, negative));
    REFUSED_WITH_A_LINE(redlock_shutdown(rl, negative));
    ck_assert_uint_eq(outcome_calls(&outcome), 0);
    ck_assert_int_eq(redlock_wait_ready(rl, REDLOCK_WAIT_FOREVER), REDLOCK_OK);
    live_check_works(); /* it was not shut down */
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_reserved_names");
    live_add(suite, "record", the_key_of_the_fence_record_is_refused);
    live_add(suite, "line", the_key_of_a_line_is_refused);
    live_add(suite, "fence key", the_fence_record_has_no_key_of_a_line);
    live_add(suite, "budgets", negative_budgets_are_refused);
    live_start_servers();
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
