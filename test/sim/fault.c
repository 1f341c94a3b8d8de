/* SPDX-License-Identifier: MIT
 * Begins and ends faults. A lasting fault is ended by an event of its own, or when all faults end.
 *
 * A world is one simulated run: servers, clients, links and clocks, all modelled. A user is one
 * caller in a client process, with at most one lock at a time. `at` is the index of a fault in
 * the plan. To mend a fault is to end it. */
#include "fault.h"

#include "client.h"
#include "link.h"
#include "server.h"
#include "shutdown.h"
#include "token.h"

#include <string.h>

/* Counts on a link that a fault begins (`by` 1) or ends (-1) there, or happens at one moment (0),
 * and notes the time. */
static void trouble_link(struct sim_world *world, unsigned client, unsigned node, int by)
{
    struct sim_link *link = &world->links[client][node];

    link->troubles = (unsigned)((int)link->troubles + by);
    link->troubled_ns = world->now_ns;
}

/* Does the same for the links of all clients to the node. */
static void trouble_node(struct sim_world *world, unsigned node, int by)
{
    for (unsigned i = 0; i < world->plan.clients; i++)
        trouble_link(world, i, node, by);
}

/* Does the same for all links of the client. */
static void trouble_client(struct sim_world *world, unsigned client, int by)
{
    for (unsigned i = 0; i < world->plan.nodes; i++)
        trouble_link(world, client, i, by);
}

/* Blocks (`by` 1) or unblocks (-1) the links between clients and nodes of different sides. */
static void divide(struct sim_world *world, const struct sim_fault *fault, int by)
{
    for (unsigned i = 0; i < world->plan.clients; i++) {
        for (unsigned j = 0; j < world->plan.nodes; j++) {
            if ((fault->clients >> i & 1) != (fault->nodes >> j & 1))
                continue;
            trouble_link(world, i, j, by);
            if (fault->kind == SIM_PARTITION || fault->way == SIM_TO_SERVER)
                sim_link_block(world, i, j, SIM_TO_SERVER, by);
            if (fault->kind == SIM_PARTITION || fault->way == SIM_TO_CLIENT)
                sim_link_block(world, i, j, SIM_TO_CLIENT, by);
        }
    }
}

/* Ends a server's process, with its data or without. */
static void crash(struct sim_world *world, const struct sim_fault *fault)
{
    struct sim_server *server = &world->servers[fault->node];

    server->up = false;
    server->silent = fault->way != 0;
    sim_link_server_died(world, fault->node, server->silent);
    if (fault->kind == SIM_CRASH_EMPTY) {
        sim_server_lose_keys(world, fault->node);
        sim_server_lose_record(world, fault->node);
    }
}

/* Sets a clock ahead by by_ns, or back if it is negative. */
static void step_clock(struct sim_world *world, struct sim_clock *clock, int64_t by_ns)
{
    sim_clock_touch(clock, world->now_ns);
    clock->shown_ns += (uint64_t)by_ns;
}

/* Makes a clock run too fast by `ppm` millionths, or too slow if it is negative. */
static void change_rate(struct sim_world *world, struct sim_clock *clock, int64_t ppm)
{
    sim_clock_touch(clock, world->now_ns);
    clock->ppm = ppm;
}

/* Stops a clock or starts it again. */
static void stop_clock(struct sim_world *world, struct sim_clock *clock, bool stopped)
{
    sim_clock_touch(clock, world->now_ns);
    clock->stopped = stopped;
}

/* Kills (`dies`) or closes a client, and starts a new process. */
void sim_fault_replace_client(struct sim_world *world, unsigned client, bool dies)
{
    sim_client_end(world, client, dies);
    trouble_client(world, client, 0);
    sim_client_start(world, client);
}

