/* SPDX-License-Identifier: MIT
 * Makes the plan of a seed. */
#include "plan.h"

#include <string.h>

#define SEED_BYTES 6000 /* length of the longest request, which seeds a whole fence record */

const char *const sim_fault_names[SIM_COUNTED] = {
    "stall",     "partition",    "one-way",      "disconnect", "crash",   "crash-empty",
    "hang",      "busy",         "script-flush", "full",       "evict",   "flush-all",
    "demote",    "promote",      "node-step",    "stop",       "suspend", "freeze",
    "kill",      "leave",        "no-memory",    "rate",       "shorten", "canceled",
    "late-turn", "seed-refused",
};

/* Returns which assumptions a fault of that kind breaks. */
static unsigned broken_assumptions(unsigned kind)
{
    switch (kind) {
    case SIM_FLUSH_ALL:
    case SIM_SHORTEN:
        return SIM_OUTSIDE_LOST_KEYS;
    case SIM_NODE_STEP:
        return SIM_OUTSIDE_STEP;
    case SIM_RATE:
        return SIM_OUTSIDE_RATE;
    case SIM_FREEZE: /* choose_correction() decides about most of them */
        return SIM_OUTSIDE_FREEZE;
    default:
        return 0;
    }
}

/* Returns the smaller one of two numbers. */
static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Chooses the numbers of nodes, clients, users and resources, and the duration of the run. */
static void choose_size(struct sim_plan *plan, struct sim_random *random)
{
    static const uint8_t nodes[] = {3, 3, 3, 5, 5, 5, 2, 4, 1, 7};

    plan->nodes = nodes[sim_below(random, sizeof nodes)];
    plan->clients = (unsigned)sim_between(random, 3, sim_chance(random, 200) ? SIM_CLIENTS_MAX : 4);
    plan->users = sim_chance(random, 250) ? 2 : 1;
    plan->resources = sim_chance(random, 700) ? 1 : (unsigned)sim_between(random, 2, 3);
    plan->rounds = (unsigned)sim_between(random, 3, 7);
    plan->ttl_ns = sim_scale(random, 100, 20000) * RL_MS;
    plan->span_ns = plan->ttl_ns * sim_between(random, 1, 4);
}

/* Returns the longest time of a round trip with the delay of the loops at both ends. */
static uint64_t trip_ns_of(const struct sim_plan *plan)
{
    return 8 * plan->delay_ns + 2 * plan->jitter_ns + 4 * plan->latency_ns;
}

/* Enlarges the window until the longest request, a whole fence record, gets through before its
 * reply is overdue. */
static void fit_window(struct sim_plan *plan)
{
    while (SEED_BYTES / plan->window * trip_ns_of(plan) / 2 > 200 * RL_MS)
        plan->window *= 2;
}

/* Chooses delays, windows, time limits, and errors of clocks. */
static void choose_times(struct sim_plan *plan, struct sim_random *random)
{
    static const uint32_t ppms[] = {10000, 10000, 10000, 1000, 50000};

    plan->delay_ns = least(sim_scale(random, 30, 5000) * RL_US, plan->ttl_ns / 100);
    plan->jitter_ns = sim_chance(random, 300) ? 0 : sim_below(random, 2 * plan->delay_ns);
    plan->latency_ns = sim_scale(random, 1, 300) * RL_US;
    plan->window = sim_chance(random, 700) ? 65536 : sim_scale(random, 300, 4000);
    /* A generator of its own, so that the plans of other runs do not change. */
    struct sim_random own = {plan->seed * 2 + 13};
    plan->read_max = sim_chance(&own, 500) ? 16384 : sim_scale(&own, 100, 1000);
    plan->drift.ppm = ppms[sim_below(random, sizeof ppms / sizeof ppms[0])];
    plan->drift.constant_us = 2000;
    /* One of two such clocks is at most (1 + a) / (1 - a) times as fast as the other, which is 1 +
     * d. */
    plan->ppm_max = (int64_t)plan->drift.ppm * 1000000 / (2000000 + plan->drift.ppm);
    plan->backoff.min_ns = sim_scale(random, 2, 50) * RL_MS;
    plan->backoff.max_ns = plan->backoff.min_ns * sim_scale(random, 2, 16);
    if (plan->backoff.max_ns < plan->span_ns / 100)
        plan->backoff.max_ns = plan->span_ns / 100;
    /* A limit below the round trip would make every node look dead. */
    uint64_t trip_ns = trip_ns_of(plan);
    plan->connect_timeout_ns = 250 * RL_MS;
    if (sim_chance(random, 400))
        plan->connect_timeout_ns = 8 * trip_ns + sim_scale(random, 20, 1000) * RL_MS;
    if (sim_chance(random, 300))
        plan->node_timeout_ns = 2 * trip_ns + sim_scale(random, 10, 300) * RL_MS;
    fit_window(plan);
    plan->early_expiry = sim_chance(random, 300);
}

