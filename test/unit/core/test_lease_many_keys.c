/* SPDX-License-Identifier: MIT
 * A lease on several keys: what remains when some of the keys are lost, which key is tracked, and
 * how it waits in the queues of its client.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"
#include "core/reservation.h"

#include "lease_rig.h"
#include "suite.h"

#define ALL   0x1fu
#define FIRST 2 /* the preferred node */

static struct rig rig;
static struct rl_contention contention;
static uint8_t ranks[5];

/* Prepares a lease on three keys and five nodes. */
static void setup(void)
{
    static const uint64_t scores[] = {30, 10, 50, 20, 40};

    rl_contention_init(&contention, ranks, 5, scores);
    rig_init(&rig, 5);
    rig.params.keys = 3;
    rig.view.notifying = ALL;
}

/* Makes the lease held by all nodes. */
static void hold(void)
{
    rig_start(&rig);
    for (unsigned i = 0; i < 5; i++)
        rig_grant(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(rig.lease.ours, ALL);
}

/* Extends the lease; `node` denies, so the lease heals the keys there. */
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

START_TEST(a_release_undoes_the_remaining_keys)
{
    hold();
    lose_one(1);
    ck_assert_uint_eq(rig.fx.heal, RL_NODE(1));
    rig_heal_vote(&rig, 1, RL_VOTE_DENIED); /* another client has one of the keys */
    ck_assert_uint_eq(rig.lease.ours, ALL & ~RL_NODE(1));
    rig_event(&rig, _i == 0 ? RL_EVENT_RELEASE : RL_EVENT_SHORTEN);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(1)); /* node 1 has not all keys: no vote */
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(1));
}
END_TEST

START_TEST(a_healed_node_is_asked_to_release)
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

START_TEST(a_late_heal_clears_the_remnants)
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

START_TEST(a_loss_undoes_the_remaining_keys)
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

START_TEST(a_lock_of_one_key_leaves_no_remnants)
{
    rig.params.keys = 1;
    hold();
    lose_one(1);
    rig_heal_vote(&rig, 1, RL_VOTE_DENIED);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.undo, 0);
}
END_TEST

/* The keys may still belong to the previous holder. */
START_TEST(a_failed_adoption_undoes_nothing)
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

START_TEST(an_adopted_lock_undoes_the_remaining_keys)
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

/* Passes the denial of an acquisition by `node` because of key number `key`, from 1 on. */
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

/* Starts a lease with a wait budget of a minute and a contention state. */
static void contend(void)
{
    rig.params.wait_ns = 60 * RL_SECOND;
    rig_new_lease(&rig);
    rig.lease.contention = &contention;
    rig_event(&rig, RL_EVENT_START);
}

/* The denial of the tracking node decides which key is tracked (1). Without one, the first denial
 * decides (0). */
START_TEST(the_key_that_was_denied_is_tracked)
{
    static const struct {
        uint8_t node, key;
    } denials[][3] = {
        {{0, 3}, {1, 1}, {3, 2}},
        {{0, 1}, {FIRST, 3}, {3, 2}},
        {{3, 2}, {0, 3}, {1, 1}},
    };

    contend();
    ck_assert_uint_eq(rig.fx.request, ALL);
    for (unsigned i = 0; i < 3; i++)
        deny_key(denials[_i][i].node, denials[_i][i].key);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.probe, _i == 1 ? RL_NODE(FIRST) : RL_NODE(0));
    ck_assert_uint_eq(rig.lease.wait.key, 2); /* counted from 0 */
    ck_assert_uint_eq(rig.lease.taken, 3);
}
END_TEST

START_TEST(after_a_wake_up_the_next_denied_key_is_tracked)
{
    const struct rl_event wake = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(FIRST)};

    contend();
    for (unsigned i = 0; i < 3; i++)
        deny_key(i, 1);
    ck_assert_uint_eq(rig.lease.wait.key, 0);
    rig_step(&rig, &wake);
    rig_pass(&rig, rig.view.round_trip_ns); /* the longest delay after a notification */
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(rig.lease.taken, 0);
    deny_key(FIRST, 2);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.lease.wait.key, 1);
}
END_TEST

/* A contender for one of the keys may prefer another node. Without a pause the two would split the
 * votes again and again. A lock of one key (1) does not pause. */
START_TEST(a_split_vote_on_several_keys_is_followed_by_a_pause)
{
    const struct rl_event wake = {.kind = RL_EVENT_WAKE, .nodes = RL_NODE(0)};

    contend();
    rig_grant(&rig, FIRST);
    for (unsigned i = 0; i < 5; i++) {
        if (i != FIRST && rig.lease.state == RL_STATE_ACQUIRING)
            deny_key(i, 1);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_step(&rig, &wake);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.lease.wake_ns, rig.lease.wait.start_ns);
    ck_assert_uint_le(rig.lease.wake_ns, rig.view.now.boot_ns + 2 * rig.view.round_trip_ns);
    rig_pass(&rig, 2 * rig.view.round_trip_ns);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* A lock reserves its keys for 300 ms, pauses for 600 ms, reserves for 1200 ms, and so on. */
START_TEST(reservations_alternate_with_growing_pauses)
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

/* In the queue of its client the lease wakes up when its reservation begins or ends. A lock of one
 * key has no reservation. */
START_TEST(a_queued_lock_of_several_keys_wakes_for_its_reservation)
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
    tcase_add_loop_test(tcase, a_release_undoes_the_remaining_keys, 0, 2);
    tcase_add_test(tcase, a_healed_node_is_asked_to_release);
    tcase_add_test(tcase, a_late_heal_clears_the_remnants);
    tcase_add_test(tcase, a_loss_undoes_the_remaining_keys);
    tcase_add_test(tcase, a_lock_of_one_key_leaves_no_remnants);
    tcase_add_test(tcase, a_failed_adoption_undoes_nothing);
    tcase_add_test(tcase, an_adopted_lock_undoes_the_remaining_keys);
    tcase_add_loop_test(tcase, the_key_that_was_denied_is_tracked, 0, 3);
    tcase_add_test(tcase, after_a_wake_up_the_next_denied_key_is_tracked);
    tcase_add_test(tcase, a_split_vote_on_several_keys_is_followed_by_a_pause);
    tcase_add_test(tcase, reservations_alternate_with_growing_pauses);
    tcase_add_test(tcase, a_queued_lock_of_several_keys_wakes_for_its_reservation);
    return suite_run(suite);
}
