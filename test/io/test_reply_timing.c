/* SPDX-License-Identifier: MIT
 * Correct replies that come late, once too often, in unusual pieces, or cut off at any byte. At
 * most the connection is lost, no reply is taken for that of another request, and no key stays.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdio.h>
#include <string.h>

/* The first reply counts, and the second one ends the connection. A release while two connections
 * are established anew may report too few replies, but the keys are deleted all the same. */
START_TEST(a_surplus_reply_ends_the_connection)
{
    static const char *const places[] = {"SET", "EVALSHA", "INFO", "CLIENT"};
    static const char *const surplus[] = {"+OK\r\n", ":1\r\n", "$-1\r\n", "*1000000000\r\n"};
    redlock_lock_t *lock = NULL;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.command = places[_i / 4],
                                                                  .times = 1,
                                                                  .fault = FAKE_SURPLUS,
                                                                  .bytes = surplus[_i % 4]});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    int status = three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), three_servers_text());
    status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK || status == REDLOCK_ENOQUORUM, "%s%s",
                  redlock_strerror(status), three_servers_text());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert(fake_redis_wait(three_servers.fake[i], "CLIENT SETNAME", 2, TIME_LIMIT_MS));
    three_servers_check_recovers("surplus");
}
END_TEST

/* A reply without a request ends the connection and does no other harm. */
START_TEST(a_reply_on_an_idle_connection_ends_it)
{
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    ck_assert(three_servers_wait_no_keys());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_push(three_servers.fake[i], "+OK\r\n");
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert(fake_redis_wait(three_servers.fake[i], "CLIENT SETNAME", 2, TIME_LIMIT_MS));
    three_servers_check_recovers("surplus while idle");
}
END_TEST

/* A late reply to a release is not taken for that to a later request. */
START_TEST(a_late_reply_to_a_release_does_no_harm)
{
    redlock_lock_t *lock = NULL;
    fake_redis_rule(three_servers.fake[0],
                    (struct fake_rule){.command = "EVALSHA", .times = 1, .fault = FAKE_GATE});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(three_servers_stats(0).timeouts > 0, TIME_LIMIT_MS));
    fake_redis_open_gate(three_servers.fake[0]);
    three_servers_check_recovers("late release");
    ck_assert_uint_eq(three_servers_stats(0).reconnects, 0);
}
END_TEST

START_TEST(replies_may_arrive_byte_by_byte)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.fault = FAKE_SPLIT});
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    for (int i = 0; i < 20; i++)
        three_servers_check_works();
    ck_assert(three_servers_wait_no_keys());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert_uint_eq(three_servers_stats(i).reconnects, 0);
}
END_TEST

/* A grant after the time limit is no vote. It is undone, and it is not taken for the reply to a
 * later request. */
START_TEST(a_late_grant_is_undone)
{
    redlock_lock_t *lock = NULL;
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    for (size_t i = 0; i < 2; i++)
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){.command = "SET", .times = 1, .fault = FAKE_GATE});
    three_servers_check_fails("late", REDLOCK_ENOQUORUM, 0);
    three_servers_check_failed(0, "late", TIMEOUT);
    three_servers_check_failed(1, "late", TIMEOUT);
    /* The server denies from now on, so that a stale +OK would be noticed. */
    fake_redis_put(three_servers.fake[0], "resource", "other", 0);
    fake_redis_put(three_servers.fake[1], "resource", "other", 0);
    fake_redis_open_gate(three_servers.fake[0]);
    fake_redis_open_gate(three_servers.fake[1]);
    ck_assert(three_servers_wait_all_vote());
    int status = three_servers_acquire(&lock, 0);
    ck_assert_msg(status == REDLOCK_ECONTENDED, "%s%s", redlock_strerror(status),
                  three_servers_text());
    ck_assert_uint_gt(three_servers_stats(0).replies_late, 0);
    ck_assert_uint_eq(three_servers_stats(0).reconnects, 0);
    fake_redis_remove(three_servers.fake[0], "resource");
    fake_redis_remove(three_servers.fake[1], "resource");
    three_servers_check_recovers("late");
}
END_TEST

