/* SPDX-License-Identifier: MIT
 * A fork with operations in flight: the child frees all handles, and no block of memory and no
 * descriptor of the client is left there. The parent is not affected.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client from a
 * configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_pause(first, count) stops servers with SIGSTOP. live_voters() counts the eligible nodes,
 * live_responsive() the nodes that reply. LOOP_UNTIL() turns the loop of a client until a
 * condition holds or the deadline has passed. WAIT_UNTIL(condition, ms) polls and returns false
 * after the deadline. wait_scaled_ms() stretches a time for slow builds. LONG_TTL_MS is a TTL that
 * no case reaches. */
#include "live.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES     5    /* forks before a remainder in the child is an error */
#define SILENT_MS 3000 /* node timeout; scaled by live_config() */

static atomic_int blocks; /* that the client has allocated and not freed */

/* Allocator that counts the blocks in use. */
static void *count_malloc(size_t size, void *userdata)
{
    void *block = malloc(size);
    (void)userdata;
    atomic_fetch_add(&blocks, block != NULL);
    return block;
}

/* The same for realloc(); only a call with NULL adds a block. */
static void *count_realloc(void *old, size_t size, void *userdata)
{
    void *block = realloc(old, size);
    (void)userdata;
    atomic_fetch_add(&blocks, block != NULL && old == NULL);
    return block;
}

/* The same for free(). */
static void count_free(void *block, void *userdata)
{
    (void)userdata;
    atomic_fetch_sub(&blocks, block != NULL);
    free(block);
}

/* Creates a client with the counting allocator. */
static void connect_counted(int mode)
{
    const redlock_allocator_t allocator = {.size = sizeof allocator,
                                           .malloc_fn = count_malloc,
                                           .realloc_fn = count_realloc,
                                           .free_fn = count_free};
    const uint32_t timeout_ms = (uint32_t)wait_scaled_ms(SILENT_MS);
    redlock_config_t *config = NULL;
    atomic_store(&blocks, 0);
    live.mode = mode;
    ck_assert_int_eq(redlock_config_new(&config, &allocator), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, cluster_urls(live.cluster)), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, timeout_ms), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_mode(config, mode), REDLOCK_OK);
    live.client = live_open(config);
}

/* The handles and operations of the case. */
static struct {
    atomic_int done;     /* callbacks that have run */
    atomic_int acquired; /* status of the blocking call; 1: it has not returned */
    redlock_lock_t *held, *other;
    redlock_cancel_t *cancel;
    pthread_t thread;
} all;

/* Callback of all operations: counts it, and stores the lock in *userdata if that is not NULL. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl, (void)status, (void)report;
    if (userdata != NULL)
        *(redlock_lock_t **)userdata = lock;
    atomic_fetch_add(&all.done, 1);
}

/* Starts an acquisition with the cancel object of the case. Its callback stores the lock in
 * *ret_lock. */
static void start_acquire(const char *resource, redlock_lock_t **ret_lock)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    opts.cancel = all.cancel;
    ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, on_done, ret_lock),
                     REDLOCK_OK);
}

/* Acquires the lock all.held. */
static void hold_first(void)
{
    ck_assert_int_eq(redlock_cancel_new(&all.cancel, live.client), REDLOCK_OK);
    start_acquire("fork-held", &all.held);
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&all.done) == 1, TIME_LIMIT_MS));
    ck_assert_ptr_nonnull(all.held);
}

/* Acquires a lock, stops the servers, and starts one operation of each kind. */
static void start_everything(int mode)
{
    memset(&all, 0, sizeof all);
    connect_counted(mode);
    hold_first();
    live_pause(0, NODES);
    start_acquire("fork-other", &all.other);
    ck_assert_int_eq(redlock_extend_start(all.held, 0, on_done, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_inspect_start(live.client, "fork-held", NULL, on_done, NULL),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_break_start(live.client, "fork-none", all.cancel, on_done, NULL),
                     REDLOCK_OK);
    ck_assert_int_eq(
        redlock_release_token_start(live.client, "fork-none", "token", NULL, on_done, NULL),
        REDLOCK_OK);
    if (mode == REDLOCK_MODE_EMBEDDED)
        ck_assert_int_eq(redlock_process(live.client), REDLOCK_OK);
}

/* Frees all handles in the child. Returns 0, or the number of the check that failed, because a
 * failed assertion would return into the parent's test. */
static int free_all_in_child(void)
{
    if (redlock_lock_check(all.held, 0) != REDLOCK_EFORKED)
        return 2;
    if (redlock_acquire_start(live.client, "child", NULL, on_done, NULL) != REDLOCK_EFORKED)
        return 3;
    redlock_lock_free(all.held);
    redlock_cancel_free(all.cancel);
    if (redlock_free(live.client) != REDLOCK_OK)
        return 4;
    if (atomic_load(&all.done) != 1)
        return 5;
    const char *leaked = fdcheck_leaked(&live.before, 0);
    if (leaked != NULL) {
        fprintf(stderr, "left in the child: %s\n", leaked);
        return 6;
    }
    return atomic_load(&blocks) == 0 ? 0 : 7;
}

/* Forks; the child runs free_all_in_child() and exits with its result. Returns the wait status. */
static int run_child(void)
{
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(free_all_in_child());
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* Checks that a child leaves neither memory nor descriptors. If the client's own thread holds the
 * client's mutex at the moment of the fork, the child can only close descriptors, and misses one
 * that this thread is just opening. That is rare, so only a remainder in each of several tries is
 * an error. */
static void check_child(void)
{
    int status = run_child();
    for (unsigned tries = 1; tries < TRIES && WIFEXITED(status) && WEXITSTATUS(status) >= 6;
         tries++)
        status = run_child();
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "child: status 0x%x (6: descriptors, 7: memory)", (unsigned)status);
}

/* Ends the operations in the parent, and checks that they succeed and that all memory is freed. */
static void free_all_in_parent(int operations)
{
    live_resume_all();
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&all.done) == operations, TIME_LIMIT_MS));
    ck_assert_ptr_nonnull(all.other);
    ck_assert_int_eq(redlock_lock_check(all.held, 1), REDLOCK_OK);
    redlock_lock_free(all.held);
    redlock_lock_free(all.other);
    redlock_cancel_free(all.cancel);
    live_disconnect();
    ck_assert_int_eq(atomic_load(&blocks), 0);
}

