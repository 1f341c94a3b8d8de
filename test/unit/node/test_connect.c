/* SPDX-License-Identifier: MIT
 * A node and its connection: the greeting, the replies that are tolerated, those that are not, and
 * when the next connection is tried.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

#include "node/node_parts.h"

#include <string.h>

#include "suite.h"

static struct rig *rig;

/* Fixture: makes a node that has not been started. */
static void setup(void)
{
    rig = rig_new();
}

/* Fixture: closes and frees the node. */
static void teardown(void)
{
    rig_done(rig);
}

#define REST                                                                                       \
    "TIME\nSCRIPT LOAD <release>\nSCRIPT LOAD <extend>\nSCRIPT LOAD <shorten>\n"                   \
    "EVAL return 1 0\nEVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0\n"
#define FIRST                                                                                      \
    "CLIENT SETNAME redlock\nINFO server\nINFO replication\nINFO memory\nINFO persistence\nINFO "  \
    "cpu\n"
#define SET "SET key tok NX PX 30000\n"

static const struct {
    const char *user, *password;
    unsigned db;
    const char *commands;
} GREETINGS[] = {
    {NULL, NULL, 0, FIRST REST},
    {NULL, "pw", 0, "AUTH pw\n" FIRST REST},
    {"me", "pw", 0, "AUTH me pw\n" FIRST REST},
    {"me", "pw", 7, "AUTH me pw\n" FIRST "SELECT 7\n" REST},
    {NULL, NULL, 2147483647, FIRST "SELECT 2147483647\n" REST},
    {"me", NULL, 0, FIRST REST}, /* without a password there is no AUTH */
};

/* The login comes first, and requests wait for all replies to the greeting. */
START_TEST(the_greeting_precedes_the_requests)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig->node.user = GREETINGS[_i].user;
    rig->node.password = GREETINGS[_i].password;
    rig->node.db = GREETINGS[_i].db;
    rig_start(rig);
    ck_assert_int_eq(rig_request(rig, claim, 1, RL_VERB_ACQUIRE), 0);
    ck_assert_str_eq(rig_take_sent(rig), "");
    rig_connect(rig);
    ck_assert_str_eq(rig_take_sent(rig), GREETINGS[_i].commands);
    if (rig->node.password != NULL)
        rig_reply(rig, "+OK\r\n");
    ck_assert_str_eq(rig_take_sent(rig), "");
    rig_greet_as(rig, "redis_version:7.0.15\r\n", "role:master\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_str_eq(rig_take_sent(rig), SET);
    rl_claim_drop(claim);
}
END_TEST

/* Sends and receives byte by byte. */
START_TEST(a_greeting_may_be_split_at_every_byte)
{
    static const char answers[] = "+OK\r\n$22\r\nredis_version:7.0.15\r\n\r\n$11\r\nrole:master\r\n"
                                  "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n"
                                  "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n:1\r\n:1\r\n";
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
    ck_assert_str_eq(rig_take_sent(rig), FIRST REST);
    for (size_t i = 0; i < sizeof answers - 1; i++) {
        ck_assert_uint_eq(rig->node.conn.state, RL_NODE_GREETING);
        char byte[2] = {answers[i], '\0'};
        rig_reply(rig, byte);
    }
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_str_eq(rig->node.eligibility.info.version, "redis 7.0.15");
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), SET);
    rl_claim_drop(claim);
}
END_TEST

static const struct {
    const char *eval, *evalsha; /* the replies */
    int cause;                  /* 0: the node is ready */
    const char *text;
} SCRIPTS[] = {
    {":1", ":1", 0, ""},
    {":1", "-ERR unknown command 'EVALSHA', with args", 0, ""}, /* EVAL is used */
    {"-BUSY Redis is busy", ":1", REDLOCK_CAUSE_BUSY, "BUSY Redis is busy"},
    {"-ERR Script killed by user with SCRIPT KILL", "-NOSCRIPT No matching script.", 0, ""},
    {"-NOPERM this user may not run the 'eval' command", ":1", REDLOCK_CAUSE_NOPERM,
     "NOPERM this user may not run the 'eval' command"},
    {":1", "-NOPERM this user may not run the 'evalsha' command", REDLOCK_CAUSE_NOPERM,
     "NOPERM this user may not run the 'evalsha' command"},
    {"-ERR unknown command `EVAL`, with args", "-ERR unknown command `EVALSHA`",
     REDLOCK_CAUSE_NO_SCRIPTS, "server does not know EVAL, which extends and releases locks"},
};

