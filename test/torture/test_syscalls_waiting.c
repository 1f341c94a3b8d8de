/* SPDX-License-Identifier: MIT
 * System calls fail in a client that waits for a lock of another holder. Its second connections are
 * being made, or exist already and carry notifications. One failure has no effect, whatever
 * connection it meets, and no failure delays the lock longer than the waiter's timer. */
#include "call_fail.h"
#include "rig.h"

#define WAIT_MS     4000
#define STARVING_MS 150

static redlock_opts_t opts;

/* Acquires the lock with another token; `opts` are for waiting for it. */
static void take_away(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    const bool harms = rig.fault != NULL && !rig.fault->harmless;
    opts.wait_ms = harms ? rig_wait_ms(STARVING_MS) : wait_scaled_ms(WAIT_MS);
    rig_command_all("SET foreign foreign-token");
}

static bool tells_or_ended(void)
{
    return rig_any_notifies() || rig_all_notified();
}

static void let_go_and_end(void)
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

/* The failure meets the second connection when it is made, or a notification on it. */
static void wait_from_the_beginning(void)
{
    rig_acquire(0, "foreign", &opts);
    rig_drive(rig_notifies_or_failed, WAIT_MS);
    let_go_and_end();
}

static void be_told(void)
{
    take_away();
    rig_acquire(0, "foreign", &opts);
    if (!rig_drive(tells_or_ended, WAIT_MS))
        rig_die("nobody tells");
}

/* The second connection exists: the failure meets the notification and the attempt that follows. */
static void go_on_waiting(void)
{
    rig_command_all("SET foreign foreign-token-2");
    let_go_and_end();
}

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

START_TEST(listening_begins)
{
    rig_sweep_calls(&(struct scenario){.name = "listening begins",
                                       .prepare = take_away,
                                       .act = wait_from_the_beginning,
                                       .judge = judge});
}
END_TEST

START_TEST(listening)
{
    rig_sweep_calls(&(struct scenario){
        .name = "listening", .prepare = be_told, .act = go_on_waiting, .judge = judge});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_syscalls_waiting");
    TCase *tcase = tcase_create("waiting");

    rig_add_fixtures(tcase);
    tcase_set_timeout(tcase, 560);
    tcase_add_test(tcase, listening_begins);
    tcase_add_test(tcase, listening);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
