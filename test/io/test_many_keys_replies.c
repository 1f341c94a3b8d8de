/* SPDX-License-Identifier: MIT
 * Invalid replies to the scripts of locks on several resources and to the requests of permits:
 * wrong types, errors in the wording of servers, silence, lost connections. If one of three servers
 * sends them, the lock is acquired, extended and released all the same. If two do, the caller gets
 * the causes. Afterwards the servers behave, and the same client works with all of them and has
 * left no key.
 *
 * Uses waiter.h: three fake servers (three_servers.h) on threads of this process and one threaded
 * client. fake_redis_rule() makes a server misbehave. waiter_begin() starts an acquisition that
 * waits for a key of another holder; waiter_release_key() deletes that key.
 * three_servers_acquire() and the like make one call and keep its report for the checks. */
#include "core/protocol.h"
#include "hostile_replies.h"
#include "suite.h"
#include "wait.h"
#include "waiter.h"

#include <string.h>

#define KEYS         3
#define WRAPPED      "-ERR Error running script (call to f_2a1b): @user_script:1: @user_script: 1: "
#define CAUSE(cause) (1u << REDLOCK_CAUSE_##cause)
#define DENIED       0 /* as `causes`: the reply is a denial, not a failure */

struct wrong {
    struct hostile_reply hostile;
    int status; /* where two servers do it */
};

#define NO_QUORUM REDLOCK_ENOQUORUM
#define WRONG(name, bytes)                                                                         \
    {                                                                                              \
        {name, FAKE_REPLY, bytes, 0, PROTOCOL}, NO_QUORUM                                          \
    }
#define FAILS(name, fault, bytes, causes, status)                                                  \
    {                                                                                              \
        {name, fault, bytes, 0, causes}, status                                                    \
    }

/* Replies to all scripts. */
#define COMMON                                                                                     \
    WRONG("status", "+OK\r\n"), WRONG("nil", "$-1\r\n"), WRONG("text", "$1\r\n1\r\n"),             \
        WRONG("short array", "*1\r\n:1\r\n"), WRONG("array", "*3\r\n:1\r\n:1\r\n:1\r\n"),          \
        FAILS("OOM", FAKE_REPLY, "-OOM command not allowed when used memory > 'maxmemory'.\r\n",   \
              CAUSE(OOM), NO_QUORUM),                                                              \
        FAILS("OOM, wrapped", FAKE_REPLY, WRAPPED "-OOM command not allowed.\r\n", CAUSE(OOM),     \
              NO_QUORUM),                                                                          \
        FAILS("NOSCRIPT, again and again", FAKE_REPLY, "-NOSCRIPT No matching script.\r\n",        \
              ERROR_REPLY, NO_QUORUM),                                                             \
        FAILS("BUSY", FAKE_REPLY, "-BUSY Redis is busy running a script.\r\n", CAUSE(BUSY),        \
              NO_QUORUM),                                                                          \
        FAILS("executed, and an error", FAKE_FORGE, "-ERR in the middle\r\n", ERROR_REPLY,         \
              NO_QUORUM),                                                                          \
        FAILS("executed, and garbled", FAKE_FORGE, ":?\r\n", PROTOCOL, NO_QUORUM)

static const struct wrong acquires[] = {
    COMMON,
    WRONG("zero", ":0\r\n"),
    WRONG("number of keys", ":3\r\n"),
    WRONG("beyond the last key", ":-4\r\n"),
    FAILS("the last key", FAKE_REPLY, ":-3\r\n", DENIED, REDLOCK_ECONTENDED),
    FAILS("another type", FAKE_REPLY, WRAPPED "-WRONGTYPE Operation against a key\r\n", DENIED,
          REDLOCK_ECONTENDED),
};

static const struct wrong extensions[] = {
    COMMON,
    WRONG("number of keys", ":3\r\n"),
    WRONG("negative", ":-1\r\n"),
    FAILS("not ours", FAKE_REPLY, ":0\r\n", DENIED, REDLOCK_ELOST),
    FAILS("another type", FAKE_REPLY, WRAPPED "-WRONGTYPE Operation against a key\r\n", DENIED,
          REDLOCK_ELOST),
};

static const struct wrong releases[] = {
    COMMON,
    WRONG("more than there are", ":4\r\n"),
    WRONG("negative", ":-1\r\n"),
    FAILS("fewer", FAKE_FORGE, ":2\r\n", DENIED, REDLOCK_ELOST),
    FAILS("none", FAKE_FORGE, ":0\r\n", DENIED, REDLOCK_ELOST),
};

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))
/* Row `i` of a table that continues with the replies that are invalid for any request. */
#define OF(table, i) ((i) < COUNT(table) ? &table[i] : generic((i)-COUNT(table)))

/* Returns the i-th reply that is invalid for any request. */
static const struct wrong *generic(int i)
{
    static struct wrong wrong;

    wrong = (struct wrong){bad_replies[i], NO_QUORUM};
    return &wrong;
}

