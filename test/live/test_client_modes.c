/* SPDX-License-Identifier: MIT
 * Threaded, embedded and hybrid mode: the thread that runs the callbacks, the calls that may block,
 * the calls that are refused, and that a stalled loop loses no lock in hybrid mode.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_extend()
 * and live_release() return the status of one call and keep its report, which live_text() reads.
 * live_check_works() acquires, extends and releases a lock, which must succeed. live_pause(first,
 * count) stops servers with SIGSTOP. LOOP_UNTIL() turns the loop of a client until a condition
 * holds or the deadline has passed. live_turn() turns a client's loop once. WAIT_UNTIL(condition,
 * ms) polls and returns false after the deadline. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_event() copies each event
 * into its userdata: client_events or lock_events. note_done() stores the result of an
 * asynchronous call in a struct outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <poll.h>
#include <stdatomic.h>

#define THREADS 8  /* of one client, all at once */
#define ROUNDS  30 /* locks that each thread acquires */

/* A thread that acquires and releases a lock again and again. */
struct worker {
    pthread_t thread;
    const char *resource;
    atomic_uint *counter; /* read, then written: a lost update shows two holders */
    unsigned failed;      /* calls that failed */
};

/* Thread function: acquires, extends and releases the worker's resource ROUNDS times. Adds 1 to
 * the counter while it holds the lock, in two steps, so that two holders at once lose counts. */
static void *work(void *userdata)
{
    struct worker *worker = userdata;
    for (unsigned i = 0; i < ROUNDS; i++) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        redlock_lock_t *lock = NULL;
        opts.wait_ms = REDLOCK_WAIT_FOREVER;
        if (redlock_acquire(live.client, worker->resource, &opts, &lock, NULL) != REDLOCK_OK) {
            worker->failed++;
            continue;
        }
        const unsigned count = atomic_load(worker->counter);
        worker->failed += redlock_extend(lock, 0, NULL) != REDLOCK_OK;
        atomic_store(worker->counter, count + 1);
        worker->failed += redlock_release(lock, NULL) != REDLOCK_OK;
        redlock_lock_free(lock);
    }
    return NULL;
}

/* Runs all threads on one resource, or each on its own, and checks the counters. */
static void run_workers(bool same)
{
    static const char *const names[THREADS] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    struct worker workers[THREADS];
    atomic_uint counters[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        atomic_init(&counters[i], 0);
        workers[i] =
            (struct worker){.resource = names[same ? 0 : i], .counter = &counters[same ? 0 : i]};
    }
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].failed, 0);
    }
    for (unsigned i = 0; i < (same ? 1 : THREADS); i++)
        ck_assert_uint_eq(atomic_load(&counters[i]), same ? THREADS * ROUNDS : ROUNDS);
}

/* _i: threaded, hybrid. */
static void connect_blocking(int index)
{
    live.mode = index == 0 ? REDLOCK_MODE_THREADED : REDLOCK_MODE_HYBRID;
    live_connect();
}

/* Threads that share one client and one resource: no count is lost. _i selects the mode. */
START_TEST(threads_on_one_resource_exclude_each_other)
{
    connect_blocking(_i);
    run_workers(true);
}
END_TEST

/* Threads with a resource each: all acquisitions succeed at once, and none meets contention. _i
 * selects the mode. */
START_TEST(threads_on_different_resources_do_not_contend)
{
    connect_blocking(_i);
    run_workers(false);
    ck_assert_uint_eq(live_stats(live.client).contended, 0);
    ck_assert_uint_eq(live_stats(live.client).acquired, THREADS * ROUNDS);
}
END_TEST

/* A chain of operations, each started by the callback of the one before. */
struct chain {
    unsigned left, released; /* locks to acquire, locks released */
    unsigned depth;          /* callbacks that run now */
    bool inside_start;       /* a call that starts an operation runs now */
    bool broken;             /* a check has failed */
    pthread_t thread;        /* on which all callbacks must run */
};

static void start_next(redlock_t *rl, struct chain *chain);

/* Notes an error if this callback runs inside of another one or on another thread. */
static void chain_check(struct chain *chain, int status)
{
    if (status != REDLOCK_OK || chain->inside_start || chain->depth != 0 ||
        !pthread_equal(chain->thread, pthread_self()))
        chain->broken = true;
}

