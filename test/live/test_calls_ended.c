/* SPDX-License-Identifier: MIT
 * Blocking calls of a client that ends: redlock_free() and redlock_shutdown() end them with
 * ECLOSED, and no operation is reported as successful. Also calls that end with their wait budget,
 * which report the cause of the wait.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_release() returns the status of one call and keeps
 * its report. live_pause(first, count) stops servers with SIGSTOP. live_voters() counts the
 * eligible nodes, live_responsive() the nodes that reply. WAIT_UNTIL(condition, ms) polls and
 * returns false after the deadline. wait_scaled_ms() stretches a time for slow builds.
 * CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STREAK          24 /* blocking calls in a row: more than a caller needs to turn the loop itself */
#define LATE_MS         6000 /* time limit for a call to return; scaled */
#define NODE_TIMEOUT_MS 8000 /* node timeout; scaled by live_config() */

/* A thread in a blocking call. */
struct caller {
    pthread_t thread;
    int (*call)(struct caller *caller);
    redlock_t *client;
    redlock_lock_t *lock;
    redlock_report_t *report;
    int status;
    atomic_bool done;
};

/* Thread function: makes the call of the struct caller and stores its status. */
static void *run(void *userdata)
{
    struct caller *caller = userdata;
    caller->status = caller->call(caller);
    atomic_store(&caller->done, true);
    return NULL;
}

/* Starts a thread that makes the call on live.client. */
static void begin(struct caller *caller, int (*call)(struct caller *caller))
{
    caller->call = call;
    caller->client = live.client;
    atomic_init(&caller->done, false);
    ck_assert_int_eq(pthread_create(&caller->thread, NULL, run, caller), 0);
}

/* Checks that the call returns soon with that status. Its report and its lock outlive the client.
 */
static void check_ended(struct caller *caller, int status)
{
    const bool in_time = WAIT_UNTIL(atomic_load(&caller->done), LATE_MS);
    live_resume_all();
    pthread_join(caller->thread, NULL);
    live_keep_report(caller->report);
    ck_assert_msg(in_time, "the call has not returned");
    CHECK_STATUS(caller->status, status);
    live_keep_report(NULL);
}

/* Call of a thread: acquires "ending" without a time limit. */
static int acquire(struct caller *caller)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    return redlock_acquire(caller->client, "ending", &opts, &caller->lock, &caller->report);
}

/* Call of a thread: extends its lock. */
static int extend(struct caller *caller)
{
    return redlock_extend(caller->lock, 0, &caller->report);
}

/* Call of a thread: waits without a time limit until the client is ready. */
static int wait_ready(struct caller *caller)
{
    return redlock_wait_ready(caller->client, REDLOCK_WAIT_FOREVER);
}

/* Creates a client. With `leads`, makes enough blocking calls that the next caller drives the loop.
 */
static void connect_and_prepare(bool leads)
{
    live.node_time_ms = NODE_TIMEOUT_MS;
    live_connect();
    for (unsigned i = 0; leads && i < STREAK; i++)
        CHECK_STATUS(redlock_inspect(live.client, "streak", NULL), REDLOCK_OK);
}

/* Ends live.client: by redlock_shutdown() with 20 ms, or by redlock_free(). */
static void end_client(bool shut_down)
{
    if (shut_down)
        redlock_shutdown(live.client, 20);
    else
        live_disconnect();
}

/* ---- the client ends. Bit 0 of _i: the caller drives the loop; bit 1: by a shutdown ---- */

/* A call that waits for another holder returns ECLOSED and no lock. _i: bit 0 makes the
 * caller drive the loop (see connect_and_prepare()), bit 1 chooses a shutdown instead of a free. */
START_TEST(a_waiting_acquire_ends_with_the_client)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(false);
    redlock_t *holder = live.client;
    redlock_lock_t *held = live_lock("ending", LONG_TTL_MS);
    connect_and_prepare(_i % 2 == 1);
    begin(&caller, acquire);
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts > 1, TIME_LIMIT_MS));
    end_client(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
    ck_assert_ptr_null(caller.lock);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    live_free(holder);
}
END_TEST

/* The same for a call whose servers do not reply. _i as above. */
START_TEST(an_acquire_without_replies_ends_with_the_client)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(_i % 2 == 1);
    live_pause(0, QUORUM);
    begin(&caller, acquire);
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == 1, TIME_LIMIT_MS));
    end_client(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
    ck_assert_ptr_null(caller.lock);
}
END_TEST

/* An extension whose servers do not reply returns ECLOSED, and the lock is lost. _i: bit 0 makes
 * the caller drive the loop (see connect_and_prepare()), bit 1 chooses a shutdown instead of a
 * free. */