/* Makes the address lead to the replica: another process, which lacks the latest writes. */
static void promote(struct sim_world *world, const struct sim_fault *fault)
{
    struct sim_server *server = &world->servers[fault->node];

    sim_link_server_died(world, fault->node, false);
    sim_server_lose_keys(world, fault->node);
    memcpy(server->keys, server->copies, sizeof server->keys);
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++) {
        const struct sim_key *key = &server->keys[i];
        uint32_t token = key->present ? sim_token_find(world, key->token, key->token_len) : 0;
        if (token != 0)
            sim_token_at(world, token)->excused = true; /* an older state came back */
    }
    sim_server_lose_record(world, fault->node);
    server->record = server->record_copy;
    sim_server_start(world, fault->node);
    server->replid2 = (uint32_t)sim_word(&world->random) | 1;
    server->started_ns -= 3600 * RL_SECOND; /* the replica was started an hour ago */
    server->idled_ns = 3600 * RL_SECOND;
}

/* Sets the expiry of every key as a third party with PEXPIRE, on one node or on all. */
static void shorten_keys(struct sim_world *world, const struct sim_fault *fault)
{
    int64_t ttl_ms = (int64_t)sim_scale(&world->random, 1, world->plan.ttl_ns / RL_MS);

    for (unsigned node = 0; node < world->plan.nodes; node++) {
        for (unsigned i = 0; i < SIM_KEYS_MAX && (fault->way != 0 || node == fault->node); i++)
            sim_server_shorten_key(world, node, i, ttl_ms);
    }
}

/* Begins a fault of a server. */
static void begin_at_server(struct sim_world *world, const struct sim_fault *fault)
{
    struct sim_server *server = &world->servers[fault->node];

    switch (fault->kind) {
    case SIM_CRASH:
    case SIM_CRASH_EMPTY:
        crash(world, fault);
        break;
    case SIM_HANG:
        server->hung = true;
        break;
    case SIM_BUSY:
        server->blocked_ns = world->now_ns + fault->for_ns / 2;
        server->busy_ns = world->now_ns + fault->for_ns;
        sim_plan_event(world, server->blocked_ns, SIM_SERVE, fault->node, 0, 0, NULL);
        break;
    case SIM_SCRIPT_FLUSH:
        server->scripts = 0;
        break;
    case SIM_FULL:
        server->full = true;
        break;
    case SIM_FLUSH_ALL:
        sim_server_lose_record(world, fault->node);
        sim_server_lose_keys(world, fault->node);
        break;
    case SIM_SHORTEN:
        shorten_keys(world, fault);
        break;
    case SIM_EVICT: /* of keys with a TTL: perhaps only one of the keys of a lock */
        if (world->plan.many != 0 && fault->nodes % 4 < world->plan.resources)
            sim_server_lose_key(world, fault->node, fault->nodes % 4);
        else
            sim_server_lose_keys(world, fault->node);
        break;
    case SIM_DEMOTE:
        server->replica = true;
        break;
    case SIM_PROMOTE:
        promote(world, fault);
        break;
    case SIM_NODE_STEP:
        step_clock(world, &server->clock, fault->step_ns);
        break;
    default:
        change_rate(world, &server->clock, fault->step_ns < 0 ? -200000 : 200000);
        break;
    }
    trouble_node(world, fault->node, fault->for_ns != 0);
}

/* Begins a fault of a client. */
static void begin_at_client(struct sim_world *world, const struct sim_fault *fault)
{
    struct sim_client *client = &world->clients[fault->client];

    switch (fault->kind) {
    case SIM_FREEZE:
        stop_clock(world, &client->boot, true);
        stop_clock(world, &client->raw, true);
        stop_clock(world, &client->wall, true);
        client->frozen = true;
        sim_client_pause(client, world->now_ns + fault->for_ns);
        break;
    case SIM_SUSPEND:
        stop_clock(world, &client->raw, true);
        sim_client_pause(client, world->now_ns + fault->for_ns);
        break;
    case SIM_STOP:
        sim_client_pause(client, world->now_ns + fault->for_ns);
        break;
    case SIM_NO_MEMORY:
        client->fail_of_1000 = (unsigned)sim_scale(&world->random, 5, 999);
        break;
    case SIM_LEAVE:
        if (fault->way != 0) {
            sim_shutdown_begin(world, fault->client);
            return;
        }
        sim_fault_replace_client(world, fault->client, false);
        return;
    default:
        sim_fault_replace_client(world, fault->client, true);
        return;
    }
    trouble_client(world, fault->client, 1);
}

