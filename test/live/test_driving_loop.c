/* SPDX-License-Identifier: MIT
 * Callers that drive the loop: they are woken when another thread ends their operation, and they
 * hand the loop over in time when other callers wait for the clock only. Node timeouts are long
 * here: a caller that is not woken sleeps for seconds. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

#define STREAK    24   /* blocking calls in a row: more than a caller needs to get the wheel */
#define LATE_MS   6000 /* what nobody needs to wait for is late then; scaled */
#define SILENT_MS 8000 /* node timeout; scaled by live_config() */
#define BURST     12
#define BURSTS_MS 1500
#define PAUSE_US  2600 /* a little more than the I/O thread stays away without a driver */

static void connect_patient(void)
{
    live.node_time_ms = SILENT_MS;
    live_connect();
}

/* After this the next blocking call drives, unless the I/O thread needs the loop itself. */
static void become_leader(void)
{
    for (unsigned i = 0; i < STREAK; i++)
        CHECK_STATUS(redlock_inspect(live.client, "streak", NULL), REDLOCK_OK);
}

static void check_quick(const char *what, uint64_t begun_ms)
{
    const uint64_t took_ms = wait_now_ms() - begun_ms;
    ck_assert_msg(took_ms < wait_scaled_ms(LATE_MS), "%s took %d ms", what, (int)took_ms);
}

/* ---- bursts ---- */

static void pass_us(uint64_t us)
{
    const uint64_t end_ns = wait_now_ns() + us * 1000;
    while (wait_now_ns() < end_ns)
        wait_pause();
}

static void lock_and_unlock(unsigned i)
{
    char resource[16];
    redlock_lock_t *lock = NULL;
    snprintf(resource, sizeof resource, "burst-%u", i);
    uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(live_acquire(resource, LONG_TTL_MS, 0, &lock), REDLOCK_OK);
    check_quick("acquire", begun_ms);
    begun_ms = wait_now_ms();
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    check_quick("release", begun_ms);
}

/* Between two bursts the I/O thread takes the loop back, or is just about to. */
START_TEST(bursts_with_pauses)
{
    connect_patient();
    const uint64_t end_ms = wait_now_ms() + BURSTS_MS;
    for (unsigned round = 0; wait_now_ms() < end_ms; round++) {
        for (unsigned i = 0; i < BURST; i++)
            lock_and_unlock(i);
        pass_us(PAUSE_US + round % 7 * 100);
    }
}
END_TEST

/* ---- a caller that drives while a majority is silent ---- */

struct caller {
    pthread_t thread;
    redlock_cancel_t *cancel;
    int status;
    atomic_bool done;
};

static void *acquire(void *userdata)
{
    struct caller *caller = userdata;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = caller->cancel;
    caller->status = redlock_acquire(live.client, "driven", &opts, &lock, NULL);
    redlock_lock_free(lock);
    atomic_store(&caller->done, true);
    return NULL;
}

static void start_driver(struct caller *caller)
{
    connect_patient();
    become_leader();
    live_pause(0, QUORUM);
    ck_assert_int_eq(redlock_cancel_new(&caller->cancel, live.client), REDLOCK_OK);
    atomic_store(&caller->done, false);
    ck_assert_int_eq(pthread_create(&caller->thread, NULL, acquire, caller), 0);
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == 1, TIME_LIMIT_MS));
}

static void check_ended(struct caller *caller, int status, uint64_t begun_ms)
{
    const bool ended = WAIT_UNTIL(atomic_load(&caller->done), LATE_MS);
    live_resume_all();
    pthread_join(caller->thread, NULL);
    redlock_cancel_free(caller->cancel);
    ck_assert_msg(ended, "the driver slept on for %d ms", (int)(wait_now_ms() - begun_ms));
    CHECK_STATUS(caller->status, status);
}

START_TEST(shutdown_ends_what_a_driver_waits_for)
{
    struct caller caller;
    start_driver(&caller);
    const uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(redlock_shutdown(live.client, 20), REDLOCK_ENOQUORUM); /* silent: undos are owed */
    check_quick("shutdown", begun_ms);
    check_ended(&caller, REDLOCK_ECLOSED, begun_ms);
}
END_TEST

START_TEST(cancel_ends_what_a_driver_waits_for)
{
    struct caller caller;
    start_driver(&caller);
    const uint64_t begun_ms = wait_now_ms();
    redlock_cancel_trigger(caller.cancel);
    check_ended(&caller, REDLOCK_ECANCELED, begun_ms);
}
END_TEST

