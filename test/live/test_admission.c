/* SPDX-License-Identifier: MIT
 * Admission on real servers: restarted, promoted, evicting and anonymous ones, each a case in which
 * clients without it break exclusion. (A rolling restart under load: test/scenario/test_rolling.c.)
 */
#include "live_events.h"
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS 1500 /* max_ttl, too: how long a guard lasts, roughly */

static void connect_short(void)
{
    live.max_ttl_ms = TTL_MS;
    live_connect();
}

static bool has_cause(unsigned node, int cause)
{
    return WAIT_UNTIL(live_node_stats(live.client, node).cause == cause, TIME_LIMIT_MS);
}

static void command(unsigned node, const char *text)
{
    ck_assert_msg(cluster_replies(live.cluster, node, "OK", text), "%s", text);
}

/* Row 16: a holder has a bare majority, one of its servers comes back without its keys. */
START_TEST(a_restart_lets_nobody_in)
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
    /* It ends by itself, and not before the lock that was forgotten is over. */
    CHECK_STATUS(live_acquire("sixteen", TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &other),
                 REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(held, 0), REDLOCK_ELOST);
    CHECK_STATUS(live_release(other), REDLOCK_OK);
    redlock_lock_free(held);
}
END_TEST

/* A restarted server answers at once and votes again later: its event comes when it votes. */
START_TEST(an_event_when_it_votes_again)
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

/* A new client does not know since when the servers are there: it waits, unless they are old, or
 * somebody vouches for them. */
