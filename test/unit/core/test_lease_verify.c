/* SPDX-License-Identifier: MIT
 * Verifying a lock: it changes nothing on the servers, counts only replies that prove something,
 * and ends a lease whose lock is proven lost. */
#include "lease_rig.h"

#include "suite.h"

#define NODES 5
#define OPEN  1 /* no status yet */

static struct rig rig, held;

/* The lease that holds: by the grants of these nodes. */
static void hold(rl_nodes grants)
{
    rig_init(&held, NODES);
    rig_start(&held);
    for (unsigned i = 0; i < NODES; i++)
        if (grants & RL_NODE(i))
            rig_grant(&held, i);
    ck_assert_uint_eq(held.lease.state, RL_STATE_HELD);
}

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

static void verify(rl_nodes unproven, rl_nodes unfit)
{
    verify_on(NODES, unproven, unfit);
}

static void check_ended(int status)
{
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_ENDED);
    ck_assert_int_eq(rig.fx.status, status);
    ck_assert_uint_eq(rig.fx.undo | rig.fx.request | rig.fx.heal, 0);
}

static void check_open(void)
{
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.flags, 0);
}

/* Votes as text, one letter for each node: granted, denied, failed, silent for long, '.' nothing.
 */
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
    {"d.", 0, REDLOCK_ELOST}, /* two of two had it */
    {"gg..", 0, OPEN},
    {"ggdf", 0, REDLOCK_ENOQUORUM},
    {"ggdd", 0, REDLOCK_ELOST},
    {"ggdd.", 0, OPEN},
    {"ggddf", 0, REDLOCK_ENOQUORUM},
    {"ggffs", 0, OPEN}, /* the silent one decides */
    {"ddffs", 0, OPEN},
    {"gdffs", 0, REDLOCK_ENOQUORUM},
    {"ggg..", 0x1, OPEN},
    {"gg...", 0x1d, OPEN},              /* three that do not count may still deny ... */
    {"ggg..", 0x19, REDLOCK_ENOQUORUM}, /* ... and two are too few for that */
    {"ddgg.", 0x13, OPEN},              /* a denial counts of each */
    {"ddggd", 0x13, REDLOCK_ELOST},
};

START_TEST(outcomes)
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

START_TEST(a_majority_has_it)
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
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0); /* it holds nothing itself */
}
END_TEST

START_TEST(a_majority_has_it_not)
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

START_TEST(too_few_answers_prove_nothing)
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

/* A server that has lost keys, and a key that was put back, are no proof; that it is not there is.
 */
START_TEST(what_does_not_count)
{
    verify(0x1, 0x2);
    ck_assert_uint_eq(rig.lease.round.cause[0], REDLOCK_CAUSE_HEALED);
    ck_assert_uint_eq(rig.lease.round.cause[1], REDLOCK_CAUSE_RESTARTED);
    for (unsigned i = 0; i < 4; i++)
        rig_grant(&rig, i);
    check_open();
    rig_fail(&rig, 4);
    check_ended(REDLOCK_EEXCLUDED); /* with the one that was restarted it would be a majority */

    verify(0x3, 0);
    for (unsigned i = 0; i < 4; i++)
        rig_grant(&rig, i);
    rig_fail(&rig, 4);
    check_ended(REDLOCK_ENOQUORUM);

    verify(0x1, 0x2);
    for (unsigned i = 0; i < 3; i++)
        rig_deny(&rig, i);
    check_ended(REDLOCK_ELOST);

    verify(0, 0); /* found out meanwhile */
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig.view.excluded = 0x1;
    rig_grant(&rig, 2);
    check_open();
    rig_grant(&rig, 3);
    check_ended(REDLOCK_OK);
}
END_TEST

START_TEST(what_a_held_lease_cannot_prove)
{
    hold(0x7);
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0);
    rig_deny(&held, 3);
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x8);
    rig_extend(&held, RIG_TTL_NS); /* the fifth had not answered: its SET may run late */
    ck_assert_uint_eq(rl_lease_unproven(&held.lease) & 0x1f, 0x18);
}
END_TEST

static void disprove(rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_INVALIDATE, .nodes = nodes};
    rig_step(&held, &event);
}

START_TEST(disproved_is_lost)
{
    hold(0x1f);
    disprove(0x7);
    ck_assert_uint_eq(held.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(held.fx.flags & (RL_FX_LOST | RL_FX_DONE), RL_FX_LOST);
    ck_assert_uint_eq(held.fx.undo, 0x1f);
    ck_assert_uint_eq(rig_remaining_ns(&held), 0);
}
END_TEST

/* An extension under way has already heard one of the denials. */
START_TEST(disproved_during_an_extension)
{
    hold(0x1f);
    rig_extend(&held, RIG_TTL_NS);
    rig_deny(&held, 0);
    ck_assert_uint_eq(held.lease.state, RL_STATE_EXTENDING);
    disprove(0x7);
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
    tcase_add_loop_test(tcase, outcomes, 0, (int)(sizeof JUDGED / sizeof JUDGED[0]));
    tcase_add_test(tcase, a_majority_has_it);
    tcase_add_test(tcase, a_majority_has_it_not);
    tcase_add_test(tcase, too_few_answers_prove_nothing);
    tcase_add_test(tcase, what_does_not_count);
    tcase_add_test(tcase, what_a_held_lease_cannot_prove);
    tcase_add_test(tcase, disproved_is_lost);
    tcase_add_test(tcase, disproved_during_an_extension);
    return suite_run(suite);
}
