/* SPDX-License-Identifier: MIT
 * A lease among contenders: it asks the preferred node first, waits for a notification, and falls
 * back to a timer. Each test shows one rule; the simulator measures their combined effect. */
#include "contention_rig.h"

START_TEST(alone_it_asks_all_at_once)
{
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig_grant(&rig, 1);
    rig_grant(&rig, 3);
    rig_grant(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

START_TEST(where_others_are_it_asks_one_first)
{
    begin_hot();
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    struct rl_now t1 = rig.lease.round.t1;
    rig_pass(&rig, RL_MS);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.flags & RL_FX_ATTEMPT, 0);        /* the same token */
    ck_assert_uint_eq(rig.lease.round.t1.boot_ns, t1.boot_ns); /* and the same T1 */
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns,
                      rl_deadline(t1, RIG_TTL_NS, &rig.params.terms.drift).boot_ns);
}
END_TEST

/* The others never hear of it: one command, and nothing to take back. */
START_TEST(its_no_is_the_no_of_all)
{
    begin_hot();
    /* The question whether the key is there goes with it. */
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0);
    ck_assert_uint_eq(rig.fx.request, 0);
    ck_assert_uint_eq(rig.fx.probe, 0);
    ck_assert_uint_eq(rig.lease.wait.tracked, RL_NODE(FIRST));
}
END_TEST

START_TEST(silent_first)
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
        ck_assert_uint_eq(rig.fx.request, ALL); /* it may still grant */
    }
}
END_TEST

START_TEST(failed_first)
{
    begin_hot();
    rig_fail(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
}
END_TEST

/* Who has no memory for a token has none to send to others. (Found by the simulator: the others
 * were sent the token of the attempt before.) */
START_TEST(no_memory_for_the_first)
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

/* What a step was to send, and what the same step gave up, is not sent and not undone. (Found by
 * the simulator: undone first and sent then, the keys stayed.) */
START_TEST(given_up_in_the_step_that_would_ask_the_others)
{
    begin_hot();
    rig.view.up = RL_NODE(FIRST);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, 0);
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(FIRST));
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOQUORUM);

    setup();
    begin_hot();
    rig.view.eligible = 0x7; /* 2, 0 and 1: 0 has failed in the same moment */
    rig.view.up = ALL & ~RL_NODE(0);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, 0);
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(FIRST));
}
END_TEST

START_TEST(passed_over_as_first)
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

static void lose_the_race(void)
{
    begin(RL_EVENT_START);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.track, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
}

