/* SPDX-License-Identifier: MIT
 * The common cases of contention, for clients with lines and without. Most bounds follow from the
 * settings of a case; those of clients without lines are partly measured. test/mutations/rules.txt
 * names the rule of the library without which each case leaves its bounds. */
#include "contention.h"

#include <string.h>

/* Without notifications, a waiter's timer starts an attempt after at most this time. */
#define POLL_MIN_NS (100 * RL_MS)
#define POLL_MAX_NS (300 * RL_MS)
/* A waiter that is no head looks at the line at least this often; at the second look it removes a
 * head that has sent nothing since the first one. */
#define LOOK_MAX_NS (1250 * RL_MS)
/* For at most this time, a client that was never denied acquires the lock again and again. Then it
 * pauses, and other contenders get the lock. */
#define ROW_MAX_NS RL_SECOND

/* Returns the longest time from a release to the next grant: the delete, the notification, one
 * request to the preferred node, one to the others. */
static uint64_t handover_ns(const struct sim_plan *plan)
{
    return 3 * sim_contention_trip_ns(plan);
}

/* Returns the same without lines: all waiters are notified, and each begins after a random delay of
 * up to one round trip. */
static uint64_t fallback_handover_ns(const struct sim_plan *plan)
{
    return handover_ns(plan) + sim_contention_trip_ns(plan);
}

/* Returns the time between two grants in a row. */
static uint64_t cycle_ns(const struct sim_plan *plan)
{
    return plan->contention->hold_ns + handover_ns(plan);
}

/* Returns a bound for the longest wait if each hand-over picks one of the n waiters at random.
 * After n * ln(1000000) hand-overs, which is less than 14 n, one of a million waiters has never
 * won. */
static uint64_t random_turns_ns(const struct sim_plan *plan, uint64_t turn_ns)
{
    return ROW_MAX_NS + 14 * plan->clients * turn_ns;
}

/* Returns a bound for split votes per 1000 grants. An attempt by timer requests all nodes at once.
 * It can split the votes only during a hand-over, and each waiter starts one in POLL_MIN_NS at
 * most. The bound is twice that number, because a split takes two attempts. */
static uint64_t splits(const struct sim_plan *plan)
{
    return 2 * 1000 * plan->clients * handover_ns(plan) / POLL_MIN_NS + 10;
}

/* Plans a fault that lasts to the end of the run. */
static void fault(struct sim_plan *plan, enum sim_fault_kind kind, unsigned client, unsigned node,
                  uint64_t at_ns)
{
    sim_contention_fault(plan, kind, client, node, at_ns, plan->span_ns - at_ns);
}

/* All contenders are notified at once. */
static void set_up_contention(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 32;
    contention->bounds.splits = splits(plan);
    contention->bounds.median_ns = handover_ns(plan);
    contention->bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
    contention->fallback_bounds.splits = 50;
    contention->fallback_bounds.jain_min = 900;
}

/* The same with as many clients as a case may have. */
static void set_up_storm(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 100;
    contention->bounds.splits = splits(plan);
    contention->bounds.median_ns = handover_ns(plan);
    contention->bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
    contention->fallback_bounds.splits = 50;
    contention->fallback_bounds.jain_min = 800;
}

/* Clients at a long distance from the servers, each a little farther away than the one before. The
 * nearest client would be first every time. The others must get the lock as well. */
static void set_up_uneven(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 32;
    plan->span_ns = 40 * RL_SECOND;
    plan->delay_ns = 5 * RL_MS;
    contention->spread_ns = 20 * RL_US;
    contention->hold_ns = 0;
    contention->line_bounds.median_ns = handover_ns(plan);
    contention->line_bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
    contention->line_bounds.jain_min = 980;
    /* The random delay gives far clients fewer turns than near ones. */
    contention->fallback_bounds.median_ns = fallback_handover_ns(plan);
    contention->fallback_bounds.longest_ns = 35 * RL_SECOND;
    contention->fallback_bounds.jain_min = 600;
    contention->fallback_bounds.share_min = 1;
}

