/* SPDX-License-Identifier: MIT
 * Start and end of a client: readiness, shutdown, free with operations in flight, objects that
 * outlive it, and that all memory is freed.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_acquire(), live_extend(), live_release() and
 * live_inspect() return the status of one call and keep its report, which live_info() and
 * live_node() read. live_check_works() acquires, extends and releases a lock, which must succeed.
 * live_pause(first, count) stops servers with SIGSTOP. live_voters() counts the eligible nodes,
 * live_responsive() the nodes that reply. LOOP_UNTIL() turns the loop of a client until a
 * condition holds or the deadline has passed. live_turn() turns a client's loop once.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. From live_events.h: note_done() stores the result of an asynchronous call in a
 * struct outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LATE_MS 5000 /* how late a call may return after its time limit; scaled */

/* _i: threaded, embedded, hybrid. */
static void connect_in_mode(int index)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    live.mode = modes[index];
    live_connect();
}

/* Acquires a lock, which must be granted, in the mode of the client. */
static redlock_lock_t *lock_in_mode(const char *resource)
{
    struct outcome outcome = OUTCOME;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, note_done, &outcome),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    return outcome.lock;
}

/* Creates a client without waiting until it is ready. */
static redlock_t *new_client(void)
{
    redlock_config_t *config = live_config();
    redlock_t *client = NULL;
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    return client;
}

/* redlock_wait_ready() succeeds with all servers, and with two of five stopped. */
START_TEST(ready_when_a_majority_is)
{
    live.client = new_client();
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert_uint_ge(live_voters(live.client), QUORUM);
    live_disconnect();
    live_pause(0, 2);
    live.client = new_client();
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert_int_eq(redlock_wait_ready(live.client, 0), REDLOCK_OK);
}
END_TEST

/* With three of five servers stopped, redlock_wait_ready() returns ENOQUORUM when its budget has
 * passed, neither much earlier nor later, and succeeds when the servers continue. */
START_TEST(not_ready_without_a_majority)
{
    live.connect_time_ms = 20000; /* so long that it does not end the wait */
    live_pause(0, 3);
    live.client = new_client();
    ck_assert_int_eq(redlock_wait_ready(live.client, 0), REDLOCK_ENOQUORUM);
    const uint64_t from_ms = wait_now_ms(), budget_ms = wait_scaled_ms(150);
    ck_assert_int_eq(redlock_wait_ready(live.client, budget_ms), REDLOCK_ENOQUORUM);
    const uint64_t waited_ms = wait_now_ms() - from_ms;
    ck_assert_msg(waited_ms + 5 >= budget_ms && waited_ms < budget_ms + wait_scaled_ms(LATE_MS),
                  "%d ms", (int)waited_ms);
    live_resume_all();
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    live_check_works();
}
END_TEST

/* Checks that all calls fail with ECLOSED after a shutdown. */
static void check_calls_are_refused(void)
{
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    struct outcome outcome = OUTCOME;
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    if (live.mode != REDLOCK_MODE_EMBEDDED) {
        CHECK_STATUS(redlock_acquire(live.client, "closed", &opts, &lock, &report),
                     REDLOCK_ECLOSED);
        redlock_report_free(report);
        CHECK_STATUS(redlock_inspect(live.client, "closed", NULL), REDLOCK_ECLOSED);
        CHECK_STATUS(redlock_break(live.client, "closed", NULL), REDLOCK_ECLOSED);
        CHECK_STATUS(redlock_wait_ready(live.client, 100), REDLOCK_ECLOSED);
    }
    CHECK_STATUS(redlock_acquire_start(live.client, "closed", &opts, note_done, &outcome),
                 REDLOCK_ECLOSED);
    ck_assert_uint_eq(outcome_calls(&outcome), 0);
}

/* Held locks are released, waiting calls end, nothing new begins. */
START_TEST(shutdown_releases_and_closes)
{
    struct outcome waiting = OUTCOME, shut = OUTCOME;
    connect_in_mode(_i);
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *first = lock_in_mode("first"), *second = lock_in_mode("second");
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_acquire_start(live.client, "first", &opts, note_done, &waiting),
                     REDLOCK_OK);
    ck_assert_int_eq(
        redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), note_done, &shut),
        REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &shut), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &waiting), REDLOCK_ECLOSED);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(cluster_count_keys(live.cluster, i), 0);
    ck_assert_int_eq(redlock_lock_check(first, 0), REDLOCK_ELOST);
    ck_assert_int_eq(redlock_lock_check(second, 0), REDLOCK_ELOST);
    check_calls_are_refused();
    redlock_lock_free(first);
    redlock_lock_free(second);
}
END_TEST

