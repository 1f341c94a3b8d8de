/* SPDX-License-Identifier: MIT
 * Undos: an undo is sent after its SET, an unsent SET is never sent late, an unconfirmed undo is
 * repeated on the next connection, and a connection is closed in a way that loses neither. */
#define SUITE_MANY_ASSERTIONS
#include "node_rig.h"

#include <string.h>

#include "suite.h"

#define SET_A     "SET key aa NX PX 30000\n"
#define SET_B     "SET key bb NX PX 30000\n"
#define RELEASE_A "EVALSHA release 1 key aa\n"
#define RELEASE_B "EVALSHA release 1 key bb\n"

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

/* The connection is lost, and the next one stands. */
static void reconnect(void)
{
    rig_lose(rig);
    rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    rig_connect(rig);
    rig_greet(rig);
}

static size_t length_of(const char *said)
{
    /* What the two requests of these tests are long on the wire. */
    return strcmp(said, SET_A) == 0 ? strlen("*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2\r\naa\r\n$2\r\n"
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
    ck_assert_str_eq(rig_said(rig), SET_A SET_B RELEASE_A);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    a->owner = NULL;
    rig_reply(rig, "+OK\r\n+OK\r\n:1\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED); /* b's */
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert_uint_eq(rig->opens, 1);
}
END_TEST

/* Of which no byte has left is never sent, and never undone: in every state of the connection. */
START_TEST(what_was_not_sent_is_forgotten)
{
    if (_i == 2)
        rig_ready(rig);
    else
        rig_start(rig);
    if (_i == 1)
        rig_connect(rig);
    rig_said(rig);
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
    ck_assert_str_eq(rig_said(rig), SET_B);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    rig_reply(rig, "+OK\r\n");
    ck_assert_ptr_eq(rig->votes[0].claim, b);
    rig_only_vote(rig);
}
END_TEST

START_TEST(a_set_that_left_in_part_is_undone)
{
    rig_ready(rig);
    rig->room = 5;
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_said(rig), SET_A RELEASE_A);
    rig_reply(rig, "+OK\r\n:1\r\n");
    rig->vote_count = 0;
}
END_TEST

START_TEST(an_undo_is_repeated)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_undo(rig, a, 0);
    rig_said(rig);
    for (unsigned i = 0; i < 3; i++) {
        reconnect();
        ck_assert_str_eq(rig_said(rig), RELEASE_A);
        ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    }
    rig_reply(rig, ":0\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    reconnect();
    ck_assert_str_eq(rig_said(rig), "");
    rig->vote_count = 0;
}
END_TEST

/* The attempt fails because the connection was lost: then the undo comes on the next one. */
START_TEST(a_set_whose_fate_is_not_known)
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
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rig->undone, 1);
}
END_TEST

/* A release is told as failed when the connection is lost, and is done all the same. */
START_TEST(a_release_is_repeated)
{
    rig_ready(rig);
    ck_assert_uint_eq(rig_undo(rig, a, 7), RL_VOTE_NONE);
    rig_lose(rig);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(vote.round, 7);
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_said(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    rig_no_vote(rig); /* was given */
}
END_TEST

START_TEST(a_release_to_one_that_is_down)
{
    rig_start(rig);
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    ck_assert_uint_eq(rig_undo(rig, a, 7), RL_VOTE_FAILED); /* nobody waits for it */
    ck_assert_uint_eq(rig_undo(rig, a, 8), RL_VOTE_FAILED);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1); /* once is enough */
    rig_pass(rig, 60 * RL_MS);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
}
END_TEST

