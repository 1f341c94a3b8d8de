/* SPDX-License-Identifier: MIT
 * Wait budgets that end during an attempt: the report must not call healthy servers failed.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_acquire() returns the status of one call and keeps its
 * report, which live_node() and live_text() read. live_check_works() acquires, extends and
 * releases a lock, which must succeed. live_pause(first, count) stops servers with SIGSTOP.
 * CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <signal.h>
#include <string.h>

#define WAIT_MS 400 /* wait budget of the acquisition */

/* Checks that the last report names no failed node. */
static void check_no_node_failed(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_report_t node = live_node(i);
        ck_assert_msg(node.vote != REDLOCK_VOTE_FAILED && node.cause == REDLOCK_CAUSE_NONE, "%s",
                      live_text());
    }
}

/* Sends a signal to all servers. */
static void signal_all(int number)
{
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_int_eq(kill(cluster_pid(live.cluster, i), number), 0);
}

/* Stops the servers when the first attempt was denied. */
static void stop_servers(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl;
    (void)userdata;
    if (event->kind == REDLOCK_EVENT_WAITING)
        signal_all(SIGSTOP);
}

/* The last attempt of a wait begins two round trips before its end, and is cut short. */
START_TEST(a_cut_attempt_reports_the_denial)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report;
    unsigned denied = 0;

    live.node_time_ms = 10 * NODE_TIME_MS;
    live_connect();
    cluster_command_all(live.cluster, "SET busy another");
    opts.wait_ms = WAIT_MS;
    opts.event_fn = stop_servers;
    const int status = redlock_acquire(live.client, "busy", &opts, &lock, &report);
    signal_all(SIGCONT);
    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_ECONTENDED);
    check_no_node_failed();
    for (unsigned i = 0; i < NODES; i++)
        denied += live_node(i).vote == REDLOCK_VOTE_DENIED;
    ck_assert_msg(denied >= QUORUM, "%u denied: %s", denied, live_text());
    cluster_command_all(live.cluster, "DEL busy");
}
END_TEST

/* Servers that are stopped for less than the node timeout are not reported as failed. */
START_TEST(a_cut_attempt_reports_missing_replies)
{
    redlock_lock_t *lock;

    live.node_time_ms = 10 * NODE_TIME_MS;
    live_connect();
    live_check_works();
    live_pause(0, NODES);
    CHECK_STATUS(live_acquire("busy", LONG_TTL_MS, WAIT_MS, &lock), REDLOCK_ENOQUORUM);
    live_resume_all();
    check_no_node_failed();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_str_eq(live_node(i).text, "no reply yet");
    ck_assert_msg(strstr(live_text(), "no reply yet") != NULL, "%s", live_text());
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_wait_budget");
    live_add(suite, "held", a_cut_attempt_reports_the_denial);
    live_add(suite, "unanswered", a_cut_attempt_reports_missing_replies);
    live_start_servers();
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
