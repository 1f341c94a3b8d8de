/* SPDX-License-Identifier: MIT
 * The users of a client: they acquire, hold, extend, detach, release and cancel. This file also
 * does what the API does between its callers and the engine: it confirms a grant right before it
 * reports the grant. `at` is the index of a user in its client.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. `index` is the client's number
 * and `at` the user's. An event whose `stamp` is not that of the user's present operation is
 * stale and ignored. */
#include "client.h"

#include "contention.h"
#include "fault.h"
#include "lock_choice.h"
#include "oracle.h"
#include "permit.h"
#include "token.h"

#include <redlock/redlock.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_NS (4 * RL_SECOND) /* added to all time limits of operations */

/* Appends an event for the user's present operation. */
static void plan_user_event(struct sim_client *client, unsigned at, enum sim_event_kind kind,
                            uint64_t after_ns)
{
    struct sim_world *world = client->world;

    sim_plan_event(world, world->now_ns + client->ahead_ns + after_ns, kind, client->index, at,
                   client->users[at].stamp, NULL);
}

/* Returns the index of the user that has the lock. */
static unsigned user_of(const struct sim_client *client, const struct rl_lock *lock)
{
    for (unsigned i = 0; i < client->world->plan.users; i++) {
        if (client->users[i].lock == lock)
            return i;
    }
    abort();
}

/* Returns true if the event belongs to the user's present operation and the process runs. Delays
 * the event if the process is paused. */
static bool may_act(struct sim_client *client, unsigned at, enum sim_event_kind kind,
                    uint32_t stamp)
{
    struct sim_world *world = client->world;

    if (!client->alive || client->users[at].stamp != stamp)
        return false;
    if (sim_client_runs(client))
        return true;
    sim_plan_event(world, client->paused_until_ns + sim_below(&world->random, RL_MS), kind,
                   client->index, at, stamp, NULL);
    return false;
}

/* Makes the user idle, and plans its next operation after a pause. A pause is short if the token of
 * a process that has died waits for a supervisor. */
static void think(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    uint64_t most_ns = world->plan.span_ns / (2 * world->plan.rounds);

    if (world->plan.die != 0 && world->offer != 0)
        most_ns = world->plan.ttl_ns / 50;

    bool released = client->users[at].doing == SIM_RELEASING;

    client->users[at].doing = SIM_IDLE;
    client->users[at].reported = false;
    client->users[at].stamp++;
    if (released && sim_contention_replaces(client))
        return;
    if (world->plan.contention != NULL)
        plan_user_event(client, at, SIM_USER, sim_contention_think_ns(client));
    else
        plan_user_event(
            client, at, SIM_USER,
            sim_chance(&world->random, 300) ? 0 : sim_scale(&world->random, RL_US, most_ns));
}

/* Begins an operation, whose result must be reported within limit_ns; RL_NEVER: no limit. */
static void begin_operation(struct sim_client *client, unsigned at, enum sim_doing doing,
                            uint64_t limit_ns)
{
    struct sim_user *user = &client->users[at];

    user->doing = (uint8_t)doing;
    user->done = false;
    user->attempts = 0;
    user->stamp++;
    user->begun_ns = client->world->now_ns;
    user->paused_ns = client->paused_total_ns;
    user->limit_ns = limit_ns;
    client->world->operations++;
    if (limit_ns != RL_NEVER)
        plan_user_event(client, at, SIM_LIMIT, limit_ns);
}

/* Gives the user's lock an event, and takes what it announces. */
static void give_event(struct sim_client *client, const struct sim_user *user, uint8_t kind,
                       uint64_t ttl_ns, int status)
{
    rl_lock_event(&client->engine, user->lock, kind, ttl_ns, status);
    sim_user_take(client);
}

/* Frees a lock that the engine did not accept, and makes its user idle. */
static void fail_to_start(struct sim_client *client, unsigned at)
{
    struct sim_user *user = &client->users[at];

    rl_lock_dispose(&client->engine, user->lock);
    free(user->lock);
    user->lock = NULL;
    user->stamp++;
    think(client, at);
}

/* Creates a lock for the user's resources and starts it. `token` is the number of the token for
 * RL_LEASE_ADOPT and RL_LEASE_RELEASE, 0 otherwise. */