/* Returns a probability of 1000: often 0, and small values as likely as large ones. */
static unsigned often(struct sim_random *random, unsigned max)
{
    return sim_chance(random, 400) ? 0 : (unsigned)sim_scale(random, 1, max);
}

/* Chooses how often users do what, and the settings of servers and clients. */
static void choose_habits(struct sim_plan *plan, struct sim_random *random)
{
    plan->has_password = sim_chance(random, 200);
    plan->has_db = sim_chance(random, 200);
    plan->wait_forever = (unsigned)sim_below(random, 1001);
    plan->wait_never = often(random, 500);
    plan->auto_extend = (unsigned)sim_below(random, 1001);
    plan->extend = often(random, 500);
    plan->cancel = often(random, 400);
    plan->detach = often(random, 300);
    plan->keep = often(random, 300);
    plan->lapse = often(random, 300);
    plan->inspect = often(random, 300);
    plan->split = often(random, 300);
    plan->late_turn = often(random, 20);
    plan->late_report = often(random, 200);
    plan->far_link = often(random, 400);
    plan->durable = sim_chance(random, 250);
    struct sim_random other = {plan->seed * 2 + 9};
    plan->wakeups = sim_chance(&other, 750);
    plan->lines = plan->seed % 4 != 0;
    plan->no_tracking = sim_chance(&other, 200) ? (uint8_t)sim_below(&other, 1u << plan->nodes) : 0;
    plan->heartbeat_ns = sim_between(random, plan->ttl_ns / 4, plan->ttl_ns) + 10 * RL_MS;
}

/* Adds locks of several resources to those of one, in some runs most of a client's locks. */
static void choose_many(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 11};

    if (!sim_chance(&own, 350))
        return;
    plan->many = (unsigned)sim_between(&own, 200, 900);
    plan->resources = (unsigned)sim_between(&own, 2, SIM_RESOURCES_MAX);
    if (sim_chance(&own, 400))
        plan->users = (unsigned)sim_between(&own, 2, 4);
}

/* Returns how long a fault of that kind lasts; 0: it happens at one moment. */
static uint64_t fault_length(const struct sim_plan *plan, struct sim_random *random, unsigned kind)
{
    uint64_t ttl_ns = plan->ttl_ns;

    switch (kind) {
    case SIM_DISCONNECT:
    case SIM_SCRIPT_FLUSH:
    case SIM_FLUSH_ALL:
    case SIM_SHORTEN:
    case SIM_EVICT:
    case SIM_PROMOTE:
    case SIM_KILL:
    case SIM_LEAVE:
    case SIM_NODE_STEP:
        return 0;
    case SIM_CRASH:
    case SIM_CRASH_EMPTY:
        return sim_scale(random, RL_MS, ttl_ns);
    default:
        return sim_scale(random, RL_MS, 2 * ttl_ns);
    }
}

