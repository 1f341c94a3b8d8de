/* SPDX-License-Identifier: MIT
 * A lease among contenders: it asks the preferred node first, waits for a notification, and falls
 * back to a timer. Each test shows one rule; the simulator measures their combined effect.
 *
 * Uses contention_rig.h: one lease in virtual time on five nodes, in the order of preference 2, 4,
 * 0, 3, 1, with the contention state of its resource. begin() passes the first event to a new
 * lease, wake() a notification, rig_grant() and rig_deny() a vote. rig.fx holds the effects of the
 * last step. */
#include "contention_rig.h"

START_TEST(without_contention_all_nodes_are_asked_at_once)
{
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    rig_grant(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

START_TEST(under_contention_the_preferred_node_is_asked_first)
{
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    struct rl_now t1 = rig.lease.round.t1;
    rig_pass(&rig, RL_MS);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.flags & RL_FX_ATTEMPT, 0);        /* the same token, */
    ck_assert_uint_eq(rig.lease.round.t1.boot_ns, t1.boot_ns); /* with the same T1 */
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns,
                      rl_deadline(t1, RIG_TTL_NS, &rig.params.terms.drift).boot_ns);
}
END_TEST

/* The other nodes get no request, so nothing has to be undone. */
START_TEST(a_denial_of_the_preferred_node_ends_the_attempt)
{
    begin_hot();
    ck_assert_uint_eq(rig.fx.probe, 0);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0);
    ck_assert_uint_eq(rig.fx.request, 0);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.wait.tracked, RL_NODE(FIRST));
}
END_TEST

START_TEST(the_others_are_asked_if_the_preferred_node_is_late)
{
    for (int by_timer = 0; by_timer < 2; by_timer++) {
        setup();
        begin_hot();
        if (by_timer) {
            ck_assert_uint_eq(rig.lease.wake_ns - rig.view.now.boot_ns, 2 * RL_MS);
            rig_pass(&rig, 2 * RL_MS);
            rig_tick(&rig);
        } else {
            rig_vote(&rig, FIRST, RL_VOTE_SUSPECT);
        }
        ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        rig_grant(&rig, 3);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
        rig_event(&rig, RL_EVENT_RELEASE);
        ck_assert_uint_eq(rig.fx.request, ALL); /* the late node may still grant */
    }
}
END_TEST

START_TEST(the_others_are_asked_if_the_preferred_node_fails)
{
    begin_hot();
    rig_fail(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
}
END_TEST

/* Without memory for the first request there is no token, so the other nodes get no request. */
START_TEST(without_memory_for_the_first_request_none_follows)
{
    begin_hot();
    rig_ballot(&rig, (struct rl_ballot){.node = FIRST,
                                        .vote = RL_VOTE_FAILED,
                                        .cause = REDLOCK_CAUSE_NO_MEMORY,
                                        .verb = RL_VERB_ACQUIRE,
                                        .unsent = true,
                                        .round = rig.lease.round.number});
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOMEM);
}
END_TEST

/* The step that would ask the others also ends the attempt. Nothing is sent to them, and only the
 * preferred node's key is undone. */
START_TEST(an_attempt_that_ends_with_the_first_grant_asks_no_others)
{
    begin_hot();
    rig.view.up = RL_NODE(FIRST);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, 0);
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(FIRST));
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);

    setup();
    begin_hot();
    rig.view.eligible = 0x7; /* nodes 2, 0 and 1; node 0 is disconnected at the same time */
    rig.view.up = ALL & ~RL_NODE(0);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, 0);
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(FIRST));
}
END_TEST

START_TEST(slow_excluded_and_disconnected_nodes_are_not_preferred)
{
    rig.view.slow = RL_NODE(FIRST);
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(4));
    setup();
    rig.view.eligible = ALL & ~RL_NODE(FIRST);
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(4));
    setup();
    rig.view.up = ALL & ~(RL_NODE(FIRST) | RL_NODE(4));
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(0));
}
END_TEST

/* Lets an attempt on all nodes fail: three nodes deny, among them the preferred one. */
static void deny_all(void)
{
    rig_deny(&rig, 3);
    rig_deny(&rig, 0);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}

