/* SPDX-License-Identifier: MIT
 * Decisions of the engine itself: servers with two names, clocks that are set, and how long an undo
 * is kept.
 *
 * Uses engine_rig.h: two engines, called clients 0 and 1, on three correct servers, in virtual
 * time. rig_hold() acquires a lock, rig_call() passes a call of the user to it, and rig_pass()
 * advances time and runs the servers and both engines. */
#include "engine_rig.h"

#include "platform/hash.h"

/* Fixture: opens both engines. */
static void setup(void)
{
    rig_begin(NULL);
}

/* Lets the first client connect to all servers. */
static void connect_all(void)
{
    rig_pass(20 * RL_MS);
    ck_assert(rl_engine_is_ready(rig_engine(0)));
}

/* Counts the undos that are pending or in flight. */
static unsigned count_undos(const struct rl_engine *engine)
{
    unsigned pending = 0;

    for (unsigned i = 0; i < engine->count; i++)
        pending += rl_node_undos_pending(&engine->nodes[i]);
    return pending;
}

/* The second and the third address lead to the server of the first one. */
START_TEST(duplicates_are_named_after_the_first_address)
{
    struct rl_engine *engine = rig_engine(0);

    for (unsigned i = 1; i < NODES; i++)
        memcpy(world.nodes[i].run_id, world.nodes[0].run_id, sizeof world.nodes[0].run_id);
    rig_pass(20 * RL_MS);
    ck_assert(!engine->nodes[0].eligibility.duplicate);
    for (unsigned i = 1; i < NODES; i++) {
        ck_assert(engine->nodes[i].eligibility.duplicate);
        ck_assert_uint_eq(engine->nodes[i].eligibility.duplicate_of, 0);
        ck_assert_int_eq(engine->view.cause[i], REDLOCK_CAUSE_DUPLICATE);
    }
    ck_assert(engine->view.duplicate);
    ck_assert(!rl_engine_is_ready(engine));
    engine->nodes[1].detector.suspect = true; /* changes nothing, because it gets no request */
    rl_inbox_note(&engine->common.inbox, RL_INBOX_CHANGED, 0);
    rl_engine_drain(engine);
    ck_assert_uint_eq(engine->view.suspect, 0);
    engine->nodes[1].detector.suspect = false;
}
END_TEST

/* The wall clock is set back by an hour, a lock is acquired, and the clock is corrected. For this
 * lock that is a step of an hour ahead, and the engine loses it in the turn that notices. */
START_TEST(a_wall_clock_set_ahead_loses_the_lock)
{
    const uint64_t hour_us = 3600 * UINT64_C(1000000);
    struct rl_lease_params params = rig_params();

    connect_all();
    params.terms.wall_slack_us = 500000;
    world.clients[0].wall_us -= hour_us;
    rig_pass(RIG_STEP);
    struct rig_lock *item = rig_hold(0, &params, "a");
    world.clients[0].wall_us += hour_us;
    rig_pass(RIG_STEP);
    ck_assert((item->flags & RL_FX_LOST) != 0);
}
END_TEST

/* A delayed release keeps the key for a minute, longer than the TTL of a second. One server
 * executes it late, and its reply is lost. The engine keeps the undo for the whole minute and sends
 * it when the server is connected again. */
START_TEST(a_long_delayed_release_keeps_its_undo)
{
    struct rl_lease_params params = rig_params();

    connect_all();
    struct rig_lock *item = rig_hold(0, &params, "a");
    rig_pass(300 * RL_MS);
    uint64_t end_ns = world.now_ns + 60 * RL_SECOND;
    rig_call(item, RL_EVENT_SHORTEN, 60 * RL_SECOND);
    world.now_ns += 500 * RL_MS;
    rig_reach(2, false, true);
    uint64_t late_ms = rig_ttl_ms(2, "a");
    ck_assert_uint_gt(late_ms, 59990);
    rig_pass(30 * RL_SECOND);
    ck_assert_uint_eq(count_undos(rig_engine(0)), 1);
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(count_undos(rig_engine(0)), 0);
    ck_assert_uint_ge(world.now_ns + rig_ttl_ms(2, "a") * RL_MS, end_ns - RIG_STEP);
    ck_assert_uint_le(world.now_ns + rig_ttl_ms(2, "a") * RL_MS, end_ns + RIG_STEP);
}
END_TEST

