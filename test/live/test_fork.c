/* SPDX-License-Identifier: MIT
 * fork(): in the child every handle is invalid but can be freed, no request is sent and no callback
 * runs. The parent is not affected.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_release()
 * returns the status of one call and keeps its report. live_voters() counts the eligible nodes,
 * live_responsive() the nodes that reply. LOOP_UNTIL() turns the loop of a client until a
 * condition holds or the deadline has passed. WAIT_UNTIL(condition, ms) polls and returns false
 * after the deadline. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no
 * case reaches. From live_events.h: note_event() copies each event into its userdata:
 * client_events or lock_events. note_done() stores the result of an asynchronous call in a struct
 * outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The handles that the child inherits. */
struct handles {
    redlock_lock_t *lock;
    redlock_cancel_t *cancel;
    redlock_report_t *report;
    struct fdcheck before;
};

/* Assertions of the child, which end it, because it must not return into the parent's test. */
#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "child, line %d: %s\n", __LINE__, #condition);                         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define CHILD_FORKED(expression) CHILD_CHECK((expression) == REDLOCK_EFORKED)
/* The same for a call with a report, which must name the reason. */
#define CHILD_REPORTED(report, expression)                                                         \
    do {                                                                                           \
        redlock_report_info_t info_;                                                               \
        CHILD_FORKED(expression);                                                                  \
        CHILD_CHECK(redlock_report_get_info(report, &info_, sizeof info_) == REDLOCK_OK);          \
        CHILD_CHECK(info_.status == REDLOCK_EFORKED && info_.nodes == 0);                          \
        CHILD_CHECK(strstr(redlock_report_text(report), "fork()") != NULL);                        \
        redlock_report_free(report);                                                               \
        (report) = NULL;                                                                           \
    } while (0)

/* Body for redlock_with() in calls that are refused, so that it never runs. */
static int unused_body(redlock_lock_t *lock, void *userdata)
{
    (void)lock;
    (void)userdata;
    return 0;
}

/* Checks that calls which would send requests, one of each kind, fail in the child. */
static void child_sends_nothing(redlock_t *rl, redlock_lock_t *lock)
{
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *none = NULL;
    redlock_report_t *report = NULL;
    struct outcome outcome = OUTCOME;
    CHILD_REPORTED(report, redlock_acquire(rl, "a", &opts, &none, &report));
    CHILD_REPORTED(report, redlock_adopt(rl, "a", "token", &opts, &none, &report));
    CHILD_REPORTED(report, redlock_extend(lock, 0, &report));
    CHILD_REPORTED(report, redlock_release(lock, &report));
    CHILD_REPORTED(report, redlock_release_after(lock, 10, &report));
    CHILD_REPORTED(report, redlock_release_token(rl, "a", "token", &report));
    CHILD_REPORTED(report, redlock_verify(lock, &report));
    CHILD_REPORTED(report, redlock_inspect(rl, "a", &report));
    CHILD_REPORTED(report, redlock_break(rl, "a", &report));
    CHILD_REPORTED(report, redlock_with(rl, "a", &opts, NULL, &report, unused_body, NULL));
    CHILD_FORKED(redlock_wait_ready(rl, 0));
    CHILD_FORKED(redlock_shutdown(rl, 0));
    CHILD_FORKED(redlock_acquire_start(rl, "a", &opts, note_done, &outcome));
    CHILD_FORKED(redlock_extend_start(lock, 0, note_done, &outcome));
    CHILD_FORKED(redlock_release_start(lock, note_done, &outcome));
    CHILD_FORKED(redlock_release_after_start(lock, 10, note_done, &outcome));
    CHILD_FORKED(redlock_verify_start(lock, NULL, note_done, &outcome));
    CHILD_FORKED(redlock_inspect_start(rl, "a", NULL, note_done, &outcome));
    CHILD_FORKED(redlock_shutdown_start(rl, 0, note_done, &outcome));
    CHILD_CHECK(outcome.calls == 0 && none == NULL);
}

