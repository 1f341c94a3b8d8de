/* SPDX-License-Identifier: MIT
 * Syncs and what they are worth. A sync takes what was written when it begins and has it on disk
 * when it ends; what was written later is lost when the machine dies in between. */
#include "disk.h"

#include "command.h"
#include "token.h"

#include <string.h>

static uint64_t length_ns(struct sim_world *world)
{
    return sim_below(&world->random, world->plan.sync_ns / 2 + 1);
}

static void plan_sync(struct sim_world *world, unsigned node, uint64_t in_ns, unsigned which)
{
    sim_plan_event(world, world->now_ns + in_ns, SIM_SYNC, node, which, world->servers[node].life,
                   NULL);
}

static void take_image(const struct sim_server *server, struct sim_image *image)
{
    memcpy(image->keys, server->keys, sizeof image->keys);
    image->record = server->record;
    image->writes = server->writes;
}

void sim_disk_adopt(struct sim_world *world, unsigned node)
{
    struct sim_server *server = &world->servers[node];

    if (world->plan.waitaof)
        take_image(server, &server->on_disk);
}

void sim_disk_start(struct sim_world *world, unsigned node)
{
    if (world->plan.waitaof)
        plan_sync(world, node, sim_below(&world->random, world->plan.sync_ns + 1), 0);
}

void sim_disk_sync(struct sim_world *world, unsigned node, unsigned which, uint32_t stamp)
{
    struct sim_server *server = &world->servers[node];

    if (!server->up || stamp != server->life)
        return;
    if (which == 0) {
        take_image(server, &server->in_sync);
        plan_sync(world, node, length_ns(world), 1);
        return;
    }
    server->on_disk = server->in_sync;
    plan_sync(world, node, world->plan.sync_ns, 0);
    sim_server_serve(world, node);
}

/* A token whose key is back, or lives longer than it was told to. */
static void excuse(struct sim_world *world, const struct sim_key *is, const struct sim_key *was)
{
    bool same = was->present && was->token_len == is->token_len &&
                memcmp(was->token, is->token, is->token_len) == 0 &&
                was->expire_ms >= is->expire_ms;
    uint32_t token = is->present && !same ? sim_token_find(world, is->token, is->token_len) : 0;

    if (token != 0)
        sim_token_at(world, token)->excused = true;
}

void sim_disk_restore(struct sim_world *world, unsigned node)
{
    struct sim_server *server = &world->servers[node];
    struct sim_key before[SIM_KEYS_MAX];

    if (!world->plan.waitaof)
        return;
    memcpy(before, server->keys, sizeof before);
    sim_note(world, "node % has % of % writes on its disk", node, server->on_disk.writes,
             server->writes, 0);
    if (strcmp(server->record.cfg, server->on_disk.record.cfg) != 0)
        sim_server_lose_record(world, node);
    memcpy(server->keys, server->on_disk.keys, sizeof server->keys);
    server->record = server->on_disk.record;
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++)
        excuse(world, &server->keys[i], &before[i]);
}

void sim_disk_wrote(struct sim_call *call)
{
    call->conn->written = ++call->server->writes;
}

static void say(struct sim_world *world, const struct sim_conn *conn, struct sim_answer *answer,
                bool on_disk)
{
    struct sim_call call = {.answer = answer};

    sim_note(world, "node % says to client %, on disk: %", conn->node, conn->client, on_disk, 0);
    sim_say(&call, "*2");
    sim_say_number(&call, on_disk);
    sim_say_number(&call, 0);
}

void sim_disk_wait(struct sim_call *call)
{
    struct sim_conn *conn = call->conn;

    if (conn->written <= call->server->on_disk.writes) {
        say(call->world, conn, call->answer, true);
        return;
    }
    uint64_t wait_ns = (uint64_t)sim_number_of(call->words[3]) * RL_MS;
    /* Limits are looked at when the server wakes up. */
    conn->waits_until_ns =
        call->world->now_ns + wait_ns + sim_below(&call->world->random, wait_ns + 1);
    sim_plan_event(call->world, conn->waits_until_ns, SIM_SERVE, conn->node, 0, 0, NULL);
}

bool sim_disk_holds(struct sim_world *world, struct sim_conn *conn, struct sim_answer *answer)
{
    const struct sim_server *server = &world->servers[conn->node];

    if (conn->waits_until_ns == 0)
        return false;
    if (conn->ended) { /* a client that waits and has gone: nothing of it is executed any more */
        conn->waits_until_ns = 0;
        conn->in_len = 0;
        return false;
    }
    bool on_disk = conn->written <= server->on_disk.writes;
    if (!on_disk && world->now_ns < conn->waits_until_ns)
        return true;
    conn->waits_until_ns = 0;
    say(world, conn, answer, on_disk);
    return false;
}
