/* SPDX-License-Identifier: MIT
 * All forms of a server's address, and servers that must be excluded: one with two addresses,
 * replicas, databases that do not exist.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_connect() creates live.client
 * and waits until all nodes are eligible. live_open(live_config()) returns such a client.
 * live_lock() acquires a lock, which must be granted. live_acquire(), live_extend(),
 * live_release() and live_inspect() return the status of one call and keep its report, which
 * live_info(), live_node() and live_text() read. live_check_works() acquires, extends and releases
 * a lock, which must succeed. live_voters() counts the eligible nodes, live_responsive() the nodes
 * that reply. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_event() copies each event
 * into its userdata: client_events or lock_events. */
#include "live_events.h"
#include "server.h"
#include "suite.h"

#include <stdio.h>
#include <unistd.h>

/* Starts servers that listen on Unix sockets. */
static void start_unix(void)
{
    const struct cluster_opts opts = {.unix_sockets = true};
    live_start_servers_with(&opts);
}

/* Starts servers that listen on ::1. */
static void start_v6(void)
{
    const struct cluster_opts opts = {.host = "::1"};
    live_start_servers_with(&opts);
}

/* Returns the addresses of all nodes, each with this host, and this text after its port. */
static const char *urls_like(const char *host, const char *after)
{
    static char urls[2048];
    size_t len = 0;
    for (unsigned i = 0; i < NODES; i++) {
        len += (size_t)snprintf(urls + len, sizeof urls - len, "%s%s%s:%d%s?fresh=1",
                                i == 0 ? "" : " ", cluster_scheme(live.cluster), host,
                                cluster_port(live.cluster, i), after);
    }
    return urls;
}

