/* SPDX-License-Identifier: MIT
 * Runs the cases of contention and measures them.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. A case of contention is a run in
 * which all users want the resource r0, or what else the plan says: a permit, or several resources.
 * Its settings and measurements are in plan.contention. */
#include "contention.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_SEED 7 /* of the run in which sim_contention_order() learns the order */

/* Returns the longest round trip: both ways with all jitter, and the latency of the client's
 * loop. */
uint64_t sim_contention_trip_ns(const struct sim_plan *plan)
{
    return 2 * (plan->delay_ns + plan->jitter_ns) + plan->latency_ns;
}

/* Returns the average round trip: both ways with half of the jitter, and half of the latency of the
 * loop. */
uint64_t sim_contention_average_trip_ns(const struct sim_plan *plan)
{
    return 2 * plan->delay_ns + plan->jitter_ns + plan->latency_ns / 2;
}

/* Plans a fault that begins at `at_ns` and lasts for `for_ns`. */
void sim_contention_fault(struct sim_plan *plan, enum sim_fault_kind kind, unsigned client,
                          unsigned node, uint64_t at_ns, uint64_t for_ns)
{
    plan->faults[plan->fault_count++] = (struct sim_fault){
        .kind = (uint8_t)kind,
        .client = (uint8_t)client,
        .node = (uint8_t)node,
        .at_ns = at_ns,
        .for_ns = for_ns,
    };
}

/* Adds a letter for the client's group to the node's name, if the case has several groups.
 * Different names lead to different preferred nodes. */
void sim_contention_name(const struct sim_plan *plan, unsigned client, struct rl_node_spec *spec)
{
    if (plan->contention->name_groups > 1)
        spec->name[1] = (char)('a' + client % plan->contention->name_groups);
}

/* Returns whether a client uses lines: if the run has lines, all clients do but the last `lineless`
 * ones of a case. */
bool sim_contention_has_lines(const struct sim_plan *plan, unsigned client)
{
    return plan->lines &&
           (plan->contention == NULL || client + plan->contention->lineless < plan->clients);
}

/* Applies the settings of the case to a new world: users, the slow node, delays, foreign clients
 * and orphaned keys. */
void sim_contention_begin(struct sim_world *world)
{
    const struct sim_plan *plan = &world->plan;

    for (unsigned i = 0; i < plan->clients; i++) {
        for (unsigned j = i == 0 ? plan->contention->first_users : 1; j < plan->users; j++)
            world->clients[i].users[j].rounds = 0;
        world->links[i][plan->contention->slow].delay_ns += plan->contention->slow_ns / 2;
        for (unsigned j = 0; j < plan->nodes; j++)
            world->links[i][j].delay_ns += i * plan->contention->spread_ns;
    }
    sim_foreign_begin(world);
    sim_contention_begin_idlers(world);
    for (unsigned i = 0; i < plan->nodes; i++) {
        struct sim_key *key = &world->servers[i].keys[0];
        if ((plan->contention->orphans >> i & 1) == 0)
            continue;
        key->present = true;
        memcpy(key->token, "orphaned", 8);
        key->token_len = 8;
        key->expire_ms = INT64_MAX / 2;
    }
}

/* Returns a random pause from 0 to think_ns. */
uint64_t sim_contention_think_ns(struct sim_client *client)
{
    return sim_below(&client->world->random, client->world->plan.contention->think_ns + 1);
}

/* Sets the parameters of a lock: the plan's TTL, waiting without a limit, no automatic
 * extension. */
void sim_contention_lock_choice(const struct sim_plan *plan, struct rl_lease_params *params)
{
    params->terms.ttl_ns = plan->ttl_ns;
    params->terms.fence = plan->contention->fenced;
    params->wait_ns = RL_NEVER;
    params->terms.validity_min_ns = RL_MS;
    params->terms.hold_max_ns = params->terms.extend_at_ns = 0;
    params->terms.extends_max = 0;
    params->terms.margin_ns = RL_MS;
}

/* Adds one wait, whose end is not necessarily a grant. */
static void note_wait(struct sim_contention *contention, uint64_t wait_ns)
{
    contention->longest_ns = rl_max_u64(contention->longest_ns, wait_ns);
}

/* Notes the hand-over time of a grant to the user: since the last release of one of its keys,
 * unless the same client has released it. */
static void note_handover(const struct sim_client *client, const struct sim_user *user)
{
    struct sim_contention *contention = client->world->plan.contention;
    uint64_t released_ns = 0;
    unsigned holder = 0;

    for (unsigned rest = user->resources; rest != 0; rest &= rest - 1) {
        unsigned key = (unsigned)__builtin_ctz(rest);
        if (contention->released_ns[key] > released_ns) {
            released_ns = contention->released_ns[key];
            holder = contention->holder[key];
        }
        contention->released_ns[key] = 0;
    }
    if (released_ns == 0 || holder == client->index)
        return;
    if (contention->handovers < SIM_WAITS_MAX)
        contention->handover_ns[contention->handovers] = client->world->now_ns - released_ns;
    contention->handovers++;
}

