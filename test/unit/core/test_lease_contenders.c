/* SPDX-License-Identifier: MIT
 * A lease that is woken together with many contenders, and its notifications; see also
 * test_lease_contention.c. */
#include "contention_rig.h"

static void deny_piped(void)
{
    begin_hot();
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}

/* The answer to the question that went with the SET. */
START_TEST(answer_behind_the_denial)
{
    deny_piped();
    tell_ttl(FIRST, 30);
    ck_assert_uint_eq(sleep_until_asked(), 31 * RL_MS);

    setup();
    deny_piped();
    tell_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);

    setup();
    deny_piped();
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* Pushes come on another connection: they may overtake the denial. */
START_TEST(told_before_the_denial_is_here)
{
    begin_hot();
    wake(RL_NODE(4)); /* was not asked */
    ck_assert(!rig.lease.wait.notified);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_le(sleep_until_asked(), 1); /* ns: the next tick */
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_deny(&rig, FIRST); /* that was said once */
    ck_assert_uint_ge(sleep_until_asked(), 100 * RL_MS);
}
END_TEST

/* What was asked with a SET that was granted, or that others were asked behind, is old. */
START_TEST(asked_again_if_more_has_happened)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    tell_ttl(FIRST, 10000); /* our own key */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.lease.round.granted, RL_NODE(FIRST));
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));

    setup();
    begin_hot();
    rig_pass(&rig, 2 * RL_MS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
    rig_deny(&rig, FIRST);
    tell_ttl(FIRST, 5000);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));

    setup();
    rig.params.wait_ns = 0; /* who does not wait wants to know nothing */
    begin_hot();
    ck_assert_uint_eq(rig.fx.probe, 0);
}
END_TEST

START_TEST(the_answer_comes_when_it_is_held)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    struct rl_lease before = rig.lease;
    tell_ttl(FIRST, 10000);
    tell_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.backing, before.backing);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns, before.deadline.boot_ns);
}
END_TEST

/* Always the only one to be woken: nobody else waits, as far as it knows. With another random word
 * each time until it is one that goes ahead. */
static void go_ahead(void)
{
    contention.contenders = 8;
    for (unsigned i = 0;; i++) {
        ck_assert_uint_lt(i, 100);
        contention.yield_until_ns = 0;
        rig.view.random = i * UINT64_C(0x9e3779b97f4a7c15);
        deny_piped();
        wake(RL_NODE(FIRST));
        if (rig.lease.state == RL_STATE_ACQUIRING)
            break;
        ck_assert_uint_ge(sleep_until_asked(), RL_MS / 8);
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST)); /* it looks whether there are others */
    }
    ck_assert_uint_eq(rig.fx.request, ALL);
}

START_TEST(nobody_else_waits)
{
    go_ahead();
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(contention.request_all_backoff, 0);
    rig_event(&rig, RL_EVENT_RELEASE);

    go_ahead();
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(contention.request_all_backoff, 1); /* it was too late */
    ck_assert_uint_eq(contention.misses, 1);              /* on the word of the first node, too */
}
END_TEST

/* Two that went ahead would divide four nodes. And of two nodes both are needed: there is none that
 * another one could have. */
START_TEST(nobody_goes_ahead_where_a_node_is_missing)
{
    contention.contenders = 8;
    if (_i == 1)
        rig.params.terms.quorum = rig.params.terms.nodes;
    for (unsigned i = 0; i < 100; i++) {
        rig.view.random = i * UINT64_C(0x9e3779b97f4a7c15);
        if (_i == 0)
            rig.view.up = ALL & ~RL_NODE(3);
        deny_piped();
        wake(RL_NODE(FIRST));
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        (void)sleep_until_asked();
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    }
}
END_TEST

START_TEST(many_wait_and_it_lags)
{
    contention.contenders = 8 * 1000; /* one of a thousand: not us */
    deny_piped();
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    uint64_t slept_ns = sleep_until_asked();
    ck_assert_uint_ge(slept_ns, RL_MS / 2); /* it was woken for the first time */
    ck_assert_uint_lt(slept_ns, 5 * RL_MS / 8);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));

    setup();
    contention.contenders = 8 * 1000;
    deny_piped();
    contention.notifications = 5000; /* others have won so often */
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_lt(sleep_until_asked(), RL_MS / 7);
}
END_TEST

/* Has split the votes so many times, the last time just now. */
static void split(unsigned times, uint64_t salt)
{
    setup();
    for (unsigned i = 1; i < times; i++)
        rl_contention_note_denial(&contention, true, 0, rig.view.now.boot_ns);
    rig.params.salt = salt;
    begin_hot();
    rig_grant(&rig, FIRST);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rl_contention_splits(&contention), rl_min_u64(times, 5));
}

/* From the second split on: longer than any lag, now and then, and never much longer than that
 * pause may be. */
START_TEST(splits_keep_apart)
{
    for (unsigned times = 1; times <= 8; times++) {
        uint64_t most_ns = 0;
        for (uint64_t salt = 0; salt < 100; salt++) {
            split(times, salt);
            wake(RL_NODE(FIRST));
            if (rig.lease.state == RL_STATE_WAITING)
                most_ns = rl_max_u64(most_ns, sleep_until_asked());
            ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
        }
        if (times < 2)
            ck_assert_uint_lt(most_ns, 5 * RL_MS / 8);
        else
            ck_assert_uint_gt(most_ns, 2 * RL_MS);
        ck_assert_uint_lt(most_ns, 17 * RL_MS);
    }
}
END_TEST