/* Makes the first `servers` servers reply to the script in this way. */
static void add_fault(size_t servers, enum rl_verb verb, const struct hostile_reply *hostile)
{
    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){.command = "EVAL",
                                           .argument = rl_protocol_script(verb, RL_FORM_MANY)->text,
                                           .fault = hostile->fault,
                                           .bytes = hostile->bytes,
                                           .len = hostile->len});
}

/* Connects a client whose locks cover three resources. */
static void begin(const struct hostile_reply *hostile)
{
    static const char *const also[KEYS - 1] = {"second", "third"};

    three_servers.also = also;
    three_servers.also_count = KEYS - 1;
    three_servers_connect_for(hostile->causes);
    ck_assert(three_servers_wait_all_vote());
}

/* Acquires the lock. */
static redlock_lock_t *acquire(const char *name)
{
    redlock_lock_t *lock = NULL;
    int status = three_servers_acquire(&lock, wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(status == REDLOCK_OK, "%s: %s%s", name, redlock_strerror(status),
                  three_servers_text());
    return lock;
}

/* Returns true if each node has granted a lock. */
static bool all_have_granted(void)
{
    return three_servers_stats(0).granted > 0 && three_servers_stats(1).granted > 0 &&
           three_servers_stats(2).granted > 0;
}

/* Acquires the lock and waits for the grants of all nodes, so that all take part in an extension.
 */
static redlock_lock_t *acquire_on_all(const char *name)
{
    redlock_lock_t *lock = acquire(name);
    ck_assert_msg(WAIT_UNTIL(all_have_granted(), TIME_LIMIT_MS), "%s", name);
    return lock;
}

/* Releases the lock and checks that the client recovers. */
static void release_and_check(redlock_lock_t *lock, const char *name)
{
    int status = three_servers_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s: release: %s%s", name, redlock_strerror(status),
                  three_servers_text());
    three_servers_check_recovers(name);
}

/* Checks that the report has the denials or failures of the first two nodes. */
static void check_two(const struct wrong *wrong)
{
    for (size_t i = 0; i < 2; i++) {
        if (wrong->hostile.causes != DENIED)
            three_servers_check_failed(i, wrong->hostile.name, wrong->hostile.causes);
        else
            ck_assert_int_eq(three_servers_node(i).vote, REDLOCK_VOTE_DENIED);
    }
}

START_TEST(one_server_with_invalid_replies_to_acquire_is_tolerated)
{
    const struct wrong *wrong = OF(acquires, _i);

    begin(&wrong->hostile);
    add_fault(1, RL_VERB_ACQUIRE, &wrong->hostile);
    redlock_lock_t *lock = acquire(wrong->hostile.name);
    ck_assert_uint_eq(three_servers_info().granted, 2);
    release_and_check(lock, wrong->hostile.name);
}
END_TEST

START_TEST(two_servers_with_invalid_replies_fail_the_acquisition)
{
    const struct wrong *wrong = OF(acquires, _i);

    begin(&wrong->hostile);
    add_fault(2, RL_VERB_ACQUIRE, &wrong->hostile);
    three_servers_check_fails(wrong->hostile.name, wrong->status, 0);
    check_two(wrong);
    /* A node that fails is not asked again in the attempt. */
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[0], "EVAL many-acquire"), 1);
    three_servers_check_recovers(wrong->hostile.name);
}
END_TEST

START_TEST(one_server_with_invalid_replies_to_extend_is_tolerated)
{
    const struct wrong *wrong = OF(extensions, _i);

    begin(&wrong->hostile);
    redlock_lock_t *lock = acquire_on_all(wrong->hostile.name);
    add_fault(1, RL_VERB_EXTEND, &wrong->hostile);
    int status = three_servers_extend(lock, TTL_MS);
    ck_assert_msg(status == REDLOCK_OK, "%s: %s%s", wrong->hostile.name, redlock_strerror(status),
                  three_servers_text());
    three_servers_behave();
    release_and_check(lock, wrong->hostile.name);
}
END_TEST

START_TEST(two_servers_with_invalid_replies_fail_the_extension)
{
    const struct wrong *wrong = OF(extensions, _i);

    begin(&wrong->hostile);
    redlock_lock_t *lock = acquire_on_all(wrong->hostile.name);
    add_fault(2, RL_VERB_EXTEND, &wrong->hostile);
    int status = three_servers_extend(lock, TTL_MS);
    ck_assert_msg(status == wrong->status, "%s: %s%s", wrong->hostile.name,
                  redlock_strerror(status), three_servers_text());
    check_two(wrong);
    three_servers_behave();
    /* A lock that is still held is released, and a lost one leaves no key. */
    status = three_servers_release(lock);
    ck_assert_msg(status == (wrong->status == REDLOCK_ELOST ? REDLOCK_ELOST : REDLOCK_OK),
                  "%s: release: %s%s", wrong->hostile.name, redlock_strerror(status),
                  three_servers_text());
    three_servers_check_recovers(wrong->hostile.name);
}
END_TEST

