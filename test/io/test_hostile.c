/* SPDX-License-Identifier: MIT
 * Hostile and broken servers. Any invalid bytes of a server cause an error of that node and
 * nothing else. Each case is simulated by one of three servers (the lock must be acquired all the
 * same) and by two of three (the caller must learn within its budget which node failed and why).
 * Afterwards the servers behave, and the same client must work with all of them and have left no
 * key.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "hostile_replies.h"
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdlib.h>
#include <string.h>

#define HALF_GIGABYTE_KB (512 * 1024)

/* Makes the first `servers` servers reply to the command in this way. */
static void add_fault(size_t servers, const char *command, const struct hostile_reply *hostile)
{
    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.command = command,
                                                                  .fault = hostile->fault,
                                                                  .bytes = hostile->bytes,
                                                                  .len = hostile->len});
}

/* ---- replies to SET ---- */

START_TEST(one_server_with_invalid_replies_to_set_is_tolerated)
{
    const struct hostile_reply *hostile = &bad_replies[_i];
    redlock_lock_t *lock = NULL;
    three_servers_connect_for(hostile->causes);
    ck_assert(three_servers_wait_all_vote());
    add_fault(1, "SET", hostile);
    int status = three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(status == REDLOCK_OK, "%s: %s%s", hostile->name, redlock_strerror(status),
                  three_servers_text());
    ck_assert_uint_eq(three_servers_info().granted, 2);
    ck_assert(fake_redis_wait(three_servers.fake[0], "SET", 1, TIME_LIMIT_MS));
    status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s: release: %s%s", hostile->name,
                  redlock_strerror(status), three_servers_text());
    three_servers_check_recovers(hostile->name);
    /* A protocol error ends the connection. */
    if (hostile->causes == PROTOCOL)
        ck_assert(WAIT_UNTIL(three_servers_stats(0).reconnects > 0, TIME_LIMIT_MS));
}
END_TEST

START_TEST(two_servers_with_invalid_replies_to_set_fail_the_attempt)
{
    const struct hostile_reply *hostile = &bad_replies[_i];
    three_servers_connect_for(hostile->causes);
    ck_assert(three_servers_wait_all_vote());
    add_fault(2, "SET", hostile);
    three_servers_check_fails(hostile->name, REDLOCK_ENOQUORUM, 0);
    three_servers_check_failed(0, hostile->name, hostile->causes);
    three_servers_check_failed(1, hostile->name, hostile->causes);
    three_servers_check_recovers(hostile->name);
}
END_TEST

/* Returns twice the longest average round trip in milliseconds, rounded up. A call ends when less
 * than twice that of the second-fastest node is left of its wait budget, because no other attempt
 * fits in. */
static uint64_t reserve_ms(void)
{
    uint64_t longest_us = 0;
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        const uint64_t rtt_us = three_servers_stats(i).rtt_us;
        longest_us = rtt_us > longest_us ? rtt_us : longest_us;
    }
    return 2 * longest_us / 1000 + 1;
}

/* The attempts use the wait budget up and do not exceed it. On a busy machine one attempt may use
 * it up, so there are up to ten calls until one has two. */
START_TEST(two_such_servers_do_not_exceed_the_budget)
{
    const struct hostile_reply *hostile = &bad_replies[_i];
    three_servers_connect_for(hostile->causes);
    uint64_t wait_ms =
        wait_scaled_ms((hostile->causes & TIMEOUT) != 0 ? 3 * three_servers.node_time_ms : 300);
    ck_assert(three_servers_wait_all_vote());
    add_fault(2, "SET", hostile);
    for (unsigned calls = 0; calls == 0 || (three_servers_info().attempts == 1 && calls < 10);
         calls++) {
        const uint64_t start_ms = wait_now_ms(), before_ms = reserve_ms();
        three_servers_check_fails(hostile->name, REDLOCK_ENOQUORUM, wait_ms);
        const uint64_t took_ms = wait_now_ms() - start_ms, after_ms = reserve_ms();
        /* Replies during the call change the averages, so the longer reserve counts. */
        ck_assert_uint_ge(took_ms + (before_ms > after_ms ? before_ms : after_ms), wait_ms);
    }
    ck_assert_uint_gt(three_servers_info().attempts, 1);
    ck_assert_int_ne(three_servers_node(0).cause, REDLOCK_CAUSE_NONE);
    ck_assert_int_ne(three_servers_node(1).cause, REDLOCK_CAUSE_NONE);
    three_servers_check_recovers(hostile->name);
}
END_TEST

/* ---- replies to the release ---- */

START_TEST(one_server_with_invalid_replies_to_a_release_is_tolerated)
{
    const struct hostile_reply *hostile = &bad_replies[_i];
    redlock_lock_t *lock = NULL;
    three_servers_connect_for(hostile->causes);
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    add_fault(1, "EVALSHA", hostile);
    int status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s: %s%s", hostile->name, redlock_strerror(status),
                  three_servers_text());
    three_servers_check_recovers(hostile->name);
}
END_TEST

START_TEST(two_servers_with_invalid_replies_fail_the_release)
{
    const struct hostile_reply *hostile = &bad_replies[_i];
    redlock_lock_t *lock = NULL;
    three_servers_connect_for(hostile->causes);
    ck_assert(three_servers_wait_all_vote());
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    add_fault(2, "EVALSHA", hostile);
    uint64_t start_ms = wait_now_ms();
    int status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_ENOQUORUM, "%s: %s%s", hostile->name, redlock_strerror(status),
                  three_servers_text());
    ck_assert_uint_lt(wait_now_ms() - start_ms,
                      wait_scaled_ms(4 * three_servers.node_time_ms + 500));
    three_servers_check_failed(0, hostile->name, hostile->causes);
    three_servers_check_failed(1, hostile->name, hostile->causes);
    three_servers_check_recovers(hostile->name);
}
END_TEST

