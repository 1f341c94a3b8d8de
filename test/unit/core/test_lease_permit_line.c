/* SPDX-License-Identifier: MIT
 * A lease for a permit that waits in the line of its semaphore: only a head searches for a slot.
 * Uses line_rig.h; rig_wake() passes a notification about a slot. */
#include "line_rig.h"

#define PERMITS 4

static const struct rl_line_reply head = {.place = 1, .length = 1, .is_head = true, .exists = true};

/* Fixture: all nodes keep lines, and a call waits for a minute for one of four permits. */
static void setup_permits(void)
{
    setup_lines();
    rig.params.wait_ns = 60 * RL_SECOND;
    rig.params.terms.permits = PERMITS;
}

/* Notifications about slots and timers only lead to looks at the line. An early look would be of no
 * use, because the line does not know whether a slot is free. */
START_TEST(only_a_head_makes_attempts)
{
    struct rl_line_reply second = {.place = 2, .length = 2, .head = 1, .head_beat = 1};

    join();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    for (unsigned i = 0; i < PERMITS; i++) {
        rig_wake(&rig, RL_NODE(FIRST), i);
        ck_assert_uint_eq(rig.fx.line, 0);
        ck_assert_uint_eq(rig.fx.request, 0);
        uint64_t due_ns = rl_remaining_ns(rig.lease.next, rig.view.now);
        ck_assert_uint_ge(due_ns, 750 * RL_MS);
        rig_pass(&rig, due_ns);
        rig_tick(&rig);
        ck_assert_uint_eq(rig.fx.line, RL_VERB_LINE_JOIN);
        ck_assert_uint_eq(rig.fx.request, 0);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        second.head_beat++;
        reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    }
}
END_TEST

/* The node of the line can send notifications from now on, or again. A waiter that it could not
 * notify becomes a head only by its own request. So it looks at once, or (1) after the reply to a
 * request that is under way. */
START_TEST(a_waiter_looks_when_the_node_can_notify)
{
    const struct rl_line_reply second = {.place = 2, .length = 2, .head = 9, .head_beat = 1};

    join();
    if (_i == 0)
        reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    rig_wake(&rig, RL_NODE(FIRST), RL_SLOT_ANY);
    if (_i == 1)
        reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.request, 0);
}
END_TEST

/* The first attempt of the call was denied, so one for a slot chosen in turn was planned. A waiter
 * that is the head only much later tries the slot that is free instead. */
START_TEST(a_late_head_tries_the_free_slot)
{
    const struct rl_line_reply second = {.place = 2, .length = 2, .head = 9, .head_beat = 1};
    const struct rl_event turn = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST), .turn = true};

    rig.view.lines = 0;
    begin(RL_EVENT_START);
    for (unsigned i = 0; i < 3; i++)
        rig_deny(&rig, i);
    rig.view.lines = ALL;
    for (unsigned i = 0; i < PERMITS; i++)
        rig_report_ttl(&rig, FIRST, i, RL_VOTE_GRANTED, 60000);
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
    reply_to(RL_VERB_LINE_JOIN, FIRST, &second);
    rig_pass(&rig, 500 * RL_MS);
    rig_step(&rig, &turn);
    reply_to(RL_VERB_LINE_JOIN, FIRST, &head);
    for (unsigned i = 0; i < PERMITS && rig.lease.state == RL_STATE_WAITING; i++)
        rig_report_ttl(&rig, FIRST, i, i == 3 ? RL_VOTE_DENIED : RL_VOTE_GRANTED, 60000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.lease.permit->slot, 3);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* A head searches at once, whatever the key is that the line looks at. */
START_TEST(a_head_searches)
{
    join();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &head);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.slots, (1u << PERMITS) - 1);
    for (unsigned i = 0; i < PERMITS; i++)
        rig_report_ttl(&rig, FIRST, i, i == 2 ? RL_VOTE_DENIED : RL_VOTE_GRANTED, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.lease.permit->slot, 2);
    ck_assert_uint_eq(rig.fx.line, RL_VERB_LINE_SERVED);
}
END_TEST

/* A head whose attempt was denied stays a head, and does not join again. */
START_TEST(a_head_stays_a_head)
{
    join();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &head);
    for (unsigned i = 0; i < PERMITS; i++)
        rig_report_ttl(&rig, FIRST, i, RL_VOTE_GRANTED, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.line, 0);
    rig_wake(&rig, RL_NODE(FIRST), 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.lease.permit->slot, 3);
}
END_TEST

/* The attempt leaves the line and splits the votes. The other open slot is tried before the lease
 * joins the line again. */
START_TEST(a_search_goes_on)
{
    const struct rl_line_reply left = {.place = 0};

    join();
    reply_to(RL_VERB_LINE_JOIN, FIRST, &head);
    for (unsigned i = 0; i < PERMITS; i++)
        rig_report_ttl(&rig, FIRST, i, i < 2 ? RL_VOTE_DENIED : RL_VOTE_GRANTED, 5000);
    unsigned slot = rig.lease.permit->slot;
    rig_grant(&rig, FIRST);
    reply_to(RL_VERB_LINE_SERVED, FIRST, &left);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING); /* the pause after a split vote */
    ck_assert_uint_lt(sleep_until_next_attempt(), 20 * RL_MS);
    ck_assert_uint_eq(rig.lease.permit->slot, 1 - slot);
    ck_assert_uint_eq(rig.fx.line, RL_VERB_LINE_SERVED);
}
END_TEST

/* Returns the suite of all cases. */
static Suite *lease_permit_line_suite(void)
{
    Suite *suite = suite_create("lease_permit_line");
    TCase *group = tcase_create("line");

    tcase_add_checked_fixture(group, setup_permits, NULL);
    tcase_add_test(group, only_a_head_makes_attempts);
    tcase_add_loop_test(group, a_waiter_looks_when_the_node_can_notify, 0, 2);
    tcase_add_test(group, a_late_head_tries_the_free_slot);
    tcase_add_test(group, a_head_searches);
    tcase_add_test(group, a_head_stays_a_head);
    tcase_add_test(group, a_search_goes_on);
    suite_add_tcase(suite, group);
    return suite;
}

/* Runs the suite. */
int main(void)
{
    return suite_run(lease_permit_line_suite());
}
