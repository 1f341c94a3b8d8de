/* SPDX-License-Identifier: MIT
 * The loop of a client process, as lib/api/loop.c runs it on real sockets.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. `at_ns` and `true_ns` are true
 * time of the world; the client's own clocks may differ. The inbox holds what the sockets of the
 * process have received until the loop turns next. */
#include "client.h"

#include "contention.h"
#include "link.h"
#include "oracle.h"
#include "record.h"
#include "records.h"
#include "shutdown.h"
#include "token.h"

#include <redlock/redlock.h>
#include <stdlib.h>
#include <string.h>

/* Returns what the client's boot clock and raw clock show at that true time. */
struct rl_now sim_client_clocks(const struct sim_client *client, uint64_t true_ns)
{
    return (struct rl_now){
        .boot_ns = sim_clock_read(&client->boot, true_ns),
        .raw_ns = sim_clock_read(&client->raw, true_ns),
    };
}

/* Returns whether the client has a process that is not paused. */
bool sim_client_runs(const struct sim_client *client)
{
    return client->alive && client->paused_until_ns <= client->world->now_ns;
}

/* ---- memory ---- */

/* Returns whether an allocation of the client fails. */
static bool fails(struct sim_client *client)
{
    return client->fail_of_1000 != 0 && sim_chance(&client->world->random, client->fail_of_1000);
}

/* Allocator of the engine: fails in fail_of_1000 of 1000 calls, and counts the blocks. */
static void *client_malloc(size_t size, void *userdata)
{
    struct sim_client *client = userdata;

    if (fails(client))
        return NULL;
    client->allocated++;
    return malloc(size);
}

/* The same for realloc(). Only a call with NULL adds a block. */
static void *client_realloc(void *ptr, size_t size, void *userdata)
{
    struct sim_client *client = userdata;

    if (fails(client))
        return NULL;
    client->allocated += ptr == NULL;
    return realloc(ptr, size);
}

/* The same for free(), which never fails. */
static void client_free(void *ptr, void *userdata)
{
    struct sim_client *client = userdata;

    client->allocated -= ptr != NULL;
    free(ptr);
}

/* ---- the environment of the engine: `ctx` is the client ---- */

/* Environment of the engine: fills the bytes from the random numbers of the run. */
static void fill_random(void *ctx, void *bytes, size_t size)
{
    struct sim_client *client = ctx;
    unsigned char *to = bytes;

    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)sim_word(&client->world->random);
}

/* Environment of the engine: returns the client's clocks now, ahead_ns later within a turn. */
static struct rl_now read_clocks(void *ctx)
{
    struct sim_client *client = ctx;
    struct sim_world *world = client->world;

    return sim_client_clocks(client, world->now_ns + client->ahead_ns);
}

/* Environment of the engine: returns the client's wall clock in microseconds. */
static uint64_t read_wall(void *ctx)
{
    struct sim_client *client = ctx;

    return sim_clock_read(&client->wall, client->world->now_ns + client->ahead_ns) / RL_US;
}

/* Plans a turn of the loop at that time, after a random delay, unless an earlier one is planned. */
static void plan_turn(struct sim_client *client, uint64_t at_ns)
{
    struct sim_world *world = client->world;

    if (at_ns < world->now_ns)
        at_ns = world->now_ns;
    at_ns += sim_below(&world->random, world->plan.latency_ns);
    if (at_ns >= client->turn_ns)
        return;
    client->turn_ns = at_ns;
    sim_plan_event(world, at_ns, SIM_TURN, client->index, 0, ++client->turn_stamp, NULL);
}

/* Checks that the engine's stored wake-up time is not later than the earliest limit of its nodes.
 * The engine does not compute it anew in each turn. */
static void check_wake(struct rl_engine *engine)
{
    for (unsigned i = 0; i < engine->count; i++)
        RL_ASSERT(engine->common.wake_ns <= rl_node_wake_ns(&engine->nodes[i]));
}

/* Environment of the engine: plans the turn of the loop at which the boot clock shows boot_ns
 * (RL_NEVER: none). */
static void wake_at(void *ctx, uint64_t boot_ns)
{
    struct sim_client *client = ctx;

    check_wake(&client->engine);
    if (boot_ns != RL_NEVER)
        plan_turn(client, sim_clock_when(&client->boot, boot_ns));
}

/* ---- the inbox: segments and events that the sockets of the process hold ---- */

/* Appends a segment to the client's inbox, which owns it from then on, and plans a turn. NULL
 * stands for the event that `conn` has room again. */
