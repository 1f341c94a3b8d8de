/* SPDX-License-Identifier: MIT
 * The rule on restored keys: a key that was restored, or whose SET ran at an unknown time, counts
 * in an extension only after it was seen and a later round has succeeded without it. In each test
 * the lock of another client fits into the gap, so that a successful extension would hide it.
 * test/exhaustive searches all sequences of events. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

static struct rig rig;

static void extend(void)
{
    rig_pass(&rig, RL_MS);
    rig_extend(&rig, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
}

static void check_extended(void)
{
    ck_assert_uint_eq(rig.fx.flags, RL_FX_EXTENDED | RL_FX_DEADLINE | RL_FX_DONE);
}

static void check_not_extended(void)
{
    ck_assert_uint_eq(rig.fx.flags & RL_FX_EXTENDED, 0);
    ck_assert((rig.fx.flags & RL_FX_EXTEND_FAILED) != 0);
}

/* Three nodes; the third one was never reached, so the lock stands on two. */
START_TEST(flushall_on_one_of_two)
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

/* The same with a node that had been healed before: its vote must not replace the lost one. */
START_TEST(flushall_and_a_heal_in_between)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_deny(&rig, 2); /* a foreign key, soon gone */
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
    /* Not later either: no round can succeed without node 2 any more. */
    for (unsigned i = 0; i < 5; i++) {
        rig_extend(&rig, 0);
        check_not_extended(); /* that is known before anybody has answered */
        rig_grant(&rig, 2);
        rig_grant(&rig, 1);
        rig_deny(&rig, 0);
        ck_assert_uint_eq(rig.fx.flags | rig.fx.heal, 0);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    }
}
END_TEST

START_TEST(a_healed_key_counts_in_the_end)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    extend(); /* node 2 has lost it */
    rig_deny(&rig, 2);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    check_extended();
    rig_heal_vote(&rig, 2, RL_VOTE_GRANTED); /* seen */
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.fx.flags, 0);
    ck_assert_uint_eq(rig.lease.round.cause[2], REDLOCK_CAUSE_HEALED);
    rig_grant(&rig, 1); /* a round succeeds without it */
    check_extended();
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    check_extended();
    ck_assert_uint_eq(rig.lease.round.cause[2], REDLOCK_CAUSE_NONE);
}
END_TEST

/* Without an answer to the heal it takes one round more: the extension is the first to see it. */
START_TEST(a_heal_without_an_answer)
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

/* On probation, and gone once more: it begins again. */
START_TEST(gone_twice)
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
START_TEST(a_set_that_ran_late)
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

/* The same, but the extension begins before the SET is answered or given up: a TTL that is short
 * against the node's time limit. */
START_TEST(a_set_that_is_overtaken_by_the_extension)
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

/* A SET on a connection that was lost runs after the node, on the next connection, has said that
 * there is no key, and before the heal: the key is ours after all. */
START_TEST(a_set_from_beyond)
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
    rig_heal_vote(&rig, 2, RL_VOTE_DENIED); /* by our own key */
    extend();
    rig_grant(&rig, 2);
    rig_grant(&rig, 1);
    rig_deny(&rig, 0);
    check_not_extended();
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0x6); /* and it is ours to delete */
}
END_TEST

/* Nobody waits for a node that is known not to have the key. */
START_TEST(where_the_key_never_was)
{
    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_deny(&rig, 2);
    extend();
    rig_fail(&rig, 1);
    check_not_extended(); /* at once: node 2 hangs */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

/* The taker of a lock does not know where the giver's SETs failed; what denied is put back. */
START_TEST(adopted_keys)
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
    extend(); /* node 1 was silent, that is all: it was seen, and a round succeeded without it */
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

/* The giver's SET to node 1 hung, and runs after another client has been on nodes 1 and 2. (Found
 * by the simulator: the giver had detached, the server was stopped all the time.) */
START_TEST(a_set_of_the_giver)
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

/* What answers late, but before the next round, had the key in time. */
START_TEST(a_late_answer_to_the_taker)
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
    tcase_add_test(tcase, flushall_on_one_of_two);
    tcase_add_test(tcase, flushall_and_a_heal_in_between);
    tcase_add_test(tcase, a_healed_key_counts_in_the_end);
    tcase_add_test(tcase, a_heal_without_an_answer);
    tcase_add_test(tcase, gone_twice);
    tcase_add_test(tcase, a_set_that_ran_late);
    tcase_add_test(tcase, a_set_that_is_overtaken_by_the_extension);
    tcase_add_test(tcase, a_set_from_beyond);
    tcase_add_test(tcase, where_the_key_never_was);
    tcase_add_test(tcase, adopted_keys);
    tcase_add_test(tcase, a_set_of_the_giver);
    tcase_add_test(tcase, a_late_answer_to_the_taker);
    return suite_run(suite);
}
