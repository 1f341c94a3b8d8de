/* SPDX-License-Identifier: MIT
 * A lease that waits in a line: when it looks, and that it leaves each line that may have a record
 * of it, whichever way its call ends. Uses line_rig.h. */
#include "line_rig.h"

static const struct rl_event turn = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST), .turn = true};

/* Three nodes grant, of which none has a line: the lease holds the lock. */
static void win(void)
{
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}

/* Ends the wait budget: the lease goes on until its last attempt, which is within the budget, is
 * denied. The attempt would leave the line with the vote of the node of the line. */
static void use_up_budget(void)
{
    uint64_t begun_ns = rig.view.now.boot_ns;
    unsigned attempts = rig.lease.attempts;

    while (rig.lease.state != RL_STATE_ENDED) {
        rig_pass(&rig, rl_sub_sat(rig.lease.wake_ns, rig.view.now.boot_ns));
        rig_tick(&rig);
        if (rig.lease.state == RL_STATE_ACQUIRING)
            check_sent(RL_VERB_LINE_SERVED, RL_NODE(FIRST));
        for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++)
            rig_deny(&rig, i);
    }
    ck_assert_uint_gt(rig.lease.attempts, attempts);
    ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, BUDGET_NS);
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

/* The same for a head. That no notification has come by then does not show that its server sends
 * none. */
START_TEST(the_wait_budget_of_a_head_ends)
{
    const struct rl_line_reply held = {
        .place = 1, .length = 1, .is_head = true, .exists = true, .head = 1};

    join();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &held);
    use_up_budget();
    ck_assert_uint_eq(contention.line.stale, 0);
}
END_TEST

START_TEST(the_call_is_canceled)
{
    join();
    if (_i == 1)
        attempt();
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

/* The lease moves back when the time has passed for which it avoids the preferred node: it asks for
 * its place there again, and keeps the one in the other line until it has the reply. */
START_TEST(the_preferred_node_is_asked_again)
{
    struct rl_line_reply reply = {
        .place = 2, .length = 2, .exists = true, .head = 9, .head_beat = 1};
    unsigned looks = 0;

    join_another();
    while (rig.fx.line_node == RL_NODE(4) && looks++ < 3) {
        reply_to(RL_VERB_LINE_JOIN, 4, &reply);
        reply.head_beat++;
        look_again();
    }
    ck_assert_uint_le(contention.line.avoid_until_ns, rig.view.now.boot_ns);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(4));
}
END_TEST

/* The next call, after the lock was held (0) or the call has ended without it (1), joins the line
 * of the other node, too. A second later (2) the preferred node is asked again. */