/* Clients that acquire again right after a release. The holder's next SET would always be the first
 * one after its own delete; it must not get all grants. */
static void set_up_monopoly(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 3;
    contention->bounds.share_max = 500;
    contention->bounds.share_min = 200;
}

/* Two clients that hold the lock for long. A client that was never denied would acquire again and
 * again. It pauses after ROW_MAX_NS, and the waiter gets the lock then, or after one or two holds
 * in most cases. */
static void set_up_long_held(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 2;
    plan->span_ns = 20 * RL_SECOND;
    contention->hold_ns = 100 * RL_MS;
    contention->bounds.longest_ns = ROW_MAX_NS + 2 * cycle_ns(plan);
}

/* The preferred node has a key that is never released: it denies every request and sends no
 * notification. The contenders of a line must find out that all other nodes grant. Without a line,
 * only attempts by timer succeed. */
static void set_up_orphan(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 4;
    contention->orphans = (uint8_t)(1u << sim_contention_order()[0]);
    contention->line_bounds.grants_min = plan->span_ns / 2 / cycle_ns(plan);
    contention->line_bounds.longest_ns = random_turns_ns(plan, POLL_MAX_NS);
    contention->fallback_bounds.grants_min = plan->span_ns / POLL_MIN_NS;
    contention->fallback_bounds.longest_ns = 7 * POLL_MAX_NS;
}

/* The preferred node is slow: its notification of a release arrives later than a timer. Clients
 * contend only now and then, and must remember meanwhile that its notifications are late. */
static void set_up_slow(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 3;
    plan->span_ns = 60 * RL_SECOND;
    contention->hold_ns = 20 * RL_MS;
    contention->think_ns = RL_SECOND;
    contention->slow = sim_contention_order()[0];
    contention->slow_ns = 100 * RL_MS;
    /* A wait for one of two others takes half of its hold and a hand-over, on average. It occurs in
     * this share of all acquisitions. */
    uint64_t others_ns = 2 * contention->hold_ns;
    contention->bounds.average_ns =
        2 * sim_contention_trip_ns(plan) +
        (contention->hold_ns + handover_ns(plan)) * others_ns / (contention->think_ns / 2);
}

/* Some clients cannot reach the preferred node from some time on: they may be its heads then, and a
 * key of theirs may stay there. */
static void set_up_cut_off(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 6;
    plan->span_ns = 10 * RL_SECOND;
    fault(plan, SIM_STALL, 0, sim_contention_order()[0], 100 * RL_MS);
    fault(plan, SIM_STALL, 1, sim_contention_order()[0], 100 * RL_MS);
    contention->bounds.longest_ns = 2 * LOOK_MAX_NS + POLL_MAX_NS;
    contention->line_bounds.jain_min = 700;
    contention->fallback_bounds.jain_min = 300; /* after a key has stayed, see set_up_orphan() */
}

/* The process of the preferred node is stopped, and the configured time limit lets it be without a
 * reply for longer than a wait may take. */
static void set_up_hung(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->span_ns = 8 * RL_SECOND;
    plan->node_timeout_ns = 4 * RL_SECOND;
    contention->think_ns = 50 * RL_MS;
    fault(plan, SIM_HANG, 0, sim_contention_order()[0], 100 * RL_MS);
    contention->line_bounds.longest_ns = 16 * POLL_MAX_NS; /* no client is notified meanwhile */
    /* Two attempts that have two votes each wait for that of the preferred node. */
    contention->fallback_bounds.longest_ns = plan->node_timeout_ns + POLL_MAX_NS;
    contention->fallback_bounds.jain_min = 970;
}

