/* SPDX-License-Identifier: MIT
 * A lease that waits in a line: whichever way its call ends, it leaves each line that may have a
 * record of it.
 *
 * Uses contention_rig.h: one lease in virtual time on five nodes, in the order of preference 2, 4,
 * 0, 3, 1, with the contention state of its resource. begin() passes the first event to a new
 * lease, rig_grant() and rig_deny() a vote. rig.fx holds the effects of the last step. */
#include "contention_rig.h"

#define BUDGET_NS (100 * RL_MS)

static unsigned joined; /* the node whose line the lease has joined last */

/* Fixture: all nodes keep lines, and the call waits for BUDGET_NS. */
static void setup_lines(void)
{
    setup();
    rig.params.wait_ns = BUDGET_NS;
    rig.view.lines = ALL;
}

/* Checks that the last step has sent `verb` to the lines of these nodes. */
static void check_sent(enum rl_verb verb, rl_nodes nodes)
{
    ck_assert_uint_eq(rig.fx.line, verb);
    ck_assert_uint_eq(rig.fx.line_node, nodes);
}

/* Passes the reply of a node to a request to its line. */
static void reply_to(enum rl_verb verb, unsigned node, const struct rl_line_reply *reply)
{
    const struct rl_event event = {
        .kind = RL_EVENT_VOTE,
        .ballot = {.node = (uint8_t)node,
                   .vote = reply == NULL ? RL_VOTE_FAILED : RL_VOTE_GRANTED,
                   .cause = reply == NULL ? REDLOCK_CAUSE_DISCONNECT : 0,
                   .verb = (uint8_t)verb,
                   .round = rig.lease.round.number},
        .line = reply,
    };

    rig_step(&rig, &event);
}

/* Begins a call that joins the line of the preferred node. */
static void join(void)
{
    begin_hot();
    joined = FIRST;
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
}

/* The node of the line replies that the lease is the head and the lock is free: it asks all nodes,
 * and the node of the line to leave the line. */
static void go(void)
{
    const struct rl_line_reply reply = {.place = 1, .length = 1, .is_head = true, .head = 1};

    reply_to(RL_VERB_LINE_JOIN, joined, &reply);
    ck_assert_uint_eq(rig.fx.request, ALL);
    check_sent(RL_VERB_LINE_GO, RL_NODE(joined));
}

/* Ends the wait budget: the lease goes on until its last attempt is denied. */
static void use_up_budget(void)
{
    while (rig.lease.state != RL_STATE_ENDED) {
        rig_pass(&rig, rl_sub_sat(rig.lease.wake_ns, rig.view.now.boot_ns));
        rig_tick(&rig);
        for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++)
            rig_deny(&rig, i);
    }
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
}

/* The wait budget ends, with odd _i before the node of the line can reply. That is no reason to use
 * another line in the next call. */
START_TEST(the_wait_budget_ends)
{
    const struct rl_line_reply waits = {.place = 2, .length = 2, .exists = true, .head = 1};

    join();
    if (_i == 0)
        reply_to(RL_VERB_LINE_JOIN, FIRST, &waits);
    use_up_budget();
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
    ck_assert_uint_eq(contention.line.avoid, 0);
}
END_TEST

START_TEST(the_call_is_canceled)
{
    join();
    if (_i == 1)
        go();
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* Begins a call that joins the line of the preferred node. That node does not reply, so the lease
 * joins the line of the next one. */
static void join_another(void)
{
    rig.params.wait_ns = RL_NEVER;
    join();
    for (unsigned i = 0; i < 100 && (i == 0 || rig.fx.line == 0); i++) {
        rig_pass(&rig, rl_sub_sat(rig.lease.wake_ns, rig.view.now.boot_ns));
        rig_tick(&rig); /* the first ones may come before the timer of the lease */
    }
    joined = 4;
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
}

START_TEST(the_line_is_that_of_another_node)
{
    join_another();
    rig_event(&rig, RL_EVENT_CANCEL);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST) | RL_NODE(4));
}
END_TEST