START_TEST(an_extension_ends_with_the_client)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(_i % 2 == 1);
    caller.lock = live_lock("ending", LONG_TTL_MS);
    live_pause(0, QUORUM);
    const uint64_t requests = live_node_stats(live.client, 0).requests;
    begin(&caller, extend);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).requests > requests, TIME_LIMIT_MS));
    end_client(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
    ck_assert_int_eq(redlock_lock_check(caller.lock, 0), REDLOCK_ELOST);
    redlock_lock_free(caller.lock);
}
END_TEST

/* Number of allocations. They show that wait_ready has begun to wait, which no counter does. */
static atomic_uint allocated;

/* Allocator that counts its calls, so that a case sees that a call has begun. */
static void *count_malloc(size_t size, void *userdata)
{
    (void)userdata;
    atomic_fetch_add(&allocated, 1);
    return malloc(size);
}

/* The same for realloc(). */
static void *count_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    atomic_fetch_add(&allocated, 1);
    return realloc(ptr, size);
}

/* free() for this allocator; not counted. */
static void count_free(void *ptr, void *userdata)
{
    (void)userdata;
    free(ptr);
}

/* Creates a client while a majority of servers is stopped: it connects, but is never ready. */
static void connect_unready(void)
{
    const redlock_allocator_t allocator = {.size = sizeof allocator,
                                           .malloc_fn = count_malloc,
                                           .realloc_fn = count_realloc,
                                           .free_fn = count_free};
    const uint32_t timeout_ms = (uint32_t)wait_scaled_ms(NODE_TIMEOUT_MS);
    redlock_config_t *config = NULL;
    live_pause(0, QUORUM);
    ck_assert_int_eq(redlock_config_new(&config, &allocator), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, cluster_urls(live.cluster)), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(config, timeout_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES - QUORUM, TIME_LIMIT_MS));
}

/* A call of redlock_wait_ready() returns ECLOSED. _i: bit 0 adds STREAK short calls before it,
 * bit 1 chooses a shutdown instead of a free. */
START_TEST(wait_ready_ends_with_the_client)
{
    struct caller caller = {.lock = NULL};
    connect_unready();
    for (unsigned i = 0; _i % 2 == 1 && i < STREAK; i++)
        CHECK_STATUS(redlock_wait_ready(live.client, 1), REDLOCK_ENOQUORUM);
    const unsigned before = atomic_load(&allocated);
    begin(&caller, wait_ready);
    ck_assert(WAIT_UNTIL(atomic_load(&allocated) > before, TIME_LIMIT_MS));
    end_client(_i % 4 >= 2);
    check_ended(&caller, REDLOCK_ECLOSED);
}
END_TEST

/* The servers confirm the release by the shutdown, which must not count for the extension. */
START_TEST(an_extension_fails_although_servers_reply)
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

/* Extends the lock again and again, and returns the status of the first failure. */
static int extend_until_failure(struct caller *caller)
{
    for (;;) {
        const int status = redlock_extend(caller->lock, 0, NULL);
        if (status != REDLOCK_OK)
            return status;
    }
}

/* The client is shut down while a thread extends: no extension succeeds after the lock has ended.
 */
START_TEST(extensions_fail_during_a_shutdown)
{
    struct caller caller = {.lock = NULL};
    connect_and_prepare(false);
    caller.lock = live_lock("ending", LONG_TTL_MS);
    const uint64_t extended = live_stats(live.client).extended;
    begin(&caller, extend_until_failure);
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

static atomic_bool denied; /* an attempt was denied */

/* Event function that notes the first WAITING event after a denial. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl, (void)userdata;
    if (event->kind == REDLOCK_EVENT_WAITING && event->status == REDLOCK_ECONTENDED)
        atomic_store(&denied, true);
}

/* Call of a thread: acquires "ending" with a wait budget of 400 ms (scaled). */
static int acquire_for_a_while(struct caller *caller)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(400);
    return redlock_acquire(caller->client, "ending", &opts, &caller->lock, &caller->report);
}

/* All attempts but the last were denied; the end of the wait budget cuts the last one short. */
START_TEST(a_cut_attempt_keeps_the_cause_of_the_wait)
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
    live_free(holder);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *ending_suite(void)
{
    Suite *suite = suite_create("live_calls_ended");
    live_add_each(suite, "acquire", a_waiting_acquire_ends_with_the_client, 4);
    live_add_each(suite, "answers", an_acquire_without_replies_ends_with_the_client, 4);
    live_add_each(suite, "extend", an_extension_ends_with_the_client, 4);
    live_add_each(suite, "wait_ready", wait_ready_ends_with_the_client, 16);
    live_add(suite, "release", an_extension_fails_although_servers_reply);
    live_add_each(suite, "extensions", extensions_fail_during_a_shutdown, 5);
    live_add(suite, "cut", a_cut_attempt_keeps_the_cause_of_the_wait);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(ending_suite());
    live_stop_servers();
    return status;
}