START_TEST(the_next_call_after_that)
{
    const struct rl_line_reply left = {.place = 0, .length = 0, .exists = true};

    join_another();
    if (_i == 0) {
        attempt();
        rig_grant(&rig, 4);
        reply_to(RL_VERB_LINE_SERVED, 4, &left);
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
 * of the lease (2): the winner leaves when it knows that LINE_SERVED has not done it. */
START_TEST(the_attempt_wins_without_the_node_of_the_line)
{
    const struct rl_line_reply stays = {.place = 1, .length = 1, .is_head = true, .exists = true};

    join();
    attempt();
    if (_i == 0) {
        rig_deny(&rig, FIRST);
        reply_to(RL_VERB_LINE_SERVED, FIRST, &stays);
        ck_assert_uint_eq(rig.fx.line, 0);
    }
    win();
    if (_i == 1) {
        ck_assert_uint_eq(rig.fx.line, 0);
        reply_to(RL_VERB_LINE_SERVED, FIRST, &stays);
    } else if (_i == 2) {
        rig_event(&rig, RL_EVENT_RELEASE);
        ck_assert_uint_eq(rig.fx.line, 0);
        for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++)
            rig_grant(&rig, i);
    }
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* LINE_SERVED has left the line: nothing more is sent, whenever the reply comes. */
START_TEST(the_node_of_the_line_grants)
{
    const struct rl_line_reply left = {.place = 0, .length = 1, .exists = true};

    join();
    attempt();
    rig_grant(&rig, FIRST);
    if (_i == 0)
        reply_to(RL_VERB_LINE_SERVED, FIRST, &left);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    if (_i == 1)
        reply_to(RL_VERB_LINE_SERVED, FIRST, &left);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig_event(&rig, RL_EVENT_RELEASE);
    for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++) {
        rig_grant(&rig, i);
        ck_assert_uint_eq(rig.fx.line, 0);
    }
    ck_assert_uint_eq(contention.line.joined, 0);
    ck_assert_uint_eq(contention.line.stale, 0);
}
END_TEST

/* The winner has released the lock, and the next lock of the client has joined the line: a reply to
 * LINE_SERVED of the winner does not make the client leave. */
START_TEST(the_next_lock_joins_before_the_reply)
{
    static struct rig waiter, winner;
    const struct rl_line_reply reply = {.place = 1, .length = 1, .exists = true};

    join();
    attempt();
    win();
    rig_event(&rig, RL_EVENT_RELEASE);
    winner = rig;
    rig.params.salt++;
    join();
    waiter = rig;
    rig = winner;
    reply_to(RL_VERB_LINE_SERVED, FIRST, &reply);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig = waiter;
    rig_event(&rig, RL_EVENT_CANCEL);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* The winner has waited in the lines of two nodes and has released the lock. The next lock of the
 * client has joined one of these lines, and gets a turn in the other one (0), or ends after the
 * reply to LINE_SERVED of the winner (1), or before it (2). The client leaves both lines. */
START_TEST(the_next_lock_leaves_the_lines_of_the_winner)
{
    static struct rig waiter, winner;
    const struct rl_line_reply left = {.place = 0, .length = 0, .exists = true};

    join_another();
    attempt();
    win();
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
        reply_to(RL_VERB_LINE_SERVED, 4, &left);
        ck_assert_uint_eq(rig.fx.line, 0);
        rig = waiter;
    }
    rig_event(&rig, RL_EVENT_CANCEL);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST) | RL_NODE(4));
    if (_i == 2) {
        rig = winner;
        reply_to(RL_VERB_LINE_SERVED, 4, &left);
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
    attempt();
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

/* A lock of two keys that waits for the second one leaves that line after a failure, although it
 * waits for the first key from then on. */
START_TEST(a_lock_of_several_keys_leaves_the_line_of_its_key)
{
    rig.params.keys = 2;
    rig.params.wait_ns = 60 * RL_SECOND;
    join();
    rig.lease.wait.key = 1;
    attempt();
    ck_assert_uint_eq(rig.fx.line_key, 1);
    for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++)
        rig_fail(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.line_key, 1);
    ck_assert_uint_eq(rig.lease.wait.key, 0);
}
END_TEST

/* The same if the reply to LINE_SERVED was lost before. */
START_TEST(a_lock_of_several_keys_that_has_lost_its_place)
{
    static struct rl_contention *memories[2] = {&contention, &contention};

    rig.params.keys = 2;
    join_for_long();
    rig.lease.memories = memories;
    attempt();
    reply_to(RL_VERB_LINE_SERVED, FIRST, NULL);
    for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++)
        rig_fail(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* No node can keep lines any more: the lease waits without one. */
START_TEST(no_line_can_be_used)
{
    const struct rl_line_reply waits = {.place = 2, .length = 2, .exists = true, .head = 1};

    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &waits);
    rig.view.lines = 0;
    rig_pass(&rig, rl_remaining_ns(rig.lease.next, rig.view.now));
    rig_tick(&rig);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}
END_TEST