/* The second address is moved to a server of its own: it votes from its next connection on. */
START_TEST(a_duplicate_that_gets_its_own_server_votes_again)
{
    struct rl_engine *engine = rig_engine(0);
    struct rl_node *node = &engine->nodes[1];

    memcpy(world.nodes[1].run_id, world.nodes[0].run_id, sizeof world.nodes[0].run_id);
    rig_pass(20 * RL_MS);
    ck_assert(node->eligibility.duplicate);
    snprintf(world.nodes[1].run_id, sizeof world.nodes[1].run_id, "own");
    rig_reach(1, false, false);
    rig_reach(1, true, false);
    rig_pass(20 * RL_SECOND);
    ck_assert(!node->eligibility.duplicate);
    ck_assert(!engine->view.duplicate);
    ck_assert_uint_eq(engine->view.up, rl_nodes_all(NODES));
}
END_TEST

/* The other engines of a client take over the times that the first one has read. */
START_TEST(clocks_are_read_once_for_all_engines)
{
    world.now_ns += RL_SECOND;
    world.clients[0].wall_us += 5000000;
    rl_engine_refresh(rig_engine(0));
    rl_engine_refresh_from(rig_engine(1), rig_engine(0));
    const struct rl_view *first = &rig_engine(0)->view, *other = &rig_engine(1)->view;
    ck_assert_uint_eq(other->now.boot_ns, world.now_ns);
    ck_assert_uint_eq(other->now.raw_ns, first->now.raw_ns);
    ck_assert_int_eq(other->wall_us, first->wall_us);
    ck_assert_uint_ne(other->random, first->random);
}
END_TEST

/* Returns the parameters of a fenced lock that waits up to 5 s. */
static struct rl_lease_params fenced(void)
{
    struct rl_lease_params params = rig_params();

    params.terms.fence = true;
    params.wait_ns = 5 * RL_SECOND;
    return params;
}

/* Acquires a fenced lock. */
static struct rig_lock *hold_fenced(const char *name)
{
    const struct rl_lease_params params = fenced();
    struct rig_lock *item = rig_start_one(0, &params, name);

    for (unsigned i = 0; i < 5000 && !rig_holds(item); i++)
        rig_pass(RIG_STEP);
    ck_assert_msg(rig_holds(item), "status %d", item->status);
    return item;
}

/* The servers' fencing tokens are far above the client's clock. A failed vote has no number, so the
 * client still proposes above the largest one that it knows, and needs one round. */
START_TEST(a_failed_vote_lowers_no_proposal)
{
    struct rl_engine *engine = rig_engine(0);
    const unsigned stripe = rl_fence_stripe(rl_hash_bytes("a", 1));
    const struct rl_lease_params params = fenced();

    rig_call(hold_fenced("a"), RL_EVENT_RELEASE, 0);
    rig_pass(10 * RL_MS);
    for (unsigned i = 0; i < NODES; i++)
        world.nodes[i].store.record.numbers[stripe] += UINT64_C(3600000000);
    rig_call(hold_fenced("a"), RL_EVENT_RELEASE, 0);
    rig_pass(10 * RL_MS);
    ck_assert_uint_eq(engine->stats.fence_two_rounds, 1);

    const uint64_t one_round = engine->stats.fence_one_round;
    struct rig_lock *item = rig_start_one(0, &params, "a");
    for (unsigned i = 0; i < 2; i++)
        world_serve(0, i, UINT32_MAX);
    rig_turn(0);
    ck_assert(rig_holds(item));
    rig_reach(2, false, false);
    rig_reach(2, true, false);
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_pass(5 * RL_SECOND);
    (void)hold_fenced("a");
    ck_assert_uint_eq(engine->stats.fence_two_rounds, 1);
    ck_assert_uint_eq(engine->stats.fence_one_round, one_round + 2);
}
END_TEST

