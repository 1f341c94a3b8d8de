/* SPDX-License-Identifier: MIT
 * The functions that scenarios call (rig.h): they create the client of a run, start its operations
 * as rig.call[i], turn its loop, and count the keys on the servers. */
#include "rig.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"

#define FINISH_MS    10000 /* an operation that takes longer hangs */
#define PATIENT_MS   8000  /* wait budget without starving; must stay below FINISH_MS */
#define LINE_KEEP_MS 10000 /* the key of a line expires that long after its last use */
#define SPIN_MAX     200   /* more turns in one millisecond than this are a busy loop */

struct rig rig;

/* Makes and uses a connection to each server, because OpenSSL keeps what it allocates first.
 * Exempts its allocations from failures, because oom_tls makes them: where OpenSSL ignores one, in
 * SSL_CTX_new(), the client must read the certificates again, which takes seconds. */
static void warm_up_tls(void)
{
    alloc_fail_exempt_libraries("/libcrypto.", "/libssl.");
    rig_connect();
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    rig.client = NULL;
}

/* Starts the servers for all cases. */
static void open_cluster(void)
{
    const struct cluster_opts opts = {.nodes = RIG_NODES, .password = "sesame", .lasting = true};
    rig.cluster = cluster_start_with(&opts);
    if (rig_is_tls())
        warm_up_tls();
}

/* Returns whether the servers speak TLS. */
bool rig_is_tls(void)
{
    return cluster_cacert(rig.cluster) != NULL;
}

/* Returns how many blocks may stay: OpenSSL keeps the texts of the last sixteen errors of a thread,
 * up to three for each. */
int64_t rig_spare_blocks(void)
{
    return rig_is_tls() ? 48 : 0;
}

/* Stops the servers. */
static void close_cluster(void)
{
    cluster_stop(rig.cluster);
    rig.cluster = NULL;
}

/* Adds the servers for all cases together, and rig_after() after each case. */
void rig_add_fixtures(TCase *tcase)
{
    tcase_add_unchecked_fixture(tcase, open_cluster, close_cluster);
    tcase_add_checked_fixture(tcase, NULL, rig_after);
    tcase_set_timeout(tcase, 0); /* none, because each run has its own */
}

/* Runs the suite in this process, or skips the suite if there is no Redis. Returns the exit status.
 */
int rig_main(Suite *suite)
{
    if (cluster_available())
        return suite_run_nofork(suite);
    srunner_free(srunner_create(suite));
    return suite_skip(CLUSTER_MISSING);
}

/* Prints `what` on stderr and aborts. */
void rig_die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Reads all parts of a report into the call. A part that is missing because memory ran out is
 * skipped; a part without a text aborts. */
static void read_report(const redlock_report_t *report, struct rig_call *call)
{
    redlock_node_report_t node;
    redlock_waiter_t waiter;

    snprintf(call->text, sizeof call->text, "%s", redlock_report_text(report));
    if (redlock_report_get_info(report, &call->info, sizeof call->info) != REDLOCK_OK)
        return;
    for (size_t i = 0; i < call->info.nodes; i++) {
        if (redlock_report_get_node(report, i, &node, sizeof node) != REDLOCK_OK)
            abort();
        if (node.node[0] == '\0' || node.text[0] == '\0' || node.owner == NULL)
            abort();
        call->granted += node.vote == REDLOCK_VOTE_GRANTED;
        call->denied += node.vote == REDLOCK_VOTE_DENIED;
        call->failed += node.vote == REDLOCK_VOTE_FAILED;
    }
    /* Only the report of an inspection has waiters; another one may have a place in a line. */
    for (size_t i = 0; call->info.line_place == 0 && i < call->info.line_length; i++) {
        if (redlock_report_get_waiter(report, i, &waiter, sizeof waiter) != REDLOCK_OK ||
            waiter.owner == NULL)
            abort();
    }
    if (!rig.frugal) /* the copy allocates */
        redlock_report_free(redlock_report_ref(report));
}

/* Stores the result of an operation in its call, and counts the callback. */
void rig_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
              void *userdata)
{
    struct rig_call *call = userdata;

    (void)rl;
    call->status = status;
    call->lock = call->borrows ? NULL : lock;
    if (report != NULL)
        read_report(report, call);
    call->callbacks++; /* last, because another thread may be waiting for it */
}

/* Returns whether `error` is a result that a function for statistics may have in a callback: OK, or
 * ECLOSED while the client is being freed. */
