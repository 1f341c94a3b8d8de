/* SPDX-License-Identifier: MIT
 * The rule on restored keys: a key that was restored, or whose SET ran at an unknown time, counts
 * in an extension only after it was seen and a later round has succeeded without it. In each test
 * the lock of another client fits into the gap, so that a successful extension would hide it.
 * test/exhaustive searches all sequences of events.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

static struct rig rig;

/* Starts an extension with the lock's own TTL. */
static void extend(void)
{
    rig_pass(&rig, RL_MS);
    rig_extend(&rig, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
}

/* Checks that the extension has just succeeded. */
static void check_extended(void)
{
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DEADLINE | RL_FX_DONE);
}

/* Checks that the extension has just failed. */
static void check_not_extended(void)
{
    ck_assert_uint_eq(rig.fx.flags & RL_FX_EXTENDED, 0);
    ck_assert((rig.fx.flags & RL_FX_EXTEND_FAILED) != 0);
}

/* Node 2 was never reached, so the lock rests on nodes 0 and 1. */
START_TEST(a_lock_on_two_nodes_is_lost_if_one_is_flushed)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_ballot(&rig, (struct rl_ballot){.node = 2,
                                        .vote = RL_VOTE_FAILED,
                                        .cause = REDLOCK_CAUSE_CONNECT,
                                        .verb = RL_VERB_ACQUIRE,
                                        .unsent = true,
                                        .round = rig.lease.round.number});
    /* Node 0: FLUSHALL. Another client takes nodes 0 and 2, works, and releases them. */
    extend();
    rig_grant(&rig, 1);
    rig_deny(&rig, 0);
    check_not_extended();
    ck_assert((rig.fx.flags & RL_FX_LOST) != 0);
    ck_assert_uint_eq(rig.fx.heal, 0);
    ck_assert_uint_eq(rig.fx.undo, 0x2);
}
END_TEST

/* Node 2 was healed before: its grant must not replace that of the flushed node 0. */
START_TEST(a_healed_key_does_not_replace_a_flushed_one)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_deny(&rig, 2); /* the key of another client, which expires soon */
    extend();
    rig_deny(&rig, 2);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    check_extended();
    ck_assert_uint_eq(rig.fx.heal, 0x4);
    /* Before the heal gets there: FLUSHALL on 0, another client takes 0 and 2 and releases them.
     * Then the heal finds node 2 free. */
    rig_heal_vote(&rig, 2, RL_VOTE_GRANTED);
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_deny(&rig, 0);
    check_not_extended();
    /* No later round succeeds either, because none can succeed without node 2. */
    for (unsigned i = 0; i < 5; i++) {
        rig_extend(&rig, 0);
        check_not_extended(); /* known before any reply */
        rig_grant(&rig, 2);
        rig_grant(&rig, 1);
        rig_deny(&rig, 0);
        ck_assert_uint_eq(rig.fx.flags | rig.fx.heal, 0);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    }
}
END_TEST

START_TEST(a_healed_key_counts_after_a_round_without_it)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    extend(); /* node 2 has lost the key */
    rig_deny(&rig, 2);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    check_extended();
    rig_heal_vote(&rig, 2, RL_VOTE_GRANTED); /* the key exists again */
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.fx.flags, 0);
    ck_assert_uint_eq(rig.lease.round.cause[2], REDLOCK_CAUSE_HEALED);
    rig_grant(&rig, 1); /* this round succeeds without node 2 */
    check_extended();
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    check_extended();
    ck_assert_uint_eq(rig.lease.round.cause[2], REDLOCK_CAUSE_NONE);
}
END_TEST

/* Without a reply to the heal, an extension is the first to see the key. */
START_TEST(a_heal_without_a_reply_needs_one_more_round)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    for (unsigned round = 0; round < 4; round++) {
        extend();
        rig_vote(&rig, 2, round == 0 ? RL_VOTE_DENIED : RL_VOTE_GRANTED);
        rig_grant(&rig, 0);
        if (round < 3) {
            ck_assert_uint_eq(rig.fx.flags, 0);
            rig_grant(&rig, 1);
        }
        check_extended();
    }
}
END_TEST

/* A key that is lost while on probation starts it anew. */
START_TEST(a_key_lost_twice_starts_probation_again)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    for (unsigned round = 0; round < 2; round++) {
        extend();
        rig_deny(&rig, 2);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        check_extended();
        ck_assert_uint_eq(rig.fx.heal, 0x4);
        rig_heal_vote(&rig, 2, RL_VOTE_GRANTED);
    }
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.fx.flags, 0);
}
END_TEST