/* The undo of a lock that was extended by more than its first TTL is kept as long as the key. */
START_TEST(a_long_extension_keeps_its_undo)
{
    struct rl_lease_params params = rig_params();

    connect_all();
    struct rig_lock *item = rig_hold(0, &params, "a");
    rig_call(item, RL_EVENT_EXTEND, 60 * RL_SECOND);
    rig_pass(5 * RL_MS);
    ck_assert_int_eq(item->status, REDLOCK_OK);
    rig_reach(2, false, true);
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_pass(30 * RL_SECOND);
    ck_assert_uint_gt(rig_ttl_ms(2, "a"), 0);
    ck_assert_uint_eq(count_undos(rig_engine(0)), 1);
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(rig_ttl_ms(2, "a"), 0);
}
END_TEST

/* The keys of an adopted lock have the TTL of their previous holder, which may be longer than that
 * of the adoption. Their undo is kept as long. */
START_TEST(a_short_adoption_keeps_its_undo)
{
    static const char *const names[] = {"a", NULL};
    struct rl_lease_params giver = rig_params(), params = rig_params();

    connect_all();
    giver.terms.ttl_ns = 60 * RL_SECOND;
    rig_engine(0)->common.admission.max_ttl_ns = giver.terms.ttl_ns;
    struct rig_lock *given = rig_hold(1, &giver, "a");
    params.terms.kind = RL_LEASE_ADOPT;
    struct rig_lock *item = rig_start_with(0, &params, names, rl_lock_token(&given->lock));
    rig_call(given, RL_EVENT_DETACH, 0);
    rig_pass(5 * RL_MS);
    ck_assert(rig_holds(item));
    rig_reach(2, false, true);
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_pass(30 * RL_SECOND);
    ck_assert_uint_gt(rig_ttl_ms(2, "a"), 0);
    ck_assert_uint_eq(count_undos(rig_engine(0)), 1);
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(rig_ttl_ms(2, "a"), 0);
}
END_TEST

/* A client that closes waits for an undo until two attempts to connect to the server have failed,
 * even if the server was suspect before (1). The end of the connection is no failed attempt. */
START_TEST(a_closing_client_waits_for_an_undo_until_the_server_is_down)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    struct rig_lock *item = rig_hold(0, &params, "a");
    ck_assert(!rl_engine_is_settled(engine)); /* because of the lock */
    engine->nodes[2].detector.suspect = _i == 1;
    rig_reach(2, false, true);
    rig_call(item, RL_EVENT_RELEASE, 0);
    world_serve_all();
    rig_turn(0);
    ck_assert_ptr_null(engine->locks);
    while (engine->nodes[2].conn.attempts_failed < 2) {
        ck_assert(!rl_engine_is_settled(engine));
        rig_pass(RIG_STEP);
    }
    ck_assert(rl_engine_is_settled(engine));
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(count_undos(engine), 0);
    ck_assert(rl_engine_is_settled(engine));
}
END_TEST

/* A server that accepts each connection but ends it early is not down. A client that closes waits
 * for the undo on the next connection. */
START_TEST(a_closing_client_waits_between_short_connections)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    for (unsigned cut = 0; cut < 4; cut++) {
        struct rig_lock *item = rig_hold(0, &params, "a");
        world_lose_connection(0, 2, true);
        rig_call(item, RL_EVENT_RELEASE, 0);
        while (count_undos(engine) > 0 || engine->locks != NULL) {
            ck_assert(!rl_engine_is_settled(engine));
            rig_pass(RIG_STEP);
        }
        ck_assert_uint_eq(rig_ttl_ms(2, "a"), 0);
        ck_assert_uint_gt(engine->nodes[2].conn.brief, cut);
    }
}
END_TEST

/* The server cuts each connection before it executes the undo, and refuses one. It is not down: a
 * client that closes waits for the undo. */