/* The next call, after the lock was held (0) or the call has ended without it (1), joins the line
 * of the other node, too. A second later (2) the preferred node is asked again. */
START_TEST(the_next_call_after_that)
{
    const struct rl_line_reply left = {.place = 0, .length = 0, .exists = true};

    join_another();
    if (_i == 0) {
        go();
        rig_grant(&rig, 4);
        reply_to(RL_VERB_LINE_GO, 4, &left);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
        check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
    } else {
        rig_event(&rig, RL_EVENT_CANCEL);
    }
    if (_i == 2)
        rig_pass(&rig, RL_SECOND);
    begin_hot();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(_i == 2 ? FIRST : 4));
}
END_TEST

/* The others grant. The node of the line denies before that (0), after that (1), or after the end
 * of the lease (2): the winner leaves when it knows that LINE_GO has not done it. */
START_TEST(the_attempt_wins_without_the_node_of_the_line)
{
    const struct rl_line_reply stays = {.place = 1, .length = 1, .is_head = true, .exists = true};

    join();
    go();
    if (_i == 0) {
        rig_deny(&rig, FIRST);
        reply_to(RL_VERB_LINE_GO, FIRST, &stays);
        ck_assert_uint_eq(rig.fx.line, 0);
    }
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    if (_i == 1) {
        ck_assert_uint_eq(rig.fx.line, 0);
        reply_to(RL_VERB_LINE_GO, FIRST, &stays);
    } else if (_i == 2) {
        rig_event(&rig, RL_EVENT_RELEASE);
        ck_assert_uint_eq(rig.fx.line, 0);
        for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++)
            rig_grant(&rig, i);
    }
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* LINE_GO has left the line: nothing more is sent, whenever the reply comes. */
START_TEST(the_node_of_the_line_grants)
{
    const struct rl_line_reply left = {.place = 0, .length = 1, .exists = true};

    join();
    go();
    rig_grant(&rig, FIRST);
    if (_i == 0)
        reply_to(RL_VERB_LINE_GO, FIRST, &left);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    if (_i == 1)
        reply_to(RL_VERB_LINE_GO, FIRST, &left);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig_event(&rig, RL_EVENT_RELEASE);
    for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++) {
        rig_grant(&rig, i);
        ck_assert_uint_eq(rig.fx.line, 0);
    }
    ck_assert_uint_eq(contention.line.joined, 0);
    ck_assert(!contention.line.doubtful);
}
END_TEST

/* The winner has released the lock, and the next lock of the client has joined the line: a reply to
 * LINE_GO of the winner does not make the client leave. */
START_TEST(the_next_lock_joins_before_the_reply)
{
    static struct rig waiter, winner;
    const struct rl_line_reply reply = {.place = 1, .length = 1, .exists = true};

    join();
    go();
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig_event(&rig, RL_EVENT_RELEASE);
    winner = rig;
    rig.params.salt++;
    join();
    waiter = rig;
    rig = winner;
    reply_to(RL_VERB_LINE_GO, FIRST, &reply);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig = waiter;
    rig_event(&rig, RL_EVENT_CANCEL);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* The winner has waited in the lines of two nodes and has released the lock. The next lock of the
 * client has joined one of these lines, and gets a turn in the other one (0), or ends after the
 * reply to LINE_GO of the winner (1), or before it (2). The client leaves both lines. */
START_TEST(the_next_lock_leaves_the_lines_of_the_winner)
{
    static struct rig waiter, winner;
    const struct rl_line_reply left = {.place = 0, .length = 0, .exists = true};
    const struct rl_event turn = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST), .turn = true};

    join_another();
    go();
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig_event(&rig, RL_EVENT_RELEASE);
    winner = rig;
    rig.params.salt++;
    begin_hot();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
    if (_i == 0) {
        rig_step(&rig, &turn);
        check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
        return;
    }
    waiter = rig;
    if (_i == 1) {
        rig = winner;
        reply_to(RL_VERB_LINE_GO, 4, &left);
        ck_assert_uint_eq(rig.fx.line, 0);
        rig = waiter;
    }
    rig_event(&rig, RL_EVENT_CANCEL);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST) | RL_NODE(4));
    if (_i == 2) {
        rig = winner;
        reply_to(RL_VERB_LINE_GO, 4, &left);
        ck_assert_uint_eq(rig.fx.line, 0);
    }
}
END_TEST