/* The preferred node crashes. */
static void set_up_dead(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 8;
    fault(plan, SIM_CRASH, 0, sim_contention_order()[0], 100 * RL_MS);
    contention->bounds.longest_ns = POLL_MAX_NS + random_turns_ns(plan, cycle_ns(plan));
}

/* The preferred node has no memory to store a key, but replies to probes that there is no key. */
static void set_up_full(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 4;
    contention->hold_ns = 20 * RL_MS;
    fault(plan, SIM_FULL, 0, sim_contention_order()[0], 100 * RL_MS);
    contention->bounds.attempts = 1000 * (2 + plan->clients);
    contention->bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
}

/* Locks that are held for some time. A client that pauses after split votes would be too late for
 * each hand-over, because the others do not pause. */
static void set_up_slow_work(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 8;
    plan->span_ns = 10 * RL_SECOND;
    contention->hold_ns = 20 * RL_MS;
    contention->bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
}

/* Half of the clients have another preferred node, because they know the nodes under other names.
 */
static void set_up_disagreed(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 16;
    contention->name_groups = 2;
    contention->bounds.median_ns = handover_ns(plan);
    contention->bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
    contention->bounds.splits = 1000;
}

/* Two clients with many users. The users of one client follow each other in its queue; the other
 * client must get its half of the grants. */
static void set_up_inside(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 2;
    plan->users = contention->first_users = 15;
    contention->hold_ns = 5 * RL_MS;
    contention->line_bounds.share_min = 300; /* half of the grants after the first second */
    /* A client that was never denied asks the line, and so needs no pause to notice the other. */
    contention->line_bounds.longest_ns = 2 * plan->users * cycle_ns(plan);
    /* The other client may miss one pause of a client that was never denied. */
    contention->fallback_bounds.share_min = 150;
    contention->fallback_bounds.longest_ns = 2 * ROW_MAX_NS + 2 * plan->users * cycle_ns(plan);
}

/* Two clients, one of which always waits: the notification, not the timer, starts its attempt. */
static void set_up_waiting(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 2;
    plan->span_ns = 10 * RL_SECOND; /* with three grants a timer could reach the bound by chance */
    contention->hold_ns = 5 * RL_MS;
    contention->bounds.median_ns = handover_ns(plan);
    contention->line_bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
    contention->fallback_bounds.longest_ns = ROW_MAX_NS + random_turns_ns(plan, cycle_ns(plan));
}

/* Half of all notifications are lost, those of turns included. A waiter finds out at its next look
 * that it is the head, and a head makes an attempt by its timer. Two waiters in a row may lose
 * their turns. */
static void set_up_lost_pushes(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 4;
    plan->lost_notification = 500;
    contention->bounds.longest_ns = 2 * LOOK_MAX_NS + POLL_MAX_NS;
}

/* Foreign clients, which poll and request all nodes at once, contend with the library's clients. */
static void set_up_foreign(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 8;
    contention->foreign = 4;
    contention->bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan)) + POLL_MAX_NS;
    contention->bounds.splits = splits(plan) + 1000;
}

/* Half of the clients use the line, and half do not. A head makes its attempt right after a
 * notification, while the others wait for a random time, so that they get few turns. */
static void set_up_mixed(struct sim_plan *plan, struct sim_contention *contention)
{
    plan->clients = 16;
    contention->lineless = plan->clients / 2;
    contention->bounds.median_ns = handover_ns(plan);
    contention->bounds.longest_ns = random_turns_ns(plan, cycle_ns(plan));
    contention->line_bounds.attempts = 11000; /* without any line: 16000 */
    contention->line_bounds.splits = 500;
    contention->line_bounds.share_min = 3;
    contention->line_bounds.jain_min = 500;
    contention->fallback_bounds.splits = 50;
    contention->fallback_bounds.jain_min = 900;
}

const struct sim_case sim_common_cases[] = {
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
    {"mixed", set_up_mixed},
};
const unsigned sim_common_case_count = sizeof sim_common_cases / sizeof sim_common_cases[0];
