/* SPDX-License-Identifier: MIT
 * Scenarios in which the network loses packets without an error. In each, a plain client that only
 * sends SET leaves its keys behind, and a client of this library deletes its own.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_connect() creates live.client
 * and waits until all nodes are eligible. live_open(live_config()) returns such a client.
 * live_acquire() and live_release() return the status of one call and keep its report, which
 * live_info(), live_node() and live_text() read. live_check_works() acquires, extends and releases
 * a lock, which must succeed. live_voters() counts the eligible nodes, live_responsive() the nodes
 * that reply. WAIT_UNTIL(condition, ms) polls and returns false after the deadline.
 * wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. */
#include "other_client.h"
#include "suite.h"

#include <hiredis/hiredis.h>

#define CUT      3   /* number of nodes whose links are cut, from node 0 on: no majority remains */
#define HASTE_MS 250 /* node timeout, below the about 400 ms until TCP has repeated a SET twice */

/* Starts servers behind links that can lose packets (network namespaces, needs root). */
static void start_with_links(void)
{
    const struct cluster_opts opts = {.network = true};
    live_start_servers_with(&opts);
}

/* Sets the state of the links to the nodes from `first` up to, not including, `end`. */
static void set_links(unsigned first, unsigned end, enum network_cut cut)
{
    for (unsigned i = first; i < end; i++)
        cluster_cut(live.cluster, i, cut);
}

/* Makes all links whole again, after the case. */
static void heal(void)
{
    set_links(0, NODES, NETWORK_WHOLE);
}

/* Opens a client that notices unresponsive servers soon, and registers the repair of the links. */
static void begin(void)
{
    live.heal = heal;
    live.silence = true;
    live_connect();
}

/* Returns to how many nodes the plain client connects, from node 0 on: to all that are cut, or to
 * none if the servers have TLS, which it does not speak. Then the cases check our client only. */
static unsigned plain_nodes(void)
{
    return live_is_tls() ? 0 : CUT;
}

/* Connects the plain client to its nodes, over their links. */
static void connect_plain(redisContext **plain)
{
    for (unsigned i = 0; i < plain_nodes(); i++) {
        char host[64];
        ck_assert_int_eq(sscanf(cluster_url(live.cluster, i), "redis://%63[0-9.]:", host), 1);
        plain[i] = redisConnect(host, cluster_port(live.cluster, i));
        ck_assert(plain[i] != NULL && plain[i]->err == 0);
    }
}

/* Sends a SET of the plain client's key on each connection and waits for no reply. */
static void send_plain_sets(redisContext **plain)
{
    for (unsigned i = 0; i < plain_nodes(); i++) {
        int done = 0;
        ck_assert_int_eq(redisAppendCommand(plain[i], "SET plain v NX PX 30000"), REDIS_OK);
        while (!done)
            ck_assert_int_eq(redisBufferWrite(plain[i], &done), REDIS_OK);
    }
}

/* Closes the connections of the plain client. */
static void disconnect_plain(redisContext **plain)
{
    for (unsigned i = 0; i < plain_nodes(); i++)
        redisFree(plain[i]);
}

/* Checks that an acquisition of "ours" ends without a quorum, because the cut nodes time out. */
static void check_no_quorum(void)
{
    redlock_lock_t *lock = NULL;
    CHECK_STATUS(live_acquire("ours", LONG_TTL_MS, 0, &lock), REDLOCK_ENOQUORUM);
    for (unsigned i = 0; i < CUT; i++)
        ck_assert_msg(live_node(i).cause == REDLOCK_CAUSE_TIMEOUT, "%s", live_text());
}

/* Waits until each of the cut nodes has executed that number of SETs of each client: 0 or 1. */
static void check_sets(unsigned of_each)
{
    for (unsigned i = 0; i < CUT; i++) {
        const uint64_t expected = i < plain_nodes() ? 2 * of_each : of_each;
        ck_assert_msg(WAIT_UNTIL(live_calls(i, "set") == expected, TIME_LIMIT_MS),
                      "node %u executed %d SETs instead of %d", i, (int)live_calls(i, "set"),
                      (int)expected);
    }
}

/* Waits for the plain client's keys on all its nodes and deletes them, which the plain client never
 * does. */
static void delete_plain_keys(void)
{
    ck_assert_msg(WAIT_UNTIL(live_nodes_with("plain") == plain_nodes(), TIME_LIMIT_MS),
                  "%u nodes have the plain client's key", live_nodes_with("plain"));
    cluster_command_all(live.cluster, "DEL plain");
}

