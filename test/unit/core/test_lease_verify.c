/* SPDX-License-Identifier: MIT
 * Verifying a lock: it changes nothing on the servers, counts only replies that prove something,
 * and ends a lease whose lock is proven lost.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "lease_rig.h"

#include "suite.h"

#define NODES 5
#define OPEN  1 /* the verification has not ended */

static struct rig rig;  /* the lease that verifies */
static struct rig held; /* the held lease */

/* Makes `held` a held lease, by the grants of these nodes. */
static void start_held(rl_nodes grants)
{
    rig_init(&held, NODES);
    rig_start(&held);
    for (unsigned i = 0; i < NODES; i++)
        if (grants & RL_NODE(i))
            rig_grant(&held, i);
    ck_assert_uint_eq(held.lease.state, RL_STATE_HELD);
}

/* Starts a verification. `unproven`: nodes whose grant proves nothing; `unfit`: nodes whose servers
 * were restarted. */
static void verify_on(unsigned nodes, rl_nodes unproven, rl_nodes unfit)
{
    rig_init(&rig, nodes);
    rig.params.terms.kind = RL_LEASE_VERIFY;
    rig.params.unproven = unproven;
    rig.view.excluded = unfit;
    for (unsigned i = 0; i < nodes; i++)
        if (unfit & RL_NODE(i))
            rig.view.cause[i] = REDLOCK_CAUSE_RESTARTED;
    rig_start(&rig);
}

/* Does the same as verify_on() with NODES nodes. */
static void verify(rl_nodes unproven, rl_nodes unfit)
{
    verify_on(NODES, unproven, unfit);
}

/* Checks that the verification has ended with `status` and sends nothing. */
static void check_ended(int status)
{
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, status);
    ck_assert_uint_eq(rig.fx.undo | rig.fx.request | rig.fx.heal, 0);
}

/* Checks that the verification is still running. */
static void check_open(void)
{
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.flags, 0);
}

/* Votes as text, one letter for each node: g granted, d denied, f failed, s suspect, '.' no vote.
 * `status`: the result that they decide, or OPEN. */
static const struct judged {
    const char *votes;
    rl_nodes unproven;
    int status;
} JUDGED[] = {
    {".", 0, OPEN},
    {"g", 0, REDLOCK_OK},
    {"d", 0, REDLOCK_ELOST},
    {"f", 0, REDLOCK_ENOQUORUM},
    {"gg.", 0, REDLOCK_OK},
    {"gd.", 0, OPEN},
    {"gdf", 0, REDLOCK_ENOQUORUM},
    {"dd.", 0, REDLOCK_ELOST},
    {"d.", 0, REDLOCK_ELOST}, /* a holder of two nodes needs both */
    {"gg..", 0, OPEN},
    {"ggdf", 0, REDLOCK_ENOQUORUM},
    {"ggdd", 0, REDLOCK_ELOST},
    {"ggdd.", 0, OPEN},
    {"ggddf", 0, REDLOCK_ENOQUORUM},
    {"ggffs", 0, OPEN}, /* the suspect node decides */
    {"ddffs", 0, OPEN},
    {"gdffs", 0, REDLOCK_ENOQUORUM},
    {"ggg..", 0x1, OPEN},
    {"gg...", 0x1d, OPEN},              /* three pending nodes may still deny */
    {"ggg..", 0x19, REDLOCK_ENOQUORUM}, /* two pending nodes cannot decide */
    {"ddgg.", 0x13, OPEN},              /* denials of unproven nodes count */
    {"ddggd", 0x13, REDLOCK_ELOST},
};

START_TEST(votes_decide_the_outcome)
{
    const struct judged *row = &JUDGED[_i];

    verify_on((unsigned)strlen(row->votes), row->unproven, 0);
    for (unsigned i = 0; row->votes[i] != '\0'; i++) {
        const enum rl_vote vote = row->votes[i] == 'g'   ? RL_VOTE_GRANTED
                                  : row->votes[i] == 'd' ? RL_VOTE_DENIED
                                  : row->votes[i] == 's' ? RL_VOTE_SUSPECT
                                                         : RL_VOTE_FAILED;
        if (row->votes[i] != '.' && rig.lease.state == RL_STATE_ACQUIRING)
            rig_vote(&rig, i, vote);
    }
    const int status = rig.lease.state == RL_STATE_ENDED ? rig.lease.status : OPEN;
    ck_assert_msg(status == row->status, "%s, unproven %x: %d, expected %d", row->votes,
                  row->unproven, status, row->status);
}
END_TEST

START_TEST(a_majority_with_the_key_verifies)
{
    verify(0, 0);
    ck_assert_uint_eq(rig.fx.request, 0x1f);
    ck_assert_uint_eq(rig.lease.round.verb, RL_VERB_GET);
    ck_assert_uint_eq(rig.lease.wake_ns, RL_NEVER);
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 2);
    rig_grant(&rig, 3);
    check_open();
    rig_grant(&rig, 4);
    check_ended(REDLOCK_OK);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0); /* the verifying lease itself holds no lock */
}
END_TEST

