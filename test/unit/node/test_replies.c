/* SPDX-License-Identifier: MIT
 * A node and its replies: each belongs to one request; some end the connection, some cause a
 * repetition in another form.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

#include <string.h>

#include "suite.h"

static struct rig *rig;
static struct rl_claim *a, *b; /* claims with the tokens "aa" and "bb" */

/* Fixture: makes a node that has not been started, and two claims. */
static void setup(void)
{
    rig = rig_new();
    a = rig_claim(rig, "aa");
    b = rig_claim(rig, "bb");
}

/* Fixture: closes and frees the node and checks that nothing else refers to the claims. */
static void teardown(void)
{
    rig_done(rig);
    rig_drop(a);
    rig_drop(b);
}

/* Checks that the node has closed its connection for this cause. */
static void check_closed(int cause, const char *text)
{
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_int_eq(rig->node.conn.cause, cause);
    ck_assert_str_eq(rig->node.conn.text, text);
    ck_assert_uint_eq(rig->closes, 1);
}

START_TEST(replies_belong_to_requests_in_order)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    rig_request(rig, a, 3, RL_VERB_EXTEND);
    ck_assert_str_eq(rig_take_sent(rig), "SET key aa NX PX 30000\nSET key bb NX PX 30000\n"
                                         "EVALSHA extend 1 key aa 30000\n");
    rig_freeze(rig, 700 * RL_US);
    rig_reply(rig, "+O");
    rig_no_vote(rig);
    rig_reply(rig, "K\r");
    rig_reply(rig, "\n");
    ck_assert_uint_eq(rig->votes[0].ballot.rtt_us, 700);
    ck_assert(rig->votes[0].has_reply);
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    rig_reply(rig, "$-1\r\n:1\r\n"); /* two replies in one read */
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_ptr_eq(rig->votes[0].claim, b);
    ck_assert_uint_eq(rig->votes[0].ballot.vote, RL_VOTE_DENIED);
    ck_assert_ptr_eq(rig->votes[1].claim, a);
    ck_assert_uint_eq(rig->votes[1].ballot.round, 3);
    ck_assert_uint_eq(rig->node.counters.granted, 2);
    ck_assert_uint_eq(rig->node.counters.denied, 1);
}
END_TEST

START_TEST(replies_without_round_or_owner_are_no_votes)
{
    rig_ready(rig);
    rig_request(rig, a, 0, RL_VERB_ACQUIRE); /* no round */
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    b->owner = NULL; /* its attempt has ended */
    rig_reply(rig, "+OK\r\n+OK\r\n");
    rig_no_vote(rig);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
}
END_TEST

/* ---- replies that end the connection ---- */

START_TEST(a_reply_without_a_request_ends_the_connection)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "+OK\r\n+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    check_closed(REDLOCK_CAUSE_PROTOCOL, "reply without a request");
}
END_TEST

START_TEST(a_reply_before_its_request_ends_the_connection)
{
    rig_ready(rig);
    rig->room = 0;
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_PROTOCOL, 1);
    check_closed(REDLOCK_CAUSE_PROTOCOL, "reply without a request");
}
END_TEST

static const struct {
    enum rl_verb verb;
    const char *reply;
} WRONG[] = {
    {RL_VERB_ACQUIRE, ":1\r\n"},       {RL_VERB_ACQUIRE, "+QUEUED\r\n"},
    {RL_VERB_ACQUIRE, "$2\r\nOK\r\n"}, {RL_VERB_EXTEND, "+OK\r\n"},
    {RL_VERB_EXTEND, ":2\r\n"},        {RL_VERB_EXTEND, "$-1\r\n"},
    {RL_VERB_HEAL, ":0\r\n"},          {RL_VERB_GET, "+OK\r\n"},
    {RL_VERB_PTTL, ":-3\r\n"},         {RL_VERB_PTTL, "$1\r\n7\r\n"},
    {RL_VERB_ACQUIRE, "*0\r\n"},       {RL_VERB_ACQUIRE, "*-1\r\n"},

    {RL_VERB_GET, "*1000000000\r\n"},  {RL_VERB_PTTL, "$1025\r\n"},
    {RL_VERB_GET, "$99999999999\r\n"}, {RL_VERB_ACQUIRE, "%1\r\n+a\r\n+b\r\n"},
    {RL_VERB_ACQUIRE, "nonsense\r\n"}, {RL_VERB_ACQUIRE, "$x\r\n"},
};