void sim_client_inbox(struct sim_world *world, struct sim_conn *conn, struct sim_segment *segment)
{
    struct sim_client *client = &world->clients[conn->client];
    struct sim_inbox *item = malloc(sizeof *item);

    if (item == NULL)
        abort();
    *item = (struct sim_inbox){NULL, conn, segment};
    if (segment == NULL)
        conn->refs++;
    if (client->inbox_last != NULL)
        client->inbox_last->next = item;
    else
        client->inbox_first = item;
    client->inbox_last = item;
    plan_turn(client, world->now_ns);
}

/* Removes the first item from the inbox and returns it, or NULL if the inbox is empty. */
static struct sim_inbox *take_item(struct sim_client *client)
{
    struct sim_inbox *item = client->inbox_first;

    if (item == NULL)
        return NULL;
    client->inbox_first = item->next;
    if (item->next == NULL)
        client->inbox_last = NULL;
    return item;
}

/* Frees an item and its segment, and drops the reference to its connection. */
static void drop_item(struct sim_client *client, struct sim_inbox *item)
{
    struct sim_conn *conn = item->conn;

    free(item->segment);
    free(item);
    sim_conn_drop(client->world, conn);
}

/* Handles that the network takes more bytes of a connection. Returns whether the engine may send
 * more. */
static bool has_room(struct sim_client *client, struct sim_conn *conn)
{
    return conn->records == NULL || sim_records_continue(client, conn);
}

/* Passes an event of the connection for notifications to the engine. */
static void hand_over_push(struct sim_client *client, struct sim_conn *conn,
                           const struct sim_segment *segment)
{
    struct rl_node *node = &client->engine.nodes[conn->node];
    uint64_t now_ns = client->engine.view.now.boot_ns;

    if (segment == NULL) {
        if (has_room(client, conn))
            rl_tracker_flush(node, now_ns);
        return;
    }
    switch (segment->kind) {
    case SIM_ACCEPT:
        rl_tracker_opened(node, true, now_ns);
        break;
    case SIM_REFUSE:
        conn->client_open = false;
        rl_tracker_opened(node, false, now_ns);
        break;
    case SIM_DATA:
        rl_tracker_received(node, segment->bytes, segment->len, now_ns);
        break;
    default:
        conn->client_open = false;
        rl_tracker_closed(node, now_ns);
        break;
    }
}

/* Passes an event of the connection of a trial to the engine. */
static void hand_over_trial(struct sim_client *client, struct sim_conn *conn,
                            const struct sim_segment *segment)
{
    struct rl_node *node = &client->engine.nodes[conn->node];

    if (segment == NULL) {
        (void)has_room(client, conn);
        return;
    }
    conn->client_open = segment->kind == SIM_ACCEPT || segment->kind == SIM_DATA;
    if (segment->kind == SIM_ACCEPT || segment->kind == SIM_REFUSE)
        rl_trial_opened(node, conn->client_open);
    else if (segment->kind == SIM_DATA)
        rl_trial_received(node, segment->bytes, segment->len, client->engine.view.now.boot_ns);
    else
        rl_trial_end(node);
}

/* Passes an event of a connection for requests to the engine. */
static void hand_over(struct sim_client *client, struct sim_conn *conn,
                      const struct sim_segment *segment)
{
    struct rl_node *node = &client->engine.nodes[conn->node];
    uint64_t now_ns = client->engine.view.now.boot_ns;

    if (segment == NULL) {
        if (has_room(client, conn))
            rl_node_flush(node, now_ns);
        return;
    }
    switch (segment->kind) {
    case SIM_ACCEPT:
        rl_node_opened(node, true, REDLOCK_CAUSE_NONE, NULL, now_ns);
        break;
    case SIM_REFUSE:
        conn->client_open = false;
        rl_node_opened(node, false, REDLOCK_CAUSE_CONNECT, "refused", now_ns);
        break;
    case SIM_DATA:
        for (unsigned i = 0; i < segment->outcome_count; i++)
            sim_token_outcome(client->world, &segment->outcomes[i], conn->client, conn->node);
        rl_node_received(node, segment->bytes, segment->len, now_ns);
        break;
    default:
        conn->client_open = false;
        rl_node_closed(node, REDLOCK_CAUSE_DISCONNECT, "closed", now_ns);
        break;
    }
}

/* Makes the process lose the processor for a while, in some turns of some runs. The clocks that the
 * engine reads run on. */
