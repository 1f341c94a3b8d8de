/* SPDX-License-Identifier: MIT
 * What differs for a node whose connections use TLS: the time limit of the handshake, the texts of
 * failures, and the close with a record of which the kernel has only a part.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test reports the steps of a
 * connection as the sockets do. */
#include "node_rig.h"

#include "node/node_parts.h"

#include <string.h>

#include "suite.h"

#define CONNECT_NS  (250 * RL_MS) /* time limit of a connect in the rig */
#define EXPECTS_TLS " before the first reply; does this port expect TLS (rediss://)?"
#define WANTS_CERTIFICATE                                                                          \
    " before the first reply; does the server require a certificate of the client?"

/* The replies to the greeting of the second connection. */
#define GREETED "+OK\r\n:77\r\n*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"

static struct rig *rig;

/* Fixture: makes a node with notifications that has not been started. */
static void setup(void)
{
    rig = rig_new();
    rig->common.notifications = true;
}

/* Fixture: closes and frees the node. */
static void teardown(void)
{
    rig_done(rig);
}

/* Waits until the node connects, and begins the handshake a little later. */
static void begin_handshake(void)
{
    while (rig->node.conn.state == RL_NODE_DOWN)
        rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
    rig_pass(rig, CONNECT_NS / 2);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    rl_node_connected(&rig->node, rig->now_ns);
    rig_flush(rig);
}

/* Checks that the handshake that has just begun is given up after `limit_ns`, not before. */
static void check_limit(uint64_t limit_ns)
{
    unsigned closes = rig->closes;

    rig_pass(rig, limit_ns - 1);
    ck_assert_uint_eq(rig->closes, closes);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rig->closes, closes + 1);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_uint_eq(rig->node.conn.cause, REDLOCK_CAUSE_TIMEOUT);
    ck_assert_str_eq(rig->node.conn.text,
                     "no end of the TLS handshake in time; does this port speak TLS?");
}

/* The time limit of the handshake begins with it, is four times as long after each one that does
 * not end in time, and is never above 16 s. */
START_TEST(the_limit_of_the_handshake_grows)
{
    static const unsigned limits_ms[] = {250, 1000, 4000, 16000, 16000, 16000};

    rig_start(rig);
    for (unsigned i = 0; i < sizeof limits_ms / sizeof limits_ms[0]; i++) {
        begin_handshake();
        check_limit(limits_ms[i] * RL_MS);
    }
}
END_TEST

/* A limit that is no power of four times 250 ms ends at 16 s as well. A longer one stays as it is.
 */
START_TEST(the_limit_of_the_handshake_has_a_maximum)
{
    static const unsigned limits_ms[][3] = {{6000, 16000, 16000}, {20000, 20000, 20000}};

    rig->common.connect_timeout_ns = limits_ms[_i][0] * RL_MS;
    rig_start(rig);
    for (unsigned i = 0; i < 3; i++) {
        begin_handshake();
        check_limit(limits_ms[_i][i] * RL_MS);
    }
}
END_TEST

/* A connection that is greeted resets the limit. A handshake that fails in time does not change it.
 */
START_TEST(a_connection_that_is_greeted_resets_the_limit)
{
    rig_start(rig);
    begin_handshake();
    check_limit(CONNECT_NS);
    begin_handshake();
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_TLS, "refused", rig->now_ns);
    rig_flush(rig);
    begin_handshake();
    check_limit(4 * CONNECT_NS);
    begin_handshake();
    rig_connect(rig);
    rig_greet(rig);
    rig_lose(rig);
    begin_handshake();
    check_limit(CONNECT_NS);
}
END_TEST

/* So does a server that refuses the greeting in time. */
START_TEST(a_greeting_that_is_refused_resets_the_limit)
{
    rig_start(rig);
    begin_handshake();
    check_limit(CONNECT_NS);
    begin_handshake();
    rig_connect(rig);
    rig_reply(rig, "-ERR max number of clients reached\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    begin_handshake();
    check_limit(CONNECT_NS);
}
END_TEST

/* Checks that the greeting that has just begun is given up after `limit_ns`, not before. */
static void check_greeting(uint64_t limit_ns)
{
    rig_pass(rig, limit_ns - 1);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_GREETING);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_str_eq(rig->node.conn.text, "no reply to the greeting");
}

/* A greeting that takes too long after a handshake raises the limit of both. Otherwise many
 * clients that connect at once make handshakes again and again, none of which is used. */
START_TEST(a_slow_greeting_raises_the_limit)
{
    rig_start(rig);
    for (unsigned i = 1; i <= 16; i *= 4) {
        begin_handshake();
        rig_connect(rig);
        check_greeting(i * CONNECT_NS);
    }
    begin_handshake();
    check_limit(64 * CONNECT_NS);
}
END_TEST

