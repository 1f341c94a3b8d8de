/* SPDX-License-Identifier: MIT
 * Memory runs out while a fencing token is chosen, while records are read and taken into use, and
 * while an operator does that. Each case is a scenario of rig.h, which rig_sweep() runs once for
 * each allocation of act(). rig.call[0] is the operation of a run; rig.hit: an allocation has
 * failed. */
#include "rig.h"

#define RESOURCE "orders:42"
#define STRIPE   "246" /* of the resource */

static redlock_opts_t opts; /* of the lock */

/* Sets options for a lock with a fence. */
static void want_fence(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    opts.flags = REDLOCK_FLAG_FENCE;
}

/* Acquires the lock with a fencing token as call 0. */
static void acquire(void)
{
    rig_acquire(0, RESOURCE, &opts);
    rig_finish();
}

/* Checks that a granted lock is held and has a fencing token. */
static void judge_fenced_lock(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_EFENCE);
    if (!rig.hit)
        RIG_EXPECT(0, REDLOCK_OK);
    if (rig.call[0].lock == NULL)
        return;
    rig.lock = rig.call[0].lock;
    rig.call[0].lock = NULL;
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), REDLOCK_OK);
    ck_assert_uint_gt(redlock_lock_fence(rig.lock), 0);
    ck_assert_uint_ge(rig_count_held(), RIG_NODES / 2 + 1);
}

/* Removes all records: an acquisition reads all of them and then seeds all of them. */
static void first_start(void)
{
    want_fence();
    rig_command_all("DEL " CLUSTER_RECORD);
}

START_TEST(a_first_start_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "first start", .prepare = first_start, .act = acquire, .judge = judge_fenced_lock});
}
END_TEST

/* Sets the registers above any clock, so that a second round is needed. */
static void raise_registers(void)
{
    want_fence();
    rig_command_all("HSET " CLUSTER_RECORD " " STRIPE " 9000000000000000");
}

/* Checks that the fencing token is above the registers. */
static void judge_large_fence(void)
{
    judge_fenced_lock();
    if (rig.lock != NULL)
        ck_assert_uint_eq(redlock_lock_fence(rig.lock), 9000000000000001);
}

START_TEST(two_rounds_without_memory)
{
    rig_sweep(&(struct scenario){.name = "two rounds",
                                 .prepare = raise_registers,
                                 .act = acquire,
                                 .judge = judge_large_fence});
}
END_TEST

/* Initializes the fence records as an operator. */
static void init(void)
{
    rig_started(0,
                redlock_init_fence_records_start(rig.client, 5000, NULL, rig_done, &rig.call[0]));
    rig_finish();
}

/* Checks the status of the initialization: OK if nothing has failed. */
static void judge_init(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_EFENCE);
    if (!rig.hit)
        RIG_EXPECT(0, REDLOCK_OK);
}

START_TEST(initializing_records_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "init", .prepare = first_start, .act = init, .judge = judge_init});
}
END_TEST

static Suite *fence_suite(void)
{
    Suite *suite = suite_create("oom_fence");
    TCase *tcase = tcase_create("fence");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, a_first_start_without_memory);
    tcase_add_test(tcase, two_rounds_without_memory);
    tcase_add_test(tcase, initializing_records_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(fence_suite());
}