START_TEST(free_ends_what_a_driver_waits_for)
{
    struct caller caller;
    start_driver(&caller);
    const uint64_t begun_ms = wait_now_ms();
    live_disconnect();
    check_quick("free", begun_ms);
    check_ended(&caller, REDLOCK_ECLOSED, begun_ms);
}
END_TEST

/* ---- long drives ---- */

#define WAITED_MS    1000
#define SWITCHES_MAX 200

static long switches(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

/* The I/O thread has nothing to do meanwhile, and does not look five hundred times a second. */
START_TEST(a_long_drive_lets_the_thread_sleep)
{
    redlock_lock_t *lock = NULL;
    connect_patient();
    cluster_command_all(live.cluster, "SET taken somebody PX 30000");
    become_leader();
    const long before = switches();
    CHECK_STATUS(live_acquire("taken", LONG_TTL_MS, WAITED_MS, &lock), REDLOCK_ECONTENDED);
    const long count = switches() - before;
    cluster_command_all(live.cluster, "DEL taken");
    ck_assert_msg(count < SWITCHES_MAX, "%ld switches", count);
    const uint64_t begun_ms = wait_now_ms();
    lock_and_unlock(0);
    check_quick("the next one", begun_ms);
}
END_TEST

/* ---- what ends by the clock ---- */

START_TEST(shutdown_keeps_its_budget_while_it_drives)
{
    redlock_lock_t *lock = NULL;
    connect_patient();
    become_leader();
    live_pause(0, QUORUM);
    CHECK_STATUS(live_acquire("owed", LONG_TTL_MS, 30, &lock), REDLOCK_ENOQUORUM);
    const uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(redlock_shutdown(live.client, 20), REDLOCK_ENOQUORUM); /* undos are owed */
    check_quick("shutdown", begun_ms);
}
END_TEST

/* A client of which a majority is silent from the start: connected, but never ready. */
static void connect_unready(void)
{
    live.connect_time_ms = SILENT_MS;
    live_pause(0, QUORUM);
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES - QUORUM, TIME_LIMIT_MS));
}

static void wait_ready_briefly(void)
{
    const uint64_t begun_ms = wait_now_ms();
    CHECK_STATUS(redlock_wait_ready(live.client, 10), REDLOCK_ENOQUORUM);
    check_quick("wait_ready", begun_ms);
}

START_TEST(wait_ready_keeps_its_time_while_it_drives)
{
    connect_unready();
    for (unsigned i = 0; i < STREAK; i++)
        wait_ready_briefly();
}
END_TEST

static void *wait_ready(void *userdata)
{
    struct caller *caller = userdata;
    caller->status = redlock_wait_ready(live.client, REDLOCK_WAIT_FOREVER);
    atomic_store(&caller->done, true);
    return NULL;
}

/* Whether the one in the thread or this one drives, both are told in time. */
START_TEST(wait_ready_keeps_its_time_while_another_drives)
{
    struct caller caller = {.cancel = NULL};
    connect_unready();
    for (unsigned i = 0; i < STREAK; i++)
        wait_ready_briefly();
    atomic_init(&caller.done, false);
    ck_assert_int_eq(pthread_create(&caller.thread, NULL, wait_ready, &caller), 0);
    for (unsigned i = 0; i < STREAK; i++)
        wait_ready_briefly();
    const uint64_t begun_ms = wait_now_ms();
    if (_i == 0)
        live_disconnect();
    else
        CHECK_STATUS(redlock_shutdown(live.client, 20), REDLOCK_OK);
    check_quick("leaving", begun_ms);
    check_ended(&caller, REDLOCK_ECLOSED, begun_ms);
}
END_TEST

static Suite *driving_suite(void)
{
    Suite *suite = suite_create("live_driving_loop");
    live_add(suite, "bursts", bursts_with_pauses);
    live_add(suite, "shutdown", shutdown_ends_what_a_driver_waits_for);
    live_add(suite, "cancel", cancel_ends_what_a_driver_waits_for);
    live_add(suite, "free", free_ends_what_a_driver_waits_for);
    live_add(suite, "long", a_long_drive_lets_the_thread_sleep);
    live_add(suite, "shutdown drives", shutdown_keeps_its_budget_while_it_drives);
    live_add(suite, "wait_ready drives", wait_ready_keeps_its_time_while_it_drives);
    live_add_each(suite, "two wait", wait_ready_keeps_its_time_while_another_drives, 2);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(driving_suite());
    live_stop_servers();
    return status;
}
