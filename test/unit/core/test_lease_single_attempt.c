/* SPDX-License-Identifier: MIT
 * Attempts of a call that has no time for another attempt: the preferred node's denial does not
 * decide them, and the result of the call rests on a majority.
 *
 * Uses contention_rig.h: one lease in virtual time on five nodes, in the order of preference 2, 4,
 * 0, 3, 1, with the contention state of its resource. begin() passes the first event to a new
 * lease, wake() a notification, rig_grant() and rig_deny() a vote. rig.fx holds the effects of the
 * last step. */
#include "contention_rig.h"

#define OTHERS (ALL & ~RL_NODE(FIRST)) /* all nodes but the preferred one */

/* Lets the other nodes deny until the attempt has ended. */
static void deny_others(void)
{
    for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++) {
        if (i != FIRST)
            rig_deny(&rig, i);
    }
}

/* The preferred node still has the key of a holder that is gone. */
START_TEST(one_attempt_is_not_decided_by_the_preferred_node)
{
    rig.params.wait_ns = 0;
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    struct rl_now t1 = rig.lease.round.t1;
    rig_pass(&rig, RL_MS);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, OTHERS);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_ATTEMPT, 0); /* the same token */
    ck_assert_uint_eq(rig.lease.round.t1.boot_ns, t1.boot_ns);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

START_TEST(a_majority_of_denials_is_contention)
{
    rig.params.wait_ns = 0;
    rig.params.keys = (uint8_t)_i; /* one resource, or several */
    begin_hot();
    rig_deny(&rig, FIRST);
    deny_others();
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.round.requested, ALL);
    ck_assert_uint_ge(rl_nodes_count(rig.lease.round.denied), 3);
}
END_TEST

/* Only two nodes are connected, so the preferred node's denial does not prove that the lock is
 * held. */
START_TEST(without_a_majority_the_status_is_no_quorum)
{
    rig.params.wait_ns = 0;
    begin_hot();
    rig.view.up = RL_NODE(FIRST) | RL_NODE(0);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

/* Asking one node before the others takes two round trips. */
START_TEST(a_budget_below_two_round_trips_asks_all_at_once)
{
    rig.params.wait_ns = 2 * RL_MS;
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig.params.wait_ns = 20 * RL_MS;
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* The denial comes so late that there is no time for another attempt, so the others are asked. */
START_TEST(a_late_denial_does_not_end_the_attempt)
{
    rig.params.wait_ns = 5 * RL_MS;
    rig.view.round_trip_ns = RL_MS;
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_pass(&rig, 1900 * RL_US);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING); /* there is time for another one */
    begin_hot();
    rig_pass(&rig, 3100 * RL_US); /* the timer that would ask the others is late */
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, OTHERS);
    deny_others();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
}
END_TEST

