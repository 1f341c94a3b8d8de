/* SPDX-License-Identifier: MIT
 * Memory runs out while locks wait: the resource state, the queue entry, and the second connection,
 * on which the server sends notifications. The case is a scenario of rig.h: rig_sweep() runs
 * prepare(), act() and judge() once for each allocation of act(), which then fails, alone or with
 * all later ones. rig.call[i] is operation number i of a run. */
#include "rig.h"

#define WAIT_MS 500 /* wait budget without memory */

static redlock_opts_t opts;   /* of both acquisitions */
static redlock_lock_t *first; /* the lock of the first acquisition; NULL: not granted */

/* Sets the key "foreign" as another client. */
static void set_foreign_key(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    opts.wait_ms = rig_wait_ms(WAIT_MS);
    rig_command_all("SET foreign foreign-token");
}

/* Returns true if the first acquisition has ended. */
static bool first_has_ended(void)
{
    return !rig.call[0].used || rig.call[0].started != REDLOCK_OK ||
           atomic_load(&rig.call[0].callbacks) != 0;
}

/* Starts two acquisitions of one client, of which the second waits in the queue. Deletes the other
 * client's key, and releases the first lock so that the second can be granted. */
static void wait_and_be_notified(void)
{
    rig_acquire(0, "foreign", &opts);
    rig_acquire(1, "foreign", &opts);
    rig_drive(rig_notifies_or_failed, 10000);
    rig_command_all("DEL foreign");
    rig_drive(first_has_ended, 10000);
    first = rig.call[0].lock;
    rig.call[0].lock = NULL;
    if (first != NULL)
        rig_release(2, first);
    rig_finish();
}

/* Checks the status of both acquisitions and frees their locks. */
static void judge_both(void)
{
    redlock_lock_free(first);
    first = NULL;
    for (unsigned i = 0; i < 2; i++) {
        RIG_EXPECT(i, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_ECONTENDED);
        redlock_lock_free(rig.call[i].lock);
        rig.call[i].lock = NULL;
    }
}

START_TEST(waiting_in_the_queue_without_memory)
{
    rig_sweep(&(struct scenario){.name = "told of a release",
                                 .prepare = set_foreign_key,
                                 .act = wait_and_be_notified,
                                 .judge = judge_both});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom_waiting");
    TCase *tcase = tcase_create("waiting");

    rig_add_fixtures(tcase);
    tcase_set_timeout(tcase, 280);
    tcase_add_test(tcase, waiting_in_the_queue_without_memory);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
