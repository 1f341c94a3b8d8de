/* SPDX-License-Identifier: MIT
 * Foreign clients, which contend with the clients of the library. They request all nodes at once,
 * wait for 100 to 300 ms after a denial, and do not follow the library's rules of contention. They
 * have no connections: each request takes a delay and always arrives.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. A foreign client does not use
 * this library: it sends SET NX PX to all nodes, counts the votes after a round trip, and
 * deletes its keys. Each of these is a step (STEP_*), planned as an event. */
#include "contention.h"
#include "server.h"

#include <stdio.h>
#include <string.h>

/* The steps of an attempt. STEP_SET and STEP_DELETE take place at one node. */
enum { STEP_BEGIN, STEP_SET, STEP_COUNT, STEP_RELEASE, STEP_DELETE };

#define POLL_MIN_NS (100 * RL_MS)
#define POLL_MAX_NS (300 * RL_MS)

/* Writes the token of the client's present attempt to `text`, and returns it. */
static struct sim_word token_of(const struct sim_world *world, unsigned client, char text[24])
{
    const struct sim_foreigner *foreigner = &world->plan.contention->foreigners[client];

    return (struct sim_word){
        text, (size_t)snprintf(text, 24, "foreign %u %u", client, foreigner->attempt)};
}

/* Plans a step of a client at a node after that time. */
static void plan_step(struct sim_world *world, unsigned client, unsigned step, unsigned node,
                      uint64_t after_ns)
{
    sim_plan_event(world, world->now_ns + after_ns, SIM_FOREIGN, client, step << 8 | node, 0, NULL);
}

/* Returns a random delay of one way. */
static uint64_t one_way_ns(struct sim_world *world)
{
    return world->plan.delay_ns + sim_below(&world->random, world->plan.jitter_ns + 1);
}

/* Plans a step at each node, each after a delay of one way. */
static void plan_at_all_nodes(struct sim_world *world, unsigned client, unsigned step)
{
    for (unsigned i = 0; i < world->plan.nodes; i++)
        plan_step(world, client, step, i, one_way_ns(world));
}

/* Plans the first attempt of each foreign client, at a random time within one polling interval. */
void sim_foreign_begin(struct sim_world *world)
{
    for (unsigned i = 0; i < world->plan.contention->foreign; i++)
        plan_step(world, i, STEP_BEGIN, 0, sim_below(&world->random, POLL_MAX_NS));
}

/* Plans the client's next attempt. */
static void plan_next_attempt(struct sim_world *world, unsigned client)
{
    plan_step(world, client, STEP_BEGIN, 0, sim_between(&world->random, POLL_MIN_NS, POLL_MAX_NS));
}

/* Counts the votes of the attempt: takes the lock with a majority, or deletes the keys. */
static void count_votes(struct sim_world *world, unsigned client)
{
    struct sim_contention *contention = world->plan.contention;
    struct sim_foreigner *foreigner = &contention->foreigners[client];

    if (foreigner->votes < world->plan.nodes / 2 + 1) {
        plan_at_all_nodes(world, client, STEP_DELETE);
        plan_next_attempt(world, client);
        return;
    }
    foreigner->holds = true;
    contention->foreign_grants += !contention->measured;
    for (unsigned i = 0; i < world->plan.clients; i++) {
        if (world->clients[i].users[0].reported)
            sim_violate(world, "two holders of r0: client %u and a foreign client", i);
    }
    plan_step(world, client, STEP_RELEASE, 0, contention->hold_ns);
}

/* Executes one step of a foreign client. The high bits of step_and_node are the step (STEP_*),
 * the low 8 bits the node. */
void sim_foreign_act(struct sim_world *world, unsigned client, unsigned step_and_node)
{
    struct sim_foreigner *foreigner = &world->plan.contention->foreigners[client];
    unsigned node = step_and_node & 255;
    char text[24];

    switch (step_and_node >> 8) {
    case STEP_BEGIN:
        if (world->healed)
            return;
        foreigner->attempt++;
        foreigner->votes = 0;
        plan_at_all_nodes(world, client, STEP_SET);
        plan_step(world, client, STEP_COUNT, 0, sim_contention_trip_ns(&world->plan));
        break;
    case STEP_SET:
        foreigner->votes += sim_server_set(world, node, 0, token_of(world, client, text), 10000);
        break;
    case STEP_COUNT:
        count_votes(world, client);
        break;
    case STEP_RELEASE:
        foreigner->holds = false;
        plan_at_all_nodes(world, client, STEP_DELETE);
        plan_next_attempt(world, client);
        break;
    default:
        sim_server_delete(world, node, 0, token_of(world, client, text));
        break;
    }
}

/* Returns whether a foreign client holds the lock. */
bool sim_foreign_holds(const struct sim_world *world)
{
    const struct sim_contention *contention = world->plan.contention;

    for (unsigned i = 0; i < contention->foreign; i++) {
        if (contention->foreigners[i].holds)
            return true;
    }
    return false;
}