START_TEST(an_undo_that_the_server_refuses)
{
    rig_ready(rig);
    rig_undo(rig, a, 0);
    rig_said(rig);
    rig_reply(rig, "-LOADING Redis is loading the dataset in memory\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    rig_pass(rig, RL_SECOND - 1);
    ck_assert_str_eq(rig_said(rig), "");
    rig_pass(rig, 1);
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
}
END_TEST

/* release_after: what is owed is "stay until then", however late the node is back. */
START_TEST(the_remaining_time)
{
    rig_ready(rig);
    a->undo_verb = RL_VERB_SHORTEN;
    a->keep_until_ns = rig->now_ns + 5 * RL_SECOND;
    rig_undo(rig, a, 1);
    ck_assert_str_eq(rig_said(rig), "EVALSHA shorten 1 key aa 5000\n");
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
    ck_assert_str_eq(rig_said(rig), expected);
    ck_assert_uint_le(left_ms, 3000);
    rig_lose(rig); /* and when that time is over: delete */
    rig_freeze(rig, 5 * RL_SECOND);
    rig_pass(rig, 0);
    rig_connect(rig);
    rig_greet(rig);
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
    rig->vote_count = 0;
}
END_TEST

START_TEST(debts_expire)
{
    uint64_t life_ns = 30 * RL_SECOND + 302 * RL_MS; /* the TTL and its drift */

    rig_start(rig);
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    rig_undo(rig, a, 0);
    uint64_t end_ns = rig->now_ns + life_ns;
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
        rig_start(rig); /* also while it connects */
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
    ck_assert_uint_eq(rig->node.pipe.out_len, before); /* owed, not queued */
    rig_pass(rig, RL_SECOND); /* looked at now and then, not all the time */
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    rig->room = SIZE_MAX;
    unsigned changed = rig->changed;
    rl_node_flush(&rig->node, rig->now_ns);
    rig_drain(rig);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_uint_eq(rig->changed, changed + 1);
    rig->wire_len = 0;
    rig_pass(rig, 200 * RL_MS);
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
}
END_TEST

/* Debts that find the next connection full of requests are not forgotten. */
START_TEST(debts_behind_a_full_queue)
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
    rig_said(rig);
    rig->room = 0;
    rig_greet_as(rig, "run_id:x\r\n", "role:master\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    rig_pass(rig, RL_SECOND);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    rig->wire_len = 0;
    rig_pass(rig, 200 * RL_MS);
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
}
END_TEST

/* ---- closing: the table of the design, row by row ---- */

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

START_TEST(closing)
{
    size_t set = length_of(SET_A), undo = length_of(RELEASE_A);

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

/* A SET that is answered needs no undo; one whose undo is answered neither. */
START_TEST(closing_after_answers)
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

/* Who comes back takes back what was not delivered, also the undo behind a SET: it goes out again
 * on the next connection, and nothing of this one may come after that. */
START_TEST(closing_to_come_back)
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
    ck_assert_str_eq(rig_said(rig), RELEASE_A);
    rig->vote_count = 0;
}
END_TEST

/* Heals make keys, too; extensions do not; and a request that timed out is still in the kernel. */
START_TEST(closing_with_other_requests)
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

/* What an engine does because of the vote of a connection that is gone: it takes one lock back, and
 * asks for another. */
START_TEST(a_close_that_is_answered)
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
    ck_assert_str_eq(rig_said(rig), RELEASE_A SET_B);
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
    tcase_add_loop_test(tcase, what_was_not_sent_is_forgotten, 0, 3);
    tcase_add_test(tcase, a_set_that_left_in_part_is_undone);
    tcase_add_test(tcase, an_undo_is_repeated);
    tcase_add_test(tcase, a_set_whose_fate_is_not_known);
    tcase_add_test(tcase, a_release_is_repeated);
    tcase_add_test(tcase, a_release_to_one_that_is_down);
    tcase_add_test(tcase, an_undo_that_the_server_refuses);
    tcase_add_test(tcase, the_remaining_time);
    tcase_add_test(tcase, debts_expire);
    tcase_add_loop_test(tcase, unsent_output_has_a_limit, 0, 2);
    tcase_add_test(tcase, debts_behind_a_full_queue);
    tcase_add_loop_test(tcase, closing, 0, (int)(sizeof CLOSES / sizeof CLOSES[0]));
    tcase_add_loop_test(tcase, closing_after_answers, 0, 2);
    tcase_add_loop_test(tcase, closing_to_come_back, 0, 2);
    tcase_add_loop_test(tcase, closing_with_other_requests, 0, 3);
    tcase_add_test(tcase, a_close_that_is_answered);
    return suite_run(suite);
}
