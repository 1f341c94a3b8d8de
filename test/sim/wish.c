/* SPDX-License-Identifier: MIT
 * What the users of a client want. */
#include "wish.h"

#include "crowd.h"

struct rl_lease_params sim_wish_params(struct sim_client *client, uint8_t kind)
{
    struct sim_world *world = client->world;
    const struct sim_plan *plan = &world->plan;
    struct sim_random *random = &world->random;
    bool whole = sim_chance(random, 600);
    struct rl_lease_params params = {
        .kind = kind,
        .nodes = (uint8_t)plan->nodes,
        .quorum = (uint8_t)(plan->nodes / 2 + 1),
        .auto_extend = sim_chance(random, plan->auto_extend),
        .extends_max = sim_chance(random, 100) ? (uint32_t)sim_between(random, 1, 3) : 0,
        .drift = plan->drift,
        .backoff = plan->backoff,
        .ttl_ns = whole
                      ? plan->ttl_ns
                      : sim_between(random, plan->ttl_ns / 2 / RL_MS, plan->ttl_ns / RL_MS) * RL_MS,
        .wait_ns = sim_scale(random, RL_MS, 2 * plan->ttl_ns),
        .validity_min_ns = RL_MS,
        .wall_slack_us = plan->wall_slack_us,
        .fence = kind == RL_LEASE_ACQUIRE && sim_chance(random, plan->fence),
        .hold_max_ns = sim_chance(random, 100) ? sim_scale(random, RL_MS, 2 * plan->ttl_ns) : 0,
    };

    if (sim_chance(random, plan->wait_forever))
        params.wait_ns = RL_NEVER;
    else if (sim_chance(random, plan->wait_never))
        params.wait_ns = 0;
    uint64_t usable_ns = rl_usable_ns(params.ttl_ns, &params.drift);
    if (params.wait_ns != RL_NEVER && sim_chance(random, 100))
        params.validity_min_ns = sim_between(random, 1, usable_ns / 2);
    /* Who wants to hold for less than he wants to have gets nothing. */
    if (params.hold_max_ns != 0)
        params.hold_max_ns += params.validity_min_ns + 10 * RL_MS;
    if (params.auto_extend && sim_chance(random, 100))
        params.extend_at_ns = sim_between(random, usable_ns / 10, usable_ns / 2);
    params.margin_ns = params.ttl_ns / 10;
    if (plan->crowd != NULL)
        sim_crowd_wish(plan, &params);
    return params;
}

void sim_wish_for(struct sim_slot *slot, unsigned resources)
{
    slot->resources = (uint8_t)resources;
    slot->resource = (uint8_t)__builtin_ctz(resources);
    slot->part = false;
}

unsigned sim_wish_resources(struct sim_world *world)
{
    unsigned one = 1u << sim_below(&world->random, world->plan.resources);

    if (world->plan.many == 0 || !sim_chance(&world->random, world->plan.many))
        return one;
    return one | (unsigned)sim_between(&world->random, 1, (1u << world->plan.resources) - 1);
}
