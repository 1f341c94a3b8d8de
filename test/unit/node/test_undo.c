/* SPDX-License-Identifier: MIT
 * Undos: an undo is sent after its SET, an unsent SET is never sent late, an unconfirmed undo is
 * repeated on the next connection, and a connection is closed in a way that loses neither.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "node_rig.h"

#include <string.h>

#include "suite.h"

#define SET_A     "SET key aa NX PX 30000\n"
#define SET_B     "SET key bb NX PX 30000\n"
#define RELEASE_A "EVALSHA release 1 key aa\n"
#define RELEASE_B "EVALSHA release 1 key bb\n"

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

/* Ends the connection and establishes the next one. */
static void reconnect(void)
{
    rig_lose(rig);
    rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    rig_connect(rig);
    rig_greet(rig);
}

/* Returns the number of bytes of SET_A or RELEASE_A on the wire. */
static size_t wire_length(const char *command)
{
    return strcmp(command, SET_A) == 0
               ? strlen("*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2\r\naa\r\n$2\r\n"
                        "NX\r\n$2\r\nPX\r\n$5\r\n30000\r\n")
               : strlen("*5\r\n$7\r\nEVALSHA\r\n$40\r\n\r\n$1\r\n1\r\n$3\r\n"
                        "key\r\n$2\r\naa\r\n") +
                     40;
}

START_TEST(an_undo_follows_its_set)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_request(rig, b, 1, RL_VERB_ACQUIRE);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    ck_assert_str_eq(rig_take_sent(rig), SET_A SET_B RELEASE_A);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    a->owner = NULL;
    rig_reply(rig, "+OK\r\n+OK\r\n:1\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED); /* the vote for b */
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert_uint_eq(rig->opens, 1);
}
END_TEST

/* A SET of which no byte was sent needs no undo: while connecting (0), greeting (1), or ready (2).
 */
START_TEST(an_unsent_set_is_removed_and_never_sent)
{
    if (_i == 2)
        rig_ready(rig);
    else
        rig_start(rig);
    if (_i == 1)
        rig_connect(rig);
    rig_take_sent(rig);
    rig->room = _i == 2 ? 0 : SIZE_MAX;
    rig_request(rig, b, 1, RL_VERB_ACQUIRE);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_DENIED);
    rig->room = SIZE_MAX;
    if (_i == 0)
        rig_connect(rig);
    if (_i <= 1)
        rig_greet(rig);
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), SET_B);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    rig_reply(rig, "+OK\r\n");
    ck_assert_ptr_eq(rig->votes[0].claim, b);
    rig_only_vote(rig);
}
END_TEST

START_TEST(a_set_that_was_sent_in_part_is_undone)
{
    rig_ready(rig);
    rig->room = 5;
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), SET_A RELEASE_A);
    rig_reply(rig, "+OK\r\n:1\r\n");
    rig->vote_count = 0;
}
END_TEST

START_TEST(an_unconfirmed_undo_is_repeated_on_each_connection)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_undo(rig, a, 0);
    rig_take_sent(rig);
    for (unsigned i = 0; i < 3; i++) {
        reconnect();
        ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
        ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    }
    rig_reply(rig, ":0\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    reconnect();
    ck_assert_str_eq(rig_take_sent(rig), "");
    rig->vote_count = 0;
}
END_TEST

/* The connection is lost after the SET was sent. The undo is sent on the next connection. */
START_TEST(an_unanswered_set_is_undone_on_the_next_connection)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_lose(rig);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert(!vote.unsent);
    ck_assert_uint_eq(vote.cause, REDLOCK_CAUSE_DISCONNECT);
    rig_undo(rig, a, 0);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rig->undone, 1);
}
END_TEST

/* A release whose connection is lost is reported as failed once, and is repeated as an undo. */
START_TEST(a_failed_release_is_repeated)
{
    rig_ready(rig);
    ck_assert_uint_eq(rig_undo(rig, a, 7), RL_VOTE_NONE);
    rig_lose(rig);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(vote.round, 7);
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    rig_no_vote(rig); /* the vote was reported before */
}
END_TEST

START_TEST(a_release_to_a_disconnected_node_is_kept)
{
    rig_start(rig);
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    ck_assert_uint_eq(rig_undo(rig, a, 7), RL_VOTE_FAILED); /* the round does not wait */
    ck_assert_uint_eq(rig_undo(rig, a, 8), RL_VOTE_FAILED);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1); /* kept only once */
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
}
END_TEST