/* A lease that waits without a line joins one as soon as a node can keep it. */
START_TEST(a_line_can_be_used_again)
{
    rig.params.wait_ns = 60 * RL_SECOND;
    rig.view.lines = 0;
    begin(RL_EVENT_START);
    for (unsigned i = 0; i < 3; i++)
        rig_deny(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig.view.lines = ALL;
    wake(RL_NODE(FIRST));
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
}
END_TEST

/* A turn in a line in which the lease does not wait any more is declined. */
START_TEST(a_turn_in_another_line)
{

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

/* The call ends while other locks of the client are in its queue: the place in the line is for the
 * next one. The last of them leaves the line, also if it ends in the queue (odd _i). */
START_TEST(the_next_in_the_queue_takes_the_place)
{
    join();
    contention.followers = 2;
    use_up_budget();
    ck_assert_uint_eq(rig.fx.line, 0);
    rig.params.salt++;
    contention.followers = _i == 0 ? 0 : 2;
    if (_i == 0)
        join();
    else
        begin(RL_EVENT_QUEUE);
    rig_event(&rig, RL_EVENT_CANCEL);
    if (_i == 1) {
        ck_assert_uint_eq(rig.fx.line, 0);
        contention.followers = 1;
        rig.params.salt++;
        begin(RL_EVENT_QUEUE);
        rig_event(&rig, RL_EVENT_CANCEL);
    }
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* A holder has had its turn: the next lock in the queue joins at the end. */
START_TEST(a_winner_leaves_nothing_to_the_next)
{
    const struct rl_line_reply stayed = {.place = 1, .length = 1, .is_head = true, .head = 1};

    join();
    contention.followers = 1;
    attempt();
    reply_to(RL_VERB_LINE_SERVED, FIRST, &stayed);
    win();
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
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
    ck_assert_uint_eq(contention.line.stale, 0);
    rig_event(&rig, RL_EVENT_RELEASE);
    for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.fx.line, 0);
}
END_TEST

/* The record of the client itself is not another contender. */
START_TEST(a_line_of_one_is_no_contention)
{
    const struct rl_line_reply alone = {.place = 1, .length = 1, .is_head = true, .exists = true};
    const struct rl_line_reply others = {.place = 1, .length = 2, .is_head = true, .exists = true};

    join_for_long();
    uint64_t until_ns = contention.recent_until_ns;
    rig_pass(&rig, RL_MS);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &alone);
    ck_assert_uint_eq(contention.recent_until_ns, until_ns);
    rig_pass(&rig, RL_SECOND);
    rig_tick(&rig);
    reply_to(RL_VERB_LINE_SERVED, FIRST, &others);
    ck_assert_uint_gt(contention.recent_until_ns, until_ns);
}
END_TEST

/* While the lock seems to be free, only the waiter behind the head looks soon, and not even that
 * one if the node of the line is known not to show whether the lock is held. */
START_TEST(one_waiter_watches_the_head)
{
    static const struct {
        uint32_t place;
        bool stale, soon;
    } cases[] = {{2, false, true}, {3, false, false}, {2, true, false}};
    const struct rl_line_reply reply = {.place = cases[_i].place, .length = 3, .head = 1};

    join_for_long();
    contention.line.stale = cases[_i].stale ? RL_NODE(FIRST) : 0;
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    if (cases[_i].soon)
        ck_assert_uint_lt(due_in_ns(), 100 * RL_MS);
    else
        ck_assert_uint_ge(due_in_ns(), 750 * RL_MS);
}
END_TEST

/* While the lock is free, a head has three round trips for its request: its own (0), as its record
 * says, or those of this client (1), whichever are longer. */
START_TEST(a_head_far_away_has_time)
{
    const struct rl_line_reply reply = {
        .place = 2, .length = 2, .head = 9, .head_beat = 5, .head_trip_us = _i == 0 ? 100000 : 0};

    rig.view.round_trip_ns = _i == 0 ? RL_MS : 100 * RL_MS;
    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    ck_assert_uint_ge(due_in_ns(), 310 * RL_MS);
    rig_pass(&rig, 300 * RL_MS);
    rig_step(&rig, &turn);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig_pass(&rig, due_in_ns());
    rig_tick(&rig);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    check_sent(RL_VERB_LINE_DROP, RL_NODE(FIRST));
}
END_TEST

/* Its record cannot claim more than three round trips of 250 ms. */
START_TEST(a_head_too_far_away)
{
    const struct rl_line_reply reply = {
        .place = 2, .length = 2, .head = 9, .head_beat = 5, .head_trip_us = 10000000};

    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    ck_assert_uint_le(due_in_ns(), 960 * RL_MS); /* a quarter more at most */
}
END_TEST

/* A head that makes no request is removed; one that does is not, whatever its place was between. */
START_TEST(only_an_idle_head_is_removed)
{
    struct rl_line_reply reply = {
        .place = 2, .length = 2, .exists = true, .head = 9, .head_beat = 5};

    join_for_long();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    for (unsigned i = 0; i < 2; i++) {
        rig_pass(&rig, due_in_ns());
        rig_tick(&rig);
        check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
        if (i == 0)
            reply.head_beat++;
        reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
    }
    check_sent(RL_VERB_LINE_DROP, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.line_victim, 9);
    ck_assert_uint_eq(rig.fx.line_victim_beat, 6);
}
END_TEST

/* The lock is free, and the line has no head: the first waiter, which gets no notifications,
 * becomes one when it looks. The second one goes on looking as always. */
START_TEST(a_line_without_a_head_is_looked_at)
{
    const struct rl_line_reply reply = {.place = 2, .length = 2};

    join_for_long();
    for (unsigned i = 0; i < 20; i++) {
        reply_to(RL_VERB_LINE_JOIN, FIRST, &reply);
        ck_assert_uint_le(due_in_ns(), 1250 * RL_MS);
        look_again();
        check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    }
}
END_TEST

/* The lease waits in the line of the next node. If that one refuses, too, it avoids both. */
START_TEST(nodes_that_refuse_are_avoided)
{
    join_for_long();
    refuse_to_join(FIRST);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
    ck_assert_uint_eq(contention.line.avoid, RL_NODE(FIRST));
    refuse_to_join(4);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(0));
    ck_assert_uint_eq(contention.line.avoid, RL_NODE(FIRST) | RL_NODE(4));
}
END_TEST

