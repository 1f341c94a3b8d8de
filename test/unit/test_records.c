/* SPDX-License-Identifier: MIT
 * When records count as the first start's: an engine on three servers that are played by hand. */
#include "engine/engine.h"
#include "suite.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

#define NODES  3
#define CONFIG "v1 test;"
#define MARK   "0123456789abcdef"
#define EMPTY  "\n" MARK "\n"
#define USED   CONFIG "\n\n1:5"

static struct rl_mem mem;
static struct rl_log log_to_nobody;
static struct rl_engine engine;
static struct rl_node_spec specs[NODES];
static uint64_t now_ns;
static bool opened[NODES], said[NODES];

static void on_open(void *ctx, unsigned node)
{
    (void)ctx;
    opened[node] = true;
}

static ssize_t on_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    said[node] = true;
    return (ssize_t)len;
}

static void on_close(void *ctx, unsigned node, bool abortive)
{
    (void)ctx;
    (void)abortive;
    opened[node] = false;
}

static struct rl_now read_clock(void *ctx)
{
    (void)ctx;
    return (struct rl_now){.boot_ns = now_ns, .raw_ns = now_ns};
}

static uint64_t wall_us(void *ctx)
{
    (void)ctx;
    return UINT64_C(1700000000000000) + now_ns / RL_US;
}

static void do_nothing(void *ctx)
{
    (void)ctx;
}

static void no_timer(void *ctx, uint64_t boot_ns)
{
    (void)ctx;
    (void)boot_ns;
}

static void on_lock(void *ctx, struct rl_lock *lock, uint32_t flags, int status)
{
    (void)ctx;
    (void)lock;
    (void)flags;
    (void)status;
}

static void on_node(void *ctx, unsigned node)
{
    (void)ctx;
    (void)node;
}

static void hear(unsigned node, const char *text)
{
    char bytes[512];
    const int len = snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);

    rl_node_received(&engine.nodes[node], bytes, (size_t)len, now_ns);
}

static void greet(unsigned node)
{
    char server[64];

    ck_assert(opened[node]);
    rl_node_opened(&engine.nodes[node], true, 0, NULL, now_ns);
    rl_node_received(&engine.nodes[node], "+OK\r\n", 5, now_ns); /* CLIENT SETNAME */
    snprintf(server, sizeof server, "run_id:run%u\r\n", node);
    hear(node, server);
    hear(node, "role:master\r\n");
    for (unsigned i = 0; i < 3; i++)
        hear(node, "");
    rl_node_received(&engine.nodes[node], "-NOPERM\r\n", 9, now_ns); /* TIME */
    for (unsigned i = 0; i < 3; i++)
        hear(node, "0123456789012345678901234567890123456789");
    ck_assert_int_eq(engine.nodes[node].state, RL_NODE_READY);
}

static void tick(void)
{
    now_ns += 2 * RL_SECOND;
    memset(said, 0, sizeof said);
    rl_engine_refresh(&engine);
    rl_engine_tick(&engine);
}

static void setup(void)
{
    static const struct rl_engine_listener listener = {.lock = on_lock, .node = on_node};
    const struct rl_outside outside = {
        .transport = {.open = on_open, .send = on_send, .close = on_close},
        .entropy = rl_entropy_kernel(),
        .now = read_clock,
        .wall_us = wall_us,
        .catch_up = do_nothing,
        .wake_at = no_timer,
    };
    const struct rl_engine_params params = {
        .mem = &mem,
        .log = &log_to_nobody,
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
        specs[i].durable = true;
        rl_node_spec_name(&specs[i]);
    }
    ck_assert_int_eq(rl_random_init(), REDLOCK_OK);
    ck_assert_int_eq(rl_engine_open(&engine, &params, &outside, &listener), REDLOCK_OK);
    tick();
    for (unsigned i = 0; i < NODES; i++)
        greet(i);
}

static void teardown(void)
{
    rl_engine_close(&engine);
}

static void look(void)
{
    ck_assert(rl_records_want(&engine));
    engine.records->due_ns = 0; /* if it has looked before */
    tick();
}

/* All answer the question for their record; true: all are told to take theirs into use. */
static bool starts(const char *record)
{
    look();
    for (unsigned i = 0; i < NODES; i++) {
        said[i] = false;
        hear(i, record);
    }
    rl_engine_flush(&engine);
    return said[0] && said[1] && said[2];
}

static void check_text(const char *words)
{
    char text[256];

    rl_records_text(&engine, 0, text, sizeof text);
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

START_TEST(all_empty_is_the_first_start)
{
    ck_assert(starts(EMPTY));
}
END_TEST

/* It has seen them in use: read, taken into use by itself, or told by a vote. */
START_TEST(all_empty_after_something_was_there)
{
    if (_i == 0) {
        ck_assert(!starts(USED));
    } else if (_i == 1) {
        ck_assert(starts(EMPTY));
        for (unsigned i = 0; i < NODES; i++)
            hear(i, "A ");
    } else {
        const struct rl_ballot ballot = {.node = 2, .record = RL_RECORD_ADMITTED};
        look();
        for (unsigned i = 0; i < NODES; i++)
            hear(i, "\n" MARK "\n1:7"); /* numbers, so it is no first start either */
        rl_records_note(&engine, &ballot);
    }
    for (unsigned i = 0; i < 3; i++) { /* it does not wear off */
        ck_assert(!starts(EMPTY));
        check_text("fence_majority_lost");
    }
    /* An operator may say so. */
    ck_assert(rl_records_init(&engine));
    rl_engine_flush(&engine);
    for (unsigned i = 0; i < NODES; i++) {
        said[i] = false;
        hear(i, EMPTY);
    }
    rl_engine_flush(&engine);
    ck_assert(said[0] && said[1] && said[2]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("records");
    TCase *tcase = tcase_create("first start");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_empty_is_the_first_start);
    tcase_add_loop_test(tcase, all_empty_after_something_was_there, 0, 3);
    return suite_run(suite);
}