/* ---- replies to the greeting ---- */

START_TEST(one_server_with_an_invalid_greeting_is_tolerated)
{
    const struct hostile_reply *hostile = &bad_replies[_i];
    add_fault(1, "INFO", hostile);
    three_servers_connect_for(hostile->causes);
    three_servers_check_works();
    three_servers_check_recovers(hostile->name);
}
END_TEST

/* Returns true if the first two nodes have failed for one of these causes. */
static bool both_have_failed(unsigned causes)
{
    return (causes >> three_servers_stats(0).cause & 1u) != 0 &&
           (causes >> three_servers_stats(1).cause & 1u) != 0;
}

/* An error reply to INFO means that INFO is not permitted. The grants of those two servers do not
 * count until they reply to INFO. */
START_TEST(two_servers_with_an_invalid_greeting_fail_the_attempt)
{
    const struct hostile_reply *hostile = &bad_replies[_i];
    unsigned causes =
        hostile->causes == ERROR_REPLY ? 1u << REDLOCK_CAUSE_NO_INFO : hostile->causes;
    add_fault(2, "INFO", hostile);
    three_servers_connect_for(hostile->causes);
    ck_assert_msg(WAIT_UNTIL(both_have_failed(causes), TIME_LIMIT_MS), "%s", hostile->name);
    if (hostile->causes == ERROR_REPLY) {
        three_servers_check_fails(hostile->name, REDLOCK_EEXCLUDED, wait_scaled_ms(300));
        ck_assert_int_eq(three_servers_node(0).cause, REDLOCK_CAUSE_NO_INFO);
        ck_assert_int_eq(three_servers_node(1).cause, REDLOCK_CAUSE_NO_INFO);
    } else {
        three_servers_check_fails(hostile->name, REDLOCK_ENOQUORUM, 100);
        three_servers_check_failed(0, hostile->name, hostile->causes);
        three_servers_check_failed(1, hostile->name, hostile->causes);
        ck_assert_uint_eq(fake_redis_count(three_servers.fake[0], "SET"), 0);
        ck_assert_uint_eq(fake_redis_count(three_servers.fake[1], "SET"), 0);
    }
    three_servers_check_recovers(hostile->name);
}
END_TEST

/* ---- memory ---- */

/* Returns the number in a line of /proc/self/status, in kB. */
static long status_kb(const char *name)
{
    char line[256];
    long kb = -1;
    FILE *file = fopen("/proc/self/status", "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            kb = strtol(line + strlen(name) + 1, NULL, 10);
    }
    fclose(file);
    ck_assert_int_gt(kb, 0);
    return kb;
}

/* Neither memory nor address space grows with the length that a server announces or sends without
 * end. */
START_TEST(memory_is_bounded)
{
    static const struct hostile_reply greedy[] = {
        {"elements", FAKE_REPLY, "*1000000000\r\n", 0, PROTOCOL},
        {"gigabyte", FAKE_ENDLESS, "$1000000000\r\n", 0, PROTOCOL},
        {"status", FAKE_ENDLESS, "+", 0, PROTOCOL},
    };
    three_servers_connect();
    three_servers_check_works();
    long used_kb = status_kb("VmHWM:"), asked_kb = status_kb("VmPeak:");
    for (size_t i = 0; i < sizeof greedy / sizeof greedy[0]; i++) {
        add_fault(2, "SET", &greedy[i]);
        three_servers_check_fails(greedy[i].name, REDLOCK_ENOQUORUM, wait_scaled_ms(200));
        three_servers_check_recovers(greedy[i].name);
        add_fault(2, "INFO", &greedy[i]);
        fake_redis_drop_connections(three_servers.fake[0]);
        fake_redis_drop_connections(three_servers.fake[1]);
        three_servers_check_fails(greedy[i].name, REDLOCK_ENOQUORUM, wait_scaled_ms(200));
        three_servers_check_recovers(greedy[i].name);
    }
    ck_assert_int_lt(status_kb("VmHWM:") - used_kb, HALF_GIGABYTE_KB / 8);
    ck_assert_int_lt(status_kb("VmPeak:") - asked_kb, HALF_GIGABYTE_KB);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile");
    TCase *acquire = three_servers_add_case(suite, "acquire"),
          *release = three_servers_add_case(suite, "release");
    TCase *greeting = three_servers_add_case(suite, "greeting"),
          *memory = three_servers_add_case(suite, "memory");
    tcase_add_loop_test(acquire, one_server_with_invalid_replies_to_set_is_tolerated, 0,
                        BAD_REPLIES);
    tcase_add_loop_test(acquire, two_servers_with_invalid_replies_to_set_fail_the_attempt, 0,
                        BAD_REPLIES);
    tcase_add_loop_test(acquire, two_such_servers_do_not_exceed_the_budget, BAD_REPLIES - 6,
                        BAD_REPLIES);
    tcase_add_loop_test(release, one_server_with_invalid_replies_to_a_release_is_tolerated, 0,
                        BAD_REPLIES);
    tcase_add_loop_test(release, two_servers_with_invalid_replies_fail_the_release, 0, BAD_REPLIES);
    tcase_add_loop_test(greeting, one_server_with_an_invalid_greeting_is_tolerated, 0, BAD_REPLIES);
    tcase_add_loop_test(greeting, two_servers_with_an_invalid_greeting_fail_the_attempt, 0,
                        BAD_REPLIES);
    tcase_add_test(memory, memory_is_bounded);
    return suite_run(suite);
}
