/* SPDX-License-Identifier: MIT
 * Undos for servers that are stopped or dead: a release or release_after that a server missed is
 * sent when it is back. When the key must have expired, the undo is dropped.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted. live_release()
 * returns the status of one call and keeps its report. live_pause(first, count) stops servers with
 * SIGSTOP. live_voters() counts the eligible nodes, live_responsive() the nodes that reply.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. */
#include "live.h"
#include "suite.h"

#include <inttypes.h>

/* Returns the time to live of the key on the server in ms; -2: there is no such key. */
static int64_t pttl(unsigned node, const char *key)
{
    return cluster_integer(live.cluster, node, "PTTL %s", key);
}

/* Acquires a lock, and waits until all nodes have its key. */
static redlock_lock_t *lock_on_all(const char *resource, uint64_t ttl_ms)
{
    redlock_lock_t *lock = live_lock(resource, ttl_ms);
    ck_assert(WAIT_UNTIL(live_nodes_with(resource) == NODES, TIME_LIMIT_MS));
    return lock;
}

/* Restarts a server with the key of a released lock in its data, and waits until no undo is
 * pending. */
static void restart_with_data(unsigned node)
{
    cluster_restart(live.cluster, node, true);
    ck_assert(WAIT_UNTIL(live_is_responsive(live.client, node), TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, node).undos_pending == 0, TIME_LIMIT_MS));
}

/* Server 0 is dead when a lock is released, and is restarted with its data: the pending undo
 * deletes the key there. With _i = 0 the client has noticed the death before the release. */