/* Checks the calls that need no server, in the child. */
static void child_reads(redlock_t *rl, redlock_lock_t *lock)
{
    redlock_cancel_t *cancel = NULL;
    redlock_stats_t stats;
    redlock_node_stats_t node;
    CHILD_FORKED(redlock_lock_check(lock, 0));
    CHILD_FORKED(redlock_lock_fd(lock));
    CHILD_FORKED(redlock_lock_detach(lock));
    CHILD_FORKED(redlock_cancel_new(&cancel, rl));
    CHILD_FORKED(redlock_get_fd(rl));
    CHILD_FORKED(redlock_process(rl));
    CHILD_FORKED(redlock_get_stats(rl, &stats, sizeof stats));
    CHILD_FORKED(redlock_get_node_stats(rl, 0, &node, sizeof node));
    CHILD_CHECK(redlock_lock_remaining_ms(lock) == 0);
    CHILD_CHECK(strcmp(redlock_lock_resource(lock, 0), "parent") == 0);
    CHILD_CHECK(strcspn(redlock_lock_token(lock), "@") == 40);
    CHILD_CHECK(redlock_node_count(rl) == NODES);
}

/* Frees all handles in the child, and checks that no descriptor is left. */
static void child_frees(redlock_t *rl, const struct handles *handles, bool client_first)
{
    if (client_first)
        CHILD_CHECK(redlock_free(rl) == REDLOCK_OK);
    redlock_lock_free(handles->lock);
    redlock_cancel_free(handles->cancel);
    CHILD_CHECK(redlock_report_text(handles->report) != NULL);
    redlock_report_free(handles->report);
    if (!client_first)
        CHILD_CHECK(redlock_free(rl) == REDLOCK_OK);
    const char *left = fdcheck_leaked(&handles->before, 0);
    if (left != NULL)
        fprintf(stderr, "child, descriptors left open: %s\n", left);
    CHILD_CHECK(left == NULL);
}

/* Waits until the child has ended successfully. */
static void wait_for_child(pid_t child)
{
    int status = -1;
    ck_assert_int_gt(child, 0);
    ck_assert_msg(WAIT_UNTIL(waitpid(child, &status, WNOHANG) == child, TIME_LIMIT_MS),
                  "the child hangs");
    ck_assert_msg(status == 0, "the child ended with status %x", (unsigned)status);
}

/* Returns how many commands a server has executed that locks or a new connection of the library
 * need. */
static uint64_t commands_of_locks(unsigned node)
{
    return live_calls(node, "set") + live_calls(node, "evalsha") + live_calls(node, "eval") +
           live_calls(node, "get") + live_calls(node, "ping") + live_calls(node, "client|setname");
}

/* Returns how many connections of clients a server has. */
static unsigned connections(unsigned node)
{
    unsigned count = 0;
    char *list = cluster_command(live.cluster, node, "CLIENT LIST TYPE normal");
    for (const char *at = strstr(list, "name=redlock"); at != NULL;
         at = strstr(at + 1, "name=redlock"))
        count++;
    free(list);
    return count;
}

/* Creates a client in that mode with a held lock and a cancel object, and a report unless the mode
 * is embedded. */
static struct handles open_handles(int mode)
{
    struct handles handles = {.before = live.before};
    struct outcome outcome = OUTCOME, inspected = OUTCOME;
    live.mode = mode;
    live_connect();
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    ck_assert_int_eq(redlock_cancel_new(&handles.cancel, live.client), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire_start(live.client, "parent", &opts, note_done, &outcome),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    handles.lock = outcome.lock;
    ck_assert_int_ge(redlock_lock_fd(handles.lock), 0);
    if (mode != REDLOCK_MODE_EMBEDDED)
        CHECK_STATUS(redlock_inspect(live.client, "parent", &handles.report), REDLOCK_OK);
    ck_assert_int_eq(redlock_inspect_start(live.client, "parent", NULL, note_done, &inspected),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &inspected), REDLOCK_OK);
    return handles;
}

