/* SPDX-License-Identifier: MIT
 * Acquiring a lock with a fence: one round or two with the same start time, late votes,
 * cancellation and timeouts in both rounds, undos, and that an extension keeps the fencing token.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "lease_rig.h"
#include "suite.h"

#define P 1000u /* the fencing token that each attempt proposes */

/* Starts an acquisition with a fence on `nodes` nodes that proposes P. */
static void start(struct rig *rig, unsigned nodes)
{
    rig_init(rig, nodes);
    rig->params.terms.fence = true;
    rig_start(rig);
    ck_assert_uint_eq(rig->fx.flags, RL_FX_ATTEMPT);
    ck_assert_uint_eq(rig->fx.request, rl_nodes_all(nodes));
    rl_fence_begin(rig->lease.fence, P);
}

/* Returns a vote for the running round. A failed one has the cause TIMEOUT. */
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

/* Passes the grant of a node whose register held `previous`. */
static void grant(struct rig *rig, unsigned node, uint64_t previous)
{
    struct rl_ballot vote = ballot(rig, node, RL_VERB_ACQUIRE, RL_VOTE_GRANTED);

    vote.register_value = previous;
    vote.accepted = P > previous;
    rig_ballot(rig, vote);
}

/* Passes a vote of the second round, the reply to the request to raise the register. */
static void raise_vote(struct rig *rig, unsigned node, enum rl_vote vote)
{
    rig_ballot(rig, ballot(rig, node, RL_VERB_RAISE, vote));
}

/* Brings a new attempt into the second round: three of five nodes have granted, one of them with a
 * larger number. */
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

START_TEST(accepted_proposals_need_one_round)
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
    /* A late vote with a larger number changes nothing. */
    grant(&rig, 3, 9999);
    ck_assert_uint_eq(rig.fx.raise, 0);
    ck_assert_uint_eq(rig.lease.fence->chosen, P);
    ck_assert_uint_eq(rig.lease.ours, 0x1f);
}
END_TEST

START_TEST(a_larger_register_needs_a_second_round)
{
    struct rig rig;

    start_second_round(&rig);
    raise_vote(&rig, 0, RL_VOTE_GRANTED);
    raise_vote(&rig, 1, RL_VOTE_GRANTED);
    raise_vote(&rig, 1, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig.fx.flags, 0);
    raise_vote(&rig, 2, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig.lease.fence->chosen, 5001);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);
}
END_TEST

