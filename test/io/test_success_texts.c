/* SPDX-License-Identifier: MIT
 * The texts of reports with the status REDLOCK_OK. None contradicts the status: the servers that it
 * counts are as many as it requires, and it names the operation that has succeeded.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_wait() waits for
 * commands in its log. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* What the event function and the completion function of a case have received. */
static struct {
    char text[256];  /* of the last report with the status REDLOCK_OK */
    atomic_int kind; /* enum redlock_event_kind of the last event that was waited for; else 0 */
    atomic_bool done;
} seen;

/* Makes a server answer all commands that have this word with an error. */
static void refuse(size_t server, const char *word)
{
    fake_redis_rule(
        three_servers.fake[server],
        (struct fake_rule){.argument = word, .fault = FAKE_REPLY, .bytes = "-ERR no\r\n"});
}

/* Returns whether the client has received a grant from each server. */
static bool all_have_granted(void)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (three_servers_stats(i).granted == 0)
            return false;
    }
    return true;
}

/* Connects, acquires "resource" with these options, and waits for the grants of all servers. */
static redlock_lock_t *hold(const redlock_opts_t *opts)
{
    redlock_lock_t *lock = NULL;

    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(redlock_acquire(three_servers.client, "resource", opts, &lock, NULL),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(all_have_granted(), TIME_LIMIT_MS));
    return lock;
}

/* Checks the text of a report and frees the report. Each '#' of the pattern stands for 2 or 3
 * servers, because two replies of three are enough. A final '*' stands for any rest. */
static void check_text(redlock_report_t *report, const char *pattern)
{
    const char *text = redlock_report_text(report);
    size_t i = 0;

    for (; pattern[i] != '\0' && pattern[i] != '*'; i++)
        ck_assert_msg(pattern[i] == '#' ? text[i] == '2' || text[i] == '3' : text[i] == pattern[i],
                      "\"%s\" instead of \"%s\"", text, pattern);
    ck_assert_msg(pattern[i] == '*' || text[i] == '\0', "\"%s\" instead of \"%s\"", text, pattern);
    redlock_report_free(report);
}

/* One server has deleted the key, one has lost it before, and one does not reply. `_i`: 0: the
 * release deletes the keys; 1: it lets them expire after a delay. */
START_TEST(a_release_counts_the_servers_without_the_lock)
{
    const redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = hold(&opts);
    redlock_report_t *report = NULL;
    redlock_report_info_t info;
    char rest[64];
    unsigned long long left_ms;

    fake_redis_remove(three_servers.fake[0], "resource");
    fake_redis_rule(three_servers.fake[2],
                    (struct fake_rule){.argument = "resource", .fault = FAKE_SILENCE});
    const int status =
        _i == 0 ? redlock_release(lock, &report) : redlock_release_after(lock, TTL_MS / 2, &report);
    ck_assert_int_eq(status, REDLOCK_OK);
    ck_assert_int_eq(redlock_report_get_info(report, &info, sizeof info), REDLOCK_OK);
    ck_assert_uint_eq(info.granted, 1);
    redlock_lock_free(lock);
    if (_i != 0) {
        check_text(report, "released: 2 of 3 servers let the lock expire or do not have it, "
                           "2 required; on 1 more it expires later");
        return;
    }
    static const char start[] =
        "released: 2 of 3 servers do not have the lock any more, 2 required; "
        "on 1 more it is deleted later, or expires within ";
    const char *text = redlock_report_text(report);
    ck_assert_msg(strncmp(text, start, strlen(start)) == 0, "%s", text);
    ck_assert_msg(sscanf(text + strlen(start), "%llu %63[a-z]", &left_ms, rest) == 2, "%s", text);
    ck_assert_str_eq(rest, "ms");
    ck_assert_uint_gt(left_ms, 0);
    ck_assert_uint_le(left_ms, TTL_MS + TTL_MS / 50); /* the TTL and the drift */
    redlock_report_free(report);
}
END_TEST

/* The server that does not reply may still execute an extension that it has not replied to, so it
 * is not known when its key expires. */
