/* SPDX-License-Identifier: MIT
 * The names of keys, and the checks of the semaphore.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. */
#include "permit.h"

#include "client.h"
#include "engine/slot.h"
#include "server.h"

#include <stdlib.h>
#include <string.h>

#define FOREIGN "foreign" /* the token of foreign clients */

/* Writes the name of key number `key`: r0, r1, ... for resources, then s{#0}, s{#1}, ... for
 * slots. */
struct rl_arg sim_key_name(unsigned key, char name[SIM_NAME_MAX])
{
    /* Without snprintf(), which took a tenth of a run: the names are compared for each command. */
    static const char resource[] = "r0", slot[] = SIM_SEMAPHORE "{#0}";

    if (key < SIM_RESOURCES_MAX) {
        memcpy(name, resource, sizeof resource);
        name[sizeof resource - 2] += (char)(key % 10);
        return (struct rl_arg){name, sizeof resource - 1};
    }
    memcpy(name, slot, sizeof slot);
    name[sizeof slot - 3] += (char)((key - SIM_RESOURCES_MAX) % 10);
    return (struct rl_arg){name, sizeof slot - 1};
}

/* Returns the number of the key with this name. Ends the program if there is none. */
unsigned sim_key_of_name(const char *name, size_t len)
{
    char known[SIM_NAME_MAX];

    for (unsigned i = 0; i < SIM_KEYS_MAX; i++) {
        struct rl_arg arg = sim_key_name(i, known);
        if (arg.len == len && memcmp(known, name, len) == 0)
            return i;
    }
    abort();
}

/* Returns the number of permits if the user's next lock is a permit, 0 otherwise. With
 * plan.fewer, every second client counts one permit less. */
unsigned sim_choose_permits(struct sim_client *client)
{
    const struct sim_plan *plan = &client->world->plan;

    if (plan->permits == 0 || !sim_chance(&client->world->random, plan->permit))
        return 0;
    bool fewer = plan->fewer && plan->permits > 1 && client->index % 2 == 1;
    return plan->permits - fewer;
}

/* Makes the slot that the lock tries now the resource of the user. Does nothing for other locks. */
void sim_permit_follow(struct sim_user *user)
{
    if (user->lock == NULL || user->ended || user->lock->lease.terms->permits == 0)
        return;
    user->resource = (uint8_t)(SIM_RESOURCES_MAX + rl_lease_slot(&user->lock->lease));
    user->resources = (uint8_t)(1u << user->resource);
}

/* Returns whether the slot of the semaphore is free: a majority of servers has no key for it. */
static bool is_free(const struct sim_world *world, unsigned slot)
{
    unsigned without = 0;

    for (unsigned i = 0; i < world->plan.nodes; i++)
        without += !sim_server_holds(world, i, SIM_RESOURCES_MAX + slot);
    return without >= world->plan.nodes / 2 + 1;
}

/* Returns whether nothing prevents the user's lock from finding a free permit: its client runs and
 * is connected to all servers, they are eligible and not suspect, the lock waits or acquires, and
 * it needs no fence record. */
static bool may_find(const struct sim_client *client, const struct sim_user *user)
{
    const struct rl_lease *lease = user->lock != NULL ? &user->lock->lease : NULL;
    rl_nodes all = rl_nodes_all(client->world->plan.nodes);
    const struct rl_view *view = &client->engine.view;

    if (lease == NULL || user->ended || lease->terms->permits == 0 || lease->terms->fence ||
        !sim_client_runs(client))
        return false;
    return (lease->state == RL_STATE_WAITING || lease->state == RL_STATE_ACQUIRING) &&
           (view->up & view->eligible & ~view->suspect & all) == all;
}

/* Returns how long a free permit may stay unfound. If the preferred node is wrong about all slots,
 * the timer tries each of them. Some attempts fail by split votes as well. A head that has ended is
 * removed from the line when another waiter has looked twice. */
static uint64_t bound_ns(const struct sim_plan *plan)
{
    uint64_t trip_ns = 10 * plan->delay_ns + 2 * plan->jitter_ns + 2 * plan->latency_ns;
    uint64_t poll_ns = rl_max_u64(plan->backoff.max_ns, 300 * RL_MS);
    uint64_t looks_ns = plan->lines ? 2 * 1250 * RL_MS : 0;

    return looks_ns + (plan->permits + 1) * 2 * (poll_ns + trip_ns + 50 * RL_MS);
}

