/* SPDX-License-Identifier: MIT
 * Keys under the name of a lock with values that no lock has. A long value does not break the
 * connection, and a very long one only fails the request that reads it.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_inspect() returns the status of one call and keeps its
 * report, which live_info() and live_node() read. live_check_works() acquires, extends and
 * releases a lock, which must succeed. live_voters() counts the eligible nodes, live_responsive()
 * the nodes that reply. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * CHECK_STATUS() compares two REDLOCK_* codes. */
#include "live.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define KIB           1024u
#define NO_PLAIN_LOCK "key is not a string, so it is not a lock"

/* Returns the number of reconnections to all nodes. */
static uint64_t reconnects(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < NODES; i++)
        sum += live_node_stats(live.client, i).reconnects;
    return sum;
}

/* Sets the key "foreign" on all nodes, with a value of that length. */
static void put_everywhere(size_t len)
{
    char *value = malloc(len + 1);
    ck_assert_ptr_nonnull(value);
    memset(value, 'v', len);
    value[len] = '\0';
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "SET foreign %s", value));
    free(value);
}

/* Deletes the key "foreign" on all servers. */
static void remove_everywhere(void)
{
    cluster_command_all(live.cluster, "DEL foreign");
}

/* Breaks the lock, keeps the report and returns the status. */
static int live_break(const char *resource)
{
    redlock_report_t *taken = NULL;
    const int status = redlock_break(live.client, resource, &taken);
    live_keep_report(taken);
    return status;
}

/* Lengths of values, in bytes, that the client still reads; by _i. */
static const size_t LENGTHS[] = {KIB + 1, 2 * KIB, 60 * KIB, 64 * KIB};

/* A long foreign value counts as a held key that is not a lock. It is not deleted, and no
 * connection is lost. */
START_TEST(long_values_keep_the_connections)
{
    live_connect();
    put_everywhere(LENGTHS[_i]);
    CHECK_STATUS(live_inspect("foreign"), REDLOCK_OK);
    ck_assert_int_eq(live_info().state, REDLOCK_STATE_HELD);
    unsigned seen = 0;
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_report_t node = live_node(i);
        if (node.vote == REDLOCK_VOTE_NONE)
            continue;
        ck_assert_int_eq(node.vote, REDLOCK_VOTE_GRANTED);
        ck_assert_str_eq(node.text, NO_PLAIN_LOCK);
        ck_assert_str_eq(node.owner, "");
        seen++;
    }
    ck_assert_uint_ge(seen, QUORUM);
    CHECK_STATUS(live_break("foreign"), REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(live_nodes_with("foreign"), NODES); /* a foreign key is not deleted */
    live_check_works();
    ck_assert_uint_eq(reconnects(), 0);
    ck_assert_uint_eq(live_voters(live.client), NODES);
    remove_everywhere();
}
END_TEST

/* Lengths of values, in bytes, that fail the request that reads them; by _i. */
static const size_t TOO_LONG[] = {64 * KIB + 1, 100 * KIB, 3072 * KIB};

/* A longer one fails the inspection or the break that reads it with the cause PROTOCOL, and is not
 * deleted. Afterwards the client works. */
START_TEST(very_long_values_fail_one_request)
{
    live_connect();
    put_everywhere(TOO_LONG[_i]);
    const int status = _i % 2 == 0 ? live_inspect("foreign") : live_break("foreign");
    CHECK_STATUS(status, REDLOCK_ENOQUORUM);
    ck_assert_int_eq(live_info().state, REDLOCK_STATE_UNKNOWN);
    unsigned failed = 0;
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_report_t node = live_node(i);
        failed += node.vote == REDLOCK_VOTE_FAILED;
        ck_assert_int_ne(node.vote, REDLOCK_VOTE_GRANTED);
        ck_assert(node.vote == REDLOCK_VOTE_NONE || node.cause == REDLOCK_CAUSE_PROTOCOL);
    }
    ck_assert_uint_ge(failed, QUORUM);
    ck_assert_uint_eq(live_nodes_with("foreign"), NODES);
    remove_everywhere();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    live_check_works();
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *foreign_values_suite(void)
{
    Suite *suite = suite_create("live_foreign_values");
    live_add_each(suite, "long", long_values_keep_the_connections, 4);
    live_add_each(suite, "very long", very_long_values_fail_one_request, 3);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(foreign_values_suite());
    live_stop_servers();
    return status;
}
