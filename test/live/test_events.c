/* SPDX-License-Identifier: MIT
 * Events of a client and of a lock, and the statistics: each occurrence has one event and is
 * counted once.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted.
 * live_acquire(), live_extend() and live_release() return the status of one call and keep its
 * report, which live_info() reads. live_pause(first, count) stops servers with SIGSTOP.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. From live_events.h: note_event() copies each event into its userdata:
 * client_events or lock_events. event_letters() returns them as text, such as "AER" for acquired,
 * extended, released. note_done() stores the result of an asynchronous call in a struct outcome,
 * and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#define MANY 50 /* number of locks, one after the other */

/* Creates live.client, whose events go to client_events. */
static void connect_for_events(void)
{
    events_reset();
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    live_connect();
}

/* Waits for events of that kind. Returns whether there are exactly `count`. */
static bool has_events(int kind, unsigned count)
{
    return WAIT_UNTIL(count_events(&client_events, kind) >= count, TIME_LIMIT_MS) &&
           count_events(&client_events, kind) == count;
}

/* MANY acquisitions and releases have one event each, with the name, the status, the validity
 * and a report. */
START_TEST(each_acquisition_and_release_has_an_event)
{
    connect_for_events();
    for (unsigned i = 0; i < MANY; i++) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        redlock_lock_t *lock = NULL;
        opts.event_fn = note_event;
        opts.event_userdata = &lock_events;
        CHECK_STATUS(redlock_acquire(live.client, "noted", &opts, &lock, NULL), REDLOCK_OK);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
    ck_assert_msg(has_events(REDLOCK_EVENT_RELEASED, MANY), "%s", event_letters(&client_events));
    ck_assert_msg(has_events(REDLOCK_EVENT_ACQUIRED, MANY), "%s", event_letters(&client_events));
    const struct noted_event acquired = find_event(&client_events, REDLOCK_EVENT_ACQUIRED, 0);
    ck_assert_str_eq(acquired.name, "noted");
    CHECK_STATUS(acquired.status, REDLOCK_OK);
    ck_assert(acquired.has_report);
    ck_assert_uint_le(acquired.remaining_ms, LONG_TTL_MS);
    /* The lock's own event function is not called after the handle was freed. */
    ck_assert_uint_le(count_events(&lock_events, REDLOCK_EVENT_ACQUIRED), MANY);
}
END_TEST

/* A release that finds no keys has the event RELEASED with ELOST, and no event LOST. */
START_TEST(the_event_of_a_failed_release_has_its_status)
{
    connect_for_events();
    redlock_lock_t *lock = live_lock("gone", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("gone") == NODES, TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL gone");
    CHECK_STATUS(live_release(lock), REDLOCK_ELOST);
    ck_assert(has_events(REDLOCK_EVENT_RELEASED, 1));
    CHECK_STATUS(find_event(&client_events, REDLOCK_EVENT_RELEASED, 0).status, REDLOCK_ELOST);
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_LOST), 0);
}
END_TEST

/* An acquisition that waits has an event WAITING for each pause between two attempts, and others
 * that name its place in the line. */
START_TEST(each_wait_between_attempts_has_an_event)
{
    connect_for_events();
    redlock_lock_t *lock = NULL;
    cluster_command_all(live.cluster, "SET busy another PX 60000");
    CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, live_brief_ms(700), &lock), REDLOCK_ECONTENDED);
    const unsigned attempts = live_info().attempts;
    ck_assert_uint_gt(attempts, 1);
    ck_assert_msg(WAIT_UNTIL(count_events(&client_events, REDLOCK_EVENT_WAITING) + 1 >= attempts,
                             TIME_LIMIT_MS),
                  "%u attempts, events %s", attempts, event_letters(&client_events));
    uint32_t place = 0;
    for (unsigned i = 0; i < count_events(&client_events, REDLOCK_EVENT_WAITING); i++) {
        const struct noted_event event = find_event(&client_events, REDLOCK_EVENT_WAITING, i);
        CHECK_STATUS(event.status, REDLOCK_ECONTENDED);
        place = event.line_place != 0 ? event.line_place : place;
    }
    ck_assert_uint_eq(place, 1);
    cluster_command_all(live.cluster, "DEL busy");
}
END_TEST

/* A waiter in the queue of its own client sends no request, and has one event. */
START_TEST(waiting_in_the_queue_has_one_event)
{
    connect_for_events();
    redlock_lock_t *held = live_lock("busy", LONG_TTL_MS), *lock = NULL;
    CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, wait_scaled_ms(150), &lock), REDLOCK_ECONTENDED);
    ck_assert_uint_eq(live_info().attempts, 0);
    ck_assert(has_events(REDLOCK_EVENT_WAITING, 1));
    CHECK_STATUS(find_event(&client_events, REDLOCK_EVENT_WAITING, 0).status, REDLOCK_ECONTENDED);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
}
END_TEST

