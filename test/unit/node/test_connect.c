/* SPDX-License-Identifier: MIT
 * A node and its connection: the greeting, the replies that are tolerated, those that are not, and
 * when the next connection is tried. */
#include "node_rig.h"

#include "node/node_parts.h"

#include <string.h>

#include "suite.h"

static struct rig *rig;

static void setup(void)
{
    rig = rig_new();
}

static void teardown(void)
{
    rig_done(rig);
}

#define REST                                                                                       \
    "CLIENT SETNAME redlock\nINFO server\nINFO replication\nINFO memory\nINFO persistence\nINFO "  \
    "cpu\nTIME\n"                                                                                  \
    "SCRIPT LOAD <release>\nSCRIPT LOAD <extend>\nSCRIPT LOAD <shorten>\n"
#define SET "SET key tok NX PX 30000\n"

static const struct {
    const char *user, *password;
    unsigned db;
    const char *said;
} GREETINGS[] = {
    {NULL, NULL, 0, REST},
    {NULL, "pw", 0, "AUTH pw\n" REST},
    {"me", "pw", 0, "AUTH me pw\n" REST},
    {"me", "pw", 7, "AUTH me pw\nSELECT 7\n" REST},
    {NULL, NULL, 2147483647, "SELECT 2147483647\n" REST},
    {"me", NULL, 0, REST}, /* a user without a password is the server's business */
};

/* Who we are comes before what we want to know; votes wait for all answers. */
START_TEST(greeting)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig->node.user = GREETINGS[_i].user;
    rig->node.password = GREETINGS[_i].password;
    rig->node.db = GREETINGS[_i].db;
    rig_start(rig);
    ck_assert_int_eq(rig_request(rig, claim, 1, RL_VERB_ACQUIRE), 0);
    ck_assert_str_eq(rig_said(rig), "");
    rig_connect(rig);
    ck_assert_str_eq(rig_said(rig), GREETINGS[_i].said);
    if (rig->node.password != NULL)
        rig_reply(rig, "+OK\r\n");
    if (rig->node.db != 0)
        rig_reply(rig, "+OK\r\n");
    ck_assert_str_eq(rig_said(rig), "");
    rig_greet_as(rig, "redis_version:7.0.15\r\n", "role:master\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_str_eq(rig_said(rig), SET);
    rl_claim_drop(claim);
}
END_TEST

/* Byte by byte in both directions. */
START_TEST(greeting_in_pieces)
{
    static const char answers[] = "+OK\r\n$22\r\nredis_version:7.0.15\r\n\r\n$11\r\nrole:master\r\n"
                                  "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n"
                                  "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n";
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_start(rig);
    ck_assert_int_eq(rig_request(rig, claim, 1, RL_VERB_ACQUIRE), 0);
    rig->room = 0;
    rig_connect(rig);
    for (unsigned i = 0; i < 2000 && rig->node.greeting.sent < rig->node.greeting.encoded.len;
         i++) {
        rig->room = 1;
        rl_node_flush(&rig->node, rig->now_ns);
    }
    ck_assert_str_eq(rig_said(rig), REST);
    for (size_t i = 0; i < sizeof answers - 1; i++) {
        ck_assert_uint_eq(rig->node.conn.state, RL_NODE_GREETING);
        char byte[2] = {answers[i], '\0'};
        rig_reply(rig, byte);
    }
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_str_eq(rig->node.eligibility.info.version, "redis 7.0.15");
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_said(rig), SET);
    rl_claim_drop(claim);
}
END_TEST

/* A user without some permissions can hold locks all the same. */
START_TEST(tolerated_errors)
{
    static const char denied[] = "-NOPERM this user has no permissions to run this command\r\n";
    static const char answers[][64] = {
        "+OK\r\n",    "$0\r\n\r\n", "$11\r\nrole:master\r\n",       "$0\r\n\r\n",
        "$0\r\n\r\n", "$0\r\n\r\n", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n", "$0\r\n\r\n",
        "$0\r\n\r\n", "$0\r\n\r\n",
    };
    const int count = (int)(sizeof answers / sizeof answers[0]);

    rig_start(rig);
    rig_connect(rig);
    for (int i = 0; i < count; i++)
        rig_reply(rig, _i == count || _i == i ? denied : answers[i]);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_str_eq(rig->node.conn.text, "");
    ck_assert_uint_eq(rig->closes, 0);
}
END_TEST