/* The undo of a SET follows on the connection of the SET. */
START_TEST(an_undo_follows_its_set)
{
    char set[256], undo[256], token[128];
    unsigned set_connection = 0, undo_connection = 0;
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    fake_redis_put(three_servers.fake[1], "resource", "other", 0);
    fake_redis_put(three_servers.fake[2], "resource", "other", 0);
    three_servers_check_fails("denied", REDLOCK_ECONTENDED, 0);
    ck_assert(fake_redis_wait(three_servers.fake[0], "EVALSHA release", 1, TIME_LIMIT_MS));
    long set_at =
        fake_redis_find(three_servers.fake[0], "SET ", 0, set, sizeof set, &set_connection);
    long undo_at = fake_redis_find(three_servers.fake[0], "EVALSHA release", 0, undo, sizeof undo,
                                   &undo_connection);
    ck_assert_int_ge(set_at, 0);
    ck_assert_int_gt(undo_at, set_at);
    ck_assert_uint_eq(set_connection, undo_connection);
    ck_assert_int_eq(sscanf(set, "SET resource %127s NX PX", token), 1);
    ck_assert_ptr_nonnull(strstr(undo, token));
    fake_redis_remove(three_servers.fake[1], "resource");
    fake_redis_remove(three_servers.fake[2], "resource");
    three_servers_check_recovers("undo");
}
END_TEST

/* ---- the connection ends at each byte of the conversation ---- */

/* Returns how many bytes a correct server sends for a greeting, an acquisition and a release. */
static uint64_t measure_conversation(void)
{
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    ck_assert(three_servers_wait_no_keys());
    uint64_t sent = fake_redis_sent(three_servers.fake[0]);
    three_servers_disconnect();
    return sent;
}

START_TEST(one_connection_may_end_at_every_byte)
{
    uint64_t total = measure_conversation();
    ck_assert_uint_gt(total, 100);
    for (uint64_t at = (uint64_t)_i; at <= total; at += 8) {
        fake_redis_cut_after(three_servers.fake[0], at);
        three_servers_connect();
        three_servers_check_works();
        three_servers_check_works();
        three_servers_disconnect();
        fake_redis_cut_after(three_servers.fake[0], UINT64_MAX);
        fake_redis_flush(three_servers.fake[0]);
        ck_assert(fake_redis_wait_keys(three_servers.fake[1], 0, TIME_LIMIT_MS));
        ck_assert(fake_redis_wait_keys(three_servers.fake[2], 0, TIME_LIMIT_MS));
    }
}
END_TEST

/* Checks that at least two nodes have lost their connections; the third may not have replied when
 * two have failed. */
static void check_two_lost(void)
{
    unsigned lost = 0;
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (three_servers_node(i).vote != REDLOCK_VOTE_NONE)
            three_servers_check_failed(i, "close", LOST);
        lost += three_servers_node(i).vote == REDLOCK_VOTE_FAILED;
    }
    ck_assert_uint_ge(lost, 2);
}

/* All three connections end at this byte of the replies to a first acquisition. It may fail, with a
 * matching error. The next one works when the servers behave. */
START_TEST(all_connections_may_end_at_every_byte)
{
    redlock_lock_t *lock = NULL;
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){
                            .command = "SET", .times = 1, .fault = FAKE_CLOSE, .at = (size_t)_i});
    int status = three_servers_acquire(&lock, 0);
    if (_i < 5) {
        ck_assert_msg(status == REDLOCK_ENOQUORUM, "%s%s", redlock_strerror(status),
                      three_servers_text());
        check_two_lost();
    } else {
        ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), three_servers_text());
        (void)three_servers_release(lock);
    }
    three_servers_check_recovers("close");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_reply_timing");
    TCase *timing = three_servers_add_case(suite, "timing"),
          *ends = three_servers_add_case(suite, "ends");
    tcase_add_loop_test(timing, a_surplus_reply_ends_the_connection, 0, 16);
    tcase_add_test(timing, a_reply_on_an_idle_connection_ends_it);
    tcase_add_test(timing, a_late_reply_to_a_release_does_no_harm);
    tcase_add_test(timing, replies_may_arrive_byte_by_byte);
    tcase_add_test(timing, a_late_grant_is_undone);
    tcase_add_test(timing, an_undo_follows_its_set);
    tcase_add_loop_test(ends, one_connection_may_end_at_every_byte, 0, 8);
    tcase_add_loop_test(ends, all_connections_may_end_at_every_byte, 0, 6);
    return suite_run(suite);
}