/* Appends a fault of that kind with random parameters. */
static void choose_fault(struct sim_plan *plan, struct sim_random *random, unsigned kind)
{
    struct sim_fault *fault = &plan->faults[plan->fault_count++];
    uint64_t last_ns = plan->span_ns - plan->span_ns / 8;

    memset(fault, 0, sizeof *fault);
    fault->kind = (uint8_t)kind;
    fault->client = (uint8_t)sim_below(random, plan->clients);
    fault->node = (uint8_t)sim_below(random, plan->nodes);
    fault->clients = (uint8_t)sim_between(random, 1, (1u << plan->clients) - 1);
    fault->nodes = (uint8_t)sim_between(random, 1, (1u << plan->nodes) - 1);
    fault->way = (uint8_t)sim_below(random, 2);
    fault->at_ns = sim_below(random, last_ns);
    fault->for_ns = least(fault_length(plan, random, kind), plan->span_ns - fault->at_ns);
    fault->step_ns = (int64_t)sim_scale(random, 10 * RL_MS, 10 * plan->ttl_ns);
    if (sim_chance(random, 500))
        fault->step_ns = -fault->step_ns;
    if (kind != SIM_FREEZE)
        plan->env_faults |= broken_assumptions(kind);
    if (plan->durable && (kind == SIM_CRASH_EMPTY || kind == SIM_PROMOTE))
        plan->env_faults |= SIM_OUTSIDE_LOST_KEYS; /* the operator's attestation is wrong */
    if (kind == SIM_EVICT) { /* a minority, so that locks can be acquired on the others */
        fault->node = 0;
        plan->evicting = 1;
    }
}

/* Chooses a subset of the kinds of faults, and appends faults of these kinds. */
static void choose_faults(struct sim_plan *plan, struct sim_random *random)
{
    uint8_t kinds[SIM_KINDS];
    unsigned count = 0;
    bool within_assumptions = sim_chance(random, 850);

    while (count == 0) {
        for (unsigned kind = 0; kind < SIM_KINDS; kind++) {
            bool breaks = plan->durable && (kind == SIM_CRASH_EMPTY || kind == SIM_PROMOTE);
            if ((within_assumptions && (broken_assumptions(kind) != 0 || breaks)) ||
                (kind == SIM_EVICT && plan->nodes < 3))
                continue;
            if (sim_chance(random, 250))
                kinds[count++] = (uint8_t)kind;
        }
    }
    unsigned faults = (unsigned)sim_scale(random, 1, SIM_FAULTS_MAX);
    for (unsigned i = 0; i < faults; i++)
        choose_fault(plan, random, kinds[sim_below(random, count)]);
}

/* Returns whether the correction of the wall clock after this freeze is so large that the client
 * must count its locks as lost. */
bool sim_plan_is_noticed(const struct sim_plan *plan, const struct sim_fault *freeze)
{
    uint64_t slack_ns = plan->wall_slack_us * RL_US;

    /* The margin covers a wall clock that runs too slow. */
    return freeze->for_ns > slack_ns + slack_ns / 8 + RL_MS;
}

/* Chooses when the wall clock of a paused machine is set right: the host does it at once, a while
 * later, or never. */
static void choose_correction(struct sim_plan *plan, struct sim_random *random,
                              struct sim_fault *fault)
{
    uint64_t left_ns = plan->span_ns - fault->at_ns - fault->for_ns;

    if (sim_chance(random, 850))
        fault->correct_ns = 0;
    else if (sim_chance(random, 300))
        fault->correct_ns = UINT64_MAX;
    else
        fault->correct_ns = least(sim_scale(random, RL_US, plan->ttl_ns), left_ns);
    if (fault->correct_ns != 0 || !sim_plan_is_noticed(plan, fault))
        plan->env_faults |= SIM_OUTSIDE_FREEZE;
}

/* Chooses freezes, with a generator of its own, so that the rest of the run does not change. */
static void choose_freezes(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed ^ UINT64_C(0x5deece66d1234567)};
    uint64_t most_us = least(100 * RL_MS, plan->ttl_ns / 4) / RL_US;
    bool another = sim_chance(&own, 100) && plan->fault_count < SIM_FAULTS_MAX;

    plan->wall_slack_us = sim_scale(&own, 3000, most_us);
    if (another) {
        struct sim_fault *fault = &plan->faults[plan->fault_count++];
        uint64_t least_ns = plan->wall_slack_us * RL_US * 5 / 4 + 2 * RL_MS;
        memset(fault, 0, sizeof *fault);
        fault->kind = SIM_FREEZE;
        fault->client = (uint8_t)sim_below(&own, plan->clients);
        fault->at_ns = sim_below(&own, plan->span_ns - plan->span_ns / 8);
        fault->for_ns =
            least(sim_scale(&own, least_ns, 2 * plan->ttl_ns), plan->span_ns - fault->at_ns);
    }
    for (unsigned i = 0; i < plan->fault_count; i++) {
        if (plan->faults[i].kind == SIM_FREEZE)
            choose_correction(plan, &own, &plan->faults[i]);
    }
}

