/* SPDX-License-Identifier: MIT
 * Hostile and broken servers. Whatever a server sends: an error for that node, nothing else. Each
 * case is played by one of three servers (the lock must be had all the same) and by two of three
 * (the caller must be told within its budget which node failed and why); after that the servers
 * behave, and the same client must work with all of them and have left no key. */
#include "suite.h"
#include "trio.h"
#include "wait.h"

#include <stdlib.h>
#include <string.h>

#define HALF_GIGABYTE_KB (512 * 1024)

/* What the node's failure may be called. */
enum {
    TIMEOUT = 1u << REDLOCK_CAUSE_TIMEOUT,
    LOST = 1u << REDLOCK_CAUSE_DISCONNECT,
    PROTOCOL = 1u << REDLOCK_CAUSE_PROTOCOL,
    ERROR_REPLY = 1u << REDLOCK_CAUSE_ERROR_REPLY
};

struct evil {
    const char *name;
    enum fake_fault fault;
    const char *bytes;
    size_t len; /* 0: strlen */
    unsigned causes;
};

#define NEST4  "*1\r\n*1\r\n*1\r\n*1\r\n"
#define NEST64 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4 NEST4

/* In place of an answer. None of these is an answer to any command of ours. */
static const struct evil evils[] = {
    {"wrong integer", FAKE_REPLY, ":7\r\n", 0, PROTOCOL},
    {"negative integer", FAKE_REPLY, ":-9223372036854775808\r\n", 0, PROTOCOL},
    {"integer beyond 64 bits", FAKE_REPLY, ":99999999999999999999\r\n", 0, PROTOCOL},
    {"not a number", FAKE_REPLY, ":abc\r\n", 0, PROTOCOL},
    {"wrong status", FAKE_REPLY, "+QUEUED\r\n", 0, PROTOCOL},
    {"almost OK", FAKE_REPLY, "+OKAY\r\n", 0, PROTOCOL},
    {"empty status", FAKE_REPLY, "+\r\n", 0, PROTOCOL},
    {"array", FAKE_REPLY, "*1\r\n+OK\r\n", 0, PROTOCOL},
    {"empty array", FAKE_REPLY, "*0\r\n", 0, PROTOCOL},
    {"nil array", FAKE_REPLY, "*-1\r\n", 0, PROTOCOL},
    {"array of a thousand million", FAKE_REPLY, "*1000000000\r\n", 0, PROTOCOL},
    {"array of 2^31", FAKE_REPLY, "*2147483648\r\n", 0, PROTOCOL},
    {"array of -2", FAKE_REPLY, "*-2\r\n", 0, PROTOCOL},
    {"nested arrays", FAKE_REPLY, NEST64, 0, PROTOCOL},
    {"bulk of a gigabyte that never comes", FAKE_REPLY, "$1000000000\r\n", 0, PROTOCOL | TIMEOUT},
    {"bulk of a gigabyte that comes", FAKE_ENDLESS, "$1000000000\r\n", 0, PROTOCOL},
    {"bulk of -2", FAKE_REPLY, "$-2\r\n", 0, PROTOCOL},
    {"bulk without its end", FAKE_REPLY, "$2\r\nOKxx+OK\r\n", 0, PROTOCOL},
    {"status without end", FAKE_ENDLESS, "+", 0, PROTOCOL},
    {"error without end", FAKE_ENDLESS, "-ERR ", 0, PROTOCOL},
    {"number without end", FAKE_ENDLESS, ":", 0, PROTOCOL},
    {"web server", FAKE_REPLY, "HTTP/1.1 400 Bad Request\r\n\r\n", 0, PROTOCOL},
    {"zeros", FAKE_REPLY, "\0\0\0\0\0\0\0\0", 8, PROTOCOL},
    {"high bytes", FAKE_REPLY, "\xff\xfe\xfd\r\n", 0, PROTOCOL},
    {"line ends", FAKE_REPLY, "\r\n\r\n", 0, PROTOCOL},
    {"RESP3 null", FAKE_REPLY, "_\r\n", 0, PROTOCOL},
    {"RESP3 true", FAKE_REPLY, "#t\r\n", 0, PROTOCOL},
    {"RESP3 map", FAKE_REPLY, "%1\r\n+a\r\n+b\r\n", 0, PROTOCOL},
    {"RESP3 push", FAKE_REPLY, ">2\r\n+a\r\n+b\r\n", 0, PROTOCOL},
    {"strange error", FAKE_REPLY, "-\r\n", 0, ERROR_REPLY},
    {"error with odd bytes", FAKE_REPLY, "-ERR \x1b[31m%s%n\x07\r\n", 0, ERROR_REPLY},
    {"silence", FAKE_SILENCE, NULL, 0, TIMEOUT},
    {"close before the answer", FAKE_CLOSE, NULL, 0, LOST},
    {"reset", FAKE_RESET, NULL, 0, LOST},
    {"close without executing", FAKE_DROP, NULL, 0, LOST},
};
#define EVILS ((int)(sizeof evils / sizeof evils[0]))

