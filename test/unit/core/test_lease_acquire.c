/* SPDX-License-Identifier: MIT
 * Acquiring a lock: attempts, retries within the wait budget, errors that end it at once, and the
 * last check before the caller gets the lock. Virtual time.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

#define MIN_NS    RL_MS
#define ENDED_BAD (RL_FX_DONE | RL_FX_ENDED)

/* Lets two of the three nodes deny: the lock is held by another client. */
static void deny_two(struct rig *rig)
{
    rig_deny(rig, 0);
    rig_deny(rig, 1);
}

/* Checks that the last step began an attempt on all nodes. */
static void check_requests_to_all(const struct rig *rig)
{
    ck_assert_uint_eq(rig->fx.flags, RL_FX_ATTEMPT);
    ck_assert_uint_eq(rig->fx.request, rl_nodes_all(rig->params.terms.nodes));
    ck_assert_uint_eq(rig->lease.state, RL_STATE_ACQUIRING);
}

/* Checks that the last step ended the lease with `status`. */
static void check_ended(const struct rig *rig, int status)
{
    ck_assert_uint_eq(rig->fx.flags, ENDED_BAD);
    ck_assert_int_eq(rig->fx.status, status);
    ck_assert_int_eq(rig->lease.status, status);
    ck_assert_uint_eq(rig->lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(rig->lease.wake_ns, RL_NEVER);
}

START_TEST(a_majority_of_grants_makes_a_held_lease)
{
    struct rig rig;

    rig_init(&rig, 5);
    rig_start(&rig);
    check_requests_to_all(&rig);
    struct rl_now t1 = rig.view.now;
    rig_pass(&rig, 3 * RL_MS);
    rig_grant(&rig, 4);
    rig_deny(&rig, 0);
    rig_grant(&rig, 2);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
    ck_assert_int_eq(rig.fx.status, REDLOCK_OK);
    ck_assert_uint_eq(rig.lease.deadline.boot_ns, t1.boot_ns + RIG_USABLE_NS);
    ck_assert_uint_eq(rig.lease.deadline.raw_ns, t1.raw_ns + RIG_USABLE_NS);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS - 3 * RL_MS);
    ck_assert_uint_eq(rig.lease.ours, 0x1e); /* node 3 has not replied: it may have set the key */
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.ours, 0x16);
}
END_TEST

START_TEST(without_a_wait_budget_one_attempt_is_made)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 2);
    deny_two(&rig);
    check_ended(&rig, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x4);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

/* All attempts begin within the wait budget, and the last one just before its end. */
START_TEST(retries_use_up_the_wait_budget)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = 3 * RL_SECOND;
    rig_start(&rig);
    struct rl_now begun = rig.view.now, last = begun;
    unsigned attempts = 1;
    while (rig.lease.state != RL_STATE_ENDED) {
        rig_pass(&rig, RL_MS); /* a round trip */
        deny_two(&rig);
        ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
        ck_assert_uint_eq(rig.fx.undo, 0x4); /* node 2 has not replied */
        if (rig.lease.state == RL_STATE_ENDED)
            break;
        ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
        ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
        uint64_t pause = rl_remaining_ns(rig.lease.next, rig.view.now);
        ck_assert_uint_le(pause, 200 * RL_MS);
        while (rig.lease.state == RL_STATE_WAITING) {
            rig_pass(&rig, rig.lease.wake_ns - rig.view.now.boot_ns);
            rig_tick(&rig);
        }
        check_requests_to_all(&rig);
        last = rig.view.now;
        attempts++;
    }
    check_ended(&rig, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, attempts);
    ck_assert_uint_gt(attempts, 3000 / 202);
    /* The last attempt begins two round trips before the end, which is just enough time. */
    ck_assert_uint_eq(last.boot_ns, begun.boot_ns + 3 * RL_SECOND - 2 * RL_MS);
    ck_assert_uint_le(rl_elapsed_ns(begun, rig.view.now), 3 * RL_SECOND);
}
END_TEST

START_TEST(an_attempt_without_replies_ends_with_the_wait_budget)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = RL_SECOND;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_pass(&rig, RL_SECOND - 1);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_pass(&rig, 1);
    rig_tick(&rig);
    check_ended(&rig, REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
    ck_assert_uint_eq(rl_round_pending(&rig.lease.round), 0x6); /* two nodes are still pending */
    ck_assert_uint_eq(rig.lease.round.failed, 0);
}
END_TEST

START_TEST(an_unlimited_wait_retries_until_it_holds)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    for (unsigned i = 0; i < 1000; i++) {
        deny_two(&rig);
        ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
        ck_assert_uint_ne(rig.lease.wake_ns, RL_NEVER);
        rig.view.now = rig.lease.next;
        rig_tick(&rig);
        check_requests_to_all(&rig);
    }
    ck_assert_uint_eq(rig.lease.attempts, 1001);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

