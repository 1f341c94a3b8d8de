/* SPDX-License-Identifier: MIT
 * Servers that accept a connection and never reply: only its own timers can wake the client.
 * Operations that a callback starts still end in time.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <poll.h>
#include <stdatomic.h>

#define WAIT_MS    50
#define LATE_MS    5000  /* the limit for a call that waits for WAIT_MS; scaled */
#define CONNECT_MS 20000 /* the nodes' next timer, much later than both; not scaled */

/* A chain of operations, each started by the callback of the one before. */
struct chain {
    atomic_uint ended;
    int wanted;
    uint64_t begun_ms, longest_ms;
    int (*start)(struct chain *chain);
    int unexpected; /* a status that was not wanted; 0: none */
};

#define LINKS 4

static struct chain chain;

/* Records the end of an operation and starts the next one. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl, (void)lock, (void)report, (void)userdata;
    const uint64_t took_ms = wait_now_ms() - chain.begun_ms;
    if (took_ms > chain.longest_ms)
        chain.longest_ms = took_ms;
    if (status != chain.wanted)
        chain.unexpected = status;
    chain.begun_ms = wait_now_ms();
    if (atomic_load(&chain.ended) + 1 < LINKS && chain.start(&chain) != REDLOCK_OK)
        chain.unexpected = REDLOCK_EINVAL;
    atomic_fetch_add(&chain.ended, 1);
}

/* Starts an acquisition with a budget of WAIT_MS. */
static int start_acquire(struct chain *unused)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    opts.wait_ms = WAIT_MS;
    (void)unused;
    return redlock_acquire_start(three_servers.client, "resource", &opts, on_done, NULL);
}

/* Starts to wait for the client's readiness for WAIT_MS. */
static int start_wait_ready(struct chain *unused)
{
    (void)unused;
    return redlock_wait_ready_start(three_servers.client, WAIT_MS, NULL, on_done, NULL);
}

/* Connects a client in this mode to three servers that never reply. */
static void connect_in_mode(int mode)
{
    redlock_config_t *config = NULL;
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.fault = FAKE_SILENCE});
        ck_assert_int_eq(redlock_config_add_nodes(config, fake_redis_url(three_servers.fake[i])),
                         REDLOCK_OK);
    }
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(config, CONNECT_MS), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_mode(config, mode), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&three_servers.client, config), REDLOCK_OK);
    redlock_config_free(config);
}

/* Runs the client's loop once when its descriptor is readable, except in the threaded mode. */
static void turn(void)
{
    const int fd = redlock_get_fd(three_servers.client);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (fd == REDLOCK_EMODE) {
        wait_pause();
        return;
    }
    poll(&ready, 1, (int)wait_scaled_ms(LATE_MS)); /* only the descriptor wakes the caller */
    ck_assert_int_eq(redlock_process(three_servers.client), REDLOCK_OK);
}

/* Runs a chain of operations and checks that each of them ends in time. */
static void run_chain(int mode, int (*start)(struct chain *chain))
{
    connect_in_mode(mode);
    chain = (struct chain){.wanted = REDLOCK_ENOQUORUM, .start = start};
    chain.begun_ms = wait_now_ms();
    const uint64_t end_ms = chain.begun_ms + wait_scaled_ms(2 * LATE_MS);
    ck_assert_int_eq(start(&chain), REDLOCK_OK);
    while (atomic_load(&chain.ended) < LINKS && wait_now_ms() < end_ms)
        turn();
    ck_assert_msg(atomic_load(&chain.ended) == LINKS, "only %u of %d have ended",
                  atomic_load(&chain.ended), LINKS);
    ck_assert_msg(chain.unexpected == 0, "%s", redlock_error_name(chain.unexpected));
    ck_assert_msg(chain.longest_ms < wait_scaled_ms(LATE_MS), "waited %d ms instead of %d",
                  (int)chain.longest_ms, WAIT_MS);
}

static const int MODES[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};

START_TEST(acquisitions_started_in_callbacks_end_in_time)
{
    run_chain(MODES[_i], start_acquire);
}
END_TEST

START_TEST(waits_started_in_callbacks_end_in_time)
{
    run_chain(MODES[_i], start_wait_ready);
}
END_TEST

static Suite *unresponsive_suite(void)
{
    Suite *suite = suite_create("io_unresponsive");
    TCase *tcase = three_servers_add_case(suite, "callbacks");
    tcase_add_loop_test(tcase, acquisitions_started_in_callbacks_end_in_time, 0, 3);
    tcase_add_loop_test(tcase, waits_started_in_callbacks_end_in_time, 0, 3);
    return suite;
}

int main(void)
{
    return suite_run(unresponsive_suite());
}