/* Each node has one event UP, a killed one DOWN, and UP again after its restart. */
START_TEST(nodes_have_events_up_and_down)
{
    live.durable = true;
    connect_for_events();
    ck_assert(has_events(REDLOCK_EVENT_NODE_UP, NODES));
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(count_events_of(&client_events, REDLOCK_EVENT_NODE_UP,
                                          live_node_stats(live.client, i).node),
                          1);
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_NODE_DOWN), 0);
    cluster_kill(live.cluster, 2);
    ck_assert(has_events(REDLOCK_EVENT_NODE_DOWN, 1));
    const char *name = live_node_stats(live.client, 2).node;
    ck_assert_str_eq(find_event(&client_events, REDLOCK_EVENT_NODE_DOWN, 0).name, name);
    cluster_restart(live.cluster, 2, false);
    ck_assert(has_events(REDLOCK_EVENT_NODE_UP, NODES + 1));
    ck_assert_str_eq(find_event(&client_events, REDLOCK_EVENT_NODE_UP, NODES).name, name);
}
END_TEST

/* Event function: notes the event. In the first DOWN kills another server, and waits until the
 * client has noticed. */
static void kill_another(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    note_event(rl, event, userdata);
    if (event->kind != REDLOCK_EVENT_NODE_DOWN ||
        count_events(&client_events, REDLOCK_EVENT_NODE_DOWN) > 1)
        return;
    cluster_kill(live.cluster, 1);
    (void)WAIT_UNTIL(!live_is_responsive(rl, 1), TIME_LIMIT_MS);
}

/* In hybrid mode a node goes down while the callback for a later one runs. Its event is delivered
 * by the next redlock_process(). */
START_TEST(an_event_during_a_callback_is_delivered)
{
    live.durable = true;
    live.mode = REDLOCK_MODE_HYBRID;
    events_reset();
    live.event_fn = kill_another;
    live.event_userdata = &client_events;
    live_connect();
    cluster_kill(live.cluster, 3);
    ck_assert(LOOP_UNTIL(live.client, count_events(&client_events, REDLOCK_EVENT_NODE_DOWN) == 2,
                         TIME_LIMIT_MS));
    live_disconnect();
    live_restart_dead();
}
END_TEST

/* A server that stops replying has an event DOWN, and UP when it continues. */
START_TEST(a_stopped_node_has_events_down_and_up)
{
    live.silence = true;
    connect_for_events();
    live_pause(1, 1);
    redlock_lock_t *lock = live_lock("stopped", LONG_TTL_MS);
    ck_assert(has_events(REDLOCK_EVENT_NODE_DOWN, 1));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    live_resume_all();
    ck_assert(has_events(REDLOCK_EVENT_NODE_UP, NODES + 1));
}
END_TEST

