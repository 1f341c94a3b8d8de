/* SPDX-License-Identifier: MIT
 * A lease that is the head of a line: what makes it ask all nodes, which nodes it watches, and its
 * pauses. Uses line_rig.h. */
#include "line_rig.h"

#define OTHER 0 /* the most preferred of the nodes that have denied, beside FIRST */

/* What the node of the line replies to a head. */
static const struct rl_line_reply held = {
    .place = 1, .length = 1, .is_head = true, .exists = true, .head = 1};
static const struct rl_line_reply absent = {.place = 1, .length = 1, .is_head = true, .head = 1};
static const struct rl_event turn = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST), .turn = true};

/* Passes time until the timer of the lease, and the TICK. */
static void tick_when_due(void)
{
    rig_pass(&rig, due_in_ns());
    rig_tick(&rig);
}

/* Lets all nodes but those of `granting` deny the attempt. */
static void deny(rl_nodes granting)
{
    for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++)
        if ((granting & RL_NODE(i)) == 0)
            rig_deny(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}

/* Makes the lease a head that has had no notification for long and has been denied: another node
 * beside that of the line shows whether the lock is held. */
static void watch_another_node(void)
{
    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    tick_when_due();
    deny(0);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
}

/* A head knows that it is its turn. */
START_TEST(a_turn_changes_nothing_for_a_head)
{
    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    rig_step(&rig, &turn);
    ck_assert_uint_eq(rig.fx.line, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}
END_TEST

/* After each split vote the lease joins in front, and the pause that follows the reply is longer
 * than before. */
START_TEST(the_pause_after_split_votes_grows)
{
    const struct rl_line_reply left = {.place = 0, .length = 0};
    const struct rl_line_reply front = {.place = 1, .length = 1, .is_head = true};
    uint64_t last_ns = 0;

    join_for_long();
    attempt();
    for (unsigned i = 0; i < 6; i++) {
        rig_grant(&rig, FIRST);
        reply_to(RL_VERB_LINE_SERVED, FIRST, &left);
        rig_grant(&rig, 4);
        for (unsigned node = 0; node < 4; node++)
            if (node != FIRST && rig.lease.state == RL_STATE_ACQUIRING)
                node == 3 ? rig_fail(&rig, node) : rig_deny(&rig, node);
        check_sent(RL_VERB_LINE_FRONT, RL_NODE(FIRST));
        ck_assert(!rig.lease.line.pauses);
        reply_to(RL_VERB_LINE_FRONT, FIRST, &front);
        ck_assert(rig.lease.line.pauses);
        uint64_t pause_ns = due_in_ns();
        if (i == 5)
            ck_assert_uint_gt(pause_ns, 4 * last_ns);
        last_ns = i == 0 ? pause_ns : last_ns;
        rig_pass(&rig, pause_ns);
        rig_tick(&rig);
        check_sent(RL_VERB_LINE_SERVED, RL_NODE(FIRST));
    }
}
END_TEST

/* Another program's key may expire in 292 million years. */
START_TEST(a_key_may_last_for_ever)
{
    const struct rl_line_reply reply = {
        .place = 1, .length = 1, .is_head = true, .exists = true, .pttl_ms = INT64_MAX};

    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    ck_assert_uint_ge(due_in_ns(), 100 * RL_MS);
}
END_TEST

/* Ends the attempt: the node of the line and another one grant, two deny, and one fails. The lease
 * has left the line and asks to join it in front. */
static void split(void)
{
    const struct rl_line_reply left = {.place = 0};

    check_sent(RL_VERB_LINE_SERVED, RL_NODE(FIRST));
    rig_grant(&rig, FIRST);
    reply_to(RL_VERB_LINE_SERVED, FIRST, &left);
    rig_grant(&rig, 4);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_fail(&rig, 3);
    check_sent(RL_VERB_LINE_FRONT, RL_NODE(FIRST));
}

/* Each of the contenders whose attempts have split the votes notifies the others with its undo,
 * during the pause (0) or before it begins (1). Or the attempt began after a change (2). */
START_TEST(a_split_vote_is_followed_by_a_pause)
{
    join_for_long();
    if (_i == 2) {
        reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
        wake(RL_NODE(FIRST));
    } else {
        reply_to(RL_VERB_LINE_JOIN, FIRST, &absent);
    }
    split();
    if (_i == 1)
        wake(RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_FRONT, FIRST, &absent);
    if (_i == 0)
        wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.line, 0);
}
END_TEST

/* Two heads of different lines must not pause for the same time, and no head pauses for long. */
START_TEST(pauses_are_random_and_bounded)
{
    uint64_t shortest_ns = RL_NEVER, longest_ns = 0;

    rig.view.round_trip_ns = 10 * RL_MS;
    join_for_long();
    attempt();
    for (unsigned i = 0; i < 20; i++) {
        split();
        reply_to(RL_VERB_LINE_FRONT, FIRST, &absent);
        if (i >= 10) {
            shortest_ns = rl_min_u64(shortest_ns, due_in_ns());
            longest_ns = rl_max_u64(longest_ns, due_in_ns());
        }
        tick_when_due();
    }
    ck_assert_uint_lt(shortest_ns, longest_ns);
    ck_assert_uint_le(longest_ns, 200 * RL_MS);
}
END_TEST

