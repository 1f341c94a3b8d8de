/* SPDX-License-Identifier: MIT
 * Acquiring a lock: attempts, retries within the wait budget, errors that end it at once, and the
 * last check before the caller gets the lock. Virtual time. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

#define MIN_NS    RL_MS
#define ENDED_BAD (RL_FX_DONE | RL_FX_ENDED)

/* Two of three deny: held by another client. */
static void be_denied(struct rig *rig)
{
    rig_deny(rig, 0);
    rig_deny(rig, 1);
}

static void check_asks_all(const struct rig *rig)
{
    ck_assert_uint_eq(rig->fx.flags, RL_FX_ATTEMPT);
    ck_assert_uint_eq(rig->fx.request, rl_nodes_all(rig->params.terms.nodes));
    ck_assert_uint_eq(rig->lease.state, RL_STATE_ACQUIRING);
}

static void check_ended(const struct rig *rig, int status)
{
    ck_assert_uint_eq(rig->fx.flags, ENDED_BAD);
    ck_assert_int_eq(rig->fx.status, status);
    ck_assert_int_eq(rig->lease.status, status);
    ck_assert_uint_eq(rig->lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(rig->lease.wake_ns, RL_NEVER);
}

START_TEST(a_majority_holds)
{
    struct rig rig;

    rig_init(&rig, 5);
    rig_start(&rig);
    check_asks_all(&rig);
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
    ck_assert_uint_eq(rig.lease.ours, 0x1e); /* node 3 has not answered yet */
    rig_deny(&rig, 3);
    ck_assert_uint_eq(rig.lease.ours, 0x16);
}
END_TEST

START_TEST(no_patience_means_one_attempt)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig_start(&rig);
    rig_grant(&rig, 2);
    be_denied(&rig);
    check_ended(&rig, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.fx.undo, 0x4);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

/* All attempts begin inside the caller's patience, and the last one just before its end. */
START_TEST(retries_use_up_the_patience)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = 3 * RL_SECOND;
    rig_start(&rig);
    struct rl_now begun = rig.view.now, last = begun;
    unsigned attempts = 1;
    while (rig.lease.state != RL_STATE_ENDED) {
        rig_pass(&rig, RL_MS); /* a round trip */
        be_denied(&rig);
        ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
        ck_assert_uint_eq(rig.fx.undo, 0x4); /* node 2 has not answered */
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
        check_asks_all(&rig);
        last = rig.view.now;
        attempts++;
    }
    check_ended(&rig, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, attempts);
    ck_assert_uint_gt(attempts, 3000 / 202);
    /* Two round trips before the end: time enough for it, none to give away. */
    ck_assert_uint_eq(last.boot_ns, begun.boot_ns + 3 * RL_SECOND - 2 * RL_MS);
    ck_assert_uint_le(rl_elapsed_ns(begun, rig.view.now), 3 * RL_SECOND);
}
END_TEST

START_TEST(a_silent_attempt_ends_with_the_patience)
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
    ck_assert_uint_eq(rl_round_pending(&rig.lease.round), 0x6); /* no more is known of them */
    ck_assert_uint_eq(rig.lease.round.failed, 0);
}
END_TEST

START_TEST(waiting_for_ever)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    for (unsigned i = 0; i < 1000; i++) {
        be_denied(&rig);
        ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
        ck_assert_uint_ne(rig.lease.wake_ns, RL_NEVER);
        rig.view.now = rig.lease.next;
        rig_tick(&rig);
        check_asks_all(&rig);
    }
    ck_assert_uint_eq(rig.lease.attempts, 1001);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
}
END_TEST

/* Even without a lower bound and without a measured round trip, waiting takes time. */
START_TEST(a_pause_of_nothing_is_not_the_end)
{
    struct rig rig;

    for (int patient = 0; patient <= 1; patient++) {
        rig_init(&rig, 3);
        rig.params.terms.backoff = (struct rl_backoff){0, 0};
        rig.params.wait_ns = patient ? RL_NEVER : RL_SECOND;
        rig.view.round_trip_ns = 0;
        rig_start(&rig);
        be_denied(&rig);
        ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
        ck_assert_uint_gt(rig.lease.wake_ns, rig.view.now.boot_ns);
    }
}
END_TEST

/* Leases that fail in the same tick, with the same random word, must not come back together. */
START_TEST(retries_of_one_tick_part)
{
    uint64_t next[64];
    struct rig rig;

    for (unsigned i = 0; i < 64; i++) {
        rig_init(&rig, 3);
        rig.params.wait_ns = RL_NEVER;
        rig.params.salt = i;
        rig_start(&rig);
        for (unsigned j = 0; j < 4; j++) { /* the range grows with the failures */
            be_denied(&rig);
            rig.view.now = rig.lease.next;
            rig_tick(&rig);
        }
        rig.view.now = (struct rl_now){9000 * RL_SECOND, 9000 * RL_SECOND};
        be_denied(&rig);
        next[i] = rig.lease.next.boot_ns;
        for (unsigned j = 0; j < i; j++)
            ck_assert_uint_ne(next[i], next[j]);
    }
}
END_TEST

