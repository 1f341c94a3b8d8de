/* SPDX-License-Identifier: MIT
 * An engine with three servers that the test simulates, for the reading and seeding of fence
 * records.
 */
#ifndef TEST_RECORD_RIG_H
#define TEST_RECORD_RIG_H

#include "engine/engine.h"
#include "suite.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

#define NODES        3
#define FIRST_STRIPE "\r\n0:" /* as SEED contains its number */
#define LAST_STRIPE  " 1023:" /* RL_FENCE_STRIPES - 1 */
#define CONFIG       "v1 test;"
#define MARK         "0123456789abcdef"
#define EMPTY        "\n" MARK "\n"
#define USED         CONFIG "\n\n1:5"
#define NEW          CONFIG "\n\n"
#define OTHER        "\nfedcba9876543210\n" /* an emptied record with another mark */

static struct rl_mem mem;
static struct rl_log silent_log; /* logs nothing */
static struct rl_engine engine;
static struct rl_node_spec specs[NODES];     /* the configured addresses */
static uint64_t now_ns;                      /* virtual time */
static bool opened[NODES];                   /* the engine has opened the node's connection */
static bool read_sent[NODES], seeded[NODES]; /* requests that the node got since the last pass() */
static bool seed_is_full[NODES]; /* SEED had a number for the first and the last stripe */
static char run_ids[NODES][16];  /* what each server reports as its run id */

/* Notes that the engine opens the connection of a node. */
static void on_open(void *ctx, unsigned node)
{
    (void)ctx;
    opened[node] = true;
}

/* Records whether the bytes contain a READ or a SEED. */
static ssize_t on_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    (void)ctx;
    read_sent[node] |=
        memmem(bytes, len, rl_protocol_script(RL_VERB_READ, RL_FORM_SHA)->sha, 40) != NULL;
    seeded[node] |=
        memmem(bytes, len, rl_protocol_script(RL_VERB_SEED, RL_FORM_SHA)->sha, 40) != NULL;
    const char *first = memmem(bytes, len, FIRST_STRIPE, sizeof FIRST_STRIPE - 1);
    const char *last = memmem(bytes, len, LAST_STRIPE, sizeof LAST_STRIPE - 1);
    seed_is_full[node] |= first != NULL && last != NULL;
    return (ssize_t)len;
}

/* Notes that the engine closes the connection of a node. */
static void on_close(void *ctx, unsigned node, bool abortive)
{
    (void)ctx;
    (void)abortive;
    opened[node] = false;
}

/* Returns the test's virtual time for both clocks. */
static struct rl_now read_clock(void *ctx)
{
    (void)ctx;
    return (struct rl_now){.boot_ns = now_ns, .raw_ns = now_ns};
}

/* Returns the test's wall clock in us, which runs with the virtual time. */
static uint64_t wall_us(void *ctx)
{
    (void)ctx;
    return UINT64_C(1700000000000000) + now_ns / RL_US;
}

/* Does nothing: no bytes wait in sockets. */
static void do_nothing(void *ctx)
{
    (void)ctx;
}

/* Ignores the wish for a timer: the test decides when the engine runs. */
static void no_timer(void *ctx, uint64_t boot_ns)
{
    (void)ctx;
    (void)boot_ns;
}

/* Delivers bytes from a server. */
static void receive(unsigned node, const char *bytes, size_t len)
{
    rl_node_received(&engine.nodes[node], bytes, len, now_ns);
    rl_engine_drain(&engine);
}

/* Delivers a bulk string as a reply of the server. */
static void reply(unsigned node, const char *text)
{
    char bytes[512];
    const int len = snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);

    receive(node, bytes, (size_t)len);
}

