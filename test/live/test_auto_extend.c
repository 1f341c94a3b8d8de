/* SPDX-License-Identifier: MIT
 * Holding a lock: automatic extension and its limits, healing, and the events before and at its
 * loss.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_extend()
 * and live_release() return the status of one call and keep its report, which live_info() and
 * live_text() read. live_pause(first, count) stops servers with SIGSTOP. WAIT_UNTIL(condition, ms)
 * polls and returns false after the deadline. wait_scaled_ms() stretches a time for slow builds.
 * CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From
 * live_events.h: note_event() copies each event into its userdata: client_events or lock_events.
 * event_letters() returns them as text, such as "AER" for acquired, extended, released. */
#include "live_events.h"
#include "suite.h"

#include <poll.h>

/* Returns a TTL that is short, because the cases wait for deadlines, and long enough that a pause
 * of the machine does not hide an event. */
static uint64_t short_ms(uint64_t ms)
{
    return live_brief_ms(ms);
}

/* Returns the options of a lock whose events are recorded in lock_events. */
static redlock_opts_t holding(uint64_t ttl_ms)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    return opts;
}

/* Acquires the lock, which must be granted. The options have a wait budget, because on a busy
 * machine a short lock may expire before this thread runs again; the next grant serves as well. */
static redlock_lock_t *hold(const char *resource, const redlock_opts_t *opts)
{
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    const int status = redlock_acquire(live.client, resource, opts, &lock, &report);
    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_OK);
    return lock;
}

/* Returns options with automatic extension after a tenth of the TTL, and an early ENDANGERED event.
 */
