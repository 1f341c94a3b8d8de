/* SPDX-License-Identifier: MIT
 * Acquiring a lock with a fence: one round or two with the same start time, late votes,
 * cancellation and timeouts in both rounds, undos, and that an extension keeps the fencing token.
 */
#include "lease_rig.h"
#include "suite.h"

#define P 1000u /* what is proposed */

static void start(struct rig *rig, unsigned nodes)
{
    rig_init(rig, nodes);
    rig->params.terms.fence = true;
    rig_start(rig);
    ck_assert_uint_eq(rig->fx.flags, RL_FX_ATTEMPT);
    ck_assert_uint_eq(rig->fx.request, rl_nodes_all(nodes));
    rl_fence_begin(rig->lease.fence, P);
}

static struct rl_ballot ballot(const struct rig *rig, unsigned node, enum rl_verb verb,
                               enum rl_vote vote)
{
    return (struct rl_ballot){
        .node = (uint8_t)node,
        .vote = (uint8_t)vote,
        .cause = vote == RL_VOTE_FAILED ? REDLOCK_CAUSE_TIMEOUT : 0,
        .verb = (uint8_t)verb,
        .round = rig->lease.round.number,
        .rtt_us = 500,
    };
}

/* A grant of a node whose register held `previous`. */
static void grant(struct rig *rig, unsigned node, uint64_t previous)
{
    struct rl_ballot vote = ballot(rig, node, RL_VERB_ACQUIRE, RL_VOTE_GRANTED);

    vote.register_value = previous;
    vote.accepted = P > previous;
    rig_ballot(rig, vote);
}

static void raised(struct rig *rig, unsigned node, enum rl_vote vote)
{
    rig_ballot(rig, ballot(rig, node, RL_VERB_RAISE, vote));
}

/* Three of five granted, one of them with a larger number: the second round runs. */
static void start_second_round(struct rig *rig)
{
    start(rig, 5);
    grant(rig, 0, 7);
    grant(rig, 1, 5000);
    grant(rig, 2, 7);
    ck_assert_uint_eq(rig->fx.raise, 7);
    ck_assert_uint_eq(rig->fx.request, 0);
    ck_assert_uint_eq(rig->fx.flags, 0);
    ck_assert_uint_eq(rig->lease.fence->chosen, 5001);
    ck_assert_int_eq(rig->lease.state, RL_STATE_ACQUIRING);
}

START_TEST(one_round)
{
    struct rig rig;

    start(&rig, 5);
    grant(&rig, 4, 0);
    grant(&rig, 1, 999);
    ck_assert_uint_eq(rig.fx.flags, 0);
    grant(&rig, 2, 3);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig.fx.raise, 0);
    ck_assert_uint_eq(rig.lease.fence->chosen, P);
    /* A late vote with any number changes nothing. */
    grant(&rig, 3, 9999);
    ck_assert_uint_eq(rig.fx.raise, 0);
    ck_assert_uint_eq(rig.lease.fence->chosen, P);
    ck_assert_uint_eq(rig.lease.ours, 0x1f);
}
END_TEST

START_TEST(two_rounds)
{
    struct rig rig;

    start_second_round(&rig);
    raised(&rig, 0, RL_VOTE_GRANTED);
    raised(&rig, 1, RL_VOTE_GRANTED);
    raised(&rig, 1, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig.fx.flags, 0);
    raised(&rig, 2, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig.lease.fence->chosen, 5001);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);
}
END_TEST

