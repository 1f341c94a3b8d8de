/* SPDX-License-Identifier: MIT
 * Calls each function of the public interface once, on real servers, in each mode. valgrind_test.py
 * runs it under valgrind, which looks for bad accesses, leaks and open descriptors, and compares
 * its source with the list of public functions. It prints nothing if all is well.
 *
 * Each function from hold_and_hand_over() on uses a group of public functions and ends the program
 * if one has not the expected result. The client counts blocks with an allocator of its own; none
 * may be left at the end. */
#include <poll.h>
#include <pthread.h>
#include <redlock/redlock.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "wait.h"

#define TTL_MS  10000 /* of all locks; longer than the program needs them */
#define WAIT_MS 20000 /* limit of every wait; valgrind is slow */

static struct cluster *cluster; /* the servers */
static atomic_uint events;      /* number of events since cancel_a_wait() began */

/* Prints the failed condition and ends the program unless `holds`. */
static void require_at(bool holds, int line, const char *what)
{
    if (holds)
        return;
    printf("line %d: %s\n", line, what);
    cluster_stop(cluster);
    exit(1);
}
#define REQUIRE(condition) require_at((condition), __LINE__, #condition)
#define REQUIRE_OK(call)   require_at((call) == REDLOCK_OK, __LINE__, #call)

/* Counts the event, and requires that its size and its report (if any) are readable. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl;
    (void)userdata;
    REQUIRE(event->size == sizeof *event);
    if (event->report != NULL)
        REQUIRE(redlock_report_text(event->report) != NULL);
    events++;
}

static atomic_uint ended; /* number of calls of on_event_end() */

/* Counts locks that can have no more events. */
static void on_event_end(void *userdata)
{
    REQUIRE(userdata == &ended);
    ended++;
}

/* Requires that each log message has a level and a text. */
static void on_log(int level, const char *message, void *userdata)
{
    (void)userdata;
    REQUIRE(level >= REDLOCK_LOG_ERROR && message[0] != '\0');
}

/* Allocates a block and counts it in `userdata`, the number of blocks in use. */
static void *counted_malloc(size_t size, void *userdata)
{
    ++*(atomic_int *)userdata;
    return malloc(size);
}

/* Resizes a block; a NULL block is a new one and counted. */
static void *counted_realloc(void *block, size_t size, void *userdata)
{
    *(atomic_int *)userdata += block == NULL;
    return realloc(block, size);
}

/* Frees a block and subtracts it from the number of blocks in use. */
static void counted_free(void *block, void *userdata)
{
    *(atomic_int *)userdata -= block != NULL;
    free(block);
}

static atomic_int blocks; /* number of blocks that clients have in use */
static const redlock_allocator_t allocator = {
    .size = sizeof allocator,
    .malloc_fn = counted_malloc,
    .realloc_fn = counted_realloc,
    .free_fn = counted_free,
    .userdata = &blocks,
};

/* Creates a client of all servers in this mode (REDLOCK_MODE_*), and calls every setter of the
 * configuration. `password`: of the servers. */
static redlock_t *new_client(int mode, const char *password)
{
    redlock_config_t *config;
    redlock_t *rl;

    REQUIRE_OK(redlock_config_new(&config, &allocator));
    REQUIRE(redlock_config_add_nodes(config, "nonsense://x") == REDLOCK_EINVAL);
    REQUIRE(redlock_config_error(config)[0] != '\0');
    for (unsigned i = 0; i < cluster_nodes(cluster); i++) {
        char url[64];
        snprintf(url, sizeof url, "127.0.0.1:%d?fresh=1", cluster_port(cluster, i));
        REQUIRE_OK(redlock_config_add_nodes(config, url));
    }
    REQUIRE_OK(redlock_config_set_auth(config, NULL, password));
    REQUIRE_OK(redlock_config_set_mode(config, mode));
    REQUIRE_OK(redlock_config_set_key_prefix(config, "smoke:"));
    REQUIRE_OK(redlock_config_set_owner(config, "smoke"));
    REQUIRE_OK(redlock_config_set_queue_max(config, 100));
    REQUIRE_OK(redlock_config_set_notifications(config, true));
    REQUIRE_OK(redlock_config_set_line(config, true));
    REQUIRE_OK(redlock_config_set_tls(config, NULL));
    REQUIRE_OK(redlock_config_set_fence_key(config, CLUSTER_RECORD));
    REQUIRE_OK(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE));
    REQUIRE_OK(redlock_config_set_max_ttl_ms(config, TTL_MS));
    REQUIRE_OK(redlock_config_set_admission(config, REDLOCK_ADMISSION_STRICT));
    REQUIRE_OK(redlock_config_set_heartbeat_ms(config, 60000));
    REQUIRE_OK(redlock_config_set_clock_slack_ms(config, 1000));
    REQUIRE_OK(redlock_config_set_connect_timeout_ms(config, 10000));
    REQUIRE_OK(redlock_config_set_node_timeout_ms(config, 10000));
    REQUIRE_OK(redlock_config_set_keepalive_ms(config, 1000));
    REQUIRE_OK(redlock_config_set_retry_ms(config, 1, 10));
    REQUIRE_OK(redlock_config_set_drift(config, 1000, 1000));
    REQUIRE_OK(redlock_config_set_log(config, REDLOCK_LOG_DEBUG, on_log, NULL));
    REQUIRE_OK(redlock_config_set_event(config, on_event, NULL));
    REQUIRE_OK(redlock_new(&rl, config));
    redlock_config_free(config);
    return rl;
}

