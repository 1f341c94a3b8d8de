/* SPDX-License-Identifier: MIT
 * Memory runs out while a permit is acquired: requests about slots that cannot be sent, an attempt
 * without a token, a resource state that cannot be created. The cases are scenarios of rig.h:
 * rig_sweep() runs prepare(), act() and judge() once for each allocation of act(), which then
 * fails, alone or with all later ones. rig.call[0] is the acquisition; rig.hit is true if an
 * allocation has failed. */
#include <string.h>

#include "rig.h"

#define WAIT_MS 60 /* wait budget of an acquisition without memory */
#define PERMITS 3  /* of the semaphore "pool": its keys are pool{#0}, pool{#1} and pool{#2} */

static redlock_opts_t opts; /* of the acquisition */

/* Sets the options, and the keys of slots 0 and 2 with other tokens. Slot 1 stays free. */
static void take_all_but_one(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = PERMITS;
    rig_command_all("SET pool{#0} foreign-0");
    rig_command_all("SET pool{#2} foreign-2");
}

/* Sets the keys of all three slots with other tokens. */
static void take_all(void)
{
    take_all_but_one();
    rig_command_all("SET pool{#1} foreign-1");
    opts.wait_ms = rig_wait_ms(WAIT_MS);
}

/* Acquires a permit as call 0. */
static void acquire(void)
{
    rig_acquire(0, "pool", &opts);
    rig_finish();
}

/* Returns true if the acquisition waits or has ended. */
static bool is_waiting_or_ended(void)
{
    return rig.events[REDLOCK_EVENT_WAITING] > 0 || rig_all_notified();
}

/* Waits for a permit, and lets a slot become free. */
static void wait_for_one(void)
{
    rig_acquire(0, "pool", &opts);
    rig_drive(is_waiting_or_ended, 10000);
    rig_command_all("DEL pool{#1}");
    rig_finish();
}

/* Checks that the other holders' slots are unchanged, and deletes them. */
static void check_foreign(void)
{
    for (unsigned i = 0; i < RIG_NODES; i++) {
        ck_assert(cluster_replies(rig.cluster, i, "foreign-0", "GET pool{#0}"));
        ck_assert(cluster_replies(rig.cluster, i, "foreign-2", "GET pool{#2}"));
    }
    rig_command_all("DEL pool{#0} pool{#2}");
}

/* Checks that the permit, if there is one, is held and in slot 1, and frees it. */
static void free_permit(void)
{
    if (rig.call[0].lock == NULL)
        return;
    ck_assert_int_eq(redlock_lock_check(rig.call[0].lock, 0), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_slot(rig.call[0].lock), 1);
    redlock_lock_free(rig.call[0].lock);
    rig.call[0].lock = NULL;
}

/* Checks the permit of an acquisition that did not wait. */
static void judge_found(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_ECONTENDED);
    if (!rig.hit)
        ck_assert_ptr_nonnull(rig.call[0].lock);
    check_foreign();
    free_permit();
}

/* Checks the permit of an acquisition that waited. */
static void judge_waited(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_ECONTENDED);
    check_foreign();
    free_permit();
}

START_TEST(acquiring_a_free_permit_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "one is free", .prepare = take_all_but_one, .act = acquire, .judge = judge_found});
}
END_TEST

START_TEST(waiting_for_a_permit_without_memory)
{
    rig_sweep(&(struct scenario){.name = "one becomes free",
                                 .prepare = take_all,
                                 .act = wait_for_one,
                                 .judge = judge_waited});
}
END_TEST

static Suite *permits_suite(void)
{
    Suite *suite = suite_create("oom_permits");
    TCase *tcase = tcase_create("permits");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, acquiring_a_free_permit_without_memory);
    tcase_add_test(tcase, waiting_for_a_permit_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(permits_suite());
}