START_TEST(a_closing_client_counts_failed_attempts_only)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);
    struct rl_connection *conn = &engine->nodes[2].conn;

    connect_all();
    params.terms.ttl_ns = 60 * RL_SECOND; /* the key does not expire meanwhile */
    struct rig_lock *item = rig_hold(0, &params, "a");
    const uint64_t start_ns = world.now_ns;
    rig_call(item, RL_EVENT_RELEASE, 0);
    for (unsigned cut = 0; cut < 3; cut++) {
        world_lose_connection(0, 2, false);
        while (!rl_connection_is_ready(conn)) {
            ck_assert(!rl_engine_is_settled(engine));
            rig_pass(RIG_STEP);
        }
    }
    rig_reach(2, false, false);
    while (conn->attempts_failed < 1) {
        ck_assert(!rl_engine_is_settled(engine));
        rig_pass(RIG_STEP);
    }
    ck_assert(!rl_engine_is_settled(engine));
    rig_reach(2, true, false);
    while (count_undos(engine) > 0) {
        ck_assert(!rl_engine_is_settled(engine));
        rig_pass(RIG_STEP);
    }
    ck_assert_uint_eq(rig_ttl_ms(2, "a"), 0);
    ck_assert_uint_lt(world.now_ns - start_ns, params.terms.ttl_ns);
    ck_assert(rl_engine_is_settled(engine));
}
END_TEST

/* A client that closes waits until the server has replied to a request to leave a line (0), is
 * suspect (1), or the connection has ended, with which the server forgets the request (2). */
START_TEST(a_closing_client_waits_until_it_has_left_the_line)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);
    struct rl_node *node = &engine->nodes[2];
    const uint64_t now_ns = engine->view.now.boot_ns;

    connect_all();
    struct rig_lock *item = rig_hold(0, &params, "a");
    ck_assert_int_eq(rl_node_request_line(node, item->lock.claim, 1, RL_VERB_LINE_LEAVE, now_ns),
                     0);
    rig_call(item, RL_EVENT_DETACH, 0);
    ck_assert_ptr_null(engine->locks);
    ck_assert_uint_eq(count_undos(engine), 0);
    ck_assert_uint_eq(rl_pipeline_output(&node->pipe).len, 0);
    ck_assert(!rl_engine_is_settled(engine));
    if (_i == 0)
        rl_node_received(node, ":0\r\n", 4, now_ns);
    else if (_i == 1)
        node->detector.suspect = true;
    else
        rig_reach(2, false, false);
    rl_engine_drain(engine);
    ck_assert(rl_engine_is_settled(engine));
    if (_i == 0)
        world_lose_connection(0, 2, false); /* the server would reply once more */
}
END_TEST

static uint64_t held, reach; /* what the transport reports for all connections */

/* Implements rl_transport.held. */
static uint64_t report_held(void *ctx, unsigned connection)
{
    (void)ctx;
    (void)connection;
    return held;
}

/* Implements rl_transport.reach. */
static uint64_t report_reach(void *ctx, unsigned connection, uint64_t unread)
{
    (void)ctx;
    (void)connection;
    (void)unread;
    return reach;
}

/* A server has stopped and does not read the undo. A client that closes does not wait if the server
 * executes all that it has received when it goes on. It waits if more is unread than the server
 * reads of a connection that has ended, or if the kernel does not have the whole last record. */
START_TEST(a_closing_client_waits_for_what_a_stopped_server_would_not_read)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);
    struct rl_node *node = &engine->nodes[2];

    connect_all();
    struct rig_lock *item = rig_hold(0, &params, "a");
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_turn(0);
    const uint64_t unread = rl_pipeline_unread(&node->pipe);
    ck_assert_uint_gt(unread, 1);
    world_serve(0, 0, 8);
    world_serve(0, 1, 8);
    rig_turn(0);
    ck_assert_ptr_null(engine->locks);
    ck_assert_uint_eq(count_undos(engine), 1);
    ck_assert(!rl_engine_is_settled(engine)); /* the server may still reply */
    node->detector.suspect = true;
    ck_assert(rl_engine_is_settled(engine)); /* without records: 16 KiB are read */
    engine->common.transport.held = report_held;
    engine->common.transport.reach = report_reach;
    reach = unread;
    ck_assert(rl_engine_is_settled(engine));
    reach = unread - 1;
    ck_assert(!rl_engine_is_settled(engine));
    reach = unread;
    held = 1;
    ck_assert(!rl_engine_is_settled(engine));
    held = 0;
    ck_assert(rl_engine_is_settled(engine));
}
END_TEST