/* Begins a fault of one link or a partition. */
static void begin_on_link(struct sim_world *world, const struct sim_fault *fault)
{
    switch (fault->kind) {
    case SIM_STALL:
        trouble_link(world, fault->client, fault->node, 1);
        sim_link_block(world, fault->client, fault->node, SIM_TO_SERVER, 1);
        sim_link_block(world, fault->client, fault->node, SIM_TO_CLIENT, 1);
        break;
    case SIM_DISCONNECT:
        trouble_link(world, fault->client, fault->node, 0);
        sim_link_break(world, fault->client, fault->node);
        break;
    default:
        divide(world, fault, 1);
        break;
    }
}

/* Returns whether faults of that kind concern links. */
static bool is_on_link(unsigned kind)
{
    return kind == SIM_STALL || kind == SIM_DISCONNECT || kind == SIM_PARTITION ||
           kind == SIM_ONE_WAY;
}

/* Returns whether faults of that kind concern a client; the other ones concern a link or a server.
 */
static bool is_at_client(unsigned kind)
{
    return kind == SIM_STOP || kind == SIM_SUSPEND || kind == SIM_FREEZE || kind == SIM_KILL ||
           kind == SIM_LEAVE || kind == SIM_NO_MEMORY;
}

/* Returns whether a fault cannot happen now, because its server or client is down or has another
 * fault already. */
static bool is_pointless(const struct sim_world *world, const struct sim_fault *fault)
{
    const struct sim_server *server = &world->servers[fault->node];
    const struct sim_client *client = &world->clients[fault->client];

    if (is_at_client(fault->kind))
        return client->paused_until_ns > world->now_ns || client->fail_of_1000 != 0 ||
               (client->leaving && fault->kind == SIM_LEAVE);
    if (is_on_link(fault->kind))
        return fault->kind == SIM_DISCONNECT &&
               world->links[fault->client][fault->node].conn == NULL;
    return !server->up || server->hung || server->replica || server->full ||
           server->busy_ns > world->now_ns || server->clock.ppm == 200000 ||
           server->clock.ppm == -200000;
}

/* Copies the state of most servers to their replicas. A replica has the state at the last copy, so
 * that a promotion loses later writes. */
static void replicate(struct sim_world *world)
{
    for (unsigned i = 0; i < world->plan.nodes; i++) {
        struct sim_server *server = &world->servers[i];
        if (!server->up || sim_chance(&world->random, 300))
            continue;
        memcpy(server->copies, server->keys, sizeof server->copies);
        server->record_copy = server->record;
    }
}

/* Handles SIM_FAULT: begins the fault with index `at` and plans its end. A fault that would
 * change nothing now is skipped. */
void sim_fault_begin(struct sim_world *world, unsigned at)
{
    struct sim_fault *fault = &world->plan.faults[at];

    if (is_pointless(world, fault)) {
        fault->mended = true;
        return;
    }
    world->injected[fault->kind]++;
    if (fault->kind != SIM_PROMOTE)
        replicate(world);
    sim_note(world, "fault % at client %, node %, for % ms", fault->kind, fault->client,
             fault->node, fault->for_ns / RL_MS);
    if (fault->for_ns != 0)
        sim_plan_event(world, world->now_ns + fault->for_ns, SIM_MEND, 0, at, 0, NULL);
    if (is_on_link(fault->kind))
        begin_on_link(world, fault);
    else if (is_at_client(fault->kind))
        begin_at_client(world, fault);
    else
        begin_at_server(world, fault);
}