/* Reads all parts of a report, requires that its status is `status`, and frees the report. */
static void read_report(redlock_report_t *report, int status)
{
    redlock_report_info_t info;
    redlock_node_report_t node;

    REQUIRE(report != NULL && redlock_report_text(report)[0] != '\0');
    REQUIRE_OK(redlock_report_get_info(report, &info, sizeof info));
    REQUIRE(info.status == status);
    for (size_t i = 0; i < info.nodes; i++) {
        REQUIRE_OK(redlock_report_get_node(report, i, &node, sizeof node));
        REQUIRE(node.text[0] != '\0' && node.owner != NULL);
    }
    REQUIRE(redlock_report_get_node(report, info.nodes, &node, sizeof node) == REDLOCK_EINVAL);
    redlock_waiter_t waiter;
    REQUIRE(redlock_report_get_waiter(report, 0, &waiter, sizeof waiter) == REDLOCK_EINVAL);
    redlock_report_free(report);
}

/* Is run under a lock by the client. Returns 42 if the lock is held, otherwise 0. */
static int body(redlock_lock_t *lock, void *userdata)
{
    (void)userdata;
    return redlock_lock_check(lock, 1) == REDLOCK_OK ? 42 : 0;
}

/* Triggers the cancel object after the first event. */
static void *cancel_after_an_event(void *cancel)
{
    REQUIRE(WAIT_UNTIL(atomic_load(&events) > 0, WAIT_MS));
    redlock_cancel_trigger(cancel);
    return NULL;
}

/* Waits for a lock of another client until another thread cancels the wait. */
static void cancel_a_wait(redlock_t *rl)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *none;
    redlock_report_t *report;
    pthread_t thread;

    events = 0;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    REQUIRE_OK(redlock_cancel_new(&opts.cancel, rl));
    REQUIRE(pthread_create(&thread, NULL, cancel_after_an_event, opts.cancel) == 0);
    REQUIRE(redlock_acquire(rl, "name", &opts, &none, &report) == REDLOCK_ECANCELED);
    read_report(report, REDLOCK_ECANCELED);
    REQUIRE(pthread_join(thread, NULL) == 0);
    redlock_cancel_free(opts.cancel);
}

/* Acquires, extends, inspects and hands over a lock, and releases it with a delay. */
static void hold_and_hand_over(redlock_t *rl)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock, *adopted;
    redlock_report_t *report;

    opts.flags = REDLOCK_FLAG_AUTO_EXTEND | REDLOCK_FLAG_FENCE;
    opts.event_fn = on_event;
    opts.event_end_fn = on_event_end;
    opts.event_userdata = &ended;
    REQUIRE_OK(redlock_acquire(rl, "name", &opts, &lock, &report));
    read_report(report, REDLOCK_OK);
    REQUIRE(redlock_lock_fence(lock) > 0);
    REQUIRE_OK(redlock_lock_check(lock, 1));
    REQUIRE(redlock_lock_remaining_ms(lock) > 0 && redlock_lock_fd(lock) >= 0);
    REQUIRE_OK(redlock_lock_retain(lock));
    REQUIRE_OK(redlock_release(lock, &report));
    read_report(report, REDLOCK_OK);
    REQUIRE(strcmp(redlock_lock_resource(lock, 0), "name") == 0);
    REQUIRE_OK(redlock_extend(lock, TTL_MS, &report));
    read_report(report, REDLOCK_OK);
    REQUIRE_OK(redlock_verify(lock, &report));
    read_report(report, REDLOCK_OK);
    REQUIRE_OK(redlock_inspect(rl, "name", &report));
    read_report(report, REDLOCK_OK);
    cancel_a_wait(rl);
    REQUIRE_OK(redlock_lock_detach(lock));
    opts.fence = redlock_lock_fence(lock);
    REQUIRE_OK(redlock_adopt(rl, "name", redlock_lock_token(lock), &opts, &adopted, &report));
    read_report(report, REDLOCK_OK);
    redlock_lock_free(lock);
    REQUIRE_OK(redlock_release_after(adopted, 1, &report));
    read_report(report, REDLOCK_OK);
    redlock_lock_free(adopted);
}