/* A notification of a server shows that other clients use the lock. */
START_TEST(a_change_is_contention)
{
    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    rig_pass(&rig, 2 * RL_CONTENTION_RECENT_NS);
    ck_assert(!rl_contention_is_recent(&contention, rig.view.now.boot_ns));
    wake(RL_NODE(FIRST));
    ck_assert(rl_contention_is_recent(&contention, rig.view.now.boot_ns));
}
END_TEST

/* A turn that comes during a look says nothing about the lock. */
START_TEST(a_turn_during_a_look_is_no_change)
{
    join_for_long();
    rig_step(&rig, &turn);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    join_for_long();
    wake(RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* Every second time that no notification has come, another node is watched. */
START_TEST(a_head_without_notifications_watches_another_node)
{
    watch_another_node();
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(OTHER));
    ck_assert_uint_eq(rig.fx.track, RL_NODE(OTHER));
    wake(RL_NODE(OTHER));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    deny(0);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    tick_when_due();
    deny(0);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    ck_assert_uint_eq(rig.fx.probe, 0);
}
END_TEST

/* The node of the line grants an attempt that a quorum denies, so it lacks the holder's key. The
 * keys that change there are those of waiters that have split the votes as well. If a head tried
 * again each time, two of them would notify each other with their undos until the holder releases.
 * The other node counts. */
START_TEST(undos_on_the_node_of_the_line_begin_no_attempt)
{
    join_for_long();
    attempt();
    rig_grant(&rig, FIRST);
    deny(RL_NODE(FIRST));
    check_sent(RL_VERB_LINE_FRONT, RL_NODE(FIRST));
    if (_i == 0) {
        wake(RL_NODE(FIRST));
        reply_to(RL_VERB_LINE_FRONT, FIRST, &absent);
    } else {
        reply_to(RL_VERB_LINE_FRONT, FIRST, &absent);
        wake(RL_NODE(FIRST));
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.lease.line.second, RL_NODE(OTHER));
    wake(RL_NODE(OTHER));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* The other node stays the same until the next look, also if it becomes slow. */
START_TEST(the_other_node_stays_the_same)
{
    watch_another_node();
    rig.view.slow = RL_NODE(OTHER);
    if (_i == 0)
        report_ttl(OTHER, 0);
    else
        wake(RL_NODE(OTHER));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* No other node can be asked, or none has denied: a head then believes the node of the line. */
START_TEST(without_another_node_that_of_the_line_counts)
{
    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    tick_when_due();
    deny(0);
    rig.view.slow = ALL & ~RL_NODE(FIRST);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &absent);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* The key expires before the timer of heads. That is no sign of a missing notification. With odd
 * _i, the other node says when. */
START_TEST(a_head_asks_when_the_key_expires)
{
    struct rl_line_reply expiring = held;
    rl_nodes stale = 0;

    expiring.pttl_ms = 20;
    if (_i == 0) {
        join_for_long();
        reply_to(RL_VERB_LINE_JOIN, FIRST, &expiring);
    } else {
        watch_another_node();
        stale = contention.line.stale;
        report_ttl(OTHER, 20);
    }
    ck_assert_uint_le(due_in_ns(), 21 * RL_MS);
    tick_when_due();
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(contention.line.stale, stale);
}
END_TEST

/* A release by another lock of this client is no contention. */
START_TEST(an_own_release_is_no_contention)
{
    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    uint64_t until_ns = contention.recent_until_ns;
    rig_pass(&rig, RL_MS);
    wake(0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(contention.recent_until_ns, until_ns);
}
END_TEST

/* Returns the suite of all cases. */
static Suite *lease_head_suite(void)
{
    Suite *suite = suite_create("lease_head");
    TCase *group = tcase_create("head");

    tcase_add_checked_fixture(group, setup_lines, NULL);
    tcase_add_test(group, a_turn_changes_nothing_for_a_head);
    tcase_add_test(group, the_pause_after_split_votes_grows);
    tcase_add_test(group, a_key_may_last_for_ever);
    tcase_add_loop_test(group, a_split_vote_is_followed_by_a_pause, 0, 3);
    tcase_add_test(group, pauses_are_random_and_bounded);
    tcase_add_test(group, a_change_is_contention);
    tcase_add_test(group, a_turn_during_a_look_is_no_change);
    tcase_add_test(group, a_head_without_notifications_watches_another_node);
    tcase_add_loop_test(group, undos_on_the_node_of_the_line_begin_no_attempt, 0, 2);
    tcase_add_loop_test(group, the_other_node_stays_the_same, 0, 2);
    tcase_add_test(group, without_another_node_that_of_the_line_counts);
    tcase_add_loop_test(group, a_head_asks_when_the_key_expires, 0, 2);
    tcase_add_test(group, an_own_release_is_no_contention);
    suite_add_tcase(suite, group);
    return suite;
}

/* Runs the suite. */
int main(void)
{
    return suite_run(lease_head_suite());
}
