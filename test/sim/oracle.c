/* SPDX-License-Identifier: MIT
 * Checks exclusion, validity, leftover keys and votes.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. `at` is the number of a user of
 * the client. A violation ends the run with a message (sim_violate()). An excused token's keys
 * may stay until they expire, because the user wanted that or its process ended. */
#include "oracle.h"

#include "client.h"
#include "contention.h"
#include "fence.h"
#include "permit.h"
#include "server.h"
#include "token.h"

#include <string.h>

/* Time limit for the report of a loss, from the deadline. The drift constant keeps the lock valid
 * for longer than that. */
#define LATE_NS (4 * RL_MS)
/* How long a link must have had no fault before leftover keys on it are an error of the library:
 * longer than any reconnection takes. */
#define CALM_NS (5 * RL_SECOND)

/* Returns whether the lock has a claim whose keys may be on the servers. */
static bool is_claimed(const struct rl_lock *lock)
{
    uint8_t state = lock->lease.state;

    return lock->active && lock->claim != NULL && lock->claim->token_len >= SIM_TOKEN_HEX &&
           (state == RL_STATE_ACQUIRING || state == RL_STATE_HELD || state == RL_STATE_EXTENDING ||
            state == RL_STATE_RELEASING);
}

/* Returns the remaining validity of the user's lock, as the user would read it at that time; 0:
 * none. */
static uint64_t remaining_ns(const struct sim_client *client, const struct sim_user *user,
                             uint64_t true_ns)
{
    if (user->lock == NULL || user->ended)
        return 0;
    return rl_lease_remaining_ns(&user->lock->lease, sim_client_clocks(client, true_ns));
}

/* Returns the true time of the deadline that the holder relies on. */
static uint64_t deadline_ns(const struct sim_client *client, const struct sim_user *user)
{
    struct rl_now deadline = user->lock->lease.deadline;

    return rl_min_u64(sim_clock_when(&client->boot, deadline.boot_ns),
                      sim_clock_when(&client->raw, deadline.raw_ns));
}

/* Checks that the key of the resource expires on no majority of nodes before the holder's deadline.
 * A key that a third party deleted or shortened counts as it was before, because the holder cannot
 * know the change before its next round. */
static void check_key(struct sim_client *client, unsigned at, unsigned resource)
{
    struct sim_world *world = client->world;
    const struct sim_user *user = &client->users[at];
    uint64_t end_ns = deadline_ns(client, user);
    unsigned good = 0;

    const struct sim_token *token = sim_token_at(world, user->token);
    for (unsigned i = 0; i < world->plan.nodes; i++)
        good += sim_server_expires_ns(world, i, resource, token) >= end_ns;
    if (good < world->plan.nodes / 2 + 1)
        sim_violate(world,
                    "validity overstated: client %u user %u relies on r%u, token %u, for another "
                    "%llu us, and %u of %u nodes have its key until then",
                    client->index, at, resource, user->token,
                    (unsigned long long)(remaining_ns(client, user, world->now_ns) / RL_US), good,
                    world->plan.nodes);
}

/* Checks for each key of the user's lock that the servers have it until the deadline, and that no
 * other client holds it, unless the run breaks an assumption. `holder` has the client that holds
 * each key; negative: none. */
static void check_resources(struct sim_client *client, unsigned at, int holder[SIM_KEYS_MAX])
{
    const struct sim_user *user = &client->users[at];

    for (unsigned rest = user->resources; rest != 0; rest &= rest - 1) {
        unsigned resource = (unsigned)__builtin_ctz(rest);
        if (user->token != 0)
            check_key(client, at, resource);
        if (client->world->plan.env_faults != 0)
            continue;
        if (holder[resource] >= 0)
            sim_violate(client->world, "two holders of r%u: client %d and client %u", resource,
                        holder[resource], client->index);
        holder[resource] = client->index;
    }
}

/* Checks that the loss of an expired lock is reported in time, except while the process is paused.
 */