/* The next node does not reply. A node that does not reply is avoided for a second only, but that
 * does not shorten the time of the one that has refused. */
START_TEST(a_node_that_refuses_is_avoided_for_long)
{
    join_for_long();
    refuse_to_join(FIRST);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(4));
    rig_pass(&rig, due_in_ns());
    rig_tick(&rig);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(0));
    rig_event(&rig, RL_EVENT_CANCEL);
    rig_pass(&rig, 5 * RL_SECOND);
    begin_hot();
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(0));
}
END_TEST

/* The lease waits in the line of the next node for more than ten seconds, because the preferred one
 * is slow. When the next node refuses, the preferred one is not avoided any more. */
START_TEST(a_refusal_is_forgotten)
{
    const struct rl_line_reply waits = {
        .place = 2, .length = 2, .exists = true, .head = 9, .head_beat = 1};

    join_for_long();
    refuse_to_join(FIRST);
    reply_to(RL_VERB_LINE_JOIN, 4, &waits);
    rig_pass(&rig, 11 * RL_SECOND);
    without_preferred(2);
    rig_tick(&rig);
    with_preferred();
    refuse_to_join(4);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    ck_assert_uint_eq(contention.line.avoid, RL_NODE(4));
}
END_TEST

/* A client far from the servers has time for its reply. */
START_TEST(a_reply_may_take_long)
{
    rig.view.round_trip_ns = 400 * RL_MS;
    join_for_long();
    ck_assert_uint_gt(due_in_ns(), 1600 * RL_MS);
}
END_TEST