/* Simulator, cases long-held and slow-work: who had met split votes, and paused at every word that
 * came after them, was too late for every hand-over, and so did not win for seconds. The pause
 * begins with the end of the attempt: whoever is told later than that goes at once. */
START_TEST(old_splits_keep_nobody_away)
{
    for (uint64_t salt = 0; salt < 100; salt++) {
        split(8, salt);
        rig_pass(&rig, 16 * RL_MS);
        wake(RL_NODE(FIRST));
        if (rig.lease.state == RL_STATE_WAITING)
            ck_assert_uint_lt(sleep_until_asked(), 5 * RL_MS / 8);
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));

        rig_deny(&rig, FIRST); /* nor do they after attempts that took nobody's vote */
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        ck_assert_uint_gt(rl_contention_splits(&contention), 1);
        wake(RL_NODE(FIRST));
        ck_assert_uint_lt(sleep_until_asked(), 5 * RL_MS / 8);
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    }
}
END_TEST

/* Once may be chance; the third time it is passed over. */
START_TEST(doubted_before_it_is_passed_over)
{
    const uint64_t now_ns = rig.view.now.boot_ns;
    const rl_nodes first = rl_contention_preferred(&contention, ALL);

    rl_contention_note_denial(&contention, true, first, now_ns);
    ck_assert(!rl_contention_doubts_preferred(&contention));
    rl_contention_note_denial(&contention, true, first, now_ns);
    ck_assert(rl_contention_doubts_preferred(&contention));
    rl_contention_note_denial(&contention, false, 0, now_ns); /* it denied: it does have the key */
    ck_assert(!rl_contention_doubts_preferred(&contention));
    for (unsigned i = 0; i < 2; i++)
        rl_contention_note_denial(&contention, true, first, now_ns);
    rl_contention_note_preferred(&contention, first, true);
    ck_assert(!rl_contention_doubts_preferred(&contention));
    for (unsigned i = 0; i < 3; i++)
        rl_contention_note_denial(&contention, true, first, now_ns);
    ck_assert(!rl_contention_doubts_preferred(&contention)); /* that is another one now */
}
END_TEST

/* The holder has won without the node that is asked first: that one says "not there" for ever.
 * Whoever was misled twice listens to one that denied him, and believes what it says. */
START_TEST(who_was_misled_listens_to_the_holders_nodes)
{
    split(1, 1);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST)); /* once may be chance */
    tell_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    if (_i == 0)
        rig.view.notifying = RL_NODE(FIRST);
    rig_grant(&rig, FIRST);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.track & RL_NODE(0), RL_NODE(0)); /* by rank, of those that denied */
    if (_i == 0) {
        ck_assert_uint_eq(rig.fx.probe, 0);
        rig.view.notifying |= RL_NODE(0);
        wake(RL_NODE(0)); /* it can tell now */
    }
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(0));
    wake(RL_NODE(FIRST)); /* of our own undo, or of somebody who is misled as well */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, 0);
    if (_i == 2)
        wake(RL_NODE(0));
    else
        tell_ttl(0, 0);
    if (rig.lease.state == RL_STATE_WAITING)
        (void)sleep_until_asked();
    ck_assert_uint_lt(rig.view.now.boot_ns - rig.lease.begun.boot_ns, 17 * RL_MS); /* no timer */
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* The denial that shows others may come before the majority, or after. */
START_TEST(a_denial_shows_others_whenever_it_comes)
{
    for (int late = 0; late < 2; late++) {
        setup();
        begin(RL_EVENT_START);
        if (!late)
            rig_deny(&rig, FIRST);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        rig_grant(&rig, 3);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
        ck_assert_uint_eq(contention.contended, !late);
        if (late)
            rig_deny(&rig, FIRST);
        ck_assert(contention.contended);
        rig_event(&rig, RL_EVENT_RELEASE);
        ck_assert_uint_gt(contention.yield_until_ns, rig.view.now.boot_ns);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_contenders");
    TCase *tcase = tcase_create("contenders");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, answer_behind_the_denial);
    tcase_add_test(tcase, told_before_the_denial_is_here);
    tcase_add_test(tcase, asked_again_if_more_has_happened);
    tcase_add_test(tcase, the_answer_comes_when_it_is_held);
    tcase_add_test(tcase, nobody_else_waits);
    tcase_add_loop_test(tcase, nobody_goes_ahead_where_a_node_is_missing, 0, 2);
    tcase_add_test(tcase, many_wait_and_it_lags);
    tcase_add_test(tcase, splits_keep_apart);
    tcase_add_test(tcase, old_splits_keep_nobody_away);
    tcase_add_test(tcase, doubted_before_it_is_passed_over);
    tcase_add_loop_test(tcase, who_was_misled_listens_to_the_holders_nodes, 0, 3);
    tcase_add_test(tcase, a_denial_shows_others_whenever_it_comes);
    return suite_run(suite);
}
