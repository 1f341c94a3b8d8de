/* SPDX-License-Identifier: MIT
 * Two shards in one client: each has a quorum of its own, and calls that concern the whole client
 * take effect in both.
 *
 * Uses live.h: ten real servers in two shards, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client from a
 * configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_lock() acquires a lock, which must be granted. live_acquire(), live_extend() and
 * live_release() return the status of one call and keep its report, which live_info() reads.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. From live_events.h: note_event() copies each event into its userdata:
 * client_events or lock_events. note_done() stores the result of an asynchronous call in a struct
 * outcome, and outcome_wait() waits for it and returns its status. From two_shards.h: servers 0 to
 * 4 belong to shard 0 ("east"), 5 to 9 to shard 1 ("west"); connect_both() creates live.client for
 * both, and resource_in() returns a name that belongs to one of them. */
#include "fdcheck.h"
#include "live_events.h"
#include "suite.h"
#include "two_shards.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two of five servers may fail in each shard. A shard without a majority does not affect the other
 * one. */
START_TEST(each_shard_has_its_own_quorum)
{
    char east[64], west[64];
    redlock_lock_t *held, *lock;
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    events_reset();
    connect_both();
    resource_in(0, "quorum", 0, east);
    resource_in(1, "quorum", 0, west);
    held = live_lock(west, LONG_TTL_MS);
    for (unsigned i = 0; i < 2; i++) {
        cluster_kill(live.cluster, i);
        cluster_kill(live.cluster, EACH + i);
    }
    for (unsigned i = 0; i < 2; i++)
        ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, i) &&
                                 !live_is_responsive(live.client, EACH + i),
                             TIME_LIMIT_MS));
    lock = live_lock(east, LONG_TTL_MS);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    CHECK_STATUS(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    cluster_kill(live.cluster, 2);
    ck_assert(WAIT_UNTIL(!live_is_responsive(live.client, 2), TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire(east, LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    ck_assert_str_eq(live_info().shard, SHARD_NAMES[0]);
    CHECK_STATUS(redlock_wait_ready(live.client, 50), REDLOCK_ENOQUORUM);
    CHECK_STATUS(live_extend(held, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    ck_assert_uint_eq(shard_stats(0).no_quorum, 1);
    ck_assert_uint_eq(shard_stats(1).no_quorum, 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        const char *name = live_node_stats(live.client, i).node;
        const bool killed = i < 3 || i == EACH || i == EACH + 1;
        ck_assert_msg(WAIT_UNTIL((count_events_of(&client_events, REDLOCK_EVENT_NODE_DOWN, name) >
                                  0) == killed,
                                 TIME_LIMIT_MS),
                      "%s: events NODE_DOWN", name);
    }
}
END_TEST

/* A shutdown ends when no undo is pending in any shard. The servers of shard _i are stopped. */
START_TEST(shutdown_waits_for_both_shards)
{
    char name[64];
    const unsigned silent = (unsigned)_i;
    connect_both();
    redlock_lock_t *lock = live_lock(resource_in(silent, "both-end", 0, name), LONG_TTL_MS);
    for (unsigned i = 0; i < EACH; i++)
        cluster_pause(live.cluster, silent * EACH + i);
    CHECK_STATUS(redlock_shutdown(live.client, 1), REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < EACH; i++)
        cluster_resume(live.cluster, silent * EACH + i);
    CHECK_STATUS(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(WAIT_UNTIL(cluster_count_all_keys(live.cluster) == 0, TIME_LIMIT_MS));
}
END_TEST

/* redlock_break() deletes the keys on the servers of the resource's shard. */
START_TEST(a_break_deletes_in_its_shard)
{
    char name[64];
    connect_both();
    for (unsigned shard = 0; shard < 2; shard++) {
        redlock_lock_t *lock = live_lock(resource_in(shard, "broken", 0, name), LONG_TTL_MS);
        ck_assert(WAIT_UNTIL(count_in(shard, name) == EACH, TIME_LIMIT_MS));
        CHECK_STATUS(redlock_break(live.client, name, NULL), REDLOCK_OK);
        ck_assert(WAIT_UNTIL(count_in(shard, name) == 0, TIME_LIMIT_MS));
        (void)live_release(lock);
    }
}
END_TEST

/* One cancel object ends a waiter in each shard. */
START_TEST(one_cancel_ends_waiters_of_both)
{
    char name[64];
    redlock_cancel_t *cancel;
    redlock_lock_t *held[2];
    struct outcome outcomes[2] = {OUTCOME, OUTCOME};
    connect_both();
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    for (unsigned shard = 0; shard < 2; shard++) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.wait_ms = REDLOCK_WAIT_FOREVER;
        opts.cancel = cancel;
        held[shard] = live_lock(resource_in(shard, "canceled", 0, name), LONG_TTL_MS);
        ck_assert_int_eq(
            redlock_acquire_start(live.client, name, &opts, note_done, &outcomes[shard]),
            REDLOCK_OK);
    }
    redlock_cancel_trigger(cancel);
    for (unsigned shard = 0; shard < 2; shard++) {
        CHECK_STATUS(outcome_wait(live.client, &outcomes[shard]), REDLOCK_ECANCELED);
        CHECK_STATUS(live_release(held[shard]), REDLOCK_OK);
    }
    redlock_cancel_free(cancel);
}
END_TEST

/* After a fork, the child frees locks and client, with the connections to all SERVERS servers.
 * The parent's locks in both shards stay held. */
START_TEST(a_child_frees_both)
{
    char name[64];
    redlock_lock_t *held[2];
    connect_both();
    for (unsigned shard = 0; shard < 2; shard++)
        held[shard] = live_lock(resource_in(shard, "forked", 0, name), LONG_TTL_MS);
    const pid_t child = fork();
    if (child == 0) {
        const bool dead = redlock_extend(held[1], 0, NULL) == REDLOCK_EFORKED;
        const size_t before = fdcheck_count();
        redlock_lock_free(held[0]);
        redlock_lock_free(held[1]);
        const bool freed = redlock_free(live.client) == REDLOCK_OK;
        _exit(dead && freed && fdcheck_count() + SERVERS <= before ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    for (unsigned shard = 0; shard < 2; shard++) {
        CHECK_STATUS(live_extend(held[shard], 0), REDLOCK_OK);
        CHECK_STATUS(live_release(held[shard]), REDLOCK_OK);
    }
}
END_TEST

static atomic_uint shared_lines; /* log lines that name a server with two addresses */

/* Log function that counts warnings that "localhost:" is the same server as another address. */
static void note_line(int level, const char *message, void *userdata)
{
    (void)userdata;
    if (level == REDLOCK_LOG_WARN && strstr(message, "localhost:") != NULL &&
        strstr(message, "same server as ") != NULL)
        atomic_fetch_add(&shared_lines, 1);
}

/* One server is in both shards under two addresses, which the client learns only after it has
 * connected. It logs a warning and grants locks. */
START_TEST(a_server_in_both_shards_is_logged)
{
    char text[SERVERS * 256] = "", name[64];
    add_shard(text, sizeof text, SHARD_NAMES[0], 0);
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "%s=%slocalhost:%d?fresh=1,%s,%s", SHARD_NAMES[1],
             cluster_scheme(live.cluster), cluster_port(live.cluster, 0),
             cluster_url(live.cluster, EACH), cluster_url(live.cluster, EACH + 1));
    redlock_config_t *config = live_config_of(text);
    atomic_store(&shared_lines, 0);
    ck_assert_int_eq(redlock_config_set_log(config, REDLOCK_LOG_WARN, note_line, NULL), REDLOCK_OK);
    live.client = live_open(config);
    ck_assert(WAIT_UNTIL(atomic_load(&shared_lines) > 0, TIME_LIMIT_MS));
    for (unsigned shard = 0; shard < 2; shard++)
        CHECK_STATUS(live_release(live_lock(resource_in(shard, "both", 0, name), LONG_TTL_MS)),
                     REDLOCK_OK);
}
END_TEST

/* One shard can never be ready: the call fails at once, before the state of the other one is known.
 */
START_TEST(wait_ready_fails_with_the_first_shard)
{
    char text[256];
    const char *scheme = cluster_scheme(live.cluster);
    const int port = cluster_port(live.cluster, 0);
    snprintf(text, sizeof text,
             "east=redis://127.0.0.1:1;"
             "west=%s127.0.0.1:%d?fresh=1,%slocalhost:%d?fresh=1",
             scheme, port, scheme, port);
    redlock_config_t *config = live_config_of(text);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    CHECK_STATUS(redlock_wait_ready(live.client, wait_scaled_ms(TIME_LIMIT_MS)),
                 REDLOCK_EDUPLICATE);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *shards_independent_suite(void)
{
    Suite *suite = suite_create("live_shards_independent");
    live_add(suite, "quorums", each_shard_has_its_own_quorum);
    live_add_each(suite, "shutdown", shutdown_waits_for_both_shards, 2);
    live_add(suite, "broken", a_break_deletes_in_its_shard);
    live_add(suite, "canceled", one_cancel_ends_waiters_of_both);
    live_add(suite, "forked", a_child_frees_both);
    live_add(suite, "wait_ready", wait_ready_fails_with_the_first_shard);
    live_add(suite, "shared", a_server_in_both_shards_is_logged);
    return suite;
}

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    start_servers();
    const int status = suite_run_nofork(shards_independent_suite());
    live_stop_servers();
    return status;
}