static void misbehave(size_t servers, const char *command, const struct evil *evil)
{
    for (size_t i = 0; i < servers; i++)
        fake_redis_rule(trio.fake[i], (struct fake_rule){.command = command,
                                                         .fault = evil->fault,
                                                         .bytes = evil->bytes,
                                                         .len = evil->len});
}

static void behave(void)
{
    for (size_t i = 0; i < TRIO; i++)
        fake_redis_clear_rules(trio.fake[i]);
}

/* The node has failed, for one of these reasons, and the text for people is printable. */
static void check_failed(size_t index, const char *name, unsigned causes)
{
    redlock_node_report_t node = trio_node(index);
    ck_assert_msg(node.vote == REDLOCK_VOTE_FAILED, "%s: node %zu:%s", name, index, trio_text());
    ck_assert_msg((causes >> node.cause & 1u) != 0, "%s: node %zu:%s", name, index, trio_text());
    ck_assert_uint_gt(strlen(node.text), 0);
    for (const char *c = node.text; *c != '\0'; c++)
        ck_assert_msg(*c >= 0x20 && *c < 0x7f, "%s: byte %d in '%s'", name, *c, node.text);
}

/* All is well again: nothing is left behind, and all three vote. */
static void check_recovers(const char *name)
{
    behave();
    ck_assert_msg(trio_wait_all_vote(), "%s: 0: %s 1: %s 2: %s", name, trio_stats(0).text,
                  trio_stats(1).text, trio_stats(2).text);
    trio_check_works();
    ck_assert_msg(trio_wait_no_keys(), "%s: keys left behind", name);
}

/* An acquisition with the budget `wait_ms` that must fail with `status` in time. */
static void check_fails(const char *name, int wanted, uint64_t wait_ms)
{
    redlock_lock_t *lock = NULL;
    uint64_t start_ms = wait_now_ms();
    int status = trio_acquire(&lock, wait_ms);
    uint64_t took_ms = wait_now_ms() - start_ms;
    ck_assert_msg(status == wanted, "%s: %s%s", name, redlock_strerror(status), trio_text());
    ck_assert_ptr_null(lock);
    /* The budget, the time a last attempt may take, and some for a busy machine. */
    ck_assert_msg(took_ms < wait_ms + wait_scaled_ms(4 * NODE_TIME_MS + 500), "%s: took %llu ms",
                  name, (unsigned long long)took_ms);
}

/* ---- answers to SET ---- */

START_TEST(one_spoils_acquire)
{
    const struct evil *evil = &evils[_i];
    redlock_lock_t *lock = NULL;
    trio_connect();
    ck_assert(trio_wait_all_vote());
    misbehave(1, "SET", evil);
    int status = trio_acquire(&lock, wait_scaled_ms(PATIENCE_MS));
    ck_assert_msg(status == REDLOCK_OK, "%s: %s%s", evil->name, redlock_strerror(status),
                  trio_text());
    ck_assert_uint_eq(trio_info().granted, 2);
    status = trio_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s: release: %s%s", evil->name, redlock_strerror(status),
                  trio_text());
    check_recovers(evil->name);
    /* Whoever breaks the protocol once is not believed again on that connection. */
    if (evil->causes == PROTOCOL)
        ck_assert_uint_gt(trio_stats(0).reconnects, 0);
}
END_TEST

