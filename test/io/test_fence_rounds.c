/* SPDX-License-Identifier: MIT
 * Events between the two rounds of a fenced attempt: replies that are late or arrive byte by byte,
 * connections that end, keys and records that vanish, the largest fencing token. */
#include "core/fence.h"
#include "core/protocol.h"
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <pthread.h>
#include <string.h>

#define FAR_AHEAD (UINT64_C(1) << 52)

static void rule(size_t servers, enum rl_verb verb, struct fake_rule what)
{
    what.command = "EVALSHA";
    what.argument = rl_protocol_script(verb, RL_FORM_SHA)->sha;
    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(three_servers.fake[i], what);
}

static void set_numbers(uint64_t number)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_set_numbers(three_servers.fake[i], number);
}

/* All records are in use, all votes of an earlier lock are answered, and the next proposal is not
 * accepted: there will be a second round. */
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

/* ---- what happens between the votes and their answers ---- */

struct between {
    void (*happens)(struct fake_redis *fake);
    size_t servers;
    pthread_t thread;
};

static size_t votes_before[THREE_SERVERS];

static void *interfere(void *argument)
{
    const struct between *between = argument;

    for (size_t i = 0; i < THREE_SERVERS; i++)
        if (!fake_redis_wait(three_servers.fake[i], "EVALSHA vote", votes_before[i] + 1,
                             TIME_LIMIT_MS))
            return NULL;
    for (size_t i = 0; i < between->servers; i++)
        between->happens(three_servers.fake[i]);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_open_gate(three_servers.fake[i]);
    return NULL;
}

/* The status of an attempt in the middle of which something happens to so many servers. */
static int acquire_with(void (*happens)(struct fake_redis *fake), size_t servers,
                        redlock_lock_t **ret_lock)
{
    struct between between = {happens, servers, 0};

    for (size_t i = 0; i < THREE_SERVERS; i++)
        votes_before[i] = fake_redis_count(three_servers.fake[i], "EVALSHA vote");
    rule(THREE_SERVERS, RL_VERB_ACQUIRE, (struct fake_rule){.fault = FAKE_GATE, .times = 1});
    ck_assert_int_eq(pthread_create(&between.thread, NULL, interfere, &between), 0);
    int status = three_servers_acquire(ret_lock, 0);
    ck_assert_int_eq(pthread_join(between.thread, NULL), 0);
    return status;
}

static void check_works_above(const char *name, uint64_t fence)
{
    three_servers_check_recovers(name);
    ck_assert_msg(three_servers.fence > fence, "%s: %llu is not above %llu", name,
                  (unsigned long long)three_servers.fence, (unsigned long long)fence);
}

START_TEST(a_record_is_lost_on_one)
{
    redlock_lock_t *lock = NULL;
    begin(TIME_LIMIT_MS);
    ck_assert_int_eq(acquire_with(fake_redis_forget_record, 1, &lock), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, FAR_AHEAD + 1);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("one record", FAR_AHEAD + 1);
}
END_TEST

/* Then nobody can say any more which numbers were granted: only an operator goes on. */
START_TEST(records_are_lost_on_two)
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

START_TEST(a_key_is_lost_on_one)
{
    redlock_lock_t *lock = NULL;
    begin(TIME_LIMIT_MS);
    ck_assert_int_eq(acquire_with(fake_redis_flush, 1, &lock), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, FAR_AHEAD + 1);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("one key", FAR_AHEAD + 1);
}
END_TEST

/* Whoever has lost two keys of three may have lost the lock to somebody. */
START_TEST(keys_are_lost_on_two)
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

START_TEST(connections_are_lost)
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

/* The grant is there, whole, and then the end of the connection. On a new one the second round
 * could go on; there is none. */
START_TEST(connections_end_behind_the_vote)
{
    redlock_lock_t *lock = NULL;
    bool one = _i == 1;
    begin(TIME_LIMIT_MS);
    rule((size_t)_i, RL_VERB_ACQUIRE,
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

/* Votes that were executed and whose answers come after the attempt: taken back at once, not
 * counted later. */
START_TEST(late_votes_are_given_back)
{
    redlock_lock_t *lock = NULL;
    begin(SILENT_MS);
    rule(2, RL_VERB_ACQUIRE, (struct fake_rule){.fault = FAKE_GATE, .times = 1});
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_ENOQUORUM);
    three_servers_check_failed(0, "late votes", TIMEOUT);
    three_servers_check_failed(1, "late votes", TIMEOUT);
    ck_assert(three_servers_wait_no_keys());
    fake_redis_open_gate(three_servers.fake[0]);
    fake_redis_open_gate(three_servers.fake[1]);
    check_works_above("late votes", FAR_AHEAD);
}
END_TEST

START_TEST(late_answers_of_the_second_round_do_not_count)
{
    redlock_lock_t *lock = NULL;
    begin(SILENT_MS);
    rule(2, RL_VERB_RAISE, (struct fake_rule){.fault = FAKE_GATE, .times = 1});
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_ENOQUORUM);
    ck_assert(three_servers_wait_no_keys());
    fake_redis_open_gate(three_servers.fake[0]);
    fake_redis_open_gate(three_servers.fake[1]);
    /* The number of the attempt that failed is in their registers: the next one is above it. */
    check_works_above("late second round", FAR_AHEAD + 1);
}
END_TEST

/* Byte by byte everything means the same. */
START_TEST(split_answers_count)
{
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RAISE, RL_VERB_READ,
                                         RL_VERB_SEED};
    redlock_lock_t *lock = NULL;

    for (unsigned i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        rule(THREE_SERVERS, verbs[i], (struct fake_rule){.fault = FAKE_SPLIT});
    begin(TIME_LIMIT_MS);
    ck_assert_int_eq(three_servers_acquire(&lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(three_servers.fence, FAR_AHEAD + 1);
    ck_assert_int_eq(three_servers_release(lock), REDLOCK_OK);
    check_works_above("split", FAR_AHEAD + 1);
}
END_TEST

/* An answer too many behind a grant ends the connection; the grant stands, or is undone. */
START_TEST(surplus_answers)
{
    begin(TIME_LIMIT_MS);
    rule(1, RL_VERB_ACQUIRE,
         (struct fake_rule){.fault = FAKE_SURPLUS, .bytes = "$5\r\nA 1 r\r\n", .times = 1});
    check_works_above("surplus", FAR_AHEAD);
}
END_TEST

/* ---- the end of numbers ---- */

START_TEST(behind_the_last_number_there_is_none)
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
    /* Better none than one that is not larger. */
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

    tcase_add_test(between, a_record_is_lost_on_one);
    tcase_add_test(between, records_are_lost_on_two);
    tcase_add_test(between, a_key_is_lost_on_one);
    tcase_add_test(between, keys_are_lost_on_two);
    tcase_add_loop_test(between, connections_are_lost, 1, 3);
    tcase_add_loop_test(between, connections_end_behind_the_vote, 1, 3);
    tcase_add_test(between, behind_the_last_number_there_is_none);
    tcase_add_test(time, late_votes_are_given_back);
    tcase_add_test(time, late_answers_of_the_second_round_do_not_count);
    tcase_add_test(time, split_answers_count);
    tcase_add_test(time, surplus_answers);
    return suite_run(suite);
}