START_TEST(a_refused_undo_is_repeated_after_a_second)
{
    rig_ready(rig);
    rig_undo(rig, a, 0);
    rig_take_sent(rig);
    rig_reply(rig, "-LOADING Redis is loading the dataset in memory\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    rig_pass(rig, RL_SECOND - 1);
    ck_assert_str_eq(rig_take_sent(rig), "");
    rig_pass(rig, 1);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
}
END_TEST

/* A delayed release asks for the time that is left until its end, however late the node is
 * connected again. After that end it deletes the key. */
START_TEST(a_delayed_release_keeps_its_end_across_connections)
{
    rig_ready(rig);
    a->undo_verb = RL_VERB_SHORTEN;
    a->keep_until_ns = rig->now_ns + 5 * RL_SECOND;
    rig_undo(rig, a, 1);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA shorten 1 key aa 5000\n");
    rig_lose(rig);
    rig_pass(rig, 40 * RL_MS);
    rig_freeze(rig, 1960 * RL_MS);
    rl_node_tick(&rig->node, rig->now_ns);
    if (rig->node.conn.state == RL_NODE_DOWN)
        rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
    uint64_t left_ms = (a->keep_until_ns - rig->now_ns) / RL_MS;
    rig_connect(rig);
    rig_greet(rig);
    char expected[64];
    snprintf(expected, sizeof expected, "EVALSHA shorten 1 key aa %u\n", (unsigned)left_ms);
    ck_assert_str_eq(rig_take_sent(rig), expected);
    ck_assert_uint_le(left_ms, 3000);
    rig_lose(rig); /* connected again after the end: delete */
    rig_freeze(rig, 5 * RL_SECOND);
    rig_pass(rig, 0);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig->vote_count = 0;
}
END_TEST

START_TEST(pending_undos_expire_with_their_keys)
{
    uint64_t expiry_ns = 30 * RL_SECOND + 302 * RL_MS; /* the TTL and its drift */

    rig_start(rig);
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    rig_undo(rig, a, 0);
    uint64_t end_ns = rig->now_ns + expiry_ns;
    while (rig->now_ns < end_ns - 1) { /* never reached again */
        rig_pass(rig, 1);
        uint64_t next_ns = rl_node_wake_ns(&rig->node);
        ck_assert_uint_le(next_ns, end_ns);
        ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
        rig_pass(rig, (next_ns < end_ns - 1 ? next_ns : end_ns - 1) - rig->now_ns);
        if (rig->node.conn.state == RL_NODE_CONNECTING)
            rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    }
    ck_assert_uint_eq(rig->given_up, 0);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
    ck_assert_uint_eq(a->refs, 1);
}
END_TEST

/* ---- a server that does not read ---- */

/* Makes requests until the node accepts no more, while the server reads nothing. */
static void block_output(void)
{
    rig->room = 0;
    while (rl_node_is_up(&rig->node))
        ck_assert_int_eq(rig_request(rig, b, 0, RL_VERB_EXTEND), 0);
}

START_TEST(unsent_output_has_a_limit)
{
    rig->common.node_timeout_ns = 10 * RL_SECOND;
    if (_i == 0)
        rig_ready(rig);
    else
        rig_start(rig); /* while connecting */
    block_output();
    ck_assert_uint_ge(rig->node.pipe.out_len, RL_UNSENT_MAX);
    ck_assert_uint_lt(rig->node.pipe.out_len, RL_UNSENT_MAX + 200);
    size_t before = rig->node.pipe.out_len;
    ck_assert_int_ne(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    ck_assert_uint_eq(rig->node.pipe.out_len, before);
    if (_i == 1) {
        rig_connect(rig);
        rig->room = SIZE_MAX;
        rl_node_flush(&rig->node, rig->now_ns);
        rig_greet(rig);
        ck_assert(rl_node_is_up(&rig->node));
        return;
    }
    ck_assert_uint_eq(rig_undo(rig, a, 1), RL_VOTE_FAILED);
    ck_assert_uint_eq(rig->node.pipe.out_len, before); /* pending, not in the pipeline */
    rig_pass(rig, RL_SECOND);                          /* without a busy loop */
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    rig->room = SIZE_MAX;
    unsigned changed = rig->changed;
    rl_node_flush(&rig->node, rig->now_ns);
    rig_drain(rig);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_uint_eq(rig->changed, changed + 1);
    rig->wire_len = 0;
    rig_pass(rig, 200 * RL_MS);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
}
END_TEST

/* Pending undos are kept if the next connection has no room for them at first. */
START_TEST(pending_undos_wait_while_the_pipeline_is_full)
{
    rig->common.node_timeout_ns = 10 * RL_SECOND;
    rig_ready(rig);
    rig_undo(rig, a, 0);
    rig_lose(rig);
    rig_pass(rig, 0);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    block_output();
    rig_connect(rig);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    rig_take_sent(rig);
    rig->room = 0;
    rig_greet_as(rig, "run_id:x\r\n", "role:master\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    rig_pass(rig, RL_SECOND);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    rig->wire_len = 0;
    rig_pass(rig, 200 * RL_MS);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
}
END_TEST

/* ---- how a connection is closed ---- */

static const struct {
    const char *what;
    size_t set_sent, undo_sent; /* of their bytes: 0 none, 1 some, 2 all */
    bool undo, abortive;
} CLOSES[] = {
    {"no SET at all", 0, 0, false, false},
    {"a SET in our buffer", 0, 0, false, false},
    {"a SET in part in the kernel", 1, 0, false, true},
    {"a SET, no undo", 2, 0, false, true},
    {"a SET, its undo in our buffer", 2, 0, true, true},
    {"a SET, its undo in part in the kernel", 2, 1, true, true},
    {"a SET and its undo", 2, 2, true, false},
};

START_TEST(a_close_is_abortive_if_a_set_may_lack_its_undo)
{
    size_t set = wire_length(SET_A), undo = wire_length(RELEASE_A);

    rig_ready(rig);
    rig->room = CLOSES[_i].set_sent == 2 ? set : CLOSES[_i].set_sent == 1 ? set - 1 : 0;
    if (_i > 0)
        rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    if (CLOSES[_i].undo) {
        rig->room = CLOSES[_i].undo_sent == 2 ? undo : CLOSES[_i].undo_sent == 1 ? undo - 1 : 0;
        ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    }
    if (CLOSES[_i].undo_sent == 2) /* exactly all */
        ck_assert_uint_eq(rig->node.pipe.out_len, 0);
    rl_node_close(&rig->node, REDLOCK_CAUSE_NONE, "client was closed", false, rig->now_ns);
    ck_assert_uint_eq(rig->closes, 1);
    ck_assert_msg(rig->abortive == CLOSES[_i].abortive, "%s: %s", CLOSES[_i].what,
                  rig->abortive ? "abortive" : "graceful");
    rig->vote_count = 0;
}
END_TEST

/* After the reply to the SET (0), or to its undo (1), nothing in the kernel can do harm. */
START_TEST(a_close_after_replies_is_graceful)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "+OK\r\n");
    if (_i == 1) {
        rig_undo(rig, a, 0);
        rig_reply(rig, ":1\r\n");
    }
    rig_lose(rig);
    ck_assert(!rig->abortive);
    rig->vote_count = 0;
}
END_TEST

/* If the node will reconnect, an unanswered SET (0) must not run after the undo that is repeated on
 * the next connection. The close is then abortive. */
START_TEST(a_lost_connection_is_abortive_if_its_set_is_unanswered)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    if (_i == 1)
        rig_reply(rig, "+OK\r\n");
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    rig_lose(rig);
    ck_assert_int_eq(rig->abortive, _i == 0);
    rig_pass(rig, 0);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig->vote_count = 0;
}
END_TEST