static void check_lost(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];
    uint64_t since_ns = user->expired_ns;

    if (since_ns == 0)
        user->expired_ns = since_ns = world->now_ns;
    if (client->resumed_ns > since_ns)
        since_ns = client->resumed_ns;
    if (sim_client_runs(client) && world->now_ns > since_ns + LATE_NS)
        sim_violate(world, "client %u user %u got no report that it lost r%u", client->index, at,
                    user->resource);
}

/* Returns whether the last acquisition or extension of the user's lock began before the last
 * correction of the wall clock: the clocks of the machine have stood still since, for long enough
 * to be noticed. */
static bool predates_correction(const struct sim_client *client, const struct sim_user *user)
{
    return user->began_boot_ns < client->corrected_boot_ns;
}

/* Checks that redlock_lock_check(), called now, would not report the lock as held. */
static void check_lock_check(const struct sim_client *client, unsigned at)
{
    const struct sim_user *user = &client->users[at];
    uint64_t true_ns = client->world->now_ns;
    uint64_t boot_us = sim_clock_read(&client->boot, true_ns) / RL_US;
    uint64_t wall_us = sim_clock_read(&client->wall, true_ns) / RL_US;
    int64_t ahead_us = (int64_t)wall_us - (int64_t)boot_us - user->lock->lease.wall_us;

    if (ahead_us <= (int64_t)client->world->plan.wall_slack_us)
        sim_violate(client->world,
                    "client %u user %u still passes a check of r%u after its clocks stood",
                    client->index, at, user->resource);
}

/* Checks that the client holds no lock from before the correction of its wall clock. */
void sim_oracle_turned(struct sim_client *client)
{
    for (unsigned i = 0; i < client->world->plan.users; i++) {
        const struct sim_user *user = &client->users[i];
        if (user->reported && user->lock != NULL && !user->ended &&
            predates_correction(client, user))
            sim_violate(client->world,
                        "client %u user %u has not lost r%u in a turn after its clocks stood",
                        client->index, i, user->resource);
    }
}

/* Checks exclusion and validity of all locks; after every event. */
void sim_oracle_step(struct sim_world *world)
{
    int holder[SIM_KEYS_MAX];

    for (unsigned i = 0; i < SIM_KEYS_MAX; i++)
        holder[i] = -1;
    for (unsigned i = 0; i < world->plan.clients; i++) {
        struct sim_client *client = &world->clients[i];
        for (unsigned j = 0; j < world->plan.users && client->alive; j++) {
            struct sim_user *user = &client->users[j];
            if (!user->reported)
                continue;
            if (remaining_ns(client, user, world->now_ns) == 0) {
                check_lost(client, j);
                continue;
            }
            user->expired_ns = 0;
            if (predates_correction(client, user)) {
                check_lock_check(client, j);
                continue;
            }
            if ((world->plan.env_faults & ~SIM_OUTSIDE_LOST_KEYS) != 0 || client->frozen)
                continue;
            check_resources(client, j, holder);
        }
    }
    sim_permit_check(world, holder);
}

/* Returns how long an undo may take, from the time when the client begins to send the requests that
 * are queued before it. */
static uint64_t undo_limit_ns(const struct sim_world *world)
{
    uint64_t trip_ns = world->plan.delay_ns * 5 + world->plan.jitter_ns + world->plan.latency_ns;
    if (world->plan.contention != NULL)
        trip_ns += world->plan.contention->slow_ns;
    /* Requests, fallbacks and undos wait for each other in a small window. */
    uint64_t trips = 6 + 6000 / world->plan.window;

    return trips * 2 * trip_ns + 5 * RL_MS;
}

/* Notes that the attempt or lock of a token has ended, and plans a check for leftover keys. */
static void mark_ended(struct sim_client *client, uint32_t number)
{
    struct sim_world *world = client->world;
    struct sim_token *token = sim_token_at(world, number);

    if (token->ended_ns != 0)
        return;
    token->ended_ns = world->now_ns;
    sim_plan_event(world, world->now_ns + undo_limit_ns(world), SIM_LEFT, client->index, 0, number,
                   NULL);
}

