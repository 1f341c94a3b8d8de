/* SPDX-License-Identifier: MIT
 * Admission on real servers: restarted, promoted, demoted and evicting ones. In each of these
 * cases, a client without admission breaks exclusion. test/scenario/test_rolling.c has a rolling
 * restart under load.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_acquire(), live_release() and live_inspect() return
 * the status of one call and keep its report, which live_node() and live_text() read.
 * live_check_works() acquires, extends and releases a lock, which must succeed. live_voters()
 * counts the eligible nodes, live_responsive() the nodes that reply. WAIT_UNTIL(condition, ms)
 * polls and returns false after the deadline. wait_scaled_ms() stretches a time for slow builds.
 * CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From
 * live_events.h: note_event() copies each event into its userdata: client_events or lock_events. */
#include "live_events.h"
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS 1500 /* also max_ttl, and so nearly the length of a quarantine */

/* Creates live.client with TTL_MS as max_ttl, so that a quarantine is short. */
static void connect_short(void)
{
    live.max_ttl_ms = TTL_MS;
    live_connect();
}

/* Waits until the node is excluded for that cause. */
static bool has_cause(unsigned node, int cause)
{
    return WAIT_UNTIL(live_node_stats(live.client, node).cause == cause, TIME_LIMIT_MS);
}

/* Sends a command to a server, which must reply OK. */
static void expect_ok(unsigned node, const char *text)
{
    ck_assert_msg(cluster_replies(live.cluster, node, "OK", text), "%s", text);
}

/* A client holds a lock on a bare majority, and a server of this majority is restarted without its
 * keys. Without the quarantine a second client would get the lock. */
START_TEST(a_restarted_server_grants_no_second_lock)
{
    redlock_lock_t *held = NULL, *other = NULL;
    connect_short();
    cluster_kill(live.cluster, 3);
    cluster_kill(live.cluster, 4);
    held = live_lock("sixteen", TTL_MS);
    cluster_restart(live.cluster, 2, false);
    cluster_restart(live.cluster, 3, false);
    cluster_restart(live.cluster, 4, false);
    for (unsigned i = 2; i < NODES; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_RESTARTED));
    const int status = live_acquire("sixteen", TTL_MS, 0, &other);
    ck_assert_msg(status == REDLOCK_EEXCLUDED, "%s", live_text());
    ck_assert_ptr_null(other);
    ck_assert_int_eq(live_node(2).cause, REDLOCK_CAUSE_RESTARTED);
    ck_assert_msg(strstr(live_node(2).text, "restarted") != NULL &&
                      strstr(live_node(2).text, "votes again in") != NULL,
                  "%s", live_text());
    ck_assert_uint_gt(live_node(2).quarantine_ms, 0);
    ck_assert_uint_le(live_node(2).quarantine_ms, TTL_MS * 101 / 100 + 3);
    ck_assert_int_eq(live_node_stats(live.client, 2).eligible, 0);
    ck_assert_uint_gt(live_node_stats(live.client, 2).quarantine_ms, 0);
    ck_assert_int_eq(redlock_wait_ready(live.client, 1), REDLOCK_EEXCLUDED);
    /* The quarantine ends after the deadline of the lock whose key was lost. */
    CHECK_STATUS(live_acquire("sixteen", TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &other),
                 REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(held, 0), REDLOCK_ELOST);
    CHECK_STATUS(live_release(other), REDLOCK_OK);
    redlock_lock_free(held);
}
END_TEST

/* A restarted server replies at once, but NODE_UP is reported only when it is eligible again. */
START_TEST(an_event_reports_the_end_of_the_quarantine)
{
    const char *name;

    events_reset();
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    connect_short();
    name = live_node_stats(live.client, 2).node;
    ck_assert(WAIT_UNTIL(count_events_of(&client_events, REDLOCK_EVENT_NODE_UP, name) == 1,
                         TIME_LIMIT_MS));
    cluster_restart(live.cluster, 2, false);
    ck_assert(WAIT_UNTIL(count_events_of(&client_events, REDLOCK_EVENT_NODE_EXCLUDED, name) == 1,
                         TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(count_events_of(&client_events, REDLOCK_EVENT_NODE_UP, name) == 2,
                         TIME_LIMIT_MS));
    ck_assert_int_eq(live_node_stats(live.client, 2).eligible, 1);
}
END_TEST

/* A new client does not know whether young servers have lost keys: it excludes them, unless the
 * operator attests in the address that they have not. */
START_TEST(first_contact_excludes_young_servers_unless_attested)
{
    static const char *const attests[] = {"", "?fresh=1", "?durable=1"};
    char urls[1024];
    redlock_lock_t *lock = NULL;
    size_t len = 0;
    live.max_ttl_ms = LONG_TTL_MS;
    for (unsigned i = 0; i < NODES; i++) {
        cluster_restart(live.cluster, i, false);
        len += (size_t)snprintf(urls + len, sizeof urls - len, "%s%s127.0.0.1:%d%s",
                                i == 0 ? "" : ",", cluster_scheme(live.cluster),
                                cluster_port(live.cluster, i), attests[_i]);
    }
    redlock_config_t *config = live_config_of(urls);
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_responsive(live.client) == NODES, TIME_LIMIT_MS));
    const int status = live_acquire("first", 1000, 0, &lock);
    ck_assert_msg(status == (_i == 0 ? REDLOCK_EEXCLUDED : REDLOCK_OK), "%s", live_text());
    if (lock != NULL)
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* live.heal of the cases with replicas. */
static void make_all_masters(void)
{
    for (unsigned i = 0; i < NODES; i++)
        free(cluster_command(live.cluster, i, "REPLICAOF NO ONE"));
}

