/* SPDX-License-Identifier: MIT
 * A reply that is already in the client's own socket is not late. A thread that waits for the
 * client's mutex after polling has an old list of ready sockets. A node may be called late only
 * after its socket was read again. The test drives the engine itself to make that list old.
 *
 * Uses fake_redis.h: a fake Redis server on a thread of this process. The server executes
 * commands, logs them, and misbehaves where a rule (fake_redis_rule()) says so. */
#include "engine/io.h"
#include "fake_redis.h"
#include "platform/clock.h"
#include "suite.h"
#include "wait.h"

#include <redlock/redlock.h>
#include <stdlib.h>
#include <string.h>

#define TIME_LIMIT_MS 10000
#define TIMEOUT_MS    50
#define TTL_MS        30000

static struct fake_redis *fake;
static struct rl_engine *engine;
static struct rl_io io;
static struct rl_io_shard shard;
static struct rl_mem mem;
static struct rl_log logger;
static struct rl_node_spec spec;

/* Runs the engine's loop once without waiting. */
static void turn(void)
{
    struct rl_ready ready[RL_READY_MAX];
    int count = rl_io_wait(&io, ready, 0);
    rl_io_tick(&io, ready, count);
    rl_engine_flush(engine);
}

/* Runs the loop once. Returns true if the engine is ready. */
static bool becomes_ready(void)
{
    turn();
    return rl_engine_is_ready(engine);
}

/* Fixture: starts a fake server, and an engine on a poller with that one node; waits until the
 * node is ready. */
static void setup(void)
{
    char error[256] = "";
    fake = fake_redis_start(NULL);
    engine = calloc(1, sizeof *engine);
    ck_assert_ptr_nonnull(engine);
    mem = rl_mem_libc();
    memset(&spec, 0, sizeof spec);
    strcpy(spec.host, "127.0.0.1");
    spec.port = (uint16_t)atoi(strrchr(fake_redis_url(fake), ':') + 1);
    spec.tls = fake_tls_is_wanted();
    rl_node_spec_name(&spec);
    const struct rl_engine_params params = {
        .mem = &mem,
        .log = &logger,
        .specs = &spec,
        .nodes = 1,
        .admission = {.drift = {.ppm = 10000, .constant_us = 2000}, .max_ttl_ns = 30 * RL_SECOND},
        .backoff = {.min_ns = 5 * RL_MS, .max_ns = 50 * RL_MS},
        .connect_timeout_ns = TIME_LIMIT_MS * RL_MS,
        .node_timeout_ns = TIMEOUT_MS * RL_MS,
        .heartbeat_ns = RL_SECOND,
    };
    ck_assert_int_eq(rl_random_init(), REDLOCK_OK);
    ck_assert_int_eq(rl_io_open(&io), REDLOCK_OK);
    ck_assert_msg(rl_io_load_tls(&io, &mem, &logger, &spec, 1, error, sizeof error) == REDLOCK_OK,
                  "%s", error);
    ck_assert_int_eq(rl_io_add(&io, &shard, engine, &params), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(becomes_ready(), TIME_LIMIT_MS));
}

/* Fixture: closes the engine and stops the server. */
static void teardown(void)
{
    rl_io_close(&io);
    free(engine);
    fake_redis_stop(fake);
}

/* Sends a SET to the server. */
static void send_set(void)
{
    static const char key[] = "resource", token[] = "token";
    struct rl_claim *claim = rl_claim_new(&mem, (struct rl_arg){key, strlen(key)}, RL_TOKEN_MAX);
    ck_assert_ptr_nonnull(claim);
    rl_claim_set_token(claim, (struct rl_arg){token, strlen(token)});
    claim->ttl_ms = claim->ttl_max_ms = TTL_MS;
    rl_engine_refresh(engine);
    ck_assert_int_eq(
        rl_node_request(&engine->nodes[0], claim, 0, RL_VERB_ACQUIRE, engine->view.now.boot_ns),
        REDLOCK_CAUSE_NONE);
    rl_claim_drop(claim);
    rl_engine_flush(engine);
}

/* Returns true if the engine's next time limit has passed. */
static bool time_is_up(void)
{
    return rl_clock_now().boot_ns >= engine->common.wake_ns;
}

START_TEST(a_reply_in_the_socket_is_in_time)
{
    uint64_t sent = fake_redis_sent(fake);
    send_set();
    ck_assert(WAIT_UNTIL(fake_redis_sent(fake) > sent, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(time_is_up(), TIME_LIMIT_MS));
    rl_io_tick(&io, NULL, 0); /* the old list of ready sockets is empty */
    ck_assert_uint_eq(engine->nodes[0].counters.timeouts, 0);
    ck_assert(!engine->nodes[0].detector.suspect);
    ck_assert_uint_eq(engine->nodes[0].counters.granted, 1);
}
END_TEST

/* The same without a reply. */
START_TEST(without_a_reply_the_node_is_late)
{
    fake_redis_rule(fake, (struct fake_rule){.command = "SET", .fault = FAKE_SILENCE});
    send_set();
    ck_assert(fake_redis_wait(fake, "SET", 1, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(time_is_up(), TIME_LIMIT_MS));
    rl_io_tick(&io, NULL, 0);
    ck_assert_uint_eq(engine->nodes[0].counters.timeouts, 1);
    ck_assert(engine->nodes[0].detector.suspect);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_unread_replies");
    TCase *tc = tcase_create("stale");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, (double)wait_scaled_ms(60000) / 1000.0);
    tcase_add_test(tc, a_reply_in_the_socket_is_in_time);
    tcase_add_test(tc, without_a_reply_the_node_is_late);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
