/* SPDX-License-Identifier: MIT
 * System calls fail in a client that waits for a lock of another holder. Its second connections are
 * being made, or exist already and carry notifications. One failure has no effect, whatever
 * connection it meets, and after a single failure the waiter's timer still gets the lock. */
#include "call_fail.h"
#include "rig.h"

#define WAIT_MS                                                                                    \
    4000 /* wait budget of the acquisition, and limit of the loop that drives it, in milliseconds  \
          */
/* Wait budget in a run whose injected fault may keep the acquisition from ever succeeding, so that
 * the run is short; see rig_wait_ms(). */
#define STARVING_MS 150

static redlock_opts_t opts; /* of the acquisition */

/* Sets the key "foreign" as another client, and `opts` to wait for its lock. */
static void set_foreign_key(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    const bool harms = rig.fault != NULL && !rig.fault->harmless;
    opts.wait_ms = harms ? rig_wait_ms(STARVING_MS) : wait_scaled_ms(WAIT_MS);
    rig_command_all("SET foreign foreign-token");
}

/* Returns true if a server sends notifications, or the acquisition has ended. */
static bool notifies_or_ended(void)
{
    return rig_any_notifies() || rig_all_notified();
}

/* Deletes the other holder's key, finishes the acquisition and releases its lock. */
static void release_foreign_and_finish(void)
{
    rig_command_all("DEL foreign");
    rig_finish();
    rig.lock = rig.call[0].lock;
    rig.call[0].lock = NULL;
    if (rig.lock != NULL) {
        rig_release(1, rig.lock);
        rig_finish();
    }
}

/* Waits for the other client's lock from the beginning: the failure meets the second connection
 * when it is made, or a notification on it. */
static void wait_from_the_beginning(void)
{
    rig_acquire(0, "foreign", &opts);
    rig_drive(rig_notifies_or_failed, WAIT_MS);
    release_foreign_and_finish();
}

/* Starts an acquisition that waits, with notifications. */
static void wait_until_notified(void)
{
    set_foreign_key();
    rig_acquire(0, "foreign", &opts);
    if (!rig_drive(notifies_or_ended, WAIT_MS))
        rig_die("no server sends notifications");
}

/* Changes and deletes the other client's key while the second connection exists: the failure meets
 * the notification and the attempt that follows. */
static void wait_for_the_notification(void)
{
    rig_command_all("SET foreign foreign-token-2");
    release_foreign_and_finish();
}

/* Checks the status of the calls, and that both succeed unless the waits are short (rig.hasty). */
static void judge(void)
{
    const bool costs_nothing = !rig.hasty;

    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOQUORUM, REDLOCK_ETOOSLOW, REDLOCK_ECONTENDED);
    ck_assert_msg(!costs_nothing || rig.lock != NULL, "acquire: %s (%s)",
                  redlock_error_name(rig.call[0].status), rig.call[0].text);
    if (rig.lock == NULL)
        return;
    RIG_EXPECT(1, REDLOCK_OK, REDLOCK_ENOQUORUM);
    ck_assert_msg(!costs_nothing || rig.call[1].status == REDLOCK_OK, "release: %s",
                  rig.call[1].text);
}

START_TEST(failing_calls_while_notifications_begin)
{
    rig_sweep_calls(&(struct scenario){.name = "listening begins",
                                       .prepare = set_foreign_key,
                                       .act = wait_from_the_beginning,
                                       .judge = judge});
}
END_TEST

START_TEST(failing_calls_with_notifications)
{
    rig_sweep_calls(&(struct scenario){.name = "listening",
                                       .prepare = wait_until_notified,
                                       .act = wait_for_the_notification,
                                       .judge = judge});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_syscalls_waiting");
    TCase *tcase = tcase_create("waiting");

    rig_add_fixtures(tcase);
    tcase_set_timeout(tcase, 560);
    tcase_add_test(tcase, failing_calls_while_notifications_begin);
    tcase_add_test(tcase, failing_calls_with_notifications);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