/* The connection is lost before the reply to LINE_SERVED. */
START_TEST(a_holder_without_a_reply_leaves_at_the_end)
{
    join();
    attempt();
    win();
    reply_to(RL_VERB_LINE_SERVED, FIRST, NULL);
    rig_event(&rig, RL_EVENT_RELEASE);
    for (unsigned i = 0; i < 5 && rig.lease.state != RL_STATE_ENDED; i++)
        rig_grant(&rig, i);
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
}
END_TEST

/* The reply to the question of a series is not that to JOIN, which the lease has sent since. */
START_TEST(the_reply_to_another_request)
{
    const struct rl_line_reply out = {.place = 0, .length = 3, .exists = true, .head = 1};

    join_for_long();
    uint64_t due_ns = due_in_ns();
    reply_to(RL_VERB_LINE_LEAVE, FIRST, &out);
    ck_assert(rig.lease.line.asking);
    ck_assert_uint_eq(due_in_ns(), due_ns);
}
END_TEST

/* The server of the line refuses LINE_SERVED. During the attempt (0) that ends nothing; the holder
 * (1) leaves at once. After the attempt (2) it concerns no other request. */
START_TEST(an_error_in_place_of_line_go)
{
    const struct rl_ballot refusal = {.node = FIRST,
                                      .vote = RL_VOTE_FAILED,
                                      .cause = REDLOCK_CAUSE_OOM,
                                      .verb = RL_VERB_LINE_SERVED,
                                      .rtt_us = 100};
    struct rl_event event = {.kind = RL_EVENT_VOTE, .ballot = refusal};

    join_for_long();
    attempt();
    event.ballot.round = rig.lease.round.number;
    if (_i == 1)
        win();
    for (unsigned i = 0; _i == 2 && i < 4; i++)
        if (i != FIRST)
            rig_deny(&rig, i);
    rig_step(&rig, &event);
    if (_i == 0)
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    else if (_i == 1)
        check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
    else
        ck_assert(rig.lease.line.asking);
    ck_assert_uint_eq(contention.line.avoid, _i == 2 ? 0 : RL_NODE(FIRST));
}
END_TEST

/* The reply to the request to leave one key's line does not come. What may be left of the record is
 * for the next lock of the client there. */
START_TEST(a_lock_of_several_keys_cannot_leave)
{
    static struct rl_contention others;
    static struct rl_contention *memories[2] = {&contention, &others};

    others = contention;
    rig.params.keys = 2;
    join_for_long();
    rig.lease.memories = memories;
    attempt();
    for (unsigned i = 0; rig.lease.state == RL_STATE_ACQUIRING; i++)
        rig_ballot(&rig, (struct rl_ballot){.node = (uint8_t)i,
                                            .vote = RL_VOTE_DENIED,
                                            .verb = RL_VERB_ACQUIRE,
                                            .round = rig.lease.round.number,
                                            .key = 2});
    check_sent(RL_VERB_LINE_LEAVE, RL_NODE(FIRST));
    if (_i == 0) {
        reply_to(RL_VERB_LINE_LEAVE, FIRST, NULL);
    } else {
        rig_pass(&rig, due_in_ns());
        rig_tick(&rig);
    }
    ck_assert_ptr_eq(rig.lease.contention, &others);
    ck_assert_uint_eq(contention.line.joined, RL_NODE(FIRST));
    ck_assert_uint_eq(contention.line.waiter_salt, 0);
}
END_TEST

/* A client whose requests always come right after its own releases is never denied. Now and then it
 * asks whether others wait; if they do, it waits behind them the next time. */