static bool may_ask(int error)
{
    return error == REDLOCK_OK || error == REDLOCK_ECLOSED;
}

/* Counts the event and reads all that it refers to. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    redlock_node_stats_t node;
    redlock_stats_t stats;

    (void)userdata;
    if (event->kind > 0 && event->kind < 16)
        rig.events[event->kind]++;
    if (event->report != NULL && redlock_report_text(event->report) == NULL)
        abort();
    if (!rig.frugal) /* the reference fails without memory */
        redlock_report_free(redlock_report_ref(event->report));
    if (!may_ask(redlock_get_stats(rl, &stats, sizeof stats)) ||
        !may_ask(redlock_get_node_stats(rl, 0, &node, sizeof node)))
        abort();
}

/* Checks that each log line has a text. */
static void on_log(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    if (message == NULL || message[0] == '\0')
        abort();
}

/* Fails the case unless the result of a setter of the configuration is OK. */
static void configure(int error)
{
    ck_assert_msg(error == REDLOCK_OK, "%s", redlock_config_error(rig.config));
}

/* Creates rig.config for a client in `mode` of the servers at `urls`, with this file's callbacks,
 * and with pauses of 1 to 3 ms so that runs are short. */
void rig_new_config_for(int mode, const char *urls)
{
    ck_assert_int_eq(redlock_config_new(&rig.config, NULL), REDLOCK_OK);
    configure(redlock_config_add_nodes(rig.config, urls));
    configure(redlock_config_set_mode(rig.config, mode));
    configure(redlock_config_set_owner(rig.config, "oom@test"));
    configure(redlock_config_set_event(rig.config, on_event, NULL));
    configure(redlock_config_set_log(rig.config, REDLOCK_LOG_DEBUG, on_log, NULL));
    configure(redlock_config_set_fence_records(rig.config, REDLOCK_FENCE_RECORDS_VOLATILE));
    configure(redlock_config_set_retry_ms(rig.config, 1, 3));
    /* A busy machine must not look like a dead server. */
    configure(redlock_config_set_node_timeout_ms(rig.config, (uint32_t)wait_scaled_ms(500)));
    configure(redlock_config_set_connect_timeout_ms(rig.config, (uint32_t)wait_scaled_ms(500)));
}

/* Creates rig.config for a client in `mode` of the rig's servers. */
void rig_new_config(int mode)
{
    rig_new_config_for(mode, cluster_urls(rig.cluster));
}

/* Records in rig.call[i] the result of a function that starts an operation. */
void rig_started(unsigned i, int result)
{
    rig.call[i].used = true;
    rig.call[i].started = result;
}

/* Counts an acquisition that can have no more events. */
static void on_end(void *ended)
{
    ++*(atomic_uint *)ended;
}

/* Starts to acquire the resource as rig.call[i], and counts the acquisition in rig.begun. */
void rig_acquire(unsigned i, const char *resource, const redlock_opts_t *opts)
{
    redlock_opts_t own = *opts;

    own.event_userdata = &rig.ended;
    own.event_end_fn = on_end;
    rig.begun++;
    rig_started(i, redlock_acquire_start(rig.client, resource, &own, rig_done, &rig.call[i]));
}

/* Starts to release the lock as rig.call[i]. */
void rig_release(unsigned i, redlock_lock_t *lock)
{
    rig.call[i].borrows = true;
    rig_started(i, redlock_release_start(lock, rig_done, &rig.call[i]));
}

/* Starts to extend the lock to a TTL of `ttl_ms` as rig.call[i]. */
void rig_extend(unsigned i, redlock_lock_t *lock, uint64_t ttl_ms)
{
    rig.call[i].borrows = true;
    rig_started(i, redlock_extend_start(lock, ttl_ms, rig_done, &rig.call[i]));
}

/* Returns false: a condition for rig_drive() that never holds. */
bool rig_never(void)
{
    return false;
}

/* Returns the wait budget of an acquisition in ms: `starving_ms` if all later allocations fail,
 * PATIENT_MS otherwise. Sets rig.hasty in the first case. */
uint64_t rig_wait_ms(uint64_t starving_ms)
{
    rig.hasty = rig.starve;
    return wait_scaled_ms(rig.starve ? starving_ms : PATIENT_MS);
}

/* Returns whether a server sends notifications to the client. */
bool rig_any_notifies(void)
{
    for (unsigned i = 0; i < RIG_NODES; i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(rig.client, i, &stats, sizeof stats) == REDLOCK_OK &&
            stats.notify_state == REDLOCK_NOTIFY_ON)
            return true;
    }
    return false;
}

