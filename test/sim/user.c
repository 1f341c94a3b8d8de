/* SPDX-License-Identifier: MIT
 * The users of a client: they acquire, hold, extend, detach, release and cancel. What the API does
 * between its callers and the engine is done here as well: a grant is confirmed right before it is
 * reported. */
#include "client.h"

#include "contention.h"
#include "lock_choice.h"
#include "oracle.h"
#include "permit.h"
#include "token.h"

#include <redlock/redlock.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_NS (4 * RL_SECOND)

static void plan_slot(struct sim_client *client, unsigned at, enum sim_event_kind kind,
                      uint64_t after_ns)
{
    struct sim_world *world = client->world;

    sim_plan_event(world, world->now_ns + client->ahead_ns + after_ns, kind, client->index, at,
                   client->slots[at].stamp, NULL);
}

static unsigned slot_of(const struct sim_client *client, const struct rl_lock *lock)
{
    for (unsigned i = 0; i < client->world->plan.slots; i++) {
        if (client->slots[i].lock == lock)
            return i;
    }
    abort();
}

/* Returns true if the event belongs to the present operation and the process runs. Delays the event
 * if the process stands still. */
static bool may_act(struct sim_client *client, unsigned at, enum sim_event_kind kind,
                    uint32_t stamp)
{
    struct sim_world *world = client->world;

    if (!client->alive || client->slots[at].stamp != stamp)
        return false;
    if (sim_client_runs(client))
        return true;
    sim_plan_event(world, client->paused_until_ns + sim_below(&world->random, RL_MS), kind,
                   client->index, at, stamp, NULL);
    return false;
}

static void think(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    uint64_t most_ns = world->plan.span_ns / (2 * world->plan.rounds);

    client->slots[at].doing = SIM_IDLE;
    client->slots[at].reported = false;
    client->slots[at].stamp++;
    if (world->plan.contention != NULL)
        plan_slot(client, at, SIM_USER, sim_contention_think_ns(client));
    else
        plan_slot(client, at, SIM_USER,
                  sim_chance(&world->random, 300) ? 0 : sim_scale(&world->random, RL_US, most_ns));
}

static void begin_operation(struct sim_client *client, unsigned at, enum sim_doing doing,
                            uint64_t limit_ns)
{
    struct sim_slot *slot = &client->slots[at];

    slot->doing = (uint8_t)doing;
    slot->done = false;
    slot->stamp++;
    slot->begun_ns = client->world->now_ns;
    slot->paused_ns = client->paused_total_ns;
    slot->limit_ns = limit_ns;
    client->world->operations++;
    if (limit_ns != RL_NEVER)
        plan_slot(client, at, SIM_LIMIT, limit_ns);
}

/* Gives the slot's lock an event of its user, and takes what it announces. */
static void give_event(struct sim_client *client, const struct sim_slot *slot, uint8_t kind,
                       uint64_t ttl_ns, int status)
{
    rl_lock_event(&client->engine, slot->lock, kind, ttl_ns, status);
    sim_user_take(client);
}

static void fail_to_start(struct sim_client *client, unsigned at)
{
    struct sim_slot *slot = &client->slots[at];

    rl_lock_dispose(&client->engine, slot->lock);
    free(slot->lock);
    slot->lock = NULL;
    slot->stamp++;
    think(client, at);
}

static void start(struct sim_client *client, unsigned at, const struct rl_lease_params *params,
                  uint32_t token)
{
    struct sim_slot *slot = &client->slots[at];
    struct sim_world *world = client->world;
    char names[SIM_KEYS_MAX][SIM_NAME_MAX];
    char text[SIM_TOKEN_HEX];
    struct rl_arg words = {NULL, 0}, keys[SIM_KEYS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < SIM_KEYS_MAX; i++) {
        if ((slot->resources >> i & 1) != 0)
            keys[count++] = sim_key_name(i, names[i]);
    }
    if (params->terms.permits != 0)
        keys[0] = (struct rl_arg){SIM_SEMAPHORE, sizeof SIM_SEMAPHORE - 1};
    if (token != 0) {
        memcpy(text, sim_token_at(world, token)->text, sizeof text);
        words = (struct rl_arg){text, sizeof text};
    }
    struct rl_storage storage = rl_storage_for(params); /* as the API does */
    slot->lock = calloc(1, sizeof *slot->lock + storage.size);
    if (slot->lock == NULL)
        abort();
    storage.at = slot->lock + 1;
    slot->ended = false;
    slot->endangered = false;
    slot->kept = false;
    slot->expired_ns = 0;
    slot->validity_min_ns = params->terms.validity_min_ns;
    slot->forever = params->wait_ns == RL_NEVER;
    sim_note(world, "client % slot % starts kind % on %", client->index, at, params->terms.kind,
             slot->resources);
    if (rl_lock_start_multi(&client->engine, slot->lock, params, &storage, keys, count, words) !=
        REDLOCK_OK)
        fail_to_start(client, at);
}