/* Checks that a running attempt is undecided: it has no majority yet, and it can still get one. */
static void check_judgement(struct sim_client *client, const struct rl_lease *lease)
{
    const struct rl_round *round = &lease->round;
    rl_nodes requested = round->requested | round->deferred;
    rl_nodes open = requested & ~(round->denied | round->failed | round->excluded);

    if (lease->terms->kind != RL_LEASE_ACQUIRE || lease->state != RL_STATE_ACQUIRING)
        return;
    if (lease->fence != NULL && lease->fence->raising) /* the second round */
        return;
    if (rl_nodes_count(round->granted & ~round->excluded) >= client->world->plan.nodes / 2 + 1)
        sim_violate(client->world, "client %u continues its attempt with a majority",
                    client->index);
    if (rl_nodes_count(open) < client->world->plan.nodes / 2 + 1 ||
        (round->deferred != 0 && round->denied != 0))
        sim_violate(client->world, "client %u continues its attempt without a possible majority",
                    client->index);
}

/* Notes which tokens of the client have ended, and plans the checks that their keys are gone. */
void sim_oracle_client(struct sim_client *client)
{
    struct sim_world *world = client->world;

    for (unsigned i = 0; i < world->plan.users; i++) {
        struct sim_user *user = &client->users[i];
        uint32_t number = 0;
        sim_permit_follow(user);
        if (user->lock != NULL && !user->ended && is_claimed(user->lock)) {
            struct rl_arg text = rl_claim_token(user->lock->claim);
            number = sim_token_number(world, text.data, text.len, client->index, user->resources);
        }
        if (number != user->token && user->token != 0)
            mark_ended(client, user->token);
        user->token = number;
        if (user->lock != NULL && !user->ended)
            check_judgement(client, &user->lock->lease);
    }
}

/* Excuses the keys of a client whose process ends: they may stay until they expire. */
void sim_oracle_client_ends(struct sim_client *client)
{
    struct sim_world *world = client->world;

    for (uint32_t i = 1; i <= world->token_count; i++) {
        struct sim_token *token = sim_token_at(world, i);
        if (token->client == client->index)
            token->closed = true;
    }
    for (unsigned i = 0; i < world->plan.users; i++) {
        struct sim_user *user = &client->users[i];
        if (user->token != 0)
            sim_token_at(world, user->token)->closed = true;
        user->token = 0;
        user->reported = false;
    }
}

/* Returns whether a node's vote may count in an extension. All keys of the lock were set there
 * before the last successful round began, or the node granted the attempt itself before this round
 * began. A key that was set later proves nothing about the time before. */
static bool may_count(const struct sim_client *client, const struct sim_user *user,
                      const struct sim_token *token, unsigned node)
{
    const struct sim_server *server = &client->world->servers[node];
    const struct rl_round *round = &user->lock->lease.round;
    bool old = true;

    for (unsigned rest = user->resources; rest != 0; rest &= rest - 1) {
        unsigned resource = (unsigned)__builtin_ctz(rest);
        const struct sim_key *key = &server->keys[resource];
        old = old && (!sim_server_has(client->world, node, resource, token) ||
                      key->set_by != client->index || key->set_boot_ns < user->t1_boot_ns);
    }
    if (old)
        return true;
    return !user->extended && token->granted_boot_ns[node] != 0 &&
           token->granted_boot_ns[node] <= round->t1.boot_ns;
}

/* Returns whether the reply with this vote has reached the client. */
static bool is_given(const struct sim_client *client, const struct rl_round *round,
                     const struct sim_token *token, unsigned node)
{
    if (round->verb == RL_VERB_EXTEND)
        return token->extended_boot_ns[node][client->index] >= round->t1.boot_ns;
    return token->granted_boot_ns[node] != 0;
}

/* Checks the votes that the engine counted when it acquired (`held`) or extended the user's
 * lock: each was sent by its server and still counts. */