static void start(struct sim_client *client, unsigned at, const struct rl_lease_params *params,
                  uint32_t token)
{
    struct sim_user *user = &client->users[at];
    struct sim_world *world = client->world;
    char names[SIM_KEYS_MAX][SIM_NAME_MAX];
    char text[SIM_TOKEN_HEX];
    struct rl_arg words = {NULL, 0}, keys[SIM_KEYS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < SIM_KEYS_MAX; i++) {
        if ((user->resources >> i & 1) != 0)
            keys[count++] = sim_key_name(i, names[i]);
    }
    if (params->terms.permits != 0)
        keys[0] = (struct rl_arg){SIM_SEMAPHORE, sizeof SIM_SEMAPHORE - 1};
    if (token != 0) {
        memcpy(text, sim_token_at(world, token)->text, sizeof text);
        words = (struct rl_arg){text, sizeof text};
    }
    struct rl_storage storage = rl_storage_for(params); /* as the API does */
    user->lock = calloc(1, sizeof *user->lock + storage.size);
    if (user->lock == NULL)
        abort();
    storage.at = user->lock + 1;
    user->ended = false;

    user->expired_ns = 0;
    user->validity_min_ns = params->terms.validity_min_ns;

    sim_note(world, "client % user % starts kind % on %", client->index, at, params->terms.kind,
             user->resources);
    if (rl_lock_start_multi(&client->engine, user->lock, params, &storage, keys, count, words) !=
        REDLOCK_OK)
        fail_to_start(client, at);
}

/* Begins to acquire a lock, or to adopt the token of that number if it is not 0. */
static void acquire(struct sim_client *client, unsigned at, uint32_t adopted)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];
    struct rl_lease_params params =
        sim_choose_params(client, adopted != 0 ? RL_LEASE_ADOPT : RL_LEASE_ACQUIRE);
    uint64_t limit_ns = params.wait_ns;

    params.confirms = true;
    if (adopted != 0 && params.wait_ns == RL_NEVER)
        params.wait_ns = params.terms.ttl_ns; /* the keys of the token may never appear again */
    if (limit_ns != RL_NEVER) /* a fenced lock may wait until the records are read */
        limit_ns += params.terms.ttl_ns + 4 * world->plan.connect_timeout_ns + SLACK_NS;
    if (adopted != 0)
        params.fence = world->offer_number;
    sim_user_set_resources(user, adopted != 0 ? sim_token_at(world, adopted)->resources
                                              : sim_choose_resources(world));
    params.terms.permits = adopted == 0 ? (uint16_t)sim_choose_permits(client) : 0;
    if (params.terms.permits != 0) /* sim_permit_follow() sets the slot that is tried */
        sim_user_set_resources(user, 1u << SIM_RESOURCES_MAX);
    params.terms.fence = params.terms.fence && (user->resources & (user->resources - 1)) == 0;
    begin_operation(client, at, SIM_ACQUIRING, limit_ns);
    if (sim_chance(&world->random, world->plan.cancel))
        plan_user_event(client, at, SIM_CANCEL,
                        sim_scale(&world->random, RL_US, world->plan.ttl_ns));
    start(client, at, &params, adopted);
}

/* Starts a release by token of a lock that another user detached, or an inspection if `token` is 0.
 */
static void inspect_or_release(struct sim_client *client, unsigned at, uint32_t token)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];
    struct rl_lease_params params =
        sim_choose_params(client, token != 0 ? RL_LEASE_RELEASE : RL_LEASE_INSPECT);

    unsigned whole = token != 0 ? sim_token_at(world, token)->resources
                                : 1u << sim_below(&world->random, world->plan.resources);
    /* Releases only one of several resources: afterwards no client can have the whole lock. */
    bool part = token != 0 && (whole & (whole - 1)) != 0 && sim_chance(&world->random, 500);
    unsigned last = 31u - (unsigned)__builtin_clz(whole);
    sim_user_set_resources(user, part ? 1u << last : whole);
    user->part = part;
    user->released_token = token;
    begin_operation(client, at, SIM_REQUESTING, 4 * world->plan.connect_timeout_ns + SLACK_NS);
    start(client, at, &params, token);
}

/* Begins the next operation of an idle user. */
static void begin_round(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];
    uint32_t offer = world->offer;

    if (world->healed || user->rounds == 0)
        return;
    user->rounds--;
    if (offer != 0 && sim_chance(&world->random, 500)) {
        world->offer = 0;
        if (sim_chance(&world->random, 800))
            acquire(client, at, offer);
        else
            inspect_or_release(client, at, offer);
    } else if (sim_chance(&world->random, world->plan.inspect)) {
        inspect_or_release(client, at, 0);
    } else {
        acquire(client, at, 0);
    }
}

