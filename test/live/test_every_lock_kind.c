/* SPDX-License-Identifier: MIT
 * The guarantees about locks, for each kind of lock. Each case runs once for each kind; _i is 0 for
 * a lock of one resource, 1 for one of several, 2 for a permit.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_extend()
 * returns the status of one call and keeps its report. live_pause(first, count) stops servers with
 * SIGSTOP. WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms()
 * stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a
 * TTL that no case reaches. From live_events.h: note_event() copies each event into its userdata:
 * client_events or lock_events. event_letters() returns them as text, such as "AER" for acquired,
 * extended, released. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>

#define KINDS   3 /* values of _i */
#define PERMITS 2 /* of the semaphore */

/* Further resources of a lock of several. */
static const char *const ALSO[] = {"kind-a", "kind-c"};

/* Returns the options of an acquisition of that kind. */
static redlock_opts_t opts_of(int kind, uint64_t ttl_ms)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);

    if (kind == 1) {
        opts.also = ALSO;
        opts.also_count = 2;
    } else if (kind == 2) {
        opts.kind = REDLOCK_KIND_PERMIT;
        opts.permits = PERMITS;
    }
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    return opts;
}

/* Sets automatic extension with so much time to spare that a pause of the machine hides no event.
 */
static void extend_often(redlock_opts_t *opts)
{
    opts->flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts->extend_at_ms = opts->ttl_ms * 9 / 10;
    opts->margin_ms = opts->ttl_ms * 4 / 10;
}

/* Acquires "kind-b" with these options, which must be granted. Keeps the report. */
static redlock_lock_t *hold(const redlock_opts_t *opts)
{
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    const int status = redlock_acquire(live.client, "kind-b", opts, &lock, &report);

    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_OK);
    return lock;
}

/* Returns how many keys with this token a node has. */
static unsigned keys_on(unsigned node, const char *token)
{
    static const char *const names[] = {"kind-b", "kind-a", "kind-c", "kind-b{#0}", "kind-b{#1}"};
    unsigned count = 0;

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        count += cluster_replies(live.cluster, node, token, "GET %s", names[i]);
    return count;
}

/* Returns whether each node has all keys of the lock. */
static bool is_everywhere(int kind, const char *token)
{
    for (unsigned node = 0; node < NODES; node++) {
        if (keys_on(node, token) != (kind == 1 ? 3u : 1u))
            return false;
    }
    return true;
}

/* Empties the lists of events and creates live.client. */
static void connect_for_events(void)
{
    events_reset();
    live_connect();
}

/* A lock that was retained twice stays held over two releases, and is released by the third. */
START_TEST(a_lock_is_held_until_the_last_release)
{
    const redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    connect_for_events();
    redlock_lock_t *lock = hold(&opts);
    for (unsigned i = 0; i < 2; i++)
        CHECK_STATUS(redlock_lock_retain(lock), REDLOCK_OK);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_release_after(lock, 1, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_check(lock, 1), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(is_everywhere(_i, redlock_lock_token(lock)), TIME_LIMIT_MS));
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    CHECK_STATUS(redlock_lock_retain(lock), REDLOCK_ELOST);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert_uint_eq(live_stats(live.client).released, 1);
}
END_TEST

/* With extends_max 2 the lock is extended twice and then lost. */
START_TEST(extends_max_limits_extensions)
{
    connect_for_events();
    redlock_opts_t opts = opts_of(_i, live_brief_ms(1000));
    extend_often(&opts);
    opts.extends_max = 2;
    redlock_lock_t *lock = hold(&opts);
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_str_eq(event_letters(&lock_events), "AEEDL");
    redlock_lock_free(lock);
}
END_TEST

/* With hold_ms_max the lock is extended, and lost when this time has passed. */
START_TEST(hold_ms_max_limits_the_time)
{
    const uint64_t hold_ms = live_brief_ms(1700), from_ms = wait_now_ms();
    connect_for_events();
    redlock_opts_t opts = opts_of(_i, live_brief_ms(1000));
    extend_often(&opts);
    opts.hold_ms_max = hold_ms;
    redlock_lock_t *lock = hold(&opts);
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    const uint64_t held_ms = find_event(&lock_events, REDLOCK_EVENT_LOST, 0).at_ms - from_ms;
    ck_assert_msg(held_ms + 20 >= hold_ms, "%d of %d ms", (int)held_ms, (int)hold_ms);
    ck_assert_uint_ge(count_events(&lock_events, REDLOCK_EVENT_EXTENDED), 2);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
}
END_TEST

/* Another client gets the lock only after the delay of release_after. */
START_TEST(release_after_keeps_other_clients_out)
{
    const uint64_t keep_ms = wait_lived_ms(2000);
    connect_for_events();
    redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    if (_i == 2)
        opts.permits = 1;
    redlock_lock_t *lock = hold(&opts), *next = NULL;
    const uint64_t from_ms = wait_now_ms();
    CHECK_STATUS(redlock_release_after(lock, keep_ms, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    redlock_t *other = live_open(live_config());
    CHECK_STATUS(redlock_acquire(other, "kind-b", &opts, &next, NULL), REDLOCK_OK);
    ck_assert_uint_ge(wait_now_ms() - from_ms + 20, keep_ms);
    CHECK_STATUS(redlock_release(next, NULL), REDLOCK_OK);
    redlock_lock_free(next);
    ck_assert_int_eq(redlock_shutdown(other, TIME_LIMIT_MS), REDLOCK_OK);
    ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
}
END_TEST

/* redlock_lock_free() of a held lock deletes all its keys. */
START_TEST(freeing_the_handle_releases)
{
    const redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    connect_for_events();
    redlock_lock_t *lock = hold(&opts);
    ck_assert(WAIT_UNTIL(is_everywhere(_i, redlock_lock_token(lock)), TIME_LIMIT_MS));
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* redlock_shutdown() releases a held lock, also if one of its users has not released it. */
START_TEST(a_shutdown_releases)
{
    const redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    connect_for_events();
    redlock_lock_t *lock = hold(&opts);
    CHECK_STATUS(redlock_lock_retain(lock), REDLOCK_OK); /* this user does not release */
    CHECK_STATUS(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    redlock_lock_free(lock);
}
END_TEST

/* A majority of the servers is stopped and continues: the lock stays held until its deadline. */
START_TEST(a_lock_survives_stopped_servers)
{
    live.silence = true;
    connect_for_events();
    const uint64_t ttl_ms = wait_scaled_ms(8000) < LONG_TTL_MS ? wait_scaled_ms(8000) : LONG_TTL_MS;
    redlock_opts_t opts = opts_of(_i, ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = ttl_ms - wait_scaled_ms(500);
    redlock_lock_t *lock = hold(&opts);
    live_pause(0, QUORUM);
    ck_assert(
        WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_EXTEND_FAILED) > 0, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_OK);
    live_resume_all();
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_EXTENDED) > 0, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *kinds_suite(void)
{
    Suite *suite = suite_create("live_every_lock_kind");

    live_add_each(suite, "retain", a_lock_is_held_until_the_last_release, KINDS);
    live_add_each(suite, "extends_max", extends_max_limits_extensions, KINDS);
    live_add_each(suite, "hold_ms_max", hold_ms_max_limits_the_time, KINDS);
    live_add_each(suite, "release_after", release_after_keeps_other_clients_out, KINDS);
    live_add_each(suite, "free", freeing_the_handle_releases, KINDS);
    live_add_each(suite, "shutdown", a_shutdown_releases, KINDS);
    live_add_each(suite, "silence", a_lock_survives_stopped_servers, KINDS);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(kinds_suite());
    live_stop_servers();
    return status;
}
