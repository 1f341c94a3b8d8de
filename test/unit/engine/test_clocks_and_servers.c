/* SPDX-License-Identifier: MIT
 * Decisions of the engine itself: servers with two names, clocks that are set, and how long an undo
 * is kept. */
#include "engine_rig.h"

#include "platform/hash.h"

static void setup(void)
{
    rig_begin(NULL);
}

static void connect_all(void)
{
    rig_pass(20 * RL_MS);
    ck_assert(rl_engine_is_ready(rig_engine(0)));
}

/* Counts the undos that are owed to nodes or in flight. */
static unsigned undos_pending(const struct rl_engine *engine)
{
    unsigned pending = 0;

    for (unsigned i = 0; i < engine->count; i++)
        pending += rl_node_undos_pending(&engine->nodes[i]);
    return pending;
}

/* The second and the third address lead to the first one's server: both are named after it. */
START_TEST(duplicates_name_the_first)
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
    engine->nodes[1].detector.suspect = true; /* it is not asked anyway */
    rl_inbox_note(&engine->common.inbox, RL_INBOX_CHANGED, 0);
    rl_engine_drain(engine);
    ck_assert_uint_eq(engine->view.suspect, 0);
    engine->nodes[1].detector.suspect = false;
}
END_TEST

/* The wall clock is set back by an hour, a lock is taken, and the clock is set right: for this lock
 * that is an hour ahead, and it is lost in the turn that sees it. */
START_TEST(a_wall_clock_is_set_back_and_ahead)
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

/* A lock of a second is kept for a minute after its release. One server executes that
 * late, and its answer is lost: the engine keeps the undo for the whole minute, and sends it when
 * the server can be reached again. */
START_TEST(release_after_for_longer_than_the_ttl)
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
    ck_assert_uint_eq(undos_pending(rig_engine(0)), 1);
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(undos_pending(rig_engine(0)), 0);
    ck_assert_uint_ge(world.now_ns + rig_ttl_ms(2, "a") * RL_MS, end_ns - RIG_STEP);
    ck_assert_uint_le(world.now_ns + rig_ttl_ms(2, "a") * RL_MS, end_ns + RIG_STEP);
}
END_TEST

/* The second address is moved to a server of its own: it votes from its next connection on. */
START_TEST(a_duplicate_gets_a_server_of_its_own)
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

/* Several engines of one client take over what the first one has read. */
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

static struct rl_lease_params fenced(void)
{
    struct rl_lease_params params = rig_params();

    params.terms.fence = true;
    params.wait_ns = 5 * RL_SECOND;
    return params;
}

static struct rig_lock *hold_fenced(const char *name)
{
    const struct rl_lease_params params = fenced();
    struct rig_lock *item = rig_start_one(0, &params, name);

    for (unsigned i = 0; i < 5000 && !rig_holds(item); i++)
        rig_pass(RIG_STEP);
    ck_assert_msg(rig_holds(item), "status %d", item->status);
    return item;
}

/* The servers' numbers are ahead of the client's clock by far. A vote that fails carries no number:
 * the client still proposes above the largest one that it has seen, and needs one round. */
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
START_TEST(an_extension_for_longer_than_the_ttl)
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
    ck_assert_uint_eq(undos_pending(rig_engine(0)), 1);
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(rig_ttl_ms(2, "a"), 0);
}
END_TEST

/* The keys of an adopted lock live as long as its giver asked for, which may be longer than the TTL
 * of the adoption. Their undo is kept as long. */
START_TEST(an_adoption_for_less_than_the_givers_ttl)
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
    ck_assert_uint_eq(undos_pending(rig_engine(0)), 1);
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(rig_ttl_ms(2, "a"), 0);
}
END_TEST

/* A client that closes waits for an undo until the server cannot be reached for a second time, also
 * if the server was suspect before. */
START_TEST(settled_when_a_server_is_down_for_sure)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    struct rig_lock *item = rig_hold(0, &params, "a");
    ck_assert(!rl_engine_is_settled(engine)); /* the lock */
    engine->nodes[2].detector.suspect = _i == 1;
    rig_reach(2, false, true);
    rig_call(item, RL_EVENT_RELEASE, 0);
    world_serve_all();
    rig_turn(0);
    ck_assert_ptr_null(engine->locks);
    while (engine->nodes[2].conn.failures < 2) {
        ck_assert(!rl_engine_is_settled(engine));
        rig_pass(RIG_STEP);
    }
    ck_assert(rl_engine_is_settled(engine));
    rig_reach(2, true, false);
    rig_pass(10 * RL_SECOND);
    ck_assert_uint_eq(undos_pending(engine), 0);
    ck_assert(rl_engine_is_settled(engine));
}
END_TEST

