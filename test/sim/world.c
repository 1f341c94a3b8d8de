/* SPDX-License-Identifier: MIT
 * Runs one schedule in three phases: faults and users for a while, then no faults, in which every
 * waiter must get its lock, then no users, in which no key may be left.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. */
#include "world.h"

#include "client.h"
#include "contention.h"
#include "fault.h"
#include "fence.h"
#include "link.h"
#include "oracle.h"
#include "oracle_line.h"
#include "permit.h"
#include "server.h"
#include "shutdown.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run with more events than this is stuck in a loop. */
#define EVENTS_MAX            2000000  /* of an ordinary run */
#define EVENTS_MAX_CONTENTION 20000000 /* a run with more events does not end */

/* Appends an event to the queue, at now_ns if at_ns has passed. */
void sim_plan_event(struct sim_world *world, uint64_t at_ns, enum sim_event_kind kind,
                    unsigned target, unsigned item, uint32_t stamp, void *data)
{
    const struct sim_event event = {
        .at_ns = at_ns < world->now_ns ? world->now_ns : at_ns,
        .kind = (uint8_t)kind,
        .target = (uint8_t)target,
        .item = (uint16_t)item,
        .stamp = stamp,
        .data = data,
    };

    sim_queue_push(&world->queue, &event);
}

