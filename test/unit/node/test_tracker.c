/* SPDX-License-Identifier: MIT
 * Notifications: the second connection of a node, and the commands on both connections.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"
#include "suite.h"

#include <string.h>

#define GREETING                                                                                   \
    "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$12\r\nredlock-wake\r\n"                               \
    "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"                                                           \
    "*2\r\n$9\r\nSUBSCRIBE\r\n$20\r\n__redis__:invalidate\r\n"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"
#define PUSH       "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"
#define TRACK      "CLIENT TRACKING ON REDIRECT 77 OPTIN NOLOOP\nCLIENT CACHING YES\n"
#define TRACKED    "+OK\r\n+OK\r\n"

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

/* Delivers text on the second connection and sends what the node has in return. */
static void receive_push(const char *bytes)
{
    rig_receive_push(rig, bytes, strlen(bytes));
    rig_flush(rig);
}

/* Requests tracking, as a waiter does; the node opens its second connection. */
static void request_tracking(void)
{
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
}

/* Establishes the second connection; the server replies to its greeting. */
static void accept_subscription(void)
{
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push("+OK\r\n:77\r\n" SUBSCRIBED);
}

/* Makes the node READY with tracking on. */
static void start_tracking(void)
{
    rig_ready(rig);
    request_tracking();
    accept_subscription();
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
}

START_TEST(without_a_waiter_there_is_no_second_connection)
{
    rig_ready(rig);
    rig_pass(rig, 10 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 0);
}
END_TEST

START_TEST(without_notifications_there_is_no_second_connection)
{
    rig->common.notifications = false;
    rig_ready(rig);
    request_tracking();
    rig_pass(rig, 10 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 0);
}
END_TEST

START_TEST(tracking_starts_after_the_second_greeting)
{
    rig_ready(rig);
    request_tracking();
    ck_assert_uint_eq(rig->push_opens, 1);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, strlen(GREETING));
    ck_assert_mem_eq(rig->push_wire, GREETING, rig->push_len);
    receive_push("+OK\r\n:7");
    receive_push("7\r\n");
    ck_assert_str_eq(rig_take_sent(rig), ""); /* not before the subscription */
    receive_push(SUBSCRIBED);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 0);
    unsigned changed = rig->changed;
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    ck_assert_uint_gt(rig->changed, changed);
    ck_assert_uint_eq(rig->pushes, 1); /* any key may have changed before */
    ck_assert_uint_eq(rig->pushed_len, 0);
    rl_tracker_request(&rig->node, rig->now_ns);
    rig_pass(rig, RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 1);
}
END_TEST

START_TEST(the_second_connection_logs_in)
{
    rig->node.user = "me";
    rig->node.password = "secret";
    rig_start(rig);
    rig_connect(rig);
    rig_reply(rig, "+OK\r\n");
    rig_greet(rig);
    request_tracking();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_mem_eq(rig->push_wire, "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n*3", 36);
    receive_push("+OK\r\n+OK\r\n:77\r\n" SUBSCRIBED);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
}
END_TEST

START_TEST(the_second_greeting_may_be_sent_in_pieces)
{
    rig_ready(rig);
    request_tracking();
    rig->push_room = 10;
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, 10);
    rig->push_room = 100;
    rl_tracker_flush(&rig->node, rig->now_ns);
    rig->push_room = 500;
    rl_tracker_flush(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, strlen(GREETING));
    ck_assert_mem_eq(rig->push_wire, GREETING, rig->push_len);
}
END_TEST

START_TEST(notifications_name_the_keys)
{
    start_tracking();
    receive_push(PUSH "*1\r\n$3\r\nkey\r\n");
    ck_assert_uint_eq(rig->pushes, 2);
    ck_assert_uint_eq(rig->pushed_len, 3);
    ck_assert_mem_eq(rig->pushed, "key", 3);
    receive_push(PUSH "*2\r\n$1\r\na\r\n$2\r\nbb\r\n"); /* two at once */
    ck_assert_uint_eq(rig->pushes, 4);
    ck_assert_mem_eq(rig->pushed, "bb", 2);
    receive_push(PUSH "*-1\r\n"); /* all: FLUSHALL */
    ck_assert_uint_eq(rig->pushes, 5);
    ck_assert_uint_eq(rig->pushed_len, 0);
    ck_assert_uint_eq(rig->node.counters.notifications, 3);
}
END_TEST

