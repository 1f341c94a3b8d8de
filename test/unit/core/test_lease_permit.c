/* SPDX-License-Identifier: MIT
 * A lease on one of several slots: which slot it tries, its probes of the others, and what starts
 * the next attempt.
 *
 * Uses lease_rig.h: one lease in virtual time. The test passes events to it: rig_grant(),
 * rig_deny() and rig_fail() are votes in the running round, rig_tick() is a timer that is due.
 * rig_pass() only advances the clocks. rig.fx holds the effects of the last step. */
#include "core/lease.h"

#include "lease_rig.h"
#include "suite.h"

#define ALL     0x1fu
#define FIRST   2 /* the preferred node; the order of the nodes is 2, 4, 0, 3, 1 */
#define PERMITS 4

static struct rig rig;
static struct rl_contention contention;
static uint8_t ranks[5];

/* Prepares a lease on one of four slots, without a limit of waiting. */
static void setup(void)
{
    static const uint64_t scores[] = {30, 10, 50, 20, 40};

    rl_contention_init(&contention, ranks, 5, scores);
    rig_init(&rig, 5);
    rig.params.wait_ns = RL_NEVER;
    rig.params.terms.permits = PERMITS;
    rig.view.notifying = ALL;
}

/* Starts a new lease that shares the contention state of the resource. */
static void begin(void)
{
    rig_new_lease(&rig);
    rig.lease.contention = &contention;
    rig_event(&rig, RL_EVENT_START);
}

/* Returns the slot that the lease tries or holds. */
static unsigned current_slot(void)
{
    return rig.lease.permit->slot;
}

/* Lets a majority deny the running attempt. */
static void deny_all(void)
{
    for (unsigned i = 0; i < 3; i++)
        rig_deny(&rig, i);
}

/* Passes the reply of `node` to a probe of slot `about`: GRANTED if it is taken, DENIED if not. */
static void report_slot(unsigned node, unsigned about, enum rl_vote vote, uint64_t pttl_ms)
{
    rig_report_ttl(&rig, node, about, vote, pttl_ms);
}

/* Passes the replies of the tracking node to probes of all slots. Bit i of `free`: slot i is free.
 */
static void report_slots(unsigned free, uint64_t pttl_ms)
{
    uint32_t round = rig.lease.round.number;
    unsigned node = (unsigned)__builtin_ctz(rig.lease.wait.tracked);

    for (unsigned i = 0; i < rig.params.terms.permits && rig.lease.round.number == round; i++)
        report_slot(node, i, (free >> i & 1) != 0 ? RL_VOTE_DENIED : RL_VOTE_GRANTED, pttl_ms);
}

/* Starts a lease that finds all slots taken and waits. */
static void find_no_free_slot(void)
{
    begin();
    deny_all();
    report_slots(0, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
}

/* Advances time to the lease's next due time and runs its timer. */
static void sleep_until_due(void)
{
    rig_pass(&rig, rl_sub_sat(rig.lease.wake_ns, rig.view.now.boot_ns));
    rig_tick(&rig);
}

/* Advances time until the lease starts its next attempt. */
static void sleep_until_next_attempt(void)
{
    for (unsigned i = 0; rig.lease.state == RL_STATE_WAITING; i++) {
        ck_assert_uint_lt(i, 100);
        sleep_until_due();
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}

START_TEST(the_first_slot_is_chosen_at_random)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < 200; i++) {
        rig.params.salt = i;
        begin();
        ck_assert_uint_eq(rig.fx.request, ALL);
        ck_assert_uint_lt(current_slot(), PERMITS);
        seen |= 1u << current_slot();
    }
    ck_assert_uint_eq(seen, (1u << PERMITS) - 1);
}
END_TEST

START_TEST(a_free_slot_is_found_by_a_probe)
{
    begin();
    unsigned free = (current_slot() + 2) % PERMITS;
    deny_all();
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.flags & RL_FX_WAITING, 0); /* it probes before it waits */
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    ck_assert_uint_eq(rig.fx.slots, (1u << PERMITS) - 1);
    report_slots(1u << free, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), free);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    ck_assert_uint_ne(rig.fx.flags & RL_FX_ATTEMPT, 0);
    rig_grant(&rig, FIRST);
    ck_assert_uint_eq(rig.fx.request, ALL & ~RL_NODE(FIRST));
    rig_grant(&rig, 0);
    rig_grant(&rig, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_HELD);
    ck_assert_uint_eq(current_slot(), free);
}
END_TEST

