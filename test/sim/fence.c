/* SPDX-License-Identifier: MIT
 * Checks fencing tokens, and acts as the operator.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. */
#include "fence.h"

#include "client.h"
#include "record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The pause between two checks by the operator. */
#define OPERATOR_PAUSE_NS (5 * RL_SECOND)

/* Appends a grant to the list of the world. */
static void remember(struct sim_world *world, const struct sim_grant *grant)
{
    if (world->fence_count == world->fence_cap) {
        world->fence_cap = world->fence_cap != 0 ? 2 * world->fence_cap : 64;
        world->fences = realloc(world->fences, world->fence_cap * sizeof *world->fences);
        if (world->fences == NULL)
            abort();
    }
    world->fences[world->fence_count++] = *grant;
}

/* Checks that a majority of nodes stores the fencing token, because a later grant could miss it
 * otherwise. */
static void check_stored(struct sim_client *client, const struct sim_user *user)
{
    struct sim_world *world = client->world;
    uint64_t number = rl_lease_fence_chosen(&user->lock->lease);
    unsigned stripe = user->lock->claim->stripe, stored = 0;

    for (unsigned i = 0; i < world->plan.nodes; i++)
        stored += world->servers[i].record_lost ||
                  sim_record_number(&world->servers[i].record, stripe) >= number;
    if (stored < world->plan.nodes / 2 + 1)
        sim_violate(world, "client %u has fence %" PRIu64 " on r%u, which only %u nodes store",
                    client->index, number, user->resource, stored);
}

/* Checks the fencing token of a lock that the engine has just acquired: larger than all that
 * were granted before the attempt began, and stored by a majority of nodes. */
void sim_fence_granted(struct sim_client *client, const struct sim_user *user,
                       const struct sim_token *token)
{
    struct sim_world *world = client->world;
    const struct sim_grant grant = {
        .number = rl_lease_fence_chosen(&user->lock->lease),
        .reported_ns = world->now_ns + client->ahead_ns,
        .resource = user->resource,
    };

    sim_note(world, "client % gets fence % on r%", client->index, grant.number, user->resource, 0);
    if (world->plan.fences_env || world->fences_restarted)
        return;
    check_stored(client, user);
    if ((user->lock->lease.fence->used & token->without_record) != 0)
        sim_violate(world, "client %u counts the fence of a node that has forgotten its record",
                    client->index);
    for (uint32_t i = 0; i < world->fence_count; i++) {
        const struct sim_grant *other = &world->fences[i];
        if (other->resource != grant.resource)
            continue;
        if (other->number == grant.number)
            sim_violate(world, "fence %" PRIu64 " on r%u was granted twice", grant.number,
                        grant.resource);
        /* Only a grant that was reported before this attempt began must be smaller. */
        if (other->reported_ns <= token->born_ns && other->number > grant.number)
            sim_violate(world, "fence %" PRIu64 " on r%u comes after %" PRIu64, grant.number,
                        grant.resource, other->number);
    }
    remember(world, &grant);
}

/* Returns whether the record of a node is in use, and by this process of the server if records are
 * bound to it. */
static bool is_in_use(const struct sim_world *world, unsigned node)
{
    const struct sim_server *server = &world->servers[node];
    char run[64];

    if (server->record.cfg[0] == '\0')
        return false;
    snprintf(run, sizeof run, SIM_RECORD_CFG "%032x%08" PRIx32, node, server->run_number);
    return world->plan.durable || strcmp(server->record.cfg, run) == 0;
}

/* Returns whether no server had a fault, and no client that may have begun a first start has ended.
 * Then a first start that broke off must continue without an operator. */
static bool is_undisturbed(const struct sim_world *world)
{
    static const uint8_t kinds[] = {SIM_CRASH,   SIM_CRASH_EMPTY, SIM_FLUSH_ALL, SIM_DEMOTE,
                                    SIM_PROMOTE, SIM_KILL,        SIM_LEAVE};

    for (unsigned i = 0; i < sizeof kinds; i++)
        if (world->injected[kinds[i]] != 0)
            return false;
    return !world->fences_restarted;
}

/* If no majority of records is in use, the clients cannot know which fencing tokens were granted.
 * Then the operator waits until all locks from before the last fault have expired, and takes all
 * records into use. */
void sim_fence_operate(struct sim_world *world)
{
    unsigned good = 0, begun = 0;

    if (world->plan.fence == 0)
        return;
    for (unsigned i = 0; i < world->plan.nodes; i++) {
        good += is_in_use(world, i);
        begun += world->servers[i].record.cfg[0] != '\0' || world->servers[i].record_lost ||
                 world->servers[i].record.mark[0] != '\0';
    }
    sim_plan_event(world, world->now_ns + OPERATOR_PAUSE_NS, SIM_OPERATOR, 0, 0, 0, NULL);
    struct sim_client *client = &world->clients[0];
    bool early = world->now_ns < world->healed_ns + 2 * world->plan.ttl_ns + OPERATOR_PAUSE_NS;
    if (good > world->plan.nodes / 2 || begun == 0 || early || !sim_client_runs(client))
        return;
    if (is_undisturbed(world))
        sim_violate(world, "a first start broke off with %u records in use, and does not continue",
                    good);
    sim_note(world, "an operator takes records into use, % were", good, 0, 0, 0);
    world->fences_restarted = true;
    sim_client_refresh(client);
    if (rl_records_init(&client->engine, OPERATOR_PAUSE_NS))
        rl_engine_flush(&client->engine);
}

/* Returns how long after the end of all faults fenced locks must be granted again at the latest. */
uint64_t sim_fence_timeout_ns(const struct sim_world *world)
{
    return world->plan.fence != 0 ? 4 * world->plan.ttl_ns + 6 * OPERATOR_PAUSE_NS : 0;
}
