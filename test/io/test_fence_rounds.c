/* SPDX-License-Identifier: MIT
 * Events between the two rounds of a fenced attempt: replies that are late or arrive byte by byte,
 * connections that end, keys and records that vanish, the largest fencing token.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "core/fence.h"
#include "core/protocol.h"
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <pthread.h>
#include <string.h>

#define FAR_AHEAD (UINT64_C(1) << 52)

/* Adds a rule for the script of `verb` to the first `servers` servers. */
static void add_rules(size_t servers, enum rl_verb verb, struct fake_rule what)
{
    what.command = "EVALSHA";
    what.argument = rl_protocol_script(verb, RL_FORM_SHA)->sha;
    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(three_servers.fake[i], what);
}

/* Sets all registers of all servers. */
static void set_numbers(uint64_t number)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_set_numbers(three_servers.fake[i], number);
}

/* Connects; all records are in use, an earlier lock is gone, and the registers are so large that
 * the next attempt needs a second round. */
static void begin(uint32_t node_time_ms)
{
    three_servers.fences = true;
    three_servers.node_time_ms = node_time_ms;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_load_scripts(three_servers.fake[i]);
    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    three_servers_check_all_work();
    set_numbers(FAR_AHEAD);
}

/* ---- events between the votes and their replies ---- */

struct between {
    void (*event)(struct fake_redis *fake);
    size_t servers;
    pthread_t thread;
};

static size_t votes_before[THREE_SERVERS];

/* Waits for the votes of the attempt, lets the event happen, and opens the gates. */
static void *interfere(void *argument)
{
    const struct between *between = argument;

    for (size_t i = 0; i < THREE_SERVERS; i++)
        if (!fake_redis_wait(three_servers.fake[i], "EVALSHA vote", votes_before[i] + 1,
                             TIME_LIMIT_MS))
            return NULL;
    for (size_t i = 0; i < between->servers; i++)
        between->event(three_servers.fake[i]);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_open_gate(three_servers.fake[i]);
    return NULL;
}

/* Returns the status of an attempt during which `event` happens to the first `servers` servers. */
static int acquire_with(void (*event)(struct fake_redis *fake), size_t servers,
                        redlock_lock_t **ret_lock)
{
    struct between between = {event, servers, 0};

    for (size_t i = 0; i < THREE_SERVERS; i++)
        votes_before[i] = fake_redis_count(three_servers.fake[i], "EVALSHA vote");
    add_rules(THREE_SERVERS, RL_VERB_ACQUIRE, (struct fake_rule){.fault = FAKE_GATE, .times = 1});
    ck_assert_int_eq(pthread_create(&between.thread, NULL, interfere, &between), 0);
    int status = three_servers_acquire(ret_lock, 0);
    ck_assert_int_eq(pthread_join(between.thread, NULL), 0);
    return status;
}

/* Checks that the client recovers and its next fencing token is above `fence`. */
static void check_works_above(const char *name, uint64_t fence)
{
    three_servers_check_recovers(name);
    ck_assert_msg(three_servers.fence > fence, "%s: %llu is not above %llu", name,
                  (unsigned long long)three_servers.fence, (unsigned long long)fence);
}

START_TEST(a_record_lost_on_one_is_tolerated)
{
    redlock_lock_t *lock = NULL;
    begin(TIME_LIMIT_MS);
    ck_assert_int_eq(acquire_with(fake_redis_forget_record, 1, &lock), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, FAR_AHEAD + 1);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("one record", FAR_AHEAD + 1);
}
END_TEST

/* The granted numbers are then unknown, and only an operator may initialize the records. */
START_TEST(records_lost_on_two_need_an_operator)
{
    redlock_lock_t *lock = NULL;
    begin(TIME_LIMIT_MS);
    ck_assert_int_eq(acquire_with(fake_redis_forget_record, 2, &lock), REDLOCK_EFENCE);
    ck_assert_ptr_null(lock);
    three_servers_check_failed(0, "two records", RECORD);
    three_servers_check_failed(1, "two records", RECORD);
    ck_assert(three_servers_wait_no_keys());
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_EFENCE);
    ck_assert(three_servers_wait_no_keys());
    ck_assert_int_eq(
        redlock_init_fence_records(three_servers.client, wait_scaled_ms(TIME_LIMIT_MS)),
        REDLOCK_OK);
    /* One server still knew the number that two have lost. */
    check_works_above("two records", FAR_AHEAD);
}
END_TEST

START_TEST(a_key_lost_on_one_is_tolerated)
{
    redlock_lock_t *lock = NULL;
    begin(TIME_LIMIT_MS);
    ck_assert_int_eq(acquire_with(fake_redis_flush, 1, &lock), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, FAR_AHEAD + 1);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("one key", FAR_AHEAD + 1);
}
END_TEST

/* With two of three keys lost, another client may have acquired the lock. */
START_TEST(keys_lost_on_two_fail_the_attempt)
{
    redlock_lock_t *lock = NULL;
    begin(TIME_LIMIT_MS);
    ck_assert_int_ne(acquire_with(fake_redis_flush, 2, &lock), REDLOCK_OK);
    ck_assert_ptr_null(lock);
    ck_assert_int_eq(three_servers_node(0).vote, REDLOCK_VOTE_DENIED);
    ck_assert_int_eq(three_servers_node(1).vote, REDLOCK_VOTE_DENIED);
    check_works_above("two keys", FAR_AHEAD);
}
END_TEST

