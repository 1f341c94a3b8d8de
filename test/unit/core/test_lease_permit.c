/* SPDX-License-Identifier: MIT
 * A lease on one of several slots: which slot it tries, its probes of the others, and what starts
 * the next attempt. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

#define ALL     0x1fu
#define FIRST   2 /* by rank; then 4, 0, 3, 1 */
#define PERMITS 4

static struct rig rig;
static struct rl_contention contention;
static uint8_t ranks[5];

static void setup(void)
{
    static const uint64_t scores[] = {30, 10, 50, 20, 40};

    rl_contention_init(&contention, ranks, 5, scores);
    rig_init(&rig, 5);
    rig.params.wait_ns = RL_NEVER;
    rig.params.terms.permits = PERMITS;
    rig.view.notifying = ALL;
}

static void begin(void)
{
    rig_new_lease(&rig);
    rig.lease.contention = &contention;
    rig_event(&rig, RL_EVENT_START);
}

static unsigned slot(void)
{
    return rig.lease.permit->slot;
}

static void deny_all(void)
{
    for (unsigned i = 0; i < 3; i++)
        rig_deny(&rig, i);
}

static void tell(unsigned node, unsigned about, enum rl_vote vote, uint64_t pttl_ms)
{
    rig_report_ttl(&rig, node, about, vote, pttl_ms);
}

/* The answers to a look at all, of the node that was asked: `free`, bit by bit. */
static void tell_all(unsigned free, uint64_t pttl_ms)
{
    uint32_t round = rig.lease.round.number;
    unsigned node = (unsigned)__builtin_ctz(rig.lease.wait.tracked);

    for (unsigned i = 0; i < rig.params.terms.permits && rig.lease.round.number == round; i++)
        tell(node, i, (free >> i & 1) != 0 ? RL_VOTE_DENIED : RL_VOTE_GRANTED, pttl_ms);
}

static void wait_in_vain(void)
{
    begin();
    deny_all();
    tell_all(0, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}

static void sleep_until_due(void)
{
    rig_pass(&rig, rl_sub_sat(rig.lease.wake_ns, rig.view.now.boot_ns));
    rig_tick(&rig);
}

static void sleep_until_asked(void)
{
    for (unsigned i = 0; rig.lease.state == RL_STATE_WAITING; i++) {
        ck_assert_uint_lt(i, 100);
        sleep_until_due();
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}

START_TEST(any_slot_is_as_good)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < 200; i++) {
        rig.params.salt = i;
        begin();
        ck_assert_uint_eq(rig.fx.request, ALL);
        ck_assert_uint_lt(slot(), PERMITS);
        seen |= 1u << slot();
    }
    ck_assert_uint_eq(seen, (1u << PERMITS) - 1);
}
END_TEST

START_TEST(one_that_is_free_is_found)
{
    begin();
    unsigned free = (slot() + 2) % PERMITS;
    deny_all();
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_WAITING, 0); /* it is no waiting yet */
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.slots, (1u << PERMITS) - 1);
    tell_all(1u << free, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(slot(), free);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    ck_assert_uint_ne(rig.fx.flags & RL_FX_ATTEMPT, 0);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(slot(), free);
}
END_TEST

/* Whoever is too late for one tries the next without asking again; the one that is left is not
 * tried twice. */
START_TEST(too_late_for_one_tries_another)
{
    begin();
    unsigned taken = slot(), tried = 1u << taken;
    deny_all();
    tell_all(~(1u << taken), 5000);
    for (unsigned i = 0; i < PERMITS - 1; i++) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
        ck_assert_uint_eq(tried >> slot() & 1, 0);
        tried |= 1u << slot();
        rig_deny(&rig, FIRST);
        ck_assert_uint_eq(rig.fx.flags & RL_FX_WAITING, 0);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(tried, (1u << PERMITS) - 1);
    /* Those that were tried since are asked about again: they are to be watched. */
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    ck_assert_int_eq(__builtin_popcountll(rig.fx.slots), PERMITS - 1);
}
END_TEST