/* A lock of two keys has waited in the lines of two nodes for its first key. It leaves both before
 * it waits in a line for the second key. */
START_TEST(a_lock_of_several_keys_leaves_the_lines_of_one_key)
{
    rig.params.keys = 2;
    join_another();
    go();
    for (unsigned i = 0; rig.lease.state == RL_STATE_ACQUIRING; i++)
        rig_ballot(&rig, (struct rl_ballot){.node = (uint8_t)i,
                                            .vote = RL_VOTE_DENIED,
                                            .verb = RL_VERB_ACQUIRE,
                                            .round = rig.lease.round.number,
                                            .key = 2});
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST) | RL_NODE(4));
}
END_TEST

/* A turn in a line in which the lease does not wait any more is declined. */
START_TEST(a_turn_in_another_line)
{
    const struct rl_event turn = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST), .turn = true};

    join();
    rig.lease.line.node = RL_NODE(4);
    rig_step(&rig, &turn);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_step(&rig, &turn);
    ck_assert_uint_eq(rig.fx.line, 0);
}
END_TEST

/* A single attempt of the same client ends: the record of the other lock stays. */
START_TEST(not_after_a_single_attempt)
{
    static struct rig waiter;

    join();
    waiter = rig;
    rig.params.wait_ns = 0;
    rig.params.salt++;
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++) {
        rig_deny(&rig, i);
        ck_assert_uint_eq(rig.fx.line, 0);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    rig = waiter;
    rig_event(&rig, RL_EVENT_CANCEL);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* Nor does a lock of the same client that ends in its queue. */
START_TEST(not_after_an_end_in_the_queue)
{
    join();
    rig.params.salt++;
    begin(RL_EVENT_QUEUE);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(rig.fx.line, 0);
}
END_TEST

/* A lock that never waited sends nothing to a line. */
START_TEST(a_lock_that_never_waited)
{
    begin(RL_EVENT_START);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.fx.line, 0);
    ck_assert(!contention.line.doubtful);
    rig_event(&rig, RL_EVENT_RELEASE);
    for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.fx.line, 0);
}
END_TEST

/* Returns the suite of all cases. */
static Suite *lease_line_suite(void)
{
    Suite *suite = suite_create("lease_line");
    TCase *group = tcase_create("leave");

    tcase_add_checked_fixture(group, setup_lines, NULL);
    tcase_add_loop_test(group, the_wait_budget_ends, 0, 2);
    tcase_add_loop_test(group, the_call_is_canceled, 0, 2);
    tcase_add_test(group, the_line_is_that_of_another_node);
    tcase_add_loop_test(group, the_next_call_after_that, 0, 3);
    tcase_add_loop_test(group, the_attempt_wins_without_the_node_of_the_line, 0, 3);
    tcase_add_loop_test(group, the_node_of_the_line_grants, 0, 2);
    tcase_add_test(group, the_next_lock_joins_before_the_reply);
    tcase_add_loop_test(group, the_next_lock_leaves_the_lines_of_the_winner, 0, 3);
    tcase_add_test(group, a_lock_of_several_keys_leaves_the_lines_of_one_key);
    tcase_add_test(group, a_turn_in_another_line);
    tcase_add_test(group, not_after_a_single_attempt);
    tcase_add_test(group, not_after_an_end_in_the_queue);
    tcase_add_test(group, a_lock_that_never_waited);
    suite_add_tcase(suite, group);
    return suite;
}

/* Runs the suite. */
int main(void)
{
    return suite_run(lease_line_suite());
}