START_TEST(first_contact)
{
    static const char *const attests[] = {"", "?fresh=1", "?durable=1"};
    char urls[1024];
    redlock_lock_t *lock = NULL;
    size_t len = 0;
    live.max_ttl_ms = LONG_TTL_MS;
    for (unsigned i = 0; i < NODES; i++) {
        cluster_restart(live.cluster, i, false);
        len += (size_t)snprintf(urls + len, sizeof urls - len, "%s127.0.0.1:%d%s",
                                i == 0 ? "" : ",", cluster_port(live.cluster, i), attests[_i]);
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

static void follow_nobody(void)
{
    for (unsigned i = 0; i < NODES; i++)
        free(cluster_command(live.cluster, i, "REPLICAOF NO ONE"));
}

/* Row 20: what was a replica may lack the latest keys. */
START_TEST(promoted_servers_wait)
{
    redlock_lock_t *lock = NULL;
    live.heal = follow_nobody;
    connect_short();
    for (unsigned i = 0; i < QUORUM; i++) {
        command(i, "REPLICAOF 127.0.0.1 1");
        free(cluster_command(live.cluster, i, "CLIENT KILL TYPE normal"));
    }
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_REPLICA));
    follow_nobody();
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_PROMOTED));
    CHECK_STATUS(live_acquire("twenty", TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
}
END_TEST

/* Row 21, while the client had nothing to do and so did not notice: a look that is due goes out in
 * front of the vote (_i: 1), else the server itself refuses the vote. */
START_TEST(servers_that_were_demoted_meanwhile)
{
    const int cause = _i == 0 ? REDLOCK_CAUSE_READONLY : REDLOCK_CAUSE_REPLICA;
    redlock_lock_t *lock = NULL;
    live.heal = follow_nobody;
    live.heartbeat_ms = _i == 0 ? 60000 : 10;
    connect_short();
    const uint64_t begun_ms = wait_now_ms();
    for (unsigned i = 0; i < NODES - QUORUM; i++)
        command(i, "REPLICAOF 127.0.0.1 1");
    if (_i == 1)
        ck_assert(WAIT_UNTIL(wait_now_ms() > begun_ms + live.heartbeat_ms, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_voters(live.client), NODES); /* as far as it knows */
    /* The others are enough, without another attempt. */
    CHECK_STATUS(live_acquire("idle", TTL_MS, 0, &lock), REDLOCK_OK);
    ck_assert_uint_eq(live_stats(live.client).attempts, 1);
    for (unsigned i = 0; i < NODES - QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_REPLICA));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    live_disconnect();
    follow_nobody();
    connect_short();
    const uint64_t again_ms = wait_now_ms();
    for (unsigned i = 0; i < QUORUM; i++)
        command(i, "REPLICAOF 127.0.0.1 1");
    if (_i == 1)
        ck_assert(WAIT_UNTIL(wait_now_ms() > again_ms + live.heartbeat_ms, TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("idle", TTL_MS, 0, &lock), REDLOCK_EEXCLUDED);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert_msg(live_node(i).cause == cause, "%s", live_text());
    follow_nobody();
    CHECK_STATUS(live_acquire("idle", TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

static void evict_nothing(void)
{
    for (unsigned i = 0; i < NODES; i++)
        free(
            cluster_command(live.cluster, i, "CONFIG SET maxmemory 0 maxmemory-policy noeviction"));
}

/* Row 22. Repaired, they vote again without a new connection. */
START_TEST(evicting_servers_do_not_vote)
{
    redlock_lock_t *lock = NULL;
    live.heal = evict_nothing;
    for (unsigned i = 0; i < QUORUM; i++)
        command(i, "CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru");
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(has_cause(i, REDLOCK_CAUSE_EVICTING));
    CHECK_STATUS(live_acquire("twentytwo", LONG_TTL_MS, 0, &lock), REDLOCK_EEXCLUDED);
    ck_assert_msg(strstr(live_node(0).text, "allkeys-lru") != NULL, "%s", live_text());
    evict_nothing();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_node_stats(live.client, 0).reconnects, 0);
    live_check_works();
}
END_TEST

static atomic_uint long_ttls;

static void count_long_ttls(redlock_t *client, const redlock_event_t *event, void *unused)
{
    (void)client;
    (void)unused;
    if (event->kind == REDLOCK_EVENT_TTL_EXCEEDS_MAX)
        atomic_fetch_add(&long_ttls, event->node != NULL);
}

/* Row 13: whoever sees a key that lives longer than it may tells, and is as careful from then on,
 * if a majority shows it; one node may have set its clock back. */
START_TEST(a_key_that_lives_too_long)
{
    atomic_store(&long_ttls, 0);
    live.event_fn = count_long_ttls;
    connect_short();
    command(0, "SET stuck token PX 20000");
    CHECK_STATUS(live_inspect("stuck"), REDLOCK_OK);
    ck_assert_msg(strstr(live_node(0).text, "longer than max_ttl") != NULL, "%s", live_text());
    ck_assert(WAIT_UNTIL(atomic_load(&long_ttls) == 1, TIME_LIMIT_MS));
    cluster_restart(live.cluster, 1, false);
    ck_assert(has_cause(1, REDLOCK_CAUSE_RESTARTED));
    ck_assert_uint_lt(live_node_stats(live.client, 1).quarantine_ms, TTL_MS * 2);
    command(2, "SET stuck token PX 20000");
    command(3, "SET stuck token PX 20000");
    CHECK_STATUS(live_inspect("stuck"), REDLOCK_OK);
    ck_assert_uint_gt(live_node_stats(live.client, 1).quarantine_ms, TTL_MS * 2);
    const unsigned stuck[] = {0, 2, 3};
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(cluster_integer(live.cluster, stuck[i], "DEL stuck"), 1);
}
END_TEST

static Suite *admission_suite(void)
{
    Suite *suite = suite_create("admission");
    live_add(suite, "restart", a_restart_lets_nobody_in);
    live_add(suite, "voting again", an_event_when_it_votes_again);
    live_add_each(suite, "first contact", first_contact, 3);
    live_add(suite, "evicting", evicting_servers_do_not_vote);
    live_add(suite, "long life", a_key_that_lives_too_long);
    live_add(suite, "promoted", promoted_servers_wait);
    live_add_each(suite, "demoted", servers_that_were_demoted_meanwhile, 2);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(admission_suite());
    live_stop_servers();
    return status;
}