START_TEST(two_spoil_acquire)
{
    const struct evil *evil = &evils[_i];
    trio_connect();
    ck_assert(trio_wait_all_vote());
    misbehave(2, "SET", evil);
    check_fails(evil->name, REDLOCK_ENOQUORUM, 0);
    check_failed(0, evil->name, evil->causes);
    check_failed(1, evil->name, evil->causes);
    check_recovers(evil->name);
}
END_TEST

/* The budget is used up, not exceeded, while two servers go on and on. */
START_TEST(two_spoil_each_attempt)
{
    const struct evil *evil = &evils[_i];
    uint64_t wait_ms = wait_scaled_ms(300);
    trio_connect();
    ck_assert(trio_wait_all_vote());
    misbehave(2, "SET", evil);
    uint64_t start_ms = wait_now_ms();
    check_fails(evil->name, REDLOCK_ENOQUORUM, wait_ms);
    ck_assert_uint_ge(wait_now_ms() - start_ms, wait_ms / 2);
    ck_assert_uint_gt(trio_info().attempts, 1);
    ck_assert_int_ne(trio_node(0).cause, REDLOCK_CAUSE_NONE);
    ck_assert_int_ne(trio_node(1).cause, REDLOCK_CAUSE_NONE);
    check_recovers(evil->name);
}
END_TEST

/* ---- answers to the release ---- */

START_TEST(one_spoils_release)
{
    const struct evil *evil = &evils[_i];
    redlock_lock_t *lock = NULL;
    trio_connect();
    ck_assert(trio_wait_all_vote());
    ck_assert_int_eq(trio_acquire(&lock, 0), REDLOCK_OK);
    misbehave(1, "EVALSHA", evil);
    int status = trio_release(lock);
    ck_assert_msg(status == REDLOCK_OK, "%s: %s%s", evil->name, redlock_strerror(status),
                  trio_text());
    check_recovers(evil->name);
}
END_TEST

START_TEST(two_spoil_release)
{
    const struct evil *evil = &evils[_i];
    redlock_lock_t *lock = NULL;
    trio_connect();
    ck_assert(trio_wait_all_vote());
    ck_assert_int_eq(trio_acquire(&lock, 0), REDLOCK_OK);
    misbehave(2, "EVALSHA", evil);
    uint64_t start_ms = wait_now_ms();
    int status = trio_release(lock);
    ck_assert_msg(status == REDLOCK_ENOQUORUM, "%s: %s%s", evil->name, redlock_strerror(status),
                  trio_text());
    ck_assert_uint_lt(wait_now_ms() - start_ms, wait_scaled_ms(4 * NODE_TIME_MS + 500));
    check_failed(0, evil->name, evil->causes);
    check_failed(1, evil->name, evil->causes);
    check_recovers(evil->name);
}
END_TEST

/* ---- answers in the greeting ---- */

START_TEST(one_spoils_greeting)
{
    const struct evil *evil = &evils[_i];
    misbehave(1, "INFO", evil);
    trio_connect();
    trio_check_works();
    check_recovers(evil->name);
}
END_TEST

/* An error reply to INFO only means that it is not permitted: those two servers may vote. */
START_TEST(two_spoil_greeting)
{
    const struct evil *evil = &evils[_i];
    misbehave(2, "INFO", evil);
    trio_connect();
    if (evil->causes == ERROR_REPLY) {
        trio_check_works();
    } else {
        check_fails(evil->name, REDLOCK_ENOQUORUM, wait_scaled_ms(300));
        check_failed(0, evil->name, evil->causes);
        check_failed(1, evil->name, evil->causes);
        ck_assert_uint_eq(fake_redis_count(trio.fake[0], "SET"), 0);
        ck_assert_uint_eq(fake_redis_count(trio.fake[1], "SET"), 0);
    }
    check_recovers(evil->name);
}
END_TEST