START_TEST(waits_for_word_of_a_slot)
{
    wait_in_vain();
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    rig_wake(&rig, RL_NODE(0), 3); /* it was not asked to */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_wake(&rig, RL_NODE(FIRST), PERMITS); /* another client counts more of them */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_wake(&rig, RL_NODE(FIRST), 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(slot(), 3);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_deny(&rig, FIRST); /* somebody was faster: watched again, and waited on */
    ck_assert_uint_eq(rig.fx.undo, 0);
    ck_assert_int_eq(__builtin_popcountll(rig.fx.slots), 1);
    tell(FIRST, 3, RL_VOTE_GRANTED, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
}
END_TEST

START_TEST(word_that_comes_during_an_attempt)
{
    wait_in_vain();
    rig_wake(&rig, RL_NODE(FIRST), 1);
    ck_assert_uint_eq(slot(), 1);
    rig_wake(&rig, RL_NODE(FIRST), 2);
    ck_assert_uint_eq(slot(), 1);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(slot(), 2);
}
END_TEST

/* After a reconnection nothing that was asked before is worth anything. */
START_TEST(any_may_have_changed)
{
    wait_in_vain();
    rig_wake(&rig, RL_NODE(FIRST), RL_SLOT_ANY);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.slots, (1u << PERMITS) - 1);
    tell_all(1u << 2, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(slot(), 2);
}
END_TEST

START_TEST(one_that_expires)
{
    begin();
    deny_all();
    for (unsigned i = 0; i < PERMITS; i++)
        tell(FIRST, i, RL_VOTE_GRANTED, i == 1 ? 20 : 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    uint64_t begun_ns = rig.view.now.boot_ns;
    sleep_until_asked();
    ck_assert_uint_eq(slot(), 1);
    ck_assert_uint_ge(rig.view.now.boot_ns - begun_ns, 20 * RL_MS);
    ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, 22 * RL_MS);
}
END_TEST

/* The first node may be wrong: the timer takes the slots in turn, on all nodes at once. */
START_TEST(the_timer_tries_them_in_turn)
{
    unsigned tried = 0;

    wait_in_vain();
    for (unsigned i = 0; i < PERMITS; i++) {
        uint64_t begun_ns = rig.view.now.boot_ns;
        sleep_until_asked();
        ck_assert_uint_ge(rig.view.now.boot_ns - begun_ns, 80 * RL_MS);
        ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, 300 * RL_MS);
        ck_assert_uint_eq(rig.fx.request, ALL);
        tried |= 1u << slot();
        deny_all();
        ck_assert_uint_eq(rig.fx.slots, (1u << PERMITS) - 1); /* words may have been lost */
        tell_all(0, 5000);
    }
    ck_assert_uint_eq(tried, (1u << PERMITS) - 1);
}
END_TEST

/* A first node that does not answer costs two round trips; then each is tried once. */
START_TEST(first_node_is_silent)
{
    unsigned tried = 0;

    begin();
    tried |= 1u << slot();
    deny_all();
    tell(FIRST, slot(), RL_VOTE_GRANTED, 5000);
    sleep_until_due();
    for (unsigned i = 1; i < PERMITS; i++) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
        ck_assert_uint_eq(tried >> slot() & 1, 0);
        tried |= 1u << slot();
        rig_pass(&rig, 2 * RL_MS);
        rig_tick(&rig); /* the others are asked, too */
        rig_deny(&rig, 0);
        rig_deny(&rig, 1);
        rig_deny(&rig, 3);
    }
    ck_assert_uint_eq(tried, (1u << PERMITS) - 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    sleep_until_due();
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
}
END_TEST

START_TEST(the_look_fails)
{
    begin();
    deny_all();
    for (unsigned i = 0; i < PERMITS; i++)
        tell(FIRST, i, RL_VOTE_FAILED, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* No memory for a place, so nobody to ask first. */
START_TEST(nobody_to_ask)
{
    unsigned tried = 0;

    rig_new_lease(&rig);
    rig_event(&rig, RL_EVENT_START);
    for (unsigned i = 0; i < PERMITS; i++) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
        ck_assert_uint_eq(tried >> slot() & 1, 0);
        tried |= 1u << slot();
        deny_all();
        ck_assert_uint_eq(rig.fx.probe, 0);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
    sleep_until_asked();
}
END_TEST

/* Answers each look with "taken", of all slots, until there are no more. Returns how many slots
 * were looked at, and marks them in `probed`, which may be NULL. */
static unsigned tell_taken(bool *looked)
{
    unsigned count = 0;

    while (rig.lease.state == RL_STATE_WAITING && rig.fx.slots != 0) {
        const unsigned node = (unsigned)__builtin_ctz(rig.fx.probe);
        for (uint64_t rest = rig.fx.slots; rest != 0; rest &= rest - 1, count++) {
            const unsigned at = rl_permit_slot(&rig.lease, (unsigned)__builtin_ctzll(rest));
            if (looked != NULL)
                looked[at] = true;
            tell(node, at, RL_VOTE_GRANTED, 50000);
        }
    }
    return count;
}

/* Without a wait budget each slot is tried once, or known to be taken. */
START_TEST(a_single_pass)
{
    rig.params.wait_ns = 0;
    begin();
    unsigned free = (slot() + 1) % PERMITS;
    deny_all();
    tell_all(1u << free | 1u << slot(), 5000);
    ck_assert_uint_eq(slot(), free);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(tell_taken(NULL), 2 * PERMITS); /* a majority says so */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 2);
}
END_TEST

START_TEST(a_single_pass_over_many)
{
    rig.params.wait_ns = 0;
    rig.params.terms.permits = 200;
    begin();
    deny_all();
    ck_assert_uint_eq(tell_taken(NULL), 3 * 4 * 64);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

/* Of more slots than can be watched together the timer watches others each time, and comes to all
 * of them. */
START_TEST(many_slots_in_turn)
{
    bool tried[200] = {false}, looked[200] = {false};

    rig.params.terms.permits = 200;
    begin();
    deny_all();
    ck_assert_uint_eq(tell_taken(NULL), 4 * 64); /* the first pass, without a pause */
    for (unsigned i = 0; i < 4 * 64; i++) {
        sleep_until_asked();
        tried[slot()] = true;
        deny_all();
        ck_assert_uint_eq(tell_taken(looked), 64);
    }
    for (unsigned i = 0; i < 200; i++) {
        ck_assert_msg(tried[i], "slot %u was never tried", i);
        ck_assert_msg(looked[i], "slot %u was never looked at", i);
    }
}
END_TEST

/* Two clients that split the votes of a slot stay apart for a while. */
START_TEST(split)
{
    begin();
    unsigned mine = slot();
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    rig_deny(&rig, 4);
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(0) | RL_NODE(2));
    ck_assert_uint_eq(rl_contention_splits(&contention), 1);
    tell_all(1u << mine, 5000);
    if (rig.lease.wait.start_ns > rig.view.now.boot_ns) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        sleep_until_asked();
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(slot(), mine);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

START_TEST(a_taken_slot_is_no_contention)
{
    begin();
    deny_all();
    ck_assert(!rl_contention_is_recent(&contention, rig.view.now.boot_ns));
    tell_all(0, 5000);
    ck_assert(rl_contention_is_recent(&contention, rig.view.now.boot_ns)); /* more than permits */
}
END_TEST

/* What this client let go itself nobody tells it; others have had a chance before. */
START_TEST(let_go_by_this_client)
{
    wait_in_vain();
    contention.yield_until_ns = rig.view.now.boot_ns + 3 * RL_MS;
    rig_wake(&rig, 0, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_pass(&rig, 4 * RL_MS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(slot(), 1);
}
END_TEST

START_TEST(begins_where_it_is_likely_to_be_free)
{
    for (unsigned i = 0; i < 50; i++) {
        setup();
        rig.params.salt = i;
        rl_contention_slot_held(&contention, 0, true);
        rl_contention_slot_held(&contention, 3, true);
        begin();
        ck_assert(slot() == 1 || slot() == 2);
        rl_contention_slot_held(&contention, 3, false);
        begin();
        ck_assert_uint_eq(slot(), 3);
        begin(); /* only once */
        ck_assert_uint_ne(slot(), 0);
        rl_contention_slot_held(&contention, 1, true);
        rl_contention_slot_held(&contention, 2, true);
        rl_contention_slot_held(&contention, 3, true);
        begin(); /* as far as it knows there is none */
        ck_assert_uint_lt(slot(), PERMITS);
    }
}
END_TEST

/* A first node that has lost the keys says that all are free: it is believed three times. */
START_TEST(misled)
{
    begin();
    deny_all();
    for (unsigned i = 0; rig.lease.wait.tracked == RL_NODE(FIRST); i++) {
        ck_assert_uint_lt(i, 10);
        if (rig.lease.state == RL_STATE_WAITING && rig.lease.permit->probed != 0)
            tell_all(0xf, 0);
        if (rig.lease.state == RL_STATE_WAITING)
            sleep_until_asked();
        rig_grant(&rig, FIRST);
        rig_deny(&rig, 0);
        rig_deny(&rig, 1);
        rig_deny(&rig, 4);
    }
    ck_assert_uint_eq(contention.skipped, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.lease.wait.tracked, RL_NODE(4));
}
END_TEST

START_TEST(the_budget_ends)
{
    for (unsigned silent = 0; silent < 2; silent++) {
        setup();
        rig.params.wait_ns = 700 * RL_MS;
        begin();
        uint64_t begun_ns = rig.view.now.boot_ns;
        for (unsigned i = 0; rig.lease.state != RL_STATE_ENDED; i++) {
            ck_assert_uint_lt(i, 200);
            if (rig.lease.state == RL_STATE_ACQUIRING)
                deny_all();
            else if (rig.lease.permit->probed != 0 && !silent)
                tell_all(0, 5000);
            else
                sleep_until_due();
        }
        ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
        ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, 710 * RL_MS);
        ck_assert_uint_ge(rig.view.now.boot_ns - begun_ns, 600 * RL_MS);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {any_slot_is_as_good,
                                  one_that_is_free_is_found,
                                  too_late_for_one_tries_another,
                                  waits_for_word_of_a_slot,
                                  word_that_comes_during_an_attempt,
                                  any_may_have_changed,
                                  one_that_expires,
                                  the_timer_tries_them_in_turn,
                                  first_node_is_silent,
                                  the_look_fails,
                                  nobody_to_ask,
                                  a_single_pass,
                                  a_single_pass_over_many,
                                  many_slots_in_turn,
                                  split,
                                  a_taken_slot_is_no_contention,
                                  let_go_by_this_client,
                                  begins_where_it_is_likely_to_be_free,
                                  misled,
                                  the_budget_ends};
    Suite *suite = suite_create("core_lease_permit");
    TCase *tc = tcase_create("permit");

    tcase_add_checked_fixture(tc, setup, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
