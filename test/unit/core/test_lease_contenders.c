/* SPDX-License-Identifier: MIT
 * A lease that is woken together with many contenders, and its notifications; see also
 * test_lease_contention.c.
 *
 * Uses contention_rig.h: one lease in virtual time on five nodes, in the order of preference 2, 4,
 * 0, 3, 1, with the contention state of its resource. begin() passes the first event to a new
 * lease, wake() a notification, rig_grant() and rig_deny() a vote. rig.fx holds the effects of the
 * last step. */
#include "contention_rig.h"

/* Lets the preferred node deny while the probe that was sent with the SET is still in flight. */
static void deny_with_probe_in_flight(void)
{
    begin_hot();
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}

/* The probe was sent together with the SET, so its reply comes after the denial. */
START_TEST(the_reply_to_the_probe_follows_the_denial)
{
    deny_with_probe_in_flight();
    report_ttl(FIRST, 30);
    ck_assert_uint_eq(sleep_until_next_attempt(), 31 * RL_MS);

    setup();
    deny_with_probe_in_flight();
    report_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);

    setup();
    deny_with_probe_in_flight();
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* Notifications come on another connection and may overtake the denial. */
START_TEST(a_notification_before_the_denial_counts_once)
{
    begin_hot();
    wake(RL_NODE(4)); /* a node that does not track the key for this lease */
    ck_assert(!rig.lease.wait.notified);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_le(sleep_until_next_attempt(), 1); /* ns: the next tick */
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_deny(&rig, FIRST); /* the notification was used up */
    ck_assert_uint_ge(sleep_until_next_attempt(), 100 * RL_MS);
}
END_TEST

/* The probe's reply is outdated if the SET was granted, or if the other nodes were asked after it.
 */
START_TEST(the_probe_is_repeated_if_its_reply_is_outdated)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    report_ttl(FIRST, 10000); /* the lease's own key */
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
    report_ttl(FIRST, 5000);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));

    setup();
    rig.params.wait_ns = 0; /* without a wait budget there is no probe */
    begin_hot();
    ck_assert_uint_eq(rig.fx.probe, 0);
}
END_TEST

START_TEST(a_reply_to_the_probe_does_not_change_a_held_lease)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    struct rl_lease before = rig.lease;
    report_ttl(FIRST, 10000);
    report_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.backing, before.backing);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns, before.deadline.boot_ns);
}
END_TEST

/* Wakes a lease that knows of no other waiter, with new random words, until it asks all nodes at
 * once. */
static void wake_until_all_are_asked(void)
{
    contention.contenders = 8;
    for (unsigned i = 0;; i++) {
        ck_assert_uint_lt(i, 100);
        contention.yield_until_ns = 0;
        rig.view.random = i * UINT64_C(0x9e3779b97f4a7c15);
        deny_with_probe_in_flight();
        wake(RL_NODE(FIRST));
        if (rig.lease.state == RL_STATE_ACQUIRING)
            break;
        ck_assert_uint_ge(sleep_until_next_attempt(), RL_MS / 8);
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST)); /* there might be other waiters */
    }
    ck_assert_uint_eq(rig.fx.request, ALL);
}

START_TEST(a_lone_waiter_asks_all_nodes_at_once)
{
    wake_until_all_are_asked();
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(contention.request_all_backoff, 0);
    rig_event(&rig, RL_EVENT_RELEASE);

    wake_until_all_are_asked();
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(contention.request_all_backoff, 1); /* another client was faster */
    ck_assert_uint_eq(contention.misses, 1); /* although the preferred node had notified */
}
END_TEST

/* If a node is missing (0), or all nodes are needed for the quorum (1), two clients that ask all
 * nodes at once would split the votes. The lease then asks the preferred node first. */
START_TEST(all_nodes_are_asked_at_once_only_if_one_is_spare)
{
    contention.contenders = 8;
    if (_i == 1)
        rig.params.terms.quorum = rig.params.terms.nodes;
    for (unsigned i = 0; i < 100; i++) {
        rig.view.random = i * UINT64_C(0x9e3779b97f4a7c15);
        if (_i == 0)
            rig.view.up = ALL & ~RL_NODE(3);
        deny_with_probe_in_flight();
        wake(RL_NODE(FIRST));
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        (void)sleep_until_next_attempt();
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    }
}
END_TEST

START_TEST(one_of_many_waiters_asks_after_a_delay)
{
    contention.contenders = 8 * 1000; /* a thousand: this lease hardly ever asks all */
    deny_with_probe_in_flight();
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    uint64_t slept_ns = sleep_until_next_attempt();
    ck_assert_uint_ge(slept_ns, RL_MS / 2); /* the longest delay, after the first wake-up */
    ck_assert_uint_lt(slept_ns, 5 * RL_MS / 8);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));

    setup();
    contention.contenders = 8 * 1000;
    deny_with_probe_in_flight();
    contention.notifications = 5000; /* after many wake-ups the delay is short */
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_lt(sleep_until_next_attempt(), RL_MS / 7);
}
END_TEST

/* Brings the lease into the state after `times` split votes, the last of them just now. */
static void split_votes(unsigned times, uint64_t salt)
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