/* A client that is too late for one slot tries the next without another probe. The slot of the
 * first attempt is not tried again. */
START_TEST(each_slot_reported_free_is_tried_once)
{
    begin();
    unsigned taken = current_slot(), tried = 1u << taken;
    deny_all();
    report_slots(~(1u << taken), 5000);
    for (unsigned i = 0; i < PERMITS - 1; i++) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
        ck_assert_uint_eq(tried >> current_slot() & 1, 0);
        tried |= 1u << current_slot();
        rig_deny(&rig, FIRST);
        ck_assert_uint_eq(rig.fx.flags & RL_FX_WAITING, 0);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(tried, (1u << PERMITS) - 1);
    /* The slots that were tried are probed again, so that the node tracks them. */
    ck_assert_uint_eq(rig.fx.probe, RL_NODE(FIRST));
    ck_assert_int_eq(__builtin_popcountll(rig.fx.slots), PERMITS - 1);
}
END_TEST

START_TEST(a_notification_names_the_slot_to_try)
{
    find_no_free_slot();
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    rig_wake(&rig, RL_NODE(0), 3); /* a node that does not track for this lease */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_wake(&rig, RL_NODE(FIRST), PERMITS); /* a slot that only other clients count */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_wake(&rig, RL_NODE(FIRST), 3);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), 3);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
    rig_deny(&rig, FIRST); /* another client was faster: the slot is probed again */
    ck_assert_uint_eq(rig.fx.undo, 0);
    ck_assert_int_eq(__builtin_popcountll(rig.fx.slots), 1);
    report_slot(FIRST, 3, RL_VOTE_GRANTED, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
}
END_TEST

START_TEST(a_notification_during_an_attempt_is_kept)
{
    find_no_free_slot();
    rig_wake(&rig, RL_NODE(FIRST), 1);
    ck_assert_uint_eq(current_slot(), 1);
    rig_wake(&rig, RL_NODE(FIRST), 2);
    ck_assert_uint_eq(current_slot(), 1);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), 2);
}
END_TEST

/* A reconnected server has lost its tracking, so all slots may have changed. */
START_TEST(after_a_reconnection_all_slots_are_probed)
{
    find_no_free_slot();
    rig_wake(&rig, RL_NODE(FIRST), RL_SLOT_ANY);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(rig.fx.slots, (1u << PERMITS) - 1);
    report_slots(1u << 2, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), 2);
}
END_TEST

START_TEST(a_slot_is_tried_when_its_key_expires)
{
    begin();
    deny_all();
    for (unsigned i = 0; i < PERMITS; i++)
        report_slot(FIRST, i, RL_VOTE_GRANTED, i == 1 ? 20 : 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    uint64_t begun_ns = rig.view.now.boot_ns;
    sleep_until_next_attempt();
    ck_assert_uint_eq(current_slot(), 1);
    ck_assert_uint_ge(rig.view.now.boot_ns - begun_ns, 20 * RL_MS);
    ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, 22 * RL_MS);
}
END_TEST

/* The preferred node may be wrong, so the timer tries the slots on all nodes at once. */
START_TEST(the_timer_tries_the_slots_in_turn)
{
    unsigned tried = 0;

    find_no_free_slot();
    for (unsigned i = 0; i < PERMITS; i++) {
        uint64_t begun_ns = rig.view.now.boot_ns;
        sleep_until_next_attempt();
        ck_assert_uint_ge(rig.view.now.boot_ns - begun_ns, 80 * RL_MS);
        ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, 300 * RL_MS);
        ck_assert_uint_eq(rig.fx.request, ALL);
        tried |= 1u << current_slot();
        deny_all();
        ck_assert_uint_eq(rig.fx.slots, (1u << PERMITS) - 1); /* notifications may be lost */
        report_slots(0, 5000);
    }
    ck_assert_uint_eq(tried, (1u << PERMITS) - 1);
}
END_TEST