/* A server that was a replica may lack the latest keys. */
START_TEST(promoted_servers_are_quarantined)
{
    redlock_lock_t *lock = NULL;
    live.heal = make_all_masters;
    connect_short();
    for (unsigned i = 0; i < QUORUM; i++) {
        expect_ok(i, "REPLICAOF 127.0.0.1 1");
        free(cluster_command(live.cluster, i, "CLIENT KILL TYPE normal"));
    }
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_REPLICA));
    make_all_masters();
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_PROMOTED));
    CHECK_STATUS(live_acquire("twenty", TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
}
END_TEST

/* Creates live.client anew, and waits until node 0 has identified itself. Returns the time before
 * that (wait_now_ms()). */
static uint64_t reconnect(void)
{
    live_disconnect();
    redlock_config_t *config = live_config();
    const uint64_t begun_ms = wait_now_ms();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).run_id[0] != '\0', TIME_LIMIT_MS));
    return begun_ms;
}

/* Returns whether the server has been running for longer than a quarantine and the rounding of its
 * uptime. */
static bool is_old(unsigned node)
{
    char *info = cluster_command(live.cluster, node, "INFO server");
    const char *uptime = info != NULL ? strstr(info, "uptime_in_seconds:") : NULL;
    const bool old = uptime != NULL && atoi(strchr(uptime, ':') + 1) >= TTL_MS / 1000 + 3;
    free(info);
    return old;
}

/* INFO does not show when a promotion was, so a client that starts later waits anew. A restart
 * without the data ends that: then the uptime counts (docs/operations.md, "Replace a server"). */
START_TEST(each_new_client_waits_for_a_promoted_server)
{
    live.heal = make_all_masters;
    connect_short();
    expect_ok(0, "REPLICAOF 127.0.0.1 1");
    free(cluster_command(live.cluster, 0, "CLIENT KILL TYPE normal"));
    ck_assert(has_cause(0, REDLOCK_CAUSE_REPLICA));
    make_all_masters();
    ck_assert(has_cause(0, REDLOCK_CAUSE_PROMOTED));
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(is_old(0), TIME_LIMIT_MS));
    live.max_ttl_ms = LONG_TTL_MS;
    const uint64_t begun_ms = reconnect();
    const redlock_node_stats_t stats = live_node_stats(live.client, 0);
    ck_assert_int_eq(stats.cause, REDLOCK_CAUSE_PROMOTED);
    ck_assert_uint_ge(stats.quarantine_ms + (wait_now_ms() - begun_ms), LONG_TTL_MS);
    live.max_ttl_ms = TTL_MS;
    cluster_restart(live.cluster, 0, false);
    ck_assert(WAIT_UNTIL(is_old(0), TIME_LIMIT_MS));
    reconnect();
    ck_assert_int_eq(live_node_stats(live.client, 0).cause, REDLOCK_CAUSE_NONE);
}
END_TEST

/* Servers are demoted while the client is idle. If a heartbeat is due (_i: 1), it is sent before
 * the request for the vote and finds the replica; otherwise the server itself refuses the SET. */
