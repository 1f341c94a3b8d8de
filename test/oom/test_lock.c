/* SPDX-License-Identifier: MIT
 * Memory runs out while a lock is acquired, waited for, canceled or adopted. Each case is a
 * scenario of rig.h: rig_sweep() runs prepare(), act() and judge() once for each allocation of
 * act(), which then fails, alone or with all later ones. A case proves that each call ends with a
 * status that a lack of memory explains. The rig checks after each run that no key or block is
 * left. rig.call[i] is the operation number i of a run, rig.hit is true if an allocation has
 * failed. */
#include <string.h>

#include "rig.h"

#define WAIT_MS 60 /* wait budget of an acquisition without memory */

static redlock_opts_t opts; /* of the acquisitions */
static char token[128];     /* of the lock to adopt */

/* Sets the options of a plain lock. */
static void set_options(void)
{
    opts = redlock_opts(RIG_TTL_MS);
}

/* Acquires the free lock "resource" as call 0. */
static void acquire(void)
{
    rig_acquire(0, "resource", &opts);
    rig_finish();
}

/* Checks that the lock of call `i`, if there is one, is held and its token on a majority. Hands the
 * lock over to rig.lock, which the rig releases. */
static void judge_grant(unsigned i)
{
    if (rig.call[i].lock == NULL)
        return;
    rig.lock = rig.call[i].lock;
    rig.call[i].lock = NULL;
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), REDLOCK_OK);
    ck_assert_uint_ge(rig_count_held(), RIG_NODES / 2 + 1);
}

/* Checks the status, that the event ACQUIRED came exactly with a lock, and the lock. */
static void judge_acquire(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.events[REDLOCK_EVENT_ACQUIRED], rig.call[0].lock != NULL);
    judge_grant(0);
}

START_TEST(acquiring_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "acquire", .prepare = set_options, .act = acquire, .judge = judge_acquire});
}
END_TEST

/* ---- one token on many nodes, several locks in one tick ---- */

/* Starts three acquisitions, two of them of the same resource. */
static void acquire_three(void)
{
    rig_acquire(0, "one", &opts);
    rig_acquire(1, "two", &opts);
    rig_acquire(2, "two", &opts);
    rig_finish();
}

/* Checks that two locks of one resource are not held at a time. */
static void judge_three(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    ck_assert(rig.call[1].lock == NULL || rig.call[2].lock == NULL);
    if (!rig.hit)
        ck_assert(rig.call[1].lock != NULL || rig.call[2].lock != NULL);
    for (unsigned i = 0; i < 3; i++) {
        redlock_lock_free(rig.call[i].lock);
        rig.call[i].lock = NULL;
    }
}

START_TEST(acquiring_three_locks_without_memory)
{
    rig_sweep(&(struct scenario){.name = "three at once",
                                 .prepare = set_options,
                                 .act = acquire_three,
                                 .judge = judge_three});
}
END_TEST

/* ---- held by another client ---- */

/* Sets the key "foreign" as another client. */
static void set_foreign_key(void)
{
    set_options();
    rig_command_all("SET foreign foreign-token");
}

/* Tries to acquire the other client's lock. */
static void acquire_foreign(void)
{
    rig_acquire(0, "foreign", &opts);
    rig_finish();
}

/* Checks that the acquisition has failed and the other client's key is unchanged. */
static void judge_denied(void)
{
    RIG_EXPECT(0, REDLOCK_ECONTENDED, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < RIG_NODES; i++)
        ck_assert_msg(cluster_replies(rig.cluster, i, "foreign-token", "GET foreign"),
                      "the other client's key is gone");
}

START_TEST(acquiring_a_held_lock_without_memory)
{
    rig_sweep(&(struct scenario){.name = "held by another",
                                 .prepare = set_foreign_key,
                                 .act = acquire_foreign,
                                 .judge = judge_denied});
}
END_TEST

/* Returns true if the acquisition waits or has ended. */
static bool is_waiting_or_ended(void)
{
    return rig.events[REDLOCK_EVENT_WAITING] > 0 || rig_all_notified();
}

/* Waits for the other client's lock, whose key is deleted once the wait has begun. */
static void wait_for_foreign(void)
{
    opts.wait_ms = rig_wait_ms(WAIT_MS);
    rig_acquire(0, "foreign", &opts);
    rig_drive(is_waiting_or_ended, 10000);
    rig_command_all("DEL foreign");
    rig_finish();
}

/* Checks the status and the lock. ECONTENDED is allowed, because the wait budget is short if all
 * later allocations fail. */
static void judge_retry(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM, REDLOCK_ECONTENDED);
    judge_grant(0);
}

START_TEST(waiting_without_memory)
{
    rig_sweep(&(struct scenario){.name = "waited for",
                                 .prepare = set_foreign_key,
                                 .act = wait_for_foreign,
                                 .judge = judge_retry});
}
END_TEST

/* ---- connections are lost ---- */

/* Returns how many connections were established again. */
static unsigned count_reconnections(void)
{
    return rig.events[REDLOCK_EVENT_NODE_UP];
}

/* Returns true if all calls have ended and both connections are established again. */
static bool has_ended_and_reconnected(void)
{
    return rig_all_notified() && count_reconnections() >= 2;
}