/* If the preferred node does not reply, each slot is tried after two round trips, once. */
START_TEST(without_replies_of_the_preferred_node_each_slot_is_tried)
{
    unsigned tried = 0;

    begin();
    tried |= 1u << current_slot();
    deny_all();
    report_slot(FIRST, current_slot(), RL_VOTE_GRANTED, 5000);
    sleep_until_due();
    for (unsigned i = 1; i < PERMITS; i++) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
        ck_assert_uint_eq(tried >> current_slot() & 1, 0);
        tried |= 1u << current_slot();
        rig_pass(&rig, 2 * RL_MS);
        rig_tick(&rig); /* asks the other nodes, too */
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

START_TEST(a_failed_probe_starts_the_next_attempt)
{
    begin();
    deny_all();
    for (unsigned i = 0; i < PERMITS; i++)
        report_slot(FIRST, i, RL_VOTE_FAILED, 0);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* Without memory for the contention state there is no preferred node. */
START_TEST(without_a_contention_state_each_slot_is_tried)
{
    unsigned tried = 0;

    rig_new_lease(&rig);
    rig_event(&rig, RL_EVENT_START);
    for (unsigned i = 0; i < PERMITS; i++) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
        ck_assert_uint_eq(tried >> current_slot() & 1, 0);
        tried |= 1u << current_slot();
        deny_all();
        ck_assert_uint_eq(rig.fx.probe, 0);
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert_uint_ne(rig.fx.flags & RL_FX_WAITING, 0);
    sleep_until_next_attempt();
}
END_TEST

/* Replies "taken" to each probe until there are no more. Returns how many slots were probed, and
 * marks them in `probed`, which may be NULL. */
static unsigned report_all_taken(bool *probed)
{
    unsigned count = 0;

    while (rig.lease.state == RL_STATE_WAITING && rig.fx.slots != 0) {
        const unsigned node = (unsigned)__builtin_ctz(rig.fx.probe);
        for (uint64_t rest = rig.fx.slots; rest != 0; rest &= rest - 1, count++) {
            const unsigned at = rl_permit_slot(&rig.lease, (unsigned)__builtin_ctzll(rest));
            if (probed != NULL)
                probed[at] = true;
            report_slot(node, at, RL_VOTE_GRANTED, 50000);
        }
    }
    return count;
}

/* A call that is about to end waits for other nodes as long as they do not count as failed: a busy
 * one may be the first to show that a slot is free. */
START_TEST(without_a_wait_budget_late_replies_count)
{
    rig.params.wait_ns = 0;
    begin();
    unsigned free = (current_slot() + 1) % PERMITS;
    deny_all();
    report_slots(0, 5000);
    unsigned failed = (unsigned)__builtin_ctz(rig.fx.probe);
    rig_pass(&rig, 900 * RL_MS);
    rig_tick(&rig);
    for (unsigned i = 0; i < PERMITS; i++)
        report_slot(failed, i, RL_VOTE_FAILED, 0);
    unsigned late = (unsigned)__builtin_ctz(rig.fx.probe);
    ck_assert_uint_ne(late, failed);
    rig_pass(&rig, 900 * RL_MS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    report_slots(1u << free, 5000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), free);
    ck_assert_uint_eq(rig.fx.request, ALL);
}
END_TEST

/* Without a wait budget, each slot is tried once or reported as taken by a majority. */
START_TEST(without_a_wait_budget_a_majority_reports_each_slot)
{
    rig.params.wait_ns = 0;
    begin();
    unsigned free = (current_slot() + 1) % PERMITS;
    deny_all();
    report_slots(1u << free | 1u << current_slot(), 5000);
    ck_assert_uint_eq(current_slot(), free);
    rig_deny(&rig, FIRST);
    ck_assert_uint_eq(report_all_taken(NULL), 2 * PERMITS); /* two more nodes are asked */
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_int_eq(rig.fx.status, REDLOCK_ECONTENDED);
    ck_assert_uint_eq(rig.lease.attempts, 2);
}
END_TEST

START_TEST(a_single_attempt_probes_many_slots_in_windows)
{
    rig.params.wait_ns = 0;
    rig.params.terms.permits = 200;
    begin();
    deny_all();
    ck_assert_uint_eq(report_all_taken(NULL), 3 * 4 * 64);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ENDED);
    ck_assert_uint_eq(rig.lease.attempts, 1);
}
END_TEST

/* More slots than can be tracked together: the timer tracks other slots each time, until all had
 * their turn. */
START_TEST(the_timer_reaches_all_of_many_slots)
{
    bool tried[200] = {false}, probed[200] = {false};

    rig.params.terms.permits = 200;
    begin();
    deny_all();
    ck_assert_uint_eq(report_all_taken(NULL), 4 * 64); /* the first pass, without a pause */
    for (unsigned i = 0; i < 4 * 64; i++) {
        sleep_until_next_attempt();
        tried[current_slot()] = true;
        deny_all();
        ck_assert_uint_eq(report_all_taken(probed), 64);
    }
    for (unsigned i = 0; i < 200; i++) {
        ck_assert_msg(tried[i], "slot %u was never tried", i);
        ck_assert_msg(probed[i], "slot %u was never probed", i);
    }
}
END_TEST

/* After a split vote the lease may pause, and then asks the preferred node first. */
START_TEST(a_split_vote_delays_the_next_attempt)
{
    begin();
    unsigned mine = current_slot();
    rig_grant(&rig, 0);
    rig_deny(&rig, 1);
    rig_deny(&rig, 3);
    rig_deny(&rig, 4);
    ck_assert_uint_eq(rig.fx.undo, RL_NODE(0) | RL_NODE(2));
    ck_assert_uint_eq(contention.splits, 1);
    report_slots(1u << mine, 5000);
    if (rig.lease.wait.start_ns > rig.view.now.boot_ns) {
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        sleep_until_next_attempt();
    }
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), mine);
    ck_assert_uint_eq(rig.fx.request, RL_NODE(FIRST));
}
END_TEST