START_TEST(servers_demoted_before_an_attempt_are_excluded)
{
    const int cause = _i == 0 ? REDLOCK_CAUSE_READONLY : REDLOCK_CAUSE_REPLICA;
    redlock_lock_t *lock = NULL;
    live.heal = make_all_masters;
    live.heartbeat_ms = _i == 0 ? 60000 : 10;
    connect_short();
    const uint64_t begun_ms = wait_now_ms();
    for (unsigned i = 0; i < NODES - QUORUM; i++)
        expect_ok(i, "REPLICAOF 127.0.0.1 1");
    if (_i == 1)
        ck_assert(WAIT_UNTIL(wait_now_ms() > begun_ms + live.heartbeat_ms, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_voters(live.client), NODES); /* the client has not noticed it yet */
    /* The votes of the others are enough in the same attempt. */
    CHECK_STATUS(live_acquire("idle", TTL_MS, 0, &lock), REDLOCK_OK);
    ck_assert_uint_eq(live_stats(live.client).attempts, 1);
    for (unsigned i = 0; i < NODES - QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_REPLICA));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    live_disconnect();
    make_all_masters();
    connect_short();
    const uint64_t again_ms = wait_now_ms();
    for (unsigned i = 0; i < QUORUM; i++)
        expect_ok(i, "REPLICAOF 127.0.0.1 1");
    if (_i == 1)
        ck_assert(WAIT_UNTIL(wait_now_ms() > again_ms + live.heartbeat_ms, TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("idle", TTL_MS, 0, &lock), REDLOCK_EEXCLUDED);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert_msg(live_node(i).cause == cause, "%s", live_text());
    make_all_masters();
    CHECK_STATUS(live_acquire("idle", TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* live.heal of the cases with eviction. Servers before 7.0 set one value in a command. */
static void disable_eviction(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        free(cluster_command(live.cluster, i, "CONFIG SET maxmemory 0"));
        free(cluster_command(live.cluster, i, "CONFIG SET maxmemory-policy noeviction"));
    }
}

/* Servers that evict keys are excluded. When eviction is disabled, they are eligible again on the
 * same connection. */
START_TEST(evicting_servers_are_excluded)
{
    redlock_lock_t *lock = NULL;
    live.heal = disable_eviction;
    for (unsigned i = 0; i < QUORUM; i++) {
        expect_ok(i, "CONFIG SET maxmemory 100mb");
        expect_ok(i, "CONFIG SET maxmemory-policy allkeys-lru");
    }
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_EVICTING));
    CHECK_STATUS(live_acquire("twentytwo", LONG_TTL_MS, 0, &lock), REDLOCK_EEXCLUDED);
    ck_assert_msg(strstr(live_node(0).text, "allkeys-lru") != NULL, "%s", live_text());
    disable_eviction();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_node_stats(live.client, 0).reconnects, 0);
    live_check_works();
}
END_TEST

static atomic_uint long_ttls; /* events of count_long_ttls() */

/* Event function that counts the events TTL_EXCEEDS_MAX that name a node. */
static void count_long_ttls(redlock_t *client, const redlock_event_t *event, void *unused)
{
    (void)client;
    (void)unused;
    if (event->kind == REDLOCK_EVENT_TTL_EXCEEDS_MAX)
        atomic_fetch_add(&long_ttls, event->node != NULL);
}

/* A client that sees a key with a TTL above max_ttl reports it. If a majority has such a key, it
 * also makes its quarantines as long; one server alone may have set its clock back. */
START_TEST(a_longer_ttl_is_reported_and_respected)
{
    atomic_store(&long_ttls, 0);
    live.event_fn = count_long_ttls;
    connect_short();
    expect_ok(0, "SET stuck token PX 20000");
    CHECK_STATUS(live_inspect("stuck"), REDLOCK_OK);
    ck_assert_msg(strstr(live_node(0).text, "longer than max_ttl") != NULL, "%s", live_text());
    ck_assert(WAIT_UNTIL(atomic_load(&long_ttls) == 1, TIME_LIMIT_MS));
    cluster_restart(live.cluster, 1, false);
    ck_assert(has_cause(1, REDLOCK_CAUSE_RESTARTED));
    ck_assert_uint_lt(live_node_stats(live.client, 1).quarantine_ms, TTL_MS * 2);
    expect_ok(2, "SET stuck token PX 20000");
    expect_ok(3, "SET stuck token PX 20000");
    CHECK_STATUS(live_inspect("stuck"), REDLOCK_OK);
    ck_assert_uint_gt(live_node_stats(live.client, 1).quarantine_ms, TTL_MS * 2);
    const unsigned stuck[] = {0, 2, 3};
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(cluster_integer(live.cluster, stuck[i], "DEL stuck"), 1);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *admission_suite(void)
{
    Suite *suite = suite_create("admission");
    live_add(suite, "restart", a_restarted_server_grants_no_second_lock);
    live_add(suite, "voting again", an_event_reports_the_end_of_the_quarantine);
    live_add_each(suite, "first contact", first_contact_excludes_young_servers_unless_attested, 3);
    live_add(suite, "evicting", evicting_servers_are_excluded);
    live_add(suite, "long life", a_longer_ttl_is_reported_and_respected);
    live_add(suite, "promoted", promoted_servers_are_quarantined);
    live_add(suite, "promoted_and_new_clients", each_new_client_waits_for_a_promoted_server);
    live_add_each(suite, "demoted", servers_demoted_before_an_attempt_are_excluded, 2);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(admission_suite());
    live_stop_servers();
    return status;
}
