/* SPDX-License-Identifier: MIT
 * Servers that run but fail requests: scripts removed, connections cut, busy, out of memory, slow,
 * paused. The caller gets the lock or a cause, and no key is left.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted.
 * live_acquire(), live_extend() and live_release() return the status of one call and keep its
 * report, which live_info(), live_node() and live_text() read. live_check_works() acquires,
 * extends and releases a lock, which must succeed. WAIT_UNTIL(condition, ms) polls and returns
 * false after the deadline. wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS()
 * compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "server.h"
#include "suite.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

/* Sends a command on a new connection, which is returned, without waiting for the reply. The server
 * has accepted the connection before, so that it executes this command before later requests. */
static redisContext *send_without_waiting(unsigned node, const char *format, ...)
{
    va_list arguments;
    int done = 0;
    redisContext *side = cluster_connect(live.cluster, node);
    ck_assert_ptr_nonnull(side);
    freeReplyObject(redisCommand(side, "PING"));
    va_start(arguments, format);
    ck_assert_int_eq(redisvAppendCommand(side, format, arguments), REDIS_OK);
    va_end(arguments);
    while (!done)
        ck_assert_int_eq(redisBufferWrite(side, &done), REDIS_OK);
    return side;
}

/* Sends a command to the first `count` servers, which must reply `text`. */
static void on_each(unsigned count, const char *text, const char *command)
{
    for (unsigned i = 0; i < count; i++)
        ck_assert_msg(cluster_replies(live.cluster, i, text, command), "node %u: %s", i, command);
}

/* Returns whether the server replies that it is busy with a script. */
static bool is_busy(unsigned node)
{
    char *reply = cluster_command(live.cluster, node, "PING");
    const bool busy = reply != NULL && strncmp(reply, "(error) BUSY", 12) == 0;
    free(reply);
    return busy;
}

/* Ends all running scripts. */
static void kill_scripts(void)
{
    cluster_command_all(live.cluster, "SCRIPT KILL");
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(!is_busy(i), TIME_LIMIT_MS));
}

/* Undoes all changes of the servers' state. */
static void heal(void)
{
    kill_scripts();
    cluster_command_all(live.cluster, "CONFIG SET maxmemory 0");
    cluster_command_all(live.cluster, "CLIENT UNPAUSE");
}

/* After SCRIPT FLUSH, an extension, a release and a release with a delay succeed in the same
 * round, without errors or new connections. */
