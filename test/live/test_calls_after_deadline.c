/* SPDX-License-Identifier: MIT
 * Calls on a lock whose deadline has passed while no loop ran, so that no timer has noticed it.
 * They agree with redlock_lock_check(): the lock is lost.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. LOOP_UNTIL() turns the loop of a client until a condition holds or
 * the deadline has passed. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * live_brief_ms() stretches a TTL for slow builds. CHECK_STATUS() compares two REDLOCK_* codes.
 * From live_events.h: note_event() copies each event into lock_events. note_done() stores the
 * result of an asynchronous call in a struct outcome, and outcome_wait() waits for it. */
#include "live_events.h"
#include "suite.h"

#include <poll.h>

#define BRIEF_TTL_MS 300 /* a TTL that the case waits for; stretched */

static struct outcome outcome;

/* Acquires a lock in embedded mode, and waits until its deadline has passed, with no turn of the
 * loop. */
static redlock_lock_t *expired_lock(void)
{
    struct outcome acquired = OUTCOME;
    redlock_opts_t opts = redlock_opts(live_brief_ms(BRIEF_TTL_MS));

    live.mode = REDLOCK_MODE_EMBEDDED;
    live_connect();
    events_reset();
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_acquire_start(live.client, "expired", &opts, note_done, &acquired),
                     REDLOCK_OK);
    ck_assert_int_eq(outcome_wait(live.client, &acquired), REDLOCK_OK);
    ck_assert_int_ge(redlock_lock_fd(acquired.lock), 0);
    ck_assert(WAIT_UNTIL(redlock_lock_check(acquired.lock, 0) == REDLOCK_ELOST, TIME_LIMIT_MS));
    return acquired.lock;
}

/* The calls of this test. */
static int call_release(redlock_lock_t *lock)
{
    return redlock_release_start(lock, note_done, &outcome);
}

static int call_release_after(redlock_lock_t *lock)
{
    return redlock_release_after_start(lock, 1, note_done, &outcome);
}

static int call_verify(redlock_lock_t *lock)
{
    return redlock_verify_start(lock, NULL, note_done, &outcome);
}

static int (*const calls[])(redlock_lock_t *) = {
    call_release, call_release_after, redlock_lock_detach, redlock_lock_retain, call_verify};

/* Each call is refused with ELOST. The loss is reported once, and no release. */
START_TEST(a_call_after_the_deadline_finds_the_lock_lost)
{
    redlock_lock_t *lock = expired_lock();

    CHECK_STATUS(calls[_i](lock), REDLOCK_ELOST);
    ck_assert(LOOP_UNTIL(live.client, count_events(&lock_events, REDLOCK_EVENT_LOST) == 1,
                         TIME_LIMIT_MS));
    ck_assert_uint_eq(count_events(&lock_events, REDLOCK_EVENT_RELEASED), 0);
    struct pollfd ready = {.fd = redlock_lock_fd(lock), .events = POLLIN};
    ck_assert_int_eq(poll(&ready, 1, 0), 1);
    CHECK_STATUS(calls[_i](lock), REDLOCK_ELOST);
    redlock_lock_free(lock);
    ck_assert(LOOP_UNTIL(live.client, live_nodes_with("expired") == 0, TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. */
static Suite *after_deadline_suite(void)
{
    Suite *suite = suite_create("live_calls_after_deadline");
    live_add_each(suite, "after_the_deadline", a_call_after_the_deadline_finds_the_lock_lost,
                  sizeof calls / sizeof calls[0]);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(after_deadline_suite());
    live_stop_servers();
    return status;
}
