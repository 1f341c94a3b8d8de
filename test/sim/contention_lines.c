/* SPDX-License-Identifier: MIT
 * The cases of contention that concern lines. Their bounds apply to clients that use lines; R is
 * the average round trip. test/mutations/rules.txt names the rule without which a case leaves its
 * bounds.
 *
 * Most cases have the distances of two data centers, 5 ms each way, and no hold time, so that the
 * hand-over is all that takes time. */
#include "contention.h"

/* A waiter that is no head looks at the line at least this often. */
#define LOOK_MAX_NS (1250 * RL_MS)

/* Returns R. */
static uint64_t trip_ns(const struct sim_plan *plan)
{
    return sim_contention_average_trip_ns(plan) + plan->clients * plan->contention->spread_ns;
}

/* Returns the average time from a grant of a line to the next one: the hold; the delete and the
 * notification, which take one round trip; the attempt, which takes another one. */
static uint64_t cycle_ns(const struct sim_plan *plan)
{
    return plan->contention->hold_ns + 2 * trip_ns(plan);
}

/* Sets up `clients` contenders at a distance of 5 ms, for `rounds` grants to each of them. */
static void set_up_crowd(struct sim_plan *plan, struct sim_contention *contention, unsigned clients,
                         unsigned rounds)
{
    plan->clients = clients;
    plan->delay_ns = 5 * RL_MS;
    contention->hold_ns = 0;
    plan->span_ns = RL_SECOND + rounds * clients * cycle_ns(plan);
    contention->rounds = rounds;
}

/* Sets bounds: of the median hand-over time in tenths of R, of the longest wait, and of Jain's
 * index of 1000. The others are the same in most cases: one attempt and at most three notifications
 * for each grant. At first no client knows of the others: one attempt of each is denied or splits
 * the votes. */
static void expect(const struct sim_plan *plan, struct sim_contention *contention,
                   unsigned tenths_of_trip, uint64_t longest_ns, unsigned jain)
{
    contention->line_bounds = (struct sim_bounds){
        .median_ns = tenths_of_trip * trip_ns(plan) / 10,
        .longest_ns = longest_ns,
        .jain_min = jain,
        .splits = 20 + 1000 / contention->rounds,
        .attempts = 1150 + 2000 / contention->rounds,
        .notifications = 3000,
        .commands = 16000 + 120000 / contention->rounds,
    };
}

/* Sets the bounds of a line that nothing disturbs: 2.1 R and equal shares, in order of arrival. */
static void expect_order(const struct sim_plan *plan, struct sim_contention *contention)
{
    expect(plan, contention, 21, 3 * RL_SECOND / 10 + 12 * plan->clients * cycle_ns(plan) / 10,
           990);
    contention->line_bounds.p99_ns = 41 * trip_ns(plan) / 10;
    contention->in_order = true;
}

/* Sets the bounds of clients that wait without a line: each of them is notified of each release,
 * and asks. */
static void expect_no_line(const struct sim_plan *plan, struct sim_contention *contention)
{
    expect(plan, contention, 33, 12 * RL_SECOND, 850);
    contention->line_bounds.splits = 250;
    contention->line_bounds.attempts = 1100 * plan->clients;
    contention->line_bounds.notifications = 1050 * plan->clients;
    contention->line_bounds.commands = 3600 * plan->clients;
}

/* Two clients. */
static void set_up_2(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 2, 100);
    expect_order(plan, contention);
}

/* A few clients. */
static void set_up_8(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 8, 40);
    expect_order(plan, contention);
}

/* Some dozens of clients. */
static void set_up_32(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 32, 20);
    expect_order(plan, contention);
}

/* More clients than processors of one machine. */
static void set_up_128(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 128, 8);
    expect_order(plan, contention);
}

/* As many clients as a case may have. */
static void set_up_256(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 256, 5);
    expect_order(plan, contention);
}