/* Ends a fault of a server. */
static void mend_server(struct sim_world *world, const struct sim_fault *fault)
{
    struct sim_server *server = &world->servers[fault->node];

    switch (fault->kind) {
    case SIM_CRASH:
    case SIM_CRASH_EMPTY:
        sim_server_start(world, fault->node);
        break;
    case SIM_HANG:
        server->hung = false;
        break;
    case SIM_FULL:
        server->full = false;
        break;
    case SIM_DEMOTE:
        server->replica = false;
        server->demoted_ns = world->now_ns;
        server->replid2 = (uint32_t)sim_word(&world->random) | 1;
        break;
    case SIM_RATE:
        change_rate(world, &server->clock, 0);
        break;
    default:
        break;
    }
    trouble_node(world, fault->node, -1);
    sim_server_serve(world, fault->node);
}

/* Handles SIM_CORRECT: sets the wall clock ahead by the length of the freeze, and notes since
 * when the client must have noticed. */
void sim_fault_correct(struct sim_world *world, unsigned at)
{
    const struct sim_fault *fault = &world->plan.faults[at];
    struct sim_client *client = &world->clients[fault->client];

    sim_note(world, "the wall clock of client % is set ahead by % us", fault->client,
             fault->for_ns / RL_US, 0, 0);
    step_clock(world, &client->wall, (int64_t)fault->for_ns);
    if (sim_plan_is_noticed(&world->plan, fault))
        client->corrected_boot_ns = sim_clock_read(&client->boot, world->now_ns);
}

/* Starts the clocks of a frozen client again, and corrects its wall clock now, later or never. */
static void thaw(struct sim_world *world, unsigned at)
{
    const struct sim_fault *fault = &world->plan.faults[at];
    struct sim_client *client = &world->clients[fault->client];

    stop_clock(world, &client->boot, false);
    stop_clock(world, &client->raw, false);
    stop_clock(world, &client->wall, false);
    client->frozen = false;
    if (fault->correct_ns == 0)
        sim_fault_correct(world, at);
    else if (fault->correct_ns != UINT64_MAX)
        sim_plan_event(world, world->now_ns + fault->correct_ns, SIM_CORRECT, 0, at, 0, NULL);
}

/* Ends a fault of a client. */
static void mend_client(struct sim_world *world, unsigned at)
{
    const struct sim_fault *fault = &world->plan.faults[at];
    struct sim_client *client = &world->clients[fault->client];

    if (fault->kind == SIM_FREEZE)
        thaw(world, at);
    if (fault->kind == SIM_SUSPEND)
        stop_clock(world, &client->raw, false);
    if (fault->kind == SIM_NO_MEMORY)
        client->fail_of_1000 = 0;
    trouble_client(world, fault->client, -1);
}

/* Handles SIM_MEND: ends the fault with index `at`, unless it has ended or has no end. */
void sim_fault_mend(struct sim_world *world, unsigned at)
{
    struct sim_fault *fault = &world->plan.faults[at];

    if (fault->mended || fault->for_ns == 0)
        return;
    fault->mended = true;
    sim_note(world, "fault % is mended at client %, node %", fault->kind, fault->client,
             fault->node, 0);
    if (fault->kind == SIM_STALL) {
        trouble_link(world, fault->client, fault->node, -1);
        sim_link_block(world, fault->client, fault->node, SIM_TO_SERVER, -1);
        sim_link_block(world, fault->client, fault->node, SIM_TO_CLIENT, -1);
    } else if (is_on_link(fault->kind)) {
        divide(world, fault, -1);
    } else if (is_at_client(fault->kind)) {
        mend_client(world, at);
    } else {
        mend_server(world, fault);
    }
}

/* Appends an event SIM_FAULT for each fault of the plan. */
void sim_fault_plan(struct sim_world *world)
{
    for (unsigned i = 0; i < world->plan.fault_count; i++)
        sim_plan_event(world, world->now_ns + world->plan.faults[i].at_ns, SIM_FAULT, 0, i, 0,
                       NULL);
}