START_TEST(an_invalid_reply_ends_the_connection)
{
    static char long_reply[1100];

    rig_ready(rig);
    rig_request(rig, a, 1, WRONG[_i].verb);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    snprintf(long_reply, sizeof long_reply, "%s%s", WRONG[_i].reply,
             strncmp(WRONG[_i].reply, "$1025", 5) == 0 ? "" : "+OK\r\n");
    rig_reply(rig, long_reply);
    if (strncmp(WRONG[_i].reply, "$1025", 5) == 0) {
        memset(long_reply, 'x', 1027);
        strcpy(long_reply + 1025, "\r\n");
        rig_reply(rig, long_reply);
    } else if (strncmp(WRONG[_i].reply, "$9999", 5) == 0) {
        return; /* never complete: a time limit ends the connection */
    }
    ck_assert_uint_eq(rig->vote_count, 2); /* neither this reply nor the next one is a vote */
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(rig->votes[i].ballot.vote, RL_VOTE_FAILED);
        ck_assert_uint_eq(rig->votes[i].ballot.cause, REDLOCK_CAUSE_PROTOCOL);
    }
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_int_eq(rig->node.conn.cause, REDLOCK_CAUSE_PROTOCOL);
    ck_assert(rig->abortive); /* the second SET has no undo after it */
}
END_TEST

START_TEST(error_replies_are_failed_votes)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_OOM, 1);
    ck_assert_str_eq(rig->node.conn.text,
                     "OOM command not allowed when used memory > 'maxmemory'.");
    rig_request(rig, a, 2, RL_VERB_ACQUIRE);
    rig_reply(rig, "-ERR \x1b[2J%s%n\r\n"); /* control characters are replaced */
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_ERROR_REPLY, 2);
    ck_assert_str_eq(rig->node.conn.text, "ERR ?[2J%s%n");
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

/* Only the beginning of an error or of a status is needed: a long one is shortened, and the
 * connection stays. */
START_TEST(a_long_line_is_shortened)
{
    static char line[4000];

    rig_ready(rig);
    memset(line, 'x', sizeof line - 1);
    memcpy(line, "-MISCONF ", 9);
    memcpy(line + sizeof line - 3, "\r\n", 2);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    rig_reply(rig, line);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_ERROR_REPLY, 1);
    ck_assert_uint_eq(strlen(rig->node.conn.text), RL_TEXT_MAX - 1);
    ck_assert(strncmp(rig->node.conn.text, "MISCONF xx", 10) == 0);
    rig_reply(rig, "+OK\r\n");
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 2);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    line[0] = '+'; /* no reply to SET, however long it is */
    rig_request(rig, a, 3, RL_VERB_ACQUIRE);
    rig_reply(rig, line);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_PROTOCOL, 3);
    check_closed(REDLOCK_CAUSE_PROTOCOL, "reply of the wrong type");
}
END_TEST

/* Servers repeat commands in error texts and cut them anywhere. The text is shown to users, but the
 * token is the right to release and must not be shown. */
START_TEST(tokens_are_removed_from_error_texts)
{
    static const char *const replies[] = {
        "-ERR unknown command 'EVAL', with args beginning with: '1' 'key' '5ec4e7aa01@web3'\r\n",
        "-ERR unknown command `EVAL`, with args beginning with: `x`, `1`, `key`, `5ec4e\r\n",
        "-WEIRD 5ec4e7aa01@web3\r\n",
    };
    static const char *const shown[] = {
        "ERR unknown command 'EVAL', with args beginning with: '1' 'key",
        "ERR unknown command `EVAL`, with args beginning with: `x`, `1`, `key`,",
        "WEIRD",
    };
    struct rl_claim *claim = rig_claim(rig, "5ec4e7aa01@web3");

    rig_ready(rig);
    rig_request(rig, claim, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, replies[_i]);
    rig_check_vote(rig, claim, RL_VOTE_FAILED, REDLOCK_CAUSE_ERROR_REPLY, 1);
    ck_assert_str_eq(rig->node.conn.text, shown[_i]);
    rig_drop(claim);
}
END_TEST

/* The node reconnects, and its votes count again only when the server reports the role master. */
START_TEST(a_server_that_became_a_replica_is_admitted_anew)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_EXTEND);
    rig_reply(rig, "-READONLY You can't write against a read only replica.\r\n");
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_READONLY, 1);
    check_closed(REDLOCK_CAUSE_READONLY, "server became a replica");
    rig_pass(rig, RL_SECOND);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_greet_as(rig, "", "role:slave\r\n");
    ck_assert_int_eq(rig->node.conn.cause, REDLOCK_CAUSE_REPLICA);
    ck_assert(!rl_node_is_up(&rig->node));
    rig_pass(rig, RL_SECOND);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_int_eq(rig->node.conn.cause, REDLOCK_CAUSE_NONE);
}
END_TEST