static void lose_processor(struct sim_client *client)
{
    struct sim_world *world = client->world;

    if (world->healed || !sim_chance(&world->random, world->plan.late_turn))
        return;
    client->ahead_ns += sim_scale(&world->random, RL_MS, world->plan.ttl_ns);
    world->injected[SIM_LATE_TURN]++;
}

/* Handles the first `count` items of the inbox. */
static void read_some(struct sim_client *client, uint64_t count)
{
    struct sim_inbox *item;

    for (; count > 0 && (item = take_item(client)) != NULL; count--) {
        sim_user_take(client); /* the oracle judges decisions by the time at which they are taken */
        lose_processor(client);
        if (sim_conn_is_present(client->world, item->conn) && item->conn->client_open)
            (item->conn->push    ? hand_over_push
             : item->conn->trial ? hand_over_trial
                                 : hand_over)(client, item->conn, item->segment);
        rl_engine_drain(&client->engine);
        sim_user_take(client);
        drop_item(client, item);
    }
}

/* Handles the whole inbox, when the engine requests it before it decides that a deadline passed. */
static void catch_up(void *ctx)
{
    read_some(ctx, UINT64_MAX);
}

/* Does what follows each turn: pauses the process for the time that it lost the processor, and runs
 * checks. */
static void after_turn(struct sim_client *client)
{
    struct sim_world *world = client->world;

    if (client->ahead_ns != 0)
        sim_client_pause(client, world->now_ns + client->ahead_ns);
    client->ahead_ns = 0;
    if (client->inbox_first != NULL)
        plan_turn(client, world->now_ns);
    sim_user_sweep(client);
    sim_oracle_client(client);
    sim_user_risk(client);
    sim_oracle_turned(client);
}

/* Makes the engine read its clocks, and notes the reading for the oracle. */
void sim_client_refresh(struct sim_client *client)
{
    rl_engine_refresh(&client->engine);
    client->decided_from = client->engine.view.now;
}

/* Handles SIM_TURN, unless `stamp` is that of an older plan: takes segments from the inbox,
 * ticks the engine and sends what it has to send. A paused process turns when it runs again. */
void sim_client_turn(struct sim_world *world, unsigned index, uint32_t stamp)
{
    struct sim_client *client = &world->clients[index];

    if (stamp != client->turn_stamp || !client->alive)
        return;
    client->turn_ns = UINT64_MAX;
    if (!sim_client_runs(client)) {
        plan_turn(client, client->paused_until_ns);
        return;
    }
    /* The number of segments that were ready when the poller looked; more may have arrived since.
     */
    uint64_t count = sim_chance(&world->random, 800) ? UINT64_MAX : sim_below(&world->random, 4);

    sim_client_refresh(client);
    read_some(client, count);
    rl_engine_tick(&client->engine);
    sim_user_take(client);
    rl_engine_flush(&client->engine);
    sim_user_take(client);
    after_turn(client);
    sim_shutdown_review(client);
}

/* Stops the process until that true time, or until the end of a longer pause that it is in. */
void sim_client_pause(struct sim_client *client, uint64_t until_ns)
{
    uint64_t from_ns = client->world->now_ns;

    if (client->paused_until_ns > from_ns)
        from_ns = client->paused_until_ns;
    if (until_ns <= from_ns)
        return;
    client->paused_total_ns += until_ns - from_ns;
    client->paused_until_ns = until_ns;
    client->resumed_ns = until_ns;
}

/* Returns a clock that shows shown_ns now and has a random error of rate. */
static struct sim_clock new_clock(struct sim_world *world, uint64_t shown_ns)
{
    uint64_t max = (uint64_t)world->plan.ppm_max;

    return (struct sim_clock){
        .true_ns = world->now_ns,
        .shown_ns = shown_ns,
        .ppm = (int64_t)sim_below(&world->random, 2 * max + 1) - (int64_t)max,
    };
}