/* The time that both rounds took comes off the validity: T1 is that of the first. */
START_TEST(one_clock_for_both_rounds)
{
    struct rig rig;

    start_second_round(&rig);
    rig_pass(&rig, 3 * RL_SECOND);
    for (unsigned i = 0; i < 3; i++)
        raised(&rig, i, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS - 3 * RL_SECOND);

    start_second_round(&rig);
    rig_pass(&rig, RIG_USABLE_NS);
    for (unsigned i = 0; i < 3; i++)
        raised(&rig, i, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
}
END_TEST

START_TEST(late_votes_join_the_second_round)
{
    struct rig rig;

    start_second_round(&rig);
    grant(&rig, 3, 6000); /* more than was chosen: it cannot vouch for the number */
    ck_assert_uint_eq(rig.fx.raise, 0);
    grant(&rig, 4, 5000);
    ck_assert_uint_eq(rig.fx.raise, 0x10);
    raised(&rig, 0, RL_VOTE_GRANTED);
    raised(&rig, 1, RL_VOTE_FAILED);
    raised(&rig, 2, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ACQUIRING);
    raised(&rig, 4, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.fence->chosen, 5001);
    ck_assert_uint_eq(rig.lease.ours, 0x1f); /* what failed may still have our key */
}
END_TEST

/* Acknowledgements of nodes whose vote was not used do not count. */
START_TEST(others_do_not_count)
{
    struct rig rig;

    start_second_round(&rig);
    grant(&rig, 3, 6000);
    raised(&rig, 3, RL_VOTE_GRANTED);
    raised(&rig, 0, RL_VOTE_GRANTED);
    raised(&rig, 1, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

START_TEST(lost_keys_fail_and_are_undone)
{
    struct rig rig;

    start_second_round(&rig);
    rig_fail(&rig, 3);
    rig_fail(&rig, 4);
    raised(&rig, 0, RL_VOTE_GRANTED);
    raised(&rig, 1, RL_VOTE_DENIED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x1d); /* not where it is proven gone */
    ck_assert_uint_eq(rig.fx.raise, 0);
}
END_TEST

START_TEST(failures_of_the_second_round)
{
    struct rig rig;

    start_second_round(&rig);
    rig_deny(&rig, 3);
    rig_fail(&rig, 4);
    raised(&rig, 1, RL_VOTE_FAILED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x17);
    ck_assert_uint_eq(rig.lease.round.cause[1], REDLOCK_CAUSE_TIMEOUT);
    ck_assert_uint_eq(rig.lease.round.failed, 0x12);

    /* Nobody else holds it: the cause is not contention. */
    start_second_round(&rig);
    grant(&rig, 3, 6000);
    grant(&rig, 4, 6000);
    raised(&rig, 1, RL_VOTE_FAILED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

START_TEST(nodes_that_went_down_in_between)
{
    struct rig rig;

    start(&rig, 3);
    grant(&rig, 0, 5000);
    rig.view.up = 6;
    rig.view.cause[0] = REDLOCK_CAUSE_DISCONNECT;
    grant(&rig, 1, 5000);
    ck_assert_uint_eq(rig.fx.raise, 2);
    ck_assert_uint_eq(rig.lease.round.failed, 1);
    grant(&rig, 2, 1);
    ck_assert_uint_eq(rig.fx.raise, 4);
    raised(&rig, 1, RL_VOTE_GRANTED);
    raised(&rig, 2, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

/* The choice is made and has failed in one step: nobody is asked to raise what is being undone. */
START_TEST(failed_before_it_was_asked)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.fence = true;
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    rl_fence_begin(rig.lease.fence, P);
    rig_deny(&rig, 2);
    grant(&rig, 0, 5000);
    rig.view.up = 6;
    rig.view.cause[0] = REDLOCK_CAUSE_DISCONNECT;
    grant(&rig, 1, 5000);
    ck_assert_int_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.raise, 0);
    ck_assert_uint_eq(rig.fx.undo, 3);
}
END_TEST

START_TEST(cancel_in_both_rounds)
{
    struct rig rig;

    start(&rig, 5);
    grant(&rig, 0, 7);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
    start_second_round(&rig);
    rig_deny(&rig, 3);
    raised(&rig, 0, RL_VOTE_GRANTED);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0x17);
    ck_assert_uint_eq(rig.fx.raise, 0);
    raised(&rig, 1, RL_VOTE_GRANTED); /* too late */
    ck_assert_uint_eq(rig.fx.flags, 0);
    /* And before the first. */
    rig_init(&rig, 5);
    rig_new_lease(&rig);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
}
END_TEST

START_TEST(time_outs_in_both_rounds)
{
    struct rig rig;

    start(&rig, 5);
    grant(&rig, 0, 7);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
    start_second_round(&rig);
    raised(&rig, 0, RL_VOTE_GRANTED);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ENDED);
}
END_TEST

/* The next attempt begins from nothing: its number is not that of the attempt before. */
START_TEST(attempts_share_nothing)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.fence = true;
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    rl_fence_begin(rig.lease.fence, P);
    grant(&rig, 0, 5000);
    grant(&rig, 1, 5000);
    ck_assert_uint_eq(rig.fx.raise, 3);
    struct rl_ballot late = ballot(&rig, 0, RL_VERB_RAISE, RL_VOTE_GRANTED);
    raised(&rig, 1, RL_VOTE_DENIED);
    rig_fail(&rig, 2);
    ck_assert_int_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.undo, 5);
    rig_pass(&rig, RL_SECOND);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_ATTEMPT);
    ck_assert_uint_eq(rig.lease.fence->chosen, 0);
    rl_fence_begin(rig.lease.fence, 2 * P);
    rig_ballot(&rig, late);
    ck_assert_uint_eq(rig.lease.fence->acked, 0);
    struct rl_ballot vote = ballot(&rig, 0, RL_VERB_ACQUIRE, RL_VOTE_GRANTED);
    vote.accepted = true;
    rig_ballot(&rig, vote);
    vote.node = 1;
    rig_ballot(&rig, vote);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.fence->chosen, 2 * P);
}
END_TEST