/* Releases the user's lock. With RL_EVENT_SHORTEN, its keys stay for keep_ns; RL_EVENT_RELEASE
 * deletes them. */
static void release(struct sim_client *client, unsigned at, uint8_t kind, uint64_t keep_ns)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];

    user->reported = false; /* the user does not rely on it any more */
    if (world->plan.contention != NULL)
        sim_contention_released(client, at);
    if (kind == RL_EVENT_SHORTEN && user->token != 0)
        sim_token_at(world, user->token)->excused = true;
    begin_operation(client, at, SIM_RELEASING, 4 * world->plan.connect_timeout_ns + SLACK_NS);
    sim_note(world, "client % user % releases r%, kind %", client->index, at, user->resource, kind);
    give_event(client, user, kind, keep_ns, 0);
}

/* Detaches the user's lock, and offers its token to other users. */
static void detach(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];

    if (user->token != 0) {
        sim_token_at(world, user->token)->excused = true;
        world->offer = user->token;
        world->offer_number = rl_lease_fence_chosen(&user->lock->lease);
    }
    sim_note(world, "client % user % detaches token %", client->index, at, user->token, 0);
    user->reported = false;
    give_event(client, user, RL_EVENT_DETACH, 0, 0);
    think(client, at);
}

/* Makes the user hold its lock for a while. */
static void hold_on(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    uint64_t most_ns = world->healed ? 10 * RL_MS : world->plan.ttl_ns;

    client->users[at].doing = SIM_HOLDING;
    client->users[at].stamp++;
    plan_user_event(client, at, SIM_USER,
                    world->plan.contention != NULL ? world->plan.contention->hold_ns
                                                   : sim_scale(&world->random, RL_US, most_ns));
}

/* Chooses what a user with a lock does next: hold it for longer, extend, detach or release it. */
static void act_as_holder(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_random *random = &world->random;
    const struct sim_plan *plan = &world->plan;
    struct sim_user *user = &client->users[at];

    if (user->lock == NULL || user->ended) { /* it has ended, and the end was reported */
        think(client, at);
    } else if (world->healed) {
        release(client, at, RL_EVENT_RELEASE, 0);
    } else if (sim_chance(random, plan->lapse)) {
        hold_on(client, at); /* continues until the lock is lost or the faults end */
    } else if (sim_chance(random, plan->extend)) {
        uint64_t ttl_ns =
            sim_chance(random, 500)
                ? 0
                : sim_between(random, plan->ttl_ns / 4 / RL_MS, plan->ttl_ns / RL_MS) * RL_MS;
        begin_operation(client, at, SIM_EXTENDING, plan->ttl_ns + SLACK_NS);
        give_event(client, user, RL_EVENT_EXTEND, ttl_ns, 0);
    } else if (sim_chance(random, plan->detach)) {
        detach(client, at);
    } else if (sim_chance(random, plan->keep)) {
        release(client, at, RL_EVENT_SHORTEN, sim_scale(random, 1, plan->ttl_ns / RL_MS) * RL_MS);
    } else {
        release(client, at, RL_EVENT_RELEASE, 0);
    }
}

/* Does what follows every call into the engine: sends requests, frees locks and runs checks. */
static void after_call(struct sim_client *client)
{
    sim_user_take(client);
    rl_engine_flush(&client->engine);
    sim_user_take(client);
    sim_user_sweep(client);
    sim_oracle_client(client);
    sim_user_risk(client);
}

/* Handles SIM_USER: an idle user begins its next operation, and a holder chooses what to do with
 * its lock. */
void sim_user_act(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_user *user = &client->users[at];

    if (!may_act(client, at, SIM_USER, stamp))
        return;
    sim_client_refresh(client);
    if (user->doing == SIM_IDLE)
        begin_round(client, at);
    else if (user->doing == SIM_HOLDING)
        act_as_holder(client, at);
    after_call(client);
}

/* Handles SIM_CANCEL: cancels the acquisition, if it still runs. */
void sim_user_cancel(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_user *user = &client->users[at];

    if (!may_act(client, at, SIM_CANCEL, stamp))
        return;
    if (user->doing != SIM_ACQUIRING || user->done || user->ended)
        return;
    world->injected[SIM_CANCELED]++;
    sim_note(world, "client % user % cancels", index, at, 0, 0);
    sim_client_refresh(client);
    give_event(client, user, RL_EVENT_CANCEL, 0, REDLOCK_ECANCELED);
    after_call(client);
}

/* Returns whether the user's token may be adopted if its process dies now: no undo of the token was
 * sent, which could delete keys of the adopted lock. */