/* A server that runs no scripts could not delete a key again: no SET is sent to it. */
START_TEST(a_server_without_scripts_gets_no_request)
{
    struct rl_claim *claim = rig_claim(rig, "tok");
    char replies[200];
    int cause = SCRIPTS[_i].cause;

    rig_start(rig);
    ck_assert_int_eq(rig_request(rig, claim, 1, RL_VERB_ACQUIRE), 0);
    rig_connect(rig);
    rig_take_sent(rig);
    rig->skips_check = true;
    rig_greet_as(rig, "", "role:master\r\n");
    ck_assert_str_eq(rig_take_sent(rig), "");
    snprintf(replies, sizeof replies, "%s\r\n%s\r\n", SCRIPTS[_i].eval, SCRIPTS[_i].evalsha);
    rig_reply(rig, replies);
    ck_assert_uint_eq(rig->node.conn.state, cause == 0 ? RL_NODE_READY : RL_NODE_DOWN);
    ck_assert_int_eq(rig->node.conn.cause, cause);
    ck_assert_str_eq(rig->node.conn.text, SCRIPTS[_i].text);
    ck_assert_str_eq(rig_take_sent(rig), cause == 0 ? SET : "");
    if (cause != 0)
        rig_check_vote(rig, claim, RL_VOTE_FAILED, cause, 1);
    rl_claim_drop(claim);
}
END_TEST

/* A user without some permissions can hold locks all the same. */
START_TEST(refused_commands_of_the_greeting_are_tolerated)
{
    static const char denied[] = "-NOPERM this user has no permissions to run this command\r\n";
    static const char answers[][64] = {
        "+OK\r\n",
        "$0\r\n\r\n",
        "$11\r\nrole:master\r\n",
        "$0\r\n\r\n",
        "$0\r\n\r\n",
        "$0\r\n\r\n",
        "*2\r\n$1\r\n1\r\n$1\r\n2\r\n",
        "$0\r\n\r\n",
        "$0\r\n\r\n",
        "$0\r\n\r\n",
        ":1\r\n",
        ":1\r\n",
    };
    const int count = (int)(sizeof answers / sizeof answers[0]);

    rig_start(rig);
    rig_connect(rig);
    for (int i = 0; i < count; i++)
        rig_reply(rig, (_i == count || _i == i) && i < count - 2 ? denied : answers[i]);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_str_eq(rig->node.conn.text, "");
    ck_assert_uint_eq(rig->closes, 0);
}
END_TEST

/* The replies up to the one to SELECT. */
#define INFO_OK "+OK\r\n+OK\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"

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
    {"-ERR max number of clients reached\r\n", REDLOCK_CAUSE_ERROR_REPLY,
     "max number of clients reached", 50},
    {"-ERR max number of clients + cluster connections reached\r\n", REDLOCK_CAUSE_ERROR_REPLY,
     "max number of clients reached", 50},
    {"$2\r\nOK\r\n", REDLOCK_CAUSE_PROTOCOL, "unexpected reply in the greeting", 50},
    {INFO_OK "-ERR DB index is out of range\r\n", REDLOCK_CAUSE_ERROR_REPLY,
     "ERR DB index is out of range", 50},
    {INFO_OK "-NOPERM no SELECT\r\n", REDLOCK_CAUSE_NOPERM, "NOPERM no SELECT", 50},
    {"+OK\r\n-NOAUTH Authentication required.\r\n", REDLOCK_CAUSE_AUTH,
     "NOAUTH Authentication required.", 1000},
    {"+OK\r\n+OK\r\n-LOADING Redis is loading the dataset\r\n", REDLOCK_CAUSE_LOADING,
     "LOADING Redis is loading the dataset", 50},
    {"+OK\r\n+OK\r\n-BUSY Redis is busy running a script\r\n", REDLOCK_CAUSE_BUSY,
     "BUSY Redis is busy running a script", 50},
    {"+OK\r\n+OK\r\n:1\r\n", REDLOCK_CAUSE_PROTOCOL, "unexpected reply in the greeting", 50},
    {"+OK\r\n+OK\r\n*1\r\n$1\r\nx\r\n", REDLOCK_CAUSE_PROTOCOL,
     "not the Redis protocol, or too long", 50},
    {"+OK\r\n+OK\r\n$65537\r\n", 0, "", 0}, /* incomplete: see a_section_of_info... */
    {"+OK\r\n+OK\r\n$21\r\nredis_mode:sentinel\r\n\r\n", REDLOCK_CAUSE_SENTINEL,
     "this is a Sentinel, not a server: give the addresses of the masters", 1000},
    {"HTTP/1.1 400 Bad Request\r\n", REDLOCK_CAUSE_PROTOCOL, "not the Redis protocol, or too long",
     50},
};