/* The quorum must consist of nodes that are both connected and eligible. */
START_TEST(a_client_is_ready_with_a_quorum_of_eligible_nodes)
{
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    engine->view.eligible = RL_NODE(0) | RL_NODE(1);
    ck_assert(rl_engine_is_ready(engine));
    engine->view.up = RL_NODE(1) | RL_NODE(2);
    ck_assert(!rl_engine_is_ready(engine));
    engine->view.eligible = rl_nodes_all(NODES);
    ck_assert(rl_engine_is_ready(engine));
}
END_TEST

/* All servers are suspect, and no quorum is possible without them. */
START_TEST(suspect_servers_are_asked_if_no_others_are_left)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    for (unsigned i = 0; i < NODES; i++) {
        engine->nodes[i].detector.suspect = true;
        engine->nodes[i].detector.suspect_since_ns = world.now_ns;
        rl_inbox_note(&engine->common.inbox, RL_INBOX_CHANGED, i);
        rl_engine_drain(engine);
    }
    ck_assert_uint_eq(engine->view.suspect, rl_nodes_all(NODES));
    (void)rig_hold(0, &params, "a");
}
END_TEST

/* Sets the measured round trips of the nodes in µs and updates the view. */
static void set_round_trips(uint64_t first_us, uint64_t second_us, uint64_t third_us)
{
    const uint64_t times_us[NODES] = {first_us, second_us, third_us};
    struct rl_engine *engine = rig_engine(0);

    for (unsigned i = 0; i < NODES; i++) {
        struct rl_detector *detector = &engine->nodes[i].detector;
        detector->srtt_ns = detector->worst_ns = times_us[i] * RL_US;
    }
    world.now_ns += 100 * RL_MS;
    rl_engine_refresh(engine);
    rl_engine_tick(engine);
}

/* A node is slow if its round trip is several times that of the quorum, and a millisecond more. */
START_TEST(slow_nodes_have_several_times_the_round_trip)
{
    const struct rl_view *view = &rig_engine(0)->view;

    connect_all();
    set_round_trips(100, 900, 200);
    ck_assert_uint_eq(view->round_trip_ns, 200 * RL_US);
    ck_assert_uint_eq(view->slow, 0);
    set_round_trips(100, 2000, 200);
    ck_assert_uint_eq(view->slow, RL_NODE(1));
    set_round_trips(2000, 2000, 200);
    ck_assert_uint_eq(view->round_trip_ns, 2000 * RL_US);
    ck_assert_uint_eq(view->slow, 0);
    set_round_trips(0, 0, 300); /* only one round trip is known */
    ck_assert_uint_eq(view->round_trip_ns, 300 * RL_US);
}
END_TEST

/* A vote that decides an extension has the clocks read again in the middle of a tick, and round
 * trips computed then are newer than the beginning of the tick. They stay as they are. */
START_TEST(round_trips_that_are_newer_than_the_tick_are_kept)
{
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    set_round_trips(100, 200, 300);
    engine->nodes[0].detector.srtt_ns = 900 * RL_US;
    engine->times_ns = world.now_ns + 1;
    rl_engine_tick(engine);
    ck_assert_uint_eq(engine->view.round_trip_ns, 200 * RL_US);
}
END_TEST

/* A node whose round trips were long is slow until some seconds of quick heartbeats, which come
 * although the node is avoided, have halved the longest recent one often enough. One slow reply in
 * between begins that anew. */
START_TEST(quick_heartbeats_end_slowness)
{
    struct rl_engine *engine = rig_engine(0);
    struct rl_node *node = &engine->nodes[1];

    connect_all();
    set_round_trips(100, 200000, 200);
    node->detector.worst_at_ns = world.now_ns;
    for (unsigned i = 1; i <= 12; i++) {
        ck_assert_uint_eq(engine->view.slow, RL_NODE(1));
        world.now_ns += RL_SECOND;
        if (i == 5)
            rl_detector_note_trip(node, 200 * RL_MS, world.now_ns);
        else
            rl_detector_note_heartbeat(node, 300 * RL_US, world.now_ns);
        rl_engine_refresh(engine);
        rl_engine_tick(engine);
    }
    ck_assert_uint_eq(engine->view.slow, 0);
    ck_assert_uint_gt(rl_detector_srtt_ns(&node->detector), 100 * RL_MS);
}
END_TEST