static bool is_adoptable(const struct sim_user *user)
{
    uint8_t state = user->lock != NULL && !user->ended ? user->lock->lease.state : RL_STATE_ENDED;

    return user->token != 0 && user->lock->lease.permit == NULL &&
           (state == RL_STATE_ACQUIRING || state == RL_STATE_HELD || state == RL_STATE_EXTENDING);
}

/* Offers a token of the process, which dies, to other users: their supervisor knows the token, but
 * not whether its attempt has won. Only in supervised runs. */
void sim_user_bequeath(struct sim_client *client)
{
    struct sim_world *world = client->world;

    for (unsigned i = 0; i < world->plan.users && world->plan.die != 0; i++) {
        const struct sim_user *user = &client->users[i];
        if (!is_adoptable(user))
            continue;
        sim_token_at(world, user->token)->excused = true;
        world->offer = user->token;
        world->offer_number =
            rl_lease_is_held(&user->lock->lease) ? rl_lease_fence_chosen(&user->lock->lease) : 0;
        sim_note(world, "client % user % dies with token %", client->index, i, user->token, 0);
    }
}

/* Plans the death of the process during the attempts that have begun, as often as the plan says. */
void sim_user_risk(struct sim_client *client)
{
    struct sim_world *world = client->world;

    for (unsigned i = 0; i < world->plan.users && world->plan.die != 0; i++) {
        struct sim_user *user = &client->users[i];
        if (user->doing != SIM_ACQUIRING || user->lock == NULL || user->ended ||
            user->attempts == user->lock->lease.attempts)
            continue;
        user->attempts = user->lock->lease.attempts;
        if (sim_chance(&world->random, world->plan.die))
            plan_user_event(client, i, SIM_DIE,
                            sim_between(&world->random, world->plan.delay_ns,
                                        6 * world->plan.delay_ns + world->plan.latency_ns));
    }
}

/* Handles SIM_DIE: kills the process and starts a new one, if an attempt of the user runs. */
void sim_user_die(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_user *user = &client->users[at];

    if (!may_act(client, at, SIM_DIE, stamp) || world->healed || user->doing != SIM_ACQUIRING ||
        !is_adoptable(user))
        return;
    world->injected[SIM_KILL]++;
    sim_fault_replace_client(world, index, true);
}

/* Handles SIM_LIMIT: an operation without a result is a violation. If the process was paused
 * meanwhile, the limit begins anew. */
void sim_user_limit(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_user *user = &client->users[at];
    uint64_t paused_ns = client->paused_total_ns - user->paused_ns;

    if (!may_act(client, at, SIM_LIMIT, stamp) || user->done)
        return;
    if (paused_ns != 0) {
        user->paused_ns = client->paused_total_ns;
        plan_user_event(client, at, SIM_LIMIT, paused_ns + user->limit_ns);
        return;
    }
    sim_violate(world, "client %u user %u never got the result of its operation %u on r%u", index,
                at, user->doing, user->resource);
}

/* Does what the API does before it reports a grant. Returns true if there is a result to report. */
static bool confirm(struct sim_client *client, unsigned at)
{
    struct sim_user *user = &client->users[at];

    user->done = false; /* a failure of the lock from now on is reported anew */
    give_event(client, user, RL_EVENT_CONFIRM, 0, 0);
    if (user->done)
        return false;
    user->done = user->ended || user->lock->lease.state != RL_STATE_WAITING;
    return user->done;
}

/* Returns whether the result of the acquisition is a lock that is still held. */
static bool is_grant(const struct sim_user *user)
{
    uint8_t state = user->lock->lease.state;

    return user->status == REDLOCK_OK && !user->ended &&
           (state == RL_STATE_HELD || state == RL_STATE_EXTENDING);
}

/* Reports a confirmed grant to its user, who holds the lock from now on. */
static void report_grant(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];

    sim_oracle_client(client);
    user->reported = true;
    user->expired_ns = 0;
    world->grants++;
    if (world->plan.contention != NULL)
        sim_contention_granted(client, at);
    sim_note(world, "client % user % holds r% with token %", client->index, at, user->resource,
             user->token);
    sim_oracle_granted(client, at);
    hold_on(client, at);
}

