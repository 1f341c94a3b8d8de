/* SPDX-License-Identifier: MIT
 * Each way in which a waiter can end: the line of the resource has no record of it afterwards. The
 * records are removed, and do not expire: no server may count an expired key.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_acquire() and
 * live_release() return the status of one call and keep its report. live_disconnect() frees
 * live.client, live_leave() shuts it down before. live_pause(first, count) stops servers with
 * SIGSTOP. WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS()
 * compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h:
 * note_done() stores the result of an asynchronous call in a struct outcome, and outcome_wait()
 * waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define LINE      "busy{#q}" /* the key of the line of "busy" */
#define BUDGET_MS 700        /* wait budget of a case that lives through it */
#define ROUNDS    4          /* how often a case is repeated that a busy machine has disturbed */
#define CLIENTS   4          /* clients that wait at the same time */
#define FOREVER   REDLOCK_WAIT_FOREVER

/* Returns the node that has the line; NODES: none has. */
static unsigned line_node(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (cluster_pid(live.cluster, i) != 0 && live_has_key(i, LINE))
            return i;
    }
    return NODES;
}

/* Returns whether the line on `node` has a record that contains `text`. */
static bool line_has(unsigned node, const char *text)
{
    char *line = cluster_command(live.cluster, node, "GET " LINE);
    const bool has = line != NULL && strstr(line, text) != NULL;

    free(line);
    return has;
}

/* Returns the number of keys that have expired on a server since start_counting(). */
static uint64_t expired_keys(unsigned node)
{
    char *info = cluster_command(live.cluster, node, "INFO stats");
    const char *at = strstr(info, "expired_keys:");

    ck_assert_ptr_nonnull(at);
    const uint64_t count = strtoull(at + strlen("expired_keys:"), NULL, 10);
    free(info);
    return count;
}

/* Sets the lock's key on all servers as a foreign client, and resets the counters of the servers.
 */
static void start_counting(void)
{
    cluster_command_all(live.cluster, "SET busy another PX 600000");
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT"));
}

/* Returns whether some client has used a line since start_counting(). */
static bool was_used(void)
{
    bool used = false;

    for (unsigned i = 0; i < NODES; i++)
        used = used || live_calls(i, "getex") > 0;
    return used;
}

/* Starts an acquisition of "busy" by live.client. */
static void start_waiting(uint64_t wait_ms, redlock_cancel_t *cancel, struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    *outcome = (struct outcome)OUTCOME;
    opts.wait_ms = wait_ms;
    opts.cancel = cancel;
    ck_assert_int_eq(redlock_acquire_start(live.client, "busy", &opts, note_done, outcome),
                     REDLOCK_OK);
}

/* Waits until the waiter is the head of a line. Returns the node that has the line. */
static unsigned wait_for_head(void)
{
    unsigned node = NODES;

    ck_assert(WAIT_UNTIL((node = line_node()) < NODES && line_has(node, " h "), TIME_LIMIT_MS));
    return node;
}

/* Waits until no node has the line, which must have been used. Returns a node on which a record was
 * not removed, but has expired; NODES: there is none. */
static unsigned wait_until_left(void)
{
    unsigned node = 0;

    ck_assert_msg(was_used(), "no client has joined a line");
    ck_assert_msg(WAIT_UNTIL(line_node() == NODES, TIME_LIMIT_MS * 2), "a record is left");
    while (node < NODES && expired_keys(node) == 0)
        node++;
    cluster_command_all(live.cluster, "DEL busy");
    return node;
}

/* Checks that a line was used, and that all records were removed, not expired. */
static void check_left(void)
{
    const unsigned node = wait_until_left();

    ck_assert_msg(node == NODES, "a record was left on node %u until it expired", node);
}

/* The wait budget of some waiters ends at the same time. */
START_TEST(at_the_end_of_the_wait_budget)
{
    static struct outcome outcomes[CLIENTS];
    redlock_t *clients[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = live_open(live_config());
    start_counting();
    for (unsigned i = 0; i < CLIENTS; i++) {
        live.client = clients[i];
        start_waiting(BUDGET_MS, NULL, &outcomes[i]);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        CHECK_STATUS(outcome_wait(clients[i], &outcomes[i]), REDLOCK_ECONTENDED);
    check_left();
    for (unsigned i = 0; i < CLIENTS; i++) {
        live.client = clients[i];
        live_leave();
    }
}
END_TEST

/* The same, and the client is freed at once. With TLS, a server that a busy machine keeps from
 * reading executes only two of the records that wait for it, and the request to leave may be behind
 * them: then the case is repeated. */
START_TEST(at_the_end_of_the_wait_budget_and_the_client)
{
    redlock_lock_t *lock = NULL;
    unsigned node = 0;

    for (unsigned round = 0; node < NODES && round < (live_is_tls() ? ROUNDS : 1); round++) {
        live_connect();
        start_counting();
        CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, BUDGET_MS, &lock), REDLOCK_ECONTENDED);
        live_disconnect();
        node = wait_until_left();
    }
    ck_assert_msg(node == NODES, "a record was left on node %u until it expired", node);
}
END_TEST

/* The call is canceled. */
START_TEST(when_canceled)
{
    static struct outcome outcome;
    redlock_cancel_t *cancel = NULL;
    live_connect();
    start_counting();
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    start_waiting(FOREVER, cancel, &outcome);
    (void)wait_for_head();
    redlock_cancel_trigger(cancel);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    redlock_cancel_free(cancel);
    check_left();
}
END_TEST

