/* SPDX-License-Identifier: MIT
 * Connections, servers and clocks of fuzz_engine.c. */
#include "engine_world.h"

#include "fuzz.h"
#include "platform/hash.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 16
#define START_US  UINT64_C(1700000000000000)

struct world world;
void (*world_adjust)(struct rl_engine_params *params);

static struct rl_node_spec specs[NODES];
static struct rl_mem mem;
static struct rl_log no_log;

/* Returns the index of a client. */
static unsigned index_of(const struct world_client *client)
{
    return (unsigned)(client - world.clients);
}

/* ---- commands ---- */

/* Reads the number of a line such as "*3" or "$5". Returns false if it is not complete. */
static bool read_header(const char **at, const char *end, char kind, size_t *ret)
{
    const char *line_end = memchr(*at, '\n', (size_t)(end - *at));

    if (line_end == NULL)
        return false;
    MUST(**at == kind);
    *ret = strtoul(*at + 1, NULL, 10);
    *at = line_end + 1;
    return true;
}

/* Returns the length of the first command, or 0 if it is not complete. */
static size_t read_command(const struct world_conn *conn, struct fake_arg *words, size_t *ret_count)
{
    const char *at = conn->in, *end = conn->in + conn->in_len;
    size_t len;

    if (conn->in_len == 0 || !read_header(&at, end, '*', ret_count))
        return 0;
    MUST(*ret_count > 0 && *ret_count <= WORDS_MAX);
    for (size_t i = 0; i < *ret_count; i++) {
        if (at == end || !read_header(&at, end, '$', &len) || (size_t)(end - at) < len + 2)
            return 0;
        words[i] = (struct fake_arg){at, len};
        at += len + 2;
    }
    return (size_t)(at - conn->in);
}

/* Executes the first command of the connection. Returns false if there is none. */
static bool execute(struct world_conn *conn, unsigned node)
{
    struct fake_arg words[WORDS_MAX];
    struct fake_bytes reply = {.data = NULL};
    size_t count, used = read_command(conn, words, &count);

    if (used == 0)
        return false;
    fuzz_alloc_exempt(true);
    fake_store_execute(&world.nodes[node].store, &conn->session, world.now_ns / RL_MS, words, count,
                       &reply);
    MUST(conn->out_len + reply.len <= WORLD_BYTES);
    memcpy(conn->out + conn->out_len, reply.data, reply.len);
    conn->out_len += reply.len;
    fake_bytes_free(&reply);
    fuzz_alloc_exempt(false);
    conn->in_len -= used;
    memmove(conn->in, conn->in + used, conn->in_len);
    return true;
}

/* Executes up to `count` commands that have arrived on the connection of this client with this
 * server. Stops while the server is unreachable or half a buffer of replies waits. */
void world_serve(unsigned client, unsigned node, unsigned count)
{
    struct world_conn *conn = &world.conns[client][node];

    while (count-- > 0 && world.nodes[node].reachable && conn->out_len < WORLD_BYTES / 2 &&
           execute(conn, node))
        continue;
}

/* Executes all commands that have arrived on any connection. */
void world_serve_all(void)
{
    for (unsigned i = 0; i < ENGINES * NODES; i++)
        world_serve(i % ENGINES, i / ENGINES, UINT32_MAX);
}

/* ---- connections ---- */

/* Resets a connection to its closed state. */
static void end_connection(struct world_conn *conn)
{
    memset(&conn->session, 0, sizeof conn->session);
    conn->open = conn->pending = false;
    conn->in_len = conn->out_len = 0;
}

/* Begins to open a connection, for the engine. world_deliver() reports the result. */
static void transport_open(void *ctx, unsigned node)
{
    if ((node & RL_TRIAL_CONNECTION) != 0)
        return; /* the connection of a trial is never made */
    struct world_conn *conn = &world.conns[index_of(ctx)][node];

    MUST(!conn->open);
    conn->open = conn->pending = true;
    world.clients[index_of(ctx)].wake_ns = world.now_ns;
}

/* Takes bytes from the engine for the server, as many as there is room for. Returns their
 * number. */
static ssize_t transport_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    struct world_conn *conn = &world.conns[index_of(ctx)][node];

    MUST(conn->open && !conn->pending && len > 0);
    size_t taken = (size_t)rl_min_u64(len, WORLD_BYTES - conn->in_len);
    memcpy(conn->in + conn->in_len, bytes, taken);
    conn->in_len += taken;
    return (ssize_t)taken;
}

/* Closes a connection, for the engine. Unless `abortive`, the server still executes what it has
 * received; the replies are dropped. */