static void acquire(struct sim_client *client, unsigned at, uint32_t adopted)
{
    struct sim_world *world = client->world;
    struct sim_slot *slot = &client->slots[at];
    struct rl_lease_params params =
        sim_workload_params(client, adopted != 0 ? RL_LEASE_ADOPT : RL_LEASE_ACQUIRE);
    uint64_t limit_ns = params.wait_ns;

    params.confirms = true;
    if (adopted != 0 && params.wait_ns == RL_NEVER)
        params.wait_ns = params.terms.ttl_ns; /* the token may be gone for ever */
    if (limit_ns != RL_NEVER) /* a fenced lock may wait until the records are read */
        limit_ns += params.terms.ttl_ns + 4 * world->plan.connect_timeout_ns + SLACK_NS;
    if (adopted != 0)
        params.fence = world->offer_number;
    sim_workload_for(slot, adopted != 0 ? sim_token_at(world, adopted)->resources
                                        : sim_workload_resources(world));
    params.terms.permits = adopted == 0 ? (uint16_t)sim_permit_workload(client) : 0;
    if (params.terms.permits != 0) /* any of its slots */
        sim_workload_for(slot, 1u << SIM_RESOURCES_MAX);
    params.terms.fence = params.terms.fence && (slot->resources & (slot->resources - 1)) == 0;
    begin_operation(client, at, SIM_ACQUIRING, limit_ns);
    if (sim_chance(&world->random, world->plan.cancel))
        plan_slot(client, at, SIM_CANCEL, sim_scale(&world->random, RL_US, world->plan.ttl_ns));
    start(client, at, &params, adopted);
}

/* Starts an inspection, or a release by token of a lock that another user detached. */
static void ask(struct sim_client *client, unsigned at, uint32_t token)
{
    struct sim_world *world = client->world;
    struct sim_slot *slot = &client->slots[at];
    struct rl_lease_params params =
        sim_workload_params(client, token != 0 ? RL_LEASE_RELEASE : RL_LEASE_INSPECT);

    unsigned whole = token != 0 ? sim_token_at(world, token)->resources
                                : 1u << sim_below(&world->random, world->plan.resources);
    /* Of several resources only one is released: afterwards no client can have the whole lock. */
    bool part = token != 0 && (whole & (whole - 1)) != 0 && sim_chance(&world->random, 500);
    unsigned last = 31u - (unsigned)__builtin_clz(whole);
    sim_workload_for(slot, part ? 1u << last : whole);
    slot->part = part;
    slot->asked_token = token;
    begin_operation(client, at, SIM_ASKING, 4 * world->plan.connect_timeout_ns + SLACK_NS);
    start(client, at, &params, token);
}

static void begin_round(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_slot *slot = &client->slots[at];
    uint32_t offer = world->offer;

    if (world->healed || slot->rounds == 0)
        return;
    slot->rounds--;
    if (offer != 0 && sim_chance(&world->random, 500)) {
        world->offer = 0;
        if (sim_chance(&world->random, 800))
            acquire(client, at, offer);
        else
            ask(client, at, offer);
    } else if (sim_chance(&world->random, world->plan.inspect)) {
        ask(client, at, 0);
    } else {
        acquire(client, at, 0);
    }
}

static void release(struct sim_client *client, unsigned at, uint8_t kind, uint64_t keep_ns)
{
    struct sim_world *world = client->world;
    struct sim_slot *slot = &client->slots[at];

    slot->reported = false; /* its user does not need it any more */
    if (world->plan.contention != NULL)
        sim_contention_released(client);
    if (kind == RL_EVENT_SHORTEN && slot->token != 0)
        sim_token_at(world, slot->token)->excused = true;
    begin_operation(client, at, SIM_RELEASING, 4 * world->plan.connect_timeout_ns + SLACK_NS);
    sim_note(world, "client % slot % releases r%, kind %", client->index, at, slot->resource, kind);
    give_event(client, slot, kind, keep_ns, 0);
}