START_TEST(a_series_asks_for_the_line)
{
    const struct rl_line_reply reply = {.place = 0, .length = 3, .exists = true, .head = 1};
    unsigned looks = 0;

    for (unsigned i = 0; i <= 64; i++) {
        begin(RL_EVENT_START);
        ck_assert_uint_eq(rig.fx.request, ALL);
        looks += rig.fx.line != 0;
        ck_assert_uint_eq(rig.fx.line, i == 1 || i == 8 || i == 64 ? RL_VERB_LINE_LEAVE : 0);
        rl_contention_note_release(&contention, rig.view.round_trip_ns, 0, rig.view.now.boot_ns);
    }
    ck_assert_uint_eq(looks, 3);
    ck_assert(!rl_contention_is_recent(&contention, rig.view.now.boot_ns));
    reply_to(RL_VERB_LINE_LEAVE, FIRST, &reply);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    begin(RL_EVENT_START);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
}
END_TEST

/* Returns the suite of all cases. */
static Suite *lease_line_suite(void)
{
    Suite *suite = suite_create("lease_line");
    TCase *group = tcase_create("leave");

    tcase_add_checked_fixture(group, setup_lines, NULL);
    tcase_add_loop_test(group, the_wait_budget_ends, 0, 2);
    tcase_add_test(group, the_wait_budget_of_a_head_ends);
    tcase_add_loop_test(group, the_call_is_canceled, 0, 2);
    tcase_add_test(group, the_line_is_that_of_another_node);
    tcase_add_test(group, the_preferred_node_is_asked_again);
    tcase_add_loop_test(group, the_next_call_after_that, 0, 3);
    tcase_add_loop_test(group, the_attempt_wins_without_the_node_of_the_line, 0, 3);
    tcase_add_loop_test(group, the_node_of_the_line_grants, 0, 2);
    tcase_add_test(group, the_next_lock_joins_before_the_reply);
    tcase_add_loop_test(group, the_next_lock_leaves_the_lines_of_the_winner, 0, 3);
    tcase_add_test(group, a_lock_of_several_keys_leaves_the_lines_of_one_key);
    tcase_add_test(group, a_lock_of_several_keys_leaves_the_line_of_its_key);
    tcase_add_test(group, a_lock_of_several_keys_that_has_lost_its_place);
    tcase_add_test(group, no_line_can_be_used);
    tcase_add_test(group, a_line_can_be_used_again);
    tcase_add_test(group, a_turn_in_another_line);
    tcase_add_test(group, not_after_a_single_attempt);
    tcase_add_test(group, not_after_an_end_in_the_queue);
    tcase_add_loop_test(group, the_next_in_the_queue_takes_the_place, 0, 2);
    tcase_add_test(group, a_winner_leaves_nothing_to_the_next);
    tcase_add_test(group, a_lock_that_never_waited);
    tcase_add_test(group, a_holder_without_a_reply_leaves_at_the_end);
    tcase_add_test(group, a_line_of_one_is_no_contention);
    tcase_add_loop_test(group, one_waiter_watches_the_head, 0, 3);
    tcase_add_loop_test(group, a_head_far_away_has_time, 0, 2);
    tcase_add_test(group, a_head_too_far_away);
    tcase_add_test(group, only_an_idle_head_is_removed);
    tcase_add_test(group, a_line_without_a_head_is_looked_at);
    tcase_add_test(group, nodes_that_refuse_are_avoided);
    tcase_add_test(group, a_node_that_refuses_is_avoided_for_long);
    tcase_add_test(group, a_refusal_is_forgotten);
    tcase_add_test(group, a_reply_may_take_long);
    tcase_add_test(group, a_series_asks_for_the_line);
    tcase_add_test(group, the_reply_to_another_request);
    tcase_add_loop_test(group, an_error_in_place_of_line_go, 0, 3);
    tcase_add_loop_test(group, a_lock_of_several_keys_cannot_leave, 0, 2);
    suite_add_tcase(suite, group);
    return suite;
}

/* Runs the suite. */
int main(void)
{
    return suite_run(lease_line_suite());
}
