/* SPDX-License-Identifier: MIT
 * Calls without a wait budget: a client that was denied shortly before gets the lock in one
 * attempt, while one server has a key that never expires. Each server has this key in turn, and so
 * the preferred node as well.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_release() returns the status of one call and keeps its
 * report, which live_node() and live_text() read. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <string.h>

#define TIMES   4 /* calls in a row */
#define PERMITS 3 /* of the semaphore */

/* The resources of the lock: one, or both. */
static const char *const names[] = {"busy", "also-busy"};

/* Sends a command with each of the keys to a server. */
static void set_all(unsigned node, const char *command)
{
    static const char *const keys[] = {"busy", "also-busy", "busy{#0}", "busy{#1}", "busy{#2}"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        free(cluster_command(live.cluster, node, command, keys[i]));
}

/* Returns the options of a permit if `permits` is not 0, and of a lock with `more` resources. */
static redlock_opts_t opts_without_wait(unsigned permits, unsigned more)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    opts.kind = permits != 0 ? REDLOCK_KIND_PERMIT : opts.kind;
    opts.permits = permits;
    opts.also = names + 1;
    opts.also_count = more;
    return opts;
}

/* Makes one attempt, without a wait budget. Stores the handle, keeps the report and returns the
 * status. */
static int acquire_once(const redlock_opts_t *opts, redlock_lock_t **ret)
{
    redlock_report_t *report = NULL;

    *ret = NULL;
    const int status = redlock_acquire(live.client, names[0], opts, ret, &report);
    live_keep_report(report);
    return status;
}

/* Checks that an acquisition is denied by a majority. Servers that the report calls "not asked" got
 * no request. */
static void check_refused(const redlock_opts_t *opts)
{
    redlock_lock_t *lock;
    unsigned requested = 0;

    CHECK_STATUS(acquire_once(opts, &lock), REDLOCK_ECONTENDED);
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_report_t node = live_node(i);
        requested += strcmp(node.text, "not asked") != 0;
        ck_assert_msg(node.vote == REDLOCK_VOTE_DENIED || node.vote == REDLOCK_VOTE_NONE, "%s",
                      live_text());
    }
    ck_assert_msg(requested >= QUORUM, "%u servers got a request: %s", requested, live_text());
}

/* Checks for each server that locks are granted in one attempt while only that server has the keys.
 */
static void check_granted(unsigned permits, unsigned more)
{
    const redlock_opts_t opts = opts_without_wait(permits, more);
    redlock_lock_t *lock;

    live_connect();
    for (unsigned stale = 0; stale < NODES; stale++) {
        for (unsigned i = 0; i < NODES; i++)
            set_all(i, "SET %s another");
        for (unsigned i = 0; i < TIMES; i++)
            check_refused(&opts);
        for (unsigned i = 0; i < NODES; i++) {
            if (i != stale)
                set_all(i, "DEL %s");
        }
        for (unsigned i = 0; i < TIMES; i++) {
            CHECK_STATUS(acquire_once(&opts, &lock), REDLOCK_OK);
            CHECK_STATUS(live_release(lock), REDLOCK_OK);
        }
    }
    set_all(NODES - 1, "DEL %s");
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

/* check_granted() for a lock of one resource. */
START_TEST(a_lock_is_granted_in_one_attempt)
{
    check_granted(0, 0);
}
END_TEST

/* check_granted() for a lock of two resources. */
START_TEST(several_resources_are_granted_in_one_attempt)
{
    check_granted(0, 1);
}
END_TEST

/* check_granted() for a permit. */
START_TEST(a_permit_is_granted_in_one_attempt)
{
    check_granted(PERMITS, 0);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_single_attempt");
    live_add(suite, "lock", a_lock_is_granted_in_one_attempt);
    live_add(suite, "several", several_resources_are_granted_in_one_attempt);
    live_add(suite, "permit", a_permit_is_granted_in_one_attempt);
    live_start_servers();
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