/* The time of both rounds is subtracted from the validity: T1 is the start of the first round. */
START_TEST(both_rounds_count_from_the_first_start)
{
    struct rig rig;

    start_second_round(&rig);
    rig_pass(&rig, 3 * RL_SECOND);
    for (unsigned i = 0; i < 3; i++)
        raise_vote(&rig, i, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS - 3 * RL_SECOND);

    start_second_round(&rig);
    rig_pass(&rig, RIG_USABLE_NS);
    for (unsigned i = 0; i < 3; i++)
        raise_vote(&rig, i, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
}
END_TEST

START_TEST(late_votes_join_the_second_round)
{
    struct rig rig;

    start_second_round(&rig);
    grant(&rig, 3, 6000); /* larger than the chosen number: cannot support it */
    ck_assert_uint_eq(rig.fx.raise, 0);
    grant(&rig, 4, 5000);
    ck_assert_uint_eq(rig.fx.raise, 0x10);
    raise_vote(&rig, 0, RL_VOTE_GRANTED);
    raise_vote(&rig, 1, RL_VOTE_FAILED);
    raise_vote(&rig, 2, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ACQUIRING);
    raise_vote(&rig, 4, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.fence->chosen, 5001);
    ck_assert_uint_eq(rig.lease.ours, 0x1f); /* a failed node may still have the key */
}
END_TEST

/* Node 3 granted with a register that is too large, so its acknowledgement does not count. */
START_TEST(acknowledgements_of_other_nodes_do_not_count)
{
    struct rig rig;

    start_second_round(&rig);
    grant(&rig, 3, 6000);
    raise_vote(&rig, 3, RL_VOTE_GRANTED);
    raise_vote(&rig, 0, RL_VOTE_GRANTED);
    raise_vote(&rig, 1, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

START_TEST(keys_lost_in_the_second_round_fail_and_are_undone)
{
    struct rig rig;

    start_second_round(&rig);
    rig_fail(&rig, 3);
    rig_fail(&rig, 4);
    raise_vote(&rig, 0, RL_VOTE_GRANTED);
    raise_vote(&rig, 1, RL_VOTE_DENIED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x1d); /* node 1 has no key */
    ck_assert_uint_eq(rig.fx.raise, 0);
}
END_TEST

START_TEST(failures_of_the_second_round_end_the_attempt)
{
    struct rig rig;

    start_second_round(&rig);
    rig_deny(&rig, 3);
    rig_fail(&rig, 4);
    raise_vote(&rig, 1, RL_VOTE_FAILED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x17);
    ck_assert_uint_eq(rig.lease.round.cause[1], REDLOCK_CAUSE_TIMEOUT);
    ck_assert_uint_eq(rig.lease.round.failed, 0x12);

    /* No node has denied, so the status is not REDLOCK_ECONTENDED. */
    start_second_round(&rig);
    grant(&rig, 3, 6000);
    grant(&rig, 4, 6000);
    raise_vote(&rig, 1, RL_VOTE_FAILED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
}
END_TEST

START_TEST(nodes_disconnected_before_the_second_round_are_replaced)
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
    raise_vote(&rig, 1, RL_VOTE_GRANTED);
    raise_vote(&rig, 2, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

/* The number is chosen and the attempt fails in one step. No node is asked to raise its register,
 * because the keys are undone. */
START_TEST(a_choice_that_fails_at_once_raises_nothing)
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

START_TEST(cancelling_works_in_both_rounds)
{
    struct rig rig;

    start(&rig, 5);
    grant(&rig, 0, 7);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
    start_second_round(&rig);
    rig_deny(&rig, 3);
    raise_vote(&rig, 0, RL_VOTE_GRANTED);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0x17);
    ck_assert_uint_eq(rig.fx.raise, 0);
    raise_vote(&rig, 1, RL_VOTE_GRANTED); /* a late reply changes nothing */
    ck_assert_uint_eq(rig.fx.flags, 0);
    /* A lease can also be cancelled before its first round. */
    rig_init(&rig, 5);
    rig_new_lease(&rig);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
}
END_TEST

START_TEST(validity_ends_both_rounds)
{
    struct rig rig;

    start(&rig, 5);
    grant(&rig, 0, 7);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
    start_second_round(&rig);
    raise_vote(&rig, 0, RL_VOTE_GRANTED);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x1f);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ENDED);
}
END_TEST

/* A RAISE that is denied when the lock is already held shows that the node has lost our key. The
 * key then backs the deadline no longer, and a later vote of the same round does not change that.
 */
START_TEST(keys_lost_after_the_decision_back_nothing)
{
    struct rig rig;

    start_second_round(&rig);
    grant(&rig, 3, 100);
    ck_assert_uint_eq(rig.fx.raise, 8);
    for (unsigned i = 0; i < 3; i++)
        raise_vote(&rig, i, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.backing, 0xf);
    raise_vote(&rig, 3, RL_VOTE_DENIED);
    ck_assert_uint_eq(rig.fx.flags, 0);
    ck_assert_uint_eq(rig.lease.ours, 0x17);
    ck_assert_uint_eq(rig.lease.backing, 7);
    ck_assert_uint_eq(rig.lease.round.denied, 8);
    rig_deny(&rig, 4);
    ck_assert_uint_eq(rig.lease.ours, 7);
    ck_assert_uint_eq(rig.lease.backing, 7);
    /* Without node 0 only two nodes have keys that last until the deadline. */
    rig_step(&rig, &(struct rl_event){.kind = RL_EVENT_INVALIDATE, .nodes = RL_NODE(0)});
    ck_assert_uint_eq(rig.fx.flags, RL_FX_LOST | RL_FX_DEADLINE | RL_FX_ENDED);
    ck_assert_uint_eq(rig.fx.undo, 7);
}
END_TEST

/* The next attempt starts without a number and ignores late replies to the attempt before. */
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
    raise_vote(&rig, 1, RL_VOTE_DENIED);
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

START_TEST(extensions_keep_the_fencing_token)
{
    struct rig rig;

    start_second_round(&rig);
    for (unsigned i = 0; i < 3; i++)
        raise_vote(&rig, i, RL_VOTE_GRANTED);
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

START_TEST(excluded_nodes_do_not_count)
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
        raise_vote(&rig, i, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_ACQUIRING);
    raise_vote(&rig, 3, RL_VOTE_GRANTED);
    ck_assert_int_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

START_TEST(adopted_locks_keep_their_fencing_token)
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
    tcase_add_test(tcase, accepted_proposals_need_one_round);
    tcase_add_test(tcase, a_larger_register_needs_a_second_round);
    tcase_add_test(tcase, both_rounds_count_from_the_first_start);
    tcase_add_test(tcase, late_votes_join_the_second_round);
    tcase_add_test(tcase, acknowledgements_of_other_nodes_do_not_count);
    tcase_add_test(tcase, keys_lost_in_the_second_round_fail_and_are_undone);
    tcase_add_test(tcase, failures_of_the_second_round_end_the_attempt);
    tcase_add_test(tcase, nodes_disconnected_before_the_second_round_are_replaced);
    tcase_add_test(tcase, a_choice_that_fails_at_once_raises_nothing);
    tcase_add_test(tcase, cancelling_works_in_both_rounds);
    tcase_add_test(tcase, validity_ends_both_rounds);
    tcase_add_test(tcase, keys_lost_after_the_decision_back_nothing);
    tcase_add_test(tcase, attempts_share_nothing);
    tcase_add_test(tcase, extensions_keep_the_fencing_token);
    tcase_add_test(tcase, excluded_nodes_do_not_count);
    tcase_add_test(tcase, adopted_locks_keep_their_fencing_token);
    return suite_run(suite);
}