/* Even without a lower bound and without a measured round trip, the pause is longer than zero. */
START_TEST(retries_are_delayed_even_without_a_backoff)
{
    struct rig rig;

    for (int patient = 0; patient <= 1; patient++) {
        rig_init(&rig, 3);
        rig.params.terms.backoff = (struct rl_backoff){0, 0};
        rig.params.wait_ns = patient ? RL_NEVER : RL_SECOND;
        rig.view.round_trip_ns = 0;
        rig_start(&rig);
        deny_two(&rig);
        ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
        ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
    }
}
END_TEST

/* Leases that fail in the same tick, with the same random word, must not retry at the same time. */
START_TEST(retries_of_one_tick_are_spread)
{
    uint64_t next[64];
    struct rig rig;

    for (unsigned i = 0; i < 64; i++) {
        rig_init(&rig, 3);
        rig.params.wait_ns = RL_NEVER;
        rig.params.salt = i;
        rig_start(&rig);
        for (unsigned j = 0; j < 4; j++) { /* the range grows with the failures */
            deny_two(&rig);
            rig.view.now = rig.lease.next;
            rig_tick(&rig);
        }
        rig.view.now = (struct rl_now){9000 * RL_SECOND, 9000 * RL_SECOND};
        deny_two(&rig);
        next[i] = rig.lease.next.boot_ns;
        for (unsigned j = 0; j < i; j++)
            ck_assert_uint_ne(next[i], next[j]);
    }
}
END_TEST

/* Another attempt cannot succeed, so the caller gets the error at once, whatever its budget. */
START_TEST(refused_users_end_the_acquisition_at_once)
{
    static const struct {
        int cause, status;
    } table[] = {
        {REDLOCK_CAUSE_AUTH, REDLOCK_EAUTH},
        {REDLOCK_CAUSE_NOPERM, REDLOCK_EAUTH},
    };
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    for (unsigned i = 0; i < 2; i++)
        rig_ballot(&rig, (struct rl_ballot){.node = (uint8_t)i,
                                            .vote = RL_VOTE_FAILED,
                                            .cause = (uint8_t)table[_i].cause,
                                            .verb = RL_VERB_ACQUIRE,
                                            .round = rig.lease.round.number});
    check_ended(&rig, table[_i].status);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
}
END_TEST

/* These conditions may end: a replica may be promoted, and memory may be available again. */
START_TEST(temporary_refusals_are_retried)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = RL_NEVER;
    rig.view.up = 0x1;
    rig.view.eligible = 0x1;
    rig.view.cause[1] = rig.view.cause[2] = REDLOCK_CAUSE_REPLICA;
    rig_start(&rig);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_EEXCLUDED);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0); /* nothing was sent */
    rig.view.up = rig.view.eligible = 0x7;
    rig.view.now = rig.lease.next;
    rig_tick(&rig);
    check_requests_to_all(&rig);
    for (unsigned i = 0; i < 2; i++)
        rig_ballot(&rig, (struct rl_ballot){.node = (uint8_t)i,
                                            .vote = RL_VOTE_FAILED,
                                            .cause = REDLOCK_CAUSE_NO_MEMORY,
                                            .verb = RL_VERB_ACQUIRE,
                                            .unsent = true,
                                            .round = rig.lease.round.number});
    ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ENOMEM);
    ck_assert_uint_eq(rig.fx.undo, 0x4);
}
END_TEST

START_TEST(a_duplicate_server_ends_the_acquisition)
{
    struct rig rig;

    rig_init(&rig, 5);
    rig.params.wait_ns = RL_NEVER;
    rig.view.duplicate = true;
    rig.view.up = rig.view.eligible = 0xf;
    rig.view.cause[4] = REDLOCK_CAUSE_DUPLICATE;
    rig_start(&rig);
    check_ended(&rig, REDLOCK_EDUPLICATE);
    ck_assert_uint_eq(rig.fx.request | rig.fx.undo, 0);

    /* The duplicate is found between two attempts. */
    rig_init(&rig, 3);
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    deny_two(&rig);
    rig.view.duplicate = true;
    rig.view.now = rig.lease.next;
    rig_tick(&rig);
    check_ended(&rig, REDLOCK_EDUPLICATE);
}
END_TEST

/* A quorum that leaves less than the minimal validity does not count. */
START_TEST(too_little_validity_is_too_slow)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.validity_min_ns = 8 * RL_SECOND;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_pass(&rig, RIG_USABLE_NS - 8 * RL_SECOND + 1);
    rig_grant(&rig, 1);
    check_ended(&rig, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x7);

    rig_start(&rig); /* exactly enough */
    rig_grant(&rig, 0);
    rig_pass(&rig, RIG_USABLE_NS - 8 * RL_SECOND);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);

    /* With a wait budget, the attempt is repeated. */
    rig.params.wait_ns = 30 * RL_SECOND;
    rig_start(&rig);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
}
END_TEST