/* Starts a lease whose first attempt is denied, so that it tracks the key on the preferred node. */
static void wait_for_the_key(void)
{
    begin(RL_EVENT_START);
    deny_all();
    ck_assert_uint_eq(rig.fx.track, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
}

/* The preferred node is asked first also if contention is not recent any more. */
START_TEST(a_notification_starts_an_attempt)
{
    wait_for_the_key();
    report_ttl(FIRST, 60000);
    wake(RL_NODE(4)); /* a node that does not track the key for this lease */
    ck_assert(!rig.lease.wait.free);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    wake(RL_NODE(FIRST));
    ck_assert(rl_contention_is_recent(&contention, rig.view.now.boot_ns));
    ck_assert_uint_lt(sleep_until_next_attempt(), RL_MS);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

START_TEST(a_key_that_is_gone_starts_an_attempt)
{
    wait_for_the_key();
    report_ttl(4, 0); /* a node that was not asked */
    ck_assert(!rig.lease.wait.free);
    report_ttl(FIRST, 0);
    ck_assert_uint_lt(sleep_until_next_attempt(), RL_MS);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* All waiters get the notification, so each begins after a random delay of up to one round trip. */
START_TEST(the_attempt_after_a_notification_is_delayed_at_random)
{
    unsigned early = 0, late = 0;

    for (uint64_t salt = 0; salt < 100; salt++) {
        setup();
        rig.params.salt = salt;
        wait_for_the_key();
        if (_i == 0)
            wake(RL_NODE(FIRST));
        else
            report_ttl(FIRST, 0);
        uint64_t slept_ns = sleep_until_next_attempt();
        ck_assert_uint_lt(slept_ns, RL_MS);
        early += slept_ns < RL_MS / 4;
        late += slept_ns > 3 * RL_MS / 4;
    }
    ck_assert_uint_gt(early, 10);
    ck_assert_uint_gt(late, 10);
}
END_TEST

/* The key may change again during the delay, which does not begin anew then. */
START_TEST(further_notifications_do_not_delay_the_attempt)
{
    wait_for_the_key();
    wake(RL_NODE(FIRST));
    uint64_t start_ns = rig.lease.wait.start_ns;
    ck_assert_uint_gt(start_ns, rig.view.now.boot_ns + 2);
    rig_pass(&rig, 1);
    rig.view.random = ~rig.view.random;
    wake(RL_NODE(FIRST));
    report_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.wait.start_ns, start_ns);
}
END_TEST

/* A notification may get lost: the timer then asks all nodes. */
START_TEST(the_timer_asks_all)
{
    wait_for_the_key();
    report_ttl(FIRST, 5000);
    uint64_t slept_ns = sleep_until_next_attempt();
    ck_assert_uint_ge(slept_ns, 100 * RL_MS);
    ck_assert_uint_lt(slept_ns, 301 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

START_TEST(the_timer_knows_when_the_key_expires)
{
    wait_for_the_key();
    report_ttl(FIRST, 30);
    ck_assert_uint_eq(sleep_until_next_attempt(), 31 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

/* No node can notify: the lease retries after its backoff, without probes in between. */
START_TEST(without_notifications_the_timer_polls)
{
    rig.view.notifying = 0;
    begin(RL_EVENT_START);
    deny_all();
    /* Two of the nodes that have denied are prepared: the first may never be able to notify. */
    ck_assert_uint_eq(rig.fx.track, RL_NODE(FIRST) | RL_NODE(0));
    ck_assert_uint_eq(rig.fx.probe, 0);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, 0);
    ck_assert_uint_le(sleep_until_next_attempt(), 20 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

/* The first waiter causes the second connection, and tracks its key once that connection works. */
START_TEST(the_key_is_tracked_as_soon_as_a_node_can_notify)
{
    rig.view.notifying = 0;
    begin(RL_EVENT_START);
    deny_all();
    ck_assert_uint_eq(rig.fx.probe, 0);
    rig.view.notifying = RL_NODE(4);
    wake(RL_NODE(4)); /* it has not denied, so it may not have the key */
    ck_assert_uint_eq(rig.fx.probe, 0);
    rig.view.notifying |= RL_NODE(0);
    wake(RL_NODE(0));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(0));
    ck_assert(!rig.lease.wait.free); /* the WAKE was no notification of a change */
    rig.view.notifying |= RL_NODE(FIRST);
    wake(RL_NODE(FIRST)); /* one node is enough */
    ck_assert_uint_eq(rig.fx.probe, 0);
    wake(RL_NODE(0));
    ck_assert_uint_lt(sleep_until_next_attempt(), RL_MS);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* If nodes fail, the key is not the obstacle. A server that disconnects at each probe would never
 * get to vote. */
START_TEST(nothing_is_tracked_without_a_majority_of_replies)
{
    rig.view.notifying = ALL;
    begin(RL_EVENT_START);
    rig_fail(&rig, 0);
    rig_fail(&rig, 1);
    rig_fail(&rig, 3);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, 0);
    ck_assert_uint_gt(sleep_until_next_attempt(), 0);
}
END_TEST

/* Tracked is the most preferred of the nodes that have denied and can notify without delay. A node
 * that has not denied may not have the key, and would notice no change of it. */
START_TEST(a_node_that_has_denied_is_tracked)
{
    static const struct {
        rl_nodes notifying, slow, tracked;
    } cases[] = {
        {ALL, 0, RL_NODE(FIRST)},          {ALL & ~RL_NODE(FIRST), 0, RL_NODE(0)},
        {ALL, RL_NODE(FIRST), RL_NODE(0)}, {ALL & ~RL_NODE(0), RL_NODE(FIRST), RL_NODE(3)},
        {RL_NODE(4) | RL_NODE(1), 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setup();
        rig.view.notifying = cases[i].notifying;
        rig.view.slow = cases[i].slow;
        begin(RL_EVENT_START);
        deny_all();
        ck_assert_uint_eq(rig.lease.wait.tracked, cases[i].tracked);
        ck_assert_uint_eq(rig.fx.probe, cases[i].tracked);
        /* Without a node that notifies, the next attempt begins after the backoff. */
        ck_assert_uint_eq(rig.lease.next.boot_ns < rig.view.now.boot_ns + 100 * RL_MS,
                          cases[i].tracked == 0);
    }
}
END_TEST

/* The reply to the probe, which is sent after the denial, says whether the key still exists. */
START_TEST(a_notification_during_an_attempt_changes_nothing)
{
    wait_for_the_key();
    wake(RL_NODE(FIRST));
    sleep_until_next_attempt();
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo | rig.fx.probe, 0);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert(!rig.lease.wait.free);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
}
END_TEST

START_TEST(a_late_reply_to_the_probe_does_not_change_a_held_lease)
{
    wait_for_the_key();
    wake(RL_NODE(FIRST));
    sleep_until_next_attempt();
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

/* Brings the lease into the state after `times` split votes, the last of them just now. */
static void split_votes(unsigned times, uint64_t salt)
{
    setup();
    for (unsigned i = 1; i < times; i++)
        rl_contention_note_denial(&contention, true, rig.view.now.boot_ns);
    rig.params.salt = salt;
    begin_hot();
    rig_grant(&rig, FIRST);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(0));
    ck_assert_uint_eq(contention.splits, rl_min_u64(times, 5));
}

/* No notification begins an attempt during the pause, which is longer after more split votes. */
START_TEST(contenders_pause_after_split_votes)
{
    for (unsigned times = 1; times <= 8; times++) {
        uint64_t most_ns = 0, bound_ns = rl_min_u64((1u << times) * RL_MS, 16 * RL_MS);
        for (uint64_t salt = 0; salt < 100; salt++) {
            split_votes(times, salt);
            wake(RL_NODE(0));
            most_ns = rl_max_u64(most_ns, sleep_until_next_attempt());
            ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
        }
        ck_assert_uint_gt(most_ns, bound_ns * 3 / 4);
        ck_assert_uint_lt(most_ns, bound_ns);
    }
}
END_TEST

/* The pause begins with the end of the attempt. A notification that comes after the pause starts an
 * attempt without a new one, or the lease would be too late for every hand-over. */
START_TEST(old_split_votes_do_not_delay)
{
    for (uint64_t salt = 0; salt < 100; salt++) {
        split_votes(8, salt);
        rig_pass(&rig, 16 * RL_MS);
        wake(RL_NODE(0));
        ck_assert_uint_lt(sleep_until_next_attempt(), RL_MS);

        rig_deny(&rig, FIRST); /* the same after an attempt that got no vote */
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        ck_assert_uint_eq(contention.splits, 5);
        wake(RL_NODE(FIRST));
        ck_assert_uint_lt(sleep_until_next_attempt(), RL_MS);
    }
}
END_TEST

START_TEST(a_release_is_followed_by_a_pause)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_event(&rig, RL_EVENT_RELEASE);
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.flags, 0);
    uint64_t slept_ns = sleep_until_next_attempt();
    ck_assert_uint_ge(slept_ns, 2 * RL_MS);
    ck_assert_uint_le(slept_ns, 3 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));

    rig_event(&rig, RL_EVENT_CANCEL);
    contention.yield_until_ns = rig.view.now.boot_ns + RL_MS;
    rig.params.wait_ns = 0; /* without a wait budget there is no pause */
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

START_TEST(a_queued_lease_waits_within_the_same_budget)
{
    rig.params.wait_ns = RL_SECOND;
    begin(RL_EVENT_QUEUE);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_QUEUED);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
    ck_assert_uint_eq(rig.fx.request, 0);
    rig_pass(&rig, RL_SECOND / 2);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_QUEUED);
    rig_event(&rig, RL_EVENT_TURN);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, ALL);
    ck_assert_uint_le(rig.lease.wake_ns, rig.view.now.boot_ns + RL_SECOND / 2); /* one budget */

    begin(RL_EVENT_QUEUE);
    rig_pass(&rig, RL_SECOND);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);

    begin(RL_EVENT_QUEUE);
    rig_event(&rig, RL_EVENT_CANCEL);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECANCELED);
}
END_TEST

