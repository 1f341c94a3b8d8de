/* SPDX-License-Identifier: MIT
 * Servers that fail: two of five that are killed, stopped or restarted have no effect on the
 * caller. Three cause "no quorum" with a cause for each node. Once they are back, locks are granted
 * again; restarted servers must be attested as durable for that, or stay in quarantine.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted.
 * live_acquire(), live_extend() and live_release() return the status of one call and keep its
 * report, which live_info(), live_node() and live_text() read. live_check_works() acquires,
 * extends and releases a lock, which must succeed. live_pause(first, count) stops servers with
 * SIGSTOP. live_voters() counts the eligible nodes, live_responsive() the nodes that reply.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. */
#include "live.h"
#include "suite.h"

#include <stdio.h>

#define MEASURED 30 /* votes until the estimate of the round trip forgets the first one */

/* Checks the part of the last report about one node. */
static void check_node(unsigned node, int vote, int cause)
{
    const redlock_node_report_t report = live_node(node);
    ck_assert_msg(report.vote == vote && report.cause == cause,
                  "node %u: expected vote %d cause %d; %s", node, vote, cause, live_text());
    ck_assert_str_ne(report.text, "");
}

/* Waits until that many nodes are eligible. */
static void wait_voters(unsigned voters)
{
    ck_assert_msg(WAIT_UNTIL(live_voters(live.client) == voters, ELIGIBLE_LIMIT_MS),
                  "%u nodes are eligible instead of %u", live_voters(live.client), voters);
}

/* Waits until these nodes refuse connections: a killed server may accept one more at first. */
static void wait_refused(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).cause == REDLOCK_CAUSE_CONNECT,
                             TIME_LIMIT_MS));
}

/* Waits until all servers reply, also restarted ones that are still in quarantine. */
static void wait_responsive(void)
{
    ck_assert_msg(WAIT_UNTIL(live_responsive(live.client) == NODES, TIME_LIMIT_MS),
                  "%u nodes reply instead of %u", live_responsive(live.client), NODES);
}

/* Checks that a lock is acquired in one attempt, extended and released. */
static void check_works_at_once(void)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire("works", LONG_TTL_MS, 0, &lock), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(lock, LONG_TTL_MS / 2), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}

/* With servers _i and _i + 1 dead, acquisitions work at once: before the client has noticed,
 * afterwards, and when they are back. */
START_TEST(two_killed_servers_have_no_effect)
{
    live_connect();
    cluster_kill(live.cluster, (unsigned)_i);
    cluster_kill(live.cluster, (unsigned)_i + 1);
    check_works_at_once();
    wait_voters(NODES - 2);
    check_works_at_once();
    live_restart_dead();
    wait_responsive();
    check_works_at_once();
}
END_TEST

/* The same with two servers that are stopped (SIGSTOP). */
START_TEST(two_stopped_servers_have_no_effect)
{
    live_connect();
    live_pause((unsigned)_i, 2);
    check_works_at_once();
    wait_voters(NODES - 2);
    check_works_at_once();
    live_resume_all();
    wait_voters(NODES);
    check_works_at_once();
}
END_TEST

/* Returns whether each node has granted at least that many requests. */
static bool all_granted(uint64_t times)
{
    bool all = true;
    for (unsigned i = 0; i < NODES; i++)
        all = all && live_node_stats(live.client, i).granted >= times;
    return all;
}

/* A held lock survives two servers that fail, here nodes 1 and 3, which may be two of the three
 * that made the majority. The keys of the others, which were set after the decision, count after a
 * successful round. */
START_TEST(a_held_lock_survives_two_faults)
{
    live_connect();
    redlock_lock_t *lock = live_lock("held", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(all_granted(1), TIME_LIMIT_MS));
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(all_granted(2), TIME_LIMIT_MS));
    cluster_kill(live.cluster, 1);
    live_pause(3, 1);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert_uint_gt(redlock_lock_remaining_ms(lock), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    live_resume_all();
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Returns twice the longest average round trip of nodes 0 to 2, in milliseconds, rounded up. A call
 * ends when less than twice that of the third-fastest node is left of its wait budget, because no
 * other attempt fits in. While nodes 0 to 2 do not reply, that is no more. */
static uint64_t reserve_ms(void)
{
    uint64_t longest_us = 0;
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t rtt_us = live_node_stats(live.client, i).rtt_us;
        longest_us = rtt_us > longest_us ? rtt_us : longest_us;
    }
    return 2 * longest_us / 1000 + 1;
}

/* Checks that an acquisition fails without a quorum: it goes on while another attempt fits into its
 * wait budget, and ends within TIME_LIMIT_MS (10 s, scaled) after it. The first three nodes must
 * have that cause; a second acquisition must fail as well. */