static const struct {
    const char *answers;
    int cause;
    const char *text;
    uint64_t retry_max_ms;
} REFUSED[] = {
    {"-WRONGPASS invalid username-password pair\r\n", REDLOCK_CAUSE_AUTH,
     "WRONGPASS invalid username-password pair", 1000},
    {"-ERR anything at all\r\n", REDLOCK_CAUSE_AUTH, "the server does not support this login",
     1000},
    {"$2\r\nOK\r\n", REDLOCK_CAUSE_PROTOCOL, "unexpected reply in the handshake", 50},
    {"+OK\r\n-ERR DB index is out of range\r\n", REDLOCK_CAUSE_ERROR_REPLY,
     "ERR DB index is out of range", 50},
    {"+OK\r\n-NOPERM no SELECT\r\n", REDLOCK_CAUSE_NOPERM, "NOPERM no SELECT", 50},
    {"+OK\r\n+OK\r\n-NOAUTH Authentication required.\r\n", REDLOCK_CAUSE_AUTH,
     "NOAUTH Authentication required.", 1000},
    {"+OK\r\n+OK\r\n+OK\r\n-LOADING Redis is loading the dataset\r\n", REDLOCK_CAUSE_LOADING,
     "LOADING Redis is loading the dataset", 50},
    {"+OK\r\n+OK\r\n+OK\r\n-BUSY Redis is busy running a script\r\n", REDLOCK_CAUSE_BUSY,
     "BUSY Redis is busy running a script", 50},
    {"+OK\r\n+OK\r\n+OK\r\n:1\r\n", REDLOCK_CAUSE_PROTOCOL, "unexpected reply in the handshake",
     50},
    {"+OK\r\n+OK\r\n+OK\r\n*1\r\n$1\r\nx\r\n", REDLOCK_CAUSE_PROTOCOL,
     "not the Redis protocol, or too long", 50},
    {"+OK\r\n+OK\r\n+OK\r\n$65537\r\n", 0, "", 0}, /* it may still come: see below */
    {"HTTP/1.1 400 Bad Request\r\n", REDLOCK_CAUSE_PROTOCOL, "not the Redis protocol, or too long",
     50},
};

/* Whatever a refused greeting leaves behind, no vote was sent there: a SET behind a SELECT that
 * fails would be in database 0. */
START_TEST(refused_greeting)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig->node.password = "pw-s3cret";
    rig->node.db = 7;
    rig_start(rig);
    ck_assert_int_eq(rig_request(rig, claim, 5, RL_VERB_ACQUIRE), 0);
    rig_connect(rig);
    rig_said(rig);
    rig_reply(rig, REFUSED[_i].answers);
    ck_assert_str_eq(rig->node.conn.text, REFUSED[_i].text);
    ck_assert_ptr_null(strstr(rig->node.conn.text, "s3cret"));
    if (REFUSED[_i].cause != 0) {
        struct rl_ballot vote = rig_only_vote(rig);
        ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
        ck_assert_int_eq(vote.cause, REFUSED[_i].cause);
        ck_assert_uint_eq(vote.round, 5);
        ck_assert(vote.unsent);
        ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
        ck_assert_int_eq(rig->node.conn.cause, REFUSED[_i].cause);
        ck_assert(!rig->abortive);
        ck_assert(!rl_node_is_up(&rig->node));
        uint64_t wait_ns = rl_node_wake_ns(&rig->node) - rig->now_ns;
        ck_assert_uint_le(wait_ns, REFUSED[_i].retry_max_ms * RL_MS);
        ck_assert_uint_ge(wait_ns, REFUSED[_i].retry_max_ms * RL_MS * 3 / 4);
    }
    ck_assert_str_eq(rig_said(rig), "");
    rl_claim_drop(claim);
}
END_TEST

START_TEST(info_has_a_limit)
{
    static char bytes[65600];

    rig_start(rig);
    rig_connect(rig);
    rig_reply(rig, "+OK\r\n");
    memset(bytes, 'x', sizeof bytes - 1);
    memcpy(bytes, "$65536\r\n", 8);
    memcpy(bytes + 8 + 65536, "\r\n", 3);
    rig_reply(rig, bytes);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_GREETING);
    memset(bytes, 'x', sizeof bytes - 1);
    memcpy(bytes, "$65537\r\n", 8);
    memcpy(bytes + 8 + 65537, "\r\n", 3);
    rig_reply(rig, bytes);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_uint_eq(rig->node.conn.cause, REDLOCK_CAUSE_PROTOCOL);
}
END_TEST