/* The mode of the client, by _i. */
static const int MODES[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};

/* A child that frees everything while operations are in flight leaves no block and no
 * descriptor, and the parent's operations end as usual. _i selects the mode. */
START_TEST(a_child_frees_operations_in_flight)
{
    start_everything(MODES[_i]);
    check_child();
    free_all_in_parent(6);
}
END_TEST

/* The break has inspected the keys, and its deletes are in flight. */
START_TEST(a_child_frees_half_a_break)
{
    memset(&all, 0, sizeof all);
    connect_counted(REDLOCK_MODE_EMBEDDED);
    hold_first();
    cluster_command_all(live.cluster, "SET fork-broken value");
    const uint64_t requests = live_node_stats(live.client, 0).requests;
    ck_assert_int_eq(redlock_break_start(live.client, "fork-broken", all.cancel, on_done, NULL),
                     REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, live_node_stats(live.client, 0).requests == requests + 3,
                         TIME_LIMIT_MS)); /* GET, PTTL, delete */
    check_child();
    ck_assert(LOOP_UNTIL(live.client, atomic_load(&all.done) == 2, TIME_LIMIT_MS));
    start_acquire("fork-other", &all.other);
    free_all_in_parent(3);
}
END_TEST

/* Two waits for readiness: one is pending, and the callback of the other one has not run. */
START_TEST(a_child_frees_waits_for_readiness)
{
    memset(&all, 0, sizeof all);
    connect_counted(REDLOCK_MODE_HYBRID);
    hold_first();
    ck_assert_int_eq(redlock_wait_ready_start(live.client, 0, all.cancel, on_done, NULL),
                     REDLOCK_OK);
    for (unsigned i = 0; i < QUORUM; i++)
        cluster_kill(live.cluster, i);
    ck_assert(WAIT_UNTIL(live_voters(live.client) < QUORUM, TIME_LIMIT_MS));
    ck_assert_int_eq(
        redlock_wait_ready_start(live.client, TIME_LIMIT_MS, all.cancel, on_done, NULL),
        REDLOCK_OK);
    check_child();
    redlock_lock_free(all.held);
    redlock_cancel_free(all.cancel);
    live_disconnect();
    ck_assert_int_eq(atomic_load(&all.done), 3);
    ck_assert_int_eq(atomic_load(&blocks), 0);
}
END_TEST

/* A callback that is pending at the fork does not run in the child. */
START_TEST(a_child_frees_pending_callbacks)
{
    start_everything(REDLOCK_MODE_HYBRID);
    live_resume_all();
    ck_assert(WAIT_UNTIL(live_stats(live.client).held == 2, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).extended == 1, TIME_LIMIT_MS));
    check_child();
    free_all_in_parent(6);
}
END_TEST

/* Thread function: acquires "fork-thread" with a blocking call. */
static void *acquire(void *userdata)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    atomic_store(&all.acquired, redlock_acquire(live.client, "fork-thread", &opts, userdata, NULL));
    return NULL;
}

/* A thread in a blocking call does not exist in the child. */
START_TEST(a_child_frees_beside_a_blocking_call)
{
    redlock_lock_t *lock = NULL;
    start_everything(MODES[_i]);
    atomic_store(&all.acquired, 1);
    const uint64_t waiting = live_stats(live.client).waiting;
    ck_assert_int_eq(pthread_create(&all.thread, NULL, acquire, &lock), 0);
    ck_assert(WAIT_UNTIL(live_stats(live.client).waiting == waiting + 1, TIME_LIMIT_MS));
    check_child();
    live_resume_all();
    pthread_join(all.thread, NULL);
    ck_assert_int_eq(atomic_load(&all.acquired), REDLOCK_OK);
    redlock_lock_free(lock);
    free_all_in_parent(6);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *fork_suite(void)
{
    Suite *suite = suite_create("fork_memory");
    live_add_each(suite, "in flight", a_child_frees_operations_in_flight, 3);
    live_add(suite, "break", a_child_frees_half_a_break);
    live_add(suite, "nodes", a_child_frees_waits_for_readiness);
    live_add(suite, "callbacks", a_child_frees_pending_callbacks);
    live_add(suite, "blocking", a_child_frees_beside_a_blocking_call);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(fork_suite());
    live_stop_servers();
    return status;
}
