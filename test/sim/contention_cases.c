/* SPDX-License-Identifier: MIT
 * The cases that the rules of contention were made for, each with bounds that follow from what it
 * has set up. test/mutations/rules.txt says which rule is needed for which of them. */
#include "contention.h"

#include <string.h>

/* Timers ask again after at most so long, wherever nobody is told. */
#define POLL_MIN_NS (100 * RL_MS)
#define POLL_MAX_NS (300 * RL_MS)
/* Who was never denied takes it so long, before it lets others in and learns of them. */
#define ROW_MAX_NS RL_SECOND

/* From a release to the next holder: the delete, the push, one question to the first node, one to
 * the others. */
static uint64_t handover_ns(const struct sim_plan *plan)
{
    return 3 * sim_contention_trip_ns(plan);
}

/* One holder after the other. */
static uint64_t cycle_ns(const struct sim_plan *plan)
{
    return plan->contention->hold_ns + handover_ns(plan);
}

/* Each hand-over is a lottery among all who wait. After so many of them, one of a million waiters
 * has never won: n * ln(1000000) is less than 14 n. */
static uint64_t lottery_ns(const struct sim_plan *plan, uint64_t turn_ns)
{
    return ROW_MAX_NS + 14 * plan->clients * turn_ns;
}

/* An attempt by timer asks all nodes at once. It can split the votes only if it falls into a
 * hand-over, and each waiter makes one in POLL_MIN_NS at the most. Of 1000 grants: twice as many,
 * as it takes two for it. */
static uint64_t splits(const struct sim_plan *plan)
{
    return 2 * 1000 * plan->clients * handover_ns(plan) / POLL_MIN_NS + 10;
}

static void fault(struct sim_plan *plan, enum sim_fault_kind kind, unsigned client, unsigned node,
                  uint64_t at_ns)
{
    plan->faults[plan->fault_count++] = (struct sim_fault){
        .kind = (uint8_t)kind,
        .client = (uint8_t)client,
        .node = (uint8_t)node,
        .at_ns = at_ns,
        .for_ns = plan->span_ns - at_ns,
    };
}

/* Everybody is woken at once. */
static void set_up_contention(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 32;
    contention->bounds.splits = splits(plan);
    contention->bounds.half_ns = handover_ns(plan);
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan));
}

static void set_up_storm(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 100;
    contention->bounds.splits = splits(plan);
    contention->bounds.half_ns = handover_ns(plan);
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan));
}

/* Over a long way a little difference decides who is first, every time: whoever is farther from the
 * servers, or is told later, must have his turn all the same. A lottery gives each the same share,
 * one in so many draws. */
static void set_up_uneven(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 32;
    plan->span_ns = 40 * RL_SECOND;
    plan->delay_ns = 5 * RL_MS;
    contention->spread_ns = 20 * RL_US;
    contention->hold_ns = 0;
    contention->bounds.half_ns = handover_ns(plan);
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan));
    contention->bounds.jain_min = 700;
}

/* The holder's next SET would always be right behind its own delete. */
static void set_up_monopoly(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 3;
    contention->bounds.share_max = 500;
    contention->bounds.share_min = 200;
}

/* Locks that are held for long: of a client that was never denied, nobody would see the end. It
 * pauses after a row, and whoever waits gets it then: of 300 seeds 11 had to wait for that (1.013 s
 * at most), one for six holds, all others for one or two. */
static void set_up_long_held(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 2;
    plan->span_ns = 20 * RL_SECOND;
    contention->hold_ns = 100 * RL_MS;
    contention->bounds.longest_ns = ROW_MAX_NS + 2 * cycle_ns(plan);
}

/* Everybody is denied by the node that all ask first, and nobody is told of anything: until they
 * have seen that what it denies is granted by all others. */
static void set_up_orphan(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 4;
    contention->orphans = (uint8_t)(1u << sim_contention_order()[0]);
    contention->bounds.grants_min = plan->span_ns / 2 / cycle_ns(plan);
    contention->bounds.longest_ns = lottery_ns(plan, POLL_MAX_NS);
}

/* It tells of a release so late that a timer is sooner. Clients meet now and then only: each time
 * they would have to learn again that it is of no use. */