/* Callback of a release in the chain: starts the next acquisition from within this callback. */
static void chain_released(redlock_t *rl, int status, redlock_lock_t *lock,
                           const redlock_report_t *report, void *userdata)
{
    struct chain *chain = userdata;
    (void)report;
    chain_check(chain, status);
    chain->depth++;
    chain->released++;
    redlock_lock_free(lock);
    start_next(rl, chain);
    chain->depth--;
}

/* Callback of an acquisition in the chain: starts the release from within this callback. */
static void chain_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                           const redlock_report_t *report, void *userdata)
{
    struct chain *chain = userdata;
    (void)rl;
    (void)report;
    chain_check(chain, status);
    chain->depth++;
    chain->inside_start = true;
    if (status == REDLOCK_OK && redlock_release_start(lock, chain_released, chain) != REDLOCK_OK)
        chain->broken = true;
    chain->inside_start = false;
    chain->depth--;
}

/* Starts the next acquisition of the chain, unless none is left. Sets inside_start meanwhile,
 * because no callback may run before the starting call has returned. */
static void start_next(redlock_t *rl, struct chain *chain)
{
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    if (chain->left == 0)
        return;
    chain->left--;
    chain->inside_start = true;
    if (redlock_acquire_start(rl, "chain", &opts, chain_acquired, chain) != REDLOCK_OK)
        chain->broken = true;
    chain->inside_start = false;
}

/* In embedded and hybrid mode, each callback runs exactly once, in redlock_process(), and never
 * inside of the call that starts the operation or of another callback. */
START_TEST(callbacks_run_in_the_callers_loop)
{
    struct chain chain = {.left = 40, .thread = pthread_self()};
    live.mode = _i == 0 ? REDLOCK_MODE_EMBEDDED : REDLOCK_MODE_HYBRID;
    live_connect();
    const int fd = redlock_get_fd(live.client);
    ck_assert_int_ge(fd, 0);
    start_next(live.client, &chain);
    ck_assert_uint_eq(chain.released, 0);
    ck_assert(LOOP_UNTIL(live.client, chain.released == 40 || chain.broken, TIME_LIMIT_MS));
    ck_assert(!chain.broken);
    ck_assert_uint_eq(chain.left, 0);
    ck_assert_int_eq(redlock_get_fd(live.client), fd);
    for (unsigned i = 0; i < 20; i++)
        live_turn(live.client, 1);
    ck_assert_uint_eq(chain.released, 40);
}
END_TEST

/* Returns whether the client's descriptor is readable. */
static bool has_something_to_do(void)
{
    struct pollfd ready = {.fd = redlock_get_fd(live.client), .events = POLLIN};
    return poll(&ready, 1, 0) != 0;
}

/* Returns whether the descriptor is not readable before and after calls that only read. Otherwise
 * turns the loop for the next try. */
static bool is_idle_after_reads(redlock_lock_t *lock)
{
    if (has_something_to_do()) {
        live_turn(live.client, 0);
        return false;
    }
    live_stats(live.client);
    live_node_stats(live.client, 0);
    ck_assert_int_eq(redlock_lock_retain(lock), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    return !has_something_to_do();
}

/* Otherwise a loop that reads statistics in each turn would never sleep. */
START_TEST(reading_statistics_does_not_wake_the_loop)
{
    struct outcome outcome = OUTCOME;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live.mode = _i == 0 ? REDLOCK_MODE_EMBEDDED : REDLOCK_MODE_HYBRID;
    live_connect();
    ck_assert_int_eq(redlock_acquire_start(live.client, "held", &opts, note_done, &outcome),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(is_idle_after_reads(outcome.lock), TIME_LIMIT_MS));
    redlock_lock_free(outcome.lock);
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* redlock_process() returns at once while three servers are stopped; the acquisition ends when
 * they continue. */
START_TEST(process_does_not_wait_for_servers)
{
    struct outcome outcome = OUTCOME;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live.mode = REDLOCK_MODE_EMBEDDED;
    live.node_time_ms = 20000; /* a turn that waited for a server would take that long */
    live_connect();
    live_pause(0, 3);
    ck_assert_int_eq(redlock_acquire_start(live.client, "slow", &opts, note_done, &outcome),
                     REDLOCK_OK);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
    ck_assert_uint_eq(outcome_calls(&outcome), 0);
    live_resume_all();
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    redlock_lock_free(outcome.lock);
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* In hybrid mode the library's thread extends locks while the caller's loop is stalled. */
START_TEST(a_stalled_loop_loses_no_lock)
{
    const uint64_t ttl_ms = live_brief_ms(1000);
    redlock_lock_t *lock = NULL;
    events_reset();
    live.mode = REDLOCK_MODE_HYBRID;
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    live_connect();
    ck_assert(LOOP_UNTIL(live.client, count_events(&client_events, REDLOCK_EVENT_NODE_UP) == NODES,
                         TIME_LIMIT_MS));
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = ttl_ms - live_brief_ms(150); /* soon after each extension */
    CHECK_STATUS(redlock_acquire(live.client, "stalled", &opts, &lock, NULL), REDLOCK_OK);
    const uint64_t end_ms = wait_now_ms() + 5 * ttl_ms / 2;
    ck_assert(WAIT_UNTIL(wait_now_ms() >= end_ms || redlock_lock_check(lock, 0) != REDLOCK_OK,
                         TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_uint_ge(live_stats(live.client).extended, 4);
    ck_assert_uint_ge(live_nodes_with("stalled"), QUORUM);
    /* No callback ran while the loop was stalled; now they run on this thread. */
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_EXTENDED), 0);
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_ACQUIRED), 0);
    ck_assert(LOOP_UNTIL(live.client, count_events(&client_events, REDLOCK_EVENT_EXTENDED) > 0,
                         TIME_LIMIT_MS));
    ck_assert(pthread_equal(find_event(&client_events, REDLOCK_EVENT_EXTENDED, 0).thread,
                            pthread_self()));
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_ACQUIRED), 1);
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_LOST), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A thread that runs the client's loop until *stop. */
struct loop {
    pthread_t thread;
    atomic_bool *stop;
};