/* Sets up the clocks, the allocator and the node settings of client `index`, once per run. */
void sim_client_init(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->clients[index];
    uint64_t up_ns = sim_between(&world->random, 1, 1000000) * RL_SECOND;

    client->world = world;
    client->index = (uint8_t)index;
    client->boot = new_clock(world, up_ns + RL_SECOND);
    client->raw = new_clock(world, up_ns);
    /* The wall clocks of the machines differ by up to a minute. */
    client->wall = new_clock(world, UINT64_C(1700000000) * RL_SECOND +
                                        sim_scale(&world->random, RL_US, 60 * RL_SECOND));
    client->wall.ppm = client->boot.ppm; /* their difference changes only by steps */
    client->mem = (struct rl_mem){client_malloc, client_realloc, client_free, client};
    client->specs = calloc(world->plan.nodes, sizeof *client->specs);
    if (client->specs == NULL)
        abort();
    for (unsigned i = 0; i < world->plan.nodes; i++) {
        client->specs[i].db = world->plan.has_db ? 3 : 0;
        client->specs[i].durable = world->plan.durable;
        client->specs[i].name[0] = (char)('0' + i);
        if (world->plan.contention != NULL)
            sim_contention_name(&world->plan, index, &client->specs[i]);
    }
}

/* Starts a new process of client `index`: opens its engine, without failing allocations, and
 * starts its users. */
void sim_client_start(struct sim_world *world, unsigned index)
{
    struct sim_client *client = &world->clients[index];
    const struct sim_plan *plan = &world->plan;
    const struct rl_engine_params params = {
        .mem = &client->mem,
        .log = &client->log,
        .specs = client->specs,
        .nodes = plan->nodes,
        .password = plan->has_password ? "secret" : NULL,
        .owner = "sim",
        .owner_len = sim_chance(&world->random, 500) ? 3 : 0,
        .admission = {.drift = plan->drift, .max_ttl_ns = plan->ttl_ns},
        .backoff = plan->backoff,
        .connect_timeout_ns = plan->connect_timeout_ns,
        .node_timeout_ns = plan->node_timeout_ns,
        .heartbeat_ns = plan->heartbeat_ns,
        .notifications = plan->wakeups,
        .lines = sim_contention_has_lines(plan, index),
        .fence_record = {SIM_RECORD_KEY, sizeof SIM_RECORD_KEY - 1},
        .fence_config = {SIM_RECORD_CFG, sizeof SIM_RECORD_CFG - 1},
        .fence_run_bound = !plan->durable,
        .fence_wait_ns = rl_add_sat(plan->ttl_ns, rl_drift_ns(plan->ttl_ns, &plan->drift)),
    };
    const struct rl_env env = {
        .transport = sim_link_transport(client),
        .entropy = {fill_random, client},
        .now = read_clocks,
        .wall_us = read_wall,
        .catch_up = catch_up,
        .wake_at = wake_at,
        .ctx = client,
    };
    unsigned fail_of_1000 = client->fail_of_1000;

    client->fail_of_1000 = 0;
    client->turn_ns = UINT64_MAX;
    if (rl_engine_open(&client->engine, &params, &env) != REDLOCK_OK)
        abort();
    client->fail_of_1000 = fail_of_1000;
    client->alive = true;
    client->leaving = client->settled = false;
    plan_turn(client, world->now_ns);
    sim_user_begin(world, index);
}

/* Ends the process. If it `dies`, its connections break and the engine is abandoned; otherwise
 * the engine is closed in order. Memory that is left is a violation. */
void sim_client_end(struct sim_world *world, unsigned index, bool dies)
{
    struct sim_client *client = &world->clients[index];
    struct sim_inbox *item;

    sim_note(world, "client % ends, dies: %", index, dies, 0, 0);
    if (dies)
        sim_user_bequeath(client);
    sim_oracle_client_ends(client);
    client->alive = false;
    if (dies) {
        sim_link_client_died(world, index);
        rl_engine_abandon(&client->engine);
    } else {
        rl_engine_close(&client->engine);
    }
    sim_user_take(client);
    while ((item = take_item(client)) != NULL)
        drop_item(client, item);
    sim_user_sweep(client);
    client->turn_stamp++;
    if (client->allocated != 0)
        sim_violate(world, "client %u left %llu allocations behind", index,
                    (unsigned long long)client->allocated);
}

/* Frees the locks that have ended and whose user is idle, or whose process has ended. */
void sim_user_sweep(struct sim_client *client)
{
    for (unsigned i = 0; i < client->world->plan.users; i++) {
        struct sim_user *user = &client->users[i];
        if (user->lock == NULL || !user->ended)
            continue;
        if (user->doing == SIM_IDLE || !client->alive) {
            rl_lock_dispose(&client->engine, user->lock);
            free(user->lock);
            user->lock = NULL;
        }
    }
}

/* Returns whether all users of the client are idle. */
bool sim_user_is_idle(const struct sim_client *client)
{
    for (unsigned i = 0; i < client->world->plan.users; i++) {
        if (client->users[i].doing != SIM_IDLE)
            return false;
    }
    return true;
}