/* Servers do not notify a client of its own releases, so the client wakes its waiters itself. */
START_TEST(a_release_by_this_client_wakes_the_waiter)
{
    wait_for_the_key();
    wake(0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_contention");
    TCase *tcase = tcase_create("contention");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, without_contention_all_nodes_are_asked_at_once);
    tcase_add_test(tcase, under_contention_the_preferred_node_is_asked_first);
    tcase_add_test(tcase, a_denial_of_the_preferred_node_ends_the_attempt);
    tcase_add_test(tcase, the_others_are_asked_if_the_preferred_node_is_late);
    tcase_add_test(tcase, the_others_are_asked_if_the_preferred_node_fails);
    tcase_add_test(tcase, without_memory_for_the_first_request_none_follows);
    tcase_add_test(tcase, an_attempt_that_ends_with_the_first_grant_asks_no_others);
    tcase_add_test(tcase, slow_excluded_and_disconnected_nodes_are_not_preferred);
    tcase_add_test(tcase, a_notification_starts_an_attempt);
    tcase_add_test(tcase, a_key_that_is_gone_starts_an_attempt);
    tcase_add_loop_test(tcase, the_attempt_after_a_notification_is_delayed_at_random, 0, 2);
    tcase_add_test(tcase, further_notifications_do_not_delay_the_attempt);
    tcase_add_test(tcase, the_timer_asks_all);
    tcase_add_test(tcase, the_timer_knows_when_the_key_expires);
    tcase_add_test(tcase, without_notifications_the_timer_polls);
    tcase_add_test(tcase, the_key_is_tracked_as_soon_as_a_node_can_notify);
    tcase_add_test(tcase, nothing_is_tracked_without_a_majority_of_replies);
    tcase_add_test(tcase, a_node_that_has_denied_is_tracked);
    tcase_add_test(tcase, a_notification_during_an_attempt_changes_nothing);
    tcase_add_test(tcase, a_late_reply_to_the_probe_does_not_change_a_held_lease);
    tcase_add_test(tcase, contenders_pause_after_split_votes);
    tcase_add_test(tcase, old_split_votes_do_not_delay);
    tcase_add_test(tcase, a_release_is_followed_by_a_pause);
    tcase_add_test(tcase, a_queued_lease_waits_within_the_same_budget);
    tcase_add_test(tcase, a_release_by_this_client_wakes_the_waiter);
    return suite_run(suite);
}