/* Records a violation, unless there is one already. */
void sim_violate(struct sim_world *world, const char *fmt, ...)
{
    va_list args;

    if (world->violation[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(world->violation, sizeof world->violation, fmt, args);
    va_end(args);
}

/* Adds a number to the hash of the run. */
static void mix(struct sim_world *world, uint64_t word)
{
    world->hash = (world->hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    world->hash ^= world->hash >> 29;
}

/* Adds a note to the hash of the run, and prints it if the run is traced. Each single % in `fmt`
 * stands for the next of the four numbers. */
void sim_note(struct sim_world *world, const char *fmt, uint64_t a, uint64_t b, uint64_t c,
              uint64_t d)
{
    const uint64_t values[4] = {a, b, c, d};
    unsigned at = 0;

    mix(world, world->now_ns);
    /* Three characters tell most notes apart and cost less than the whole text. */
    mix(world, (uint64_t)(unsigned char)fmt[0] << 16 | (uint64_t)(unsigned char)fmt[9] << 8 |
                   (uint64_t)(unsigned char)fmt[10]);
    for (unsigned i = 0; i < 4; i++)
        mix(world, values[i]);
    if (!world->trace)
        return;
    uint64_t us = (world->now_ns - world->born_ns) / RL_US;
    printf("%6" PRIu64 ".%06" PRIu64 " ", us / 1000000, us % 1000000);
    for (; *fmt != '\0'; fmt++) {
        if (*fmt == '%' && at < 4)
            printf("%" PRIu64, values[at++]);
        else
            putchar(*fmt);
    }
    putchar('\n');
}

/* Makes some links slower than the others. */
static void choose_links(struct sim_world *world)
{
    for (unsigned i = 0; i < world->plan.clients; i++) {
        for (unsigned j = 0; j < world->plan.nodes; j++) {
            bool far = sim_chance(&world->random, world->plan.far_link);
            world->links[i][j].delay_ns = world->plan.delay_ns * (far ? 4 : 1);
        }
    }
}

/* Creates the world of a plan: servers, links and clients, which start at once. */
static void begin(struct sim_world *world, const struct sim_plan *plan, bool trace)
{
    memset(world, 0, sizeof *world);
    world->plan = *plan;
    world->clients = calloc(plan->clients, sizeof *world->clients);
    world->links = calloc(plan->clients, sizeof *world->links);
    if (world->clients == NULL || world->links == NULL)
        abort();
    world->random.word = plan->seed ^ UINT64_C(0x5851f42d4c957f2d);
    world->now_ns = world->born_ns = RL_SECOND;
    world->trace = trace;
    for (unsigned i = 0; i < world->plan.nodes; i++)
        sim_server_init(world, i);
    choose_links(world);
    for (unsigned i = 0; i < world->plan.clients; i++) {
        sim_client_init(world, i);
        for (unsigned j = 0; j < world->plan.users; j++)
            world->clients[i].users[j].rounds = world->plan.rounds;
        sim_client_start(world, i);
    }
    if (plan->contention != NULL)
        sim_contention_begin(world);
    sim_fault_plan(world);
    sim_plan_event(world, world->now_ns + world->plan.span_ns, SIM_HEAL, 0, 0, 0, NULL);
}

/* Handles SIM_HEAL: ends all faults, and has the users finish what they have begun. */
static void heal(struct sim_world *world)
{
    if (world->plan.contention != NULL)
        sim_contention_end(world);
    for (unsigned i = 0; i < world->plan.fault_count; i++)
        sim_fault_mend(world, i);
    world->healed = true;
    world->healed_ns = world->now_ns;
    sim_permit_leave_foreign(world);
    for (unsigned i = 0; i < world->plan.clients; i++) {
        struct sim_client *client = &world->clients[i];
        if (client->paused_until_ns > world->healed_ns)
            world->healed_ns = client->paused_until_ns;
        sim_user_finish(world, i);
    }
    sim_fence_operate(world);
    sim_note(world, "all faults have ended", 0, 0, 0, 0);
}

/* Passes an event to the part that handles it. */
static void handle(struct sim_world *world, const struct sim_event *event)
{
    switch (event->kind) {
    case SIM_ARRIVE:
        sim_link_arrive(world, event->data);
        break;
    case SIM_THAW:
        sim_link_thaw(world, event->data, (enum sim_way)event->item);
        break;
    case SIM_TURN:
        sim_client_turn(world, event->target, event->stamp);
        break;
    case SIM_REPORT:
        sim_user_report(world, event->target, event->item, event->stamp);
        break;
    case SIM_USER:
        sim_user_act(world, event->target, event->item, event->stamp);
        break;
    case SIM_DIE:
        sim_user_die(world, event->target, event->item, event->stamp);
        break;
    case SIM_CANCEL:
        sim_user_cancel(world, event->target, event->item, event->stamp);
        break;
    case SIM_LIMIT:
        sim_user_limit(world, event->target, event->item, event->stamp);
        break;
    case SIM_LEFT:
        sim_oracle_left(world, event->stamp);
        break;
    case SIM_SERVE:
        sim_server_serve(world, event->target);
        break;
    case SIM_FAULT:
        sim_fault_begin(world, event->item);
        break;
    case SIM_MEND:
        sim_fault_mend(world, event->item);
        break;
    case SIM_CORRECT:
        sim_fault_correct(world, event->item);
        break;
    case SIM_FOREIGN:
        sim_foreign_act(world, event->target, event->item);
        break;
    case SIM_CLOSE:
        sim_shutdown_limit(world, event->target, event->stamp);
        break;
    case SIM_DISTURB:
        sim_contention_disturb(world, event->target, event->item);
        break;
    case SIM_OPERATOR:
        sim_fence_operate(world);
        break;
    case SIM_HEAL:
        heal(world);
        break;
    default: /* SIM_PROBE: the oracle runs after every event */
        break;
    }
}

/* Returns the number of pending undos of all nodes of the engine. */
static unsigned undos_pending(const struct rl_engine *engine)
{
    unsigned pending = 0;

    for (unsigned i = 0; i < engine->count; i++)
        pending += rl_node_undos_pending(&engine->nodes[i]);
    return pending;
}

/* Returns whether the run is finished: all faults have ended, all users are idle, all nodes are
 * connected, no undo is pending or under way, and all requests have replies. */
static bool has_ended(const struct sim_world *world)
{
    if (!world->healed)
        return false;
    for (unsigned i = 0; i < world->plan.clients; i++) {
        const struct sim_client *client = &world->clients[i];
        if (client->leaving || !sim_user_is_idle(client) || undos_pending(&client->engine) != 0)
            return false;
        for (unsigned j = 0; j < world->plan.nodes; j++) {
            const struct rl_node *node = &client->engine.nodes[j];
            if (node->conn.state != RL_NODE_READY || rl_pipeline_count(&node->pipe) != 0)
                return false;
        }
    }
    return !sim_link_holds(world); /* last, because it looks at all connections */
}

/* Returns how long after the last fault every waiting user must have had its lock: keys of dead
 * clients expire, clients connect again, and then the users follow each other, each after a bounded
 * number of attempts. Half of all rounds with more than two contenders end in split votes. */
static uint64_t timeout_ns_of(const struct sim_world *world)
{
    const struct sim_plan *plan = &world->plan;
    uint64_t trip_ns = 10 * plan->delay_ns + 2 * plan->jitter_ns + 2 * plan->latency_ns;
    uint64_t turns = (uint64_t)plan->clients * plan->users;
    uint64_t attempt_ns = plan->backoff.max_ns + 10 * trip_ns + 50 * RL_MS;

    return sim_fence_timeout_ns(world) + 3 * plan->ttl_ns + 4 * plan->connect_timeout_ns +
           10 * RL_SECOND + turns * 400 * attempt_ns;
}

/* Executes events until the run is finished or an invariant is violated. */
static void run(struct sim_world *world)
{
    struct sim_event event;
    uint64_t most = world->plan.contention != NULL ? EVENTS_MAX_CONTENTION : EVENTS_MAX;

    while (world->violation[0] == '\0' && !has_ended(world)) {
        if (!sim_queue_pop(&world->queue, &event)) {
            sim_violate(world, "the queue of events is empty, but the run is not finished");
            return;
        }
        world->now_ns = event.at_ns;
        world->events++;
        handle(world, &event);
        sim_oracle_step(world);
        if (world->healed && world->now_ns > world->healed_ns + timeout_ns_of(world))
            sim_violate(world, "the faults ended long ago, but a user still waits for its lock");
        if (world->events > most)
            sim_violate(world, "the run is not finished after %" PRIu64 " events", most);
    }
}

/* Runs the plan of a seed to its end. Returns false if an invariant was violated. */
bool sim_world_run(struct sim_world *world, uint64_t seed, bool trace)
{
    struct sim_plan plan;

    sim_plan_make(&plan, seed);
    return sim_world_run_plan(world, &plan, trace);
}

/* Runs this plan to its end. Returns false if an invariant was violated. */
bool sim_world_run_plan(struct sim_world *world, const struct sim_plan *plan, bool trace)
{
    begin(world, plan, trace);
    run(world);
    if (world->violation[0] == '\0')
        sim_oracle_end(world);
    if (world->violation[0] == '\0')
        sim_oracle_lines_left(world);
    for (unsigned i = 0; i < world->plan.clients; i++) {
        world->clients[i].fail_of_1000 = 0;
        sim_client_end(world, i, false);
    }
    if (trace && world->violation[0] != '\0')
        printf("VIOLATION: %s\n", world->violation);
    return world->violation[0] == '\0';
}

/* Frees what the run has left in the world, but not the world itself. */
void sim_world_free(struct sim_world *world)
{
    sim_link_free(world);
    sim_queue_free(&world->queue);
    for (unsigned i = 0; i < world->plan.clients; i++)
        free(world->clients[i].specs);
    free(world->clients);
    free(world->links);
    free(world->token_index);
    free(world->tokens);
    free(world->fences);
    free(world->joined);
}