/* In runs with locks of several resources, chooses servers that lose one of the keys now and then
 * and report that they evict. Uses a generator of its own. */
static void choose_evictions(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 13};

    if (plan->many == 0 || plan->nodes < 3 || !sim_chance(&own, 300))
        return;
    for (unsigned left = 4; left > 0 && plan->fault_count < SIM_FAULTS_MAX; left--) {
        struct sim_fault *fault = &plan->faults[plan->fault_count++];
        memset(fault, 0, sizeof *fault);
        fault->kind = SIM_EVICT;
        fault->nodes = (uint8_t)sim_below(&own, plan->resources);
        fault->at_ns = sim_below(&own, plan->span_ns - plan->span_ns / 8);
    }
    plan->evicting = 1;
}

/* Appends faults of a minority of the servers, which refuse locks for a while, and of one server of
 * the others, which then loses its keys: a lock that is acquired meanwhile is on a bare majority,
 * and this server is part of it. */
static void choose_bare_majority(struct sim_plan *plan, struct sim_random *random)
{
    unsigned first = (unsigned)sim_below(random, plan->nodes);
    unsigned minority = (plan->nodes - 1) / 2;
    uint64_t for_ns = sim_between(random, plan->ttl_ns / 20, plan->ttl_ns / 3);

    for (unsigned i = 0; i <= minority; i++) {
        struct sim_fault *fault = &plan->faults[plan->fault_count++];
        memset(fault, 0, sizeof *fault);
        fault->kind = i < minority ? SIM_FULL : SIM_CRASH_EMPTY;
        fault->node = (uint8_t)((first + i) % plan->nodes);
        fault->at_ns = i < minority ? 0 : for_ns;
        fault->for_ns = i < minority ? for_ns : sim_scale(random, RL_MS, plan->ttl_ns / 20);
    }
}

/* Chooses processes that die during attempts, and whose tokens are adopted. Most of these runs have
 * no other faults than bare majorities, and users who hold their locks for long. Uses a generator
 * of its own. */
static void choose_supervisors(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 811};

    if (!sim_chance(&own, 150))
        return;
    plan->die = (unsigned)sim_between(&own, 50, 500);
    if (plan->durable || plan->ttl_ns < RL_SECOND || sim_chance(&own, 300))
        return;
    plan->auto_extend /= 4;
    plan->lapse = (unsigned)sim_between(&own, 400, 900);
    plan->fault_count = plan->env_faults = plan->evicting = 0;
    choose_bare_majority(plan, &own);
}

/* Chooses third parties that shorten keys whose holders extend on request again and again. Uses a
 * generator of its own. */
static void choose_third_parties(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 31};

    if (!sim_chance(&own, 80))
        return;
    plan->env_faults |= SIM_OUTSIDE_LOST_KEYS;
    plan->extend = (unsigned)sim_between(&own, 300, 800);
    for (unsigned left = (unsigned)sim_between(&own, 1, 6);
         left > 0 && plan->fault_count < SIM_FAULTS_MAX; left--) {
        struct sim_fault *fault = &plan->faults[plan->fault_count++];
        memset(fault, 0, sizeof *fault);
        fault->kind = SIM_SHORTEN;
        fault->node = (uint8_t)sim_below(&own, plan->nodes);
        fault->way = (uint8_t)sim_below(&own, 2);
        fault->at_ns = sim_below(&own, plan->span_ns - plan->span_ns / 8);
    }
}

/* Chooses how often locks are fenced. */
static void choose_fences(struct sim_plan *plan, struct sim_random *random)
{
    plan->fence = sim_chance(random, 500) ? 0 : (unsigned)sim_between(random, 300, 1000);
    for (unsigned i = 0; i < plan->fault_count; i++)
        plan->fences_env =
            plan->fences_env || (plan->durable && plan->faults[i].kind == SIM_PROMOTE);
}