/* Returns true if a server sends notifications, if the chosen allocation has failed, or if all
 * calls have had their callback. */
bool rig_notifies_or_failed(void)
{
    return rig_any_notifies() || rig_has_failed() || rig_all_notified();
}

/* Returns whether no server has a key. */
bool rig_no_keys(void)
{
    return cluster_count_all_keys(rig.cluster) == 0;
}

/* Turns the client's loop until `until` returns true. Returns false if it does not within
 * `deadline_ms` (scaled for slow builds). A threaded client needs no turns, so the function only
 * waits. */
bool rig_drive(rig_condition_fn until, uint64_t deadline_ms)
{
    const uint64_t begin = wait_now_ms();
    const uint64_t end = begin + wait_scaled_ms(deadline_ms);
    uint64_t turns = 0;

    while (!until()) {
        const uint64_t now = wait_now_ms();
        if (now >= end)
            return false;
        if (turns++ > (now - begin + 20) * SPIN_MAX)
            rig_die("the loop spins");
        if (rig.threaded) {
            wait_pause();
            continue;
        }
        struct pollfd ready = {.fd = redlock_get_fd(rig.client), .events = POLLIN};
        const uint64_t left = end - now;
        (void)poll(&ready, 1, left < 5 ? (int)left : 5);
        if (redlock_process(rig.client) != REDLOCK_OK)
            abort();
    }
    return true;
}

/* Returns whether all calls that were started have had their callback. */
bool rig_all_notified(void)
{
    for (unsigned i = 0; i < RIG_CALLS; i++)
        if (rig.call[i].used && rig.call[i].started == REDLOCK_OK && rig.call[i].callbacks == 0)
            return false;
    return true;
}

/* Turns the loop until all calls have had their callback. Aborts after FINISH_MS. */
void rig_finish(void)
{
    if (!rig_drive(rig_all_notified, FINISH_MS))
        rig_die("an operation has not ended within ten seconds");
}

/* Sends a command to one server, with memory even in the middle of a run. */
void rig_command(unsigned node, const char *command)
{
    rig_exempt(true);
    free(cluster_command(rig.cluster, node, command));
    rig_exempt(false);
}

/* Sends a command to all servers, with memory even in the middle of a run. */
void rig_command_all(const char *command)
{
    rig_exempt(true);
    cluster_command_all(rig.cluster, command);
    rig_exempt(false);
}

/* Returns true if the value under the key is that of rig.lock. */
static bool is_ours(const char *key, const char *value)
{
    return rig.lock != NULL && strcmp(key, redlock_lock_resource(rig.lock, 0)) == 0 &&
           strcmp(value, redlock_lock_token(rig.lock)) == 0;
}

/* Returns true if the key is that of a line, and expires soon. A client without memory cannot send
 * that it leaves. */
static bool is_expiring_line(unsigned node, const char *key)
{
    const size_t len = strlen(key), suffix = sizeof RIG_LINE_SUFFIX - 1;

    if (!rig.hit || len < suffix || strcmp(key + len - suffix, RIG_LINE_SUFFIX) != 0)
        return false;
    const int64_t left_ms = cluster_integer(rig.cluster, node, "PTTL %s", key);
    return left_ms > 0 && left_ms <= LINE_KEEP_MS;
}

/* Adds the keys of one server to the sums: to `ret_held` the key with the token of rig.lock, to
 * `ret_strays` each other key, unless it has a foreign token or is an expiring line. */
static void count_keys(unsigned node, unsigned *ret_held, size_t *ret_strays)
{
    char **keys = cluster_keys(rig.cluster, node);

    for (char **key = keys; *key != NULL; key++) {
        char *value = cluster_command(rig.cluster, node, "GET %s", *key);
        const bool gone = value == NULL || strcmp(value, "(nil)") == 0;
        const bool ours = !gone && is_ours(*key, value);
        const bool foreign = !gone && strncmp(value, "foreign", 7) == 0;
        *ret_held += ours;
        *ret_strays += !gone && !ours && !foreign && !is_expiring_line(node, *key);
        free(value);
    }
    cluster_keys_free(keys);
}

/* Returns the number of servers with the key and token of rig.lock. */
unsigned rig_count_held(void)
{
    unsigned held = 0;
    size_t strays = 0;

    for (unsigned i = 0; i < RIG_NODES; i++)
        count_keys(i, &held, &strays);
    return held;
}