/* Heals create keys, extensions do not, and a SET that timed out may still be in the kernel. */
START_TEST(a_close_is_abortive_for_requests_that_create_keys)
{
    static const struct {
        enum rl_verb verb;
        bool abortive;
    } rows[] = {{RL_VERB_HEAL, true}, {RL_VERB_EXTEND, false}, {RL_VERB_ACQUIRE, true}};

    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, rows[_i].verb);
    rig_pass(rig, 50 * RL_MS);
    ck_assert(rig->node.detector.suspect);
    rig_lose(rig);
    ck_assert_int_eq(rig->abortive, rows[_i].abortive);
    rig->vote_count = 0;
}
END_TEST

/* When the connection ends, the engine undoes one lock and requests another. Both are sent on the
 * next connection, the undo first. */
START_TEST(an_undo_and_a_request_made_during_a_close_are_sent_later)
{
    int cause = 0;

    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_lose(rig);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_DISCONNECT, 1);
    a->owner = NULL;
    (void)rl_node_undo(&rig->node, a, 0, rig->now_ns, &cause);
    (void)rl_node_request(&rig->node, b, 9, RL_VERB_ACQUIRE, rig->now_ns);
    ck_assert(rig->abortive);
    rig_pass(rig, 0);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A SET_B);
    b->owner = NULL;
    rig_reply(rig, ":0\r\n+OK\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_undo");
    TCase *tcase = tcase_create("undo");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_undo_follows_its_set);
    tcase_add_loop_test(tcase, an_unsent_set_is_removed_and_never_sent, 0, 3);
    tcase_add_test(tcase, a_set_that_was_sent_in_part_is_undone);
    tcase_add_test(tcase, an_unconfirmed_undo_is_repeated_on_each_connection);
    tcase_add_test(tcase, an_unanswered_set_is_undone_on_the_next_connection);
    tcase_add_test(tcase, a_failed_release_is_repeated);
    tcase_add_test(tcase, a_release_to_a_disconnected_node_is_kept);
    tcase_add_test(tcase, a_refused_undo_is_repeated_after_a_second);
    tcase_add_test(tcase, a_delayed_release_keeps_its_end_across_connections);
    tcase_add_test(tcase, pending_undos_expire_with_their_keys);
    tcase_add_loop_test(tcase, unsent_output_has_a_limit, 0, 2);
    tcase_add_test(tcase, pending_undos_wait_while_the_pipeline_is_full);
    tcase_add_loop_test(tcase, a_close_is_abortive_if_a_set_may_lack_its_undo, 0,
                        (int)(sizeof CLOSES / sizeof CLOSES[0]));
    tcase_add_loop_test(tcase, a_close_after_replies_is_graceful, 0, 2);
    tcase_add_loop_test(tcase, a_lost_connection_is_abortive_if_its_set_is_unanswered, 0, 2);
    tcase_add_loop_test(tcase, a_close_is_abortive_for_requests_that_create_keys, 0, 3);
    tcase_add_test(tcase, an_undo_and_a_request_made_during_a_close_are_sent_later);
    return suite_run(suite);
}
