/* SPDX-License-Identifier: MIT
 * Memory runs out while a lock is inspected, broken, or released by its token. */
#include <string.h>

#include "rig.h"

static redlock_opts_t opts;
static char token[128];

static void hold(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig_hold_on_all("resource", &opts);
}

static void inspect(void)
{
    rig_started(0, redlock_inspect_start(rig.client, "resource", NULL, rig_done, &rig.call[0]));
    rig_finish();
}

static void judge_inspection(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (!rig.hit)
        ck_assert_int_eq(rig.call[0].info.state, REDLOCK_STATE_HELD);
    if (rig.call[0].started == REDLOCK_OK && rig.call[0].status == REDLOCK_OK)
        ck_assert_int_ne(rig.call[0].info.state, REDLOCK_STATE_FREE);
    ck_assert_uint_eq(rig_count_held(), RIG_NODES);
}

START_TEST(inspected)
{
    rig_sweep(&(struct scenario){
        .name = "inspect", .prepare = hold, .act = inspect, .judge = judge_inspection});
}
END_TEST

static void verify(void)
{
    rig.call[0].borrows = true;
    rig_started(0, redlock_verify_start(rig.lock, NULL, rig_done, &rig.call[0]));
    rig_finish();
}

/* Lack of memory proves nothing: the lock stays. */
static void judge_verification(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(rig_count_held(), RIG_NODES);
}

START_TEST(verified)
{
    rig_sweep(&(struct scenario){
        .name = "verify", .prepare = hold, .act = verify, .judge = judge_verification});
}
END_TEST

static void judge_free(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].started == REDLOCK_OK && rig.call[0].status == REDLOCK_OK)
        ck_assert_int_ne(rig.call[0].info.state, REDLOCK_STATE_HELD);
}

START_TEST(free_one_inspected)
{
    rig_sweep(
        &(struct scenario){.name = "inspect, nothing there", .act = inspect, .judge = judge_free});
}
END_TEST

/* ---- broken: values of several owners, and one that is no lock's ---- */

static void mix(void)
{
    rig_command(0, "SET resource foreign-a");
    rig_command(1, "SET resource foreign-a");
    rig_command(2, "SET resource foreign-b");
    rig_command(3, "SET resource foreign-c");
}

static void break_it(void)
{
    rig_started(0, redlock_break_start(rig.client, "resource", NULL, rig_done, &rig.call[0]));
    rig_finish();
}

static unsigned keys_left(void)
{
    unsigned left = 0;
    for (unsigned i = 0; i < RIG_NODES; i++)
        left += (unsigned)cluster_integer(rig.cluster, i, "EXISTS resource");
    return left;
}

/* Checks that a lock that was reported as broken is gone from a majority. */
static void judge_break(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].started == REDLOCK_OK && rig.call[0].status == REDLOCK_OK)
        ck_assert_uint_le(keys_left(), RIG_NODES / 2);
    if (!rig.hit)
        ck_assert_uint_eq(keys_left(), 0);
    rig_command_all("DEL resource");
}

START_TEST(broken)
{
    rig_sweep(
        &(struct scenario){.name = "break", .prepare = mix, .act = break_it, .judge = judge_break});
}
END_TEST

/* ---- released by token ---- */

static void give_token(void)
{
    hold();
    strncpy(token, redlock_lock_token(rig.lock), sizeof token - 1);
    ck_assert_int_eq(redlock_lock_detach(rig.lock), REDLOCK_OK);
}

static void release_token(void)
{
    rig_started(0, redlock_release_token_start(rig.client, "resource", token, NULL, rig_done,
                                               &rig.call[0]));
    rig_finish();
}

/* Checks that a release by token that began is completed once memory is available. */
static void judge_release_token(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].started != REDLOCK_OK)
        rig_command_all("DEL resource");
    redlock_lock_free(rig.lock);
    rig.lock = NULL;
}

START_TEST(released_by_token)
{
    rig_sweep(&(struct scenario){.name = "release_token",
                                 .prepare = give_token,
                                 .act = release_token,
                                 .judge = judge_release_token});
}
END_TEST

static Suite *questions_suite(void)
{
    Suite *suite = suite_create("oom_inspect");
    TCase *tcase = tcase_create("questions");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, inspected);
    tcase_add_test(tcase, verified);
    tcase_add_test(tcase, free_one_inspected);
    tcase_add_test(tcase, broken);
    tcase_add_test(tcase, released_by_token);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(questions_suite());
}