/* A reply on the other connection in between uses the same buffer for its text. */
START_TEST(a_notification_may_be_split_at_every_byte)
{
    static const char push[] = PUSH "*1\r\n$12\r\nkey-of-a-lok\r\n";
    struct rl_claim *claim = rig_claim(rig, "aa");

    start_tracking();
    for (size_t cut = 1; cut < sizeof push - 1; cut++) {
        unsigned before = rig->pushes;
        rig_receive_push(rig, push, cut);
        rig_request(rig, claim, 1, RL_VERB_GET);
        rig_reply(rig, "$20\r\nsomething-else-here!\r\n");
        rig->vote_count = 0;
        rig_receive_push(rig, push + cut, sizeof push - 1 - cut);
        ck_assert_uint_eq(rig->pushes, before + 1);
        ck_assert_uint_eq(rig->pushed_len, 12);
        ck_assert_mem_eq(rig->pushed, "key-of-a-lok", 12);
    }
    rig_done(rig);
    rl_claim_drop(claim);
    setup();
}
END_TEST

/* The server or the user lacks a command: no error is reported, and no second attempt follows. */
START_TEST(a_server_that_refuses_the_second_greeting_is_not_tried_again)
{
    static const char *const greetings[] = {
        "+OK\r\n-ERR unknown subcommand\r\n",
        "+OK\r\n:77\r\n-NOPERM this user has no permissions to access the channel\r\n",
        "+OK\r\n$2\r\n77\r\n",
        "+OK\r\n:0\r\n",
        "+OK\r\n:77\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n",
        "+OK\r\n:77\r\n+OK\r\n",
    };

    rig_ready(rig);
    request_tracking();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push(greetings[_i]);
    ck_assert(!rig->push_open);
    ck_assert_uint_eq(rig->node.tracker.state, RL_TRACKER_REFUSED);
    rig_pass(rig, 60 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 1);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_str_eq(rig->node.conn.text, "");
}
END_TEST

/* The server has as many clients as it accepts. That may change, and says nothing about the user.
 */
START_TEST(a_full_server_is_tried_again)
{
    rig->node.password = "secret";
    rig_start(rig);
    rig_connect(rig);
    rig_reply(rig, "+OK\r\n");
    rig_greet(rig);
    request_tracking();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push("-ERR max number of clients reached\r\n");
    ck_assert(!rig->push_open);
    ck_assert_uint_eq(rig->node.tracker.state, RL_TRACKER_OFF);
    rig_pass(rig, RL_SECOND);
    ck_assert_uint_ge(rig->push_opens, 2);
}
END_TEST

START_TEST(a_refused_client_name_is_tolerated)
{
    rig_ready(rig);
    request_tracking();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push("-ERR unknown subcommand\r\n:77\r\n" SUBSCRIBED);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
}
END_TEST

START_TEST(refused_tracking_has_a_text_and_a_cause)
{
    static const char *const replies[] = {
        "-ERR unknown subcommand or wrong number of arguments for 'tracking'\r\n-ERR no "
        "tracking\r\n",
        "+OK\r\n-NOPERM this user has no permissions to run the 'client|caching' command\r\n"};
    static const char *const texts[] = {"'tracking'", "'client|caching'"};
    static const int causes[] = {REDLOCK_CAUSE_ERROR_REPLY, REDLOCK_CAUSE_NOPERM};

    rig_ready(rig);
    request_tracking();
    accept_subscription();
    rig_reply(rig, replies[_i]);
    ck_assert_ptr_nonnull(strstr(rig->node.tracker.text, texts[_i]));
    ck_assert_int_eq(rig->node.tracker.cause, causes[_i]);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 0);
    ck_assert(!rig->push_open);
    ck_assert(rl_node_is_up(&rig->node));
    rig_lose(rig); /* the next connection may lead to another server */
    rig_pass(rig, RL_MS);
    rig_connect(rig);
    rig_greet(rig);
    rig_pass(rig, RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
}
END_TEST

/* Waits until the node has connected again, and completes the greeting. */
static void reconnect(void)
{
    unsigned opens = rig->opens;

    for (unsigned i = 0; i < 1000 && rig->opens == opens; i++)
        rig_pass(rig, 10 * RL_MS);
    rig_connect(rig);
    rig_greet(rig);
}