/* Checks that the parent's lock and connections work, and frees its handles. */
static void check_parent(const struct handles *handles)
{
    struct outcome extended = OUTCOME;
    ck_assert_int_eq(redlock_lock_check(handles->lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(live_nodes_with("parent"), NODES);
    ck_assert_uint_eq(live_voters(live.client), NODES);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(live_node_stats(live.client, i).reconnects, 0);
    ck_assert_int_eq(redlock_extend_start(handles->lock, 0, note_done, &extended), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &extended), REDLOCK_OK);
    redlock_lock_free(handles->lock);
    redlock_cancel_free(handles->cancel);
    redlock_report_free(handles->report);
    ck_assert(LOOP_UNTIL(live.client, cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}

/* _i: three modes, client or lock freed first. */
START_TEST(the_child_is_silent_and_the_parent_unharmed)
{
    static const int modes[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};
    uint64_t before[NODES];
    const struct handles handles = open_handles(modes[_i / 2]);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_uint_eq(connections(i), 1);
        before[i] = commands_of_locks(i);
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        child_sends_nothing(live.client, handles.lock);
        child_reads(live.client, handles.lock);
        child_frees(live.client, &handles, _i % 2 == 0);
        _exit(0);
    }
    wait_for_child(child);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_uint_eq(commands_of_locks(i), before[i]);
        ck_assert_uint_eq(connections(i), 1);
    }
    check_parent(&handles);
}
END_TEST

/* A thread that waits for a held lock. */
struct waiter {
    pthread_t thread;
    int status;
    redlock_cancel_t *cancel;
};

/* Thread function: waits for the lock that the parent holds, until the wait is canceled, and
 * stores the status. */
static void *wait_for_lock(void *userdata)
{
    struct waiter *waiter = userdata;
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = waiter->cancel;
    waiter->status = redlock_acquire(live.client, "parent", &opts, &lock, NULL);
    redlock_lock_free(lock);
    return NULL;
}

/* Forks with operations in flight and a thread in a blocking call. The child does not hang, and
 * runs no callback. */
START_TEST(children_are_not_affected_by_operations)
{
    struct waiter waiter = {.status = 1};
    struct outcome outcome = OUTCOME, in_flight = OUTCOME;
    const struct handles handles = open_handles(REDLOCK_MODE_THREADED);
    waiter.cancel = handles.cancel;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.cancel = handles.cancel;
    ck_assert_int_eq(pthread_create(&waiter.thread, NULL, wait_for_lock, &waiter), 0);
    ck_assert_int_eq(redlock_acquire_start(live.client, "parent", &opts, note_done, &outcome),
                     REDLOCK_OK);
    for (unsigned i = 0; i < 20; i++) {
        struct outcome *none = i == 0 ? &in_flight : NULL;
        if (none != NULL)
            ck_assert_int_eq(redlock_acquire_start(live.client, "parent", &opts, note_done, none),
                             REDLOCK_OK);
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            CHILD_FORKED(redlock_lock_check(handles.lock, 0));
            CHILD_CHECK(redlock_free(live.client) == REDLOCK_OK);
            redlock_lock_free(handles.lock);
            CHILD_CHECK(outcome.calls == 0);
            _exit(0);
        }
        wait_for_child(child);
    }
    ck_assert_int_eq(redlock_lock_check(handles.lock, 0), REDLOCK_OK);
    redlock_cancel_trigger(handles.cancel);
    pthread_join(waiter.thread, NULL);
    CHECK_STATUS(waiter.status, REDLOCK_ECANCELED);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    CHECK_STATUS(outcome_wait(live.client, &in_flight), REDLOCK_ECANCELED);
    check_parent(&handles);
}
END_TEST