/* The SET to node 2 timed out; it runs after another client has been on nodes 0 and 2. */
START_TEST(a_set_that_ran_late_does_not_count)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_fail(&rig, 2);
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 1);
    rig_deny(&rig, 0);
    check_not_extended();
}
END_TEST

/* The extension begins before the SET is replied to or times out, because the TTL is short compared
 * with the node's time limit. */
START_TEST(a_set_confirmed_during_an_extension_does_not_count)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    extend();
    rig_ballot(&rig, (struct rl_ballot){.node = 2,
                                        .vote = RL_VOTE_GRANTED,
                                        .verb = RL_VERB_ACQUIRE,
                                        .round = rig.lease.round.number - 1});
    rig_grant(&rig, 2);
    rig_grant(&rig, 1);
    rig_deny(&rig, 0);
    check_not_extended();
}
END_TEST

/* A SET on a lost connection runs after the node has denied on the next connection, and before the
 * heal. The heal is then denied by the lock's own key. */
START_TEST(a_set_of_a_lost_connection_does_not_count)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_fail(&rig, 2);
    extend();
    rig_deny(&rig, 2);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    check_extended();
    ck_assert_uint_eq(rig.fx.heal, 0x4);
    rig_heal_vote(&rig, 2, RL_VOTE_DENIED); /* by the lock's own key */
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 1);
    rig_deny(&rig, 0);
    check_not_extended();
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0x6); /* node 2's key is deleted, too */
}
END_TEST

/* The round does not wait for a node that is known not to have the key. */
START_TEST(a_node_without_the_key_is_not_waited_for)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_deny(&rig, 2);
    extend();
    rig_fail(&rig, 1);
    check_not_extended(); /* at once, without a reply of node 2 */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

/* The adopting client does not know where SETs of the previous holder failed. A missing key is
 * healed. */
START_TEST(adopted_keys_count_after_a_round_without_them)
{
    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig_start(&rig);
    rig_fail(&rig, 1);
    rig_grant(&rig, 0);
    rig_grant(&rig, 2);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    extend();
    rig_grant(&rig, 0);
    rig_grant(&rig, 2);
    check_extended();
    rig_grant(&rig, 1);
    extend(); /* node 1's key was seen late, and this round succeeds without it */
    rig_grant(&rig, 0);
    rig_grant(&rig, 2);
    check_extended();
    rig_grant(&rig, 1);
    extend();
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    check_extended();
    rig_deny(&rig, 2);
    ck_assert_uint_eq(rig.fx.heal, 0x4);
}
END_TEST

/* A SET of the previous holder to node 1 runs late, after another client has held nodes 1 and 2. */
START_TEST(a_late_set_of_the_previous_holder_does_not_count)
{
    for (int silent = 0; silent < 2; silent++) {
        rig_init(&rig, 3);
        rig.params.terms.kind = RL_LEASE_ADOPT;
        rig_start(&rig);
        if (!silent)
            rig_fail(&rig, 1);
        rig_grant(&rig, 0);
        rig_grant(&rig, 2);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
        extend();
        rig_grant(&rig, 1);
        rig_grant(&rig, 0);
        rig_deny(&rig, 2);
        check_not_extended();
    }
}
END_TEST

/* A node that replies late, but before the next round, had the key in time. */
START_TEST(a_late_reply_before_the_next_round_counts)
{
    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 2);
    rig_grant(&rig, 1);
    extend();
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    check_extended();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_restored_keys");
    TCase *tcase = tcase_create("keys");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_lock_on_two_nodes_is_lost_if_one_is_flushed);
    tcase_add_test(tcase, a_healed_key_does_not_replace_a_flushed_one);
    tcase_add_test(tcase, a_healed_key_counts_after_a_round_without_it);
    tcase_add_test(tcase, a_heal_without_a_reply_needs_one_more_round);
    tcase_add_test(tcase, a_key_lost_twice_starts_probation_again);
    tcase_add_test(tcase, a_set_that_ran_late_does_not_count);
    tcase_add_test(tcase, a_set_confirmed_during_an_extension_does_not_count);
    tcase_add_test(tcase, a_set_of_a_lost_connection_does_not_count);
    tcase_add_test(tcase, a_node_without_the_key_is_not_waited_for);
    tcase_add_test(tcase, adopted_keys_count_after_a_round_without_them);
    tcase_add_test(tcase, a_late_set_of_the_previous_holder_does_not_count);
    tcase_add_test(tcase, a_late_reply_before_the_next_round_counts);
    return suite_run(suite);
}