/* A connect that takes too long is no slow handshake, and without TLS no limit grows. */
START_TEST(other_time_limits_stay_as_they_are)
{
    rig_start(rig);
    rig_pass(rig, CONNECT_NS);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_str_eq(rig->node.conn.text, "no connection in time");
    for (unsigned i = 0; i < 3; i++) {
        while (rig->node.conn.state == RL_NODE_DOWN)
            rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
        rig_connect(rig);
        check_greeting(CONNECT_NS);
    }
    begin_handshake();
    check_limit(CONNECT_NS);
}
END_TEST

/* After a handshake has failed, the next address of the server has the limit of a connect, and no
 * failure of its own counts as a slow handshake. */
START_TEST(the_next_address_has_the_limit_of_a_connect)
{
    rl_node_next_address(&rig->node, REDLOCK_CAUSE_TLS, "TLS: no", rig->now_ns);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
    rig_start(rig);
    begin_handshake();
    rl_node_next_address(&rig->node, REDLOCK_CAUSE_CONNECT, "ended", rig->now_ns);
    rig_flush(rig);
    rig_pass(rig, CONNECT_NS - 1);
    ck_assert_uint_eq(rig->closes, 0);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rig->closes, 1);
    ck_assert_str_eq(rig->node.conn.text, "no connection in time");
    begin_handshake();
    check_limit(CONNECT_NS);
}
END_TEST

/* The same for the second connection. */
START_TEST(the_next_address_of_the_second_connection_has_that_limit)
{
    rig_ready(rig);
    rl_tracker_next_address(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), RL_NEVER);
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
    rl_tracker_connected(&rig->node, rig->now_ns);
    rig_pass(rig, CONNECT_NS / 2);
    rl_tracker_next_address(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), rig->now_ns + CONNECT_NS);
    rig_flush(rig);
    rig_pass(rig, CONNECT_NS);
    ck_assert_uint_eq(rig->push_closes, 1);
    rig_pass(rig, rl_tracker_due_ns(&rig->node) - rig->now_ns);
    rl_tracker_connected(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), rig->now_ns + CONNECT_NS);
}
END_TEST

/* If one address is refused because of TLS, and the other one fails in another way, the report has
 * the reason of the first; after the next attempt it has that of the next attempt. */
START_TEST(a_refusal_by_tls_is_kept)
{
    rig_start(rig);
    begin_handshake();
    rl_node_next_address(&rig->node, REDLOCK_CAUSE_TLS, "wrong certificate", rig->now_ns);
    if (_i == 0)
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "connect: refused", rig->now_ns);
    else
        rig_pass(rig, CONNECT_NS);
    ck_assert_uint_eq(rig->closes, 1);
    ck_assert_uint_eq(rig->node.conn.cause, REDLOCK_CAUSE_TLS);
    ck_assert_str_eq(rig->node.conn.text, "wrong certificate");
    begin_handshake();
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "connect: refused", rig->now_ns);
    ck_assert_uint_eq(rig->node.conn.cause, REDLOCK_CAUSE_CONNECT);
    ck_assert_str_eq(rig->node.conn.text, "connect: refused");
}
END_TEST

/* The beginning of a handshake is ignored when no connection is being made. */
START_TEST(a_late_beginning_of_a_handshake_is_ignored)
{
    rl_node_connected(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
    rig_ready(rig);
    uint64_t wake_ns = rl_node_wake_ns(&rig->node);
    rl_node_connected(&rig->node, rig->now_ns);
    rl_tracker_connected(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), wake_ns);
    ck_assert(!rig->node.conn.securing);
}
END_TEST

/* The handshake of the second connection has the time limit of a connect, from its beginning on.
 * The next one has four times that time, also for its greeting, and after a greeting it is as at
 * first.
 */
START_TEST(the_second_connection_has_a_limit_for_its_handshake)
{
    rig_ready(rig);
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rig->push_opens, 1);
    rig_pass(rig, CONNECT_NS / 2);
    rl_tracker_connected(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), rig->now_ns + CONNECT_NS);
    rig_flush(rig);
    rig_pass(rig, CONNECT_NS - 1);
    ck_assert_uint_eq(rig->push_closes, 0);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rig->push_closes, 1);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    rig_pass(rig, rl_tracker_due_ns(&rig->node) - rig->now_ns);
    ck_assert_uint_eq(rig->push_opens, 2);
    rl_tracker_connected(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), rig->now_ns + 4 * CONNECT_NS);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), rig->now_ns + 4 * CONNECT_NS);
    rig_pass(rig, 4 * CONNECT_NS); /* the greeting gets no reply */
    rig_pass(rig, rl_tracker_due_ns(&rig->node) - rig->now_ns);
    ck_assert_uint_eq(rig->push_opens, 3);
    rl_tracker_connected(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), rig->now_ns + 16 * CONNECT_NS);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    rig_receive_push(rig, GREETED, strlen(GREETED));
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_flush(rig);
    rig_pass(rig, rl_tracker_due_ns(&rig->node) - rig->now_ns);
    ck_assert_uint_eq(rig->push_opens, 4);
    rl_tracker_connected(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rl_tracker_due_ns(&rig->node), rig->now_ns + CONNECT_NS);
}
END_TEST