START_TEST(replicas_do_not_vote)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_start(rig);
    rig_request(rig, claim, 1, RL_VERB_ACQUIRE);
    rig_connect(rig);
    rig_said(rig);
    rig_greet_as(rig, "redis_version:7.0.15\r\n", "role:slave\r\nmaster_host:a\r\n");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.cause, REDLOCK_CAUSE_REPLICA);
    ck_assert(vote.unsent);
    ck_assert_str_eq(rig_said(rig), "");
    ck_assert_str_eq(rig->node.conn.text, "server is a replica");
    ck_assert(!rl_node_is_up(&rig->node));
    rig_pass(rig, RL_SECOND); /* it is looked at again: it may have been promoted */
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    ck_assert(!rl_node_is_up(&rig->node));
    rig_connect(rig);
    rig_greet(rig);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert(rig->was_up);
    rl_claim_drop(claim);
}
END_TEST

START_TEST(no_connection_no_vote)
{
    static const char *const ends[] = {"refused", "silent", "silent greeting", "lost"};
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_start(rig);
    ck_assert(rl_node_is_up(&rig->node)); /* for the first time: it deserves a chance */
    ck_assert_int_eq(rig_request(rig, claim, 9, RL_VERB_ACQUIRE), 0);
    if (_i >= 2)
        rig_connect(rig);
    uint64_t begun_ns = rig->now_ns;
    if (_i == 0)
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "connect: Connection refused",
                       rig->now_ns);
    else if (_i == 3)
        rig_lose(rig);
    else
        rig_pass(rig, 250 * RL_MS - 1);
    rig_drain(rig);
    if (_i == 1 || _i == 2) {
        rig_no_vote(rig);
        rig_pass(rig, 1);
        ck_assert_uint_eq(rig->now_ns - begun_ns, 250 * RL_MS);
    }
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_msg(vote.vote == RL_VOTE_FAILED && vote.unsent && vote.round == 9, "%s", ends[_i]);
    ck_assert_uint_eq(rig->closes, 1);
    ck_assert(!rig->abortive);
    ck_assert_uint_eq(claim->refs, 1);
    ck_assert(!rl_node_is_up(&rig->node)); /* from now on known to be down: it costs nothing */
    ck_assert_int_ne(rig_request(rig, claim, 10, RL_VERB_ACQUIRE), 0);
    rig_no_vote(rig);
    rl_claim_drop(claim);
}
END_TEST

START_TEST(reconnects_come_slower_and_slower)
{
    static const unsigned bounds_ms[] = {50, 100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000};

    for (unsigned lucky = 0; lucky < 2; lucky++) {
        teardown();
        setup();
        rig->common.random = lucky ? 0 : UINT64_MAX;
        rig_start(rig);
        for (unsigned i = 0; i < sizeof bounds_ms / sizeof bounds_ms[0]; i++) {
            rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
            uint64_t wait_ns = rl_node_wake_ns(&rig->node) - rig->now_ns;
            ck_assert_uint_le(wait_ns, bounds_ms[i] * RL_MS);
            ck_assert_uint_ge(wait_ns, bounds_ms[i] * RL_MS * 3 / 4);
            if (lucky)
                ck_assert_uint_eq(wait_ns, bounds_ms[i] * RL_MS);
            rig_pass(rig, wait_ns);
            ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
            ck_assert(!rl_node_is_up(&rig->node));
        }
        ck_assert_uint_eq(rig->opens, 11);
    }
}
END_TEST

/* A connection that has lasted and is lost is made again at once, whether or not it was used. */
START_TEST(a_lost_connection_is_mended_at_once)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_ready(rig);
    for (unsigned i = 0; i < 3; i++) {
        if (i < 2) {
            rig_request(rig, claim, 1, RL_VERB_EXTEND);
            rig_reply(rig, ":0\r\n");
        }
        rig_pass(rig, RL_LASTING_NS);
        rig_lose(rig);
        ck_assert_uint_eq(rl_node_wake_ns(&rig->node), rig->now_ns);
        ck_assert(rl_node_is_up(&rig->node));
        rig_pass(rig, 0);
        ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
        ck_assert(rl_node_is_up(&rig->node));
        rig_connect(rig);
        rig_greet(rig);
    }
    ck_assert_uint_eq(rig->node.counters.reconnects, 3);
    rig_pass(rig, RL_LASTING_NS - 1);
    rig_lose(rig);
    ck_assert_uint_gt(rl_node_wake_ns(&rig->node), rig->now_ns);
    ck_assert(!rl_node_is_up(&rig->node));
    rl_claim_drop(claim);
}
END_TEST