static redlock_opts_t extending(uint64_t ttl_ms)
{
    redlock_opts_t opts = holding(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = ttl_ms * 9 / 10;
    opts.margin_ms = ttl_ms * 4 / 10;
    return opts;
}

/* Creates live.client, whose events go to client_events. */
static void connect_for_events(void)
{
    events_reset();
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    live_connect();
}

/* Returns the number of events of this kind about locks. */
static unsigned count_seen(int kind)
{
    return count_events(&lock_events, kind);
}

/* For three TTLs, an automatically extended lock is held at every check, with keys on a
 * majority. */
START_TEST(automatic_extension_keeps_the_lock)
{
    const uint64_t ttl_ms = short_ms(900);
    connect_for_events();
    redlock_opts_t opts = holding(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    redlock_lock_t *lock = hold("kept", &opts);
    const uint64_t end_ms = wait_now_ms() + 3 * ttl_ms;
    while (wait_now_ms() < end_ms) {
        ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
        ck_assert_uint_gt(redlock_lock_remaining_ms(lock), 0);
        ck_assert_uint_ge(live_nodes_with("kept"), QUORUM);
    }
    ck_assert_msg(count_seen(REDLOCK_EVENT_EXTENDED) >= 4, "%s", event_letters(&lock_events));
    ck_assert_uint_ge(live_stats(live.client).extended, 4);
    ck_assert_uint_eq(count_seen(REDLOCK_EVENT_LOST), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert_uint_eq(live_stats(live.client).lost, 0);
}
END_TEST

/* Without extensions the lock has the events acquired, endangered (at the margin) and lost, near
 * the end of its TTL. Its descriptor becomes readable, and extension and release return ELOST. */
START_TEST(a_lock_that_is_not_extended_is_lost_in_time)
{
    const uint64_t ttl_ms = short_ms(1000);
    connect_for_events();
    redlock_opts_t opts = holding(ttl_ms);
    opts.margin_ms = ttl_ms / 2;
    const uint64_t before_ms = wait_now_ms();
    redlock_lock_t *lock = hold("lost", &opts);
    ck_assert_int_eq(redlock_lock_check(lock, 1), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(lock, ttl_ms), REDLOCK_ELOST); /* more than is ever left */
    ck_assert_uint_le(redlock_lock_remaining_ms(lock), ttl_ms - ttl_ms / 100 - 2 - 5);
    struct pollfd lost = {.fd = redlock_lock_fd(lock), .events = POLLIN};
    ck_assert_int_ge(lost.fd, 0);
    ck_assert_int_eq(redlock_lock_fd(lock), lost.fd);
    ck_assert_int_eq(poll(&lost, 1, (int)short_ms(TIME_LIMIT_MS)), 1);
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert_uint_eq(redlock_lock_remaining_ms(lock), 0);

    const struct noted_event endangered = find_event(&lock_events, REDLOCK_EVENT_ENDANGERED, 0);
    const struct noted_event gone = find_event(&lock_events, REDLOCK_EVENT_LOST, 0);
    ck_assert_uint_le(endangered.remaining_ms, opts.margin_ms);
    ck_assert_uint_ge(endangered.at_ms, before_ms + ttl_ms / 3);
    ck_assert_uint_ge(gone.at_ms, before_ms + ttl_ms * 9 / 10 - 10);
    ck_assert_uint_eq(gone.remaining_ms, 0);
    CHECK_STATUS(gone.status, REDLOCK_ELOST);
    ck_assert_str_eq(event_letters(&lock_events), "ADL");
    ck_assert_int_eq(poll(&lost, 1, 0), 1); /* it stays readable */
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_ELOST);
    CHECK_STATUS(live_release(lock), REDLOCK_ELOST);
    ck_assert_uint_eq(live_stats(live.client).lost, 1);
}
END_TEST

/* redlock_lock_fd() of a lock that is lost already returns a readable descriptor. */
START_TEST(a_descriptor_made_after_the_loss_is_readable)
{
    connect_for_events();
    redlock_opts_t opts = holding(wait_scaled_ms(60));
    redlock_lock_t *lock = hold("late", &opts);
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    struct pollfd lost = {.fd = redlock_lock_fd(lock), .events = POLLIN};
    ck_assert_int_eq(poll(&lost, 1, 0), 1);
    redlock_lock_free(lock);
}
END_TEST

/* Releases that begin around the deadline: each lock is either lost or released. */
START_TEST(a_loss_is_never_announced_after_a_release_began)
{
    char name[32];
    const uint64_t ttl_ms = wait_scaled_ms(40);
    connect_for_events();
    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "race%u", i);
        redlock_opts_t opts = holding(ttl_ms);
        redlock_lock_t *lock = hold(name, &opts);
        const uint64_t left_ms = i % 4;
        ck_assert(WAIT_UNTIL(redlock_lock_remaining_ms(lock) <= left_ms, TIME_LIMIT_MS));
        redlock_report_t *report = NULL;
        const int status = redlock_release(lock, &report);
        live_keep_report(report);
        const bool began = live_info().nodes == NODES;
        redlock_lock_free(lock);
        ck_assert_msg(began || status == REDLOCK_ELOST, "%s", live_text());
        const unsigned expected = began ? 0 : 1;
        ck_assert(WAIT_UNTIL(count_events_of(&client_events, REDLOCK_EVENT_LOST, name) >= expected,
                             TIME_LIMIT_MS));
        ck_assert_uint_eq(count_events_of(&client_events, REDLOCK_EVENT_LOST, name), expected);
    }
    /* The default margin is a tenth of the TTL. */
    const unsigned endangered = count_events(&client_events, REDLOCK_EVENT_ENDANGERED);
    ck_assert_uint_gt(endangered, 0);
    for (unsigned i = 0; i < endangered; i++)
        ck_assert_uint_le(find_event(&client_events, REDLOCK_EVENT_ENDANGERED, i).remaining_ms,
                          ttl_ms / 10);
    events_reset();
}
END_TEST

/* With extends_max 2, the lock is extended twice and then lost. */
START_TEST(the_number_of_extensions_is_limited)
{
    connect_for_events();
    redlock_opts_t opts = extending(short_ms(1000));
    opts.extends_max = 2;
    redlock_lock_t *lock = hold("twice", &opts);
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_str_eq(event_letters(&lock_events), "AEEDL");
    redlock_lock_free(lock);
}
END_TEST

/* Returns whether the lock is lost. Fails the case if its remaining validity ends after end_ms. */
static bool is_lost_in_time(const redlock_lock_t *lock, uint64_t end_ms)
{
    const uint64_t now_ms = wait_now_ms(); /* read first, so that a pause makes the sum smaller */
    const uint64_t left_ms = redlock_lock_remaining_ms(lock);
    ck_assert_msg(left_ms == 0 || now_ms + left_ms <= end_ms, "%d ms too long",
                  (int)(now_ms + left_ms - end_ms));
    return count_seen(REDLOCK_EVENT_LOST) == 1;
}

