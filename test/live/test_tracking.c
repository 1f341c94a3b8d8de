/* SPDX-License-Identifier: MIT
 * The servers' tracking tables have only keys that a lock waits for, until these keys change, and
 * no other key that the client has read.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_release() and live_inspect() return the status of one call
 * and keep its report, which live_info() reads. WAIT_UNTIL(condition, ms) polls and returns false
 * after the deadline. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no
 * case reaches. From live_events.h: note_done() stores the result of an asynchronous call in a
 * struct outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES  20 /* resources that are read, which no client holds */
#define ROUNDS 5  /* how often a case is repeated that a new connection has disturbed */

/* Whether the tables of this round had the keys that they must have, and no others. */
static bool as_expected;

/* Returns the number of tracked keys of a server. */
static int64_t entries(unsigned node)
{
    char *info = cluster_command(live.cluster, node, "INFO stats");
    const char *at = strstr(info, "tracking_total_keys:");
    const int64_t count = at == NULL ? -1 : strtoll(strchr(at, ':') + 1, NULL, 10);

    free(info);
    ck_assert_int_ge(count, 0);
    return count;
}

/* Returns the number of keys in the tracking tables of all servers. */
static int64_t all_entries(void)
{
    int64_t count = 0;

    for (unsigned i = 0; i < NODES; i++)
        count += entries(i);
    return count;
}

/* Returns how often the client has connected again to all nodes, from its statistics. */
static uint64_t reconnects(void)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < NODES; i++)
        count += live_node_stats(live.client, i).reconnects;
    return count;
}

/* Returns the number of nodes that notify the client. */
static unsigned notifying_nodes(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < NODES; i++)
        count += live_node_stats(live.client, i).notify_state == REDLOCK_NOTIFY_ON;
    return count;
}

/* Returns whether no second connection is being made. */
static bool connections_are_settled(void)
{
    bool settled = true;

    for (unsigned i = 0; i < NODES; i++)
        settled = settled && live_node_stats(live.client, i).notify_state != REDLOCK_NOTIFY_PENDING;
    return settled;
}

/* Has each server execute a command that reads no key. The request that tests a new second
 * connection would have the server track the key that the next command reads. */
static void use_up_test_requests(void)
{
    ck_assert(WAIT_UNTIL(connections_are_settled(), TIME_LIMIT_MS));
    CHECK_STATUS(live_release(live_lock("settle", LONG_TTL_MS)), REDLOCK_OK);
}

/* Waits once for a foreign key: the client is woken by its deletion, acquires the lock and releases
 * it. Notes in `as_expected` whether the servers track this key alone, and none at the end. */
static void wait_once(void)
{
    static struct outcome outcome;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    outcome = (struct outcome)OUTCOME;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    cluster_command_all(live.cluster, "SET busy another PX 600000");
    ck_assert_int_eq(redlock_acquire_start(live.client, "busy", &opts, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(notifying_nodes() > 0 && all_entries() > 0, TIME_LIMIT_MS));
    /* The key alone, on the preferred node, or before that can notify on another one. */
    for (unsigned i = 0; i < NODES; i++)
        as_expected = as_expected && entries(i) <= 1;
    cluster_command_all(live.cluster, "DEL busy");
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
    as_expected = as_expected && WAIT_UNTIL(all_entries() == 0, TIME_LIMIT_MS);
}

/* Returns the i-th of the names that no client holds. Valid until the next call. */
static const char *name_of(unsigned i)
{
    static char name[32];

    snprintf(name, sizeof name, "free %u", i);
    return name;
}

/* Inspects the i-th name, which must be free. */
static void inspect_free(unsigned i)
{
    CHECK_STATUS(live_inspect(name_of(i)), REDLOCK_OK);
    ck_assert_int_eq(live_info().state, REDLOCK_STATE_FREE);
}

/* Releases a key that does not exist: the script has read it. */
static void release_unknown_token(unsigned i)
{
    static const char token[] = "0123456789012345678901234567890123456789";

    CHECK_STATUS(redlock_release_token(live.client, name_of(i), token, NULL), REDLOCK_ELOST);
}

/* Breaks the i-th name, which no client holds. */
static void break_free(unsigned i)
{
    redlock_report_t *report = NULL;

    ck_assert_int_ne(redlock_break(live.client, name_of(i), &report), REDLOCK_EINVAL);
    live_keep_report(report);
}

/* Fails to acquire two resources, one of which has a foreign key: the script has read both keys. */
static void fail_to_acquire_two(unsigned i)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    const char *also[] = {"taken"};
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;

    opts.also = also;
    opts.also_count = 1;
    cluster_command_all(live.cluster, "SET taken another PX 600000");
    const int status = redlock_acquire(live.client, name_of(i), &opts, &lock, &report);
    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_ECONTENDED);
    cluster_command_all(live.cluster, "DEL taken");
}

/* Fails to acquire a permit, because each slot has a foreign key: the attempt has read each key. */
static void fail_to_acquire_a_permit(unsigned i)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    char slot[64];

    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = 3;
    for (unsigned n = 0; n < opts.permits; n++) {
        ck_assert_int_eq(redlock_slot_name(slot, sizeof slot, name_of(i), n), REDLOCK_OK);
        for (unsigned node = 0; node < NODES; node++)
            free(cluster_command(live.cluster, node, "SET %s another PX 600000", slot));
    }
    const int status = redlock_acquire(live.client, name_of(i), &opts, &lock, &report);
    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_ECONTENDED);
    as_expected = as_expected && all_entries() == 0; /* a change of the keys would remove them */
    cluster_command_all(live.cluster, "FLUSHALL");
}

static void (*const READERS[])(unsigned i) = {inspect_free, release_unknown_token, break_free,
                                              fail_to_acquire_two, fail_to_acquire_a_permit};

/* Makes many calls that read keys without waiting for them, between two waits. Returns whether the
 * tracking tables were as they must be. */
static bool leaves_no_tracked_key(void (*read_key)(unsigned i))
{
    as_expected = true;
    cluster_command_all(live.cluster, "FLUSHALL"); /* also empties the tables */
    wait_once();
    use_up_test_requests();
    for (unsigned i = 0; i < NAMES; i++)
        read_key(i);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).undos_pending == 0, TIME_LIMIT_MS));
    as_expected = as_expected && all_entries() == 0;
    wait_once(); /* notifications still work */
    return as_expected;
}

/* After many calls that read keys without waiting for them (READERS[_i]), the tracking tables are
 * empty. On a busy machine a server may reply so late that the client connects anew, and the test
 * request of that connection leaves a key: then the case is repeated. */
START_TEST(other_reads_leave_no_tracked_key)
{
    bool good = false;

    live_connect();
    for (unsigned round = 0; !good && round < ROUNDS; round++) {
        const uint64_t before = reconnects();
        good = leaves_no_tracked_key(READERS[_i]);
        ck_assert_msg(good || reconnects() > before, "%lld keys are tracked",
                      (long long)all_entries());
    }
    ck_assert_msg(good, "the client has connected anew in each round");
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *tracking_suite(void)
{
    Suite *suite = suite_create("tracking");
    live_add_each(suite, "entries", other_reads_leave_no_tracked_key,
                  sizeof READERS / sizeof READERS[0]);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(tracking_suite());
    live_stop_servers();
    return status;
}