START_TEST(one_server_with_invalid_replies_to_release_is_tolerated)
{
    const struct wrong *wrong = OF(releases, _i);

    begin(&wrong->hostile);
    redlock_lock_t *lock = acquire(wrong->hostile.name);
    add_fault(1, RL_VERB_RELEASE, &wrong->hostile);
    release_and_check(lock, wrong->hostile.name);
}
END_TEST

START_TEST(two_servers_with_invalid_replies_fail_the_release)
{
    const struct wrong *wrong = OF(releases, _i);

    begin(&wrong->hostile);
    redlock_lock_t *lock = acquire_on_all(wrong->hostile.name);
    add_fault(2, RL_VERB_RELEASE, &wrong->hostile);
    /* One denial and one grant would decide: the third server's reply comes late. */
    if (wrong->hostile.causes == DENIED)
        fake_redis_rule(three_servers.fake[2],
                        (struct fake_rule){.command = "EVAL", .fault = FAKE_GATE});
    int status = three_servers_release(lock);
    ck_assert_msg(status == wrong->status, "%s: %s%s", wrong->hostile.name,
                  redlock_strerror(status), three_servers_text());
    check_two(wrong);
    fake_redis_open_gate(three_servers.fake[2]);
    three_servers_check_recovers(wrong->hostile.name);
}
END_TEST

/* ---- probes of waiters: for the key of a plain lock, for all slots of a semaphore ---- */

START_TEST(invalid_replies_to_probes_do_not_stop_a_waiter)
{
    const struct hostile_reply *hostile = &bad_replies[_i / 2];

    waiter_connect_usual();
    if (_i % 2 == 1)
        three_servers.permits = 3;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.command = "PTTL",
                                                                  .fault = hostile->fault,
                                                                  .bytes = hostile->bytes,
                                                                  .len = hostile->len});
    waiter_begin();
    uint64_t before = waiter_attempts();
    ck_assert_msg(WAIT_UNTIL(waiter_attempts() > before, TIME_LIMIT_MS), "%s:%s", hostile->name,
                  waiter_states());
    waiter_release_key();
    waiter_check_acquired(hostile->name);
    three_servers_check_recovers(hostile->name);
}
END_TEST

START_TEST(one_server_with_invalid_replies_for_a_permit_is_tolerated)
{
    const struct hostile_reply *hostile = &bad_replies[_i];

    three_servers.permits = 3;
    three_servers_connect_for(hostile->causes);
    ck_assert(three_servers_wait_all_vote());
    fake_redis_rule(three_servers.fake[0], (struct fake_rule){.command = "SET",
                                                              .fault = hostile->fault,
                                                              .bytes = hostile->bytes,
                                                              .len = hostile->len});
    redlock_lock_t *lock = acquire(hostile->name);
    ck_assert_uint_eq(three_servers_info().granted, 2);
    release_and_check(lock, hostile->name);
}
END_TEST

/* The report names the held resource, even if one name is the beginning of the other. */
START_TEST(the_report_names_the_resource_that_is_held)
{
    static const char *const names[] = {"res", "resource", "resources"};
    static const char *const also[] = {"resources", "res"};
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;
    char wanted[32];

    three_servers_connect();
    ck_assert(three_servers_wait_all_vote());
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_put(three_servers.fake[i], names[_i], "foreign", 0);
    opts.also = also;
    opts.also_count = COUNT(also);
    int status = redlock_acquire(three_servers.client, "resource", &opts, &lock, &report);
    ck_assert_int_eq(status, REDLOCK_ECONTENDED);
    snprintf(wanted, sizeof wanted, "'%s'", names[_i]);
    ck_assert_msg(strstr(redlock_report_text(report), wanted) != NULL, "%s",
                  redlock_report_text(report));
    redlock_report_free(report);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_flush(three_servers.fake[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_many_keys_replies");
    TCase *several = three_servers_add_case(suite, "several"),
          *permit = three_servers_add_case(suite, "permit");

    tcase_add_loop_test(several, one_server_with_invalid_replies_to_acquire_is_tolerated, 0,
                        COUNT(acquires) + BAD_REPLIES);
    tcase_add_loop_test(several, two_servers_with_invalid_replies_fail_the_acquisition, 0,
                        COUNT(acquires) + BAD_REPLIES);
    tcase_add_loop_test(several, one_server_with_invalid_replies_to_extend_is_tolerated, 0,
                        COUNT(extensions) + BAD_REPLIES);
    tcase_add_loop_test(several, two_servers_with_invalid_replies_fail_the_extension, 0,
                        COUNT(extensions));
    tcase_add_loop_test(several, one_server_with_invalid_replies_to_release_is_tolerated, 0,
                        COUNT(releases) + BAD_REPLIES);
    tcase_add_loop_test(several, two_servers_with_invalid_replies_fail_the_release, 0,
                        COUNT(releases));
    tcase_add_loop_test(several, the_report_names_the_resource_that_is_held, 0, 3);
    tcase_add_loop_test(permit, invalid_replies_to_probes_do_not_stop_a_waiter, 0, 2 * BAD_REPLIES);
    tcase_add_loop_test(permit, one_server_with_invalid_replies_for_a_permit_is_tolerated, 0,
                        BAD_REPLIES);
    return suite_run(suite);
}