/* An extension that is in flight when the shutdown begins must not succeed. */
START_TEST(shutdown_ends_an_extension)
{
    struct outcome extended = OUTCOME, shut = OUTCOME;
    live.node_time_ms = 2000;
    connect_in_mode(_i);
    redlock_lock_t *lock = lock_in_mode("extended");
    ck_assert(LOOP_UNTIL(live.client, live_nodes_with("extended") == NODES, TIME_LIMIT_MS));
    live_pause(0, 3);
    ck_assert_int_eq(redlock_extend_start(lock, 0, note_done, &extended), REDLOCK_OK);
    live_turn(live.client, 0);
    ck_assert_int_eq(
        redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), note_done, &shut),
        REDLOCK_OK);
    live_resume_all();
    CHECK_STATUS(outcome_wait(live.client, &shut), REDLOCK_OK);
    const int status = outcome_wait(live.client, &extended);
    ck_assert_msg(status == REDLOCK_ECLOSED || status == REDLOCK_ECANCELED, "%s",
                  redlock_error_name(status));
    redlock_lock_free(lock);
}
END_TEST

/* A client that is freed during its shutdown ends the shutdown as one whose time is over: keys may
 * be left. */
START_TEST(freeing_ends_a_shutdown)
{
    struct outcome shut = OUTCOME;
    live.node_time_ms = 20000;
    connect_in_mode(_i);
    redlock_lock_t *lock = lock_in_mode("freed");
    ck_assert(LOOP_UNTIL(live.client, live_nodes_with("freed") == NODES, TIME_LIMIT_MS));
    live_pause(0, 3);
    ck_assert_int_eq(
        redlock_shutdown_start(live.client, wait_scaled_ms(TIME_LIMIT_MS), note_done, &shut),
        REDLOCK_OK);
    ck_assert_int_eq(redlock_free(live.client), REDLOCK_OK);
    live.client = NULL;
    ck_assert_uint_eq(outcome_calls(&shut), 1);
    ck_assert_int_eq(shut.status, REDLOCK_ENOQUORUM);
    redlock_lock_free(lock);
    live_resume_all();
}
END_TEST

/* A shutdown that cannot finish in time fails, and the releases continue in the background. */
START_TEST(shutdown_keeps_to_its_budget)
{
    live.node_time_ms = 20000;
    live_connect();
    redlock_lock_t *lock = live_lock("budget", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("budget") == NODES, TIME_LIMIT_MS));
    live_pause(0, 3);
    const uint64_t from_ms = wait_now_ms(), budget_ms = wait_scaled_ms(100);
    ck_assert_int_eq(redlock_shutdown(live.client, budget_ms), REDLOCK_ENOQUORUM);
    const uint64_t waited_ms = wait_now_ms() - from_ms;
    ck_assert_msg(waited_ms + 5 >= budget_ms && waited_ms < budget_ms + wait_scaled_ms(LATE_MS),
                  "%d ms", (int)waited_ms);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert_int_eq(redlock_shutdown(live.client, 0), REDLOCK_ENOQUORUM);
    live_resume_all();
    ck_assert_int_eq(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert_uint_eq(cluster_count_all_keys(live.cluster), 0);
    redlock_lock_free(lock);
}
END_TEST