/* A server whose connections end early, but that is reached each time, is not down: a client that
 * closes waits for the undo that the next connection delivers. */
START_TEST(not_settled_between_short_connections)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    for (unsigned cut = 0; cut < 4; cut++) {
        struct rig_lock *item = rig_hold(0, &params, "a");
        world_lose_connection(0, 2, true);
        rig_call(item, RL_EVENT_RELEASE, 0);
        while (undos_pending(engine) > 0 || engine->locks != NULL) {
            ck_assert(!rl_engine_is_settled(engine));
            rig_pass(RIG_STEP);
        }
        ck_assert_uint_eq(rig_ttl_ms(2, "a"), 0);
        ck_assert_uint_gt(engine->nodes[2].conn.brief, cut);
    }
}
END_TEST

/* A quorum of nodes that are connected and may vote, not one of each. */
START_TEST(ready_with_a_quorum_of_voters)
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

/* All servers are late. They are asked all the same, as no others are left. */
START_TEST(late_servers_are_asked)
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

static void look_at_times(uint64_t first_us, uint64_t second_us, uint64_t third_us)
{
    const uint64_t times_us[NODES] = {first_us, second_us, third_us};
    struct rl_engine *engine = rig_engine(0);

    for (unsigned i = 0; i < NODES; i++)
        engine->nodes[i].detector.srtt_ns = times_us[i] * RL_US;
    world.now_ns += 100 * RL_MS;
    rl_engine_refresh(engine);
    rl_engine_tick(engine);
}

/* A node is slow if its round trip is several times that of the quorum, and a millisecond more. */
START_TEST(slow_nodes)
{
    const struct rl_view *view = &rig_engine(0)->view;

    connect_all();
    look_at_times(100, 900, 200);
    ck_assert_uint_eq(view->round_trip_ns, 200 * RL_US);
    ck_assert_uint_eq(view->slow, 0);
    look_at_times(100, 2000, 200);
    ck_assert_uint_eq(view->slow, RL_NODE(1));
    look_at_times(2000, 2000, 200);
    ck_assert_uint_eq(view->round_trip_ns, 2000 * RL_US);
    ck_assert_uint_eq(view->slow, 0);
    look_at_times(0, 0, 300); /* only one is known */
    ck_assert_uint_eq(view->round_trip_ns, 300 * RL_US);
}
END_TEST

/* The timer of a client rings for its locks and for its fence records, not only for its nodes. */
START_TEST(what_the_timer_is_for)
{
    struct rl_lease_params params = rig_params();
    struct rl_engine *engine = rig_engine(0);

    connect_all();
    rig_call(hold_fenced("fenced"), RL_EVENT_RELEASE, 0);
    rig_pass(20 * RL_MS);
    engine->records->due_ns = world.now_ns + RL_MS;
    rl_engine_flush(engine);
    ck_assert_uint_le(world.clients[0].wake_ns, world.now_ns + RL_MS);
    engine->records->due_ns = RL_NEVER;
    params.terms.ttl_ns = 200 * RL_MS;
    params.terms.margin_ns = 0;
    const struct rig_lock *item = rig_hold(0, &params, "a");
    ck_assert_uint_le(world.clients[0].wake_ns, item->lock.due_ns);
    ck_assert(rl_engine_is_due(engine, item->lock.due_ns));
    ck_assert(!rl_engine_is_due(engine, item->lock.due_ns - 1));
}
END_TEST

/* Heartbeats are wanted as long as there is a lock. */
START_TEST(heartbeats_while_there_are_locks)
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
    tcase_add_test(tcase, duplicates_name_the_first);
    tcase_add_test(tcase, a_wall_clock_is_set_back_and_ahead);
    tcase_add_test(tcase, release_after_for_longer_than_the_ttl);
    tcase_add_test(tcase, a_duplicate_gets_a_server_of_its_own);
    tcase_add_test(tcase, clocks_are_read_once_for_all_engines);
    tcase_add_test(tcase, a_failed_vote_lowers_no_proposal);
    tcase_add_test(tcase, an_extension_for_longer_than_the_ttl);
    tcase_add_test(tcase, an_adoption_for_less_than_the_givers_ttl);
    tcase_add_loop_test(tcase, settled_when_a_server_is_down_for_sure, 0, 2);
    tcase_add_test(tcase, not_settled_between_short_connections);
    tcase_add_test(tcase, ready_with_a_quorum_of_voters);
    tcase_add_test(tcase, late_servers_are_asked);
    tcase_add_test(tcase, slow_nodes);
    tcase_add_test(tcase, what_the_timer_is_for);
    tcase_add_test(tcase, heartbeats_while_there_are_locks);
    return suite_run(suite);
}
