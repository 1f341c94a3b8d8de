/* SPDX-License-Identifier: MIT
 * Correct replies that come late, once too often, in unusual pieces, or cut off at any byte. At
 * most the connection is lost, no reply is taken for that of another request, and no key stays. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdio.h>
#include <string.h>

/* A second answer belongs to no question: that connection is of no use, the first answer was. Who
 * gives a lock back while two connections are being made anew may hear that too few have answered;
 * it is given back all the same. */
START_TEST(surplus_answers)
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

/* Nobody was asked anything, and yet an answer comes: the connection is closed, not the process. */
START_TEST(surplus_on_an_idle_connection)
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

/* The answer to a release that comes late does no harm to what follows. */
START_TEST(late_answer_to_release)
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

START_TEST(answers_byte_by_byte)
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

/* A grant that comes after the time limit is no vote; it is undone, and it is not taken for the
 * answer to a later question. */
START_TEST(late_answers)
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
    /* The third server denies from now on: a stale +OK would be told from a grant of it. */
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
START_TEST(undo_follows_its_set)
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

/* Bytes that an honest server sends for greeting, acquire and release. */
static uint64_t conversation(void)
{
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_works();
    ck_assert(three_servers_wait_no_keys());
    uint64_t sent = fake_redis_sent(three_servers.fake[0]);
    three_servers_disconnect();
    return sent;
}

START_TEST(close_at_every_byte)
{
    uint64_t total = conversation();
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

/* The attempt is over as soon as two have failed; the third may not have answered by then. */
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

/* All three lose the connection at that byte of the answers to a first acquisition: it may fail,
 * but with an error of its own, and the next one works once the servers behave. */
START_TEST(all_close_in_acquire)
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
    tcase_add_loop_test(timing, surplus_answers, 0, 16);
    tcase_add_test(timing, surplus_on_an_idle_connection);
    tcase_add_test(timing, late_answer_to_release);
    tcase_add_test(timing, answers_byte_by_byte);
    tcase_add_test(timing, late_answers);
    tcase_add_test(timing, undo_follows_its_set);
    tcase_add_loop_test(ends, close_at_every_byte, 0, 8);
    tcase_add_loop_test(ends, all_close_in_acquire, 0, 6);
    return suite_run(suite);
}