static void check_no_quorum(int cause)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire("none", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    ck_assert_ptr_null(lock);
    for (unsigned i = 0; i < 3; i++)
        check_node(i, REDLOCK_VOTE_FAILED, cause);
    ck_assert_uint_eq(live_info().nodes, NODES);
    ck_assert_uint_eq(live_info().quorum, QUORUM);
    ck_assert_uint_lt(live_info().granted, QUORUM);
    ck_assert_uint_eq(live_info().validity_ms, 0);

    /* The budget is used up but for the reserve; then the call returns, although the servers are
     * still away. On a busy machine one attempt may use it up, so there are up to ten calls until
     * one has two. */
    const uint64_t budget_ms = live_brief_ms(500), left_ms = reserve_ms();
    for (unsigned calls = 0; calls == 0 || (live_info().attempts == 1 && calls < 10); calls++) {
        const uint64_t from_ms = wait_now_ms();
        CHECK_STATUS(live_acquire("none", LONG_TTL_MS, budget_ms, &lock), REDLOCK_ENOQUORUM);
        const uint64_t took_ms = wait_now_ms() - from_ms;
        ck_assert_msg(
            took_ms + left_ms >= budget_ms && took_ms < budget_ms + wait_scaled_ms(TIME_LIMIT_MS),
            "took %d ms of %d, reserve %d ms", (int)took_ms, (int)budget_ms, (int)left_ms);
    }
    ck_assert_uint_gt(live_info().attempts, 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(live_node(i).vote, REDLOCK_VOTE_FAILED);
}

/* Creates live.client, and has votes measure the round trips. A call begins no attempt that is
 * estimated to end after its wait budget, and the first estimate is long on a busy machine. With
 * TLS it is also long because the servers make the handshakes of other connections meanwhile. */
static void connect_and_measure(void)
{
    live_connect();
    for (unsigned i = 0; i < MEASURED; i++)
        live_check_works();
}

/* With three dead servers each call returns ENOQUORUM and a cause for each node; a held lock
 * stays held until its deadline. When they are back, the same client works. */
START_TEST(three_killed_servers_are_no_quorum)
{
    live.durable = true;
    connect_and_measure();
    redlock_lock_t *held = live_lock("held", LONG_TTL_MS);
    for (unsigned i = 0; i < 3; i++)
        cluster_kill(live.cluster, i);
    wait_refused(0, 3);
    check_no_quorum(REDLOCK_CAUSE_CONNECT);
    ck_assert_msg(strstr(live_node(0).text, "refused") != NULL, "%s", live_text());
    char name[64];
    snprintf(name, sizeof name, "127.0.0.1:%d", cluster_port(live.cluster, 0));
    ck_assert_msg(strstr(live_text(), name) != NULL, "the report does not name the node: %s",
                  live_text());
    CHECK_STATUS(live_extend(held, 0), REDLOCK_ENOQUORUM);
    ck_assert_int_eq(redlock_lock_check(held, 0), REDLOCK_OK); /* until the deadline */
    CHECK_STATUS(live_release(held), REDLOCK_ENOQUORUM);
    live_restart_dead();
    live_check_works(); /* with the same client */
}
END_TEST

/* The same with three stopped servers and the cause TIMEOUT. */
START_TEST(three_stopped_servers_are_no_quorum)
{
    live.silence = true;
    connect_and_measure();
    live_pause(0, 3);
    check_no_quorum(REDLOCK_CAUSE_TIMEOUT);
    live_resume_all();
    live_check_works();
}
END_TEST

/* Nodes that are known to be down get no request, and the client does not wait for them. */
START_TEST(nodes_known_to_be_down_get_no_request)
{
    redlock_lock_t *lock = NULL;
    uint64_t before[NODES];
    live.silence = true;
    live.connect_time_ms = 20000;
    live_connect();
    live_pause(0, 1);
    cluster_kill(live.cluster, 1);
    CHECK_STATUS(live_acquire("first", LONG_TTL_MS, 0, &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    wait_voters(NODES - 2);
    wait_refused(1, 2);
    for (unsigned i = 0; i < NODES; i++)
        before[i] = live_node_stats(live.client, i).requests;
    CHECK_STATUS(live_acquire("second", LONG_TTL_MS, 0, &lock), REDLOCK_OK);
    for (unsigned i = 0; i < NODES; i++) {
        const uint64_t sent = live_node_stats(live.client, i).requests - before[i];
        ck_assert_msg(sent == (i < 2 ? 0 : 1), "node %u got %d requests", i, (int)sent);
    }
    check_node(0, REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT);
    check_node(1, REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_CONNECT);
    ck_assert_uint_eq(live_info().attempts, 1);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);

    /* If a third one fails, a majority needs the suspect node, so it is asked, too. */
    cluster_kill(live.cluster, 2);
    wait_refused(1, 3);
    CHECK_STATUS(live_acquire("third", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    check_node(0, REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT);

    /* If a fourth one fails, there is no possible majority: no node gets a request. */
    cluster_kill(live.cluster, 3);
    wait_refused(1, 4);
    for (unsigned i = 0; i < NODES; i++)
        before[i] = live_node_stats(live.client, i).requests;
    CHECK_STATUS(live_acquire("fourth", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_eq(live_node_stats(live.client, i).requests, before[i]);
    ck_assert_uint_lt(live_info().elapsed_us, wait_scaled_ms(live.connect_time_ms) * 1000 / 4);
}
END_TEST

/* The client connects to a hung node again after a while. The node gets no request until it
 * replies. */
START_TEST(a_hung_node_gets_no_request)
{
    live.silence = true;
    live_connect();
    live_pause(0, 1);
    check_works_at_once();
    wait_voters(NODES - 1);
    const redlock_node_stats_t before = live_node_stats(live.client, 0);
    /* A suspect node has two seconds to reply, and gets no request on the new connection either. */
    const uint64_t end_ms = wait_now_ms() + 2600,
                   give_up_ms = end_ms + wait_scaled_ms(ELIGIBLE_LIMIT_MS);
    bool renewed = false;
    while (wait_now_ms() < end_ms || (!renewed && wait_now_ms() < give_up_ms)) {
        check_works_at_once();
        const redlock_node_stats_t now = live_node_stats(live.client, 0);
        ck_assert_uint_eq(now.requests, before.requests);
        /* The kernel of a stopped server accepts connections, but makes no TLS handshake. */
        renewed = live_is_tls() ? strstr(now.text, "TLS handshake") != NULL
                                : now.reconnects > before.reconnects;
    }
    ck_assert(renewed);
    live_resume_all();
    wait_voters(NODES);
    check_works_at_once();
}
END_TEST

/* The quarantine applies to new locks only: a restarted server that has the key extends a held
 * lock. */
START_TEST(a_restart_with_data_keeps_the_vote)
{
    live_connect();
    redlock_lock_t *lock = live_lock("data", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("data") == NODES, TIME_LIMIT_MS));
    for (unsigned i = 0; i < 3; i++) {
        cluster_restart(live.cluster, i, true);
        ck_assert_msg(live_has_key(i, "data"), "node %u came back without its data", i);
    }
    wait_responsive();
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Two servers restart without data: the next extension of a held lock sets its keys there again. */
START_TEST(a_restart_without_data_is_healed)
{
    live_connect();
    redlock_lock_t *lock = live_lock("empty", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("empty") == NODES, TIME_LIMIT_MS));
    cluster_restart(live.cluster, 0, false);
    cluster_restart(live.cluster, 4, false);
    wait_responsive();
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert_msg(WAIT_UNTIL(live_nodes_with("empty") == NODES, TIME_LIMIT_MS),
                  "%u nodes have the key", live_nodes_with("empty"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Three servers restart without data: the next extension returns ELOST, and the remaining keys
 * are deleted. */
START_TEST(three_restarts_without_data_are_a_loss)
{
    live_connect();
    redlock_lock_t *lock = live_lock("lost", LONG_TTL_MS);
    for (unsigned i = 0; i < 3; i++)
        cluster_restart(live.cluster, i, false);
    wait_responsive();
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_ELOST);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    CHECK_STATUS(live_release(lock), REDLOCK_ELOST);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS)); /* the keys on the other two are undone */
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *faults_suite(void)
{
    Suite *suite = suite_create("faults");
    live_add_each(suite, "two killed", two_killed_servers_have_no_effect, NODES - 1);
    live_add_each(suite, "two stopped", two_stopped_servers_have_no_effect, NODES - 1);
    live_add(suite, "held lock", a_held_lock_survives_two_faults);
    live_add(suite, "three killed", three_killed_servers_are_no_quorum);
    live_add(suite, "three stopped", three_stopped_servers_are_no_quorum);
    live_add(suite, "known down", nodes_known_to_be_down_get_no_request);
    live_add(suite, "hung", a_hung_node_gets_no_request);
    live_add(suite, "restart with data", a_restart_with_data_keeps_the_vote);
    live_add(suite, "restart without data", a_restart_without_data_is_healed);
    live_add(suite, "three restarts", three_restarts_without_data_are_a_loss);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    const struct cluster_opts opts = {.keep_data = true};
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers_with(&opts);
    const int status = suite_run_nofork(faults_suite());
    live_stop_servers();
    return status;
}