START_TEST(extensions_keep_the_number)
{
    struct rig rig;

    start_second_round(&rig);
    for (unsigned i = 0; i < 3; i++)
        raised(&rig, i, RL_VOTE_GRANTED);
    rig_extend(&rig, 0);
    ck_assert_uint_eq(rig.fx.request, 0x1f);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    ck_assert(rig.fx.flags & RL_FX_EXTENDED);
    ck_assert_uint_eq(rig.lease.fence->chosen, 5001);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.lease.fence->chosen, 5001);
    ck_assert_uint_eq(rig.fx.raise, 0);
}
END_TEST

START_TEST(barred_nodes_do_not_count)
{
    struct rig rig;

    rig_init(&rig, 5);
    rig.params.terms.fence = true;
    rig.view.eligible = 0x1e;
    rig.view.cause[0] = REDLOCK_CAUSE_LOADING;
    rig_start(&rig);
    rl_fence_begin(rig.lease.fence, P);
    grant(&rig, 0, 8000);
    for (unsigned i = 1; i < 4; i++)
        grant(&rig, i, i == 1 ? 5000 : 1);
    ck_assert_uint_eq(rig.fx.raise, 0xf);
    ck_assert_uint_eq(rig.lease.fence->chosen, 8001);
    for (unsigned i = 0; i < 3; i++)
        raised(&rig, i, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ACQUIRING);
    raised(&rig, 3, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

START_TEST(adopted_locks_bring_their_number)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig.params.fence = 77;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.fence->chosen, 77);
    ck_assert_uint_eq(rig.fx.raise, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_fence");
    TCase *tcase = tcase_create("lease_fence");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, one_round);
    tcase_add_test(tcase, two_rounds);
    tcase_add_test(tcase, one_clock_for_both_rounds);
    tcase_add_test(tcase, late_votes_join_the_second_round);
    tcase_add_test(tcase, others_do_not_count);
    tcase_add_test(tcase, lost_keys_fail_and_are_undone);
    tcase_add_test(tcase, failures_of_the_second_round);
    tcase_add_test(tcase, nodes_that_went_down_in_between);
    tcase_add_test(tcase, failed_before_it_was_asked);
    tcase_add_test(tcase, cancel_in_both_rounds);
    tcase_add_test(tcase, time_outs_in_both_rounds);
    tcase_add_test(tcase, attempts_share_nothing);
    tcase_add_test(tcase, extensions_keep_the_number);
    tcase_add_test(tcase, barred_nodes_do_not_count);
    tcase_add_test(tcase, adopted_locks_bring_their_number);
    return suite_run(suite);
}