static void detach(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_slot *slot = &client->slots[at];

    if (slot->token != 0) {
        sim_token_at(world, slot->token)->excused = true;
        world->offer = slot->token;
        world->offer_number = rl_lease_fence_chosen(&slot->lock->lease);
    }
    sim_note(world, "client % slot % detaches token %", client->index, at, slot->token, 0);
    slot->reported = false;
    give_event(client, slot, RL_EVENT_DETACH, 0, 0);
    think(client, at);
}

static void hold_on(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    uint64_t most_ns = world->healed ? 10 * RL_MS : world->plan.ttl_ns;

    client->slots[at].doing = SIM_HOLDING;
    client->slots[at].stamp++;
    plan_slot(client, at, SIM_USER,
              world->plan.contention != NULL ? world->plan.contention->hold_ns
                                             : sim_scale(&world->random, RL_US, most_ns));
}

static void act_as_holder(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_random *random = &world->random;
    const struct sim_plan *plan = &world->plan;
    struct sim_slot *slot = &client->slots[at];

    if (slot->lock == NULL || slot->ended) { /* it has ended, and the end was reported */
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
        give_event(client, slot, RL_EVENT_EXTEND, ttl_ns, 0);
    } else if (sim_chance(random, plan->detach)) {
        detach(client, at);
    } else if (sim_chance(random, plan->keep)) {
        release(client, at, RL_EVENT_SHORTEN, sim_scale(random, 1, plan->ttl_ns / RL_MS) * RL_MS);
    } else {
        release(client, at, RL_EVENT_RELEASE, 0);
    }
}

static void after_call(struct sim_client *client)
{
    sim_user_take(client);
    rl_engine_flush(&client->engine);
    sim_user_take(client);
    sim_user_sweep(client);
    sim_oracle_client(client);
}

void sim_user_act(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_slot *slot = &client->slots[at];

    if (!may_act(client, at, SIM_USER, stamp))
        return;
    rl_engine_refresh(&client->engine);
    if (slot->doing == SIM_IDLE)
        begin_round(client, at);
    else if (slot->doing == SIM_HOLDING)
        act_as_holder(client, at);
    after_call(client);
}

void sim_user_cancel(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_slot *slot = &client->slots[at];

    if (!may_act(client, at, SIM_CANCEL, stamp))
        return;
    if (slot->doing != SIM_ACQUIRING || slot->done || slot->ended)
        return;
    world->injected[SIM_CANCELED]++;
    sim_note(world, "client % slot % gives up", index, at, 0, 0);
    rl_engine_refresh(&client->engine);
    give_event(client, slot, RL_EVENT_CANCEL, 0, REDLOCK_ECANCELED);
    after_call(client);
}

void sim_user_limit(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_slot *slot = &client->slots[at];
    uint64_t paused_ns = client->paused_total_ns - slot->paused_ns;

    if (!may_act(client, at, SIM_LIMIT, stamp) || slot->done)
        return;
    if (paused_ns != 0) {
        slot->paused_ns = client->paused_total_ns;
        plan_slot(client, at, SIM_LIMIT, paused_ns + slot->limit_ns);
        return;
    }
    sim_violate(world, "client %u slot %u was never told how its operation %u on r%u ended", index,
                at, slot->doing, slot->resource);
}

/* Does what the API does before it reports a grant. Returns true if there is a result to report. */
static bool confirm(struct sim_client *client, unsigned at)
{
    struct sim_slot *slot = &client->slots[at];

    slot->done = false; /* a failure of the lock from now on is reported anew */
    give_event(client, slot, RL_EVENT_CONFIRM, 0, 0);
    if (slot->done)
        return false;
    slot->done = slot->ended || slot->lock->lease.state != RL_STATE_WAITING;
    return slot->done;
}

static bool is_grant(const struct sim_slot *slot)
{
    uint8_t state = slot->lock->lease.state;

    return slot->status == REDLOCK_OK && !slot->ended &&
           (state == RL_STATE_HELD || state == RL_STATE_EXTENDING);
}

static void tell_grant(struct sim_client *client, unsigned at)
{
    struct sim_world *world = client->world;
    struct sim_slot *slot = &client->slots[at];

    sim_oracle_client(client);
    slot->reported = true;
    slot->expired_ns = 0;
    world->grants++;
    if (world->plan.contention != NULL)
        sim_contention_granted(client, at);
    sim_note(world, "client % slot % holds r% with token %", client->index, at, slot->resource,
             slot->token);
    sim_oracle_granted(client, at);
    hold_on(client, at);
}

