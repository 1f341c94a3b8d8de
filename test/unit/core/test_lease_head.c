/* SPDX-License-Identifier: MIT
 * A lease that is the head of a line: when it asks all nodes, and when it pauses before that.
 *
 * Uses contention_rig.h: one lease in virtual time on five nodes, in the order of preference 2, 4,
 * 0, 3, 1, with the contention state of its resource. rig_grant() and rig_deny() pass a vote.
 * rig.fx holds the effects of the last step. */
#include "contention_rig.h"

static const struct rl_line_reply held = {
    .place = 1, .length = 1, .is_head = true, .exists = true, .pttl_ms = 60000};
static const struct rl_line_reply lock_free = {.place = 1, .length = 1, .is_head = true};
static const struct rl_line_reply left = {.place = 0};

/* Fixture: all nodes keep lines, and a call waits for a minute. */
static void setup_lines(void)
{
    setup();
    rig.params.wait_ns = 60 * RL_SECOND;
    rig.params.salt = 1;
    rig.view.lines = ALL;
}

/* Passes the reply of the node of the line to a request. */
static void reply_to(enum rl_verb verb, const struct rl_line_reply *reply)
{
    const struct rl_event event = {
        .kind = RL_EVENT_VOTE,
        .ballot = {.node = FIRST,
                   .vote = RL_VOTE_GRANTED,
                   .verb = (uint8_t)verb,
                   .round = rig.lease.round.number},
        .line = reply,
    };

    rig_step(&rig, &event);
}

/* Begins a call that joins the line, of which the lease is the head. */
static void join(const struct rl_line_reply *reply)
{
    begin_hot();
    ck_assert_uint_eq(rig.fx.line, RL_VERB_LINE_JOIN);
    reply_to(RL_VERB_LINE_JOIN, reply);
}

/* Checks that the last step has asked all nodes, and the line to leave it. */
static void check_gone(void)
{
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.line, RL_VERB_LINE_GO);
}

/* Checks that the lease waits, and that the last step has sent nothing. */
static void check_idle(void)
{
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.request, 0);
    ck_assert_uint_eq(rig.fx.line, 0);
}

/* Ends the attempt: the node of the line and another one grant, two deny, and one fails. The lease
 * has left the line and asks to join it in front. */
static void split(void)
{
    check_gone();
    rig_grant(&rig, FIRST);
    reply_to(RL_VERB_LINE_GO, &left);
    rig_grant(&rig, 4);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_fail(&rig, 3);
    ck_assert_uint_eq(rig.fx.line, RL_VERB_LINE_FRONT);
}

/* Each of the contenders whose attempts have split the votes notifies the others with its undo. */
START_TEST(a_change_does_not_end_the_pause)
{
    join(&lock_free);
    split();
    reply_to(RL_VERB_LINE_FRONT, &lock_free);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    wake(RL_NODE(FIRST));
    check_idle();
}
END_TEST

/* Nor does a change that is noticed before the pause begins. */
START_TEST(a_change_does_not_replace_the_pause)
{
    join(&lock_free);
    split();
    wake(RL_NODE(FIRST));
    check_idle();
    reply_to(RL_VERB_LINE_FRONT, &lock_free);
    check_idle();
}
END_TEST

/* The first attempt after a change splits the votes. */
START_TEST(a_split_vote_is_followed_by_a_pause)
{
    join(&held);
    check_idle();
    wake(RL_NODE(FIRST));
    split();
    reply_to(RL_VERB_LINE_FRONT, &lock_free);
    check_idle();
}
END_TEST

/* The server may send the notification of an expiry late. */
START_TEST(a_head_goes_when_the_key_expires)
{
    struct rl_line_reply expires = held;

    expires.pttl_ms = 20;
    join(&expires);
    check_idle();
    rig_pass(&rig, 21 * RL_MS);
    rig_tick(&rig);
    check_gone();
}
END_TEST

/* Returns the suite of all cases. */
static Suite *lease_head_suite(void)
{
    Suite *suite = suite_create("lease_head");
    TCase *group = tcase_create("head");

    tcase_add_checked_fixture(group, setup_lines, NULL);
    tcase_add_test(group, a_change_does_not_end_the_pause);
    tcase_add_test(group, a_change_does_not_replace_the_pause);
    tcase_add_test(group, a_split_vote_is_followed_by_a_pause);
    tcase_add_test(group, a_head_goes_when_the_key_expires);
    suite_add_tcase(suite, group);
    return suite;
}

/* Runs the suite. */
int main(void)
{
    return suite_run(lease_head_suite());
}
