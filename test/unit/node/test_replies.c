/* SPDX-License-Identifier: MIT
 * A node and its replies: each belongs to one request; some end the connection, some cause a
 * repetition in another form. */
#include "node_rig.h"

#include <string.h>

#include "suite.h"

static struct rig *rig;
static struct rl_claim *a, *b;

static void setup(void)
{
    rig = rig_new();
    a = rig_claim(rig, "aa");
    b = rig_claim(rig, "bb");
}

static void teardown(void)
{
    rig_done(rig);
    rig_drop(a);
    rig_drop(b);
}

static void check_closed(int cause, const char *text)
{
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_int_eq(rig->node.conn.cause, cause);
    ck_assert_str_eq(rig->node.conn.text, text);
    ck_assert_uint_eq(rig->closes, 1);
}

START_TEST(answers_come_in_order)
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
    rig_reply(rig, "$-1\r\n:1\r\n"); /* two answers in one piece */
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_ptr_eq(rig->votes[0].claim, b);
    ck_assert_uint_eq(rig->votes[0].ballot.vote, RL_VOTE_DENIED);
    ck_assert_ptr_eq(rig->votes[1].claim, a);
    ck_assert_uint_eq(rig->votes[1].ballot.round, 3);
    ck_assert_uint_eq(rig->node.counters.granted, 2);
    ck_assert_uint_eq(rig->node.counters.denied, 1);
}
END_TEST

START_TEST(nobody_listens)
{
    rig_ready(rig);
    rig_request(rig, a, 0, RL_VERB_ACQUIRE); /* no round */
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    b->owner = NULL; /* nobody any more */
    rig_reply(rig, "+OK\r\n+OK\r\n");
    rig_no_vote(rig);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
}
END_TEST

/* ---- answers that end the connection ---- */

START_TEST(a_surplus_answer)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "+OK\r\n+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    check_closed(REDLOCK_CAUSE_PROTOCOL, "reply without a request");
}
END_TEST

START_TEST(an_answer_before_its_question)
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

START_TEST(a_wrong_answer)
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
        return; /* never complete: the time limit ends it */
    }
    ck_assert_uint_eq(rig->vote_count, 2); /* neither was a vote, nor what came behind it */
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(rig->votes[i].ballot.vote, RL_VOTE_FAILED);
        ck_assert_uint_eq(rig->votes[i].ballot.cause, REDLOCK_CAUSE_PROTOCOL);
    }
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_int_eq(rig->node.conn.cause, REDLOCK_CAUSE_PROTOCOL);
    ck_assert(rig->abortive); /* the second SET has no undo behind it */
}
END_TEST

START_TEST(error_answers_are_votes)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_OOM, 1);
    ck_assert_str_eq(rig->node.conn.text,
                     "OOM command not allowed when used memory > 'maxmemory'.");
    rig_request(rig, a, 2, RL_VERB_ACQUIRE);
    rig_reply(rig, "-ERR \x1b[2J%s%n\r\n"); /* a text for people: made harmless */
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_ERROR_REPLY, 2);
    ck_assert_str_eq(rig->node.conn.text, "ERR ?[2J%s%n");
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

/* A server repeats what it does not understand, and cuts it anywhere. What it said is shown to
 * people; the token is the right to release. */
START_TEST(a_token_is_not_repeated)
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

/* A master that became a replica is admitted anew: and not before it says that it is a master. */
START_TEST(readonly)
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

/* ---- the words that a server knows ---- */

START_TEST(the_script_in_full)
{
    rig->common.node_timeout_ns = 40 * RL_MS;
    rig_ready_with_rtt(rig, 5 * RL_MS);
    rig_request(rig, a, 1, RL_VERB_EXTEND);
    rig_take_sent(rig);
    rig_pass(rig, 30 * RL_MS);
    rig_reply(rig, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    rig_no_vote(rig);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <extend> 1 key aa 30000\n");
    /* One time limit for the question, not one for each form. */
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node),
                      rig->now_ns - 30 * RL_MS + rl_node_timeout_ns(&rig->node));
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);

    rig_request(rig, a, 2, RL_VERB_EXTEND); /* given up before the server has said so */
    rig_pass(rig, RL_SECOND);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 2);
    rig_take_sent(rig);
    rig_reply(rig, "-NOSCRIPT No matching script.\r\n+PONG\r\n");
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <extend> 1 key aa 30000\n");
    ck_assert(!rl_node_is_up(&rig->node)); /* it still owes that one */
    rig_reply(rig, ":1\r\n");
    rig_no_vote(rig);
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

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

/* The version promises what a proxy or the ACL does not keep: the same round, in Lua, and never
 * again on this connection. */
START_TEST(native_words_that_are_not_known)
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

    rig_lose(rig); /* another server may be behind the next connection */
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_greet_as(rig, "redis_version:7.2.4\r\nvalkey_version:9.0.0\r\n", "role:master\r\n");
    rig_undo(rig, b, 3);
    ck_assert_str_eq(rig_take_sent(rig), "DELIFEQ key bb\n");
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 3);
    ck_assert_uint_eq(rig->node.features.supported, RL_FEATURE_DELIFEQ);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE); /* shown: good for undos, too */
    ck_assert_str_eq(rig_take_sent(rig), "DELIFEQ key aa\n");
    rig_reply(rig, ":0\r\n");
}
END_TEST

/* An undo that nobody waits for is not the place to try words. */
START_TEST(undos_do_not_try_words)
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
    TCase *tcase = tcase_create("answers");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, answers_come_in_order);
    tcase_add_test(tcase, nobody_listens);
    tcase_add_test(tcase, a_surplus_answer);
    tcase_add_test(tcase, an_answer_before_its_question);
    tcase_add_loop_test(tcase, a_wrong_answer, 0, (int)(sizeof WRONG / sizeof WRONG[0]));
    tcase_add_test(tcase, error_answers_are_votes);
    tcase_add_loop_test(tcase, a_token_is_not_repeated, 0, 3);
    tcase_add_test(tcase, readonly);
    tcase_add_test(tcase, the_script_in_full);
    tcase_add_loop_test(tcase, native_words_that_are_not_known, 0, 3);
    tcase_add_test(tcase, undos_do_not_try_words);
    return suite_run(suite);
}