/* One operation of each kind, waiting for stopped servers. */
START_TEST(free_ends_everything_in_flight)
{
    enum { WAITING, ACQUIRING, EXTENDING, RELEASING, INSPECTING, BREAKING, BY_TOKEN, READY, COUNT };
    struct outcome outcome[COUNT];
    live.node_time_ms = 20000;
    connect_in_mode(_i);
    for (unsigned i = 0; i < COUNT; i++)
        outcome[i] = (struct outcome)OUTCOME;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS), forever = opts;
    redlock_lock_t *held = lock_in_mode("held"), *extended = lock_in_mode("extended"),
                   *released = lock_in_mode("released");
    struct pollfd lost = {.fd = redlock_lock_fd(held), .events = POLLIN};
    forever.wait_ms = REDLOCK_WAIT_FOREVER;
    redlock_t *rl = live.client;
    ck_assert_int_eq(redlock_acquire_start(rl, "held", &forever, note_done, &outcome[WAITING]), 0);
    live_turn(rl, 5);
    live_pause(0, 3);
    ck_assert_int_eq(redlock_acquire_start(rl, "new", &forever, note_done, &outcome[ACQUIRING]), 0);
    ck_assert_int_eq(redlock_extend_start(extended, 0, note_done, &outcome[EXTENDING]), 0);
    ck_assert_int_eq(redlock_release_start(released, note_done, &outcome[RELEASING]), 0);
    ck_assert_int_eq(redlock_inspect_start(rl, "x", NULL, note_done, &outcome[INSPECTING]), 0);
    ck_assert_int_eq(redlock_break_start(rl, "x", NULL, note_done, &outcome[BREAKING]), 0);
    ck_assert_int_eq(
        redlock_release_token_start(rl, "x", "token", NULL, note_done, &outcome[BY_TOKEN]), 0);
    ck_assert_int_eq(redlock_wait_ready_start(rl, 1000, NULL, note_done, &outcome[READY]), 0);
    live_disconnect();
    for (unsigned i = 0; i < COUNT; i++) {
        ck_assert_msg(outcome_calls(&outcome[i]) == 1, "operation %u: %u calls", i,
                      outcome_calls(&outcome[i]));
        if (i != READY) /* may have been ready before */
            ck_assert_msg(outcome[i].status == REDLOCK_ECLOSED, "operation %u: %s", i,
                          redlock_error_name(outcome[i].status));
    }
    ck_assert_int_eq(redlock_lock_check(held, 0), REDLOCK_ELOST);
    ck_assert_int_eq(poll(&lost, 1, 0) < 0, 0);
    CHECK_STATUS(redlock_release_start(held, NULL, NULL), REDLOCK_ECLOSED);
    if (_i != 1) {
        CHECK_STATUS(redlock_extend(extended, 0, NULL), REDLOCK_ECLOSED);
        CHECK_STATUS(redlock_release(held, NULL), REDLOCK_ECLOSED);
    }
    CHECK_STATUS(redlock_lock_detach(held), REDLOCK_ECLOSED);
    ck_assert_str_eq(redlock_lock_resource(held, 0), "held");
    ck_assert_uint_eq(strcspn(redlock_lock_token(held), "@"), 40);
    redlock_lock_free(held);
    redlock_lock_free(extended);
    redlock_lock_free(released);
    live_resume_all();
    live_delete_leftovers();
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS)); /* the stopped servers had received the undos */
}
END_TEST

/* A thread in a blocking call. `kind` selects the call; `sleeping` counts the threads that began.
 */
struct sleeper {
    pthread_t thread;
    unsigned kind;
    int status;
    redlock_t *client;
    atomic_uint *sleeping;
};

/* Thread function: makes one blocking call that does not end by itself, chosen by sleeper->kind,
 * and stores its status. */
static void *sleep_in_call(void *userdata)
{
    struct sleeper *sleeper = userdata;
    redlock_t *rl = sleeper->client;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    atomic_fetch_add(sleeper->sleeping, 1);
    switch (sleeper->kind) {
    case 0:
        sleeper->status = redlock_acquire(rl, "sleeper", &opts, &lock, &report);
        break;
    case 1:
        sleeper->status = redlock_wait_ready(rl, REDLOCK_WAIT_FOREVER);
        break;
    case 2:
        sleeper->status = redlock_inspect(rl, "sleeper", &report);
        break;
    default:
        sleeper->status = redlock_break(rl, "sleeper", &report);
        break;
    }
    redlock_report_free(report);
    return NULL;
}

/* Threads in a blocking call return ECLOSED, and do not use the client that was freed. */
START_TEST(free_wakes_blocked_threads)
{
    struct sleeper sleepers[4];
    atomic_uint sleeping = 0;
    live.node_time_ms = 20000;
    live.connect_time_ms = 20000;
    live.mode = _i % 2 == 0 ? REDLOCK_MODE_THREADED : REDLOCK_MODE_HYBRID;
    live_pause(0, 3);
    live.client = new_client();
    for (unsigned i = 0; i < 4; i++) {
        sleepers[i] = (struct sleeper){.kind = i, .client = live.client, .sleeping = &sleeping};
        ck_assert_int_eq(pthread_create(&sleepers[i].thread, NULL, sleep_in_call, &sleepers[i]), 0);
    }
    ck_assert(WAIT_UNTIL(atomic_load(&sleeping) == 4 && live_stats(live.client).waiting == 3,
                         TIME_LIMIT_MS));
    live_disconnect();
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(sleepers[i].thread, NULL);
        ck_assert_msg(sleepers[i].status == REDLOCK_ECLOSED, "call %u: %s", i,
                      redlock_error_name(sleepers[i].status));
    }
}
END_TEST

