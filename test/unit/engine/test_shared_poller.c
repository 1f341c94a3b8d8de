/* SPDX-License-Identifier: MIT
 * Several engines of one client on one poller: time is read once for all, and each engine keeps its
 * own counts. */
#include "engine/io.h"

#include "engine/engine.h"

#include <redlock/redlock.h>
#include <string.h>

#include "suite.h"

#define SHARDS 3

static struct rl_mem mem;
static struct rl_log silent_log; /* logs nothing */
static struct rl_io io;
static struct rl_io_shard shards[SHARDS];
static struct rl_engine engines[SHARDS];
static struct rl_node_spec spec;

/* Fixture: opens one poller and adds the engines of SHARDS shards to it. Each has one server,
 * on a port where none listens. */
static void setup(void)
{
    const struct rl_engine_params params = {
        .mem = &mem,
        .log = &silent_log,
        .specs = &spec,
        .nodes = 1,
        .admission = {.max_ttl_ns = RL_SECOND},
        .connect_timeout_ns = RL_SECOND,
        .node_timeout_ns = RL_SECOND,
        .heartbeat_ns = RL_SECOND,
    };

    mem = rl_mem_libc();
    snprintf(spec.host, sizeof spec.host, "127.0.0.1");
    spec.port = 1;
    rl_node_spec_name(&spec);
    ck_assert_int_eq(rl_random_init(), REDLOCK_OK);
    ck_assert_int_eq(rl_io_open(&io), REDLOCK_OK);
    for (unsigned i = 0; i < SHARDS; i++)
        ck_assert_int_eq(rl_io_add(&io, &shards[i], &engines[i], &params), REDLOCK_OK);
}

/* Fixture: closes the poller with its engines. */
static void teardown(void)
{
    rl_io_close(&io);
}

START_TEST(all_engines_have_the_same_time)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        engines[i].view.now = (struct rl_now){0, 0};
        shards[i].sockets.now_ns = 0;
    }
    rl_io_refresh(&io);
    ck_assert_uint_ne(engines[0].view.now.boot_ns, 0);
    for (unsigned i = 0; i < SHARDS; i++) {
        ck_assert_uint_eq(engines[i].view.now.boot_ns, engines[0].view.now.boot_ns);
        ck_assert_uint_eq(engines[i].view.now.raw_ns, engines[0].view.now.raw_ns);
        ck_assert_int_eq(engines[i].view.wall_us, engines[0].view.wall_us);
        ck_assert_uint_eq(shards[i].sockets.now_ns, engines[0].view.now.boot_ns);
    }
}
END_TEST

/* One engine with unsent requests is noticed, and a flush sends those of all engines. */
START_TEST(a_flush_reaches_all_engines)
{
    ck_assert(!rl_io_is_dirty(&io));
    engines[_i].common.inbox.dirty = RL_NODE(0);
    ck_assert(rl_io_is_dirty(&io));
    rl_io_flush(&io);
    ck_assert(!rl_io_is_dirty(&io));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_shared_poller");
    TCase *tcase = tcase_create("shards");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_engines_have_the_same_time);
    tcase_add_loop_test(tcase, a_flush_reaches_all_engines, 0, SHARDS);
    return suite_run(suite);
}