/* Acquires the lock while two connections are established again. */
static void acquire_while_reconnecting(void)
{
    rig_command(0, "CLIENT KILL TYPE normal");
    rig_command(1, "CLIENT KILL TYPE normal");
    rig_acquire(0, "resource", &opts);
    rig_drive(has_ended_and_reconnected, WAIT_MS);
    rig_finish();
}

/* Checks the status and the lock. */
static void judge_reconnect(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    judge_grant(0);
}

START_TEST(reconnecting_without_memory)
{
    rig_sweep(&(struct scenario){.name = "reconnect",
                                 .prepare = set_options,
                                 .act = acquire_while_reconnecting,
                                 .judge = judge_reconnect});
}
END_TEST

/* ---- canceled ---- */

/* Waits for the other client's lock and cancels the wait. */
static void acquire_and_cancel(void)
{
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    if (redlock_cancel_new(&rig.cancel, rig.client) != REDLOCK_OK)
        rig.cancel = NULL;
    opts.cancel = rig.cancel;
    rig_acquire(0, "foreign", &opts);
    rig_drive(is_waiting_or_ended, 10000);
    redlock_cancel_trigger(rig.cancel);
    if (rig.cancel != NULL)
        rig_finish();
}

/* Checks that the wait was canceled, or has gone on without a cancel object. */
static void judge_cancel(void)
{
    if (rig.cancel == NULL) { /* no cancel object: it waits until the lock is released */
        rig_command_all("DEL foreign");
        rig_finish();
        RIG_EXPECT(0, REDLOCK_ECANCELED, REDLOCK_OK, REDLOCK_ENOMEM);
        judge_grant(0);
        return;
    }
    RIG_EXPECT(0, REDLOCK_ECANCELED, REDLOCK_ENOMEM);
}

START_TEST(canceling_without_memory)
{
    rig_sweep(&(struct scenario){.name = "canceled",
                                 .prepare = set_foreign_key,
                                 .act = acquire_and_cancel,
                                 .judge = judge_cancel});
}
END_TEST

/* ---- adopted ---- */

/* Acquires the lock, remembers its token and detaches it. */
static void detach_and_keep_token(void)
{
    set_options();
    rig_hold_on_all("resource", &opts);
    snprintf(token, sizeof token, "%s", redlock_lock_token(rig.lock));
    ck_assert_int_eq(redlock_lock_detach(rig.lock), REDLOCK_OK);
}

/* Adopts the lock by its token. */
static void adopt(void)
{
    rig_started(0,
                redlock_adopt_start(rig.client, "resource", token, &opts, rig_done, &rig.call[0]));
    rig_finish();
}

/* Checks that the lock is adopted, or still has all its keys: a failed adoption has not taken the
 * lock from its holder. */
static void judge_adoption(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].lock != NULL) {
        redlock_lock_free(rig.lock);
        judge_grant(0);
        ck_assert_str_eq(redlock_lock_token(rig.lock), token);
        return;
    }
    /* A failed adoption has not taken the lock from its holder. */
    ck_assert_uint_eq(rig_count_held(), RIG_NODES);
    rig_command_all("DEL resource");
}

START_TEST(adopting_without_memory)
{
    rig_sweep(&(struct scenario){.name = "adopted",
                                 .prepare = detach_and_keep_token,
                                 .act = adopt,
                                 .judge = judge_adoption});
}
END_TEST

/* ---- another call from inside the callback ---- */

/* Inspects and releases the lock from inside the callback of its acquisition. */
static void release_in_callback(redlock_t *rl, int status, redlock_lock_t *lock,
                                const redlock_report_t *report, void *userdata)
{
    rig_done(rl, status, lock, report, userdata);
    if (status != REDLOCK_OK)
        return;
    rig_started(1, redlock_inspect_start(rl, "resource", NULL, rig_done, &rig.call[1]));
    rig_release(2, lock);
}

/* Acquires the lock with release_in_callback(). */
static void acquire_with_chain(void)
{
    rig_started(
        0, redlock_acquire_start(rig.client, "resource", &opts, release_in_callback, &rig.call[0]));
    rig_finish();
}

/* Checks the status of each call of the chain. */
static void judge_chain(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    if (rig.call[0].lock == NULL)
        return;
    RIG_EXPECT(1, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    RIG_EXPECT(2, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
}

START_TEST(calls_in_a_callback_without_memory)
{
    rig_sweep(&(struct scenario){.name = "calls in a callback",
                                 .prepare = set_options,
                                 .act = acquire_with_chain,
                                 .judge = judge_chain});
}
END_TEST

static Suite *lock_suite(void)
{
    Suite *suite = suite_create("oom_lock");
    TCase *tcase = tcase_create("lock");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, acquiring_without_memory);
    tcase_add_test(tcase, acquiring_three_locks_without_memory);
    tcase_add_test(tcase, acquiring_a_held_lock_without_memory);
    tcase_add_test(tcase, waiting_without_memory);
    tcase_add_test(tcase, reconnecting_without_memory);
    tcase_add_test(tcase, canceling_without_memory);
    tcase_add_test(tcase, adopting_without_memory);
    tcase_add_test(tcase, calls_in_a_callback_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(lock_suite());
}
