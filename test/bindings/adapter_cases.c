/* SPDX-License-Identifier: MIT
 * What each adapter for an event loop must do: run a client that acquires, loses and releases
 * locks, sleep while nothing happens, and stop when it is detached or when redlock_process() fails.
 *
 * Uses live.h: five real servers, that run as long as the program, and `live`, the settings and the
 * client of the running case. After each case no key and no descriptor may be left. */
#include "adapter_cases.h"
#undef redlock_process

#include "live.h"
#include "suite.h"

#define IDLE_MS      500 /* how long a loop runs while nothing happens */
#define TURNS_MAX    100 /* calls in that time; a loop that never sleeps makes thousands */
#define EXTEND_TTL   2000
#define EXTEND_AT_MS 1800 /* validity left: so the first extension is 200 ms after the grant */

static unsigned turns; /* calls of adapter_process() */
static int refusal;    /* what it returns instead of a call; REDLOCK_OK: it calls */

/* The end of a started operation, and the loss of the lock. */
static struct outcome {
    bool done;            /* the callback has run */
    int status;           /* that it was given */
    redlock_lock_t *lock; /* that it was given */
    bool lost;            /* the event LOST came */
} outcome;

int adapter_process(redlock_t *rl)
{
    turns++;
    return refusal != REDLOCK_OK ? refusal : redlock_process(rl);
}

/* Callback of started operations: keeps the result and stops the loop. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl;
    (void)report;
    (void)userdata;
    outcome.done = true;
    outcome.status = status;
    outcome.lock = lock;
    adapter_loop.stop();
}

/* Event function of a lock: notes its loss and stops the loop. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl;
    (void)userdata;
    if (event->kind != REDLOCK_EVENT_LOST)
        return;
    outcome.lost = true;
    adapter_loop.stop();
}

/* Runs the loop until the operation that was started has ended. It must end with REDLOCK_OK.
 * Returns its lock, or NULL. `started` is what the start returned. */
static redlock_lock_t *finish(int started)
{
    CHECK_STATUS(started, REDLOCK_OK);
    ck_assert_msg(!outcome.done, "the callback ran inside the starting call");
    adapter_loop.run(wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(outcome.done, "the loop did not run the callback");
    CHECK_STATUS(outcome.status, REDLOCK_OK);
    outcome.done = false;
    return outcome.lock;
}

/* Creates the client and the loop, attaches the one to the other, and connects to all servers. */
static void begin(void)
{
    redlock_config_t *config;
    memset(&outcome, 0, sizeof outcome);
    refusal = REDLOCK_OK;
    live.mode = live.mode != 0 ? live.mode : REDLOCK_MODE_EMBEDDED;
    config = live_config();
    CHECK_STATUS(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    adapter_loop.open();
    CHECK_STATUS(adapter_loop.attach(live.client), REDLOCK_OK);
    finish(redlock_wait_ready_start(live.client, REDLOCK_WAIT_FOREVER, NULL, on_done, NULL));
}

/* Shuts the client down in the loop, detaches it and frees the loop. The fixture frees the client.
 */
static void end(void)
{
    finish(redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), on_done, NULL));
    adapter_loop.detach();
    adapter_loop.close();
}

/* Acquires a lock, which is extended automatically after 200 ms. */
static redlock_lock_t *acquire(const char *resource)
{
    redlock_opts_t opts = redlock_opts(EXTEND_TTL);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = EXTEND_AT_MS;
    opts.event_fn = on_event;
    return finish(redlock_acquire_start(live.client, resource, &opts, on_done, NULL));
}

/* A lock is acquired and held on a majority; its keys are deleted, and the loss is reported.
 * Another lock is acquired and released. _i selects the mode. */
START_TEST(locks_are_acquired_lost_and_released)
{
    live.mode = _i == 0 ? REDLOCK_MODE_EMBEDDED : REDLOCK_MODE_HYBRID;
    begin();
    redlock_lock_t *lock = acquire("a");
    ck_assert_uint_ge(live_nodes_with("a"), QUORUM);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_OK);
    cluster_command_all(live.cluster, "DEL a");
    adapter_loop.run(wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_msg(outcome.lost, "the loss was not reported");
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
    lock = acquire("b");
    finish(redlock_release_start(lock, on_done, NULL));
    redlock_lock_free(lock);
    ck_assert_uint_lt(live_nodes_with("b"), QUORUM);
    end();
}
END_TEST