/* Acquires a lock, is denied it a second time, breaks it, and finds it lost. Then releases a lock
 * by its token, and lets the client run body() under a lock. */
static void acquire_and_release_contended(redlock_t *rl)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock, *unused;
    redlock_report_t *report;
    int result = 0;

    opts.wait_ms = WAIT_MS; /* until the key of the delayed release has expired */
    REQUIRE_OK(redlock_acquire(rl, "name", &opts, &lock, NULL));
    opts.wait_ms = 0;
    REQUIRE(redlock_acquire(rl, "name", &opts, &unused, &report) == REDLOCK_ECONTENDED);
    read_report(report, REDLOCK_ECONTENDED);
    REQUIRE_OK(redlock_break(rl, "name", &report));
    read_report(report, REDLOCK_OK);
    REQUIRE(redlock_extend(lock, 0, NULL) == REDLOCK_ELOST);
    REQUIRE(redlock_release(lock, &report) == REDLOCK_ELOST);
    read_report(report, REDLOCK_ELOST);
    redlock_lock_free(lock);
    REQUIRE_OK(redlock_acquire(rl, "name", &opts, &lock, NULL));
    REQUIRE_OK(redlock_release_token(rl, "name", redlock_lock_token(lock), &report));
    read_report(report, REDLOCK_OK);
    redlock_lock_free(lock);
    REQUIRE(redlock_release_token_all(rl, (const char *const[]){"name", "other"}, 2, "token",
                                      &report) == REDLOCK_ELOST);
    read_report(report, REDLOCK_ELOST);
    REQUIRE_OK(redlock_with(rl, "name", &opts, &result, &report, body, NULL));
    read_report(report, REDLOCK_OK);
    REQUIRE(result == 42);
    REQUIRE(redlock_acquire(rl, "", &opts, &lock, &report) == REDLOCK_EINVAL);
    read_report(report, REDLOCK_EINVAL);
}

/* Acquires and releases a permit. */
static void acquire_permit(redlock_t *rl)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock;
    char name[64];

    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = 3;
    REQUIRE_OK(redlock_acquire(rl, "seats", &opts, &lock, NULL));
    REQUIRE(redlock_lock_slot(lock) >= 0 && redlock_lock_slot(lock) < 3);
    REQUIRE(redlock_slot_name(name, sizeof name, "seats", 2) >= 0 &&
            strcmp(name, "seats{#2}") == 0);
    REQUIRE_OK(redlock_release(lock, NULL));
    redlock_lock_free(lock);
}

/* Reads the statistics of the client and of its nodes, also as text in a buffer that is too small
 * for it. */
static void read_statistics(redlock_t *rl)
{
    const redlock_label_t label = {"service", "smoke"};
    redlock_stats_t stats;
    redlock_node_stats_t node;
    char text[5000];

    REQUIRE_OK(redlock_get_stats(rl, &stats, sizeof stats));
    REQUIRE(redlock_stats_prometheus(rl, &label, 1, text, sizeof text) > (int)sizeof text);
    REQUIRE(stats.acquired > 0);
    for (size_t i = 0; i < redlock_node_count(rl); i++)
        REQUIRE_OK(redlock_get_node_stats(rl, i, &node, sizeof node));
}