/* Chooses how many requests of a first start are refused. The first start then breaks off, with
 * some records in use, or none. */
static void choose_refusals(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 27};

    if (plan->fence != 0 && sim_chance(&own, 300))
        plan->seeds_refused = (unsigned)sim_between(&own, 1, 2 * plan->nodes);
}

/* Chooses permits, beside the locks; mostly fewer than there are users. */
static void choose_permits(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 13};

    if (!sim_chance(&own, 300))
        return;
    plan->permits = (unsigned)sim_between(&own, 1, SIM_PERMITS_MAX);
    plan->permit = (unsigned)sim_between(&own, 400, 1000);
    plan->fewer = sim_chance(&own, 200);
    plan->foreign = sim_chance(&own, 500);
    if (plan->foreign) { /* some user must wait for a permit when the foreign keys appear */
        plan->wait_forever = 1000;
        plan->wait_never = 0;
        plan->rounds *= 2;
    }
    if (sim_chance(&own, 400))
        plan->users = (unsigned)sim_between(&own, 2, 3);
}

/* Chooses the clients that shut down before they are closed, in some runs. Uses a generator of its
 * own. `way` has no other use for the fault. */
static void choose_shutdowns(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 37};
    bool some = sim_chance(&own, 250);

    for (unsigned i = 0; i < plan->fault_count; i++) {
        if (plan->faults[i].kind == SIM_LEAVE)
            plan->faults[i].way = some && sim_chance(&own, 700);
    }
}

/* Chooses a server that stops and goes on, and a client that leaves meanwhile, with or without a
 * shutdown. */
static void choose_stopped(struct sim_plan *plan, struct sim_random *random)
{
    struct sim_fault *stop = &plan->faults[plan->fault_count++];
    struct sim_fault *leave = &plan->faults[plan->fault_count++];

    memset(stop, 0, sizeof *stop);
    stop->kind = sim_chance(random, 500) ? SIM_HANG : SIM_STALL;
    stop->client = (uint8_t)sim_below(random, plan->clients);
    stop->node = (uint8_t)sim_below(random, plan->nodes);
    stop->at_ns = sim_below(random, plan->span_ns - plan->span_ns / 8);
    stop->for_ns = least(sim_scale(random, RL_MS, 2 * plan->ttl_ns), plan->span_ns - stop->at_ns);
    memset(leave, 0, sizeof *leave);
    leave->kind = SIM_LEAVE;
    leave->client = stop->client;
    leave->way = sim_chance(random, 700);
    leave->at_ns = stop->at_ns + sim_below(random, stop->for_ns);
}

/* In a quarter of the runs, chooses the nodes whose links carry TLS records, and clients that leave
 * while servers stand still. Uses a generator of its own. */
static void choose_records(struct sim_plan *plan)
{
    struct sim_random own = {plan->seed * 2 + 41};

    if (!sim_chance(&own, 250))
        return;
    plan->records = (uint8_t)((1u << plan->nodes) - 1);
    if (sim_chance(&own, 300))
        plan->records = (uint8_t)sim_between(&own, 1, plan->records);
    if (sim_chance(&own, 500)) /* records of which the network has a part */
        plan->window = sim_scale(&own, 130, 700);
    fit_window(plan);
    for (unsigned left = (unsigned)sim_below(&own, 4);
         left > 0 && plan->fault_count + 2 <= SIM_FAULTS_MAX; left--)
        choose_stopped(plan, &own);
}

/* Makes the plan that follows from the seed. */
void sim_plan_make(struct sim_plan *plan, uint64_t seed)
{
    struct sim_random random = {seed * 2 + 1};

    memset(plan, 0, sizeof *plan);
    plan->seed = seed;
    choose_size(plan, &random);
    choose_times(plan, &random);
    choose_habits(plan, &random);
    choose_many(plan);
    choose_permits(plan);
    choose_faults(plan, &random);
    choose_freezes(plan);
    choose_evictions(plan);
    choose_third_parties(plan);
    choose_fences(plan, &random);
    choose_refusals(plan);
    choose_shutdowns(plan);
    choose_records(plan);
    choose_supervisors(plan);
}