/* Each client is 20 us farther away than the one before. */
static void set_up_apart(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->spread_ns = 20 * RL_US;
    set_up_crowd(plan, contention, 128, 8);
    expect_order(plan, contention);
}

/* In one of 100 turns, the head stops for 0.5 to 1.5 s. */
static void set_up_pausing(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->pausing = 10;
    set_up_crowd(plan, contention, 32, 40);
    expect(plan, contention, 21, 7 * RL_SECOND, 980);
}

/* In one of 100 turns, the head dies, and a new client begins. */
static void set_up_dying(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->dying = 10;
    set_up_crowd(plan, contention, 32, 40);
    expect(plan, contention, 21, 7 * RL_SECOND / 2, 990);
}

/* The process of the preferred node is stopped for 2 s. */
static void set_up_stopped(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 32, 20);
    sim_contention_fault(plan, SIM_HANG, 0, sim_contention_order()[0], 2 * RL_SECOND,
                         2 * RL_SECOND);
    expect(plan, contention, 21, 2 * RL_SECOND + LOOK_MAX_NS, 950);
}

/* The preferred node is restarted, with its data. */
static void set_up_restarted(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 32, 20);
    sim_contention_fault(plan, SIM_CRASH, 0, sim_contention_order()[0], 2 * RL_SECOND, 500 * RL_MS);
    expect(plan, contention, 21, 5 * RL_SECOND, 940);
}

/* The preferred node has no memory for 2 s. */
static void set_up_no_room(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 32, 20);
    sim_contention_fault(plan, SIM_FULL, 0, sim_contention_order()[0], 2 * RL_SECOND,
                         2 * RL_SECOND);
    expect(plan, contention, 21, 3 * RL_SECOND, 940);
}

/* The preferred node is too old for the script of the line, or the user may not use GETEX. The next
 * node keeps the line. */
static void set_up_no_getex(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->no_getex = (uint8_t)(1u << sim_contention_order()[0]);
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 2 * RL_SECOND, 990);
}

/* No node can keep lines. */
static void set_up_all_old(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->no_getex = 31;
    set_up_crowd(plan, contention, 32, 20);
    expect_no_line(plan, contention);
}

/* The user may not publish on the preferred node. The next node keeps the line. */
static void set_up_no_publish(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->no_publish = (uint8_t)(1u << sim_contention_order()[0]);
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 2 * RL_SECOND, 990);
}

/* The user may not subscribe to its turns on the preferred node. With 60 seeds there are 681 to 685
 * grants, and 640 to 646 if no such waiter becomes a head. */
static void set_up_no_turns(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->no_turns = (uint8_t)(1u << sim_contention_order()[0]);
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 3 * RL_SECOND, 900);
    contention->line_bounds.grants_min = 665;
}

/* A quarter of the clients cannot reach the preferred node for 3 s. */
static void set_up_partitioned(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 32, 20);
    for (unsigned i = 0; i < 8; i++)
        sim_contention_fault(plan, SIM_STALL, i, sim_contention_order()[0], 2 * RL_SECOND,
                             3 * RL_SECOND);
    expect(plan, contention, 21, 11 * RL_SECOND / 2, 830);
    contention->line_bounds.splits = 250;
    contention->line_bounds.attempts = 1700;
}

/* Half of the clients know the nodes under other names, and prefer another node. */
static void set_up_two_orders(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->name_groups = 2;
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 2 * RL_SECOND, 980);
    contention->line_bounds.splits = 320;
    contention->line_bounds.attempts = 2300;
    contention->line_bounds.notifications = 3500;
    contention->line_bounds.commands = 32000;
}

/* One of 20 notifications is lost. */
static void set_up_lost(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->lost_notification = 50;
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 15 * RL_SECOND / 2, 985);
}

/* One of 20 notifications of a change comes before the change. */
static void set_up_early(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->early = 50;
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 2 * RL_SECOND, 990);
}

