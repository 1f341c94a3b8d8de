/* SPDX-License-Identifier: MIT
 * The one-line text of a report: the result, the number of servers that did the request, and the
 * number that was required.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_release()
 * returns the status of one call and keeps its report. WAIT_UNTIL(condition, ms) polls and returns
 * false after the deadline. LONG_TTL_MS is a TTL that no case reaches. */
#include "live_events.h"
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Checks the text of a report. "%" in the pattern stands for 3, 4 or 5, because a quorum may end an
 * operation before the last reply. A final "*" stands for what a release says about servers that
 * have not replied yet, if there are any. */
static void check_line(redlock_report_t *report, const char *pattern)
{
    live_keep_report(report);
    const char *line = redlock_report_text(report);
    bool all = true; /* all servers have replied */
    size_t i = 0;
    for (; pattern[i] != '\0' && pattern[i] != '*'; i++) {
        all = all && (pattern[i] != '%' || line[i] == '5');
        ck_assert_msg(pattern[i] == '%' ? line[i] >= '3' && line[i] <= '5' : line[i] == pattern[i],
                      "\"%s\" instead of \"%s\"", line, pattern);
    }
    bool more = pattern[i] == '*' && !all;
    ck_assert_msg(strncmp(line + i, "; on ", 5) == 0 ? more : !more && line[i] == '\0',
                  "\"%s\" instead of \"%s\"", line, pattern);
}

/* Inspects a resource, and checks the text of the report. */
static void check_inspected(const char *resource, const char *pattern)
{
    redlock_report_t *report = NULL;
    ck_assert_int_eq(redlock_inspect(live.client, resource, &report), REDLOCK_OK);
    check_line(report, pattern);
}

/* The text of the report of each successful operation. % stands for a number of servers. */
START_TEST(lines_of_success)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock;
    live_connect();
    check_inspected("free", "free: 5 of 5 servers replied");
    ck_assert_int_eq(redlock_break(live.client, "free", &report), REDLOCK_OK);
    check_line(report, "free: nothing to delete on 5 of 5 servers");
    ck_assert_int_eq(redlock_acquire(live.client, "a", &opts, &lock, &report), REDLOCK_OK);
    check_line(report, "acquired: % of 5 servers granted the lock, 3 required");
    ck_assert(WAIT_UNTIL(live_nodes_with("a") == NODES, TIME_LIMIT_MS));
    check_inspected("a", "held: 5 of 5 servers replied");
    ck_assert_int_eq(redlock_extend(lock, 0, &report), REDLOCK_OK);
    check_line(report, "extended: % of 5 servers extended the lock, 3 required");
    ck_assert_int_eq(redlock_release(lock, &report), REDLOCK_OK);
    check_line(report, "released: % of 5 servers do not have the lock any more, 3 required*");
    redlock_lock_free(lock);
    lock = live_lock("b", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("b") == NODES, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_break(live.client, "b", &report), REDLOCK_OK);
    check_line(report, "broken: deleted on % of 5 servers");
    (void)live_release(lock);
}
END_TEST

/* The text for a release and an adoption with a token that no key has. */
START_TEST(lines_of_a_lost_lock)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    static const char token[] = "0123456789012345678901234567890123456789";
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;
    live_connect();
    ck_assert_int_eq(redlock_release_token(live.client, "a", token, &report), REDLOCK_ELOST);
    check_line(report, "lock is no longer held: 0 of 5 servers released the lock, 3 required");
    ck_assert_int_eq(redlock_adopt(live.client, "a", token, &opts, &lock, &report), REDLOCK_ELOST);
    check_line(report, "lock is no longer held: 0 of 5 servers extended the lock, 3 required");
}
END_TEST

static char waiting_line[256]; /* the text of the first REDLOCK_EVENT_WAITING */
static atomic_bool has_waited; /* waiting_line is written */

/* Event function: keeps the text of the first REDLOCK_EVENT_WAITING. */
static void on_waiting(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)userdata;
    if (event->kind != REDLOCK_EVENT_WAITING || atomic_load(&has_waited))
        return;
    snprintf(waiting_line, sizeof waiting_line, "%s", redlock_report_text(event->report));
    atomic_store(&has_waited, true);
}