START_TEST(forgotten_scripts_are_sent_again)
{
    live_connect();
    redlock_lock_t *lock = live_lock("flushed", LONG_TTL_MS);
    on_each(NODES, "OK", "SCRIPT FLUSH");
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(live_info().rounds, 1);
    on_each(NODES, "OK", "SCRIPT FLUSH");
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_uint_eq(live_node_stats(live.client, i).errors, 0);
        ck_assert_uint_eq(live_node_stats(live.client, i).reconnects, 0);
    }
    lock = live_lock("flushed", LONG_TTL_MS);
    on_each(NODES, "OK", "SCRIPT FLUSH");
    CHECK_STATUS(redlock_release_after(lock, 50, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Cuts all connections, and waits until the client has connected again. */
static void cut_connections(void)
{
    uint64_t before[NODES];
    for (unsigned i = 0; i < NODES; i++)
        before[i] = live_node_stats(live.client, i).reconnects;
    cluster_command_all(live.cluster, "CLIENT KILL TYPE normal");
    for (unsigned i = 0; i < NODES; i++) {
        const bool renewed = WAIT_UNTIL(live_node_stats(live.client, i).reconnects > before[i] &&
                                            live_node_stats(live.client, i).eligible == 1,
                                        TIME_LIMIT_MS);
        const redlock_node_stats_t stats = live_node_stats(live.client, i);
        ck_assert_msg(renewed, "node %u does not connect again: cause %d, \"%s\"", i, stats.cause,
                      stats.text);
    }
}

/* If connections were short, a client waits longer before each next one;
 * test/unit/node/test_connect.c tests these delays in virtual time. Here each client sees two cuts,
 * and one of them four. */
START_TEST(cut_connections_between_calls_are_renewed)
{
    live_connect();
    for (int i = 0; i < 10; i++) {
        redlock_lock_t *lock = live_lock("cut", LONG_TTL_MS);
        cut_connections();
        CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
        cut_connections();
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
        if (i != 0) {
            live_leave();
            live_connect();
        }
    }
}
END_TEST

/* A thread that acquires and releases a lock again and again. */
struct worker {
    atomic_bool stop;
    atomic_uint rounds; /* calls of redlock_acquire() */
    unsigned failed;    /* of these, calls that failed */
    int status;         /* of the last failure */
};

/* Thread function: acquires and releases "middle" until `stop`, and counts failed acquisitions.
 * A release may fail, because connections are cut. */
static void *lock_and_release(void *userdata)
{
    struct worker *worker = userdata;
    while (!atomic_load(&worker->stop)) {
        redlock_lock_t *lock = NULL;
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
        const int status = redlock_acquire(live.client, "middle", &opts, &lock, NULL);
        worker->failed += status != REDLOCK_OK;
        worker->status = status != REDLOCK_OK ? status : worker->status;
        if (status == REDLOCK_OK) {
            /* A release whose connections are cut may fail. */
            redlock_release(lock, NULL);
            redlock_lock_free(lock);
        }
        atomic_fetch_add(&worker->rounds, 1);
    }
    return NULL;
}

/* Cuts all connections `times` times while a new client takes and releases locks. */
static void cut_in_the_middle(int times)
{
    struct worker worker = {.failed = 0};
    pthread_t thread;
    live_connect();
    ck_assert_int_eq(pthread_create(&thread, NULL, lock_and_release, &worker), 0);
    for (int i = 0; i < times; i++) {
        const unsigned rounds = atomic_load(&worker.rounds);
        cluster_command_all(live.cluster, "CLIENT KILL TYPE normal");
        ck_assert(WAIT_UNTIL(atomic_load(&worker.rounds) > rounds, TIME_LIMIT_MS));
    }
    atomic_store(&worker.stop, true);
    pthread_join(thread, NULL);
    ck_assert_msg(worker.failed == 0, "%u of %u failed, %s", worker.failed,
                  atomic_load(&worker.rounds), redlock_error_name(worker.status));
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    live_leave();
}

/* Connections are cut again and again while a thread acquires and releases: no key is left. */
START_TEST(cut_connections_in_the_middle_leave_nothing)
{
    cut_in_the_middle(6); /* long enough that connections are delayed */
    for (int i = 0; i < 18; i++)
        cut_in_the_middle(3);
}
END_TEST

/* Three servers run an endless script: acquisitions fail with the cause BUSY, and deletes that
 * were refused are repeated when the scripts are killed. */
START_TEST(busy_servers_are_reported_and_undone_later)
{
    redisContext *side[3];
    redlock_lock_t *lock = NULL;
    live_connect();
    live.heal = heal;
    redlock_lock_t *held = live_lock("held", LONG_TTL_MS);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG SET lua-time-limit 1"));
        side[i] = send_without_waiting(i, "EVAL %s 0", "while true do end");
        ck_assert(WAIT_UNTIL(is_busy(i), TIME_LIMIT_MS));
    }
    CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_msg(live_node(i).cause == REDLOCK_CAUSE_BUSY, "node %u: %s", i, live_text());
        ck_assert_msg(strstr(live_node(i).text, "busy") != NULL, "node %u: %s", i, live_text());
    }
    CHECK_STATUS(live_release(held), REDLOCK_ENOQUORUM);
    kill_scripts();
    for (unsigned i = 0; i < 3; i++)
        redisFree(side[i]);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS)); /* refused deletes are repeated */
    live_check_works();
}
END_TEST