/* All keys of the preferred node are removed, again and again. */
static void set_up_flushed(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 32, 20);
    for (unsigned i = 1; i <= 10; i++)
        sim_contention_fault(plan, SIM_EVICT, 0, sim_contention_order()[0], i * 500 * RL_MS, 0);
    expect(plan, contention, 21, 15 * RL_SECOND / 2, 920);
}

/* One of ten contenders is a foreign client. */
static void set_up_pollers(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->foreign = 13;
    set_up_crowd(plan, contention, 128, 8);
    expect(plan, contention, 42, 19 * RL_SECOND / 2, 970);
    contention->line_bounds.attempts = 3000;
    contention->line_bounds.notifications = 4500;
    contention->line_bounds.commands = 55000;
}

/* The preferred node has the key of a client that has died. */
static void set_up_dead_key(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->orphans = (uint8_t)(1u << sim_contention_order()[0]);
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 42, 19 * RL_SECOND / 2, 980);
    contention->line_bounds.commands = 28000;
}

/* The same, and the next node has no memory for keys. */
static void set_up_two_wrong(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->orphans = (uint8_t)(1u << sim_contention_order()[0]);
    set_up_crowd(plan, contention, 8, 40);
    contention->hold_ns = 100 * RL_MS;
    plan->span_ns = 15 * RL_SECOND;
    sim_contention_fault(plan, SIM_FULL, 0, sim_contention_order()[1], 2 * RL_SECOND,
                         10 * RL_SECOND);
    expect(plan, contention, 32, 5 * RL_SECOND / 2, 990);
    contention->line_bounds.attempts = 2500;
    contention->line_bounds.splits = 80;
    contention->line_bounds.commands = 35000;
}

/* Three waiters join again and again and never acquire. Only the waiter behind a head notices soon
 * that the head makes no request, so several of them in a row take longer than one. */
static void set_up_idlers(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->idlers = 3;
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 4 * RL_SECOND, 990);
}

/* A key of a user has the name of the line. */
static void set_up_named(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->lines_taken = (uint8_t)(1u << sim_contention_order()[0]);
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 2 * RL_SECOND, 990);
}

/* Each grant has a fencing token. */
static void set_up_fenced(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->fenced = true;
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 32, 3 * RL_SECOND, 980);
    contention->line_bounds.commands = 32000;
}

/* All clients have several users that contend for the same lock. */
static void set_up_users(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->users = contention->first_users = 8;
    set_up_crowd(plan, contention, 8, 40);
    expect(plan, contention, 21, 3 * RL_SECOND, 990);
}

/* Each client acquires once and ends, and a new one begins. */
static void set_up_fresh(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->fresh = true;
    set_up_crowd(plan, contention, 32, 20);
    expect(plan, contention, 21, 8 * RL_SECOND, 500);
    contention->line_bounds.splits = 350;
    contention->line_bounds.attempts = 2300;
    contention->line_bounds.commands = 32000;
}

/* Locks that are held for so long that the waiters look at the line several times meanwhile. The
 * head makes requests then, and keeps its place. */
static void set_up_held(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 4, 5);
    contention->hold_ns = 3 * RL_SECOND;
    contention->think_ns = 200 * RL_MS;
    plan->span_ns = 40 * RL_SECOND;
    expect(plan, contention, 21, 5 * cycle_ns(plan), 900);
    /* A head asks all nodes by its timer, whether they are free or not. */
    contention->line_bounds.splits = 0; /* no bound */
    contention->line_bounds.attempts = 1000 * contention->hold_ns / (150 * RL_MS);
    contention->line_bounds.commands = 13 * contention->line_bounds.attempts;
    contention->line_bounds.notifications = 6000;
    contention->in_order = true;
}

/* Each client is 10 ms farther away than the one before, so that a near one could take a far head
 * for idle. */
static void set_up_far(struct sim_plan *plan, struct sim_contention *contention)
{
    contention->spread_ns = 10 * RL_MS;
    set_up_crowd(plan, contention, 8, 40);
    expect(plan, contention, 21, 5 * RL_SECOND / 2, 990);
    contention->in_order = true;
}