/* The request for tracking ends the first connection (0) or causes invalid replies. */
START_TEST(a_server_that_breaks_at_tracking_is_tried_rarely)
{
    static const char *const replies[] = {NULL, ":7\r\n", "*1\r\n:7\r\n", "+OKAY\r\n",
                                          "$2\r\nOK\r\n+OK\r\n"};
    rig_ready(rig);
    request_tracking();
    accept_subscription();
    if (replies[_i] != NULL)
        rig_reply(rig, replies[_i]);
    ck_assert(!rl_tracker_is_on(&rig->node));
    if (rl_node_is_up(&rig->node))
        rig_lose(rig);
    for (unsigned i = 0; i < 5; i++) {
        reconnect();
        rig_pass(rig, 20 * RL_SECOND);
        ck_assert(rl_node_is_up(&rig->node));
        rig_lose(rig);
    }
    ck_assert_uint_eq(rig->push_opens, 1);
    reconnect();
    rig_pass(rig, 30 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 2);
    accept_subscription();
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    rig_lose(rig); /* tracking worked, so it is tried at once again */
    reconnect();
    rig_pass(rig, RL_MS);
    ck_assert_uint_eq(rig->push_opens, 3);
}
END_TEST

/* The server knows of the end of the second connection before the client does. */
START_TEST(a_second_connection_unknown_to_the_server_is_opened_anew)
{
    rig_ready(rig);
    request_tracking();
    accept_subscription();
    rig_reply(rig, "-ERR The client ID you want redirect to does not exist\r\n");
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_ne(rig->node.tracker.state, RL_TRACKER_REFUSED);
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
}
END_TEST

START_TEST(an_empty_error_is_a_refusal)
{
    rig_ready(rig);
    request_tracking();
    accept_subscription();
    rig_reply(rig, "-\r\n");
    ck_assert_uint_eq(rig->node.tracker.state, RL_TRACKER_REFUSED);
    ck_assert_str_eq(rig->node.tracker.text, "unexpected reply");
    ck_assert_int_eq(rig->node.tracker.cause, REDLOCK_CAUSE_PROTOCOL);
}
END_TEST

START_TEST(a_lost_second_connection_is_opened_anew)
{
    start_tracking();
    unsigned changed = rig->changed;
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_drain(rig);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_gt(rig->changed, changed);
    ck_assert(rl_node_is_up(&rig->node));
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
    accept_subscription();
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 2); /* any key may have changed in between */
}
END_TEST

/* The delays between second connections grow if each ends soon. After one that has lasted, the next
 * one follows soon. */
START_TEST(brief_second_connections_are_delayed)
{
    const uint64_t minute_ns = 60 * RL_SECOND, end_ns = rig->now_ns + minute_ns;

    start_tracking();
    while (rig->now_ns < end_ns && rig->push_opens < 1000) {
        rl_tracker_closed(&rig->node, rig->now_ns);
        rig_pass(rig, rig->node.tracker.due_ns - rig->now_ns);
        accept_subscription();
        rig_reply(rig, TRACKED);
        ck_assert(rl_tracker_is_on(&rig->node));
        rig_pass(rig, RL_MS);
    }
    /* After 50 ms, 100 ms and so on up to 5 s. */
    ck_assert_uint_le(rig->push_opens, 2 + 7 + minute_ns / (5 * RL_SECOND));
    rig_pass(rig, RL_SECOND);
    rl_tracker_closed(&rig->node, rig->now_ns);
    ck_assert_uint_le(rig->node.tracker.due_ns, rig->now_ns + 50 * RL_MS);
}
END_TEST