/* While nothing is held and while a lock is held, the loop sleeps nearly all the time. _i selects
 * the mode. */
START_TEST(idle_loop_sleeps)
{
    live.mode = _i == 0 ? REDLOCK_MODE_EMBEDDED : REDLOCK_MODE_HYBRID;
    begin();
    turns = 0;
    adapter_loop.run(IDLE_MS);
    ck_assert_uint_le(turns, TURNS_MAX);
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    redlock_lock_t *lock = finish(redlock_acquire_start(live.client, "held", &opts, on_done, NULL));
    turns = 0;
    adapter_loop.run(IDLE_MS);
    ck_assert_uint_le(turns, TURNS_MAX);
    finish(redlock_release_start(lock, on_done, NULL));
    redlock_lock_free(lock);
    end();
}
END_TEST

/* Callback of an acquisition: detaches the client, which its own redlock_process() calls back, and
 * attaches it again if userdata is not NULL. */
static void on_done_detach(redlock_t *rl, int status, redlock_lock_t *lock,
                           const redlock_report_t *report, void *userdata)
{
    adapter_loop.detach();
    if (userdata != NULL)
        ck_assert_int_eq(adapter_loop.attach(rl), REDLOCK_OK);
    on_done(rl, status, lock, report, userdata);
}

/* A client that is detached in a callback is not driven any more; attached again, it goes on. _i:
 * 1: it is attached again in the callback. */
START_TEST(client_is_detached_in_a_callback)
{
    begin();
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    redlock_lock_t *lock = finish(
        redlock_acquire_start(live.client, "a", &opts, on_done_detach, _i != 0 ? &outcome : NULL));
    CHECK_STATUS(redlock_release_start(lock, on_done, NULL), REDLOCK_OK);
    if (_i == 0) {
        turns = 0;
        adapter_loop.run(IDLE_MS / 5);
        ck_assert_uint_eq(turns, 0);
        ck_assert(!outcome.done);
        CHECK_STATUS(adapter_loop.attach(live.client), REDLOCK_OK);
    }
    finish(REDLOCK_OK);
    redlock_lock_free(lock);
    end();
}
END_TEST

/* A failing redlock_process() ends the polling: its descriptor may stay readable for ever. */
START_TEST(failure_ends_the_polling)
{
    begin();
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    CHECK_STATUS(redlock_acquire_start(live.client, "a", &opts, on_done, NULL), REDLOCK_OK);
    refusal = REDLOCK_EFORKED;
    turns = 0;
    adapter_loop.run(IDLE_MS / 5);
    ck_assert_uint_eq(turns, 1);
    adapter_loop.detach();
    refusal = REDLOCK_OK;
    CHECK_STATUS(adapter_loop.attach(live.client), REDLOCK_OK);
    redlock_lock_t *lock = finish(REDLOCK_OK);
    finish(redlock_release_start(lock, on_done, NULL));
    redlock_lock_free(lock);
    end();
}
END_TEST

/* A client in threaded mode and no client are refused; then there is nothing to detach. */
START_TEST(clients_without_a_descriptor_are_refused)
{
    live_connect();
    adapter_loop.open();
    CHECK_STATUS(adapter_loop.attach(live.client), REDLOCK_EMODE);
    adapter_loop.detach();
    CHECK_STATUS(adapter_loop.attach(NULL), REDLOCK_EINVAL);
    adapter_loop.detach();
    adapter_loop.close();
}
END_TEST

int adapter_main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    Suite *suite = suite_create(adapter_loop.name);
    live_add_each(suite, "lock", locks_are_acquired_lost_and_released, 2);
    live_add_each(suite, "idle", idle_loop_sleeps, 2);
    live_add_each(suite, "detach", client_is_detached_in_a_callback, 2);
    live_add(suite, "failure", failure_ends_the_polling);
    live_add(suite, "refused", clients_without_a_descriptor_are_refused);
    int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
