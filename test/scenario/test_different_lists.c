/* SPDX-License-Identifier: MIT
 * A scenario in which two clients have different lists of servers: each has a majority of its own
 * list, and the lists have one server in common.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_open() creates a client from
 * a configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_voters() counts the eligible nodes, live_responsive() the nodes that reply.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. */
#include "live.h"
#include "suite.h"

#include <stdio.h>

/* Removes all keys and fence records, after the case. */
static void heal(void)
{
    cluster_command_all(live.cluster, "FLUSHALL"); /* removes the fence records */
}

/* Returns a client of three nodes, of which `first` is the first. */
static redlock_t *open_three(unsigned first)
{
    char urls[1024] = "";
    size_t len = 0;
    for (unsigned i = first; i < first + 3; i++)
        len += (size_t)snprintf(urls + len, sizeof urls - len, "%s%s", i == first ? "" : ",",
                                cluster_url(live.cluster, i));
    redlock_config_t *config = live_config_of(urls);
    ck_assert_int_eq(redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE),
                     REDLOCK_OK);
    return live_open(config);
}

/* Acquires the lock "list" and keeps the report for live_text(). */
static int acquire(redlock_t *client, uint32_t flags, uint64_t wait_ms, redlock_lock_t **ret_lock)
{
    redlock_report_t *report = NULL;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.flags = flags;
    opts.wait_ms = wait_ms;
    const int status = redlock_acquire(client, "list", &opts, ret_lock, &report);
    live_keep_report(report);
    return status;
}

/* One client has nodes 0 to 2, the other nodes 2 to 4. Node 2 is paused, so that each has a
 * majority of its own. Plain locks: both hold the lock. Locks with fences: the second client is
 * refused with REDLOCK_EFENCE. */
START_TEST(scenario_26_two_lists)
{
    redlock_lock_t *first = NULL, *second = NULL;
    redlock_t *one = open_three(0), *two = open_three(2);
    live.heal = heal;
    cluster_pause(live.cluster, 2);
    CHECK_STATUS(acquire(one, 0, 0, &first), REDLOCK_OK);
    CHECK_STATUS(acquire(two, 0, 0, &second), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(first, 0), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(second, 0), REDLOCK_OK);
    cluster_resume(live.cluster, 2);
    CHECK_STATUS(redlock_release(first, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_release(second, NULL), REDLOCK_OK);
    redlock_lock_free(first);
    redlock_lock_free(second);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_voters(one) == 3 && live_voters(two) == 3, TIME_LIMIT_MS));
    /* The fence record of each server names the list to which it belongs. */
    CHECK_STATUS(acquire(one, REDLOCK_FLAG_FENCE, wait_scaled_ms(TIME_LIMIT_MS), &first),
                 REDLOCK_OK);
    second = NULL;
    CHECK_STATUS(acquire(two, REDLOCK_FLAG_FENCE, wait_scaled_ms(500), &second), REDLOCK_EFENCE);
    CHECK_STATUS(redlock_release(first, NULL), REDLOCK_OK);
    redlock_lock_free(first);
    ck_assert_int_eq(redlock_free(one), REDLOCK_OK);
    ck_assert_int_eq(redlock_free(two), REDLOCK_OK);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("scenario_different_lists");
    live_add_with(suite, "26", scenario_26_two_lists, live_start_servers);
    return suite_run_nofork(suite);
}
