/* SPDX-License-Identifier: MIT
 * A node whose first connection is silent after it was idle: another connection shows whether it is
 * dead, and then it is replaced at once. That of a slow server is kept.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply(). rig_take_sent() returns the commands that the node has sent, as text;
 * rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

#include <string.h>

#include "suite.h"

#define IDLE_NS (100 * RL_MS) /* the connection counts as idle */
#define GRACE_NS                                                                                   \
    (10 * RL_MS) /* how long the first connection may reply after that of the trial                \
                  */
#define AGAIN_NS (30 * RL_SECOND) /* between two trials of a slow server */
#define PING     "*1\r\n$4\r\nPING\r\n"

static struct rig *rig;
static struct rl_claim *a, *b; /* claims with the tokens "aa" and "bb" */

/* Fixture: makes a node with a round trip of 1 ms, and two claims. It is suspect after 10 ms. */
static void setup(void)
{
    rig = rig_new();
    a = rig_claim(rig, "aa");
    b = rig_claim(rig, "bb");
    rig_ready_with_rtt(rig, RL_MS);
}

/* Fixture: closes and frees the node and checks that nothing else refers to the claims. */
static void teardown(void)
{
    rig_done(rig);
    ck_assert(!rig->trial_open);
    rig_drop(a);
    rig_drop(b);
}

/* Lets the connection be idle for this time, and sends a SET that gets no reply in time. */
static void fall_silent_after(uint64_t idle_ns)
{
    rig_pass(rig, idle_ns);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_pass(rig, 10 * RL_MS);
    ck_assert(rig->node.detector.suspect);
    rig_check_vote(rig, a, RL_VOTE_SUSPECT, REDLOCK_CAUSE_TIMEOUT, 1);
    rig->vote_count = 0;
    rig_take_sent(rig);
}

/* The same after the shortest time that counts as idle. */
static void fall_silent(void)
{
    fall_silent_after(IDLE_NS);
    ck_assert(rig->trial_open);
}

/* Lets the server reply on the connection of the trial. */
static void reply_to_trial(const char *text)
{
    rl_trial_received(&rig->node, text, strlen(text), rig->now_ns);
    rig_flush(rig);
}

/* Opens the connection of the trial. */
static void open_trial(void)
{
    rl_trial_opened(&rig->node, true);
    rig_flush(rig);
}

/* The dead connection is closed with a reset, because a SET is in flight. Its undo follows on the
 * next connection, after the greeting. Requests may wait for that connection. */
START_TEST(a_dead_connection_is_replaced)
{
    fall_silent();
    ck_assert_uint_eq(rig_undo(rig, a, 2), RL_VOTE_NONE);
    ck_assert_uint_eq(rig->trial_len, 0);
    open_trial();
    ck_assert_uint_eq(rig->trial_len, sizeof PING - 1);
    ck_assert_int_eq(memcmp(rig->trial_wire, PING, sizeof PING - 1), 0);
    ck_assert_uint_eq(rig->closes, 0);
    reply_to_trial("+PONG\r\n");
    rig_pass(rig, GRACE_NS - 1);
    ck_assert_uint_eq(rig->closes, 0);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rig->closes, 1);
    ck_assert(rig->abortive);
    ck_assert(!rig->trial_open);
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_uint_eq(rig->votes[0].ballot.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(rig->votes[0].ballot.cause, REDLOCK_CAUSE_TIMEOUT);
    ck_assert(!rig->votes[0].ballot.unsent);
    rig->vote_count = 0;

    ck_assert_uint_eq(rig->opens, 2);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_int_eq(rig_request(rig, b, 3, RL_VERB_ACQUIRE), 0);
    rig_pass(rig, RL_MS);
    rig_connect(rig);
    ck_assert_ptr_null(strstr(rig_take_sent(rig), "aa"));
    ck_assert_uint_eq(rl_undos_key_expiry_ns(&rig->node, a), RL_NEVER);
    rig_pass(rig, RL_MS);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), "SET key bb NX PX 30000\nEVALSHA release 1 key aa\n");
    rig_reply(rig, "+OK\r\n:0\r\n");
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 3);
    ck_assert_uint_eq(rig->undone, 1);
}
END_TEST

/* The server was slow: its late reply counts, and the trial ends in each of its states. The last
 * one is that both replies have arrived at the same time. */
START_TEST(a_late_reply_ends_the_trial)
{
    fall_silent();
    if (_i > 0)
        open_trial();
    if (_i > 1)
        reply_to_trial("+PONG\r\n");
    rig_pass(rig, GRACE_NS - 1); /* the network delays the two connections differently */
    rig_reply(rig, "+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    ck_assert(!rig->trial_open);
    rig_reply(rig, "+PONG\r\n");
    rig_pass(rig, RL_SECOND);
    ck_assert_uint_eq(rig->closes, 0);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
}
END_TEST

/* A stopped server replies to nothing. Its connection is given up after two seconds, as without a
 * trial, and the trial ends with it. */
START_TEST(a_trial_without_a_reply_changes_nothing)
{
    fall_silent();
    if (_i > 0)
        open_trial();
    rig_pass(rig, 2 * RL_SECOND - 1);
    ck_assert_uint_eq(rig->closes, 0);
    ck_assert(rig->trial_open);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rig->closes, 1);
    ck_assert(!rig->trial_open);
    ck_assert(!rl_node_is_up(&rig->node));
    rig->vote_count = 0;
}
END_TEST

