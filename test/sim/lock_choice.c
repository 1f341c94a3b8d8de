/* SPDX-License-Identifier: MIT
 * Chooses the users' locks and options.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. */
#include "lock_choice.h"

#include "contention.h"

/* Returns random parameters for an operation of that kind (RL_LEASE_*), with the frequencies of
 * the plan. */
struct rl_lease_params sim_choose_params(struct sim_client *client, uint8_t kind)
{
    struct sim_world *world = client->world;
    const struct sim_plan *plan = &world->plan;
    struct sim_random *random = &world->random;
    bool longest_ttl = sim_chance(random, 600);
    struct rl_lease_params params = {
        .terms.kind = kind,
        .terms.nodes = (uint8_t)plan->nodes,
        .terms.quorum = (uint8_t)(plan->nodes / 2 + 1),
        .terms.drift = plan->drift,
        .terms.backoff = plan->backoff,
        .terms.validity_min_ns = RL_MS,
        .terms.wall_slack_us = plan->wall_slack_us,
    };

    /* Draws one value per statement, so that the meaning of a seed does not depend on the order of
     * initializers. */
    params.terms.auto_extend = sim_chance(random, plan->auto_extend);
    params.terms.fence = kind == RL_LEASE_ACQUIRE && sim_chance(random, plan->fence);
    if (sim_chance(random, 100))
        params.terms.extends_max = (uint32_t)sim_between(random, 1, 3);
    params.terms.ttl_ns = plan->ttl_ns;
    /* Some TTLs are so short that an extension on request sets one several times as long. */
    if (!longest_ttl)
        params.terms.ttl_ns =
            sim_between(random, rl_max_u64(plan->ttl_ns / 10 / RL_MS, 50), plan->ttl_ns / RL_MS) *
            RL_MS;
    params.wait_ns = sim_scale(random, RL_MS, 2 * plan->ttl_ns);
    if (sim_chance(random, 100))
        params.terms.hold_max_ns = sim_scale(random, RL_MS, 2 * plan->ttl_ns);
    if (sim_chance(random, plan->wait_forever))
        params.wait_ns = RL_NEVER;
    else if (sim_chance(random, plan->wait_never))
        params.wait_ns = 0;
    uint64_t usable_ns = rl_usable_ns(params.terms.ttl_ns, &params.terms.drift);
    if (params.wait_ns != RL_NEVER && sim_chance(random, 100))
        params.terms.validity_min_ns = sim_between(random, 1, usable_ns / 2);
    /* A limit for holding that is below the required validity would never be granted. */
    if (params.terms.hold_max_ns != 0)
        params.terms.hold_max_ns += params.terms.validity_min_ns + 10 * RL_MS;
    if (params.terms.auto_extend && sim_chance(random, 100))
        params.terms.extend_at_ns = sim_between(random, usable_ns / 10, usable_ns / 2);
    params.terms.margin_ns = params.terms.ttl_ns / 10;
    if (plan->contention != NULL)
        sim_contention_lock_choice(plan, &params);
    return params;
}

/* Sets the keys of the user's next operation: a set, bit i for key i. */
void sim_user_set_resources(struct sim_user *user, unsigned resources)
{
    user->resources = (uint8_t)resources;
    user->resource = (uint8_t)__builtin_ctz(resources);
    user->part = false;
}

/* Returns a random set of one or, as often as the plan says, several resources. */
unsigned sim_choose_resources(struct sim_world *world)
{
    unsigned one = 1u << sim_below(&world->random, world->plan.resources);

    if (world->plan.many == 0 || !sim_chance(&world->random, world->plan.many))
        return one;
    return one | (unsigned)sim_between(&world->random, 1, (1u << world->plan.resources) - 1);
}