void sim_oracle_votes(struct sim_client *client, struct sim_user *user, bool held)
{
    struct sim_world *world = client->world;
    const struct rl_lease *lease = &user->lock->lease;
    const struct rl_round *round = &lease->round;
    struct rl_arg text = rl_claim_token(user->lock->claim);
    sim_permit_follow(user);
    uint32_t number = sim_token_number(world, text.data, text.len, client->index, user->resources);
    struct sim_token *token = sim_token_at(world, number);

    token->held = true;
    for (rl_nodes rest = round->granted & ~round->excluded; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        if (!is_given(client, round, token, node))
            sim_violate(world, "client %u counts a vote of node %u that was not given",
                        client->index, node);
        else if (!held && !may_count(client, user, token, node))
            sim_violate(world, "client %u counts a key on node %u that was made too late",
                        client->index, node);
    }
    /* A lock may have ended in the turn in which it was acquired. */
    if (held && rl_lease_is_held(lease) &&
        rl_lease_remaining_ns(lease, client->decided_from) < user->validity_min_ns)
        sim_violate(world, "client %u acquires a lock with too little validity", client->index);
    if (lease->terms->extends_max != 0 && lease->extends > lease->terms->extends_max)
        sim_violate(world, "client %u extends more often than it may", client->index);
    if (held && round->t1.boot_ns < client->corrected_boot_ns)
        sim_violate(world, "client %u acquires a lock, but its clocks stood during the round",
                    client->index);
    if (!held && predates_correction(client, user))
        sim_violate(world, "client %u extends a lock, but its clocks stood since the last round",
                    client->index);
    struct rl_now now = sim_client_clocks(client, world->now_ns + client->ahead_ns);
    if (!held && rl_remaining_ns(user->deadline, now) == 0)
        sim_violate(world, "client %u extends a lock that had expired", client->index);
    if (held && rl_lease_fence_chosen(lease) != 0 && lease->terms->kind == RL_LEASE_ACQUIRE)
        sim_fence_granted(client, user, token);
    user->deadline = lease->deadline;
    user->extended = !held;
    /* For an adopted lock, grants to the detaching client count as well, and grants that arrived
     * during the adoption. */
    bool adopted = held && round->verb == RL_VERB_EXTEND;
    user->t1_boot_ns = adopted ? UINT64_MAX : round->t1.boot_ns;
    user->began_boot_ns = round->t1.boot_ns;
}

/* Plans checks right before and after the deadline of the user's lock. */
void sim_oracle_deadline(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];
    const struct rl_lease *lease = &user->lock->lease;

    uint64_t end_ns = sim_clock_when(&client->boot, lease->deadline.boot_ns);
    uint64_t raw_ns = sim_clock_when(&client->raw, lease->deadline.raw_ns);
    end_ns = rl_min_u64(end_ns, raw_ns);
    sim_plan_event(world, end_ns > 1000 ? end_ns - 1000 : 0, SIM_CHECK, client->index, at, 0, NULL);
    sim_plan_event(world, end_ns + 1000, SIM_CHECK, client->index, at, 0, NULL);
    sim_plan_event(world, end_ns + LATE_NS + RL_MS / 2, SIM_CHECK, client->index, at, 0, NULL);
}

/* Checks a lock at the moment when its grant is reported to its user. */
void sim_oracle_granted(struct sim_client *client, unsigned at)
{
    const struct sim_user *user = &client->users[at];
    uint64_t left_ns = remaining_ns(client, user, client->world->now_ns);

    if (predates_correction(client, user))
        sim_violate(client->world,
                    "client %u user %u gets a grant, but its clocks stood during the round",
                    client->index, at);
    if (left_ns < user->validity_min_ns)
        sim_violate(client->world, "client %u user %u gets a grant with a validity of only %llu ns",
                    client->index, at, (unsigned long long)left_ns);
    sim_oracle_deadline(client, at);
}

/* Returns whether nothing has disturbed the connection from the token's client to this node: it is
 * older than the end of the token and open at both ends, and for CALM_NS there was no fault of the
 * link and no pause of the client. */
static bool is_calm(const struct sim_world *world, const struct sim_token *token, unsigned node)
{
    unsigned client = token->client;
    const struct sim_link *link = &world->links[client][node];
    uint64_t now_ns = world->now_ns;
    uint64_t resumed_ns = world->clients[client].resumed_ns;

    if (link->conn == NULL || !link->conn->server_open || link->conn->made_ns >= token->ended_ns)
        return false;
    return link->troubles == 0 &&
           (link->troubled_ns == 0 || now_ns > link->troubled_ns + CALM_NS) &&
           (resumed_ns == 0 || now_ns > resumed_ns + CALM_NS);
}