/* Completes the connection of a node and replies to its greeting. */
static void greet(unsigned node)
{
    char server[64];

    ck_assert(opened[node]);
    rl_node_opened(&engine.nodes[node], true, 0, NULL, now_ns);
    receive(node, "+OK\r\n", 5); /* reply to CLIENT SETNAME */
    snprintf(server, sizeof server, "run_id:%s\r\n", run_ids[node]);
    reply(node, server);
    reply(node, "role:master\r\n");
    for (unsigned i = 0; i < 3; i++)
        reply(node, "");
    receive(node, "-NOPERM\r\n", 9); /* reply to TIME */
    for (unsigned i = 0; i < 3; i++)
        reply(node, "0123456789012345678901234567890123456789");
    receive(node, ":1\r\n:1\r\n", 8); /* replies to EVAL and EVALSHA */
    ck_assert_int_eq(engine.nodes[node].conn.state, RL_NODE_READY);
}

/* Advances time, forgets the recorded requests and turns the loop once. */
static void pass(uint64_t time_ns)
{
    now_ns += time_ns;
    memset(read_sent, 0, sizeof read_sent);
    memset(seeded, 0, sizeof seeded);
    memset(seed_is_full, 0, sizeof seed_is_full);
    rl_engine_refresh(&engine);
    rl_engine_tick(&engine);
    rl_engine_flush(&engine);
}

/* Lets pass a time in which everything that is due soon happens. */
static inline void tick(void)
{
    pass(2 * RL_SECOND);
}

/* Fixture: opens an engine with three durable servers that are connected and have replied to
 * the greeting. */
static void setup(void)
{
    const struct rl_env env = {
        .transport = {.open = on_open, .send = on_send, .close = on_close},
        .entropy = rl_entropy_kernel(),
        .now = read_clock,
        .wall_us = wall_us,
        .catch_up = do_nothing,
        .wake_at = no_timer,
    };
    const struct rl_engine_params params = {
        .mem = &mem,
        .log = &silent_log,
        .specs = specs,
        .nodes = NODES,
        .admission = {.max_ttl_ns = RL_SECOND},
        .connect_timeout_ns = 60 * RL_SECOND,
        .node_timeout_ns = 60 * RL_SECOND,
        .heartbeat_ns = 3600 * RL_SECOND,
        .fence_record = {"fence", 5},
        .fence_config = {CONFIG, sizeof CONFIG - 1},
        .fence_wait_ns = RL_SECOND,
    };

    now_ns = 1000 * RL_SECOND;
    mem = rl_mem_libc();
    for (unsigned i = 0; i < NODES; i++) {
        snprintf(specs[i].host, sizeof specs[i].host, "node%u", i);
        specs[i].port = 6379;
        snprintf(run_ids[i], sizeof run_ids[i], "run%u", i);
        specs[i].durable = true;
        rl_node_spec_name(&specs[i]);
    }
    ck_assert_int_eq(rl_random_init(), REDLOCK_OK);
    ck_assert_int_eq(rl_engine_open(&engine, &params, &env), REDLOCK_OK);
    tick();
    for (unsigned i = 0; i < NODES; i++)
        greet(i);
}

/* Fixture: closes the engine. */
static void teardown(void)
{
    rl_engine_close(&engine);
}

/* Makes the engine read the records now. */
static inline void read_records(void)
{
    ck_assert(rl_records_start(&engine));
    engine.records->due_ns = 0; /* due at once, also if they were read before */
    tick();
}

/* Replies for all nodes to the READ of their records. */
static inline void reply_to_all(const char *first, const char *second, const char *third)
{
    const char *const records[NODES] = {first, second, third};

    for (unsigned i = 0; i < NODES; i++)
        ck_assert(read_sent[i]);
    memset(read_sent, 0, sizeof read_sent);
    memset(seeded, 0, sizeof seeded);
    for (unsigned i = 0; i < NODES; i++)
        reply(i, records[i]);
    rl_engine_flush(&engine);
}

/* Checks which nodes got a SEED since the last pass(). */
static inline void check_seeded(bool first, bool second, bool third)
{
    ck_assert_int_eq(seeded[0], first);
    ck_assert_int_eq(seeded[1], second);
    ck_assert_int_eq(seeded[2], third);
}

#endif