/* Returns the number of keys on all servers that belong neither to rig.lock nor to a foreign token.
 * In a run in which something failed, lines that expire soon are not counted. */
size_t rig_strays(void)
{
    unsigned held = 0;
    size_t strays = 0;

    for (unsigned i = 0; i < RIG_NODES; i++)
        count_keys(i, &held, &strays);
    return strays;
}

/* Fails the case unless call `i` had one callback and its status is in the list `allowed`, which
 * ends with RIG_END. If no allocation has failed, the status must be the first of the list. */
void rig_expect(unsigned i, const int *allowed)
{
    const struct rig_call *call = &rig.call[i];
    const int status = call->started != REDLOCK_OK ? call->started : call->status;

    ck_assert_msg(call->used, "call %u was not made", i);
    ck_assert_uint_eq(call->callbacks, call->started == REDLOCK_OK ? 1 : 0);
    if (!rig.hit && !rig.hasty) {
        ck_assert_msg(status == allowed[0], "nothing failed, but %s: %s",
                      redlock_error_name(status), call->text);
        return;
    }
    while (*allowed != RIG_END && *allowed != status)
        allowed++;
    ck_assert_msg(*allowed == status, "call %u: %s (%s) is not what this failure explains", i,
                  redlock_error_name(status), call->text);
}

/* Returns true if call 0 has had its callback. */
static bool call_0_has_ended(void)
{
    return rig.call[0].callbacks > 0;
}

/* Waits for the end of call 0, and fails the case unless its status is `expected`. `what` names the
 * operation in messages. */
static void settle_call(int expected, const char *what)
{
    ck_assert_msg(rig.call[0].started == REDLOCK_OK, "%s: %s", what,
                  redlock_error_name(rig.call[0].started));
    ck_assert_msg(rig_drive(call_0_has_ended, FINISH_MS), "%s does not end", what);
    ck_assert_msg(rig.call[0].status == expected, "%s: %s: %s", what,
                  redlock_error_name(rig.call[0].status), rig.call[0].text);
}

/* Acquires the lock as rig.lock and waits for the grant. Uses call 0 and resets all calls. */
void rig_hold(const char *resource, const redlock_opts_t *opts)
{
    memset(rig.call, 0, sizeof rig.call);
    rig_acquire(0, resource, opts);
    settle_call(REDLOCK_OK, "taking the lock");
    rig.lock = rig.call[0].lock;
    memset(rig.call, 0, sizeof rig.call);
}

/* Returns true if each node has granted a lock to this client. */
static bool all_granted(void)
{
    redlock_node_stats_t node;

    for (unsigned i = 0; i < RIG_NODES; i++)
        if (redlock_get_node_stats(rig.client, i, &node, sizeof node) != REDLOCK_OK ||
            node.granted == 0)
            return false;
    return true;
}

/* Acquires rig.lock and waits until all nodes have granted it. Must be the client's first lock. */
void rig_hold_on_all(const char *resource, const redlock_opts_t *opts)
{
    rig_hold(resource, opts);
    ck_assert_msg(rig_drive(all_granted, FINISH_MS), "not all nodes have granted the lock");
}

/* Returns true if each node is eligible and the run id of its server known. */
static bool all_up(void)
{
    redlock_node_stats_t node;

    for (unsigned i = 0; i < RIG_NODES; i++)
        if (redlock_get_node_stats(rig.client, i, &node, sizeof node) != REDLOCK_OK ||
            node.eligible == 0 || node.run_id[0] == '\0')
            return false;
    return true;
}

/* Creates rig.client in embedded mode and waits until all nodes are eligible. */
void rig_connect(void)
{
    rig_new_config(REDLOCK_MODE_EMBEDDED);
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    redlock_config_free(rig.config);
    rig.config = NULL;
    ck_assert_msg(rig_drive(all_up, FINISH_MS), "not all nodes answered");
}

/* Creates the client (call 0), acquires the lock "resource" (call 1) and waits for both. Returns
 * true if rig.lock is that lock. */
bool rig_take(const redlock_opts_t *opts)
{
    rig_started(0, redlock_new(&rig.client, rig.config));
    rig.call[0].callbacks = 1; /* it has no callback */
    if (rig.call[0].started != REDLOCK_OK)
        return false;
    rig_acquire(1, "resource", opts);
    rig_finish();
    rig.lock = rig.call[1].lock;
    rig.call[1].lock = NULL;
    return rig.lock != NULL;
}