START_TEST(a_release_states_no_time_that_is_not_known)
{
    const redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = hold(&opts);
    redlock_report_t *report = NULL;

    fake_redis_rule(three_servers.fake[2],
                    (struct fake_rule){.argument = "resource", .fault = FAKE_SILENCE});
    ck_assert_int_eq(redlock_extend(lock, 0, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_release(lock, &report), REDLOCK_OK);
    redlock_lock_free(lock);
    check_text(report, "released: 2 of 3 servers do not have the lock any more, 2 required; "
                       "on 1 more it is deleted later");
}
END_TEST

/* Stores the text of the completion. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl;
    (void)lock;
    (void)userdata;
    ck_assert_int_eq(status, REDLOCK_OK);
    snprintf(seen.text, sizeof seen.text, "%s", redlock_report_text(report));
    atomic_store(&seen.done, true);
}

/* The last round of the lock is an extension that has failed. The release of one of two users sends
 * nothing. `_i`: 1: the form that does not block. */
START_TEST(a_release_of_one_user_says_that_the_lock_is_held)
{
    const redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = hold(&opts);
    redlock_report_t *report = NULL;

    refuse(0, "resource");
    refuse(1, "resource");
    ck_assert_int_eq(redlock_extend(lock, 0, NULL), REDLOCK_ENOQUORUM);
    three_servers_behave();
    ck_assert_int_eq(redlock_lock_retain(lock), REDLOCK_OK);
    atomic_store(&seen.done, false);
    if (_i == 0) {
        ck_assert_int_eq(redlock_release(lock, &report), REDLOCK_OK);
        check_text(report, "still held: released for one of its 2 users");
    } else {
        ck_assert_int_eq(redlock_release_start(lock, on_done, NULL), REDLOCK_OK);
        ck_assert(WAIT_UNTIL(atomic_load(&seen.done), TIME_LIMIT_MS));
        ck_assert_str_eq(seen.text, "still held");
    }
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_int_eq(redlock_release(lock, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
}
END_TEST

/* `_i`: 1: the form that does not block. */
START_TEST(a_verification_says_how_many_have_the_lock)
{
    const redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = hold(&opts);
    redlock_report_t *report = NULL;

    atomic_store(&seen.done, false);
    if (_i == 0) {
        ck_assert_int_eq(redlock_verify(lock, &report), REDLOCK_OK);
        check_text(report, "verified: # of 3 servers have the lock, 2 required");
    } else {
        ck_assert_int_eq(redlock_verify_start(lock, NULL, on_done, NULL), REDLOCK_OK);
        ck_assert(WAIT_UNTIL(atomic_load(&seen.done), TIME_LIMIT_MS));
        ck_assert_ptr_nonnull(strstr(seen.text, "verified: "));
    }
    ck_assert_int_eq(redlock_release(lock, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
}
END_TEST

START_TEST(an_adoption_is_not_called_an_extension)
{
    const redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock = hold(&opts), *adopted = NULL;
    redlock_report_t *report = NULL;

    ck_assert_int_eq(redlock_adopt(three_servers.client, "resource", redlock_lock_token(lock),
                                   &opts, &adopted, &report),
                     REDLOCK_OK);
    check_text(report, "adopted: # of 3 servers extended the lock, 2 required");
    ck_assert_int_eq(redlock_lock_detach(lock), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert_int_eq(redlock_release(adopted, NULL), REDLOCK_OK);
    redlock_lock_free(adopted);
}
END_TEST

/* Stores the text of the event whose kind `userdata` points to. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl;
    if (event->kind != *(const int *)userdata)
        return;
    snprintf(seen.text, sizeof seen.text, "%s", redlock_report_text(event->report));
    atomic_store(&seen.kind, event->kind);
}

/* The last round of the lock is an extension that has failed. */
START_TEST(an_endangered_lock_is_not_called_extended)
{
    static const int endangered = REDLOCK_EVENT_ENDANGERED;
    redlock_opts_t opts = redlock_opts(TTL_MS);

    opts.margin_ms = TTL_MS - 3000; /* soon after the acquisition */
    opts.event_fn = on_event;
    opts.event_userdata = (void *)(uintptr_t)&endangered;
    atomic_store(&seen.kind, 0);
    redlock_lock_t *lock = hold(&opts);
    refuse(0, "resource");
    refuse(1, "resource");
    ck_assert_int_eq(redlock_extend(lock, 0, NULL), REDLOCK_ENOQUORUM);
    three_servers_behave();
    ck_assert(WAIT_UNTIL(atomic_load(&seen.kind) == endangered, TIME_LIMIT_MS));
    ck_assert_str_eq(seen.text, "endangered");
    ck_assert_int_eq(redlock_release(lock, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("success_texts");
    TCase *tcase = tcase_create("texts");

    tcase_add_checked_fixture(tcase, three_servers_setup, three_servers_teardown);
    tcase_add_loop_test(tcase, a_release_counts_the_servers_without_the_lock, 0, 2);
    tcase_add_test(tcase, a_release_states_no_time_that_is_not_known);
    tcase_add_loop_test(tcase, a_release_of_one_user_says_that_the_lock_is_held, 0, 2);
    tcase_add_loop_test(tcase, a_verification_says_how_many_have_the_lock, 0, 2);
    tcase_add_test(tcase, an_adoption_is_not_called_an_extension);
    tcase_add_test(tcase, an_endangered_lock_is_not_called_extended);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
