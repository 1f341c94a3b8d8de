/* SPDX-License-Identifier: MIT
 * The promises about locks, for each kind of lock: of one resource, of several, and a permit. Each
 * case runs once for each kind. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>

#define KINDS   3
#define PERMITS 2

static const char *const ALSO[] = {"kind-a", "kind-c"};

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

/* A machine that stands still for a moment misses neither an extension nor the end's announcement.
 */
static void extend_often(redlock_opts_t *opts)
{
    opts->flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts->extend_at_ms = opts->ttl_ms * 9 / 10;
    opts->margin_ms = opts->ttl_ms * 4 / 10;
}

static redlock_lock_t *take(const redlock_opts_t *opts)
{
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    const int status = redlock_acquire(live.client, "kind-b", opts, &lock, &report);

    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_OK);
    return lock;
}

/* How many keys with this token a node has. */
static unsigned keys_on(unsigned node, const char *token)
{
    static const char *const names[] = {"kind-b", "kind-a", "kind-c", "kind-b{#0}", "kind-b{#1}"};
    unsigned count = 0;

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        count += cluster_replies(live.cluster, node, token, "GET %s", names[i]);
    return count;
}

static bool is_everywhere(int kind, const char *token)
{
    for (unsigned node = 0; node < NODES; node++) {
        if (keys_on(node, token) != (kind == 1 ? 3u : 1u))
            return false;
    }
    return true;
}

static void connect_for_events(void)
{
    events_reset();
    live_connect();
}

START_TEST(is_held_until_the_last_release)
{
    const redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    connect_for_events();
    redlock_lock_t *lock = take(&opts);
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

START_TEST(its_extensions_are_limited)
{
    connect_for_events();
    redlock_opts_t opts = opts_of(_i, live_brief_ms(1000));
    extend_often(&opts);
    opts.extends_max = 2;
    redlock_lock_t *lock = take(&opts);
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_str_eq(event_letters(&lock_events), "AEEDL");
    redlock_lock_free(lock);
}
END_TEST

START_TEST(its_time_is_limited)
{
    const uint64_t hold_ms = live_brief_ms(1700), from_ms = wait_now_ms();
    connect_for_events();
    redlock_opts_t opts = opts_of(_i, live_brief_ms(1000));
    extend_often(&opts);
    opts.hold_ms_max = hold_ms;
    redlock_lock_t *lock = take(&opts);
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    const uint64_t held_ms = find_event(&lock_events, REDLOCK_EVENT_LOST, 0).at_ms - from_ms;
    ck_assert_msg(held_ms + 20 >= hold_ms, "%d of %d ms", (int)held_ms, (int)hold_ms);
    ck_assert_uint_ge(count_events(&lock_events, REDLOCK_EVENT_EXTENDED), 2);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
}
END_TEST

/* Servers and other clients keep out until then, however short the work was. */
START_TEST(it_is_kept_for_a_while)
{
    const uint64_t keep_ms = wait_lived_ms(2000);
    connect_for_events();
    redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    if (_i == 2)
        opts.permits = 1;
    redlock_lock_t *lock = take(&opts), *next = NULL;
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

START_TEST(it_ends_with_its_handle)
{
    const redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    connect_for_events();
    redlock_lock_t *lock = take(&opts);
    ck_assert(WAIT_UNTIL(is_everywhere(_i, redlock_lock_token(lock)), TIME_LIMIT_MS));
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

START_TEST(it_ends_with_its_client)
{
    const redlock_opts_t opts = opts_of(_i, LONG_TTL_MS);
    connect_for_events();
    redlock_lock_t *lock = take(&opts);
    CHECK_STATUS(redlock_lock_retain(lock), REDLOCK_OK); /* nobody gives that back any more */
    CHECK_STATUS(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    redlock_lock_free(lock);
}
END_TEST

/* A majority of the servers is down and comes back: nothing is given up before its time. */
START_TEST(it_outlives_a_silence)
{
    live.silence = true;
    connect_for_events();
    const uint64_t ttl_ms = wait_scaled_ms(8000) < LONG_TTL_MS ? wait_scaled_ms(8000) : LONG_TTL_MS;
    redlock_opts_t opts = opts_of(_i, ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = ttl_ms - wait_scaled_ms(500);
    redlock_lock_t *lock = take(&opts);
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

static Suite *kinds_suite(void)
{
    Suite *suite = suite_create("live_every_lock_kind");

    live_add_each(suite, "retain", is_held_until_the_last_release, KINDS);
    live_add_each(suite, "extends_max", its_extensions_are_limited, KINDS);
    live_add_each(suite, "hold_ms_max", its_time_is_limited, KINDS);
    live_add_each(suite, "release_after", it_is_kept_for_a_while, KINDS);
    live_add_each(suite, "free", it_ends_with_its_handle, KINDS);
    live_add_each(suite, "shutdown", it_ends_with_its_client, KINDS);
    live_add_each(suite, "silence", it_outlives_a_silence, KINDS);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(kinds_suite());
    live_stop_servers();
    return status;
}