/* An acquisition that waits in the client's queue has asked no server yet. It waits until its event
 * has run. */
START_TEST(the_line_of_an_acquisition_in_the_queue)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    struct outcome outcome = OUTCOME;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.event_fn = on_waiting;
    live_connect();
    redlock_lock_t *first = live_lock("a", LONG_TTL_MS);
    CHECK_STATUS(redlock_acquire_start(live.client, "a", &opts, note_done, &outcome), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&has_waited), TIME_LIMIT_MS));
    ck_assert_str_eq(waiting_line,
                     "held by another client: 0 of 5 servers granted the lock, 3 required");
    CHECK_STATUS(live_release(first), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
}
END_TEST

/* Checks that the line begins with these words, and that it names the servers with the same error
 * together: all, or the first two if these have decided. */
static void check_refused(const redlock_report_t *report, const char *begin)
{
    const char *text = redlock_report_text(report), *rest = text + strlen(begin);

    ck_assert_msg(!strncmp(text, begin, strlen(begin)), "%s", text);
    ck_assert_msg(!strcmp(rest, "all 3 servers: connect: Connection refused") ||
                      !strcmp(rest, "127.0.0.1:1, 127.0.0.1:2: connect: Connection refused"),
                  "%s", text);
}

/* Nothing listens on these ports. */
START_TEST(lines_without_a_quorum)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_config_t *config = live_config_of("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert_int_eq(redlock_acquire(live.client, "a", &opts, &lock, &report), REDLOCK_ENOQUORUM);
    live_keep_report(report);
    check_refused(report, "no quorum: 0 of 3 servers granted the lock, 2 required; ");
    ck_assert_int_eq(redlock_inspect(live.client, "a", &report), REDLOCK_ENOQUORUM);
    live_keep_report(report);
    check_refused(report, "no quorum: 0 of 3 servers replied, 2 required; ");
    live_keep_report(NULL);
    redlock_free(live.client);
    live.client = NULL;
}
END_TEST

/* The text has the number that the caller gave. One more, for the first resource, would overflow.
 */
START_TEST(huge_numbers_of_resources_do_not_overflow)
{
    const char *also[] = {"b"};
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;
    char expected[160];
    live_connect();
    for (size_t count = SIZE_MAX; count > 1000; count = count == SIZE_MAX ? 1001 : 0) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.also = also;
        opts.also_count = count;
        ck_assert_int_eq(redlock_acquire(live.client, "a", &opts, &lock, &report), REDLOCK_EINVAL);
        snprintf(expected, sizeof expected, "%zu further resources: give at most 63", count);
        live_keep_report(report);
        ck_assert_str_eq(redlock_report_text(report), expected);
        opts.flags |= REDLOCK_FLAG_FENCE;
        ck_assert_int_eq(redlock_acquire(live.client, "a", &opts, &lock, &report), REDLOCK_EINVAL);
        live_keep_report(report);
        ck_assert_msg(strstr(redlock_report_text(report), " 0 ") == NULL, "%s",
                      redlock_report_text(report));
    }
}
END_TEST

/* A call in the wrong mode also has a report with its reason. */
START_TEST(the_line_of_a_wrong_mode)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;
    live.mode = REDLOCK_MODE_EMBEDDED;
    live_connect();
    ck_assert_int_eq(redlock_acquire(live.client, "a", &opts, &lock, &report), REDLOCK_EMODE);
    ck_assert_ptr_nonnull(report);
    ck_assert_str_eq(redlock_report_text(report), redlock_strerror(REDLOCK_EMODE));
    redlock_report_free(report);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *report_lines_suite(void)
{
    Suite *suite = suite_create("live_report_lines");
    live_add(suite, "what_went_well", lines_of_success);
    live_add(suite, "a_lock_that_is_not_held", lines_of_a_lost_lock);
    live_add(suite, "a_lock_in_the_queue", the_line_of_an_acquisition_in_the_queue);
    live_add(suite, "no_quorum", lines_without_a_quorum);
    live_add(suite, "as_many_resources_as_there_are_numbers",
             huge_numbers_of_resources_do_not_overflow);
    live_add(suite, "calls_out_of_place", the_line_of_a_wrong_mode);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(report_lines_suite());
    live_stop_servers();
    return status;
}