/* ---- right answers at the wrong time, or in odd pieces ---- */

/* A second answer belongs to no question: that connection is of no use, the first answer was. Who
 * gives a lock back while two connections are being made anew may hear that too few have answered;
 * it is given back all the same. */
START_TEST(surplus_answers)
{
    static const char *const places[] = {"SET", "EVALSHA", "INFO", "CLIENT"};
    static const char *const surplus[] = {"+OK\r\n", ":1\r\n", "$-1\r\n", "*1000000000\r\n"};
    redlock_lock_t *lock = NULL;
    for (size_t i = 0; i < TRIO; i++)
        fake_redis_rule(trio.fake[i], (struct fake_rule){.command = places[_i / 4],
                                                         .times = 1,
                                                         .fault = FAKE_SURPLUS,
                                                         .bytes = surplus[_i % 4]});
    trio_connect();
    ck_assert(trio_wait_all_vote());
    int status = trio_acquire(&lock, wait_scaled_ms(PATIENCE_MS));
    ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), trio_text());
    status = trio_release(lock);
    ck_assert_msg(status == REDLOCK_OK || status == REDLOCK_ENOQUORUM, "%s%s",
                  redlock_strerror(status), trio_text());
    for (size_t i = 0; i < TRIO; i++)
        ck_assert(fake_redis_wait(trio.fake[i], "CLIENT SETNAME", 2, PATIENCE_MS));
    check_recovers("surplus");
}
END_TEST

/* Nobody was asked anything, and yet an answer comes: the connection is closed, not the process. */
START_TEST(surplus_on_an_idle_connection)
{
    trio_connect();
    ck_assert(trio_wait_all_vote());
    trio_check_works();
    ck_assert(trio_wait_no_keys());
    for (size_t i = 0; i < TRIO; i++)
        fake_redis_push(trio.fake[i], "+OK\r\n");
    for (size_t i = 0; i < TRIO; i++)
        ck_assert(fake_redis_wait(trio.fake[i], "CLIENT SETNAME", 2, PATIENCE_MS));
    check_recovers("surplus while idle");
}
END_TEST