/* Returns the first key of the token that is left on this node, or NULL. */
static const struct sim_key *is_left(const struct sim_world *world, unsigned node,
                                     const struct sim_token *token)
{
    for (unsigned rest = token->resources; rest != 0; rest &= rest - 1) {
        unsigned resource = (unsigned)__builtin_ctz(rest);
        if (sim_server_has(world, node, resource, token))
            return &world->servers[node].keys[resource];
    }
    return NULL;
}

/* Returns when the undo must have been executed. More requests than the window holds may be queued
 * before it, for example a whole fence record. Then its time counts from the moment when the client
 * last continued after a wait for room. */
static uint64_t undo_due_ns(const struct sim_world *world, const struct sim_token *token,
                            const struct sim_conn *conn)
{
    uint64_t since_ns = conn->blocked ? world->now_ns : conn->unblocked_ns;

    return rl_max_u64(token->ended_ns, since_ns) + undo_limit_ns(world);
}

/* Handles SIM_LEFT: no key may be left of the token with this number. Plans the next check if an
 * undo may be under way. */
void sim_oracle_left(struct sim_world *world, uint32_t number)
{
    const struct sim_token *token = sim_token_at(world, number);
    uint64_t due_ns = 0;

    if (token->excused || token->closed || token->ended_ns == 0)
        return;
    for (unsigned i = 0; i < world->plan.nodes; i++) {
        if (is_left(world, i, token) == NULL || !is_calm(world, token, i))
            continue;
        uint64_t node_due_ns = undo_due_ns(world, token, world->links[token->client][i].conn);
        if (node_due_ns <= world->now_ns)
            sim_violate(world, "a key of token %u of client %u was left on node %u", number,
                        token->client, i);
        due_ns = rl_max_u64(due_ns, node_due_ns);
    }
    if (due_ns > world->now_ns)
        sim_plan_event(world, due_ns, SIM_LEFT, token->client, 0, number, NULL);
}

/* Returns whether a leftover key is excused, because no client could prevent it: a request was in
 * the network for long, or waited at a server that stood still, and its client had dropped the undo
 * when the request was executed. There are two cases. In one, a SET and its undo are executed
 * together while the server does not have the script, and the undo on a new connection was executed
 * earlier and found no key. In the other, an extension arrives after the end of its token, with no
 * connection for a whole TTL. In both cases the key expires. */
static bool is_excused(const struct sim_world *world, unsigned node, const struct sim_token *token,
                       const struct sim_key *key)
{
    const struct sim_server *server = &world->servers[node];
    uint64_t set_ns = key->set_ns;

    /* A client keeps an undo until the key must have expired. If a clock was stepped or runs too
     * slow or too fast, the client drops the undo too early. */
    if (world->plan.env_faults & (SIM_OUTSIDE_STEP | SIM_OUTSIDE_RATE | SIM_OUTSIDE_FREEZE))
        return true;

    return token->excused || token->closed ||
           (server->noscript_ns >= set_ns &&
            (key->late || set_ns > token->ended_ns + world->plan.ttl_ns / 2)) ||
           (token->ended_ns != 0 && key->extended_ns > token->ended_ns &&
            world->now_ns > token->ended_ns + world->plan.ttl_ns);
}

/* Checks at the end of a run that no key is left on any server. */
void sim_oracle_end(struct sim_world *world)
{
    for (uint32_t i = 1; i <= world->token_count; i++) {
        const struct sim_token *token = sim_token_at(world, i);
        for (unsigned node = 0; node < world->plan.nodes; node++) {
            if (token->sets[node] > 1 && !token->held)
                sim_violate(world, "node %u executed the SET of token %u twice", node, i);
            const struct sim_key *key = is_left(world, node, token);
            if (key != NULL && !is_excused(world, node, token, key))
                sim_violate(world, "at the end a key of token %u of client %u was left on node %u",
                            i, token->client, node);
        }
    }
}