/* Thread function: turns the loop of live.client until `stop`. */
static void *run_loop(void *userdata)
{
    struct loop *loop = userdata;
    while (!atomic_load(loop->stop))
        live_turn(live.client, 5);
    return NULL;
}

/* In hybrid mode several threads may call redlock_process(). Each callback runs once. */
START_TEST(several_threads_may_process)
{
    enum { OPERATIONS = 100 };
    static struct outcome outcome[OPERATIONS];
    struct loop loops[3];
    atomic_bool stop = false;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live.mode = REDLOCK_MODE_HYBRID;
    live_connect();
    for (unsigned i = 0; i < 3; i++) {
        loops[i].stop = &stop;
        ck_assert_int_eq(pthread_create(&loops[i].thread, NULL, run_loop, &loops[i]), 0);
    }
    for (unsigned i = 0; i < OPERATIONS; i++) {
        outcome[i] = (struct outcome)OUTCOME;
        ck_assert_int_eq(redlock_acquire_start(live.client, "many", &opts, note_done, &outcome[i]),
                         REDLOCK_OK);
    }
    unsigned granted = 0;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        ck_assert(WAIT_UNTIL(outcome_calls(&outcome[i]) > 0, TIME_LIMIT_MS));
        granted += outcome[i].status == REDLOCK_OK;
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(loops[i].thread, NULL);
    ck_assert_uint_le(granted, 1);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        ck_assert_uint_eq(outcome_calls(&outcome[i]), 1);
        redlock_lock_free(outcome[i].lock);
    }
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Body for redlock_with() in calls that are refused, so that it never runs. */
static int unused_body(redlock_lock_t *lock, void *userdata)
{
    (void)lock;
    (void)userdata;
    return 0;
}

/* Checks that each blocking call fails with `expected`, and that the lock stays held. */
static void check_blocking_calls(int expected, redlock_lock_t *lock)
{
    redlock_t *rl = live.client;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *none = NULL;
    redlock_report_t *report = NULL;
    const char *token = redlock_lock_token(lock);
    CHECK_STATUS(redlock_acquire(rl, "a", &opts, &none, &report), expected);
    CHECK_STATUS(redlock_adopt(rl, "a", token, &opts, &none, &report), expected);
    CHECK_STATUS(redlock_extend(lock, 0, &report), expected);
    CHECK_STATUS(redlock_release(lock, &report), expected);
    CHECK_STATUS(redlock_release_after(lock, 10, &report), expected);
    CHECK_STATUS(redlock_release_token(rl, "a", token, &report), expected);
    CHECK_STATUS(redlock_verify(lock, &report), expected);
    CHECK_STATUS(redlock_inspect(rl, "a", &report), expected);
    CHECK_STATUS(redlock_break(rl, "a", &report), expected);
    CHECK_STATUS(redlock_wait_ready(rl, 0), expected);
    CHECK_STATUS(redlock_shutdown(rl, 0), expected);
    CHECK_STATUS(redlock_with(rl, "a", &opts, NULL, &report, unused_body, NULL), expected);
    ck_assert_ptr_null(none);
    ck_assert_str_eq(redlock_report_text(report), redlock_strerror(expected));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
}