static void transport_close(void *ctx, unsigned node, bool abortive)
{
    if ((node & RL_TRIAL_CONNECTION) != 0)
        return;
    struct world_conn *conn = &world.conns[index_of(ctx)][node];

    while (!abortive && conn->open && world.nodes[node].reachable && execute(conn, node))
        conn->out_len = 0;
    end_connection(conn);
}

/* Delivers up to `most` bytes of each connection, and the results of pending opens. */
void world_deliver(unsigned client, size_t most)
{
    struct rl_engine *engine = &world.clients[client].engine;
    static char bytes[WORLD_BYTES];

    for (unsigned i = 0; i < NODES; i++) {
        struct world_conn *conn = &world.conns[client][i];
        uint64_t now_ns = engine->view.now.boot_ns;
        if (conn->pending) {
            bool ok = world.nodes[i].reachable;
            conn->pending = false;
            conn->open = ok;
            rl_node_opened(&engine->nodes[i], ok, ok ? 0 : REDLOCK_CAUSE_CONNECT,
                           ok ? NULL : "refused", now_ns);
            rl_engine_drain(engine);
        }
        size_t len = (size_t)rl_min_u64(conn->out_len, most);
        if (!conn->open || len == 0)
            continue;
        memcpy(bytes, conn->out, len);
        conn->out_len -= len;
        memmove(conn->out, conn->out + len, conn->out_len);
        rl_node_received(&engine->nodes[i], bytes, len, now_ns);
        rl_engine_drain(engine);
    }
}

/* Ends a connection; with `executed`, the server executes what it has received. */
void world_lose_connection(unsigned client, unsigned node, bool executed)
{
    struct world_conn *conn = &world.conns[client][node];
    struct rl_engine *engine = &world.clients[client].engine;

    if (!conn->open || conn->pending)
        return;
    while (executed && execute(conn, node))
        conn->out_len = 0;
    end_connection(conn);
    rl_engine_refresh(engine);
    rl_node_closed(&engine->nodes[node], REDLOCK_CAUSE_DISCONNECT, "connection reset",
                   engine->view.now.boot_ns);
    rl_engine_flush(engine);
}

/* ---- servers ---- */

/* Gives the server a new run id. */
static void describe(unsigned node)
{
    struct world_node *server = &world.nodes[node];
    const struct fake_profile profile = {.run_id = server->run_id};

    snprintf(server->run_id, sizeof server->run_id, "run%u-%u", node, server->runs);
    fake_store_describe(&server->store, &profile);
}

/* Returns true if the node's record is in use by the current run of its server. */
static bool is_in_use(unsigned node)
{
    const char *config = world.nodes[node].store.record.config;
    size_t len = sizeof WORLD_CONFIG - 1;

    return strncmp(config, WORLD_CONFIG, len) == 0 &&
           strcmp(config + len, world.nodes[node].run_id) == 0;
}

/* Returns whether the records of all other nodes are in use, so that this node's may get lost. */
bool world_others_in_use(unsigned node)
{
    for (unsigned i = 0; i < NODES; i++)
        if (i != node && !is_in_use(i))
            return false;
    return true;
}

/* Returns whether some record is in use, but less than a majority. */
bool world_is_half_started(void)
{
    unsigned used = 0;

    for (unsigned i = 0; i < NODES; i++)
        used += is_in_use(i);
    return used > 0 && used < NODES / 2 + 1;
}

/* Restarts a server and ends its connections. Does nothing unless the records of all other
 * nodes are in use, because this node's record is lost. */
void world_restart(unsigned node, bool keeps_keys, bool keeps_record)
{
    struct fake_store *store = &world.nodes[node].store;

    /* A record that is bound to its run counts as lost after any restart. */
    if (!world_others_in_use(node))
        return;
    for (unsigned i = 0; i < ENGINES; i++)
        world_lose_connection(i, node, false);
    for (unsigned i = 0; i < ENGINES; i++) /* they may have connected again at once */
        world_lose_connection(i, node, false);
    world.nodes[node].runs++;
    int64_t ahead_ms = store->profile.ahead_ms;
    describe(node);
    store->profile.ahead_ms = ahead_ms;
    store->scripts = 0;
    fuzz_alloc_exempt(true);
    if (!keeps_keys)
        fake_store_clear(store);
    fuzz_alloc_exempt(false);
    if (!keeps_record)
        memset(&store->record, 0, sizeof store->record);
}

/* Causes a disturbance chosen by `what`: keys or scripts are lost, a wall clock or a server's
 * clock is stepped, another lock uses the same register. */