/* The trial fails: the connection is refused, does not take the PING, or ends. */
START_TEST(a_failed_trial_changes_nothing)
{
    fall_silent();
    rig->trial_room = _i == 1 ? 3 : SIZE_MAX;
    rl_trial_opened(&rig->node, _i != 0);
    if (_i == 2)
        rl_trial_end(&rig->node); /* the transport reports the end of its connection so */
    ck_assert(!rig->trial_open);
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->closes, 0);
    rig_reply(rig, "+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
}
END_TEST

static const struct {
    const char *reply;
    bool replaces;
} REPLIES[] = {
    {"+PONG\r\n", true},
    {"-NOAUTH Authentication required.\r\n", true},
    {"-NOPERM this user has no permissions to run the 'ping' command\r\n", true},
    {"-ERR max number of clients reached\r\n", false},
    {"-DENIED Redis is running in protected mode\r\n", false},
    {"-LOADING Redis is loading the dataset in memory\r\n", false},
    {"-BUSY Redis is busy running a script.\r\n", false},
    {"-N", false},
    {"HTTP/1.1 400 Bad Request\r\n", false},
};

/* The server has replied, but would it serve the node on a new connection? */
START_TEST(only_a_server_that_serves_replaces_the_connection)
{
    fall_silent();
    open_trial();
    reply_to_trial(REPLIES[_i].reply);
    rig_pass(rig, GRACE_NS);
    ck_assert(!rig->trial_open);
    ck_assert_uint_eq(rig->closes, REPLIES[_i].replaces);
    rig->vote_count = 0;
}
END_TEST

/* A connection in use is not put on trial, nor a new one: the time counts since the last reply or
 * the greeting. */
START_TEST(only_an_idle_connection_is_put_on_trial)
{
    if (_i == 1) {
        rig_pass(rig, RL_SECOND);
        rig_request(rig, b, 1, RL_VERB_GET);
        rig_reply(rig, "$-1\r\n");
        rig->vote_count = 0;
        rig->node.detector.srtt_ns = RL_MS;
    }
    fall_silent_after(IDLE_NS - 1);
    ck_assert_uint_eq(rig->trial_opens, 0);
    rig_pass(rig, 2 * RL_SECOND);
    ck_assert_uint_eq(rig->trial_opens, 0);
    rig->vote_count = 0;
}
END_TEST

/* Lets the server reply late, so that the trial ends. */
static void reply_late(void)
{
    rig_reply(rig, "+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    rig_reply(rig, "+PONG\r\n");
    ck_assert(!rig->node.detector.suspect);
    rig->node.detector.srtt_ns = RL_MS;
    rig->node.detector.worst_ns = 0;
}

/* A slow server gets no other connection of the client for half a minute. */
START_TEST(trials_of_a_slow_server_are_rare)
{
    uint64_t begin_ns = rig->now_ns + IDLE_NS + 10 * RL_MS;

    fall_silent();
    reply_late();
    fall_silent_after(begin_ns + AGAIN_NS - 1 - 10 * RL_MS - rig->now_ns);
    ck_assert_uint_eq(rig->trial_opens, 1);
    reply_late();
    fall_silent_after(RL_SECOND);
    ck_assert_uint_eq(rig->trial_opens, 2);
    reply_late();
}
END_TEST

/* A network that has forgotten one connection may forget the next one. */
START_TEST(a_trial_that_has_helped_may_be_repeated)
{
    for (unsigned i = 1; i <= 3; i++) {
        fall_silent_after(RL_SECOND);
        ck_assert_uint_eq(rig->trial_opens, i);
        open_trial();
        reply_to_trial("+PONG\r\n");
        rig_pass(rig, GRACE_NS);
        rig->vote_count = 0;
        rig_pass(rig, RL_MS);
        rig_connect(rig);
        rig_greet(rig);
        rig->node.detector.srtt_ns = RL_MS;
        rig->node.detector.worst_ns = 0;
    }
    ck_assert_uint_eq(rig->closes, 3);
}
END_TEST

/* Runs all cases. */
int main(void)
{
    Suite *suite = suite_create("node_trial");
    TCase *tcase = tcase_create("trial");

    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_dead_connection_is_replaced);
    tcase_add_loop_test(tcase, a_late_reply_ends_the_trial, 0, 3);
    tcase_add_loop_test(tcase, a_trial_without_a_reply_changes_nothing, 0, 2);
    tcase_add_loop_test(tcase, a_failed_trial_changes_nothing, 0, 3);
    tcase_add_loop_test(tcase, only_a_server_that_serves_replaces_the_connection, 0,
                        (int)(sizeof REPLIES / sizeof REPLIES[0]));
    tcase_add_loop_test(tcase, only_an_idle_connection_is_put_on_trial, 0, 2);
    tcase_add_test(tcase, trials_of_a_slow_server_are_rare);
    tcase_add_test(tcase, a_trial_that_has_helped_may_be_repeated);
    return suite_run(suite);
}