/* Validity can run out between the last vote and the return of the call. */
START_TEST(validity_is_checked_again_before_the_call_returns)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = 30 * RL_SECOND;
    for (int patient = 1; patient >= 0; patient--) {
        rig.params.wait_ns = patient ? 30 * RL_SECOND : 0;
        rig_start(&rig);
        rig_grant(&rig, 0);
        rig_grant(&rig, 1);
        rig_deny(&rig, 2);
        rig_pass(&rig, RIG_USABLE_NS - MIN_NS);
        rig_event(&rig, RL_EVENT_CONFIRM);
        ck_assert_uint_eq(rig.fx.flags, 0);
        rig_pass(&rig, 1);
        rig_event(&rig, RL_EVENT_CONFIRM);
        ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
        ck_assert_uint_eq(rig.fx.undo, 0x3);
        ck_assert_uint_eq(rig.fx.flags, patient ? RL_FX_WAITING : ENDED_BAD);
        ck_assert_uint_eq(rig_remaining_ns(&rig), 0);
    }
    rig.params.wait_ns = 30 * RL_SECOND; /* the attempt after that can succeed */
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_event(&rig, RL_EVENT_CONFIRM);
    rig.view.now = rig.lease.next;
    rig_tick(&rig);
    check_requests_to_all(&rig);
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);
}
END_TEST

START_TEST(cancelling_ends_an_attempt_and_a_pause)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    rig_event(&rig, RL_EVENT_CANCEL);
    check_ended(&rig, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0x5);
    rig_grant(&rig, 2); /* a late reply changes nothing */
    ck_assert_uint_eq(rig.fx.flags | rig.fx.undo, 0);

    rig_start(&rig);
    deny_two(&rig);
    rig_event(&rig, RL_EVENT_CANCEL);
    check_ended(&rig, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0); /* the failed attempt was undone before */
}
END_TEST

/* An adopted lock is held once the adopting client has extended it. If adoption fails, no key is
 * deleted: the keys belong to the previous holder. */
START_TEST(adoption_holds_from_its_own_extension_on)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_ADOPT;
    rig_start(&rig);
    ck_assert_uint_eq(rig.fx.flags, 0); /* no new token */
    ck_assert_uint_eq(rig.fx.request, 0x7);
    ck_assert_uint_eq(rig.lease.round.verb, RL_VERB_EXTEND);
    rig_deny(&rig, 1);
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig_remaining_ns(&rig), 0);
    rig_grant(&rig, 2);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);
    rig_extend(&rig, 0); /* the previous holder's TTL is not known: it could be shortened */
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request, 0x5);

    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    deny_two(&rig);
    check_ended(&rig, REDLOCK_ELOST); /* the keys are gone: final, and nothing to delete */
    ck_assert_uint_eq(rig.fx.undo, 0);

    rig.params.wait_ns = 0;
    rig_start(&rig);
    rig_fail(&rig, 0);
    rig_deny(&rig, 1);
    rig_fail(&rig, 2); /* a denial would prove that the lock is gone */
    check_ended(&rig, REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.fx.undo, 0);
}
END_TEST

START_TEST(inspection_waits_for_all_replies)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_INSPECT;
    rig_start(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    ck_assert_uint_eq(rig.lease.round.verb, RL_VERB_GET);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, 0); /* a quorum is not enough: node 2 is pending */
    rig_deny(&rig, 2);
    check_ended(&rig, REDLOCK_OK);

    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_fail(&rig, 1);
    rig_fail(&rig, 2);
    check_ended(&rig, REDLOCK_ENOQUORUM);

    rig_start(&rig);
    rig_event(&rig, RL_EVENT_CANCEL);
    check_ended(&rig, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0);

    rig.view.up = 0;
    rig_start(&rig);
    check_ended(&rig, REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.fx.request, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core_lease_acquire");
    TCase *tcase = tcase_create("lease");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_majority_of_grants_makes_a_held_lease);
    tcase_add_test(tcase, without_a_wait_budget_one_attempt_is_made);
    tcase_add_test(tcase, retries_use_up_the_wait_budget);
    tcase_add_test(tcase, an_attempt_without_replies_ends_with_the_wait_budget);
    tcase_add_test(tcase, an_unlimited_wait_retries_until_it_holds);
    tcase_add_test(tcase, retries_are_delayed_even_without_a_backoff);
    tcase_add_test(tcase, retries_of_one_tick_are_spread);
    tcase_add_loop_test(tcase, refused_users_end_the_acquisition_at_once, 0, 2);
    tcase_add_test(tcase, temporary_refusals_are_retried);
    tcase_add_test(tcase, a_duplicate_server_ends_the_acquisition);
    tcase_add_test(tcase, too_little_validity_is_too_slow);
    tcase_add_test(tcase, validity_is_checked_again_before_the_call_returns);
    tcase_add_test(tcase, cancelling_ends_an_attempt_and_a_pause);
    tcase_add_test(tcase, adoption_holds_from_its_own_extension_on);
    tcase_add_test(tcase, inspection_waits_for_all_replies);
    return suite_run(suite);
}
