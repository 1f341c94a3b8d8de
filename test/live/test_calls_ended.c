/* SPDX-License-Identifier: MIT
 * Calls that sleep in a client that ends: redlock_free() and redlock_shutdown() wake them with
 * ECLOSED, and no operation is reported as done. And calls that end because their time has passed,
 * with the cause of the wait. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STREAK    24 /* blocking calls in a row: more than a caller needs to turn the loop itself */
#define LATE_MS   6000 /* scaled */
#define SILENT_MS 8000 /* node timeout; scaled by live_config() */

struct caller {
    pthread_t thread;
    int (*call)(struct caller *caller);
    redlock_t *client;
    redlock_lock_t *lock;
    redlock_report_t *report;
    int status;
    atomic_bool done;
};

static void *run(void *userdata)
{
    struct caller *caller = userdata;
    caller->status = caller->call(caller);
    atomic_store(&caller->done, true);
    return NULL;
}

static void begin(struct caller *caller, int (*call)(struct caller *caller))
{
    caller->call = call;
    caller->client = live.client;
    atomic_init(&caller->done, false);
    ck_assert_int_eq(pthread_create(&caller->thread, NULL, run, caller), 0);
}

/* The call returns soon; its report and its lock outlive the client. */
static void check_ended(struct caller *caller, int status)
{
    const bool in_time = WAIT_UNTIL(atomic_load(&caller->done), LATE_MS);
    live_resume_all();
    pthread_join(caller->thread, NULL);
    live_keep_report(caller->report);
    ck_assert_msg(in_time, "the call slept on");
    CHECK_STATUS(caller->status, status);
    live_keep_report(NULL);
}

static int acquire(struct caller *caller)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    return redlock_acquire(caller->client, "ending", &opts, &caller->lock, &caller->report);
}

static int extend(struct caller *caller)
{
    return redlock_extend(caller->lock, 0, &caller->report);
}

static int wait_ready(struct caller *caller)
{
    return redlock_wait_ready(caller->client, REDLOCK_WAIT_FOREVER);
}

/* Odd cases: the caller turns the loop. */
static void connect_and_prepare(bool drives)
{
    live.node_time_ms = SILENT_MS;
    live_connect();
    for (unsigned i = 0; drives && i < STREAK; i++)
        CHECK_STATUS(redlock_inspect(live.client, "streak", NULL), REDLOCK_OK);
}

static void leave(bool shut_down)
{
    if (shut_down)
        redlock_shutdown(live.client, 20);
    else
        live_disconnect();
}

/* ---- the client ends ---- */

START_TEST(while_a_call_waits_for_a_lock)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(false);
    redlock_t *holder = live.client;
    redlock_lock_t *held = live_lock("ending", LONG_TTL_MS);
    connect_and_prepare(_i % 2 == 1);
    begin(&caller, acquire);
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts > 1, TIME_LIMIT_MS));
    leave(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
    ck_assert_ptr_null(caller.lock);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    ck_assert_int_eq(redlock_free(holder), REDLOCK_OK);
}
END_TEST

START_TEST(while_a_call_waits_for_answers)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(_i % 2 == 1);
    live_pause(0, QUORUM);
    begin(&caller, acquire);
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == 1, TIME_LIMIT_MS));
    leave(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
    ck_assert_ptr_null(caller.lock);
}
END_TEST

START_TEST(while_a_call_extends)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(_i % 2 == 1);
    caller.lock = live_lock("ending", LONG_TTL_MS);
    live_pause(0, QUORUM);
    const uint64_t requests = live_node_stats(live.client, 0).requests;
    begin(&caller, extend);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).requests > requests, TIME_LIMIT_MS));
    leave(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
    ck_assert_int_eq(redlock_lock_check(caller.lock, 0), REDLOCK_ELOST);
    redlock_lock_free(caller.lock);
}
END_TEST

/* Waiting for nodes shows nowhere but in the memory that it takes. */
static atomic_uint allocated;

static void *count_malloc(size_t size, void *userdata)
{
    (void)userdata;
    atomic_fetch_add(&allocated, 1);
    return malloc(size);
}

static void *count_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    atomic_fetch_add(&allocated, 1);
    return realloc(ptr, size);
}

static void count_free(void *ptr, void *userdata)
{
    (void)userdata;
    free(ptr);
}

