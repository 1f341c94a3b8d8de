/* SPDX-License-Identifier: MIT
 * A waiting lease moves from the line of one node to that of another. It leaves each line to which
 * it does not come back. Uses line_rig.h. */
#include "line_rig.h"

/* A waiter behind a head, while the lock is held. */
static const struct rl_line_reply second = {
    .place = 2, .length = 2, .exists = true, .head = 9, .head_beat = 1};

/* The preferred node cannot be asked (0), keeps no lines (1) or is slow (2) when the lease joins
 * the line of another node. It moves to the line of the preferred node as soon as it can, and
 * leaves the other line when it has its place there. */
START_TEST(a_lease_moves_to_the_line_of_the_preferred_node)
{
    rig.params.wait_ns = 60 * RL_SECOND;
    without_preferred(_i);
    begin_hot();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
    reply_to(RL_VERB_LINE_JOIN, 4, &second);
    with_preferred();
    look_again();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(4));
    look_again();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
}
END_TEST

/* So does a head, after its next attempt. */
START_TEST(a_head_moves_to_the_line_of_the_preferred_node)
{
    const struct rl_line_reply head = {
        .place = 1, .length = 1, .is_head = true, .exists = true, .head = 1};

    rig.params.wait_ns = 60 * RL_SECOND;
    without_preferred(0);
    begin_hot();
    reply_to(RL_VERB_LINE_JOIN, 4, &head);
    with_preferred();
    look_again();
    check_sent(RL_VERB_LINE_SERVED, RL_NODE(4));
    for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++)
        rig_deny(&rig, i);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &head);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(4));
}
END_TEST

/* The preferred node disconnects: the lease is still in the line of the other one. */
START_TEST(a_lease_that_cannot_move_keeps_its_place)
{
    rig.params.wait_ns = 60 * RL_SECOND;
    without_preferred(0);
    begin_hot();
    reply_to(RL_VERB_LINE_JOIN, 4, &second);
    with_preferred();
    look_again();
    without_preferred(0);
    reply_to(RL_VERB_LINE_JOIN, FIRST, NULL);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
    reply_to(RL_VERB_LINE_JOIN, 4, &second);
    ck_assert_uint_eq(rig.fx.line, 0);
}
END_TEST

/* The preferred node is not connected any more: the lease waits in another line, and keeps the
 * place to which it will come back. */
START_TEST(a_lease_keeps_its_place_at_a_node_that_is_down)
{
    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    without_preferred(0);
    look_again();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
    reply_to(RL_VERB_LINE_JOIN, 4, &second);
    ck_assert_uint_eq(rig.fx.line, 0);
    with_preferred();
    look_again();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
}
END_TEST

/* Joins the line of node 0, because the two nodes before it in the order of preference cannot be
 * asked, and gets a place there. */
static void join_third(void)
{
    rig.params.wait_ns = 60 * RL_SECOND;
    rig.view.up &= ~(RL_NODE(FIRST) | RL_NODE(4));
    begin_hot();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(0));
    reply_to(RL_VERB_LINE_JOIN, 0, &second);
}

/* The lease moves from node 0 to node 4, which does not reply (0) or refuses (1), and then to the
 * preferred node: it leaves the lines of both. */
START_TEST(a_lease_moves_twice)
{
    join_third();
    rig.view.up |= RL_NODE(4);
    look_again();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
    rig.view.up = ALL;
    if (_i == 0)
        look_again();
    else
        refuse_to_join(4);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(0) | RL_NODE(4));
}
END_TEST

/* The node in whose line the lease has its place refuses or disconnects. The lease goes to the
 * preferred node, from which it does not come back to that line: it leaves it. */
START_TEST(a_lease_moves_because_its_node_fails)
{
    join_third();
    look_again();
    rig.view.up = _i == 0 ? ALL : ALL & ~RL_NODE(0);
    if (_i == 0)
        refuse_to_join(0);
    else
        reply_to(RL_VERB_LINE_JOIN, 0, NULL);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    rig.view.up = ALL;
    reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(0));
}
END_TEST

/* The preferred node refuses after the move, and no other one can keep a line: the lease leaves the
 * line from which it has moved, once, and again at the end of the call. */
START_TEST(a_lease_moves_and_finds_no_line)
{
    join_third();
    with_preferred();
    look_again();
    rig.view.lines = 0;
    refuse_to_join(FIRST);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(0) | RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    look_again();
    for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++)
        rig_deny(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig_event(&rig, RL_EVENT_CANCEL);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(0) | RL_NODE(FIRST));
}
END_TEST

/* Looks at the line of the preferred node, and gets the reply, with this beat of the head. */
static void look_at_preferred(uint64_t beat)
{
    struct rl_line_reply reply = second;

    reply.head_beat = beat;
    look_again();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
}

/* The request to leave the line from which the lease has moved is lost. The lease sends it after
 * each look until there is a reply, but not while that node cannot be asked. A reply that is an
 * error counts, too (1). */
START_TEST(a_former_line_is_left_until_it_replies)
{
    const struct rl_line_reply left = {.place = 0, .length = 1, .exists = true, .head = 9};

    join_third();
    with_preferred();
    look_at_preferred(1);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(0));
    reply_to(RL_VERB_LINE_LEAVE, 0, NULL);
    rig.view.up &= ~RL_NODE(0);
    look_at_preferred(2);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig.view.up |= RL_NODE(0);
    look_at_preferred(3);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(0));
    if (_i == 0)
        reply_to(RL_VERB_LINE_LEAVE, 0, &left);
    else
        refuse(RL_VERB_LINE_LEAVE, 0);
    look_at_preferred(4);
    ck_assert_uint_eq(rig.fx.line, 0);
}
END_TEST

/* The call ends before the reply after a move. The next lock in the queue takes the place, and
 * leaves the line from which the first one has moved. */
START_TEST(the_next_in_the_queue_leaves_a_former_line)
{
    join_third();
    with_preferred();
    look_again();
    contention.followers = 1;
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_uint_eq(rig.fx.line, 0);
    contention.followers = 0;
    rig.params.salt++;
    join();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(0));
}
END_TEST

/* Returns the suite of all cases. */
static Suite *lease_line_moves_suite(void)
{
    Suite *suite = suite_create("lease_line_moves");
    TCase *group = tcase_create("moves");

    tcase_add_checked_fixture(group, setup_lines, NULL);
    tcase_add_loop_test(group, a_lease_moves_to_the_line_of_the_preferred_node, 0, 3);
    tcase_add_test(group, a_head_moves_to_the_line_of_the_preferred_node);
    tcase_add_test(group, a_lease_that_cannot_move_keeps_its_place);
    tcase_add_test(group, a_lease_keeps_its_place_at_a_node_that_is_down);
    tcase_add_loop_test(group, a_lease_moves_twice, 0, 2);
    tcase_add_loop_test(group, a_lease_moves_because_its_node_fails, 0, 2);
    tcase_add_test(group, a_lease_moves_and_finds_no_line);
    tcase_add_loop_test(group, a_former_line_is_left_until_it_replies, 0, 2);
    tcase_add_test(group, the_next_in_the_queue_leaves_a_former_line);
    suite_add_tcase(suite, group);
    return suite;
}

/* Runs the suite. */
int main(void)
{
    return suite_run(lease_line_moves_suite());
}