/* With hold_ms_max, the lock is lost after this time, not earlier and not later. */
START_TEST(the_time_of_holding_is_limited)
{
    const uint64_t hold_ms = short_ms(1700);
    connect_for_events();
    redlock_opts_t opts = extending(short_ms(1000));
    opts.hold_ms_max = hold_ms;
    const uint64_t from_ms = wait_now_ms();
    redlock_lock_t *lock = hold("limited", &opts);
    const uint64_t had_ms = wait_now_ms();
    ck_assert(WAIT_UNTIL(is_lost_in_time(lock, had_ms + hold_ms + 5), TIME_LIMIT_MS));
    const uint64_t lost_ms = find_event(&lock_events, REDLOCK_EVENT_LOST, 0).at_ms;
    ck_assert_msg(lost_ms + 20 >= from_ms + hold_ms, "after %d ms of %d", (int)(lost_ms - from_ms),
                  (int)hold_ms);
    ck_assert_msg(count_seen(REDLOCK_EVENT_EXTENDED) >= 2, "%s", event_letters(&lock_events));
    /* Once after the last extension. On a busy machine a late extension may follow it, too. */
    const char *letters = event_letters(&lock_events), *last = strrchr(letters, 'E');
    ck_assert_msg(strchr(last, 'D') != NULL && strchr(last, 'D') == strrchr(last, 'D'), "%s",
                  letters);
    redlock_lock_free(lock);
}
END_TEST

/* The extension begins when the configured validity is left. */
START_TEST(extend_at_decides_when)
{
    connect_for_events();
    redlock_opts_t opts = holding(short_ms(1400));
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = short_ms(600);
    const uint64_t from_ms = wait_now_ms();
    redlock_lock_t *lock = hold("at", &opts);
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_EXTENDED) == 1, TIME_LIMIT_MS));
    const uint64_t after_ms = find_event(&lock_events, REDLOCK_EVENT_EXTENDED, 0).at_ms - from_ms;
    ck_assert_msg(after_ms >= short_ms(700), "extended after %d ms", (int)after_ms);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Two servers lose all keys: the lock is healed there. After further extensions two other
 * servers may lose theirs. */
START_TEST(two_emptied_nodes_are_healed)
{
    connect_for_events();
    redlock_opts_t opts = extending(short_ms(1500));
    redlock_lock_t *lock = hold("healed", &opts);
    ck_assert(WAIT_UNTIL(live_nodes_with("healed") == NODES, TIME_LIMIT_MS));
    free(cluster_command(live.cluster, 1, "FLUSHALL"));
    free(cluster_command(live.cluster, 3, "FLUSHALL"));
    ck_assert(WAIT_UNTIL(live_nodes_with("healed") == NODES, TIME_LIMIT_MS));
    /* Healed keys count after a further round: now two other nodes may lose theirs. */
    const unsigned extended = count_seen(REDLOCK_EVENT_EXTENDED);
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_EXTENDED) >= extended + 2, TIME_LIMIT_MS));
    free(cluster_command(live.cluster, 0, "FLUSHALL"));
    free(cluster_command(live.cluster, 2, "FLUSHALL"));
    ck_assert(WAIT_UNTIL(live_nodes_with("healed") == NODES, TIME_LIMIT_MS));
    ck_assert_msg(count_seen(REDLOCK_EVENT_LOST) == 0 &&
                      count_seen(REDLOCK_EVENT_EXTEND_FAILED) == 0,
                  "%s", event_letters(&lock_events));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Three servers lose all keys: the next extension fails and the lock is lost at once, before its
 * margin. */