/* Returns how many permits all clients know. A client in front of the line that counts fewer keeps
 * the others from the free permits that it does not know. */
static unsigned permits_of_all(const struct sim_plan *plan)
{
    return plan->permits - (plan->fewer && plan->lines && plan->permits > 1);
}

/* Checks that a free permit does not stay unfound for longer than bound_ns() while a user of the
 * client could find it. `at` is the index of the user. */
static void check_wait(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];

    if (!may_find(client, user)) {
        user->may_find_ns = world->now_ns;
        return;
    }
    unsigned permits = permits_of_all(&world->plan);
    for (unsigned i = 0; i < rl_min_u64(permits, user->lock->lease.terms->permits); i++) {
        uint64_t since_ns = rl_max_u64(user->may_find_ns, world->taken_ns[i]);
        /* The process may have continued since the last event. */
        since_ns = rl_max_u64(since_ns, client->resumed_ns);
        if (world->now_ns > since_ns + bound_ns(&world->plan))
            sim_violate(world, "client %u user %u does not find the free permit %u", client->index,
                        at, i);
    }
}

/* Checks that there are not more holders than permits and, after the faults, that no free permit
 * stays unfound. holder[i] is the client that holds key i; negative: none. */
void sim_permit_check(struct sim_world *world, const int holder[SIM_KEYS_MAX])
{
    unsigned held = 0;

    if (world->plan.permits == 0)
        return;
    for (unsigned i = SIM_RESOURCES_MAX; i < SIM_KEYS_MAX; i++)
        held += holder[i] >= 0;
    if (held > world->plan.permits)
        sim_violate(world, "%u holders of %u permits", held, world->plan.permits);
    for (unsigned i = 0; i < world->plan.permits; i++) {
        if (!world->healed || !is_free(world, i))
            world->taken_ns[i] = world->now_ns;
    }
    for (unsigned i = 0; i < world->plan.clients && world->healed; i++) {
        for (unsigned j = 0; j < world->plan.users; j++)
            check_wait(&world->clients[i], j);
    }
}

/* Sets the key of a slot on one node, with the token of a foreign client, unless the slot has a key
 * there. */
static void put_foreign(struct sim_world *world, unsigned node, unsigned slot)
{
    struct sim_key *key = &world->servers[node].keys[SIM_RESOURCES_MAX + slot];

    if (sim_server_holds(world, node, SIM_RESOURCES_MAX + slot))
        return;
    memset(key, 0, sizeof *key);
    key->present = true;
    key->token_len = sizeof FOREIGN - 1;
    memcpy(key->token, FOREIGN, sizeof FOREIGN - 1);
    key->expire_ms = sim_server_now_ms(world, node) + (int64_t)(world->plan.ttl_ns / RL_MS);
    key->set_ns = world->now_ns;
    key->set_by = UINT8_MAX;
    sim_server_changed(world, node, SIM_RESOURCES_MAX + slot, NULL);
}

/* Returns the semaphore's preferred node, from the first client that has met contention there, or 0
 * if there is no such client. */
static unsigned preferred_node(struct sim_world *world)
{
    char bytes[RL_SLOT_KEY_MAX];
    struct rl_arg key = rl_slot_resource_key(bytes, (struct rl_arg){SIM_SEMAPHORE, 1});

    for (unsigned i = 0; i < world->plan.clients; i++) {
        const struct sim_client *client = &world->clients[i];
        struct rl_resource *resource =
            client->alive ? rl_resource_find(&client->engine, key) : NULL;
        if (resource != NULL)
            return resource->contention.order[0];
    }
    return 0;
}

/* Sets keys of foreign clients when the faults end: one slot is held on all nodes, and on each
 * other slot the preferred node alone has a key. */
void sim_permit_leave_foreign(struct sim_world *world)
{
    const struct sim_plan *plan = &world->plan;

    if (plan->permits == 0 || !plan->foreign)
        return;
    unsigned held = (unsigned)sim_below(&world->random, plan->permits);
    unsigned node = preferred_node(world);
    for (unsigned i = 0; i < plan->nodes; i++)
        put_foreign(world, i, held);
    for (unsigned i = 0; i < plan->permits; i++)
        put_foreign(world, node, i);
}