/* After a release of this client others go first, but not for longer than the caller waits. */
START_TEST(a_yield_ends_before_the_budget)
{
    begin_hot();
    contention.yield_until_ns = rig.view.now.boot_ns + 30 * RL_MS;
    rig.params.wait_ns = 12 * RL_MS;
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(sleep_until_next_attempt(), 10 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig.params.wait_ns = RL_MS;
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

/* Advances time to the end of the wait budget, which ends the running attempt. */
static void let_the_budget_end(void)
{
    rig_pass(&rig, rl_remaining_ns(rl_later(rig.lease.begun, rig.params.wait_ns), rig.view.now));
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
}

/* The report has no timeout: no node had the time that its node timeout gives it. */
START_TEST(an_attempt_cut_by_the_budget_blames_no_node)
{
    rig.params.wait_ns = 30 * RL_MS;
    begin(RL_EVENT_START);
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    rig_fail(&rig, 3); /* this failure is reported */
    let_the_budget_end();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.fx.undo, ALL & ~RL_NODE(1));
    const struct rl_round *round = rl_lease_evidence(&rig.lease);
    ck_assert_uint_eq(round->failed, RL_NODE(3));
    ck_assert_uint_eq(round->granted, RL_NODE(0));
    ck_assert_uint_eq(round->denied, RL_NODE(1));
    ck_assert_uint_eq(round->cause[2], REDLOCK_CAUSE_NONE);
    ck_assert_uint_eq(rl_round_pending(round), RL_NODE(2) | RL_NODE(4));
}
END_TEST

/* The last attempt is cut by the budget, so the report shows the attempt before. */
START_TEST(the_last_decided_attempt_is_reported)
{
    rig.params.wait_ns = 30 * RL_MS;
    begin(RL_EVENT_START);
    rig_fail(&rig, 2);
    for (unsigned i = 0; i < 2; i++)
        rig_deny(&rig, i);
    rig_deny(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    const rl_nodes denied = rig.lease.round.denied;
    (void)sleep_until_next_attempt();
    rig_grant(&rig, 0);
    let_the_budget_end();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    const struct rl_round *round = rl_lease_evidence(&rig.lease);
    ck_assert_uint_eq(round->denied, denied);
    ck_assert_uint_eq(round->failed, RL_NODE(2));
    ck_assert_uint_eq(round->cause[2], REDLOCK_CAUSE_TIMEOUT);
    ck_assert_uint_eq(round->granted, 0);
    ck_assert_uint_eq(round->rtt_us[1], 500);
}
END_TEST

/* A node that was asked only in the attempt that the budget cut is reported as pending. */
START_TEST(the_preferred_node_decided_and_others_are_unanswered)
{
    rig.params.wait_ns = 30 * RL_MS;
    begin_hot();
    rig_deny(&rig, FIRST);
    (void)sleep_until_next_attempt();
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig_deny(&rig, 0);
    let_the_budget_end();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    const struct rl_round *round = rl_lease_evidence(&rig.lease);
    ck_assert_uint_eq(round->denied, RL_NODE(FIRST) | RL_NODE(0));
    ck_assert_uint_eq(rl_round_pending(round), ALL & ~round->denied);
    ck_assert_uint_eq(round->failed, 0);
}
END_TEST

/* A majority has granted, so no other client holds the lock: the status is not ECONTENDED. */
START_TEST(the_budget_can_end_while_the_fence_is_raised)
{
    rig.params.wait_ns = 30 * RL_MS;
    rig.params.terms.fence = true;
    begin(RL_EVENT_START);
    rl_fence_begin(rig.lease.fence, 7);
    for (unsigned i = 0; i < 3; i++)
        rig_ballot(&rig, (struct rl_ballot){.node = (uint8_t)i,
                                            .vote = RL_VOTE_GRANTED,
                                            .verb = RL_VERB_ACQUIRE,
                                            .register_value = 10 + i,
                                            .round = rig.lease.round.number});
    ck_assert_uint_ne(rig.fx.raise, 0);
    let_the_budget_end();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

START_TEST(a_cancel_blames_no_node)
{
    begin(RL_EVENT_START);
    rig_grant(&rig, 0);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, ALL);
    ck_assert_uint_eq(rl_lease_evidence(&rig.lease)->failed, 0);
}
END_TEST

START_TEST(an_expired_attempt_blames_no_node)
{
    rig.params.wait_ns = 0;
    begin(RL_EVENT_START);
    rig_grant(&rig, 0);
    rig_pass(&rig, RIG_TTL_NS);
    rig_tick(&rig);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rl_lease_evidence(&rig.lease)->failed, 0);
}
END_TEST

/* The budget ends while the only node of the second attempt has not replied. */
START_TEST(one_node_asked_again_is_no_majority)
{
    rig.params.wait_ns = 20 * RL_MS;
    begin_hot();
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    wake(RL_NODE(FIRST));
    (void)sleep_until_next_attempt();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    let_the_budget_end();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

/* ---- semaphores: FIRST, then nodes 4 and 0 are asked about the slots ---- */

/* Starts a lease on one of `permits` slots of a contended semaphore. */
static void begin_permit(unsigned permits, uint64_t wait_ns)
{
    rig.params.terms.permits = (uint16_t)permits;
    rig.params.wait_ns = wait_ns;
    begin_hot();
}

/* Returns the slot that the lease tries or holds. */
static unsigned current_slot(void)
{
    return rig.lease.permit->slot;
}

/* Passes the replies of `node` to the probes in flight: all slots but `free` are taken there. */
static void report_slots(unsigned node, unsigned free)
{
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(node));
    for (uint64_t slots = rig.fx.slots, rest = slots; rest != 0; rest &= rest - 1) {
        unsigned at = rl_permit_slot(&rig.lease, (unsigned)__builtin_ctzll(rest));
        rig_report_ttl(&rig, node, at, at == free ? RL_VOTE_DENIED : RL_VOTE_GRANTED, 5000);
    }
}

#define NONE UINT16_MAX /* no slot is free */

START_TEST(a_slot_that_only_the_preferred_node_reports_taken_is_tried)
{
    begin_permit(4, 0);
    unsigned free = (current_slot() + (unsigned)_i) % 4; /* 0: the slot that was tried */
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_deny(&rig, FIRST);
    report_slots(FIRST, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    report_slots(4, free);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), free);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

START_TEST(all_permits_are_taken)
{
    begin_permit(4, 0);
    rig_deny(&rig, FIRST);
    report_slots(FIRST, NONE);
    report_slots(4, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    report_slots(0, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
    /* The report shows the three replies about the slot that was tried. */
    ck_assert_uint_eq(rig.lease.round.denied, RL_NODE(FIRST) | RL_NODE(4) | RL_NODE(0));
    ck_assert_uint_eq(rig.lease.round.requested, rig.lease.round.denied);
}
END_TEST

/* The node that was preferred at first has replied about one slot only, and has become slow. The
 * attempt for the other slot asks the next one first. The call ends when a majority has replied
 * about both slots, and the report shows it. */
START_TEST(a_node_that_has_become_slow_proves_nothing)
{
    begin_permit(2, 0);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    rig_report_ttl(&rig, FIRST, current_slot(), RL_VOTE_GRANTED, 5000);
    rig.view.slow = RL_NODE(FIRST);
    rig_pass(&rig, 2 * RL_MS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(4));
    rig_deny(&rig, 4);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        report_slots((unsigned)__builtin_ctz(rig.fx.probe), NONE);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rl_nodes_count(rig.lease.round.denied), 3);
}
END_TEST

/* Fails the probes of `slots` (a slot set) that a node was sent. */
static void fail_probes(unsigned node, uint64_t slots, enum rl_vote vote)
{
    for (; slots != 0; slots &= slots - 1)
        rig_report_ttl(&rig, node, rl_permit_slot(&rig.lease, (unsigned)__builtin_ctzll(slots)),
                       vote, 0);
}

/* A node that does not reply is waited for until its own time limit says that it has failed (_i =
 * 0), or for a second, if its probes could not be sent (1). Then another one is asked. */
START_TEST(a_node_without_replies_about_slots_is_replaced)
{
    begin_permit(4, 0);
    rig_deny(&rig, FIRST);
    report_slots(FIRST, NONE);
    uint64_t slots = rig.fx.slots;
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    rig_pass(&rig, 1000 * RL_MS - 1);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.probe, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_le(rig.lease.wake_ns, rig.view.now.boot_ns + 2);
    if (_i == 0)
        fail_probes(4, slots, RL_VOTE_FAILED);
    rig_pass(&rig, 2);
    if (_i == 1)
        rig_tick(&rig);
    report_slots(0, NONE);
    report_slots(3, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

/* If a node's connection ends, another one is asked; the slots are not tried one by one. */
START_TEST(a_node_that_fails_a_probe_is_replaced)
{
    begin_permit(4, 0);
    rig_deny(&rig, FIRST);
    report_slots(FIRST, NONE);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    fail_probes(4, rig.fx.slots, _i == 0 ? RL_VOTE_FAILED : RL_VOTE_SUSPECT);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    report_slots(0, NONE);
    report_slots(3, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

START_TEST(too_few_replies_about_slots_are_no_quorum)
{
    begin_permit(4, 0);
    rig_deny(&rig, FIRST);
    rig.view.up = RL_NODE(FIRST) | RL_NODE(1);
    report_slots(FIRST, NONE);
    report_slots(1, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

START_TEST(all_of_many_permits_are_taken)
{
    static const unsigned nodes[] = {FIRST, 4, 0};

    begin_permit(200, 0);
    rig_deny(&rig, FIRST);
    for (unsigned i = 0; i < 3 * 4; i++) /* four windows of each node */
        report_slots(nodes[i / 4], NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
}
END_TEST

/* A reply of node 4 does not count once node 0 is asked. */
START_TEST(a_late_reply_about_a_slot_is_ignored)
{
    begin_permit(1, 0);
    rig_deny(&rig, FIRST);
    report_slots(FIRST, NONE);
    fail_probes(4, rig.fx.slots, RL_VOTE_FAILED);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(0));
    rig_report_ttl(&rig, 4, 0, RL_VOTE_DENIED, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}
END_TEST

START_TEST(a_small_budget_ends_while_slots_are_probed)
{
    begin_permit(4, RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig_pass(&rig, RL_MS / 2);
    rig_deny(&rig, FIRST);
    deny_others();
    report_slots(FIRST, NONE);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    rig_pass(&rig, RL_MS / 2);
    ck_assert_uint_le(rig.lease.wake_ns, rig.view.now.boot_ns);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
}
END_TEST

/* A lease that may wait probes all slots before its first pause. */
START_TEST(the_first_pass_does_not_pause)
{
    unsigned probed = 0;

    begin_permit(1000, RL_NEVER);
    struct rl_now begun = rig.view.now;
    rig_deny(&rig, FIRST);
    while ((rig.fx.flags & RL_FX_WAITING) == 0) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        probed += (unsigned)__builtin_popcountll(rig.fx.slots);
        ck_assert_uint_ne(rig.fx.slots, 0);
        report_slots(FIRST, NONE);
    }
    ck_assert_uint_ge(probed, 1000);
    ck_assert_uint_eq(rig.view.now.boot_ns, begun.boot_ns);
    (void)sleep_until_next_attempt();
    deny_others();
    report_slots(FIRST, NONE); /* from now on, one window of slots per timer */
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_single_attempt");
    TCase *tcase = tcase_create("once");

    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, one_attempt_is_not_decided_by_the_preferred_node);
    tcase_add_loop_test(tcase, a_majority_of_denials_is_contention, 1, 3);
    tcase_add_test(tcase, without_a_majority_the_status_is_no_quorum);
    tcase_add_test(tcase, a_budget_below_two_round_trips_asks_all_at_once);
    tcase_add_test(tcase, a_late_denial_does_not_end_the_attempt);
    tcase_add_test(tcase, a_yield_ends_before_the_budget);
    tcase_add_test(tcase, an_attempt_cut_by_the_budget_blames_no_node);
    tcase_add_test(tcase, the_last_decided_attempt_is_reported);
    tcase_add_test(tcase, the_preferred_node_decided_and_others_are_unanswered);
    tcase_add_test(tcase, the_budget_can_end_while_the_fence_is_raised);
    tcase_add_test(tcase, a_cancel_blames_no_node);
    tcase_add_test(tcase, an_expired_attempt_blames_no_node);
    tcase_add_test(tcase, one_node_asked_again_is_no_majority);
    tcase_add_loop_test(tcase, a_slot_that_only_the_preferred_node_reports_taken_is_tried, 0, 2);
    tcase_add_test(tcase, all_permits_are_taken);
    tcase_add_test(tcase, a_node_that_has_become_slow_proves_nothing);
    tcase_add_loop_test(tcase, a_node_without_replies_about_slots_is_replaced, 0, 2);
    tcase_add_loop_test(tcase, a_node_that_fails_a_probe_is_replaced, 0, 2);
    tcase_add_test(tcase, too_few_replies_about_slots_are_no_quorum);
    tcase_add_test(tcase, all_of_many_permits_are_taken);
    tcase_add_test(tcase, a_late_reply_about_a_slot_is_ignored);
    tcase_add_test(tcase, a_small_budget_ends_while_slots_are_probed);
    tcase_add_test(tcase, the_first_pass_does_not_pause);
    return suite_run(suite);
}