/* ---- the commands that a server knows ---- */

START_TEST(an_unknown_script_is_sent_in_full)
{
    rig->common.node_timeout_ns = 40 * RL_MS;
    rig_ready_with_rtt(rig, 5 * RL_MS);
    rig_request(rig, a, 1, RL_VERB_EXTEND);
    rig_take_sent(rig);
    rig_pass(rig, 30 * RL_MS);
    rig_reply(rig, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    rig_no_vote(rig);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <extend> 1 key aa 30000\n");
    /* The time limit counts from the first form of the request. */
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node),
                      rig->now_ns - 30 * RL_MS + rl_node_timeout_ns(&rig->node));
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);

    rig_request(rig, a, 2, RL_VERB_EXTEND); /* times out before NOSCRIPT arrives */
    rig_pass(rig, RL_SECOND);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 2);
    rig_take_sent(rig);
    rig_reply(rig, "-NOSCRIPT No matching script.\r\n+PONG\r\n");
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <extend> 1 key aa 30000\n");
    ck_assert(!rl_node_is_up(&rig->node)); /* one reply is still missing */
    rig_reply(rig, ":1\r\n");
    rig_no_vote(rig);
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

/* Makes the node READY with a server of this version. */
static void ready_as(const char *version)
{
    rig_start(rig);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_greet_as(rig, version, "role:master\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
}

static const char *const UNKNOWN[] = {
    "-ERR unknown command 'DELEX', with args beginning with: 'key' \r\n",
    "-ERR syntax error\r\n",
    "-NOPERM this user has no permissions to run the 'delex' command\r\n",
};

/* The version has the native command, but a proxy or an ACL refuses it. The release is repeated as
 * a script in the same round, and the native command is not tried again on this connection. */
START_TEST(unknown_native_commands_fall_back_to_scripts)
{
    ready_as("redis_version:8.4.0\r\n");
    ck_assert_uint_eq(rig_undo(rig, a, 1), RL_VOTE_NONE);
    ck_assert_str_eq(rig_take_sent(rig), "DELEX key IFEQ aa\n");
    rig_reply(rig, UNKNOWN[_i]);
    rig_no_vote(rig);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA release 1 key aa\n");
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    rig_undo(rig, b, 2);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA release 1 key bb\n");
    rig_reply(rig, ":0\r\n");
    rig_check_vote(rig, b, RL_VOTE_DENIED, 0, 2);

    rig_lose(rig); /* the next connection may lead to another server */
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_greet_as(rig, "redis_version:7.2.4\r\nvalkey_version:9.0.0\r\n", "role:master\r\n");
    rig_undo(rig, b, 3);
    ck_assert_str_eq(rig_take_sent(rig), "DELIFEQ key bb\n");
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 3);
    ck_assert_uint_eq(rig->node.features.supported, RL_FEATURE_DELIFEQ);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE); /* proven, so undos use it, too */
    ck_assert_str_eq(rig_take_sent(rig), "DELIFEQ key aa\n");
    rig_reply(rig, ":0\r\n");
}
END_TEST

/* No round waits for such an undo, so an unproven command could fail unnoticed. */
START_TEST(undos_without_a_round_do_not_try_native_commands)
{
    ready_as("redis_version:8.4.0\r\n");
    rig_undo(rig, a, 0);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA release 1 key aa\n");
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rig->node.features.supported, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_replies");
    TCase *tcase = tcase_create("replies");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, replies_belong_to_requests_in_order);
    tcase_add_test(tcase, replies_without_round_or_owner_are_no_votes);
    tcase_add_test(tcase, a_reply_without_a_request_ends_the_connection);
    tcase_add_test(tcase, a_reply_before_its_request_ends_the_connection);
    tcase_add_loop_test(tcase, an_invalid_reply_ends_the_connection, 0,
                        (int)(sizeof WRONG / sizeof WRONG[0]));
    tcase_add_test(tcase, error_replies_are_failed_votes);
    tcase_add_test(tcase, a_long_line_is_shortened);
    tcase_add_loop_test(tcase, tokens_are_removed_from_error_texts, 0, 3);
    tcase_add_test(tcase, a_server_that_became_a_replica_is_admitted_anew);
    tcase_add_test(tcase, an_unknown_script_is_sent_in_full);
    tcase_add_loop_test(tcase, unknown_native_commands_fall_back_to_scripts, 0, 3);
    tcase_add_test(tcase, undos_without_a_round_do_not_try_native_commands);
    return suite_run(suite);
}