START_TEST(three_emptied_nodes_are_a_loss_by_the_next_extension)
{
    const uint64_t ttl_ms = short_ms(3000);
    connect_for_events();
    redlock_opts_t opts = holding(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = ttl_ms * 3 / 4; /* all three nodes are empty by then */
    opts.margin_ms = ttl_ms / 10;       /* a loss by the deadline would have an ENDANGERED event */
    redlock_lock_t *lock = hold("emptied", &opts);
    ck_assert(WAIT_UNTIL(live_nodes_with("emptied") == NODES, TIME_LIMIT_MS));
    for (unsigned i = 1; i < 4; i++)
        free(cluster_command(live.cluster, i, "FLUSHALL"));
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_str_eq(event_letters(&lock_events), "AFL");
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    redlock_lock_free(lock);
}
END_TEST

/* Without a majority for a while, extensions fail, but the valid lock stays held. */
START_TEST(failed_extensions_are_survived)
{
    live.silence = true;
    connect_for_events();
    redlock_opts_t opts = holding(short_ms(4000));
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = short_ms(3800);
    redlock_lock_t *lock = hold("survived", &opts);
    live_pause(0, 3);
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_EXTEND_FAILED) >= 2, TIME_LIMIT_MS));
    CHECK_STATUS(find_event(&lock_events, REDLOCK_EVENT_EXTEND_FAILED, 0).status,
                 REDLOCK_ENOQUORUM);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    const unsigned extended = count_seen(REDLOCK_EVENT_EXTENDED);
    live_resume_all();
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_EXTENDED) > extended, TIME_LIMIT_MS));
    ck_assert_uint_eq(count_seen(REDLOCK_EVENT_LOST), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Three servers stop for good: extensions fail, the lock is endangered, then lost by its
 * deadline. */
START_TEST(a_lasting_failure_is_a_loss_before_the_keys_expire)
{
    live.node_time_ms = 40;
    connect_for_events();
    redlock_opts_t opts = extending(short_ms(1000));
    redlock_lock_t *lock = hold("lasting", &opts);
    live_pause(0, 3);
    ck_assert(WAIT_UNTIL(count_seen(REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_uint_eq(count_seen(REDLOCK_EVENT_ENDANGERED), 1);
    ck_assert_uint_ge(count_seen(REDLOCK_EVENT_EXTEND_FAILED), 1);
    const struct noted_event endangered = find_event(&lock_events, REDLOCK_EVENT_ENDANGERED, 0);
    ck_assert_uint_le(endangered.remaining_ms, opts.margin_ms);
    ck_assert_uint_le(endangered.at_ms, find_event(&lock_events, REDLOCK_EVENT_LOST, 0).at_ms);
    redlock_lock_free(lock);
}
END_TEST

/* A third party shortens the keys of a lock that was extended for longer than its own TTL. The next
 * extension, by the lock's own TTL, requests the validity that its holder relies on. */
START_TEST(an_extension_restores_what_a_third_party_shortened)
{
    unsigned carrying = 0;

    live_connect();
    redlock_lock_t *lock = live_lock("shortened", LONG_TTL_MS / 10);
    CHECK_STATUS(live_extend(lock, LONG_TTL_MS), REDLOCK_OK);
    cluster_command_all(live.cluster, "PEXPIRE shortened 10000");
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    for (unsigned i = 0; i < NODES; i++) {
        int64_t left_ms = cluster_integer(live.cluster, i, "PTTL shortened");
        carrying += left_ms >= (int64_t)redlock_lock_remaining_ms(lock);
    }
    ck_assert_uint_ge(carrying, QUORUM);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *holding_suite(void)
{
    Suite *suite = suite_create("live_auto_extend");
    live_add(suite, "extension", automatic_extension_keeps_the_lock);
    live_add(suite, "loss", a_lock_that_is_not_extended_is_lost_in_time);
    live_add(suite, "late", a_descriptor_made_after_the_loss_is_readable);
    live_add(suite, "race", a_loss_is_never_announced_after_a_release_began);
    live_add(suite, "extends_max", the_number_of_extensions_is_limited);
    live_add(suite, "hold_ms_max", the_time_of_holding_is_limited);
    live_add(suite, "extend_at", extend_at_decides_when);
    live_add(suite, "healed", two_emptied_nodes_are_healed);
    live_add(suite, "emptied", three_emptied_nodes_are_a_loss_by_the_next_extension);
    live_add(suite, "shortened", an_extension_restores_what_a_third_party_shortened);
    live_add(suite, "survived", failed_extensions_are_survived);
    live_add(suite, "lasting", a_lasting_failure_is_a_loss_before_the_keys_expire);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(holding_suite());
    live_stop_servers();
    return status;
}