void world_disturb(unsigned client, unsigned node, unsigned what)
{
    struct fake_store *store = &world.nodes[node].store;
    uint64_t *number =
        &store->record.numbers[rl_fence_stripe(rl_hash_bytes(WORLD_KEY, sizeof WORLD_KEY - 1))];

    switch (what % 7) {
    case 0:
        fuzz_alloc_exempt(true);
        fake_store_clear(store);
        fuzz_alloc_exempt(false);
        break;
    case 1:
        store->scripts = 0;
        break;
    case 2:
        world.clients[client].wall_us += 3600 * UINT64_C(1000000);
        break;
    case 3:
        world.clients[client].wall_us -= 1800 * UINT64_C(1000000);
        break;
    case 4: /* a server's clock is stepped; the keys of this model do not depend on it */
        store->profile.ahead_ms += 60000;
        break;
    case 5:
        store->profile.ahead_ms -= 3600000;
        break;
    default: /* a lock of another name with the same stripe */
        *number += is_in_use(node) ? 5000000 : 0;
        break;
    }
}

/* ---- the environment of an engine ---- */

/* Fills the bytes from the client's generator, which begins with a fixed seed. */
static void fill_random(void *ctx, void *bytes, size_t size)
{
    struct world_client *client = ctx;
    unsigned char *to = bytes;

    for (size_t i = 0; i < size; i++) {
        client->random = client->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        to[i] = (unsigned char)(client->random >> 56);
    }
}

/* Returns the world's time; the raw clock is 100 s behind the boot clock, so that a mix-up
 * shows. */
static struct rl_now read_clocks(void *ctx)
{
    (void)ctx;
    return (struct rl_now){.boot_ns = world.now_ns, .raw_ns = world.now_ns - 100 * RL_SECOND};
}

/* Returns the client's wall clock in us. */
static uint64_t read_wall(void *ctx)
{
    return ((struct world_client *)ctx)->wall_us + world.now_ns / RL_US;
}

/* Delivers all that has arrived for the client, when its engine has to read its sockets first. */
static void catch_up(void *ctx)
{
    world_deliver(index_of(ctx), SIZE_MAX);
}

/* Stores the time at which the engine wants its next tick. */
static void wake_at(void *ctx, uint64_t boot_ns)
{
    ((struct world_client *)ctx)->wake_ns = boot_ns;
}

/* Creates the engine of a client. */
static void open_engine(unsigned index)
{
    struct world_client *client = &world.clients[index];
    const struct rl_drift drift = {.ppm = 10000, .constant_us = 2000};
    struct rl_engine_params params = {
        .mem = &mem,
        .log = &no_log,
        .specs = specs,
        .nodes = NODES,
        .admission = {.drift = drift, .max_ttl_ns = RL_SECOND},
        .backoff = {.min_ns = 10 * RL_MS, .max_ns = 100 * RL_MS},
        .connect_timeout_ns = 250 * RL_MS,
        .heartbeat_ns = RL_SECOND,
        .fence_record = {"record", 6},
        .fence_config = {WORLD_CONFIG, sizeof WORLD_CONFIG - 1},
        .fence_run_bound = true,
        .fence_wait_ns = RL_SECOND + rl_drift_ns(RL_SECOND, &drift),
    };
    const struct rl_env env = {
        .transport = {.open = transport_open,
                      .send = transport_send,
                      .close = transport_close,
                      .ctx = client},
        .entropy = {fill_random, client},
        .now = read_clocks,
        .wall_us = read_wall,
        .catch_up = catch_up,
        .wake_at = wake_at,
        .ctx = client,
    };

    if (world_adjust != NULL)
        world_adjust(&params);
    client->wake_ns = world.now_ns;
    client->wall_us = START_US + index * UINT64_C(7000000);
    client->random = index + 1;
    MUST(rl_engine_open(&client->engine, &params, &env) == REDLOCK_OK);
}

/* Opens both engines and starts all servers empty and reachable. */
void world_begin(void)
{
    mem = rl_mem_libc();
    world.now_ns = 1000 * RL_SECOND;
    for (unsigned i = 0; i < ENGINES * NODES; i++)
        end_connection(&world.conns[i % ENGINES][i / ENGINES]);
    for (unsigned i = 0; i < NODES; i++) {
        specs[i].name[0] = (char)('0' + i);
        memset(&world.nodes[i], 0, sizeof world.nodes[i]);
        world.nodes[i].reachable = true;
        describe(i);
    }
    for (unsigned i = 0; i < ENGINES; i++)
        open_engine(i);
}

/* Closes both engines and frees the servers. */
void world_end(void)
{
    for (unsigned i = 0; i < ENGINES; i++)
        rl_engine_close(&world.clients[i].engine);
    for (unsigned i = 0; i < NODES; i++)
        fake_store_free(&world.nodes[i].store);
}
