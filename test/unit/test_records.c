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
#define NEW    CONFIG "\n\n"
#define OTHER  "\nfedcba9876543210\n" /* it was emptied: another mark */

static struct rl_mem mem;
static struct rl_log log_to_nobody;
static struct rl_engine engine;
static struct rl_node_spec specs[NODES];
static uint64_t now_ns;
static bool opened[NODES];
static bool read_it[NODES], seeded[NODES]; /* what it was told to do, since the last look */
static char run_of[NODES][16];

static void on_open(void *ctx, unsigned node)
{
    (void)ctx;
    opened[node] = true;
}

static ssize_t on_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    (void)ctx;
    read_it[node] |= memmem(bytes, len, rl_wire_fence_sha(RL_VERB_READ), 40) != NULL;
    seeded[node] |= memmem(bytes, len, rl_wire_fence_sha(RL_VERB_SEED), 40) != NULL;
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
    snprintf(server, sizeof server, "run_id:%s\r\n", run_of[node]);
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
    memset(read_it, 0, sizeof read_it);
    memset(seeded, 0, sizeof seeded);
    rl_engine_refresh(&engine);
    rl_engine_tick(&engine);
    rl_engine_flush(&engine);
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
        snprintf(run_of[i], sizeof run_of[i], "run%u", i);
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

/* All nodes answer the question for their record. */
static void hear_all(const char *first, const char *second, const char *third)
{
    const char *const records[NODES] = {first, second, third};

    for (unsigned i = 0; i < NODES; i++)
        ck_assert(read_it[i]);
    memset(read_it, 0, sizeof read_it);
    memset(seeded, 0, sizeof seeded);
    for (unsigned i = 0; i < NODES; i++)
        hear(i, records[i]);
    rl_engine_flush(&engine);
}

static void check_seeded(bool first, bool second, bool third)
{
    ck_assert_int_eq(seeded[0], first);
    ck_assert_int_eq(seeded[1], second);
    ck_assert_int_eq(seeded[2], third);
}

/* True: all are told to take theirs into use. */
static bool starts(const char *record)
{
    look();
    hear_all(record, record, record);
    if (read_it[0])
        hear_all(record, record, record);
    return seeded[0] && seeded[1] && seeded[2];
}

static void lose(unsigned node)
{
    rl_node_closed(&engine.nodes[node], REDLOCK_CAUSE_DISCONNECT, "cut", now_ns);
}

/* The node's connection is made anew; others that are away stay away. */
static void come_back(unsigned node)
{
    engine.records->due_ns = RL_NEVER; /* no look by chance */
    for (unsigned i = 0; i < 10 && !opened[node]; i++)
        tick();
    for (unsigned i = 0; i < NODES; i++) {
        if (i == node || engine.nodes[i].state == RL_NODE_READY || !opened[i])
            continue;
        opened[i] = false;
        rl_node_opened(&engine.nodes[i], false, REDLOCK_CAUSE_CONNECT, "refused", now_ns);
    }
    greet(node);
    tick();
}

/* The first start breaks off: only the first node hears of it. */
static void break_off(void)
{
    ck_assert(starts(EMPTY));
    opened[1] = opened[2] = false;
    lose(1);
    lose(2);
    hear(0, "A ");
    ck_assert(!rl_records_may_vote(&engine));
}