/* One slow reply of a quick node does not make it slow. */
START_TEST(one_slow_reply_is_no_slowness)
{
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    set_round_trips(100, 200, 200);
    rl_detector_note_trip(&engine->nodes[1], 10 * RL_MS, world.now_ns);
    world.now_ns += 100 * RL_MS;
    rl_engine_refresh(engine);
    rl_engine_tick(engine);
    ck_assert_uint_eq(engine->view.slow, 0);
}
END_TEST

/* The timer of a client expires for its locks and for its fence records, not only for its nodes. */
START_TEST(the_timer_includes_locks_and_records)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    rig_call(hold_fenced("fenced"), RL_EVENT_RELEASE, 0);
    rig_pass(20 * RL_MS);
    engine->records->due_ns = world.now_ns + RL_MS;
    rl_engine_flush(engine);
    ck_assert_uint_le(world.clients[0].wake_ns, world.now_ns + RL_MS);
    ck_assert(rl_engine_is_due(engine, world.now_ns + RL_MS));
    ck_assert(!rl_engine_is_due(engine, world.now_ns + RL_MS - 1));
    engine->records->due_ns = RL_NEVER;
    params.terms.ttl_ns = 200 * RL_MS;
    params.terms.margin_ns = 0;
    const struct rig_lock *item = rig_hold(0, &params, "a");
    ck_assert_uint_le(world.clients[0].wake_ns, item->lock.due_ns);
    ck_assert(rl_engine_is_due(engine, item->lock.due_ns));
    ck_assert(!rl_engine_is_due(engine, item->lock.due_ns - 1));
}
END_TEST

/* Without a lock no heartbeats are sent. */
START_TEST(heartbeats_are_sent_while_there_are_locks)
{
    struct rl_lease_params params = rig_params();
    const bool *wanted = &rig_engine(0)->common.active;

    connect_all();
    ck_assert(!*wanted);
    struct rig_lock *first = rig_hold(0, &params, "a"), *second = rig_hold(0, &params, "b");
    rig_call(first, RL_EVENT_RELEASE, 0);
    rig_pass(5 * RL_MS);
    ck_assert(!first->lock.active && *wanted);
    rig_call(second, RL_EVENT_RELEASE, 0);
    rig_pass(5 * RL_MS);
    ck_assert(!second->lock.active && !*wanted);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_clocks_and_servers");
    TCase *tcase = tcase_create("engine");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, rig_end);
    tcase_add_test(tcase, duplicates_are_named_after_the_first_address);
    tcase_add_test(tcase, a_wall_clock_set_ahead_loses_the_lock);
    tcase_add_test(tcase, a_long_delayed_release_keeps_its_undo);
    tcase_add_test(tcase, a_duplicate_that_gets_its_own_server_votes_again);
    tcase_add_test(tcase, clocks_are_read_once_for_all_engines);
    tcase_add_test(tcase, a_failed_vote_lowers_no_proposal);
    tcase_add_test(tcase, a_long_extension_keeps_its_undo);
    tcase_add_test(tcase, a_short_adoption_keeps_its_undo);
    tcase_add_loop_test(tcase, a_closing_client_waits_for_an_undo_until_the_server_is_down, 0, 2);
    tcase_add_test(tcase, a_closing_client_waits_between_short_connections);
    tcase_add_loop_test(tcase, a_closing_client_waits_until_it_has_left_the_line, 0, 3);
    tcase_add_test(tcase, a_closing_client_counts_failed_attempts_only);
    tcase_add_test(tcase, a_closing_client_waits_for_what_a_stopped_server_would_not_read);
    tcase_add_test(tcase, a_client_is_ready_with_a_quorum_of_eligible_nodes);
    tcase_add_test(tcase, suspect_servers_are_asked_if_no_others_are_left);
    tcase_add_test(tcase, slow_nodes_have_several_times_the_round_trip);
    tcase_add_test(tcase, round_trips_that_are_newer_than_the_tick_are_kept);
    tcase_add_test(tcase, quick_heartbeats_end_slowness);
    tcase_add_test(tcase, one_slow_reply_is_no_slowness);
    tcase_add_test(tcase, the_timer_includes_locks_and_records);
    tcase_add_test(tcase, heartbeats_are_sent_while_there_are_locks);
    return suite_run(suite);
}