/* Opens a client that sends its undos before the kernel has repeated a SET twice. After that TCP
 * sends no new data until an acknowledgement arrives, and these are lost, too. */
static void begin_in_haste(void)
{
    live.heal = heal;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, HASTE_MS), REDLOCK_OK);
    live.client = live_open(config);
}

/* The servers' replies are lost: the SETs are executed, and no client knows. Our key is deleted
 * while the links are still cut, and long before it would expire. */
START_TEST(scenario_04_reply_lost)
{
    redisContext *plain[CUT];
    begin_in_haste();
    connect_plain(plain);
    set_links(0, CUT, NETWORK_CUT_BACK);
    send_plain_sets(plain);
    check_no_quorum();
    check_sets(1);
    delete_plain_keys();
    ck_assert_msg(WAIT_UNTIL(live_nodes_with("ours") == 0, TIME_LIMIT_MS / 2),
                  "%u nodes have our key", live_nodes_with("ours"));
    heal();
    live_leave();
    live_connect(); /* a client that a pause of the machine does not disturb */
    live_check_works();
    disconnect_plain(plain);
}
END_TEST

/* The SETs arrive only after the links are repaired: the delete request follows ours. */
START_TEST(scenario_05_set_delayed)
{
    redisContext *plain[CUT];
    begin();
    connect_plain(plain);
    set_links(0, CUT, NETWORK_CUT_THERE);
    send_plain_sets(plain);
    check_no_quorum();
    check_sets(0);
    heal();
    check_sets(1);
    delete_plain_keys();
    ck_assert(WAIT_UNTIL(live_nodes_with("ours") == 0, TIME_LIMIT_MS));
    live_check_works();
    disconnect_plain(plain);
}
END_TEST

/* Both clients close their connections before the SETs are delivered. The kernel still delivers
 * them when the links are repaired; our key does not stay. */
START_TEST(scenario_06_closed_while_undelivered)
{
    redisContext *plain[CUT];
    begin();
    connect_plain(plain);
    set_links(0, CUT, NETWORK_CUT_THERE);
    check_no_quorum();
    live_disconnect();
    send_plain_sets(plain);
    disconnect_plain(plain);
    ck_assert_uint_ge(sockets_unsent(), plain_nodes()); /* of closed connections */
    heal();
    delete_plain_keys();
    ck_assert(WAIT_UNTIL(sockets_unsent() == 0, TIME_LIMIT_MS));
    ck_assert_msg(WAIT_UNTIL(live_nodes_with("ours") == 0, TIME_LIMIT_MS), "%u nodes have our key",
                  live_nodes_with("ours"));
}
END_TEST

/* A majority is counted over all nodes of the list, not over those that respond: the client that
 * reaches only two of five gets no lock. */
START_TEST(scenario_27_two_sides)
{
    redlock_lock_t *ours = NULL, *theirs = NULL;
    begin();
    set_links(3, NODES, NETWORK_CUT_BOTH);
    CHECK_STATUS(live_acquire("split", LONG_TTL_MS, 0, &ours), REDLOCK_OK);
    set_links(0, 3, NETWORK_CUT_BOTH);
    set_links(3, NODES, NETWORK_WHOLE);
    redlock_t *kept = live.client;
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert(WAIT_UNTIL(live_voters(live.client) == 2, TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("split", LONG_TTL_MS, wait_scaled_ms(300), &theirs),
                 REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(live_info().nodes, NODES);
    ck_assert_uint_eq(live_info().quorum, QUORUM);
    live_disconnect();
    live.client = kept;
    ck_assert_int_eq(redlock_lock_check(ours, 0), REDLOCK_OK);
    heal();
    ck_assert(WAIT_UNTIL(live_voters(live.client) == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(live_release(ours), REDLOCK_OK);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    if (network_missing() != NULL)
        return suite_skip(network_missing());
    Suite *suite = suite_create("scenario_lost_packets");
    live_add_with(suite, "04", scenario_04_reply_lost, start_with_links);
    live_add_with(suite, "05", scenario_05_set_delayed, start_with_links);
    live_add_with(suite, "06", scenario_06_closed_while_undelivered, start_with_links);
    live_add_with(suite, "27", scenario_27_two_sides, start_with_links);
    return suite_run_nofork(suite);
}