/* Checks that all nodes grant a lock, and that it is extended and released. */
static void check_all_nodes_vote(void)
{
    redlock_lock_t *lock = live_lock("address", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("address") == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

/* All nodes grant over Unix sockets, and two dead servers have no effect. */
START_TEST(locks_work_over_unix_sockets)
{
    live_connect();
    check_all_nodes_vote();
    cluster_kill(live.cluster, 0);
    cluster_kill(live.cluster, 1);
    live_check_works();
    live_restart_dead();
    ck_assert(WAIT_UNTIL(live_responsive(live.client) == NODES, TIME_LIMIT_MS));
}
END_TEST

/* All nodes grant over IPv6. */
START_TEST(locks_work_over_ipv6)
{
    ck_assert_ptr_nonnull(strstr(cluster_url(live.cluster, 0), "[::1]"));
    live_connect();
    check_all_nodes_vote();
}
END_TEST

/* A host name with two addresses: the second one is tried if no server listens at the first. */
START_TEST(names_are_looked_up)
{
    live.client = live_open(live_config_of(urls_like("localhost", "")));
    check_all_nodes_vote();
    cluster_kill(live.cluster, 2);
    live_check_works();
    live_restart_dead();
    ck_assert(WAIT_UNTIL(live_responsive(live.client) == NODES, TIME_LIMIT_MS));
    ck_assert_ptr_nonnull(strstr(live_node_stats(live.client, 0).node, "localhost"));
}
END_TEST

/* A host name that does not resolve gives the cause RESOLVE. */
START_TEST(an_unknown_host_is_a_cause)
{
    redlock_lock_t *lock = NULL;
    redlock_t *client = NULL;
    redlock_config_t *config = live_config_of(urls_like("no-such-host.invalid", ""));
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    live.client = client;
    ck_assert(WAIT_UNTIL(live_node_stats(client, 0).cause == REDLOCK_CAUSE_RESOLVE, TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("name", LONG_TTL_MS, wait_scaled_ms(300), &lock), REDLOCK_ENOQUORUM);
    ck_assert_msg(live_node(0).cause == REDLOCK_CAUSE_RESOLVE, "%s", live_text());
}
END_TEST

/* With "/3" in the addresses, the keys are in database 3. */
START_TEST(keys_are_in_the_database_of_the_url)
{
    live.client = live_open(live_config_of(urls_like("127.0.0.1", "/3")));
    redlock_lock_t *lock = live_lock("numbered", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(cluster_count_all_keys(live.cluster) == NODES, TIME_LIMIT_MS));
    for (unsigned i = 0; i < NODES; i++) {
        char **keys = cluster_keys(live.cluster, i);
        ck_assert_str_eq(keys[0], "db3:numbered");
        cluster_keys_free(keys);
    }
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Checks that no lock is acquired, and returns whether this node has replied with the reason. */
static bool refused_for_its_database(unsigned node)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire("none", LONG_TTL_MS, wait_scaled_ms(200), &lock), REDLOCK_ENOQUORUM);
    return strstr(live_node(node).text, "DB index is out of range") != NULL;
}

/* With a database that the servers do not have, no node is eligible, and the report has the
 * servers' message. */
START_TEST(an_unknown_database_is_a_cause)
{
    redlock_t *client = NULL;
    redlock_config_t *config = live_config_of(urls_like("127.0.0.1", "/4000"));
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    live.client = client;
    ck_assert_int_eq(redlock_wait_ready(client, wait_scaled_ms(200)), REDLOCK_ENOQUORUM);
    ck_assert_msg(WAIT_UNTIL(refused_for_its_database(0), TIME_LIMIT_MS), "%s", live_text());
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* With the prefix "lock:", the key of "name" is "lock:name" for every operation, and the name
 * stays "name" for the caller. */
START_TEST(a_prefix_is_put_before_each_key)
{
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_key_prefix(config, "lock:"), REDLOCK_OK);
    live.client = live_open(config);
    redlock_lock_t *lock = live_lock("name", LONG_TTL_MS);
    ck_assert_str_eq(redlock_lock_resource(lock, 0), "name");
    ck_assert(WAIT_UNTIL(live_nodes_with("lock:name") == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(live_inspect("name"), REDLOCK_OK);
    ck_assert_int_eq(live_info().state, REDLOCK_STATE_HELD);
    CHECK_STATUS(redlock_break(live.client, "name", NULL), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    redlock_lock_free(lock);
}
END_TEST

/* A list that contains one server under two addresses: no lock is granted. */
START_TEST(two_addresses_of_one_server_are_refused)
{
    char urls[1024];
    redlock_lock_t *lock = NULL;
    redlock_t *client = NULL;
    events_reset();
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    snprintf(urls, sizeof urls, "%s %s %s %slocalhost:%d?fresh=1", cluster_url(live.cluster, 0),
             cluster_url(live.cluster, 1), cluster_url(live.cluster, 2),
             cluster_scheme(live.cluster), cluster_port(live.cluster, 0));
    redlock_config_t *config = live_config_of(urls);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    live.client = client;
    ck_assert(WAIT_UNTIL(live_node_stats(client, 3).cause == REDLOCK_CAUSE_DUPLICATE ||
                             live_node_stats(client, 0).cause == REDLOCK_CAUSE_DUPLICATE,
                         TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_wait_ready(client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_EDUPLICATE);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_STATUS(live_acquire("twice", LONG_TTL_MS, 1000, &lock), REDLOCK_EDUPLICATE);
        ck_assert_ptr_null(lock);
    }
    ck_assert_msg(strstr(live_text(), "localhost") != NULL, "%s", live_text());
    ck_assert_msg(strstr(live_text(), "same server as") != NULL, "%s", live_text());
    ck_assert(WAIT_UNTIL(count_events(&client_events, REDLOCK_EVENT_NODE_EXCLUDED) > 0 ||
                             count_events(&client_events, REDLOCK_EVENT_NODE_DOWN) > 0,
                         TIME_LIMIT_MS));
    ck_assert_uint_eq(live_nodes_with("twice"), 0);
}
END_TEST

/* Makes a symbolic link lead to the unix socket of a node. */
static void point_link_to(const char *link, unsigned node)
{
    char target[256];
    snprintf(target, sizeof target, "%s/n%u/sock", cluster_dir(live.cluster), node);
    unlink(link);
    ck_assert_int_eq(symlink(target, link), 0);
}

/* The address of node 4 is a link: first to its own server, then to that of node 0, then back.
 * While it is a duplicate, new locks are refused, and held locks stay held. */
START_TEST(a_duplicate_is_found_and_its_end_as_well)
{
    char urls[2048], link[128];
    redlock_lock_t *other = NULL;
    snprintf(link, sizeof link, "%s/link", cluster_dir(live.cluster));
    point_link_to(link, 4);
    int len = 0;
    for (unsigned i = 0; i < 4; i++)
        len += snprintf(urls + len, sizeof urls - (size_t)len, "%s,", cluster_url(live.cluster, i));
    snprintf(urls + len, sizeof urls - (size_t)len, "unix://%s?durable=1", link);
    live.client = live_open(live_config_of(urls));
    redlock_lock_t *held = live_lock("repaired", LONG_TTL_MS);
    ck_assert(WAIT_UNTIL(live_nodes_with("repaired") == NODES, TIME_LIMIT_MS));

    point_link_to(link, 0);
    cluster_command_all(live.cluster, "CLIENT KILL TYPE normal");
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 4).cause == REDLOCK_CAUSE_DUPLICATE &&
                             live_voters(live.client) == 4,
                         TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("new", LONG_TTL_MS, 0, &other), REDLOCK_EDUPLICATE);
    CHECK_STATUS(live_extend(held, 0), REDLOCK_OK); /* by the other four nodes */
    ck_assert_msg(live_node(4).vote == REDLOCK_VOTE_FAILED &&
                      live_node(4).cause == REDLOCK_CAUSE_DUPLICATE,
                  "%s", live_text());

    point_link_to(link, 4);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    live_check_works();
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    unlink(link);
}
END_TEST

/* Makes the first `count` servers replicas of `master`, and the others masters. */
static void set_master(unsigned count, const char *master)
{
    for (unsigned i = 0; i < NODES; i++) {
        const char *target = i < count ? master : "NO ONE";
        char command[64];
        snprintf(command, sizeof command, "REPLICAOF %s", target);
        char *reply = cluster_command(live.cluster, i, command);
        ck_assert_msg(reply != NULL && strncmp(reply, "OK", 2) == 0, "%s", reply);
        free(reply);
    }
}

/* live.heal of the cases with replicas. */
static void make_all_masters(void)
{
    set_master(0, NULL);
}

/* Servers that become replicas while the client is connected. Their master does not exist, so that
 * they keep their keys. */
START_TEST(replicas_are_excluded)
{
    redlock_lock_t *lock = NULL;
    events_reset();
    live.event_fn = note_event;
    live.event_userdata = &client_events;
    live.heal = make_all_masters;
    live.durable = true; /* no quarantine after they were replicas */
    live_connect();
    set_master(2, "127.0.0.1 1");
    CHECK_STATUS(live_acquire("replica", LONG_TTL_MS, 0, &lock), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert_int_ne(live_node(0).vote, REDLOCK_VOTE_GRANTED);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).cause == REDLOCK_CAUSE_REPLICA &&
                             live_node_stats(live.client, 1).cause == REDLOCK_CAUSE_REPLICA,
                         TIME_LIMIT_MS));
    ck_assert_str_eq(live_node_stats(live.client, 0).role, "slave");
    set_master(3, "127.0.0.1 1");
    const int first = live_acquire("replica", LONG_TTL_MS, 0, &lock);
    ck_assert_msg(first == REDLOCK_EEXCLUDED, "%s: %s", redlock_error_name(first), live_text());
    ck_assert(
        WAIT_UNTIL(live_node_stats(live.client, 2).cause == REDLOCK_CAUSE_REPLICA, TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("replica", LONG_TTL_MS, wait_scaled_ms(100), &lock),
                 REDLOCK_EEXCLUDED);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_msg(live_node(i).cause == REDLOCK_CAUSE_REPLICA, "%s", live_text());
    ck_assert_int_eq(redlock_wait_ready(live.client, wait_scaled_ms(50)), REDLOCK_EEXCLUDED);
    make_all_masters();
    live_check_works();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *addresses_suite(void)
{
    Suite *suite = suite_create("addresses");
    live_add_with(suite, "unix", locks_work_over_unix_sockets, start_unix);
    live_add_with(suite, "duplicate, repaired", a_duplicate_is_found_and_its_end_as_well,
                  start_unix);
    if (server_host_works("::1"))
        live_add_with(suite, "IPv6", locks_work_over_ipv6, start_v6);
    else
        printf("# no IPv6 on this machine: that case is left out\n");
    live_add_with(suite, "localhost", names_are_looked_up, live_start_servers);
    live_add_with(suite, "no such host", an_unknown_host_is_a_cause, live_start_servers);
    live_add_with(suite, "databases", keys_are_in_the_database_of_the_url, live_start_servers);
    live_add_with(suite, "no such database", an_unknown_database_is_a_cause, live_start_servers);
    live_add_with(suite, "prefix", a_prefix_is_put_before_each_key, live_start_servers);
    live_add_with(suite, "duplicate", two_addresses_of_one_server_are_refused, live_start_servers);
    live_add_with(suite, "replicas", replicas_are_excluded, live_start_servers);
    return suite;
}

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    return suite_run_nofork(addresses_suite());
}