START_TEST(a_majority_without_the_key_proves_the_loss)
{
    verify(0, 0);
    rig_deny(&rig, 0);
    rig_grant(&rig, 1);
    rig_deny(&rig, 2);
    check_open();
    rig_deny(&rig, 4);
    check_ended(REDLOCK_ELOST);
    ck_assert_uint_eq(rig.lease.round.denied, 0x15);
}
END_TEST

START_TEST(too_few_replies_prove_nothing)
{
    verify(0, 0);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_fail(&rig, 2);
    check_open();
    rig_grant(&rig, 3);
    rig_grant(&rig, 4);
    check_ended(REDLOCK_ENOQUORUM);

    rig_init(&rig, NODES);
    rig.params.terms.kind = RL_LEASE_VERIFY;
    rig.view.up = 0x3;
    rig_start(&rig);
    check_ended(REDLOCK_ENOQUORUM);

    verify(0, 0);
    rig_event(&rig, RL_EVENT_CANCEL);
    check_ended(REDLOCK_ECANCELED);
}
END_TEST

/* A key on a server that may have lost keys, and a healed key, do not prove that the lock is held.
 * A missing key on such a server counts as proof of the loss. */
START_TEST(healed_keys_and_restarted_servers_prove_only_absence)
{
    verify(0x1, 0x2);
    ck_assert_uint_eq(rig.lease.round.cause[0], REDLOCK_CAUSE_HEALED);
    ck_assert_uint_eq(rig.lease.round.cause[1], REDLOCK_CAUSE_RESTARTED);
    for (unsigned i = 0; i < 4; i++)
        rig_grant(&rig, i);
    check_open();
    rig_fail(&rig, 4);
    check_ended(REDLOCK_EEXCLUDED); /* with the restarted server it would be a majority */

    verify(0x3, 0);
    for (unsigned i = 0; i < 4; i++)
        rig_grant(&rig, i);
    rig_fail(&rig, 4);
    check_ended(REDLOCK_ENOQUORUM);

    verify(0x1, 0x2);
    for (unsigned i = 0; i < 3; i++)
        rig_deny(&rig, i);
    check_ended(REDLOCK_ELOST);

    verify(0, 0); /* a node is excluded while the verification runs */
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig.view.excluded = 0x1;
    rig_grant(&rig, 2);
    check_open();
    rig_grant(&rig, 3);
    check_ended(REDLOCK_OK);
}
END_TEST

START_TEST(unproven_nodes_are_those_that_denied_or_did_not_reply)
{
    start_held(0x7);
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x18); /* their SETs may run late */
    rig_deny(&held, 3);
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x18);
    rig_extend(&held, RIG_TTL_NS);
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x18);

    start_held(0xf); /* the reply of node 3 came late, and shows that its SET was executed before */
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x10);
}
END_TEST

/* A node that has not shown the key of an adopted lock to this client may get it late, from a SET
 * of the previous holder. */
START_TEST(unproven_nodes_of_an_adopted_lock_have_not_granted)
{
    rig_init(&held, NODES);
    held.params.terms.kind = RL_LEASE_ADOPT;
    rig_start(&held);
    rig_fail(&held, 0);
    rig_grant(&held, 1);
    rig_grant(&held, 2);
    rig_grant(&held, 3);
    ck_assert_uint_eq(held.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x11);
    rig_grant(&held, 4);
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x1);
}
END_TEST

/* Tells the held lease that these nodes do not have the key. */
static void invalidate(rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_INVALIDATE, .nodes = nodes};
    rig_step(&held, &event);
}

START_TEST(a_held_lease_without_a_majority_is_lost)
{
    start_held(0x1f);
    invalidate(0x7);
    ck_assert_uint_eq(held.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(held.fx.flags & (RL_FX_LOST | RL_FX_DONE), RL_FX_LOST);
    ck_assert_uint_eq(held.fx.undo, 0x1f);
    ck_assert_uint_eq(rig_remaining_ns(&held), 0);
}
END_TEST

/* The running extension has already received one of the denials. */
START_TEST(loss_during_an_extension_ends_it)
{
    start_held(0x1f);
    rig_extend(&held, RIG_TTL_NS);
    rig_deny(&held, 0);
    ck_assert_uint_eq(held.lease.state, RL_STATE_EXTENDING);
    invalidate(0x7);
    ck_assert_uint_eq(held.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(held.fx.flags & (RL_FX_LOST | RL_FX_DONE), RL_FX_LOST | RL_FX_DONE);
    ck_assert_int_eq(held.fx.status, REDLOCK_ELOST);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_verify");
    TCase *tcase = tcase_create("lease_verify");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, votes_decide_the_outcome, 0,
                        (int)(sizeof JUDGED / sizeof JUDGED[0]));
    tcase_add_test(tcase, a_majority_with_the_key_verifies);
    tcase_add_test(tcase, a_majority_without_the_key_proves_the_loss);
    tcase_add_test(tcase, too_few_replies_prove_nothing);
    tcase_add_test(tcase, healed_keys_and_restarted_servers_prove_only_absence);
    tcase_add_test(tcase, unproven_nodes_are_those_that_denied_or_did_not_reply);
    tcase_add_test(tcase, unproven_nodes_of_an_adopted_lock_have_not_granted);
    tcase_add_test(tcase, a_held_lease_without_a_majority_is_lost);
    tcase_add_test(tcase, loss_during_an_extension_ends_it);
    return suite_run(suite);
}