/* Counts a grant to the user, with its wait and its hand-over time. A foreign holder at this
 * moment is a violation. */
void sim_contention_granted(struct sim_client *client, unsigned user)
{
    struct sim_world *world = client->world;
    struct sim_contention *contention = world->plan.contention;

    if (sim_foreign_holds(world))
        sim_violate(world, "two holders of r0: client %u and a foreign client", client->index);
    if (contention->measured)
        return;
    contention->grants[client->index]++;
    contention->all++;
    note_wait(contention, world->now_ns - client->users[user].begun_ns);
    contention->waited_ns += world->now_ns - client->users[user].begun_ns;
    note_handover(client, &client->users[user]);
}

/* Notes that the user begins to release its lock now. */
void sim_contention_released(struct sim_client *client, unsigned user)
{
    struct sim_contention *contention = client->world->plan.contention;

    for (unsigned rest = client->users[user].resources; rest != 0; rest &= rest - 1) {
        unsigned key = (unsigned)__builtin_ctz(rest);
        contention->released_ns[key] = client->world->now_ns;
        contention->holder[key] = client->index;
    }
}

/* Orders two numbers for qsort(). */
static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns how many hand-over times are kept. */
static uint64_t listed(const struct sim_contention *contention)
{
    return rl_min_u64(contention->handovers, SIM_WAITS_MAX);
}

/* Returns the percentile of the hand-over times, which sim_contention_end() has sorted. 0 if
 * there are none. */
uint64_t sim_contention_percentile_ns(const struct sim_contention *contention, unsigned of_100)
{
    uint64_t count = listed(contention);

    return count == 0 ? 0 : contention->handover_ns[(count - 1) * of_100 / 100];
}

/* Returns Jain's index of the clients' grants, of 1000: (sum)^2 / (n * sum of squares). */
uint64_t sim_contention_jain(const struct sim_world *world)
{
    const struct sim_contention *contention = world->plan.contention;
    uint64_t squares = 0;

    for (unsigned i = 0; i < world->plan.clients; i++)
        squares += contention->grants[i] * contention->grants[i];
    return contention->all * contention->all * 1000 / rl_max_u64(squares * world->plan.clients, 1);
}

/* Ends the measurement: reads the counters of all clients, counts the waits that have not ended,
 * and sorts the hand-over times. */
void sim_contention_end(struct sim_world *world)
{
    struct sim_contention *contention = world->plan.contention;

    contention->measured = true;
    contention->commands = world->commands;
    contention->notifications = world->notifications;
    contention->span_ns = world->now_ns - world->born_ns;
    for (unsigned i = 0; i < world->plan.clients; i++) {
        const struct sim_client *client = &world->clients[i];
        contention->splits += client->engine.stats.split_votes;
        contention->attempts += client->engine.stats.attempts;
        contention->wakeups += client->engine.stats.wakeups;
        for (unsigned j = 0; j < world->plan.users; j++) {
            const struct sim_user *user = &client->users[j];
            if (user->doing == SIM_ACQUIRING && !user->done)
                note_wait(contention, world->now_ns - user->begun_ns);
        }
    }
    const struct rl_resource *resource =
        rl_resource_find(&world->clients[0].engine, (struct rl_arg){"r0", 2});
    if (resource != NULL)
        memcpy(contention->order, resource->contention.order, resource->contention.nodes);
    qsort(contention->handover_ns, listed(contention), sizeof contention->handover_ns[0],
          compare_u64);
}

/* Records a violation if a result exceeds its bound. */
static void expect(struct sim_world *world, const char *name, uint64_t result, uint64_t bound)
{
    if (bound != 0 && result > bound)
        sim_violate(world, "%s: %" PRIu64 ", at most %" PRIu64 " expected", name, result, bound);
}