START_TEST(connections_lost_between_the_rounds)
{
    redlock_lock_t *lock = NULL;
    bool one = _i == 1;
    begin(TIME_LIMIT_MS);
    int status = acquire_with(fake_redis_drop_connections, (size_t)_i, &lock);
    ck_assert_int_eq(status, one ? REDLOCK_OK : REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(three_servers.fence, one ? FAR_AHEAD + 1 : 0);
    if (one)
        ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("connections", one ? FAR_AHEAD + 1 : FAR_AHEAD);
}
END_TEST

/* The connections end after the grants were received. The second round is not continued on new
 * connections. */
START_TEST(connections_that_end_after_the_vote_fail_the_attempt)
{
    redlock_lock_t *lock = NULL;
    bool one = _i == 1;
    begin(TIME_LIMIT_MS);
    add_rules((size_t)_i, RL_VERB_ACQUIRE,
              (struct fake_rule){.fault = FAKE_CLOSE, .at = SIZE_MAX, .times = 1});
    for (int i = 0; i < _i; i++)
        fake_redis_listen(three_servers.fake[i], false);
    int status = three_servers_acquire(&lock, 0);
    for (int i = 0; i < _i; i++)
        fake_redis_listen(three_servers.fake[i], true);
    ck_assert_msg(status == (one ? REDLOCK_OK : REDLOCK_ENOQUORUM), "%s%s",
                  redlock_strerror(status), three_servers_text());
    if (one)
        ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("connections", FAR_AHEAD);
}
END_TEST

/* ---- time ---- */

/* Votes whose replies come after the attempt are undone at once, and do not count later. */
START_TEST(late_votes_are_undone)
{
    redlock_lock_t *lock = NULL;
    begin(SILENT_MS);
    add_rules(2, RL_VERB_ACQUIRE, (struct fake_rule){.fault = FAKE_GATE, .times = 1});
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_ENOQUORUM);
    three_servers_check_failed(0, "late votes", TIMEOUT);
    three_servers_check_failed(1, "late votes", TIMEOUT);
    ck_assert(three_servers_wait_no_keys());
    fake_redis_open_gate(three_servers.fake[0]);
    fake_redis_open_gate(three_servers.fake[1]);
    check_works_above("late votes", FAR_AHEAD);
}
END_TEST

START_TEST(late_replies_of_the_second_round_do_not_count)
{
    redlock_lock_t *lock = NULL;
    begin(SILENT_MS);
    add_rules(2, RL_VERB_RAISE, (struct fake_rule){.fault = FAKE_GATE, .times = 1});
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_ENOQUORUM);
    ck_assert(three_servers_wait_no_keys());
    fake_redis_open_gate(three_servers.fake[0]);
    fake_redis_open_gate(three_servers.fake[1]);
    /* The registers have the number of the failed attempt, so the next one is larger. */
    check_works_above("late second round", FAR_AHEAD + 1);
}
END_TEST

/* Replies that arrive byte by byte count. */
START_TEST(split_replies_count)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RAISE, RL_VERB_READ,
                                         RL_VERB_SEED};
    redlock_lock_t *lock = NULL;

    for (unsigned i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        add_rules(THREE_SERVERS, verbs[i], (struct fake_rule){.fault = FAKE_SPLIT});
    begin(TIME_LIMIT_MS);
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, FAR_AHEAD + 1);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("split", FAR_AHEAD + 1);
}
END_TEST

/* A surplus reply after a grant ends the connection. The grant counts, or it is undone. */
START_TEST(surplus_replies_end_the_connection)
{
    begin(TIME_LIMIT_MS);
    add_rules(1, RL_VERB_ACQUIRE,
              (struct fake_rule){.fault = FAKE_SURPLUS, .bytes = "$5\r\nA 1 r\r\n", .times = 1});
    check_works_above("surplus", FAR_AHEAD);
}
END_TEST

/* ---- the end of numbers ---- */

START_TEST(after_the_last_number_there_is_no_fence)
{
    redlock_lock_t *lock = NULL;
    begin(TIME_LIMIT_MS);
    set_numbers(RL_FENCE_CORRUPT - 2);
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, RL_FENCE_CORRUPT - 1);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, RL_FENCE_CORRUPT);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    /* No lock is granted rather than one whose fencing token is not larger. */
    lock = NULL;
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_EFENCE);
    ck_assert_ptr_null(lock);
    ck_assert(three_servers_wait_no_keys());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fence rounds");
    TCase *between = three_servers_add_case(suite, "between"),
          *time = three_servers_add_case(suite, "time");

    tcase_add_test(between, a_record_lost_on_one_is_tolerated);
    tcase_add_test(between, records_lost_on_two_need_an_operator);
    tcase_add_test(between, a_key_lost_on_one_is_tolerated);
    tcase_add_test(between, keys_lost_on_two_fail_the_attempt);
    tcase_add_loop_test(between, connections_lost_between_the_rounds, 1, 3);
    tcase_add_loop_test(between, connections_that_end_after_the_vote_fail_the_attempt, 1, 3);
    tcase_add_test(between, after_the_last_number_there_is_no_fence);
    tcase_add_test(time, late_votes_are_undone);
    tcase_add_test(time, late_replies_of_the_second_round_do_not_count);
    tcase_add_test(time, split_replies_count);
    tcase_add_test(time, surplus_replies_end_the_connection);
    return suite_run(suite);
}