/* After a failed greeting no request was sent: a SET after a failed SELECT would be in database 0.
 */
START_TEST(a_failed_greeting_ends_the_connection)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig->node.password = "pw-s3cret";
    rig->node.db = 7;
    rig_start(rig);
    ck_assert_int_eq(rig_request(rig, claim, 5, RL_VERB_ACQUIRE), 0);
    rig_connect(rig);
    rig_take_sent(rig);
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
    ck_assert_str_eq(rig_take_sent(rig), "");
    rl_claim_drop(claim);
}
END_TEST

/* A server in protected mode sends a long error and closes the connection before it has read
 * anything. That is no reply to AUTH. */
START_TEST(protected_mode_has_its_own_cause)
{
    static char line[1200];

    memset(line, 'x', sizeof line - 1);
    memcpy(line, "-DENIED ", 8);
    memcpy(line + sizeof line - 3, "\r\n", 2);
    rig->node.password = _i == 0 ? NULL : "pw";
    rig_start(rig);
    rig_connect(rig);
    rig_reply(rig, line);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert_int_eq(rig->node.conn.cause, REDLOCK_CAUSE_PROTECTED);
    ck_assert_str_eq(rig->node.conn.text, "server is in protected mode: set requirepass, or "
                                          "protected-mode no if its network is trusted");
}
END_TEST

/* The login of the node is changed while its greeting is answered: the next connection uses it. The
 * reply to AUTH may repeat the password that was sent. */
START_TEST(a_login_may_change_at_any_time)
{
    rig->node.password = "old-s3cret";
    rig_start(rig);
    rig_connect(rig);
    ck_assert(strncmp(rig_take_sent(rig), "AUTH old-s3cret\n", 16) == 0);
    rig->node.user = _i == 0 ? "me" : NULL;
    rig->node.password = _i == 0 ? "new" : NULL;
    rig_reply(rig, "-WRONGPASS old-s3cret is wrong\r\n");
    ck_assert_int_eq(rig->node.conn.cause, REDLOCK_CAUSE_AUTH);
    ck_assert_str_eq(rig->node.conn.text, "the server does not support this login");
    rig_pass(rig, RL_SECOND);
    rig_connect(rig);
    const char *sent = rig_take_sent(rig);
    ck_assert_msg(strncmp(sent, _i == 0 ? "AUTH me new\n" : "CLIENT ", _i == 0 ? 12 : 7) == 0, "%s",
                  sent);
}
END_TEST

START_TEST(a_section_of_info_has_a_limit)
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
    rig_take_sent(rig);
    rig_greet_as(rig, "redis_version:7.0.15\r\n", "role:slave\r\nmaster_host:a\r\n");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.cause, REDLOCK_CAUSE_REPLICA);
    ck_assert(vote.unsent);
    ck_assert_str_eq(rig_take_sent(rig), "");
    ck_assert_str_eq(rig->node.conn.text, "server is a replica");
    ck_assert(!rl_node_is_up(&rig->node));
    rig_pass(rig, RL_SECOND); /* connects again, because the replica may have been promoted */
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    ck_assert(!rl_node_is_up(&rig->node));
    rig_connect(rig);
    rig_greet(rig);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert(rig->was_up);
    rl_claim_drop(claim);
}
END_TEST

START_TEST(a_failed_connection_fails_the_vote)
{
    static const char *const ends[] = {"refused", "silent", "silent greeting", "lost"};
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_start(rig);
    ck_assert(rl_node_is_up(&rig->node)); /* the first connection may succeed */
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
    ck_assert(!rl_node_is_up(&rig->node)); /* later requests fail at once */
    ck_assert_int_ne(rig_request(rig, claim, 10, RL_VERB_ACQUIRE), 0);
    rig_no_vote(rig);
    rl_claim_drop(claim);
}
END_TEST