/* Uses all blocking calls on a threaded client. */
static void use_blocking_calls(const char *password)
{
    redlock_t *rl = new_client(REDLOCK_MODE_THREADED, password);
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock, *forgotten;

    REQUIRE_OK(redlock_wait_ready(rl, WAIT_MS));
    REQUIRE_OK(redlock_set_auth(rl, "default", password));
    REQUIRE(redlock_get_fd(rl) == REDLOCK_EMODE);
    REQUIRE_OK(redlock_init_fence_records(rl, WAIT_MS));
    hold_and_hand_over(rl);
    acquire_and_release_contended(rl);
    acquire_permit(rl);
    read_statistics(rl);
    REQUIRE_OK(redlock_acquire(rl, "kept", &opts, &lock, NULL));
    REQUIRE_OK(redlock_acquire(rl, "forgotten", &opts, &forgotten, NULL));
    redlock_lock_free(forgotten); /* still held */
    REQUIRE_OK(redlock_shutdown(rl, WAIT_MS));
    REQUIRE_OK(redlock_free(rl));
    REQUIRE(redlock_lock_check(lock, 0) == REDLOCK_ELOST);
    REQUIRE(ended == 2);     /* one acquired, one adopted */
    redlock_lock_free(lock); /* outlives its client */
}

/* ---- asynchronous calls ---- */

/* The end of one asynchronous operation. */
struct result {
    bool done;            /* the callback has run */
    int status;           /* of the callback */
    redlock_lock_t *lock; /* as the callback got it; may be NULL */
};

/* Records the end of an operation and reads its report. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    struct result *result = userdata;

    (void)rl;
    REQUIRE(!result->done);
    if (report != NULL) {
        REQUIRE(redlock_report_text(report)[0] != '\0');
        redlock_report_t *kept = redlock_report_ref(report);
        REQUIRE(kept != NULL &&
                strcmp(redlock_report_text(kept), redlock_report_text(report)) == 0);
        redlock_report_free(kept);
    }
    *result = (struct result){true, status, lock};
}

/* Drives the client until the operation has ended, and requires that its status is `status`. Resets
 * `result` for the next operation. Returns the lock that the callback got, or NULL. */
static redlock_lock_t *finish(redlock_t *rl, struct result *result, int status)
{
    const uint64_t end = wait_now_ms() + WAIT_MS;
    redlock_lock_t *lock;

    while (!result->done) {
        struct pollfd ready = {.fd = redlock_get_fd(rl), .events = POLLIN};
        REQUIRE(wait_now_ms() < end);
        REQUIRE(poll(&ready, 1, 1000) >= 0);
        REQUIRE_OK(redlock_process(rl));
    }
    REQUIRE(result->status == status);
    lock = result->lock;
    *result = (struct result){false, 0, NULL};
    return lock;
}