/* Servers without memory refuse new locks with the cause OOM, but extend and release held ones. */
START_TEST(a_server_at_maxmemory_still_extends_and_releases)
{
    redlock_lock_t *lock = NULL;
    live_connect();
    live.heal = heal;
    redlock_lock_t *held = live_lock("held", LONG_TTL_MS);
    redlock_lock_t *kept = live_lock("kept", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("kept") == NODES, TIME_LIMIT_MS));
    on_each(NODES, "OK", "CONFIG SET maxmemory 1");
    CHECK_STATUS(live_acquire("new", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    unsigned named = 0;
    for (unsigned i = 0; i < NODES; i++)
        named += live_node(i).cause == REDLOCK_CAUSE_OOM;
    ck_assert_msg(named >= QUORUM, "%s", live_text());
    CHECK_STATUS(live_extend(held, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    CHECK_STATUS(redlock_release_after(kept, 20, NULL), REDLOCK_OK);
    redlock_lock_free(kept);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    on_each(NODES, "OK", "CONFIG SET maxmemory 0");
    live_check_works();
}
END_TEST

/* Three of five servers do not reply during one attempt. With a wait budget the lock is acquired in
 * a later one. */
START_TEST(a_slow_majority_is_waited_for)
{
    redisContext *side[3];
    redlock_lock_t *lock = NULL;
    char command[64];
    live.silence = true;
    live_connect();
    snprintf(command, sizeof command, "DEBUG SLEEP %.1f", 3 * live_unresponsive_ms() / 1000.0);
    for (unsigned i = 0; i < 3; i++)
        side[i] = send_without_waiting(i, command);
    CHECK_STATUS(live_acquire("asleep", LONG_TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock),
                 REDLOCK_OK);
    ck_assert_uint_gt(live_info().attempts, 1);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        redisFree(side[i]);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Checks that an acquisition fails because three servers do not reply in time. */
static void check_paused(void)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire("paused", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_msg(live_node(i).cause == REDLOCK_CAUSE_TIMEOUT, "node %u: %s", i, live_text());
}

/* With CLIENT PAUSE, commands wait in the server. Each late SET is followed by its undo. The pause
 * that UNPAUSE ends comes last: in Redis 6.2 a later, shorter pause lasts as long as it would have.
 */
START_TEST(paused_clients_leave_nothing)
{
    live.silence = true;
    live_connect();
    live.heal = heal;
    char command[64];
    snprintf(command, sizeof command, "CLIENT PAUSE %u ALL", 3 * live_unresponsive_ms());
    on_each(3, "OK", command);
    check_paused();
    live_check_works();
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    on_each(3, "OK", "CLIENT PAUSE 60000 WRITE");
    check_paused();
    on_each(3, "OK", "CLIENT UNPAUSE");
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    live_check_works();
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *server_errors_suite(void)
{
    Suite *suite = suite_create("live_server_errors");
    live_add(suite, "scripts", forgotten_scripts_are_sent_again);
    live_add(suite, "cut between", cut_connections_between_calls_are_renewed);
    live_add(suite, "cut in the middle", cut_connections_in_the_middle_leave_nothing);
    live_add(suite, "busy", busy_servers_are_reported_and_undone_later);
    live_add(suite, "out of memory", a_server_at_maxmemory_still_extends_and_releases);
    live_add(suite, "asleep", a_slow_majority_is_waited_for);
    live_add(suite, "paused", paused_clients_leave_nothing);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    /* Servers before 7.0 allow DEBUG to every client, and refuse the option. */
    static const char *const args[] = {"--enable-debug-command", "yes", NULL};
    const struct cluster_opts opts = {.args = server_major() >= 7 ? args : NULL};
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers_with(&opts);
    const int status = suite_run_nofork(server_errors_suite());
    live_stop_servers();
    return status;
}