/* The answer to a release that comes late does no harm to what follows. */
START_TEST(late_answer_to_release)
{
    redlock_lock_t *lock = NULL;
    fake_redis_rule(trio.fake[0],
                    (struct fake_rule){.command = "EVALSHA", .times = 1, .fault = FAKE_GATE});
    trio_connect();
    ck_assert(trio_wait_all_vote());
    ck_assert_int_eq(trio_acquire(&lock, 0), REDLOCK_OK);
    ck_assert_int_eq(trio_release(lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(trio_stats(0).timeouts > 0, PATIENCE_MS));
    fake_redis_open_gate(trio.fake[0]);
    check_recovers("late release");
    ck_assert_uint_eq(trio_stats(0).reconnects, 0);
}
END_TEST

START_TEST(answers_byte_by_byte)
{
    for (size_t i = 0; i < TRIO; i++)
        fake_redis_rule(trio.fake[i], (struct fake_rule){.fault = FAKE_SPLIT});
    trio_connect();
    ck_assert(trio_wait_all_vote());
    for (int i = 0; i < 20; i++)
        trio_check_works();
    ck_assert(trio_wait_no_keys());
    for (size_t i = 0; i < TRIO; i++)
        ck_assert_uint_eq(trio_stats(i).reconnects, 0);
}
END_TEST

/* A grant that comes after the time limit is no vote; it is undone, and it is not taken for the
 * answer to a later question. */
START_TEST(late_answers)
{
    redlock_lock_t *lock = NULL;
    trio_connect();
    ck_assert(trio_wait_all_vote());
    for (size_t i = 0; i < 2; i++)
        fake_redis_rule(trio.fake[i],
                        (struct fake_rule){.command = "SET", .times = 1, .fault = FAKE_GATE});
    check_fails("late", REDLOCK_ENOQUORUM, 0);
    check_failed(0, "late", TIMEOUT);
    check_failed(1, "late", TIMEOUT);
    /* The third server denies from now on: a stale +OK would be told from a grant of it. */
    fake_redis_put(trio.fake[0], "resource", "other", 0);
    fake_redis_put(trio.fake[1], "resource", "other", 0);
    fake_redis_open_gate(trio.fake[0]);
    fake_redis_open_gate(trio.fake[1]);
    ck_assert(trio_wait_all_vote());
    int status = trio_acquire(&lock, 0);
    ck_assert_msg(status == REDLOCK_ECONTENDED, "%s%s", redlock_strerror(status), trio_text());
    ck_assert_uint_gt(trio_stats(0).replies_late, 0);
    ck_assert_uint_eq(trio_stats(0).reconnects, 0);
    fake_redis_remove(trio.fake[0], "resource");
    fake_redis_remove(trio.fake[1], "resource");
    check_recovers("late");
}
END_TEST

/* The undo of a SET follows on the connection of the SET. */
START_TEST(undo_follows_its_set)
{
    char set[256], undo[256], token[128];
    unsigned set_connection = 0, undo_connection = 0;
    trio_connect();
    ck_assert(trio_wait_all_vote());
    fake_redis_put(trio.fake[1], "resource", "other", 0);
    fake_redis_put(trio.fake[2], "resource", "other", 0);
    check_fails("denied", REDLOCK_ECONTENDED, 0);
    ck_assert(fake_redis_wait(trio.fake[0], "EVALSHA release", 1, PATIENCE_MS));
    long set_at = fake_redis_find(trio.fake[0], "SET ", 0, set, sizeof set, &set_connection);
    long undo_at =
        fake_redis_find(trio.fake[0], "EVALSHA release", 0, undo, sizeof undo, &undo_connection);
    ck_assert_int_ge(set_at, 0);
    ck_assert_int_gt(undo_at, set_at);
    ck_assert_uint_eq(set_connection, undo_connection);
    ck_assert_int_eq(sscanf(set, "SET resource %127s NX PX", token), 1);
    ck_assert_ptr_nonnull(strstr(undo, token));
    fake_redis_remove(trio.fake[1], "resource");
    fake_redis_remove(trio.fake[2], "resource");
    check_recovers("undo");
}
END_TEST

/* ---- the connection ends at each byte of the conversation ---- */

/* Bytes that an honest server sends for greeting, acquire and release. */
static uint64_t conversation(void)
{
    trio_connect();
    ck_assert(trio_wait_all_vote());
    trio_check_works();
    ck_assert(trio_wait_no_keys());
    uint64_t sent = fake_redis_sent(trio.fake[0]);
    trio_disconnect();
    return sent;
}

START_TEST(close_at_every_byte)
{
    uint64_t total = conversation();
    ck_assert_uint_gt(total, 100);
    for (uint64_t at = (uint64_t)_i; at <= total; at += 8) {
        fake_redis_cut_after(trio.fake[0], at);
        trio_connect();
        trio_check_works();
        trio_check_works();
        trio_disconnect();
        fake_redis_cut_after(trio.fake[0], UINT64_MAX);
        fake_redis_flush(trio.fake[0]);
        ck_assert(fake_redis_wait_keys(trio.fake[1], 0, PATIENCE_MS));
        ck_assert(fake_redis_wait_keys(trio.fake[2], 0, PATIENCE_MS));
    }
}
END_TEST

/* The attempt is over as soon as two have failed; the third may not have answered by then. */
static void check_two_lost(void)
{
    unsigned lost = 0;
    for (size_t i = 0; i < TRIO; i++) {
        if (trio_node(i).vote != REDLOCK_VOTE_NONE)
            check_failed(i, "close", LOST);
        lost += trio_node(i).vote == REDLOCK_VOTE_FAILED;
    }
    ck_assert_uint_ge(lost, 2);
}

/* All three lose the connection at that byte of the answers to a first acquisition: it may fail,
 * but with an error of its own, and the next one works once the servers behave. */
START_TEST(all_close_in_acquire)
{
    redlock_lock_t *lock = NULL;
    trio_connect();
    ck_assert(trio_wait_all_vote());
    for (size_t i = 0; i < TRIO; i++)
        fake_redis_rule(trio.fake[i],
                        (struct fake_rule){
                            .command = "SET", .times = 1, .fault = FAKE_CLOSE, .at = (size_t)_i});
    int status = trio_acquire(&lock, 0);
    if (_i < 5) {
        ck_assert_msg(status == REDLOCK_ENOQUORUM, "%s%s", redlock_strerror(status), trio_text());
        check_two_lost();
    } else {
        ck_assert_msg(status == REDLOCK_OK, "%s%s", redlock_strerror(status), trio_text());
        (void)trio_release(lock);
    }
    check_recovers("close");
}
END_TEST

/* ---- memory ---- */

/* A line of /proc/self/status, in kB. */
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

/* Neither memory that is used nor address space that is only asked for grows with what a server
 * announces (a thousand million elements) or sends without end. */
START_TEST(memory_is_bounded)
{
    static const struct evil greedy[] = {
        {"elements", FAKE_REPLY, "*1000000000\r\n", 0, PROTOCOL},
        {"gigabyte", FAKE_ENDLESS, "$1000000000\r\n", 0, PROTOCOL},
        {"status", FAKE_ENDLESS, "+", 0, PROTOCOL},
    };
    trio_connect();
    trio_check_works();
    long used_kb = status_kb("VmHWM:"), asked_kb = status_kb("VmPeak:");
    for (size_t i = 0; i < sizeof greedy / sizeof greedy[0]; i++) {
        misbehave(2, "SET", &greedy[i]);
        check_fails(greedy[i].name, REDLOCK_ENOQUORUM, wait_scaled_ms(200));
        check_recovers(greedy[i].name);
        misbehave(2, "INFO", &greedy[i]);
        fake_redis_drop_connections(trio.fake[0]);
        fake_redis_drop_connections(trio.fake[1]);
        check_fails(greedy[i].name, REDLOCK_ENOQUORUM, wait_scaled_ms(200));
        check_recovers(greedy[i].name);
    }
    ck_assert_int_lt(status_kb("VmHWM:") - used_kb, HALF_GIGABYTE_KB / 8);
    ck_assert_int_lt(status_kb("VmPeak:") - asked_kb, HALF_GIGABYTE_KB);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_checked_fixture(tc, trio_setup, trio_teardown);
    tcase_set_timeout(tc, (double)wait_scaled_ms(60000) / 1000.0);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("hostile");
    TCase *acquire = add_case(suite, "acquire"), *release = add_case(suite, "release");
    TCase *greeting = add_case(suite, "greeting"), *timing = add_case(suite, "timing");
    TCase *ends = add_case(suite, "ends"), *memory = add_case(suite, "memory");
    tcase_add_loop_test(acquire, one_spoils_acquire, 0, EVILS);
    tcase_add_loop_test(acquire, two_spoil_acquire, 0, EVILS);
    tcase_add_loop_test(acquire, two_spoil_each_attempt, EVILS - 6, EVILS);
    tcase_add_loop_test(release, one_spoils_release, 0, EVILS);
    tcase_add_loop_test(release, two_spoil_release, 0, EVILS);
    tcase_add_loop_test(greeting, one_spoils_greeting, 0, EVILS);
    tcase_add_loop_test(greeting, two_spoil_greeting, 0, EVILS);
    tcase_add_loop_test(timing, surplus_answers, 0, 16);
    tcase_add_test(timing, surplus_on_an_idle_connection);
    tcase_add_test(timing, late_answer_to_release);
    tcase_add_test(timing, answers_byte_by_byte);
    tcase_add_test(timing, late_answers);
    tcase_add_test(timing, undo_follows_its_set);
    tcase_add_loop_test(ends, close_at_every_byte, 0, 8);
    tcase_add_loop_test(ends, all_close_in_acquire, 0, 6);
    tcase_add_test(memory, memory_is_bounded);
    return suite_run(suite);
}
