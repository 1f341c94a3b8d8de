/* SPDX-License-Identifier: MIT
 * Memory runs out while a fencing token is chosen, while records are read and taken into use, and
 * while an operator does that. */
#include "rig.h"

#define RESOURCE "orders:42"
#define STRIPE   "246" /* of the resource */

static redlock_opts_t opts;

static void fenced(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    opts.flags = REDLOCK_FLAG_FENCE;
}

static void acquire(void)
{
    rig_acquire(0, RESOURCE, &opts);
    rig_finish();
}

static void judge(void)
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

/* No node has a record: all are read, then all are taken into use. */
static void first_start(void)
{
    fenced();
    rig_command_all("DEL " CLUSTER_RECORD);
}

START_TEST(the_first_fence_of_all)
{
    rig_sweep(&(struct scenario){
        .name = "first start", .prepare = first_start, .act = acquire, .judge = judge});
}
END_TEST

/* The registers are ahead of every clock, so that a second round is needed. */
static void ahead(void)
{
    fenced();
    rig_command_all("HSET " CLUSTER_RECORD " " STRIPE " 9000000000000000");
}

static void judge_ahead(void)
{
    judge();
    if (rig.lock != NULL)
        ck_assert_uint_eq(redlock_lock_fence(rig.lock), 9000000000000001);
}

START_TEST(two_rounds)
{
    rig_sweep(&(struct scenario){
        .name = "two rounds", .prepare = ahead, .act = acquire, .judge = judge_ahead});
}
END_TEST

static void init(void)
{
    rig_started(0,
                redlock_init_fence_records_start(rig.client, 5000, NULL, rig_done, &rig.call[0]));
    rig_finish();
}

static void judge_init(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_EFENCE);
    if (!rig.hit)
        RIG_EXPECT(0, REDLOCK_OK);
}

START_TEST(records_by_order)
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
    tcase_add_test(tcase, the_first_fence_of_all);
    tcase_add_test(tcase, two_rounds);
    tcase_add_test(tcase, records_by_order);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(fence_suite());
}