static const struct {
    bool tls, replied, refused;
    const char *end, *text;
} ENDS[] = {
    {false, false, false, RL_TEXT_CLOSED, RL_TEXT_CLOSED EXPECTS_TLS},
    {false, false, false, RL_TEXT_RESET, RL_TEXT_RESET EXPECTS_TLS},
    {true, false, false, RL_TEXT_CLOSED, RL_TEXT_CLOSED WANTS_CERTIFICATE},
    {false, true, false, RL_TEXT_CLOSED, RL_TEXT_CLOSED},
    {false, false, true, RL_TEXT_CLOSED, RL_TEXT_CLOSED},   /* for another cause than the end */
    {true, false, false, "out of memory", "out of memory"}, /* in this process */
    {false, false, false, "connection lost: x", "connection lost: x"},
};

/* A server that expects TLS ends a connection without TLS before its first reply. An end that the
 * server has not caused says nothing about TLS. */
START_TEST(an_end_before_the_first_reply_may_mean_tls)
{
    rig_start(rig);
    if (ENDS[_i].tls)
        begin_handshake();
    rig_connect(rig);
    if (ENDS[_i].replied)
        rig_reply(rig, "+OK\r\n");
    rl_node_closed(&rig->node, ENDS[_i].refused ? REDLOCK_CAUSE_PROTOCOL : REDLOCK_CAUSE_DISCONNECT,
                   ENDS[_i].end, rig->now_ns);
    ck_assert_str_eq(rig->node.conn.text, ENDS[_i].text);
}
END_TEST

/* A connection in use that ends gets no such text. */
START_TEST(the_end_of_a_connection_in_use_does_not_mean_tls)
{
    rig_ready(rig);
    rl_node_closed(&rig->node, REDLOCK_CAUSE_DISCONNECT, RL_TEXT_CLOSED, rig->now_ns);
    ck_assert_str_eq(rig->node.conn.text, RL_TEXT_CLOSED);
}
END_TEST

/* The final close sends a reset if a part of the undo is in a record that the kernel does not have
 * as a whole: the close drops that record, and the server must not execute the SET alone. */
START_TEST(a_close_drops_a_held_undo)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, claim, 1, RL_VERB_ACQUIRE), 0);
    rig_undo(rig, claim, 0);
    ck_assert_str_eq(rig_take_sent(rig), "SET key tok NX PX 30000\nEVALSHA release 1 key tok\n");
    rig->held = (uint64_t)_i;
    rl_node_close(&rig->node, REDLOCK_CAUSE_NONE, "client was closed", false, rig->now_ns);
    ck_assert_int_eq(rig->abortive, _i > 0);
    rig_drain(rig);
    rl_claim_drop(claim);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tls_connections");
    TCase *tcase = tcase_create("tls_connections");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_limit_of_the_handshake_grows);
    tcase_add_loop_test(tcase, the_limit_of_the_handshake_has_a_maximum, 0, 2);
    tcase_add_test(tcase, a_connection_that_is_greeted_resets_the_limit);
    tcase_add_test(tcase, a_greeting_that_is_refused_resets_the_limit);
    tcase_add_test(tcase, a_slow_greeting_raises_the_limit);
    tcase_add_test(tcase, other_time_limits_stay_as_they_are);
    tcase_add_test(tcase, the_next_address_has_the_limit_of_a_connect);
    tcase_add_loop_test(tcase, a_refusal_by_tls_is_kept, 0, 2);
    tcase_add_test(tcase, the_next_address_of_the_second_connection_has_that_limit);
    tcase_add_test(tcase, a_late_beginning_of_a_handshake_is_ignored);
    tcase_add_test(tcase, the_second_connection_has_a_limit_for_its_handshake);
    tcase_add_loop_test(tcase, an_end_before_the_first_reply_may_mean_tls, 0,
                        (int)(sizeof ENDS / sizeof ENDS[0]));
    tcase_add_test(tcase, the_end_of_a_connection_in_use_does_not_mean_tls);
    tcase_add_loop_test(tcase, a_close_drops_a_held_undo, 0, 2);
    return suite_run(suite);
}