static void set_up_slow(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 3;
    plan->span_ns = 60 * RL_SECOND;
    contention->hold_ns = 20 * RL_MS;
    contention->think_ns = RL_SECOND;
    contention->slow = sim_contention_order()[0];
    contention->slow_ns = 100 * RL_MS;
    /* A wait for one of two others comes to half of its hold and a hand-over; it is met in
     * so many of all cases. */
    uint64_t others_ns = 2 * contention->hold_ns;
    contention->bounds.average_ns =
        2 * sim_contention_trip_ns(plan) +
        (contention->hold_ns + handover_ns(plan)) * others_ns / (contention->think_ns / 2);
}

/* Some cannot reach the node that the others ask first. */
static void set_up_cut_off(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 6;
    fault(plan, SIM_STALL, 0, sim_contention_order()[0], 100 * RL_MS);
    fault(plan, SIM_STALL, 1, sim_contention_order()[0], 100 * RL_MS);
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan)) + POLL_MAX_NS;
}

/* It stops without a word, and the user has said that it may be silent for that long. */
static void set_up_hung(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->span_ns = 8 * RL_SECOND;
    plan->node_timeout_ns = 4 * RL_SECOND;
    contention->think_ns = 50 * RL_MS;
    fault(plan, SIM_HANG, 0, sim_contention_order()[0], 100 * RL_MS);
    contention->bounds.longest_ns = 8 * POLL_MAX_NS; /* nobody is told of anything meanwhile */
}

static void set_up_dead(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 8;
    fault(plan, SIM_CRASH, 0, sim_contention_order()[0], 100 * RL_MS);
    contention->bounds.longest_ns = POLL_MAX_NS + lottery_ns(plan, cycle_ns(plan));
}

/* "Not there", says the node that all ask first: it cannot store anything. */
static void set_up_full(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 4;
    contention->hold_ns = 20 * RL_MS;
    fault(plan, SIM_FULL, 0, sim_contention_order()[0], 100 * RL_MS);
    contention->bounds.attempts = 1000 * (2 + plan->clients);
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan));
}

/* Who pauses after split votes is too late for each hand-over: the others do not pause. */
static void set_up_slow_work(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 8;
    plan->span_ns = 10 * RL_SECOND;
    contention->hold_ns = 20 * RL_MS;
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan));
}

/* Half of them asks another node first, for they know the nodes under other names. */
static void set_up_disagreed(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 16;
    contention->dialects = 2;
    contention->bounds.half_ns = handover_ns(plan);
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan));
    contention->bounds.splits = 1000;
}

/* Users of one client come one after the other, and leave the other client its half. */
static void set_up_inside(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 2;
    plan->slots = contention->first_slots = 15;
    contention->hold_ns = 5 * RL_MS;
    contention->bounds.share_min = 300; /* a half of what comes after the first second */
    contention->bounds.longest_ns = ROW_MAX_NS + 2 * plan->slots * cycle_ns(plan);
}

static void set_up_waiting(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 2;
    plan->span_ns = 10 * RL_SECOND; /* for three, a timer may do by luck */
    contention->hold_ns = 5 * RL_MS;
    contention->bounds.half_ns = handover_ns(plan);
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan));
}

static void set_up_lost_pushes(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 4;
    plan->lost_notification = 500;
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan)) + POLL_MAX_NS;
}

/* They poll, and do not care who asks whom first. */
static void set_up_foreign(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 8;
    contention->foreign = 4;
    contention->bounds.longest_ns = lottery_ns(plan, cycle_ns(plan)) + POLL_MAX_NS;
    contention->bounds.splits = splits(plan) + 1000;
}
const struct sim_case sim_cases[] = {
    {"contenders", set_up_contention},
    {"storm", set_up_storm},
    {"uneven", set_up_uneven},
    {"monopoly", set_up_monopoly},
    {"long-held", set_up_long_held},
    {"orphan", set_up_orphan},
    {"slow", set_up_slow},
    {"cut-off", set_up_cut_off},
    {"hung", set_up_hung},
    {"dead", set_up_dead},
    {"full", set_up_full},
    {"disagreed", set_up_disagreed},
    {"inside", set_up_inside},
    {"waiting", set_up_waiting},
    {"lost-pushes", set_up_lost_pushes},
    {"foreign", set_up_foreign},
    {"slow-work", set_up_slow_work},
};
const unsigned sim_case_count = sizeof sim_cases / sizeof sim_cases[0];