/* A server that greets, answers one vote, and closes: each answer is real, and no connection lasts.
 * The delays between connections grow all the same. One that stands still instead, and is closed
 * after some seconds, has not lasted either. */
START_TEST(connections_that_do_not_last)
{
    const uint64_t minute_ns = 60 * RL_SECOND;
    struct rl_claim *claim = rig_claim(rig, "tok");
    uint64_t end_ns = rig->now_ns + minute_ns;

    rig_start(rig);
    while (rig->now_ns < end_ns && rig->opens < 1000) {
        if (rig->node.conn.state == RL_NODE_CONNECTING) {
            rig_connect(rig);
            rig_greet(rig);
            ck_assert_int_eq(rig_request(rig, claim, 1, RL_VERB_ACQUIRE), 0);
            if (_i == 0)
                rig_reply(rig, "+OK\r\n");
            rig->vote_count = 0;
            rig_pass(rig, RL_MS);
            if (_i == 0)
                rig_lose(rig);
        }
        rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
        rig->vote_count = 0;
    }
    /* At once, then after 50 ms and so on up to 2 s, of which a quarter may be left out. */
    ck_assert_uint_le(rig->opens, 2 + 6 + minute_ns / (1500 * RL_MS));
    ck_assert_uint_gt(_i == 0 ? rig->node.conn.brief : rig->node.conn.failures, 6);
    rl_claim_drop(claim);
}
END_TEST

/* The same server behind two addresses: the engine says so, and the second one is let go. */
START_TEST(duplicates_are_let_go)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_start(rig);
    rig_request(rig, claim, 1, RL_VERB_ACQUIRE);
    rig_connect(rig);
    rig->node.eligibility.duplicate = true;
    rig_said(rig);
    rig_greet_as(rig, "run_id:same\r\n", "role:master\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).cause, REDLOCK_CAUSE_DUPLICATE);
    ck_assert_str_eq(rig_said(rig), "");
    ck_assert_str_eq(rig->node.eligibility.run_id, "same");
    ck_assert_uint_ge(rl_node_wake_ns(&rig->node), rig->now_ns + 750 * RL_MS);
    rl_claim_drop(claim);
}
END_TEST

START_TEST(closed_for_good)
{
    rig_ready(rig);
    rl_node_close(&rig->node, REDLOCK_CAUSE_NONE, "client was closed", false, rig->now_ns);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
    ck_assert(!rl_node_is_up(&rig->node));
    rig_pass(rig, 1000 * RL_SECOND);
    ck_assert_uint_eq(rig->opens, 1);
}
END_TEST

START_TEST(a_send_that_fails)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_start(rig);
    rig->broken = true;
    rig_connect(rig);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    rig->broken = false;
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_greet(rig);
    rig->broken = true;
    rig_request(rig, claim, 4, RL_VERB_ACQUIRE);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.cause, REDLOCK_CAUSE_DISCONNECT);
    ck_assert(vote.unsent);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert(!rig->abortive);
    rl_claim_drop(claim);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_connect");
    TCase *tcase = tcase_create("connect");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, greeting, 0, 6);
    tcase_add_test(tcase, greeting_in_pieces);
    tcase_add_loop_test(tcase, tolerated_errors, 0, 11);
    tcase_add_loop_test(tcase, refused_greeting, 0, (int)(sizeof REFUSED / sizeof REFUSED[0]));
    tcase_add_test(tcase, info_has_a_limit);
    tcase_add_test(tcase, replicas_do_not_vote);
    tcase_add_loop_test(tcase, no_connection_no_vote, 0, 4);
    tcase_add_test(tcase, reconnects_come_slower_and_slower);
    tcase_add_test(tcase, a_lost_connection_is_mended_at_once);
    tcase_add_loop_test(tcase, connections_that_do_not_last, 0, 2);
    tcase_add_test(tcase, duplicates_are_let_go);
    tcase_add_test(tcase, closed_for_good);
    tcase_add_test(tcase, a_send_that_fails);
    return suite_run(suite);
}