/* The parent goes on extending its lock: after the child has ended, the lock was extended and is
 * held. */
START_TEST(the_parent_keeps_extending)
{
    const uint64_t ttl_ms = live_brief_ms(6000);
    redlock_lock_t *lock = NULL;
    events_reset();
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    live_connect();
    redlock_opts_t opts = redlock_opts(ttl_ms);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = ttl_ms - live_brief_ms(200); /* soon after each extension */
    CHECK_STATUS(redlock_acquire(live.client, "parent", &opts, &lock, NULL), REDLOCK_OK);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        CHILD_FORKED(redlock_lock_check(lock, 0));
        redlock_lock_free(lock);
        CHILD_CHECK(redlock_free(live.client) == REDLOCK_OK);
        _exit(0);
    }
    wait_for_child(child);
    const unsigned extended = count_events(&client_events, REDLOCK_EVENT_EXTENDED);
    ck_assert(WAIT_UNTIL(count_events(&client_events, REDLOCK_EVENT_EXTENDED) >= extended + 5,
                         TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(count_events(&client_events, REDLOCK_EVENT_LOST), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A child may create its own client, and its parent's lock excludes it. */
START_TEST(a_child_makes_its_own_client)
{
/* ThreadSanitizer permits no new thread in the child, and one looks at certificate files. */
#ifdef __SANITIZE_THREAD__
    if (live_is_tls())
        return;
#endif
    live_connect();
    redlock_lock_t *lock = live_lock("family", LONG_TTL_MS);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        redlock_lock_t *own = NULL;
        redlock_t *client = NULL;
        redlock_config_t *config = NULL;
        const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        struct outcome taken = OUTCOME, other = OUTCOME;
        CHILD_CHECK(redlock_free(live.client) == REDLOCK_OK);
        CHILD_CHECK(redlock_config_new(&config, NULL) == REDLOCK_OK);
        CHILD_CHECK(redlock_config_add_nodes(config, cluster_urls(live.cluster)) == REDLOCK_OK);
        CHILD_CHECK(redlock_config_set_mode(config, REDLOCK_MODE_EMBEDDED) == REDLOCK_OK);
        CHILD_CHECK(redlock_config_set_node_timeout_ms(config, TIME_LIMIT_MS) == REDLOCK_OK);
        CHILD_CHECK(redlock_config_set_connect_timeout_ms(config, TIME_LIMIT_MS) == REDLOCK_OK);
        CHILD_CHECK(redlock_new(&client, config) == REDLOCK_OK);
        redlock_config_free(config);
        CHILD_CHECK(redlock_acquire_start(client, "family", &opts, note_done, &taken) == 0);
        CHILD_CHECK(redlock_acquire_start(client, "own", &opts, note_done, &other) == 0);
        CHILD_CHECK(LOOP_UNTIL(client, taken.calls + other.calls == 2, TIME_LIMIT_MS));
        CHILD_CHECK(taken.status == REDLOCK_ECONTENDED && other.status == REDLOCK_OK);
        own = other.lock;
        struct outcome released = OUTCOME;
        CHILD_CHECK(redlock_release_start(own, note_done, &released) == REDLOCK_OK);
        CHILD_CHECK(LOOP_UNTIL(client, released.calls == 1, TIME_LIMIT_MS));
        redlock_lock_free(own);
        redlock_free(client);
        _exit(released.status == REDLOCK_OK ? 0 : 1);
    }
    live.freed = true; /* by the child */
    wait_for_child(child);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *fork_suite(void)
{
    Suite *suite = suite_create("fork");
    live_add_each(suite, "child", the_child_is_silent_and_the_parent_unharmed, 6);
    live_add(suite, "middle", children_are_not_affected_by_operations);
    live_add(suite, "extension", the_parent_keeps_extending);
    live_add(suite, "own client", a_child_makes_its_own_client);
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