START_TEST(a_release_is_repeated_after_a_restart)
{
    live_connect();
    redlock_lock_t *lock = lock_on_all("released", LONG_TTL_MS);
    cluster_kill(live.cluster, 0);
    if (_i == 0)
        ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES - 1, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert_uint_eq(live_node_stats(live.client, 0).undos_pending, 1);
    restart_with_data(0);
    ck_assert_uint_eq(live_calls(0, "del"), 1); /* the key was there, and it was deleted */
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The undo has reached the server, which died before it executed it. */
START_TEST(an_unanswered_release_is_repeated_after_a_restart)
{
    live_connect();
    redlock_lock_t *lock = lock_on_all("unanswered", LONG_TTL_MS);
    live_pause(0, 2);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(live_node_stats(live.client, i).undos_pending, 1);
        restart_with_data(i);
        ck_assert_uint_eq(live_calls(i, "del"), 1);
    }
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A majority is dead during the release: the release fails, but the keys are deleted later. */
START_TEST(a_failed_release_is_repeated)
{
    live_connect();
    redlock_lock_t *lock = lock_on_all("failed", LONG_TTL_MS);
    for (unsigned i = 0; i < 3; i++)
        cluster_kill(live.cluster, i);
    CHECK_STATUS(live_release(lock), REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < 3; i++)
        restart_with_data(i);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The key stays for the requested time, counted from the call and not from the restart. _i 0: the
 * server is dead; 1: it is stopped and then restarted; 2: it is stopped. */
START_TEST(a_release_after_is_repeated_after_a_restart)
{
    const int64_t delay_ms = (int64_t)wait_scaled_ms(5000), away_ms = 1000;
    live_connect();
    redlock_lock_t *lock = lock_on_all("kept", LONG_TTL_MS);
    if (_i == 0)
        cluster_kill(live.cluster, 0);
    else
        live_pause(0, 1);
    CHECK_STATUS(redlock_release_after(lock, (uint64_t)delay_ms, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    /* A server that is only stopped has received the command, and counts from its execution. */
    if (_i == 2) {
        live_resume_all();
    } else {
        ck_assert(WAIT_UNTIL(pttl(4, "kept") <= delay_ms - away_ms, TIME_LIMIT_MS));
        restart_with_data(0);
    }
    ck_assert(WAIT_UNTIL(pttl(0, "kept") <= delay_ms, TIME_LIMIT_MS));
    /* Reads the late server last, so that a pause between the two makes its time shorter. */
    const int64_t other_ms = pttl(4, "kept"), late_ms = pttl(0, "kept");
    ck_assert_msg(late_ms > 0 && late_ms <= delay_ms, "%" PRId64 " ms are left", late_ms);
    ck_assert_msg(_i == 2 || late_ms <= other_ms + away_ms / 2,
                  "%" PRId64 " ms on the late server, %" PRId64 " on another", late_ms, other_ms);
    ck_assert_uint_eq(live_nodes_with("kept"), NODES);
    cluster_command_all(live.cluster, "DEL kept");
}
END_TEST

/* The delay has passed when the node is back: the key is deleted at once. */
START_TEST(a_release_after_past_its_delay_deletes)
{
    live_connect();
    redlock_lock_t *lock = lock_on_all("passed", LONG_TTL_MS);
    cluster_kill(live.cluster, 0);
    CHECK_STATUS(redlock_release_after(lock, 50, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(WAIT_UNTIL(!live_has_key(1, "passed") && !live_has_key(4, "passed"), TIME_LIMIT_MS));
    restart_with_data(0);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A pending undo for a dead server is dropped when the key must have expired, and does not count
 * as done. */
START_TEST(an_undo_expires_with_its_key)
{
    const uint64_t ttl_ms = live_brief_ms(1200);
    live.max_ttl_ms = ttl_ms;
    live_connect();
    redlock_lock_t *lock = lock_on_all("expired", ttl_ms);
    cluster_kill(live.cluster, 0);
    const uint64_t undone = live_stats(live.client).undone + NODES - 1;
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    const uint64_t from_ms = wait_now_ms();
    ck_assert_uint_eq(live_node_stats(live.client, 0).undos_pending, 1);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).undos_pending == 0, TIME_LIMIT_MS));
    ck_assert_msg(wait_now_ms() - from_ms >= ttl_ms / 2, "dropped after %d of %d ms",
                  (int)(wait_now_ms() - from_ms), (int)ttl_ms);
    ck_assert_uint_eq(live_stats(live.client).undone, undone);
}
END_TEST

/* A shutdown waits for the releases on the servers that reply, but not for a dead and a stopped
 * one.
 */
START_TEST(shutdown_does_not_wait_for_unreachable_servers)
{
    live.silence = true;
    live_connect();
    redlock_lock_t *lock = lock_on_all("shutdown", LONG_TTL_MS);
    live_pause(0, 1);
    cluster_kill(live.cluster, 1);
    const uint64_t from_ms = wait_now_ms();
    ck_assert_int_eq(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert_uint_lt(wait_now_ms() - from_ms, wait_scaled_ms(TIME_LIMIT_MS) / 2);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
    for (unsigned i = 2; i < NODES; i++)
        ck_assert_uint_eq(cluster_count_keys(live.cluster, i), 0);
    live_disconnect();
    live_resume_all(); /* the stopped server had received the delete */
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *pending_undos_suite(void)
{
    Suite *suite = suite_create("live_pending_undos");
    live_add_each(suite, "release", a_release_is_repeated_after_a_restart, 2);
    live_add(suite, "unanswered", an_unanswered_release_is_repeated_after_a_restart);
    live_add(suite, "failed", a_failed_release_is_repeated);
    live_add_each(suite, "release_after", a_release_after_is_repeated_after_a_restart, 3);
    live_add(suite, "release_after, late", a_release_after_past_its_delay_deletes);
    live_add(suite, "expiry", an_undo_expires_with_its_key);
    live_add(suite, "shutdown", shutdown_does_not_wait_for_unreachable_servers);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    const struct cluster_opts opts = {.keep_data = true};
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers_with(&opts);
    const int status = suite_run_nofork(pending_undos_suite());
    live_stop_servers();
    return status;
}