static void check_text(const char *words)
{
    char text[256];

    rl_records_text(&engine, 0, text, sizeof text);
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

/* Once is not enough: they were not all read at the same time. */
START_TEST(all_empty_is_the_first_start)
{
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    check_seeded(false, false, false);
    hear_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_eq(rl_records_may_vote(&engine), i == 2);
        hear(i, "A ");
    }
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* Something happened to a node between the looks: there is a third one, not at once. */
START_TEST(a_node_that_forgets_between_the_looks)
{
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    if (_i == 0) {
        hear_all(EMPTY, OTHER, EMPTY);
    } else { /* its run is another one, and has the old mark */
        opened[1] = false;
        lose(1);
        snprintf(run_of[1], sizeof run_of[1], "later");
        for (unsigned i = 0; i < NODES; i += 2)
            hear(i, EMPTY);
        come_back(1);
        ck_assert(!seeded[0]);
        look();
        hear_all(EMPTY, EMPTY, EMPTY);
        check_seeded(false, false, false);
    }
    if (_i == 0) {
        check_seeded(false, false, false);
        ck_assert(!read_it[0]);
        look();
        hear_all(EMPTY, OTHER, EMPTY);
    } else {
        hear_all(EMPTY, EMPTY, EMPTY);
    }
    check_seeded(true, true, true);
}
END_TEST

/* What was read on one run of a server is not written to the next one. */
START_TEST(a_restart_before_it_is_told)
{
    look();
    hear_all(EMPTY, EMPTY, EMPTY);
    opened[1] = false;
    hear(1, EMPTY); /* it has answered the second question, too, and is restarted */
    lose(1);
    snprintf(run_of[1], sizeof run_of[1], "later");
    come_back(1);
    hear(0, EMPTY);
    hear(2, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(true, false, true);
    hear(0, "A ");
    hear(2, "A ");
    ck_assert(rl_records_may_vote(&engine));
}
END_TEST

/* The same client goes on as soon as it reaches a node, if nothing has happened to it. */
START_TEST(a_first_start_that_broke_off_goes_on)
{
    break_off();
    check_text("too few of the others"); /* the one that is in use */
    come_back(1);
    hear(0, NEW);
    hear(1, EMPTY);
    rl_engine_flush(&engine);
    check_seeded(false, true, false);
    hear(1, "A ");
    ck_assert(rl_records_may_vote(&engine));
    /* The last one, much later, when the others are in use. */
    now_ns += 3600 * RL_SECOND;
    come_back(2);
    hear_all(USED, USED, EMPTY);
    check_seeded(false, false, true);
}
END_TEST

/* But not on a node that was emptied, or restarted, since: somebody else may have used it. */
START_TEST(it_does_not_go_on_where_something_happened)
{
    break_off();
    if (_i == 1)
        snprintf(run_of[1], sizeof run_of[1], "later");
    come_back(1);
    hear(0, NEW);
    hear(1, _i == 0 ? OTHER : (_i == 1 ? EMPTY : "\n" MARK "\n1:7"));
    rl_engine_flush(&engine);
    check_seeded(false, false, false);
    come_back(2);
    hear_all(NEW, _i == 0 ? OTHER : EMPTY, EMPTY);
    check_seeded(false, _i == 2, true); /* that one came with a number: nobody's, as it seems */
}
END_TEST

/* Another client that finds some in use and some new waits a little: it may be a first start. */
START_TEST(somebody_elses_first_start)
{
    unsigned soon = 0;

    ck_assert(rl_records_want(&engine));
    for (;;) {
        rl_engine_flush(&engine);
        hear_all(NEW, EMPTY, EMPTY);
        check_seeded(false, false, false);
        const uint64_t left_ns = rl_records_wake_ns(&engine) - now_ns;
        ck_assert_uint_le(left_ns, 64 * RL_SECOND);
        if (engine.records->known)
            break;
        ck_assert_uint_le(left_ns, 200 * RL_MS);
        soon++;
        tick();
    }
    ck_assert_uint_eq(soon, 4);
    tick();
    hear_all(NEW, NEW, EMPTY);
    ck_assert(rl_records_may_vote(&engine));
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
    rl_engine_flush(&engine);
    hear_all(EMPTY, EMPTY, EMPTY);
    check_seeded(true, true, true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("records");
    TCase *tcase = tcase_create("first start");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_empty_is_the_first_start);
    tcase_add_loop_test(tcase, a_node_that_forgets_between_the_looks, 0, 2);
    tcase_add_test(tcase, a_restart_before_it_is_told);
    tcase_add_test(tcase, a_first_start_that_broke_off_goes_on);
    tcase_add_loop_test(tcase, it_does_not_go_on_where_something_happened, 0, 3);
    tcase_add_test(tcase, somebody_elses_first_start);
    tcase_add_loop_test(tcase, all_empty_after_something_was_there, 0, 3);
    return suite_run(suite);
}