START_TEST(a_push_is_followed_at_once)
{
    lose_the_race();
    wake(RL_NODE(4)); /* it was not asked */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

START_TEST(gone_before_we_could_ask)
{
    lose_the_race();
    tell_ttl(FIRST, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* No push may come: the timer asks all. */
START_TEST(the_timer_asks_all)
{
    lose_the_race();
    tell_ttl(FIRST, 5000);
    uint64_t slept_ns = sleep_until_asked();
    ck_assert_uint_ge(slept_ns, 100 * RL_MS);
    ck_assert_uint_lt(slept_ns, 301 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

START_TEST(the_timer_knows_when_the_key_expires)
{
    lose_the_race();
    tell_ttl(FIRST, 30);
    ck_assert_uint_eq(sleep_until_asked(), 31 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

/* Nobody tells: as often as was asked for, and no questions in between. */
START_TEST(without_pushes)
{
    rig.view.notifying = 0;
    begin(RL_EVENT_START);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.fx.track, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.probe, 0);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_le(sleep_until_asked(), 20 * RL_MS);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.fx.track, RL_NODE(FIRST) | RL_NODE(4)); /* can another one? */
}
END_TEST

/* The first who waits opens the second connection, and is there already when it works. */
START_TEST(watches_as_soon_as_somebody_can_tell)
{
    rig.view.notifying = 0;
    begin(RL_EVENT_START);
    rig_deny(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.fx.probe, 0);
    rig.view.notifying = RL_NODE(FIRST);
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    wake(RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* Where nodes fail, the key is not in the way. Asked about it with each new connection, a server
 * that breaks the connection over the question would never get to vote. */
START_TEST(watches_nothing_where_no_majority_answers)
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
    ck_assert_uint_gt(sleep_until_asked(), 0);
}
END_TEST

START_TEST(another_tells_if_the_first_cannot)
{
    rig.view.notifying = ALL & ~RL_NODE(FIRST);
    begin_hot();
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.track, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    wake(RL_NODE(3)); /* not asked */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    tell_ttl(4, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    wake(RL_NODE(4));
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* The key may have gone before we asked, and then nobody pushes it; or the holder never had it
 * there. One attempt finds that out. */
START_TEST(another_that_has_no_key_is_believed_once)
{
    rig.view.notifying = ALL & ~RL_NODE(FIRST);
    begin_hot();
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    tell_ttl(4, 0);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(4));
    tell_ttl(4, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    if (_i == 0)
        wake(RL_NODE(4));
    else
        sleep_until_asked();
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    for (unsigned i = 0; i < 5; i++)
        if (rig.lease.state == RL_STATE_ACQUIRING && (_i == 0 ? i == FIRST : i != 4))
            rig_deny(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    tell_ttl(4, 0); /* something else has brought us here */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* While it was asked, and before it was the one to be watched no more. */
START_TEST(what_the_first_told_is_heard_when_another_is_watched)
{
    begin_hot();
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    wake(RL_NODE(FIRST));
    rig.view.slow = RL_NODE(FIRST);
    rig.view.notifying = RL_NODE(FIRST);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.lease.wait.tracked, 0);
    ck_assert_uint_lt(sleep_until_asked(), RL_MS);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(4));
}
END_TEST

START_TEST(others_first_after_our_own_release)
{
    begin_hot();
    rig_grant(&rig, FIRST);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_event(&rig, RL_EVENT_RELEASE);
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.flags, 0);
    uint64_t slept_ns = sleep_until_asked();
    ck_assert_uint_ge(slept_ns, 2 * RL_MS);
    ck_assert_uint_le(slept_ns, 3 * RL_MS);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));

    rig_event(&rig, RL_EVENT_CANCEL);
    contention.yield_until_ns = rig.view.now.boot_ns + RL_MS;
    rig.params.wait_ns = 0; /* who cannot wait does not */
    begin(RL_EVENT_START);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

START_TEST(in_the_queue)
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

/* What this client lets go of itself, no server tells it. */
START_TEST(let_go_by_this_client)
{
    lose_the_race();
    wake(0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_contest");
    TCase *tcase = tcase_create("contest");
    tcase_add_checked_fixture(tcase, setup, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, alone_it_asks_all_at_once);
    tcase_add_test(tcase, where_others_are_it_asks_one_first);
    tcase_add_test(tcase, its_no_is_the_no_of_all);
    tcase_add_test(tcase, silent_first);
    tcase_add_test(tcase, failed_first);
    tcase_add_test(tcase, no_memory_for_the_first);
    tcase_add_test(tcase, given_up_in_the_step_that_would_ask_the_others);
    tcase_add_test(tcase, passed_over_as_first);
    tcase_add_test(tcase, a_push_is_followed_at_once);
    tcase_add_test(tcase, gone_before_we_could_ask);
    tcase_add_test(tcase, the_timer_asks_all);
    tcase_add_test(tcase, the_timer_knows_when_the_key_expires);
    tcase_add_test(tcase, without_pushes);
    tcase_add_test(tcase, watches_as_soon_as_somebody_can_tell);
    tcase_add_test(tcase, watches_nothing_where_no_majority_answers);
    tcase_add_test(tcase, another_tells_if_the_first_cannot);
    tcase_add_loop_test(tcase, another_that_has_no_key_is_believed_once, 0, 2);
    tcase_add_test(tcase, what_the_first_told_is_heard_when_another_is_watched);
    tcase_add_test(tcase, others_first_after_our_own_release);
    tcase_add_test(tcase, in_the_queue);
    tcase_add_test(tcase, let_go_by_this_client);
    return suite_run(suite);
}