/* A majority is silent from the start: connected, but never ready. */
static void connect_unready(void)
{
    const redlock_allocator_t allocator = {.size = sizeof allocator,
                                           .malloc_fn = count_malloc,
                                           .realloc_fn = count_realloc,
                                           .free_fn = count_free};
    const uint32_t timeout_ms = (uint32_t)wait_scaled_ms(SILENT_MS);
    redlock_config_t *config = NULL;
    live_pause(0, QUORUM);
    ck_assert_int_eq(redlock_config_new(&config, &allocator), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, cluster_urls(live.cluster)), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(config, timeout_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES - QUORUM, TIME_LIMIT_MS));
}

START_TEST(while_a_call_waits_for_nodes)
{
    struct caller caller = {.lock = NULL};
    connect_unready();
    for (unsigned i = 0; _i % 2 == 1 && i < STREAK; i++)
        CHECK_STATUS(redlock_wait_ready(live.client, 1), REDLOCK_ENOQUORUM);
    const unsigned before = atomic_load(&allocated);
    begin(&caller, wait_ready);
    ck_assert(WAIT_UNTIL(atomic_load(&allocated) > before, TIME_LIMIT_MS));
    leave(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
}
END_TEST

/* The servers confirm the release: that is no answer to the extension. */
START_TEST(an_extension_is_not_told_as_done)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(false);
    caller.lock = live_lock("ending", LONG_TTL_MS);
    live_pause(0, NODES);
    const uint64_t requests = live_node_stats(live.client, 0).requests;
    begin(&caller, extend);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).requests > requests, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_shutdown(live.client, 20), REDLOCK_ENOQUORUM);
    live_resume_all();
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    check_ended(&caller, REDLOCK_ECLOSED);
    ck_assert_int_eq(redlock_lock_check(caller.lock, 0), REDLOCK_ELOST);
    redlock_lock_free(caller.lock);
}
END_TEST

/* Extensions one after the other while the client is shut down: OK is only said of a lock that was
 * held when it was said. */
static int extend_on_and_on(struct caller *caller)
{
    for (;;) {
        const int status = redlock_extend(caller->lock, 0, NULL);
        if (status != REDLOCK_OK)
            return status;
    }
}

START_TEST(extensions_during_a_shutdown)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(false);
    caller.lock = live_lock("ending", LONG_TTL_MS);
    const uint64_t extended = live_stats(live.client).extended;
    begin(&caller, extend_on_and_on);
    ck_assert(WAIT_UNTIL(live_stats(live.client).extended > extended + 3, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(atomic_load(&caller.done), LATE_MS));
    pthread_join(caller.thread, NULL);
    ck_assert_msg(caller.status == REDLOCK_ECLOSED || caller.status == REDLOCK_ELOST, "%s",
                  redlock_error_name(caller.status));
    redlock_lock_free(caller.lock);
}
END_TEST

/* ---- the time of a call ends ---- */

static atomic_bool denied;

static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)userdata;
    if (event->kind == REDLOCK_EVENT_WAITING && event->status == REDLOCK_ECONTENDED)
        atomic_store(&denied, true);
}

static int acquire_for_a_while(struct caller *caller)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(400);
    return redlock_acquire(caller->client, "ending", &opts, &caller->lock, &caller->report);
}

/* Held by another, as all attempts but the last were told; the last was cut short. */
START_TEST(a_cut_attempt_keeps_the_cause)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(false);
    redlock_t *holder = live.client;
    redlock_lock_t *held = live_lock("ending", LONG_TTL_MS);
    atomic_store(&denied, false);
    live.event_fn = on_event;
    connect_and_prepare(false);
    begin(&caller, acquire_for_a_while);
    ck_assert(WAIT_UNTIL(atomic_load(&denied), TIME_LIMIT_MS));
    live_pause(0, NODES);
    check_ended(&caller, REDLOCK_ECONTENDED);
    ck_assert_ptr_null(caller.lock);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    ck_assert_int_eq(redlock_free(holder), REDLOCK_OK);
}
END_TEST

static Suite *ending_suite(void)
{
    Suite *suite = suite_create("live_calls_ended");
    live_add_each(suite, "acquire", while_a_call_waits_for_a_lock, 4);
    live_add_each(suite, "answers", while_a_call_waits_for_answers, 4);
    live_add_each(suite, "extend", while_a_call_extends, 4);
    live_add_each(suite, "wait_ready", while_a_call_waits_for_nodes, 16);
    live_add(suite, "release", an_extension_is_not_told_as_done);
    live_add_each(suite, "extensions", extensions_during_a_shutdown, 5);
    live_add(suite, "cut", a_cut_attempt_keeps_the_cause);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(ending_suite());
    live_stop_servers();
    return status;
}
