/* SPDX-License-Identifier: MIT
 * Several engines of one client on one poller: time is read once for all, and each engine keeps its
 * own counts. */
#include "engine/io.h"

#include "engine/engine.h"

#include <redlock/redlock.h>
#include <string.h>

#include "suite.h"

#define SIDES 3

static struct rl_mem mem;
static struct rl_log log_to_nobody;
static struct rl_io io;
static struct rl_io_shard sides[SIDES];
static struct rl_engine engines[SIDES];
static struct rl_node_spec spec;

static void setup(void)
{
    const struct rl_engine_params params = {
        .mem = &mem,
        .log = &log_to_nobody,
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
    for (unsigned i = 0; i < SIDES; i++)
        ck_assert_int_eq(rl_io_add(&io, &sides[i], &engines[i], &params), REDLOCK_OK);
}

static void teardown(void)
{
    rl_io_close(&io);
}

START_TEST(all_have_the_same_time)
{
    for (unsigned i = 0; i < SIDES; i++) {
        engines[i].view.now = (struct rl_now){0, 0};
        sides[i].sockets.now_ns = 0;
    }
    rl_io_refresh(&io);
    ck_assert_uint_ne(engines[0].view.now.boot_ns, 0);
    for (unsigned i = 0; i < SIDES; i++) {
        ck_assert_uint_eq(engines[i].view.now.boot_ns, engines[0].view.now.boot_ns);
        ck_assert_uint_eq(engines[i].view.now.raw_ns, engines[0].view.now.raw_ns);
        ck_assert_int_eq(engines[i].view.wall_us, engines[0].view.wall_us);
        ck_assert_uint_eq(sides[i].sockets.now_ns, engines[0].view.now.boot_ns);
    }
}
END_TEST

/* Any one that has something to send is enough, and a flush reaches all. */
START_TEST(any_may_have_something_to_send)
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
    TCase *tcase = tcase_create("sides");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_have_the_same_time);
    tcase_add_loop_test(tcase, any_may_have_something_to_send, 0, SIDES);
    return suite_run(suite);
}