/* The delays grow up to 5 s. */
START_TEST(failed_second_connections_are_retried)
{
    rig_ready(rig);
    request_tracking();
    for (unsigned i = 0; i < 20; i++) {
        unsigned opens = rig->push_opens;
        if (i % 2 == 0)
            rl_tracker_opened(&rig->node, false, rig->now_ns);
        else
            rig_pass(rig, 250 * RL_MS); /* no reply at all */
        rig_pass(rig, 5 * RL_SECOND);
        ck_assert_uint_gt(rig->push_opens, opens);
        ck_assert_uint_le(rig->push_opens, opens + 8);
        if (!rig->push_open)
            rig_pass(rig, 5 * RL_SECOND);
    }
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

START_TEST(the_second_connection_ends_with_the_first)
{
    start_tracking();
    rig_lose(rig);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert(!rig->push_open);
    rig_pass(rig, RL_MS);
    rig_connect(rig);
    ck_assert_uint_eq(rig->push_opens, 1);
    rig_greet(rig);
    rig_pass(rig, RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
    accept_subscription();
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
}
END_TEST

/* The second connection ends before the reply to CLIENT TRACKING on the first one. */
START_TEST(a_late_reply_does_not_switch_tracking_on)
{
    rig_ready(rig);
    request_tracking();
    accept_subscription();
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_reply(rig, TRACKED);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 0);
}
END_TEST

START_TEST(the_reply_to_an_old_redirection_does_not_count)
{
    rig_ready(rig);
    request_tracking();
    accept_subscription();
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_pass(rig, 20 * RL_MS);
    rig->node.tracker.due_ns = rig->now_ns;
    rl_node_tick(&rig->node, rig->now_ns);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push("+OK\r\n:78\r\n" SUBSCRIBED);
    rig_reply(rig, TRACKED); /* to REDIRECT 77 */
    ck_assert(!rl_tracker_is_on(&rig->node));
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
}
END_TEST

/* The node closes the second connection and opens it again. */
START_TEST(invalid_bytes_end_the_second_connection)
{
    static const char *const lines[] = {
        "+OK\r\n",
        ":1\r\n",
        "$3\r\nkey\r\n",
        "*2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
        "*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n*1\r\n$3\r\nkey\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\nx\r\n$1\r\ny\r\n$3\r\nkey\r\n",
        "*9\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n",
        PUSH "*1000000000\r\n",
        PUSH "*1\r\n$1000000\r\n",
        PUSH "*7\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n",
        "garbage\r\n",
    };

    start_tracking();
    char big[2000];
    receive_push(lines[_i]);
    if (strstr(lines[_i], "$1000000\r\n") != NULL) {
        memset(big, 'x', sizeof big - 1);
        big[sizeof big - 1] = '\0';
        for (unsigned i = 0; i < 600 && rig->push_open; i++)
            receive_push(big);
    }
    ck_assert(!rig->push_open);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_uint_eq(rig->pushes, 1);
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
}
END_TEST

/* A server that lost its machine while it switched tracking on: nobody else awaits a reply, so only
 * the missing reply to TRACK shows that the connection is dead. */
START_TEST(tracking_without_a_reply_makes_suspect)
{
    rig_ready(rig);
    request_tracking();
    accept_subscription();
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    rig_pass(rig, RL_SECOND);
    ck_assert(rl_detector_is_suspect(&rig->node.detector));
    rig_pass(rig, 2 * RL_SECOND);
    ck_assert(!rl_connection_is_ready(&rig->node.conn));
}
END_TEST

START_TEST(events_without_a_second_connection_are_ignored)
{
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push(PUSH "*1\r\n$3\r\nkey\r\n");
    rl_tracker_flush(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rig->pushes, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tracker");
    TCase *tcase = tcase_create("tracker");
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, without_a_waiter_there_is_no_second_connection);
    tcase_add_test(tcase, without_notifications_there_is_no_second_connection);
    tcase_add_test(tcase, tracking_starts_after_the_second_greeting);
    tcase_add_test(tcase, the_second_connection_logs_in);
    tcase_add_test(tcase, the_second_greeting_may_be_sent_in_pieces);
    tcase_add_test(tcase, notifications_name_the_keys);
    tcase_add_test(tcase, a_notification_may_be_split_at_every_byte);
    tcase_add_loop_test(tcase, a_server_that_refuses_the_second_greeting_is_not_tried_again, 0, 6);
    tcase_add_test(tcase, a_full_server_is_tried_again);
    tcase_add_test(tcase, a_refused_client_name_is_tolerated);
    tcase_add_loop_test(tcase, refused_tracking_has_a_text_and_a_cause, 0, 2);
    tcase_add_loop_test(tcase, a_server_that_breaks_at_tracking_is_tried_rarely, 0, 5);
    tcase_add_test(tcase, a_second_connection_unknown_to_the_server_is_opened_anew);
    tcase_add_test(tcase, an_empty_error_is_a_refusal);
    tcase_add_test(tcase, a_lost_second_connection_is_opened_anew);
    tcase_add_test(tcase, brief_second_connections_are_delayed);
    tcase_add_test(tcase, failed_second_connections_are_retried);
    tcase_add_test(tcase, the_second_connection_ends_with_the_first);
    tcase_add_test(tcase, a_late_reply_does_not_switch_tracking_on);
    tcase_add_test(tcase, the_reply_to_an_old_redirection_does_not_count);
    tcase_add_loop_test(tcase, invalid_bytes_end_the_second_connection, 0, 11);
    tcase_add_test(tcase, tracking_without_a_reply_makes_suspect);
    tcase_add_test(tcase, events_without_a_second_connection_are_ignored);
    return suite_run(suite);
}