/* Handles SIM_REPORT: the user learns the result of its operation and goes on. */
void sim_user_report(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_user *user = &client->users[at];

    if (!may_act(client, at, SIM_REPORT, stamp) || !user->done)
        return;
    sim_client_refresh(client);
    switch (user->doing) {
    case SIM_ACQUIRING:
        if (user->status != REDLOCK_OK || user->ended)
            think(client, at);
        else if (confirm(client, at) && is_grant(user))
            report_grant(client, at);
        else if (user->done && user->ended)
            think(client, at);
        break;
    case SIM_EXTENDING:
        if (user->ended)
            think(client, at);
        else
            hold_on(client, at);
        break;
    case SIM_REQUESTING:
        if (user->part && user->status == REDLOCK_OK && world->offer == 0)
            world->offer = user->released_token;
        think(client, at);
        break;
    case SIM_RELEASING:
        think(client, at);
        break;
    default:
        break;
    }
    after_call(client);
}

/* Stores the result of an operation, and plans its report to the user. A second result replaces a
 * grant that was not reported yet and that has failed since. */
static void note_done(struct sim_client *client, unsigned at, int status)
{
    struct sim_world *world = client->world;
    struct sim_user *user = &client->users[at];
    uint64_t late_ns = sim_below(&world->random, 50 * RL_US);

    if (user->done && user->doing == SIM_ACQUIRING && user->status == REDLOCK_OK && user->ended) {
        user->status = status;
        return;
    }
    if (user->done || user->doing == SIM_IDLE || user->doing == SIM_HOLDING) {
        sim_violate(world, "client %u user %u got two results of one operation", client->index, at);
        return;
    }
    user->done = true;
    user->status = status;
    if (!world->healed && sim_chance(&world->random, world->plan.late_report))
        late_ns = sim_scale(&world->random, RL_MS, world->plan.ttl_ns);
    plan_user_event(client, at, SIM_REPORT, late_ns);
}

/* Takes what happened to one lock. */
static void take_lock(struct sim_client *client, const struct rl_lock *lock,
                      const struct rl_announcement *announcement)
{
    unsigned at = user_of(client, lock);
    uint32_t flags = announcement->flags;
    int status = (flags & RL_FX_DONE) != 0 ? announcement->status : announcement->event_status;
    struct sim_user *user = &client->users[at];

    sim_note(client->world, "client % user % receives %, status %", client->index, at, flags,
             (uint64_t)(-(int64_t)status));
    if (user->ended)
        sim_violate(client->world, "client %u user %u gets a report about a lock that has ended",
                    client->index, at);
    if ((flags & RL_FX_HELD) || (flags & RL_FX_EXTENDED))
        sim_oracle_votes(client, user, (flags & RL_FX_HELD) != 0);
    if ((flags & RL_FX_EXTENDED) && user->reported)
        sim_oracle_deadline(client, at);
    if (flags & RL_FX_ENDED)
        user->ended = true;
    if ((flags & RL_FX_WAITING) && user->doing == SIM_ACQUIRING)
        user->done = false; /* the grant has failed before its report; the acquisition continues */
    if ((flags & RL_FX_DONE) && client->alive && !client->leaving)
        note_done(client, at, status);
    if ((flags & RL_FX_LOST) && user->reported) {
        user->reported = false;
        if (user->doing == SIM_HOLDING)
            think(client, at);
    }
}

/* Notes an announcement that the state of a node has changed. */
static void take_node(struct sim_client *client, unsigned node)
{
    const struct rl_node *state = &client->engine.nodes[node];

    sim_note(client->world, "client % sees node % in state %, suspect: %", client->index, node,
             state->conn.state, state->detector.suspect);
}

/* Takes all announcements of the engine, and gives those about locks to their users. */
void sim_user_take(struct sim_client *client)
{
    struct rl_announcements *list = rl_engine_announcements(&client->engine);
    struct rl_announcement announcement;
    const struct rl_lock *lock;
    uint64_t pttl_ms;
    unsigned node;

    while (rl_announcements_take_node(list, &node))
        take_node(client, node);
    while (rl_announcements_take_long_ttl(list, &node, &pttl_ms))
        continue; /* its users do not care */
    while ((lock = rl_announcements_take(list, &announcement)) != NULL)
        take_lock(client, lock, &announcement);
    client->decided_from = client->engine.view.now;
}

/* Starts all users of the client: each pauses before its first operation. */
void sim_user_begin(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->clients[index];

    for (unsigned i = 0; i < world->plan.users; i++)
        think(client, i);
}

/* Makes the holders release soon, because all faults have ended. */
void sim_user_finish(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->clients[index];

    for (unsigned i = 0; i < world->plan.users; i++) {
        if (client->users[i].doing == SIM_HOLDING)
            hold_on(client, i);
    }
}