/* In embedded mode every blocking call returns EMODE. */
START_TEST(embedded_mode_refuses_to_block)
{
    struct outcome outcome = OUTCOME;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live.mode = REDLOCK_MODE_EMBEDDED;
    live_connect();
    ck_assert_int_eq(redlock_acquire_start(live.client, "held", &opts, note_done, &outcome),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    check_blocking_calls(REDLOCK_EMODE, outcome.lock);
    redlock_lock_free(outcome.lock);
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* In threaded mode, redlock_get_fd() and redlock_process() return EMODE. */
START_TEST(threaded_mode_has_no_descriptor_to_poll)
{
    live_connect();
    ck_assert_int_eq(redlock_get_fd(live.client), REDLOCK_EMODE);
    ck_assert_int_eq(redlock_process(live.client), REDLOCK_EMODE);
}
END_TEST

/* Results of calls that were made inside of a callback. */
struct inner {
    struct outcome outcome;
    int free_status, process_status;
};

/* Callback that makes blocking calls, which must return EDEADLK, and stores what redlock_free()
 * and redlock_process() return. */
static void block_inside(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    struct inner *inner = userdata;
    if (status == REDLOCK_OK)
        check_blocking_calls(REDLOCK_EDEADLK, lock);
    inner->free_status = redlock_free(rl);
    inner->process_status = redlock_process(rl);
    note_done(rl, status, lock, report, &inner->outcome);
}

/* A blocking call in a callback fails with EDEADLK. */
START_TEST(callbacks_refuse_to_block)
{
    struct inner inner = {.outcome = OUTCOME};
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    connect_blocking(_i);
    ck_assert_int_eq(redlock_acquire_start(live.client, "inner", &opts, block_inside, &inner),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &inner.outcome), REDLOCK_OK);
    CHECK_STATUS(inner.free_status, REDLOCK_EDEADLK);
    CHECK_STATUS(inner.process_status, _i == 0 ? REDLOCK_EMODE : REDLOCK_EDEADLK);
    CHECK_STATUS(live_release(inner.outcome.lock), REDLOCK_OK);
    live_check_works();
}
END_TEST

/* While an extension waits for stopped servers, every other operation on the lock returns EBUSY,
 * and the lock stays held. */
START_TEST(one_operation_on_a_lock_at_a_time)
{
    struct outcome outcome = OUTCOME;
    live.node_time_ms = 2000;
    live_connect();
    redlock_lock_t *lock = live_lock("busy", LONG_TTL_MS);
    live_pause(0, 3);
    ck_assert_int_eq(redlock_extend_start(lock, 0, note_done, &outcome), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_EBUSY);
    ck_assert_str_ne(live_text(), "no report");
    CHECK_STATUS(redlock_extend_start(lock, 0, note_done, &outcome), REDLOCK_EBUSY);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_EBUSY);
    CHECK_STATUS(redlock_release_after(lock, 10, NULL), REDLOCK_EBUSY);
    CHECK_STATUS(redlock_release_start(lock, NULL, NULL), REDLOCK_EBUSY);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_EBUSY);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    live_resume_all();
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *modes_suite(void)
{
    Suite *suite = suite_create("live_client_modes");
    live_add_each(suite, "one resource", threads_on_one_resource_exclude_each_other, 2);
    live_add_each(suite, "own resources", threads_on_different_resources_do_not_contend, 2);
    live_add_each(suite, "callbacks", callbacks_run_in_the_callers_loop, 2);
    live_add_each(suite, "looks", reading_statistics_does_not_wake_the_loop, 2);
    live_add(suite, "process", process_does_not_wait_for_servers);
    live_add(suite, "several loops", several_threads_may_process);
    live_add(suite, "hybrid", a_stalled_loop_loses_no_lock);
    live_add(suite, "EMODE embedded", embedded_mode_refuses_to_block);
    live_add(suite, "EMODE threaded", threaded_mode_has_no_descriptor_to_poll);
    live_add_each(suite, "EDEADLK", callbacks_refuse_to_block, 2);
    live_add(suite, "EBUSY", one_operation_on_a_lock_at_a_time);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(modes_suite());
    live_stop_servers();
    return status;
}