/* The preferred node has no memory: it refuses our key, as it has refused that of the holder, and
 * says of the slot that there is no key. Its replies to probes must not cause attempt after
 * attempt. */
START_TEST(a_slot_that_only_one_node_shows_as_free_is_tried_once)
{
    for (unsigned refuses = 0; refuses < 2; refuses++) {
        begin();
        unsigned mine = current_slot();
        if (refuses != 0)
            rig_fail(&rig, FIRST);
        else
            rig_grant(&rig, FIRST);
        rig_deny(&rig, 0);
        rig_deny(&rig, 1);
        rig_deny(&rig, 3);
        report_slots(1u << mine, 5000);
        ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
        ck_assert(!rig.lease.permit->searching);
        sleep_until_next_attempt(); /* by the timer */
        ck_assert_uint_eq(rig.fx.request, ALL);
        contention.splits = 0;
    }
}
END_TEST

/* Two slots are free on the preferred node alone, and other waiters who split the votes there
 * notify this one with their undos. It must not try these two for ever: another slot is free on all
 * the other nodes, which only an attempt for a slot chosen in turn can show. */
START_TEST(undos_of_other_waiters_put_off_no_slot_chosen_in_turn)
{
    begin();
    uint64_t begun_ns = rig.view.now.boot_ns;
    for (unsigned i = 0; rig.fx.request != ALL || i == 0; i++) {
        ck_assert_uint_lt(i, 2000);
        if (rig.lease.state == RL_STATE_ACQUIRING) {
            rig_wake(&rig, RL_NODE(FIRST), (current_slot() + 1) % PERMITS);
            rig_grant(&rig, FIRST);
            rig_deny(&rig, 0);
            rig_deny(&rig, 1);
            rig_deny(&rig, 3);
        } else if (rig.lease.permit->probed != 0) {
            report_slots(0, 5000);
        } else {
            rig_wake(&rig, RL_NODE(FIRST), (current_slot() + 1) % PERMITS);
            rig_pass(&rig, RL_MS);
            rig_tick(&rig);
        }
    }
    ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, 350 * RL_MS);
}
END_TEST

/* Nor do searches that find nothing: each reconnection of the preferred node begins one. */
START_TEST(searches_put_off_no_slot_chosen_in_turn)
{
    find_no_free_slot();
    uint64_t begun_ns = rig.view.now.boot_ns;
    for (unsigned i = 0; rig.lease.state == RL_STATE_WAITING; i++) {
        ck_assert_uint_lt(i, 100);
        rig_pass(&rig, 10 * RL_MS);
        rig_tick(&rig);
        if (rig.lease.state != RL_STATE_WAITING)
            break;
        rig_wake(&rig, RL_NODE(FIRST), RL_SLOT_ANY);
        report_slots(0, 5000);
    }
    ck_assert_uint_eq(rig.fx.request, ALL);
    ck_assert_uint_le(rig.view.now.boot_ns - begun_ns, 350 * RL_MS);
}
END_TEST

/* No attempt for a slot chosen in turn is planned after one that has failed for another reason than
 * a denial. */
START_TEST(a_failure_is_followed_by_a_pause)
{
    rig.params.terms.backoff.min_ns = rig.params.terms.backoff.max_ns = 50 * RL_MS;
    begin();
    for (unsigned i = 0; i < 3; i++)
        rig_fail(&rig, i);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    uint64_t begun_ns = rig.view.now.boot_ns;
    sleep_until_next_attempt();
    ck_assert_uint_ge(rig.view.now.boot_ns - begun_ns, 50 * RL_MS);
}
END_TEST

/* The head of a semaphore's line makes requests, whatever the backoff: else it would count as idle.
 */
