/* SPDX-License-Identifier: MIT
 * Disturbs the clients of a case of contention: a client stops or dies when it is its turn in the
 * line, or ends after each release. Some waiters join the line and never acquire.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A waiter that
 * never acquires is no client: it has no connection, and its requests always arrive. */
#include "contention.h"

#include "client.h"
#include "fault.h"
#include "line_command.h"

#include <stdio.h>

/* What SIM_DISTURB does; its target is a client, or a waiter that never acquires (JOIN). */
enum { STOP, KILL, REPLACE, JOIN };

#define STOP_MIN_NS   (500 * RL_MS)
#define STOP_MAX_NS   (1500 * RL_MS)
#define IDLER_EACH_NS (500 * RL_MS) /* between two requests of a waiter that never acquires */

/* Plans SIM_DISTURB after that time. */
static void plan_disturbance(struct sim_world *world, unsigned target, unsigned what,
                             uint64_t after_ns)
{
    sim_plan_event(world, world->now_ns + after_ns, SIM_DISTURB, target, what, 0, NULL);
}

/* Notes that a server has notified the client of its turn: stops or kills it, as often as the case
 * says. */
void sim_contention_turn(struct sim_world *world, unsigned client)
{
    const struct sim_contention *contention = world->plan.contention;

    if (contention == NULL || world->healed)
        return;
    if (contention->pausing != 0 && sim_chance(&world->random, contention->pausing))
        plan_disturbance(world, client, STOP, 0);
    if (contention->dying != 0 && sim_chance(&world->random, contention->dying))
        plan_disturbance(world, client, KILL, 0);
}

/* Returns whether the client is to be replaced now, after a release, and plans that. */
bool sim_contention_replaces(struct sim_client *client)
{
    struct sim_world *world = client->world;

    if (world->plan.contention == NULL || !world->plan.contention->fresh || world->healed)
        return false;
    plan_disturbance(world, client->index, REPLACE, 0);
    return true;
}

/* Plans the first request of each waiter that never acquires. */
void sim_contention_begin_idlers(struct sim_world *world)
{
    for (unsigned i = 0; i < world->plan.contention->idlers; i++)
        plan_disturbance(world, i, JOIN, sim_below(&world->random, IDLER_EACH_NS));
}

/* Kills or closes the client and begins a new one. Keeps the counts of the old one. */
static void replace(struct sim_world *world, unsigned index, bool dies)
{
    struct sim_contention *contention = world->plan.contention;
    const struct sim_client *client = &world->clients[index];

    if (!contention->measured) {
        contention->splits += client->engine.stats.split_votes;
        contention->attempts += client->engine.stats.attempts;
        contention->wakeups += client->engine.stats.wakeups;
    }
    sim_fault_replace_client(world, index, dies);
}

/* Has a waiter that never acquires join the line of the preferred node, and plans its next request.
 * The number of a client is odd, so the numbers of these are even. */
static void join(struct sim_world *world, unsigned idler)
{
    char id[8];

    if (world->healed)
        return;
    snprintf(id, sizeof id, "%u", 2 * (idler + 1));
    sim_line_join_foreign(world, sim_contention_order()[0], 0, id);
    plan_disturbance(world, idler, JOIN, IDLER_EACH_NS);
}

/* Handles SIM_DISTURB. */
void sim_contention_disturb(struct sim_world *world, unsigned target, unsigned what)
{
    switch (what) {
    case STOP:
        sim_client_pause(&world->clients[target],
                         world->now_ns + sim_between(&world->random, STOP_MIN_NS, STOP_MAX_NS));
        break;
    case KILL:
    case REPLACE:
        replace(world, target, what == KILL);
        break;
    default:
        join(world, target);
        break;
    }
}