START_TEST(delays_between_connections_grow)
{
    static const unsigned bounds_ms[] = {50, 100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000};

    for (unsigned longest = 0; longest < 2; longest++) {
        teardown();
        setup();
        rig->common.random = longest ? 0 : UINT64_MAX;
        rig_start(rig);
        for (unsigned i = 0; i < sizeof bounds_ms / sizeof bounds_ms[0]; i++) {
            rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
            uint64_t wait_ns = rl_node_wake_ns(&rig->node) - rig->now_ns;
            ck_assert_uint_le(wait_ns, bounds_ms[i] * RL_MS);
            ck_assert_uint_ge(wait_ns, bounds_ms[i] * RL_MS * 3 / 4);
            if (longest)
                ck_assert_uint_eq(wait_ns, bounds_ms[i] * RL_MS);
            rig_pass(rig, wait_ns);
            ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
            ck_assert(!rl_node_is_up(&rig->node));
        }
        ck_assert_uint_eq(rig->opens, 11);
    }
}
END_TEST

/* A lost connection that has lasted for RL_LASTING_NS is reestablished at once, used or not. */
START_TEST(a_lasting_connection_is_reestablished_at_once)
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

/* The server replies to one vote and closes the connection (0), or stops replying (1). The delays
 * between connections grow although each greeting succeeds. */
START_TEST(brief_connections_are_delayed)
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
    /* At once, then after 50 ms and so on up to 2 s, each shortened by up to a quarter. */
    ck_assert_uint_le(rig->opens, 2 + 6 + minute_ns / (1500 * RL_MS));
    ck_assert_uint_gt(_i == 0 ? rig->node.conn.brief : rig->node.conn.failures, 6);
    rl_claim_drop(claim);
}
END_TEST

/* The engine marks the node as a duplicate: its server has two addresses. */
START_TEST(duplicates_are_disconnected)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rig_start(rig);
    rig_request(rig, claim, 1, RL_VERB_ACQUIRE);
    rig_connect(rig);
    rig->node.eligibility.duplicate = true;
    rig_take_sent(rig);
    rig_greet_as(rig, "run_id:same\r\n", "role:master\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).cause, REDLOCK_CAUSE_DUPLICATE);
    ck_assert_str_eq(rig_take_sent(rig), "");
    ck_assert_str_eq(rig->node.eligibility.run_id, "same");
    ck_assert_uint_ge(rl_node_wake_ns(&rig->node), rig->now_ns + 750 * RL_MS);
    rl_claim_drop(claim);
}
END_TEST

START_TEST(a_closed_node_stays_closed)
{
    rig_ready(rig);
    rl_node_close(&rig->node, REDLOCK_CAUSE_NONE, "client was closed", false, rig->now_ns);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
    ck_assert(!rl_node_is_up(&rig->node));
    rig_pass(rig, 1000 * RL_SECOND);
    ck_assert_uint_eq(rig->opens, 1);
}
END_TEST

START_TEST(a_failed_send_ends_the_connection)
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
    tcase_add_loop_test(tcase, the_greeting_precedes_the_requests, 0, 6);
    tcase_add_test(tcase, a_greeting_may_be_split_at_every_byte);
    tcase_add_loop_test(tcase, refused_commands_of_the_greeting_are_tolerated, 0, 13);
    tcase_add_loop_test(tcase, a_server_without_scripts_gets_no_request, 0,
                        (int)(sizeof SCRIPTS / sizeof SCRIPTS[0]));
    tcase_add_loop_test(tcase, a_failed_greeting_ends_the_connection, 0,
                        (int)(sizeof REFUSED / sizeof REFUSED[0]));
    tcase_add_loop_test(tcase, a_login_may_change_at_any_time, 0, 2);
    tcase_add_loop_test(tcase, protected_mode_has_its_own_cause, 0, 2);
    tcase_add_test(tcase, a_section_of_info_has_a_limit);
    tcase_add_test(tcase, replicas_do_not_vote);
    tcase_add_loop_test(tcase, a_failed_connection_fails_the_vote, 0, 4);
    tcase_add_test(tcase, delays_between_connections_grow);
    tcase_add_test(tcase, a_lasting_connection_is_reestablished_at_once);
    tcase_add_loop_test(tcase, brief_connections_are_delayed, 0, 2);
    tcase_add_test(tcase, duplicates_are_disconnected);
    tcase_add_test(tcase, a_closed_node_stays_closed);
    tcase_add_test(tcase, a_failed_send_ends_the_connection);
    return suite_run(suite);
}