START_TEST(a_head_does_not_pause_for_long)
{
    const struct rl_line_reply reply = {.place = 1, .length = 1, .is_head = true, .head = 1};
    struct rl_event event = {
        .kind = RL_EVENT_VOTE,
        .ballot = {.node = FIRST, .vote = RL_VOTE_GRANTED, .verb = RL_VERB_LINE_JOIN},
        .line = &reply,
    };

    rig.params.terms.backoff.min_ns = rig.params.terms.backoff.max_ns = 5 * RL_SECOND;
    rig.view.lines = ALL;
    rl_contention_note(&contention, rig.view.now.boot_ns);
    begin();
    ck_assert_uint_eq(rig.fx.line, RL_VERB_LINE_JOIN);
    event.ballot.round = rig.lease.round.number;
    rig_step(&rig, &event);
    report_slots(0, 60000);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    ck_assert(!rig.lease.permit->searching);
    ck_assert_uint_le(rl_remaining_ns(rig.lease.next, rig.view.now), 300 * RL_MS);
}
END_TEST

START_TEST(one_taken_slot_is_no_contention)
{
    begin();
    deny_all();
    ck_assert(!rl_contention_is_recent(&contention, rig.view.now.boot_ns));
    report_slots(0, 5000);
    ck_assert(rl_contention_is_recent(&contention, rig.view.now.boot_ns)); /* more than permits */
}
END_TEST

/* Servers do not notify a client of its own releases, so the client wakes its waiter itself, after
 * the pause for other contenders. */
START_TEST(a_release_by_this_client_yields_first)
{
    find_no_free_slot();
    contention.yield_until_ns = rig.view.now.boot_ns + 3 * RL_MS;
    rig_wake(&rig, 0, 1);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_WAITING);
    rig_pass(&rig, 4 * RL_MS);
    rig_tick(&rig);
    ck_assert_uint_eq(rig.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(current_slot(), 1);
}
END_TEST

START_TEST(the_first_slot_is_one_that_is_likely_to_be_free)
{
    for (unsigned i = 0; i < 50; i++) {
        setup();
        rig.params.salt = i;
        rl_contention_slot_held(&contention, 0, true);
        rl_contention_slot_held(&contention, 3, true);
        begin();
        ck_assert(current_slot() == 1 || current_slot() == 2);
        rl_contention_slot_held(&contention, 3, false);
        begin();
        ck_assert_uint_eq(current_slot(), 3);
        begin(); /* the released slot is preferred once */
        ck_assert_uint_ne(current_slot(), 0);
        rl_contention_slot_held(&contention, 1, true);
        rl_contention_slot_held(&contention, 2, true);
        rl_contention_slot_held(&contention, 3, true);
        begin(); /* this client holds all slots: any is tried */
        ck_assert_uint_lt(current_slot(), PERMITS);
    }
}
END_TEST

START_TEST(waiting_ends_with_the_budget)
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
                report_slots(0, 5000);
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
    const TTest *const tests[] = {the_first_slot_is_chosen_at_random,
                                  a_free_slot_is_found_by_a_probe,
                                  each_slot_reported_free_is_tried_once,
                                  a_notification_names_the_slot_to_try,
                                  a_notification_during_an_attempt_is_kept,
                                  after_a_reconnection_all_slots_are_probed,
                                  a_slot_is_tried_when_its_key_expires,
                                  the_timer_tries_the_slots_in_turn,
                                  without_replies_of_the_preferred_node_each_slot_is_tried,
                                  a_failed_probe_starts_the_next_attempt,
                                  without_a_contention_state_each_slot_is_tried,
                                  without_a_wait_budget_late_replies_count,
                                  without_a_wait_budget_a_majority_reports_each_slot,
                                  a_single_attempt_probes_many_slots_in_windows,
                                  the_timer_reaches_all_of_many_slots,
                                  a_split_vote_delays_the_next_attempt,
                                  a_slot_that_only_one_node_shows_as_free_is_tried_once,
                                  undos_of_other_waiters_put_off_no_slot_chosen_in_turn,
                                  searches_put_off_no_slot_chosen_in_turn,
                                  a_failure_is_followed_by_a_pause,
                                  a_head_does_not_pause_for_long,
                                  one_taken_slot_is_no_contention,
                                  a_release_by_this_client_yields_first,
                                  the_first_slot_is_one_that_is_likely_to_be_free,
                                  waiting_ends_with_the_budget};
    Suite *suite = suite_create("core_lease_permit");
    TCase *tc = tcase_create("permit");

    tcase_add_checked_fixture(tc, setup, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
