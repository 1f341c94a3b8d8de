/* SPDX-License-Identifier: MIT
 * Attempts of a call that has no time for another attempt: the preferred node's denial does not
 * decide them, and the result of the call rests on a majority. */
#include "contention_rig.h"

#define OTHERS (ALL & ~RL_NODE(FIRST))

static void deny_others(void)
{
    for (unsigned i = 0; i < 5 && rig.lease.state == RL_STATE_ACQUIRING; i++) {
        if (i != FIRST)
            rig_deny(&rig, i);
    }
}

/* The preferred node has a key that its owner left behind. */
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

START_TEST(contended_on_the_word_of_a_majority)
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

/* No majority can be reached: the preferred node's denial is no reason to say "held". */
START_TEST(too_few_others)
{
    rig.params.wait_ns = 0;
    begin_hot();
    rig.view.up = RL_NODE(FIRST) | RL_NODE(0);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

/* Two round trips are needed to ask one node before the others. */
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

/* The denial comes so late that no other attempt follows. */
START_TEST(a_late_denial_is_not_the_end)
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
    ck_assert_uint_eq(sleep_until_asked(), 10 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig.params.wait_ns = RL_MS;
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

/* The end of the budget, while an attempt waits for answers. */
static void let_the_budget_end(void)
{
    rig_pass(&rig, rl_remaining_ns(rl_later(rig.lease.begun, rig.params.wait_ns), rig.view.now));
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
}

/* No node is called silent: none had the time that its node timeout gives it. */
START_TEST(a_cut_attempt_accuses_no_node)
{
    rig.params.wait_ns = 30 * RL_MS;
    begin(RL_EVENT_START);
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    rig_fail(&rig, 3); /* a failure of its own stays one */
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

START_TEST(the_last_decided_attempt_is_told)
{
    rig.params.wait_ns = 30 * RL_MS;
    begin(RL_EVENT_START);
    rig_fail(&rig, 2);
    for (unsigned i = 0; i < 2; i++)
        rig_deny(&rig, i);
    rig_deny(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    const rl_nodes denied = rig.lease.round.denied;
    (void)sleep_until_asked();
    rig_grant(&rig, 0);
    let_the_budget_end();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    const struct rl_round *round = rl_lease_evidence(&rig.lease);
    ck_assert_uint_eq(round->denied, denied);
    ck_assert_uint_eq(round->failed, RL_NODE(2));
    ck_assert_uint_eq(round->cause[2], REDLOCK_CAUSE_TIMEOUT);
    ck_assert_uint_eq(round->granted, 0);
    ck_assert_uint_eq(round->rtt_us[1], 500);
    ck_assert_uint_eq(contention.misses, 0); /* the preferred node was not heard */
}
END_TEST

/* Who was asked only in the attempt that is cut short has not answered yet. */
START_TEST(the_preferred_node_decided_and_others_are_unanswered)
{
    rig.params.wait_ns = 30 * RL_MS;
    begin_hot();
    rig_deny(&rig, FIRST);
    (void)sleep_until_asked();
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

/* A majority has granted, and the fence was not written in time: no other client holds the lock. */
START_TEST(cut_while_the_fence_is_raised)
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

START_TEST(a_cancel_accuses_no_node)
{
    begin(RL_EVENT_START);
    rig_grant(&rig, 0);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, ALL);
    ck_assert_uint_eq(rl_lease_evidence(&rig.lease)->failed, 0);
}
END_TEST

START_TEST(too_slow_accuses_no_node)
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

/* The budget ends while the only node that was asked a second time has not answered. */
START_TEST(too_few_were_asked)
{
    rig.params.wait_ns = 20 * RL_MS;
    begin_hot();
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    let_the_budget_end();
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

/* Permits: FIRST, then 4 and 0 by rank, are asked about the slots. */

static void begin_permit(unsigned permits, uint64_t wait_ns)
{
    rig.params.terms.permits = (uint16_t)permits;
    rig.params.wait_ns = wait_ns;
    begin_hot();
}

static unsigned slot(void)
{
    return rig.lease.permit->slot;
}

/* Answers the questions about slots in flight: only `free` is not taken there. */
static void tell_slots(unsigned node, unsigned free)
{
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(node));
    for (uint64_t slots = rig.fx.slots, rest = slots; rest != 0; rest &= rest - 1) {
        unsigned at = rl_permit_slot(&rig.lease, (unsigned)__builtin_ctzll(rest));
        rig_report_ttl(&rig, node, at, at == free ? RL_VOTE_DENIED : RL_VOTE_GRANTED, 5000);
    }
}

#define NONE UINT16_MAX

START_TEST(a_permit_that_only_the_preferred_node_calls_taken)
{
    begin_permit(4, 0);
    unsigned free = (slot() + (unsigned)_i) % 4; /* 0: the one that was tried there */
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_deny(&rig, FIRST);
    tell_slots(FIRST, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    tell_slots(4, free);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(slot(), free);
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
    tell_slots(FIRST, NONE);
    tell_slots(4, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    tell_slots(0, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
    /* What they said of the slot that was tried is there for the report. */
    ck_assert_uint_eq(rig.lease.round.denied, RL_NODE(FIRST) | RL_NODE(4) | RL_NODE(0));
    ck_assert_uint_eq(rig.lease.round.requested, rig.lease.round.denied);
}
END_TEST

/* A node that does not answer says nothing of the slots: another one is asked. */
START_TEST(another_node_does_not_answer)
{
    begin_permit(4, 0);
    rig_deny(&rig, FIRST);
    tell_slots(FIRST, NONE);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    rig_pass(&rig, 2 * RL_MS);
    rig_tick(&rig);
    tell_slots(0, NONE);
    tell_slots(3, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

/* Neither does one whose connection ends: its slots are not tried one by one on all nodes. */
START_TEST(another_node_is_lost)
{
    begin_permit(4, 0);
    rig_deny(&rig, FIRST);
    tell_slots(FIRST, NONE);
    uint64_t slots = rig.fx.slots;
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    for (; slots != 0; slots &= slots - 1)
        rig_report_ttl(&rig, 4, rl_permit_slot(&rig.lease, (unsigned)__builtin_ctzll(slots)),
                       _i == 0 ? RL_VOTE_FAILED : RL_VOTE_SUSPECT, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    tell_slots(0, NONE);
    tell_slots(3, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

START_TEST(too_few_tell_about_permits)
{
    begin_permit(4, 0);
    rig_deny(&rig, FIRST);
    rig.view.up = RL_NODE(FIRST) | RL_NODE(1);
    tell_slots(FIRST, NONE);
    tell_slots(1, NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

START_TEST(many_permits_are_taken)
{
    static const unsigned nodes[] = {FIRST, 4, 0};

    begin_permit(200, 0);
    rig_deny(&rig, FIRST);
    for (unsigned i = 0; i < 3 * 4; i++) /* four windows of each node */
        tell_slots(nodes[i / 4], NONE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
}
END_TEST

/* An answer that comes when another node is asked is no answer of that one. */
START_TEST(a_late_answer_about_a_permit)
{
    begin_permit(1, 0);
    rig_deny(&rig, FIRST);
    tell_slots(FIRST, NONE);
    rig_pass(&rig, 2 * RL_MS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(0));
    rig_report_ttl(&rig, 4, 0, RL_VOTE_DENIED, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}
END_TEST

START_TEST(a_small_budget_for_a_permit)
{
    begin_permit(4, RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig_pass(&rig, RL_MS / 2);
    rig_deny(&rig, FIRST);
    deny_others();
    tell_slots(FIRST, NONE);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    rig_pass(&rig, RL_MS / 2);
    ck_assert_uint_le(rig.lease.wake_ns, rig.view.now.boot_ns);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
}
END_TEST

/* Who waits has heard of all slots before the first pause. */
START_TEST(the_first_pass_does_not_pause)
{
    unsigned looked = 0;

    begin_permit(1000, RL_NEVER);
    struct rl_now begun = rig.view.now;
    rig_deny(&rig, FIRST);
    while ((rig.fx.flags & RL_FX_WAITING) == 0) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        looked += (unsigned)__builtin_popcountll(rig.fx.slots);
        ck_assert_uint_ne(rig.fx.slots, 0);
        tell_slots(FIRST, NONE);
    }
    ck_assert_uint_ge(looked, 1000);
    ck_assert_uint_eq(rig.view.now.boot_ns, begun.boot_ns);
    (void)sleep_until_asked();
    deny_others();
    tell_slots(FIRST, NONE); /* from now on a window for each turn of the timer */
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
    tcase_add_loop_test(tcase, contended_on_the_word_of_a_majority, 1, 3);
    tcase_add_test(tcase, too_few_others);
    tcase_add_test(tcase, a_budget_below_two_round_trips_asks_all_at_once);
    tcase_add_test(tcase, a_late_denial_is_not_the_end);
    tcase_add_test(tcase, a_yield_ends_before_the_budget);
    tcase_add_test(tcase, a_cut_attempt_accuses_no_node);
    tcase_add_test(tcase, the_last_decided_attempt_is_told);
    tcase_add_test(tcase, the_preferred_node_decided_and_others_are_unanswered);
    tcase_add_test(tcase, cut_while_the_fence_is_raised);
    tcase_add_test(tcase, a_cancel_accuses_no_node);
    tcase_add_test(tcase, too_slow_accuses_no_node);
    tcase_add_test(tcase, too_few_were_asked);
    tcase_add_loop_test(tcase, a_permit_that_only_the_preferred_node_calls_taken, 0, 2);
    tcase_add_test(tcase, all_permits_are_taken);
    tcase_add_test(tcase, another_node_does_not_answer);
    tcase_add_loop_test(tcase, another_node_is_lost, 0, 2);
    tcase_add_test(tcase, too_few_tell_about_permits);
    tcase_add_test(tcase, many_permits_are_taken);
    tcase_add_test(tcase, a_late_answer_about_a_permit);
    tcase_add_test(tcase, a_small_budget_for_a_permit);
    tcase_add_test(tcase, the_first_pass_does_not_pause);
    return suite_run(suite);
}
