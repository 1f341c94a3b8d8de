/* SPDX-License-Identifier: MIT
 * Clients of another make that contend with the library's: they request all nodes at once, sleep
 * for 100 to 300 ms after a denial, and do not know the library's rules. They have no
 * connections: each request takes its time and arrives. */
#include "contention.h"
#include "server.h"

#include <stdio.h>
#include <string.h>

enum { ASK, SET, COUNT, GIVE_BACK, DELETE };

#define POLL_MIN_NS (100 * RL_MS)
#define POLL_MAX_NS (300 * RL_MS)

static struct sim_word token_of(const struct sim_world *world, unsigned who, char text[24])
{
    const struct sim_foreigner *it = &world->plan.contention->foreigners[who];

    return (struct sim_word){text, (size_t)snprintf(text, 24, "foreign %u %u", who, it->attempt)};
}

static void later(struct sim_world *world, unsigned who, unsigned what, unsigned node,
                  uint64_t after_ns)
{
    sim_plan_event(world, world->now_ns + after_ns, SIM_FOREIGN, who, what << 8 | node, 0, NULL);
}

static uint64_t one_way_ns(struct sim_world *world)
{
    return world->plan.delay_ns + sim_below(&world->random, world->plan.jitter_ns + 1);
}

static void to_all(struct sim_world *world, unsigned who, unsigned what)
{
    for (unsigned i = 0; i < world->plan.nodes; i++)
        later(world, who, what, i, one_way_ns(world));
}

void sim_foreign_begin(struct sim_world *world)
{
    for (unsigned i = 0; i < world->plan.contention->foreign; i++)
        later(world, i, ASK, 0, sim_below(&world->random, POLL_MAX_NS));
}

static void nap(struct sim_world *world, unsigned who)
{
    later(world, who, ASK, 0, sim_between(&world->random, POLL_MIN_NS, POLL_MAX_NS));
}

static void count(struct sim_world *world, unsigned who)
{
    struct sim_contention *contention = world->plan.contention;
    struct sim_foreigner *it = &contention->foreigners[who];

    if (it->votes < world->plan.nodes / 2 + 1) {
        to_all(world, who, DELETE);
        nap(world, who);
        return;
    }
    it->holds = true;
    contention->foreign_grants += !contention->over;
    for (unsigned i = 0; i < world->plan.clients; i++) {
        if (world->clients[i].slots[0].reported)
            sim_violate(world, "two holders of r0: client %u and one of another make", i);
    }
    later(world, who, GIVE_BACK, 0, contention->hold_ns);
}

void sim_foreign_act(struct sim_world *world, unsigned who, unsigned which)
{
    struct sim_foreigner *it = &world->plan.contention->foreigners[who];
    unsigned node = which & 255;
    char text[24];

    switch (which >> 8) {
    case ASK:
        if (world->healed)
            return;
        it->attempt++;
        it->votes = 0;
        to_all(world, who, SET);
        later(world, who, COUNT, 0, sim_contention_trip_ns(&world->plan));
        break;
    case SET:
        it->votes += sim_server_take(world, node, 0, token_of(world, who, text), 10000);
        break;
    case COUNT:
        count(world, who);
        break;
    case GIVE_BACK:
        it->holds = false;
        to_all(world, who, DELETE);
        nap(world, who);
        break;
    default:
        sim_server_drop(world, node, 0, token_of(world, who, text));
        break;
    }
}

bool sim_foreign_holds(const struct sim_world *world)
{
    const struct sim_contention *contention = world->plan.contention;

    for (unsigned i = 0; i < contention->foreign; i++) {
        if (contention->foreigners[i].holds)
            return true;
    }
    return false;
}