/* Nothing that another attempt could mend: the caller is told at once, however patient. */
START_TEST(final_errors)
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

/* These may end: the fail-over is undone, the data is loaded, there is memory again. */
START_TEST(refusals_are_waited_for)
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
    check_asks_all(&rig);
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

START_TEST(duplicates_end_it)
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

    /* Found out between two attempts. */
    rig_init(&rig, 3);
    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    be_denied(&rig);
    rig.view.duplicate = true;
    rig.view.now = rig.lease.next;
    rig_tick(&rig);
    check_ended(&rig, REDLOCK_EDUPLICATE);
}
END_TEST

START_TEST(a_grant_that_comes_too_late)
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

    /* Too slow once need not be too slow twice. */
    rig.params.wait_ns = 30 * RL_SECOND;
    rig_start(&rig);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_WAITING);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ETOOSLOW);
    ck_assert_uint_eq(rig.fx.undo, 0x7);
}
END_TEST

/* Between the vote and the caller's ear the time can run out. */
START_TEST(the_last_look_before_telling)
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
    rig.params.wait_ns = 30 * RL_SECOND; /* and the attempt after that can hold */
    rig_start(&rig);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    rig_pass(&rig, RIG_USABLE_NS);
    rig_event(&rig, RL_EVENT_CONFIRM);
    rig.view.now = rig.lease.next;
    rig_tick(&rig);
    check_asks_all(&rig);
    rig_grant(&rig, 2);
    rig_grant(&rig, 0);
    ck_assert_uint_eq(rig.fx.flags, RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE);
    ck_assert_uint_eq(rig_remaining_ns(&rig), RIG_USABLE_NS);
}
END_TEST

START_TEST(cancelled)
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
    rig_grant(&rig, 2); /* late: means nothing */
    ck_assert_uint_eq(rig.fx.flags | rig.fx.undo, 0);

    rig_start(&rig);
    be_denied(&rig);
    rig_event(&rig, RL_EVENT_CANCEL);
    check_ended(&rig, REDLOCK_ECANCELED);
    ck_assert_uint_eq(rig.fx.undo, 0); /* was undone when the attempt failed */
}
END_TEST

/* Adoption: held from the taker's own extension on; what is not ours to delete stays. */
START_TEST(adoption)
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
    rig_extend(&rig, 0); /* the TTL that the giver used is not known: it might be shortened */
    ck_assert_uint_eq(rig.fx.flags, 0);
    rig_event(&rig, RL_EVENT_RELEASE);
    ck_assert_uint_eq(rig.fx.request, 0x5);

    rig.params.wait_ns = RL_NEVER;
    rig_start(&rig);
    be_denied(&rig);
    check_ended(&rig, REDLOCK_ELOST); /* proven gone: final, nothing to delete */
    ck_assert_uint_eq(rig.fx.undo, 0);

    rig.params.wait_ns = 0;
    rig_start(&rig);
    rig_fail(&rig, 0);
    rig_deny(&rig, 1);
    check_ended(&rig, REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(rig.fx.undo, 0);
}
END_TEST

START_TEST(inspection)
{
    struct rig rig;

    rig_init(&rig, 3);
    rig.params.terms.kind = RL_LEASE_INSPECT;
    rig_start(&rig);
    ck_assert_uint_eq(rig.fx.request, 0x7);
    ck_assert_uint_eq(rig.lease.round.verb, RL_VERB_GET);
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.fx.flags, 0); /* all are heard */
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
    tcase_add_test(tcase, a_majority_holds);
    tcase_add_test(tcase, no_patience_means_one_attempt);
    tcase_add_test(tcase, retries_use_up_the_patience);
    tcase_add_test(tcase, a_silent_attempt_ends_with_the_patience);
    tcase_add_test(tcase, waiting_for_ever);
    tcase_add_test(tcase, a_pause_of_nothing_is_not_the_end);
    tcase_add_test(tcase, retries_of_one_tick_part);
    tcase_add_loop_test(tcase, final_errors, 0, 2);
    tcase_add_test(tcase, refusals_are_waited_for);
    tcase_add_test(tcase, duplicates_end_it);
    tcase_add_test(tcase, a_grant_that_comes_too_late);
    tcase_add_test(tcase, the_last_look_before_telling);
    tcase_add_test(tcase, cancelled);
    tcase_add_test(tcase, adoption);
    tcase_add_test(tcase, inspection);
    return suite_run(suite);
}