/* A report is valid until it is freed. */
START_TEST(a_report_outlives_its_client)
{
    redlock_lock_t *held, *lock = NULL;
    connect_in_mode(0);
    held = live_lock("report", LONG_TTL_MS);
    CHECK_STATUS(live_inspect("report"), REDLOCK_OK);
    redlock_report_t *report = NULL;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    CHECK_STATUS(redlock_acquire(live.client, "report", &opts, &lock, &report), REDLOCK_ECONTENDED);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    char *before = strdup(redlock_report_text(report));
    live_disconnect();
    live_keep_report(report);
    ck_assert_str_eq(redlock_report_text(report), before);
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_report_t node = live_node(i);
        ck_assert_msg(strstr(cluster_url(live.cluster, i), node.node) != NULL, "%s", node.node);
        ck_assert_str_ne(node.text, "");
        ck_assert_str_eq(node.owner, "");
    }
    ck_assert_int_eq(live_info().status, REDLOCK_ECONTENDED);
    free(before);
    live_keep_report(NULL);
}
END_TEST

/* The blocks that a client has allocated and not freed, and the number of allocations. */
struct account {
    atomic_long blocks;
    atomic_ulong calls;
};

/* Allocator that counts calls and blocks in the account `userdata`. */
static void *count_malloc(size_t size, void *userdata)
{
    struct account *account = userdata;
    void *block = malloc(size);
    atomic_fetch_add(&account->blocks, block != NULL);
    atomic_fetch_add(&account->calls, 1);
    return block;
}

/* The same for realloc(); only a call with NULL adds a block. */
static void *count_realloc(void *old, size_t size, void *userdata)
{
    struct account *account = userdata;
    void *block = realloc(old, size);
    atomic_fetch_add(&account->blocks, old == NULL && block != NULL);
    atomic_fetch_add(&account->calls, 1);
    return block;
}

/* The same for free(). */
static void count_free(void *block, void *userdata)
{
    struct account *account = userdata;
    free(block);
    atomic_fetch_sub(&account->blocks, block != NULL);
}

/* Acquires and releases locks with the names of these numbers. */
static void lock_many_names(unsigned from, unsigned to)
{
    char name[32];

    for (unsigned i = from; i < to; i++) {
        redlock_lock_t *lock = NULL;
        snprintf(name, sizeof name, "one of many %u", i);
        CHECK_STATUS(live_acquire(name, LONG_TTL_MS, TIME_LIMIT_MS, &lock), REDLOCK_OK);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
    live_keep_report(NULL);
}

/* The memory for resource states is bounded, although each lock has another name. */
START_TEST(memory_does_not_grow_with_names)
{
    static struct account account; /* outlives a case that fails */
    const redlock_allocator_t allocator = {sizeof allocator, count_malloc, count_realloc,
                                           count_free, &account};
    redlock_config_t *config = NULL;
    ck_assert_int_eq(redlock_config_new(&config, &allocator), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, cluster_urls(live.cluster)), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, NODE_TIME_MS), REDLOCK_OK);
    live.client = live_open(config);
    lock_many_names(0, 300);
    const long blocks = atomic_load(&account.blocks);
    lock_many_names(300, 1200);
    ck_assert(WAIT_UNTIL(atomic_load(&account.blocks) < blocks + 100, TIME_LIMIT_MS));
    live_leave(); /* before the allocator's account goes out of scope */
}
END_TEST

/* A client with a counting allocator is used in many ways and freed. No block is left once the
 * lock, the cancel object and the report, which outlive the client, are freed. */
START_TEST(all_memory_is_freed)
{
    struct account account = {.blocks = 0};
    const redlock_allocator_t allocator = {sizeof allocator, count_malloc, count_realloc,
                                           count_free, &account};
    redlock_config_t *config = NULL;
    redlock_cancel_t *cancel = NULL;
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    ck_assert_int_eq(redlock_config_new(&config, &allocator), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, cluster_urls(live.cluster)), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, NODE_TIME_MS), REDLOCK_OK);
    live.client = live_open(config); /* frees the configuration */
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    opts.cancel = cancel;
    CHECK_STATUS(redlock_acquire(live.client, "memory", &opts, &lock, NULL), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    redlock_lock_t *other = NULL;
    CHECK_STATUS(redlock_acquire(live.client, "memory", &opts, &other, &report),
                 REDLOCK_ECONTENDED);
    CHECK_STATUS(live_inspect("memory"), REDLOCK_OK);
    cluster_command_all(live.cluster, "CLIENT KILL TYPE normal");
    redlock_break(live.client, "other", NULL); /* while connections are being made */
    CHECK_STATUS(live_acquire("", LONG_TTL_MS, 0, &other), REDLOCK_EINVAL);
    live_leave();                                      /* some connections are still being made */
    ck_assert_int_gt(atomic_load(&account.blocks), 0); /* of the objects that outlive the client */
    redlock_lock_free(lock);
    redlock_cancel_free(cancel);
    redlock_report_free(report);
    ck_assert_int_eq(atomic_load(&account.blocks), 0);
    ck_assert_uint_gt(atomic_load(&account.calls), 10);
}
END_TEST

