/* SPDX-License-Identifier: MIT
 * Servers that are listed with waitaof=1 and answer WAITAOF with yes, not yet, an error, garbage,
 * an end or not at all: what counts is on disk, and what does not count is taken back. */
#include "three_servers.h"

#include "suite.h"
#include "wait.h"

#include <stdio.h>
#include <string.h>

#define ON_DISK "*2\r\n:1\r\n:0\r\n"
#define NOT_YET "*2\r\n:0\r\n:0\r\n"
#define FILE_ON "$26\r\nloading:0\r\naof_enabled:1\r\n\r\n"

static void setup(void)
{
    static const struct fake_profile profile = {.version = "7.2.6"};

    trio_setup();
    for (size_t i = 0; i < TRIO; i++)
        fake_redis_set_profile(trio.fake[i], &profile);
}

/* INFO says that there is a file, as always. */
static void keep_file(size_t index)
{
    fake_redis_rule(trio.fake[index], (struct fake_rule){.command = "INFO",
                                                         .argument = "persistence",
                                                         .fault = FAKE_REPLY,
                                                         .bytes = FILE_ON});
}

static void answer(size_t index, enum fake_fault fault, const char *bytes, unsigned times)
{
    fake_redis_rule(
        trio.fake[index],
        (struct fake_rule){.command = "WAITAOF", .fault = fault, .bytes = bytes, .times = times});
}

static void say_yes(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        answer(i, FAKE_REPLY, ON_DISK, 0);
}

static void connect_all(void)
{
    for (size_t i = 0; i < TRIO; i++)
        keep_file(i);
    trio_connect_as(NULL, "?waitaof=1&fresh=1");
    ck_assert(trio_wait_all_vote());
}

static void check_gives_back(redlock_lock_t *lock)
{
    ck_assert_int_eq(trio_release(lock), REDLOCK_OK);
    ck_assert(trio_wait_no_keys());
}

START_TEST(asked_behind_each_grant)
{
    redlock_lock_t *lock = NULL;
    char line[256];

    say_yes(0, TRIO);
    connect_all();
    ck_assert_msg(trio_acquire(&lock, 0) == REDLOCK_OK, "%s", trio_text());
    ck_assert_int_eq(trio_extend(lock, TTL_MS), REDLOCK_OK);
    for (size_t i = 0; i < TRIO; i++) {
        ck_assert(fake_redis_wait(trio.fake[i], "WAITAOF 1 0 20", 1, PATIENCE_MS));
        long set = fake_redis_find(trio.fake[i], "SET", 0, line, sizeof line, NULL);
        long asked = fake_redis_find(trio.fake[i], "WAITAOF", 0, line, sizeof line, NULL);
        ck_assert_int_gt(asked, set);
    }
    check_gives_back(lock);
    for (size_t i = 0; i < TRIO; i++)
        ck_assert_uint_le(fake_redis_count(trio.fake[i], "WAITAOF"), 2); /* not for a release */
}
END_TEST

/* A denial waits for nothing. */
START_TEST(not_asked_when_denied)
{
    redlock_lock_t *lock = NULL;

    say_yes(0, TRIO);
    for (size_t i = 0; i < TRIO; i++)
        fake_redis_put(trio.fake[i], "resource", "another", TTL_MS);
    connect_all();
    ck_assert_int_eq(trio_acquire(&lock, 0), REDLOCK_ECONTENDED);
    for (size_t i = 0; i < TRIO; i++)
        ck_assert_uint_eq(fake_redis_count(trio.fake[i], "WAITAOF"), 0);
}
END_TEST

START_TEST(asked_until_it_is_there)
{
    redlock_lock_t *lock = NULL;

    for (size_t i = 0; i < TRIO; i++)
        answer(i, FAKE_REPLY, NOT_YET, 50);
    say_yes(0, TRIO);
    connect_all();
    ck_assert_msg(trio_acquire(&lock, 0) == REDLOCK_OK, "%s", trio_text());
    unsigned late = 0;
    for (size_t i = 0; i < TRIO; i++)
        late += fake_redis_count(trio.fake[i], "WAITAOF") > 50;
    ck_assert_uint_ge(late, 2); /* a majority has said yes */
    check_gives_back(lock);
}
END_TEST

static const struct {
    const char *name;
    enum fake_fault fault;
    const char *bytes;
    unsigned causes;
} FAULTS[] = {
    {"no file", FAKE_REPLY, "-ERR WAITAOF cannot be used when numlocal is set\r\n",
     1u << REDLOCK_CAUSE_NO_AOF},
    {"not known", FAKE_REPLY, "-ERR unknown command 'WAITAOF'\r\n", 1u << REDLOCK_CAUSE_NO_AOF},
    {"not allowed", FAKE_REPLY, "-NOPERM no\r\n", 1u << REDLOCK_CAUSE_NOPERM},
    {"never", FAKE_REPLY, NOT_YET, 1u << REDLOCK_CAUSE_NOT_ON_DISK},
    {"garbage", FAKE_REPLY, "*2\r\n:1\r\n+x\r\n", PROTOCOL},
    {"end", FAKE_DROP, "", LOST},
    {"silence", FAKE_SILENCE, "", TIMEOUT | LOST},
};

/* Of a majority: no lock, and no key is left. Of one: a lock all the same. */
START_TEST(anything_else_is_no_vote)
{
    size_t bad = _i % 2 == 0 ? 2 : 1;
    redlock_lock_t *lock = NULL;

    for (size_t i = 0; i < bad; i++)
        answer(i, FAULTS[_i / 2].fault, FAULTS[_i / 2].bytes, 0);
    say_yes(bad, TRIO - bad);
    connect_all();
    int status = trio_acquire(&lock, 0);
    if (bad == 1) {
        ck_assert_msg(status == REDLOCK_OK, "%s: %s", FAULTS[_i / 2].name, trio_text());
        trio_behave();
        say_yes(0, TRIO);
        for (size_t i = 0; i < TRIO; i++)
            keep_file(i);
        check_gives_back(lock);
        return;
    }
    ck_assert_msg(status == (FAULTS[_i / 2].causes == 1u << REDLOCK_CAUSE_NOPERM
                                 ? REDLOCK_EAUTH
                                 : REDLOCK_ENOQUORUM),
                  "%s: %s %s", FAULTS[_i / 2].name, redlock_error_name(status), trio_text());
    ck_assert_ptr_null(lock);
    for (size_t i = 0; i < bad; i++)
        trio_check_failed(i, FAULTS[_i / 2].name, FAULTS[_i / 2].causes);
    trio_behave();
    say_yes(0, TRIO);
    for (size_t i = 0; i < TRIO; i++)
        keep_file(i);
    ck_assert(trio_wait_no_keys());
    ck_assert(trio_wait_all_vote());
    trio_check_works();
}
END_TEST

static Suite *disk_suite(void)
{
    Suite *suite = suite_create("io_disk");
    TCase *tcase = tcase_create("disk");
    tcase_add_checked_fixture(tcase, setup, trio_teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, asked_behind_each_grant);
    tcase_add_test(tcase, not_asked_when_denied);
    tcase_add_test(tcase, asked_until_it_is_there);
    tcase_add_loop_test(tcase, anything_else_is_no_vote, 0,
                        2 * (int)(sizeof FAULTS / sizeof FAULTS[0]));
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(disk_suite());
}