/* Compares all results with bounds of the case. */
static void judge(struct sim_world *world, const struct sim_contention *contention,
                  const struct sim_bounds *bounds)
{
    uint64_t all = rl_max_u64(contention->all, 1), most = 0, least = UINT64_MAX;

    for (unsigned i = 0; i < world->plan.clients; i++) {
        most = rl_max_u64(most, contention->grants[i]);
        least = rl_min_u64(least, contention->grants[i]);
    }
    if (contention->all < bounds->grants_min)
        sim_violate(world, "grants: %" PRIu64 ", at least %" PRIu64 " expected", contention->all,
                    bounds->grants_min);
    expect(world, "longest wait, us", contention->longest_ns / RL_US, bounds->longest_ns / RL_US);
    expect(world, "average wait, us", contention->waited_ns / all / RL_US,
           bounds->average_ns / RL_US);
    expect(world, "hand-over, median, us", sim_contention_percentile_ns(contention, 50) / RL_US,
           bounds->median_ns / RL_US);
    expect(world, "hand-over, 99th percentile, us",
           sim_contention_percentile_ns(contention, 99) / RL_US, bounds->p99_ns / RL_US);
    expect(world, "split votes per 1000 grants", contention->splits * 1000 / all, bounds->splits);
    expect(world, "attempts per 1000 grants", contention->attempts * 1000 / all, bounds->attempts);
    expect(world, "commands per 1000 grants", contention->commands * 1000 / all, bounds->commands);
    expect(world, "notifications per 1000 grants", contention->notifications * 1000 / all,
           bounds->notifications);
    if (sim_contention_jain(world) < bounds->jain_min)
        sim_violate(world, "Jain's index of 1000: %" PRIu64 ", at least %" PRIu64 " expected",
                    sim_contention_jain(world), bounds->jain_min);
    expect(world, "share of one client of 1000", most * 1000 / all, bounds->share_max);
    if (least * 1000 / all < bounds->share_min)
        sim_violate(world,
                    "share of one client of 1000: %" PRIu64 ", at least %" PRIu64 " expected",
                    least * 1000 / all, bounds->share_min);
}

/* Sets up the common settings of all cases. The delays are those of one data center. */
static void prepare(struct sim_plan *plan, struct sim_contention *contention, uint64_t seed,
                    bool lines)
{
    memset(contention, 0, sizeof *contention);
    *plan = (struct sim_plan){
        .seed = seed,
        .nodes = 5,
        .clients = 2,
        .users = 1,
        .resources = 1,
        .rounds = UINT32_MAX,
        .ttl_ns = 10 * RL_SECOND,
        .span_ns = 3 * RL_SECOND,
        .delay_ns = 200 * RL_US,
        .jitter_ns = 100 * RL_US,
        .latency_ns = 50 * RL_US,
        .window = 65536,
        .read_max = 16384,
        .drift = {.ppm = 10000, .constant_us = 2000},
        .backoff = {.min_ns = 10 * RL_MS, .max_ns = 200 * RL_MS},
        .connect_timeout_ns = 250 * RL_MS,
        .heartbeat_ns = RL_SECOND,
        .wall_slack_us = 100000,
        .wakeups = true,
        .lines = lines,
        .contention = contention,
    };
    contention->hold_ns = RL_MS;
    contention->first_users = 1;
}

/* Runs a case with a seed. Returns false after a violation, or if a result is out of its bounds. */
bool sim_case_run(const struct sim_case *scenario, uint64_t seed, bool lines, bool trace,
                  struct sim_world *world, struct sim_contention *contention)
{
    struct sim_plan plan;

    prepare(&plan, contention, seed, lines);
    scenario->set_up(&plan, contention);
    bool good = sim_world_run_plan(world, &plan, trace);
    if (good)
        judge(world, contention, &contention->bounds);
    if (good)
        judge(world, contention, lines ? &contention->line_bounds : &contention->fallback_bounds);
    return good && world->violation[0] == '\0';
}

/* Returns how many cases there are. */
unsigned sim_case_count(void)
{
    return sim_common_case_count + sim_line_case_count;
}

/* Returns the case with this number: first the common ones, then those of lines. */
const struct sim_case *sim_case_at(unsigned number)
{
    return number < sim_common_case_count ? &sim_common_cases[number]
                                          : &sim_line_cases[number - sim_common_case_count];
}

/* Returns the case of this name, or NULL. */
const struct sim_case *sim_case_find(const char *name)
{
    for (unsigned i = 0; i < sim_case_count(); i++) {
        if (strcmp(sim_case_at(i)->name, name) == 0)
            return sim_case_at(i);
    }
    return NULL;
}

/* Runs two users of one client once, and reads the order from the resource state of the client. */
const uint8_t *sim_contention_order(void)
{
    static uint8_t order[RL_NODES_MAX];
    static bool known;
    struct sim_plan plan;

    if (known)
        return order;
    struct sim_world *world = malloc(sizeof *world);
    struct sim_contention *contention = malloc(sizeof *contention);
    if (world == NULL || contention == NULL)
        abort();
    prepare(&plan, contention, ORDER_SEED, false);
    plan.clients = 1;
    plan.span_ns = 20 * RL_MS;
    (void)sim_world_run_plan(world, &plan, false);
    sim_world_free(world);
    memcpy(order, contention->order, sizeof order);
    known = true;
    free(world);
    free(contention);
    return order;
}