/* Uses all asynchronous calls on a client in this mode. */
static void use_asynchronous_calls(int mode, const char *password)
{
    redlock_t *rl = new_client(mode, password);
    redlock_opts_t opts = redlock_opts(TTL_MS);
    struct result one = {false, 0, NULL};
    redlock_lock_t *lock, *adopted;

    REQUIRE_OK(redlock_wait_ready_start(rl, WAIT_MS, NULL, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    opts.wait_ms = WAIT_MS;
    REQUIRE_OK(redlock_init_fence_records_start(rl, WAIT_MS, NULL, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_acquire_start(rl, "name", &opts, on_done, &one));
    lock = finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_extend_start(lock, TTL_MS, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_inspect_start(rl, "name", NULL, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_verify_start(lock, NULL, on_done, &one));
    REQUIRE(finish(rl, &one, REDLOCK_OK) == lock);
    REQUIRE_OK(redlock_lock_detach(lock));
    REQUIRE_OK(redlock_adopt_start(rl, "name", redlock_lock_token(lock), &opts, on_done, &one));
    adopted = finish(rl, &one, REDLOCK_OK);
    redlock_lock_free(lock);
    REQUIRE_OK(redlock_release_start(adopted, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    redlock_lock_free(adopted);
    REQUIRE_OK(redlock_acquire_start(rl, "other", &opts, on_done, &one));
    lock = finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(
        redlock_release_token_start(rl, "other", redlock_lock_token(lock), NULL, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    redlock_lock_free(lock);
    opts.also = (const char *const[]){"another", "third"};
    opts.also_count = 2;
    REQUIRE_OK(redlock_acquire_start(rl, "other", &opts, on_done, &one));
    lock = finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_release_token_all_start(rl,
                                               (const char *const[]){"other", "another", "third"},
                                               3, redlock_lock_token(lock), NULL, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    redlock_lock_free(lock);
    opts.also_count = 0;
    REQUIRE_OK(redlock_break_start(rl, "other", NULL, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_acquire_start(rl, "kept", &opts, on_done, &one));
    lock = finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_release_after_start(lock, 1, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    redlock_lock_free(lock);
    REQUIRE_OK(redlock_shutdown_start(rl, WAIT_MS, on_done, &one));
    finish(rl, &one, REDLOCK_OK);
    REQUIRE_OK(redlock_free(rl));
}

/* Frees a client with an acquisition, an inspection and a wait in flight, and requires that each
 * callback runs all the same, without a lock. */
static void free_with_calls_in_flight(const char *password)
{
    redlock_t *rl = new_client(REDLOCK_MODE_EMBEDDED, password);
    redlock_opts_t opts = redlock_opts(TTL_MS);
    struct result answers[3] = {{false, 0, NULL}};

    REQUIRE_OK(redlock_acquire_start(rl, "name", &opts, on_done, &answers[0]));
    REQUIRE_OK(redlock_process(rl));
    REQUIRE_OK(redlock_inspect_start(rl, "name", NULL, on_done, &answers[1]));
    REQUIRE_OK(redlock_wait_ready_start(rl, WAIT_MS, NULL, on_done, &answers[2]));
    REQUIRE_OK(redlock_free(rl));
    for (unsigned i = 0; i < 3; i++)
        REQUIRE(answers[i].done && answers[i].lock == NULL);
}

/* Acquires and releases a lock with a client of two shards, each of one server. */
static void use_shards(const char *password)
{
    redlock_config_t *config;
    redlock_t *rl;
    redlock_stats_t stats;
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_lock_t *lock;
    char url[64];

    opts.wait_ms = WAIT_MS;
    REQUIRE_OK(redlock_config_new(&config, &allocator));
    REQUIRE_OK(redlock_config_set_auth(config, NULL, password));
    for (unsigned i = 0; i < 2; i++) {
        snprintf(url, sizeof url, "127.0.0.1:%d?fresh=1", cluster_port(cluster, i));
        REQUIRE_OK(redlock_config_add_shard(config, i == 0 ? "east" : "west", url));
    }
    REQUIRE_OK(redlock_new(&rl, config));
    redlock_config_free(config);
    REQUIRE(redlock_shard_count(rl) == 2);
    int set = redlock_shard_of(rl, "name");
    REQUIRE(set >= 0 && redlock_shard_name(rl, (size_t)set) != NULL);
    REQUIRE_OK(redlock_acquire(rl, "name", &opts, &lock, NULL));
    REQUIRE_OK(redlock_release(lock, NULL));
    redlock_lock_free(lock);
    REQUIRE_OK(redlock_get_shard_stats(rl, (size_t)set, &stats, sizeof stats));
    REQUIRE(stats.acquired == 1);
    REQUIRE_OK(redlock_free(rl));
}

/* Starts the servers, uses the functions that need no client, then all others. Exit status 77 skips
 * the test: there is no Redis. */
int main(void)
{
    static const char password[] = "secret";
    const struct cluster_opts opts = {.password = password};

    if (!cluster_available()) {
        puts(CLUSTER_MISSING);
        return 77;
    }
    cluster = cluster_start_with(&opts);
    REQUIRE(redlock_version_number() > 0);
    REQUIRE(redlock_version_string()[0] != '\0');
    REQUIRE(redlock_build_text()[0] != '\0');
    REQUIRE(redlock_strerror(REDLOCK_ELOST)[0] != '\0');
    REQUIRE(strcmp(redlock_error_name(REDLOCK_ELOST), "REDLOCK_ELOST") == 0);
    REQUIRE(redlock_error_is_retriable(REDLOCK_ENOQUORUM));
    REQUIRE(redlock_error_at(0) != REDLOCK_OK && redlock_cause_count() > 0);
    REQUIRE(strcmp(redlock_cause_name(REDLOCK_CAUSE_NONE), "REDLOCK_CAUSE_NONE") == 0);
    redlock_opts_t options;
    REQUIRE(redlock_config_validity_ms(NULL, TTL_MS) == 0);
    REQUIRE_OK(redlock_opts_init(&options, sizeof options, TTL_MS));
    REQUIRE(options.ttl_ms == TTL_MS);
    use_blocking_calls(password);
    use_asynchronous_calls(REDLOCK_MODE_EMBEDDED, password);
    use_asynchronous_calls(REDLOCK_MODE_HYBRID, password);
    free_with_calls_in_flight(password);
    use_shards(password);
    REQUIRE(blocks == 0);
    cluster_stop(cluster);
    return 0;
}