/* From the second split vote on, some pauses are longer than any delay of a wake-up. None is longer
 * than 17 ms. */
START_TEST(contenders_pause_after_split_votes)
{
    for (unsigned times = 1; times <= 8; times++) {
        uint64_t most_ns = 0;
        for (uint64_t salt = 0; salt < 100; salt++) {
            split_votes(times, salt);
            wake(RL_NODE(FIRST));
            if (rig.lease.state == RL_STATE_WAITING)
                most_ns = rl_max_u64(most_ns, sleep_until_next_attempt());
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

/* The pause after a split vote begins with the end of the attempt. A notification that comes after
 * the pause is followed at once, or the lease would be too late for every hand-over. */
START_TEST(old_splits_do_not_delay)
{
    for (uint64_t salt = 0; salt < 100; salt++) {
        split_votes(8, salt);
        rig_pass(&rig, 16 * RL_MS);
        wake(RL_NODE(FIRST));
        if (rig.lease.state == RL_STATE_WAITING)
            ck_assert_uint_lt(sleep_until_next_attempt(), 5 * RL_MS / 8);
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));

        rig_deny(&rig, FIRST); /* the same after an attempt that took no vote */
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        ck_assert_uint_gt(rl_contention_splits(&contention), 1);
        wake(RL_NODE(FIRST));
        ck_assert_uint_lt(sleep_until_next_attempt(), 5 * RL_MS / 8);
        ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    }
}
END_TEST

/* One misleading grant may be chance; after the third the node is passed over. */
START_TEST(the_preferred_node_is_doubted_after_two_denials_by_others)
{
    const uint64_t now_ns = rig.view.now.boot_ns;
    const rl_nodes first = rl_contention_preferred(&contention, ALL);

    rl_contention_note_denial(&contention, true, first, now_ns);
    ck_assert(!rl_contention_doubts_preferred(&contention));
    rl_contention_note_denial(&contention, true, first, now_ns);
    ck_assert(rl_contention_doubts_preferred(&contention));
    rl_contention_note_denial(&contention, false, 0, now_ns); /* the preferred node denied, too */
    ck_assert(!rl_contention_doubts_preferred(&contention));
    for (unsigned i = 0; i < 2; i++)
        rl_contention_note_denial(&contention, true, first, now_ns);
    rl_contention_note_preferred(&contention, first, true);
    ck_assert(!rl_contention_doubts_preferred(&contention));
    for (unsigned i = 0; i < 3; i++)
        rl_contention_note_denial(&contention, true, first, now_ns);
    ck_assert(!rl_contention_doubts_preferred(&contention)); /* another node is preferred now */
}
END_TEST

/* The holder has won without the preferred node, which therefore never has the key. After two
 * misleading replies the lease tracks the key on a node that denied, and follows its replies. */
START_TEST(after_misleading_replies_a_denying_node_is_tracked)
{
    split_votes(1, 1);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST)); /* the first time may be chance */
    report_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    if (_i == 0)
        rig.view.notifying = RL_NODE(FIRST);
    rig_grant(&rig, FIRST);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.track & RL_NODE(0), RL_NODE(0)); /* the first by rank that denied */
    if (_i == 0) {
        ck_assert_uint_eq(rig.fx.probe, 0);
        rig.view.notifying |= RL_NODE(0);
        wake(RL_NODE(0)); /* from now on node 0 can notify */
    }
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(0));
    wake(RL_NODE(FIRST)); /* caused by the lease's own undo, or by another misled client */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, 0);
    if (_i == 2)
        wake(RL_NODE(0));
    else
        report_ttl(0, 0);
    if (rig.lease.state == RL_STATE_WAITING)
        (void)sleep_until_next_attempt();
    ck_assert_uint_lt(rig.view.now.boot_ns - rig.lease.begun.boot_ns, 17 * RL_MS); /* no timer */
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* The denial that shows a contender may come before the majority or after it. */
START_TEST(a_denial_shows_contenders_before_or_after_the_win)
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
    tcase_add_test(tcase, the_reply_to_the_probe_follows_the_denial);
    tcase_add_test(tcase, a_notification_before_the_denial_counts_once);
    tcase_add_test(tcase, the_probe_is_repeated_if_its_reply_is_outdated);
    tcase_add_test(tcase, a_reply_to_the_probe_does_not_change_a_held_lease);
    tcase_add_test(tcase, a_lone_waiter_asks_all_nodes_at_once);
    tcase_add_loop_test(tcase, all_nodes_are_asked_at_once_only_if_one_is_spare, 0, 2);
    tcase_add_test(tcase, one_of_many_waiters_asks_after_a_delay);
    tcase_add_test(tcase, contenders_pause_after_split_votes);
    tcase_add_test(tcase, old_splits_do_not_delay);
    tcase_add_test(tcase, the_preferred_node_is_doubted_after_two_denials_by_others);
    tcase_add_loop_test(tcase, after_misleading_replies_a_denying_node_is_tracked, 0, 3);
    tcase_add_test(tcase, a_denial_shows_contenders_before_or_after_the_win);
    return suite_run(suite);
}