/* Each call is counted in exactly one of the counters. */
START_TEST(statistics_add_up)
{
    redlock_cancel_t *cancel = NULL;
    redlock_lock_t *lock = NULL;
    live_connect();
    redlock_lock_t *held = live_lock("held", LONG_TTL_MS);
    ck_assert_uint_eq(live_stats(live.client).held, 1);
    for (unsigned i = 0; i < 7; i++)
        CHECK_STATUS(live_acquire("held", LONG_TTL_MS, 0, &lock), REDLOCK_ECONTENDED);
    for (unsigned i = 0; i < 11; i++)
        CHECK_STATUS(live_release(live_lock("other", LONG_TTL_MS)), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(live_extend(held, 0), REDLOCK_OK);
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    struct outcome outcome = OUTCOME;
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    opts.cancel = cancel;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_acquire_start(live.client, "held", &opts, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert_uint_eq(live_stats(live.client).waiting, 1);
    redlock_cancel_trigger(cancel);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    redlock_cancel_free(cancel);

    const redlock_stats_t stats = live_stats(live.client);
    uint64_t waits = 0;
    for (size_t i = 0; i < 32; i++)
        waits += stats.wait_us_hist[i];
    ck_assert_uint_eq(stats.acquired, 12);
    ck_assert_uint_eq(stats.contended, 7);
    ck_assert_uint_eq(stats.canceled, 1);
    ck_assert_uint_eq(stats.no_quorum + stats.too_slow + stats.excluded, 0);
    ck_assert_uint_eq(waits, 20);
    ck_assert_uint_ge(stats.attempts, 19); /* the one in the queue made no attempt */
    ck_assert_uint_eq(stats.extended, 3);
    ck_assert_uint_eq(stats.extend_failed, 0);
    ck_assert_uint_eq(stats.released, 11);
    ck_assert_uint_eq(stats.release_failed + stats.lost, 0);
    ck_assert_uint_eq(stats.held, 1);
    ck_assert_uint_eq(stats.waiting, 0);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    ck_assert_uint_eq(live_stats(live.client).held, 0);
}
END_TEST

/* In the statistics of each node, grants, denials and errors add up to the requests, and the
 * histogram of round trips covers all of them. */
START_TEST(node_statistics_add_up)
{
    redlock_lock_t *lock = NULL;
    live_connect();
    redlock_lock_t *held = live_lock("held", LONG_TTL_MS);
    for (unsigned i = 0; i < 5; i++)
        CHECK_STATUS(live_acquire("held", LONG_TTL_MS, 0, &lock), REDLOCK_ECONTENDED);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    for (unsigned i = 0; i < NODES; i++) {
        char run_id[64];
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).undos_pending == 0, TIME_LIMIT_MS));
        const redlock_node_stats_t stats = live_node_stats(live.client, i);
        uint64_t replies = 0;
        for (size_t k = 0; k < 32; k++)
            replies += stats.rtt_us_hist[k];
        ck_assert_uint_eq(stats.granted + stats.denied + stats.errors, stats.requests);
        ck_assert_uint_ge(replies, stats.requests);
        ck_assert_uint_eq(stats.errors + stats.timeouts + stats.reconnects, 0);
        ck_assert_uint_ge(stats.granted, 2);
        ck_assert_uint_gt(stats.rtt_us, 0);
        ck_assert_int_eq(stats.eligible, 1);
        ck_assert_str_eq(stats.role, "master");
        ck_assert_str_eq(stats.text, "");
        ck_assert_msg(strncmp(stats.version, "redis ", 6) == 0 ||
                          strncmp(stats.version, "valkey ", 7) == 0,
                      "%s", stats.version);
        snprintf(run_id, sizeof run_id, "run_id:%s", stats.run_id);
        char *info = cluster_command(live.cluster, i, "INFO server");
        ck_assert_msg(strlen(stats.run_id) == 40 && strstr(info, run_id) != NULL, "%s", run_id);
        free(info);
    }
    redlock_node_stats_t none;
    ck_assert_int_eq(redlock_get_node_stats(live.client, NODES, &none, sizeof none),
                     REDLOCK_EINVAL);
    ck_assert_uint_eq(redlock_node_count(live.client), NODES);
}
END_TEST

/* A caller that was compiled against a smaller or a larger struct. */
START_TEST(statistics_of_other_sizes_are_written)
{
    live_connect();
    struct {
        redlock_stats_t stats;
        unsigned char more[16];
    } larger;
    memset(&larger, 0xff, sizeof larger);
    CHECK_STATUS(live_release(live_lock("sizes", LONG_TTL_MS)), REDLOCK_OK);
    ck_assert_int_eq(redlock_get_stats(live.client, &larger.stats, sizeof larger), REDLOCK_OK);
    ck_assert_uint_eq(larger.stats.acquired, 1);
    for (size_t i = 0; i < sizeof larger.more; i++)
        ck_assert_uint_eq(larger.more[i], 0);
    uint64_t few[3] = {99, 99, 99};
    ck_assert_int_eq(redlock_get_stats(live.client, (redlock_stats_t *)few, 2 * sizeof few[0]),
                     REDLOCK_OK);
    ck_assert_uint_eq(few[0], 1);
    ck_assert_uint_eq(few[1], 0);
    ck_assert_uint_eq(few[2], 99);
    ck_assert_int_eq(redlock_get_stats(live.client, &larger.stats, 0), REDLOCK_EINVAL);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *events_suite(void)
{
    Suite *suite = suite_create("events");
    live_add(suite, "acquired, released", each_acquisition_and_release_has_an_event);
    live_add(suite, "failed release", the_event_of_a_failed_release_has_its_status);
    live_add(suite, "waiting", each_wait_between_attempts_has_an_event);
    live_add(suite, "queue", waiting_in_the_queue_has_one_event);
    live_add(suite, "nodes", nodes_have_events_up_and_down);
    live_add(suite, "nodes, hybrid", an_event_during_a_callback_is_delivered);
    live_add(suite, "stopped node", a_stopped_node_has_events_down_and_up);
    live_add(suite, "statistics", statistics_add_up);
    live_add(suite, "node statistics", node_statistics_add_up);
    live_add(suite, "sizes", statistics_of_other_sizes_are_written);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(events_suite());
    live_stop_servers();
    return status;
}
