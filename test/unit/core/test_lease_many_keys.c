/* SPDX-License-Identifier: MIT
 * A lease on several keys: what remains when some of the keys are lost, which key is tracked, and
 * how it waits in the queues of its client. */
#include "core/lease.h"
#include "core/reservation.h"

#include "lease_rig.h"
#include "suite.h"

#define ALL   0x1fu
#define FIRST 2 /* by rank */

static struct rig rig;
static struct rl_contention contention;
static uint8_t ranks[5];

static void setup(void)
{
    static const uint64_t scores[] = {30, 10, 50, 20, 40};

    rl_contention_init(&contention, ranks, 5, scores);
    rig_init(&rig, 5);
    rig.params.keys = 3;
    rig.view.notifying = ALL;
}

static void hold(void)
{
    rig_start(&rig);
    for (unsigned i = 0; i < 5; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.ours, ALL);
}

/* An extension that one node denies; it asks to put the keys back there. */
static void lose_one(unsigned node)
{
    rig_extend(&rig, 0);
    ck_assert_uint_eq(rig.fx.request, ALL);
    rig_deny(&rig, node);
    for (unsigned i = 0; rig.lease.state == RL_STATE_EXTENDING; i++) {
        if (i != node)
            rig_grant(&rig, i);
    }
}

START_TEST(a_release_takes_the_rest_too)
{
    hold();
    lose_one(1);
    ck_assert_uint_eq(rig.fx.heal, RL_NODE(1));
    rig_heal_vote(&rig, 1, RL_VOTE_DENIED); /* one of the keys is another client's by now */
    ck_assert_uint_eq(rig.lease.ours, ALL & ~RL_NODE(1));
    rig_event(&rig, _i == 0 ? RL_EVENT_RELEASE : RL_EVENT_SHORTEN);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(1)); /* no vote: it is known not to have all */
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(1));
}
END_TEST

START_TEST(what_was_put_back_is_asked)
{
    hold();
    lose_one(1);
    rig_heal_vote(&rig, 1, RL_VOTE_GRANTED);
    ck_assert_uint_eq(rig.lease.remnants, 0);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request, ALL);
    ck_assert_uint_eq(rig.fx.undo, 0);
}
END_TEST

START_TEST(all_at_last_after_all)
{
    hold();
    lose_one(1);
    rig_heal_vote(&rig, 1, RL_VOTE_DENIED);
    rig_extend(&rig, 0);
    rig_grant(&rig, 1); /* an earlier heal was only late */
    ck_assert_uint_eq(rig.lease.remnants, 0);
    ck_assert_uint_eq(rig.lease.ours, ALL);
}
END_TEST

START_TEST(a_loss_takes_the_rest_too)
{
    hold();
    rig_extend(&rig, 0);
    rig_deny(&rig, 0);
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_EXTENDING);
    rig_deny(&rig, 4);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert((rig.fx.flags & RL_FX_LOST) != 0);
    ck_assert_uint_eq(rig.fx.undo, ALL);
}
END_TEST

START_TEST(of_one_key_there_is_no_rest)
{
    rig.params.keys = 1;
    hold();
    lose_one(1);
    rig_heal_vote(&rig, 1, RL_VOTE_DENIED);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.undo, 0);
}
END_TEST

/* The token may still be the giver's. */
START_TEST(a_failed_adoption_takes_nothing)
{
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig_start(&rig);
    for (unsigned i = 0; i < 3; i++)
        rig_deny(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ELOST);
    ck_assert_uint_eq(rig.fx.undo, 0);
}
END_TEST

START_TEST(an_adopted_lock_gives_the_rest_back)
{
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig_start(&rig);
    rig_deny(&rig, 4);
    for (unsigned i = 0; i < 3; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.undo & RL_NODE(4), RL_NODE(4));
}
END_TEST

static void deny_key(unsigned node, unsigned key)
{
    rig_ballot(&rig, (struct rl_ballot){
                         .node = (uint8_t)node,
                         .vote = RL_VOTE_DENIED,
                         .verb = RL_VERB_ACQUIRE,
                         .round = rig.lease.round.number,
                         .key = (uint8_t)key,
                     });
}

static void contend(void)
{
    rig.params.wait_ns = 60 * RL_SECOND;
    rig_new_lease(&rig);
    rig.lease.contention = &contention;
    rig_event(&rig, RL_EVENT_START);
}

