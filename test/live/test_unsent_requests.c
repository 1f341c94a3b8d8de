/* SPDX-License-Identifier: MIT
 * More requests than a stopped server's socket can hold: a SET of which no byte was written is
 * removed from the client's buffer, and neither sent late nor undone. The other ones are undone.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client from a
 * configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_pause(first, count) stops servers with SIGSTOP. LOOP_UNTIL() turns the loop of a client
 * until a condition holds or the deadline has passed. live_turn() turns a client's loop once.
 * LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define LOCKS 800 /* of about 850 bytes each: several times what a unix socket takes */

/* The locks of a case. */
struct flood {
    redlock_lock_t *lock[LOCKS];      /* `granted` of them */
    redlock_cancel_t *cancel;         /* of all acquisitions */
    unsigned done, granted, canceled; /* acquisitions that ended: all, and by result */
    unsigned released;                /* releases that succeeded */
};

/* Callback of an acquisition: keeps the lock of a grant, and counts cancellations. */
static void on_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct flood *flood = userdata;
    (void)rl;
    (void)report;
    flood->done++;
    flood->canceled += status == REDLOCK_ECANCELED;
    if (status == REDLOCK_OK)
        flood->lock[flood->granted++] = lock;
}

/* Callback of a release: counts the successful ones. */
static void on_released(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct flood *flood = userdata;
    (void)rl;
    (void)report;
    (void)lock;
    flood->released += status == REDLOCK_OK;
}

/* Starts all acquisitions in one turn. Writes are few: the library sends when 60 KiB have gathered
 * for a node, and at the end of the turn. */
static void start_all(struct flood *flood)
{
    char resource[501];
    memset(resource, 'r', sizeof resource - 1);
    resource[sizeof resource - 1] = '\0';
    memset(flood, 0, sizeof *flood);
    ck_assert_int_eq(redlock_cancel_new(&flood->cancel, live.client), REDLOCK_OK);
    for (unsigned i = 0; i < LOCKS; i++) {
        redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
        opts.cancel = flood->cancel;
        resource[snprintf(resource, sizeof resource, "%u", i)] = '-';
        ck_assert_int_eq(redlock_acquire_start(live.client, resource, &opts, on_acquired, flood),
                         REDLOCK_OK);
    }
    live_turn(live.client, 0);
}

/* Creates a client with long keys, and resets the servers' counters. */
static void connect_embedded(void)
{
    char prefix[257];
    memset(prefix, 'p', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    live.mode = REDLOCK_MODE_EMBEDDED;
    live.node_time_ms = TIME_LIMIT_MS; /* only the full socket shows that a server is stopped */
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_key_prefix(config, prefix), REDLOCK_OK);
    live.client = live_open(config);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT"));
}

/* Waits until no undo is pending, because redlock_free() does not wait for the network. */
static void wait_for_undos(void)
{
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(LOOP_UNTIL(live.client, live_node_stats(live.client, i).undos_pending == 0,
                             TIME_LIMIT_MS));
}

/* Returns how many compare-and-deletes a server has executed, as a native command or by EVALSHA; no
 * case uses EVAL. */
static uint64_t count_undos(unsigned node)
{
    return live_calls(node, "evalsha") + live_calls(node, "delex") + live_calls(node, "delifeq");
}

/* Checks that the SETs that were written were executed and undone, and that the others never
 * arrived. */
static void check_stopped_node(unsigned node)
{
    const uint64_t sets = live_calls(node, "set"), undos = count_undos(node);
    ck_assert_msg(sets > 0 && sets < LOCKS && undos == sets, "node %u: %d SETs and %d undos of %d",
                  node, (int)sets, (int)undos, LOCKS);
}

/* Two of five servers are stopped. LOCKS locks are acquired by the others and released: what was
 * not written to the stopped servers is neither sent nor undone later. */
START_TEST(unsent_sets_of_held_locks_are_removed)
{
    struct flood flood;
    connect_embedded();
    live_pause(0, 2);
    start_all(&flood);
    ck_assert(LOOP_UNTIL(live.client, flood.done == LOCKS, TIME_LIMIT_MS));
    ck_assert_uint_eq(flood.granted, LOCKS);
    for (unsigned i = 0; i < LOCKS; i++) {
        ck_assert_int_eq(redlock_release_start(flood.lock[i], on_released, &flood), REDLOCK_OK);
        redlock_lock_free(flood.lock[i]);
    }
    ck_assert(LOOP_UNTIL(live.client, flood.released == LOCKS, TIME_LIMIT_MS));
    live_resume_all();
    wait_for_undos();
    check_stopped_node(0);
    check_stopped_node(1);
    redlock_cancel_free(flood.cancel);
}
END_TEST

/* The same for LOCKS acquisitions that are canceled while three servers are stopped. */
START_TEST(unsent_sets_of_canceled_attempts_are_removed)
{
    struct flood flood;
    connect_embedded();
    live_pause(0, 3);
    start_all(&flood);
    ck_assert_uint_eq(flood.done, 0);
    redlock_cancel_trigger(flood.cancel);
    ck_assert(LOOP_UNTIL(live.client, flood.done == LOCKS, TIME_LIMIT_MS));
    ck_assert_uint_eq(flood.canceled, LOCKS);
    live_resume_all();
    wait_for_undos();
    for (unsigned i = 0; i < 3; i++)
        check_stopped_node(i);
    redlock_cancel_free(flood.cancel);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *unsent_requests_suite(void)
{
    Suite *suite = suite_create("live_unsent_requests");
    live_add_each(suite, "held", unsent_sets_of_held_locks_are_removed, 3);
    live_add_each(suite, "cancelled", unsent_sets_of_canceled_attempts_are_removed, 3);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    const struct cluster_opts opts = {.unix_sockets = true};
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers_with(&opts);
    const int status = suite_run_nofork(unsent_requests_suite());
    live_stop_servers();
    return status;
}