/* Half of the clients die at once, and new ones begin. Nobody listens for the turns of the old
 * ones. */
static void set_up_killed(struct sim_plan *plan, struct sim_contention *contention)
{
    set_up_crowd(plan, contention, 32, 20);
    plan->ttl_ns = RL_SECOND;
    for (unsigned i = 0; i < 16; i++)
        sim_contention_fault(plan, SIM_KILL, i, 0, 2 * RL_SECOND, 0);
    expect(plan, contention, 21, 3 * RL_SECOND, 990);
}

/* The clients contend for four permits of one semaphore. Up to four heads search at the same time,
 * and one head would leave free slots unused meanwhile. The time to the next holder includes a
 * probe of the slots. A waiter that has joined before it could be notified waits no longer than the
 * others. The other bounds are measured with 100 seeds, plus a margin. */
static void set_up_permits(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->permits = SIM_PERMITS_MAX;
    plan->permit = 1000;
    set_up_crowd(plan, contention, 16, 60);
    contention->hold_ns = 10 * RL_MS;
    plan->span_ns = 10 * RL_SECOND;
    expect(plan, contention, 31, RL_SECOND / 2, 990);
    contention->line_bounds.p99_ns = 72 * trip_ns(plan) / 10;
    contention->line_bounds.grants_min = 850;
    contention->line_bounds.splits = 30;
    contention->line_bounds.attempts = 2700;
    contention->line_bounds.notifications = 6200;
    contention->line_bounds.commands = 31000;
}

/* Each client acquires one to three of three keys at once, others each time. It waits in the line
 * of one key at a time, so two of them may each be the head of a line and split the votes. The
 * median is that of a line which nothing disturbs. The other bounds are measured with 100 seeds,
 * plus a margin; without lines, no seed is within those of the longest wait, grants and attempts.
 */
static void set_up_several(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->resources = SIM_RESOURCES_MAX;
    plan->many = 750;
    set_up_crowd(plan, contention, 16, 70);
    plan->span_ns = 20 * RL_SECOND;
    expect(plan, contention, 21, 3 * RL_SECOND, 975);
    contention->line_bounds.p99_ns = 90 * trip_ns(plan) / 10;
    contention->line_bounds.grants_min = 1060;
    contention->line_bounds.splits = 220;
    contention->line_bounds.attempts = 1900;
    contention->line_bounds.notifications = 2500;
    contention->line_bounds.commands = 24500;
}

const struct sim_case sim_line_cases[] = {
    {"crowd-2", set_up_2},
    {"crowd-8", set_up_8},
    {"crowd-32", set_up_32},
    {"crowd-128", set_up_128},
    {"crowd-256", set_up_256},
    {"apart", set_up_apart},
    {"pausing", set_up_pausing},
    {"dying", set_up_dying},
    {"stopped", set_up_stopped},
    {"restarted", set_up_restarted},
    {"no-room", set_up_no_room},
    {"no-getex", set_up_no_getex},
    {"all-old", set_up_all_old},
    {"no-publish", set_up_no_publish},
    {"no-turns", set_up_no_turns},
    {"partitioned", set_up_partitioned},
    {"two-orders", set_up_two_orders},
    {"lost", set_up_lost},
    {"early", set_up_early},
    {"flushed", set_up_flushed},
    {"pollers", set_up_pollers},
    {"dead-key", set_up_dead_key},
    {"two-wrong", set_up_two_wrong},
    {"idlers", set_up_idlers},
    {"named", set_up_named},
    {"fenced", set_up_fenced},
    {"users", set_up_users},
    {"fresh", set_up_fresh},
    {"held", set_up_held},
    {"far", set_up_far},
    {"killed", set_up_killed},
    {"permits", set_up_permits},
    {"several", set_up_several},
};
const unsigned sim_line_case_count = sizeof sim_line_cases / sizeof sim_line_cases[0];