/* What the node says that is watched goes before what others say. */
START_TEST(the_key_that_is_taken_is_watched)
{
    contend();
    ck_assert_uint_eq(rig.fx.request, ALL);
    if (_i == 0) {
        deny_key(0, 3);
        deny_key(1, 1);
        deny_key(3, 2);
    } else {
        deny_key(0, 1);
        deny_key(FIRST, 3);
        deny_key(3, 2);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.wait.key, 2); /* from 0 on */
    ck_assert_uint_eq(rig.lease.taken, 3);
}
END_TEST

START_TEST(then_the_next_one)
{
    const struct rl_event wake = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST)};

    contend();
    for (unsigned i = 0; i < 3; i++)
        deny_key(i, 1);
    ck_assert_uint_eq(rig.lease.wait.key, 0);
    rig_step(&rig, &wake);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.lease.taken, 0);
    deny_key(FIRST, 2);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.lease.wait.key, 1);
}
END_TEST

/* Who wants one of the keys only may ask another node first: both would meet half-way for ever. */
START_TEST(after_a_split_it_pauses)
{
    const struct rl_event wake = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST)};

    rig.params.keys = _i == 0 ? 3 : 1;
    contend();
    rig_grant(&rig, FIRST);
    for (unsigned i = 0; i < 5; i++) {
        if (i != FIRST && rig.lease.state == RL_STATE_ACQUIRING)
            deny_key(i, 1);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_step(&rig, &wake);
    ck_assert_uint_eq(rig.lease.state, _i == 0 ? RL_STATE_WAITING : RL_STATE_ACQUIRING);
    if (_i != 0)
        return;
    ck_assert_uint_le(rig.lease.wake_ns, rig.view.now.boot_ns + 2 * rig.view.round_trip_ns);
    rig_pass(&rig, 2 * rig.view.round_trip_ns);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* Keeps for 300 ms, lets pass for 600, keeps for 1200, ... */
START_TEST(patience)
{
    uint64_t at_ns = 0, length_ns = RL_RESERVATION_NS;

    for (unsigned turn = 0; turn < 30; turn++) {
        ck_assert(rl_reservation_is_on(at_ns) == (turn % 2 == 0));
        ck_assert_uint_eq(rl_reservation_left_ns(at_ns), length_ns);
        ck_assert(rl_reservation_is_on(at_ns + length_ns - 1) == (turn % 2 == 0));
        ck_assert_uint_eq(rl_reservation_left_ns(at_ns + length_ns - 1), 1);
        at_ns += length_ns;
        length_ns *= 2;
    }
    ck_assert_uint_gt(rl_reservation_left_ns(UINT64_MAX / 4), 0);
}
END_TEST

/* In the queue of its client it is looked at when that changes; a lock of one key is not. */
START_TEST(in_the_queue_it_wakes)
{
    rig.params.wait_ns = RL_NEVER;
    rig_new_lease(&rig);
    rig_event(&rig, RL_EVENT_QUEUE);
    uint64_t begun_ns = rig.view.now.boot_ns;
    for (unsigned i = 0; rig.view.now.boot_ns < begun_ns + RL_RESERVATION_NS; i++) {
        ck_assert_uint_lt(i, 100);
        ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
        ck_assert_uint_le(rig.lease.wake_ns, begun_ns + RL_RESERVATION_NS);
        rig_pass(&rig, rig.lease.wake_ns - rig.view.now.boot_ns);
        rig_tick(&rig);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_QUEUED);
    ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
    rig.params.keys = 1;
    rig_new_lease(&rig);
    rig_event(&rig, RL_EVENT_QUEUE);
    ck_assert_uint_eq(rig.lease.wake_ns, RL_NEVER);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_many_keys");
    TCase *tcase = tcase_create("lease_many");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, a_release_takes_the_rest_too, 0, 2);
    tcase_add_test(tcase, what_was_put_back_is_asked);
    tcase_add_test(tcase, all_at_last_after_all);
    tcase_add_test(tcase, a_loss_takes_the_rest_too);
    tcase_add_test(tcase, of_one_key_there_is_no_rest);
    tcase_add_test(tcase, a_failed_adoption_takes_nothing);
    tcase_add_test(tcase, an_adopted_lock_gives_the_rest_back);
    tcase_add_loop_test(tcase, the_key_that_is_taken_is_watched, 0, 2);
    tcase_add_test(tcase, then_the_next_one);
    tcase_add_loop_test(tcase, after_a_split_it_pauses, 0, 2);
    tcase_add_test(tcase, patience);
    tcase_add_test(tcase, in_the_queue_it_wakes);
    return suite_run(suite);
}