void sim_user_report(struct sim_world *world, unsigned index, unsigned at, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];
    struct sim_slot *slot = &client->slots[at];

    if (!may_act(client, at, SIM_TELL, stamp) || !slot->done)
        return;
    rl_engine_refresh(&client->engine);
    switch (slot->doing) {
    case SIM_ACQUIRING:
        if (slot->status != REDLOCK_OK || slot->ended)
            think(client, at);
        else if (confirm(client, at) && is_grant(slot))
            tell_grant(client, at);
        else if (slot->done && slot->ended)
            think(client, at);
        break;
    case SIM_EXTENDING:
        if (slot->ended)
            think(client, at);
        else
            hold_on(client, at);
        break;
    case SIM_ASKING:
        if (slot->part && slot->status == REDLOCK_OK && world->offer == 0)
            world->offer = slot->asked_token;
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

static void note_done(struct sim_client *client, unsigned at, int status)
{
    struct sim_world *world = client->world;
    struct sim_slot *slot = &client->slots[at];
    uint64_t late_ns = sim_below(&world->random, 50 * RL_US);

    if (slot->done && slot->doing == SIM_ACQUIRING && slot->status == REDLOCK_OK && slot->ended) {
        slot->status = status; /* the grant that was about to be reported does not hold */
        return;
    }
    if (slot->done || slot->doing == SIM_IDLE || slot->doing == SIM_HOLDING) {
        sim_violate(world, "client %u slot %u was told twice how an operation ended", client->index,
                    at);
        return;
    }
    slot->done = true;
    slot->status = status;
    if (!world->healed && sim_chance(&world->random, world->plan.late_report))
        late_ns = sim_scale(&world->random, RL_MS, world->plan.ttl_ns);
    plan_slot(client, at, SIM_TELL, late_ns);
}

/* Takes what happened to one lock. */
static void take_lock(struct sim_client *client, const struct rl_lock *lock,
                      const struct rl_announcement *news)
{
    unsigned at = slot_of(client, lock);
    uint32_t flags = news->flags;
    int status = (flags & RL_FX_DONE) != 0 ? news->status : news->event_status;
    struct sim_slot *slot = &client->slots[at];

    sim_note(client->world, "client % slot % hears %, status %", client->index, at, flags,
             (uint64_t)(-(int64_t)status));
    if (slot->ended)
        sim_violate(client->world, "client %u slot %u hears of a lock that ended", client->index,
                    at);
    if ((flags & RL_FX_HELD) || (flags & RL_FX_EXTENDED))
        sim_oracle_votes(client, slot, (flags & RL_FX_HELD) != 0);
    if ((flags & RL_FX_EXTENDED) && slot->reported)
        sim_oracle_deadline(client, at);
    if (flags & RL_FX_ENDED)
        slot->ended = true;
    if ((flags & RL_FX_WAITING) && slot->doing == SIM_ACQUIRING)
        slot->done = false; /* nor does this grant, and the acquisition continues */
    if ((flags & RL_FX_DONE) && client->alive)
        note_done(client, at, status);
    if ((flags & RL_FX_LOST) && slot->reported) {
        slot->reported = false;
        if (slot->doing == SIM_HOLDING)
            think(client, at);
    }
}

static void take_node(struct sim_client *client, unsigned node)
{
    const struct rl_node *it = &client->engine.nodes[node];

    sim_note(client->world, "client % sees node % in state %, suspect: %", client->index, node,
             it->conn.state, it->detector.suspect);
}

void sim_user_take(struct sim_client *client)
{
    struct rl_announcements *list = rl_engine_announcements(&client->engine);
    struct rl_announcement news;
    const struct rl_lock *lock;
    uint64_t pttl_ms;
    unsigned node;

    while (rl_announcements_take_node(list, &node))
        take_node(client, node);
    while (rl_announcements_take_long_ttl(list, &node, &pttl_ms))
        continue; /* its users do not care */
    while ((lock = rl_announcements_take(list, &news)) != NULL)
        take_lock(client, lock, &news);
}

void sim_user_begin(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->clients[index];

    for (unsigned i = 0; i < world->plan.slots; i++)
        think(client, i);
}

void sim_user_finish(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->clients[index];

    for (unsigned i = 0; i < world->plan.slots; i++) {
        if (client->slots[i].doing == SIM_HOLDING)
            hold_on(client, i);
    }
}