/* Freeing the handle of a held lock releases the lock. */
START_TEST(a_freed_handle_releases)
{
    connect_in_mode(_i);
    for (unsigned i = 0; i < 10; i++) {
        redlock_lock_free(lock_in_mode("freed"));
        ck_assert(
            LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
    }
    redlock_lock_free(NULL);
    redlock_report_free(NULL);
    ck_assert_int_eq(redlock_free(NULL), REDLOCK_OK);
}
END_TEST

/* Ten clients are created from one configuration. None of their descriptors is inherited over
 * exec(). */
START_TEST(many_clients_of_one_configuration)
{
    redlock_t *clients[10];
    redlock_config_t *config = live_config();
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(redlock_new(&clients[i], config), REDLOCK_OK);
    redlock_config_free(config);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(redlock_wait_ready(clients[i], wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    const char *inherited = fdcheck_inherited(&live.before);
    ck_assert_msg(inherited == NULL, "not closed on exec: %s", inherited);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(redlock_free(clients[i]), REDLOCK_OK);
}
END_TEST

/* Event function: counts LOST. */
static void count_lost(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl;
    atomic_fetch_add((atomic_uint *)userdata, event->kind == REDLOCK_EVENT_LOST);
}

/* The child of the next case: holds a lock, closes all descriptors, and ends with 0 if the lock is
 * lost, both by check and event, and the client can be freed. Ends with the line of what failed. */
static _Noreturn void close_all_descriptors(void)
{
    static atomic_uint lost;
    redlock_t *client = NULL;
    redlock_lock_t *lock = NULL;
    redlock_config_t *config = live_config();
    redlock_opts_t opts = redlock_opts(live_brief_ms(1000));
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.event_fn = count_lost;
    opts.event_userdata = &lost;
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    if (redlock_new(&client, config) != REDLOCK_OK ||
        redlock_acquire(client, "descriptors", &opts, &lock, NULL) != REDLOCK_OK)
        _exit(1);
    redlock_config_free(config);
    for (int fd = 0; fd < 1024; fd++)
        syscall(SYS_close, fd); /* ThreadSanitizer would report close() as the race that it is */
    if (!WAIT_UNTIL(redlock_lock_check(lock, 0) == REDLOCK_ELOST, TIME_LIMIT_MS))
        _exit(2);
    if (!WAIT_UNTIL(atomic_load(&lost) == 1, TIME_LIMIT_MS))
        _exit(3);
    redlock_lock_free(lock);
    opts.wait_ms = 0;
    if (redlock_acquire(client, "descriptors", &opts, &lock, NULL) != REDLOCK_ENOQUORUM)
        _exit(4);
    _exit(redlock_free(client) == REDLOCK_OK ? 0 : 5);
}

/* A program that closes all descriptors, as daemons do, loses its locks, and nothing else. */
START_TEST(closed_descriptors_lose_the_locks)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        close_all_descriptors();
    live.freed = true; /* by the child, whose keys expire */
    ck_assert_int_gt(child, 0);
    ck_assert(WAIT_UNTIL(waitpid(child, &status, WNOHANG) == child, 5 * TIME_LIMIT_MS));
    ck_assert_msg(status == 0, "the child ended with status %x", (unsigned)status);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *life_suite(void)
{
    Suite *suite = suite_create("live_client_lifecycle");
    live_add(suite, "ready", ready_when_a_majority_is);
    live_add(suite, "not ready", not_ready_without_a_majority);
    live_add_each(suite, "shutdown", shutdown_releases_and_closes, 3);
    live_add_each(suite, "shutdown, extension", shutdown_ends_an_extension, 3);
    live_add_each(suite, "freed", freeing_ends_a_shutdown, 3);
    live_add(suite, "shutdown, budget", shutdown_keeps_to_its_budget);
    live_add_each(suite, "free", free_ends_everything_in_flight, 3);
    live_add_each(suite, "free, blocked", free_wakes_blocked_threads, 4);
    live_add(suite, "report", a_report_outlives_its_client);
    live_add(suite, "allocator", all_memory_is_freed);
    live_add(suite, "names", memory_does_not_grow_with_names);
    live_add_each(suite, "freed handle", a_freed_handle_releases, 3);
    live_add(suite, "many", many_clients_of_one_configuration);
    live_add(suite, "closed", closed_descriptors_lose_the_locks);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(life_suite());
    live_stop_servers();
    return status;
}
