/* SPDX-License-Identifier: MIT
 * Memory runs out while a lock is inspected, verified, broken, or released by its token. The cases
 * are scenarios of rig.h: rig_sweep() runs prepare(), act() and judge() once for each allocation of
 * act(), which then fails, alone or with all later ones. rig.call[0] is the operation of a run;
 * rig.hit is true if an allocation has failed. */
#include <string.h>

#include "rig.h"

static redlock_opts_t opts; /* of the lock */
static char token[128];     /* of the detached lock */

/* Acquires the lock on all nodes. */
static void hold(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig_hold_on_all("resource", &opts);
}

/* Inspects the resource. */
static void inspect(void)
{
    rig_started(0, redlock_inspect_start(rig.client, "resource", NULL, rig_done, &rig.call[0]));
    rig_finish();
}

/* Checks that an inspection that succeeds does not report a held lock as free. */
static void judge_inspection(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (!rig.hit)
        ck_assert_int_eq(rig.call[0].info.state, REDLOCK_STATE_HELD);
    if (rig.call[0].started == REDLOCK_OK && rig.call[0].status == REDLOCK_OK)
        ck_assert_int_ne(rig.call[0].info.state, REDLOCK_STATE_FREE);
    ck_assert_uint_eq(rig_count_held(), RIG_NODES);
}

START_TEST(inspecting_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "inspect", .prepare = hold, .act = inspect, .judge = judge_inspection});
}
END_TEST

/* Acquires the lock on all nodes, and gives all servers a line of two waiters. */
static void hold_with_line(void)
{
    hold();
    /* A command of the test is divided at blanks: \032 is one for Lua. */
    rig_command_all("EVAL return(redis.call('SET',KEYS[1],'redlock-line\\n"
                    "7\\0320\\032h\\0320\\0321\\032web\\n"
                    "8\\0320\\032w\\0320\\0322\\032cron\\n','PX',60000)) 1 resource{#q}");
}

/* Checks the inspection, and that all waiters were read, or that it is not known who waits. */
static void judge_line(void)
{
    const uint32_t length = rig.call[0].info.line_length;

    judge_inspection();
    ck_assert_msg(length == 2 || (rig.hit && length == 0), "%u waiters", length);
    ck_assert(length == 2 || rig.call[0].info.line_servers == 0);
    rig_command_all("DEL resource{#q}");
}

START_TEST(reading_a_line_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "line", .prepare = hold_with_line, .act = inspect, .judge = judge_line});
}
END_TEST

/* Verifies the lock. */
static void verify(void)
{
    rig.call[0].borrows = true;
    rig_started(0, redlock_verify_start(rig.lock, NULL, rig_done, &rig.call[0]));
    rig_finish();
}

/* Checks that a verification without memory does not end the lock. */
static void judge_verification(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(rig_count_held(), RIG_NODES);
}

START_TEST(verifying_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "verify", .prepare = hold, .act = verify, .judge = judge_verification});
}
END_TEST

/* Checks that an inspection that succeeds does not report a free resource as held. */
static void judge_free(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].started == REDLOCK_OK && rig.call[0].status == REDLOCK_OK)
        ck_assert_int_ne(rig.call[0].info.state, REDLOCK_STATE_HELD);
}

START_TEST(inspecting_a_free_resource_without_memory)
{
    rig_sweep(
        &(struct scenario){.name = "inspect, nothing there", .act = inspect, .judge = judge_free});
}
END_TEST

/* ---- breaking a key that has different values ---- */

/* Sets different values on the servers, and none on the last one. */
static void set_different_values(void)
{
    rig_command(0, "SET resource foreign-a");
    rig_command(1, "SET resource foreign-a");
    rig_command(2, "SET resource foreign-b");
    rig_command(3, "SET resource foreign-c");
}

/* Breaks the lock "resource" as call 0. */
static void break_it(void)
{
    rig_started(0, redlock_break_start(rig.client, "resource", NULL, rig_done, &rig.call[0]));
    rig_finish();
}

/* Returns the number of servers that still have the key. */
static unsigned keys_left(void)
{
    unsigned left = 0;
    for (unsigned i = 0; i < RIG_NODES; i++)
        left += (unsigned)cluster_integer(rig.cluster, i, "EXISTS resource");
    return left;
}

/* Checks that a break that succeeded has removed the key from a majority, and from all servers if
 * nothing failed. */
static void judge_break(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].started == REDLOCK_OK && rig.call[0].status == REDLOCK_OK)
        ck_assert_uint_le(keys_left(), RIG_NODES / 2);
    if (!rig.hit)
        ck_assert_uint_eq(keys_left(), 0);
    rig_command_all("DEL resource");
}

START_TEST(breaking_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "break", .prepare = set_different_values, .act = break_it, .judge = judge_break});
}
END_TEST

/* ---- released by token ---- */

/* Acquires the lock, remembers its token and detaches it. */
static void detach_and_keep_token(void)
{
    hold();
    strncpy(token, redlock_lock_token(rig.lock), sizeof token - 1);
    ck_assert_int_eq(redlock_lock_detach(rig.lock), REDLOCK_OK);
}

/* Releases the lock by its token. */
static void release_token(void)
{
    rig_started(0, redlock_release_token_start(rig.client, "resource", token, NULL, rig_done,
                                               &rig.call[0]));
    rig_finish();
}

/* Checks the status. If the release was refused, deletes the key; otherwise the rig checks that the
 * key disappears once memory is available. */
static void judge_release_token(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].started != REDLOCK_OK)
        rig_command_all("DEL resource");
    redlock_lock_free(rig.lock);
    rig.lock = NULL;
}

START_TEST(releasing_by_token_without_memory)
{
    rig_sweep(&(struct scenario){.name = "release_token",
                                 .prepare = detach_and_keep_token,
                                 .act = release_token,
                                 .judge = judge_release_token});
}
END_TEST

static Suite *inspect_suite(void)
{
    Suite *suite = suite_create("oom_inspect");
    TCase *tcase = tcase_create("inspect");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, inspecting_without_memory);
    tcase_add_test(tcase, reading_a_line_without_memory);
    tcase_add_test(tcase, verifying_without_memory);
    tcase_add_test(tcase, inspecting_a_free_resource_without_memory);
    tcase_add_test(tcase, breaking_without_memory);
    tcase_add_test(tcase, releasing_by_token_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(inspect_suite());
}