/* The client is freed, and with odd _i shut down before. */
START_TEST(when_the_client_ends)
{
    static struct outcome outcome;
    live_connect();
    start_counting();
    start_waiting(FOREVER, NULL, &outcome);
    (void)wait_for_head();
    if (_i % 2 == 1)
        live_leave();
    else
        live_disconnect();
    CHECK_STATUS(outcome.status, REDLOCK_ECLOSED);
    check_left();
}
END_TEST

/* The client is freed while the server with the line stands still: it executes the last requests
 * when it continues. Over TLS it reads two records only, and the record may stay. */
START_TEST(when_the_client_ends_and_the_server_stands_still)
{
    static struct outcome outcome;
    live_connect();
    start_counting();
    start_waiting(FOREVER, NULL, &outcome);
    const unsigned node = wait_for_head();
    live_pause(node, 1);
    live_disconnect();
    CHECK_STATUS(outcome.status, REDLOCK_ECLOSED);
    live_resume_all();
    if (live_is_tls())
        live_delete_leftovers();
    else
        check_left();
}
END_TEST

/* A shutdown waits until the server with the line, which stands still, has removed the record. */
START_TEST(before_a_shutdown_ends)
{
    static struct outcome outcome, shutdown;
    live.node_time_ms = TIME_LIMIT_MS;
    live_connect();
    start_counting();
    start_waiting(FOREVER, NULL, &outcome);
    const unsigned node = wait_for_head();
    live_pause(node, 1);
    shutdown = (struct outcome)OUTCOME;
    ck_assert_int_eq(redlock_shutdown_start(live.client, TIME_LIMIT_MS, note_done, &shutdown),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECLOSED);
    ck_assert(!WAIT_UNTIL(outcome_calls(&shutdown) != 0, 200));
    live_resume_all();
    CHECK_STATUS(outcome_wait(live.client, &shutdown), REDLOCK_OK);
    ck_assert(!live_has_key(node, LINE));
    check_left();
}
END_TEST

/* Returns whether a server other than `node`, which stands still, has the line. */
static bool is_line_beside(unsigned node)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (i != node && live_has_key(i, LINE))
            return true;
    }
    return false;
}

/* The server with the line stands still until the waiter waits in another line, and continues
 * before the waiter ends. */
START_TEST(from_all_lines_in_which_it_has_waited)
{
    static struct outcome outcome;
    redlock_cancel_t *cancel = NULL;
    live.silence = true;
    live_connect();
    start_counting();
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    start_waiting(FOREVER, cancel, &outcome);
    const unsigned node = wait_for_head();
    live_pause(node, 1);
    ck_assert(WAIT_UNTIL(is_line_beside(node), TIME_LIMIT_MS));
    live_resume_all();
    ck_assert(WAIT_UNTIL(live_is_responsive(live.client, node), TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    redlock_cancel_free(cancel);
    check_left();
}
END_TEST

/* The other servers grant the lock while the server with the line stands still, and this server
 * denies it when it continues. By then the lock was released, and with odd _i the client freed. */
START_TEST(when_the_server_denies_a_lock_that_was_released)
{
    static struct outcome outcome;
    live_connect();
    start_counting();
    start_waiting(FOREVER, NULL, &outcome);
    const unsigned node = wait_for_head();
    live_pause(node, 1);
    for (unsigned i = 0; i < NODES; i++) {
        if (i != node)
            ck_assert_int_eq(cluster_integer(live.cluster, i, "DEL busy"), 1);
    }
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
    if (_i % 2 == 1)
        live_disconnect();
    live_resume_all();
    if (_i % 2 == 1 && live_is_tls())
        live_delete_leftovers(); /* the record may be among them */
    else
        check_left();
}
END_TEST

/* Returns whether some node has the line. Looks twice: during the first look the waiter may move
 * from a node that comes later to one that has been looked at. */
static bool has_line(void)
{
    return line_node() < NODES || line_node() < NODES;
}

/* A single attempt of the same client does not remove the record of the waiter, which may move to
 * another node meanwhile. */
START_TEST(not_when_a_single_attempt_of_the_client_fails)
{
    static struct outcome outcome;
    redlock_lock_t *lock = NULL;
    live_connect();
    start_counting();
    start_waiting(FOREVER, NULL, &outcome);
    (void)wait_for_head();
    for (unsigned i = 0; i < NODES; i++) {
        CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, 0, &lock), REDLOCK_ECONTENDED);
        ck_assert(has_line());
    }
    /* A request that the attempts have sent precedes the requests of this call. */
    CHECK_STATUS(live_inspect("busy"), REDLOCK_OK);
    ck_assert(has_line());
    live_disconnect();
    CHECK_STATUS(outcome.status, REDLOCK_ECLOSED);
    check_left();
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *line_leave_suite(void)
{
    Suite *suite = suite_create("line_leave");
    live_add(suite, "budget", at_the_end_of_the_wait_budget);
    live_add(suite, "budget and client", at_the_end_of_the_wait_budget_and_the_client);
    live_add(suite, "cancel", when_canceled);
    live_add_each(suite, "client", when_the_client_ends, 2);
    live_add(suite, "client, stopped server", when_the_client_ends_and_the_server_stands_still);
    live_add(suite, "shutdown", before_a_shutdown_ends);
    live_add(suite, "two lines", from_all_lines_in_which_it_has_waited);
    live_add_each(suite, "late denial", when_the_server_denies_a_lock_that_was_released, 2);
    live_add(suite, "single attempt", not_when_a_single_attempt_of_the_client_fails);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(line_leave_suite());
    live_stop_servers();
    return status;
}
