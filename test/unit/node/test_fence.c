/* SPDX-License-Identifier: MIT
 * Fenced votes on one connection: requested once, and again in another form only if the first
 * request was certainly not executed and is not undone; replies of an earlier run of the server;
 * invalid replies.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

#include "core/protocol.h"
#include "core/wire_fence.h"
#include "suite.h"

#include <string.h>

#define NOSCRIPT "-NOSCRIPT No matching script. Please use EVAL.\r\n"
#define RUN      "0123abcd" /* the run id of the rig's server */

static struct rig *rig;
static struct rl_claim *a, *b, *record;

/* Fixture: makes a READY node whose fence record is "rec" with the configuration "cfg;". `a` is
 * a fenced claim with stripe 7 and proposal 100, `b` a plain one, `record` the claim of a SEED. */
static void setup(void)
{
    rig = rig_new();
    rig->common.fence_record = (struct rl_arg){"rec", 3};
    rig->common.fence_config = (struct rl_arg){"cfg;", 4};
    rig->common.fence_run_bound = true;
    a = rig_claim(rig, "aa");
    a->fenced = true;
    a->stripe = 7;
    a->proposal = 100;
    b = rig_claim(rig, "bb");
    record = rig_claim(rig, "0123456789abcdef1:2 3:4");
    record->is_record = true;
    rig_ready(rig);
}

/* Fixture: closes and frees the node and checks that nothing else refers to the claims. */
static void teardown(void)
{
    rig_done(rig);
    rig_drop(a);
    rig_drop(b);
    rig_drop(record);
}

/* Makes a request and checks the command that is sent. */
static void send_request(struct rl_claim *claim, enum rl_verb verb, const char *said)
{
    ck_assert_int_eq(rig_request(rig, claim, 1, verb), 0);
    ck_assert_str_eq(rig_take_sent(rig), said);
}

/* Requests a fenced vote. */
static void send_vote(void)
{
    send_request(a, RL_VERB_ACQUIRE, "EVALSHA vote 2 key rec aa 30000 7 100 cfg;\n");
}

START_TEST(a_fenced_vote_and_its_second_round)
{
    send_vote();
    rig_reply(rig, "$14\r\nA 99 " RUN " \r\n"); /* with the blank this is another run id */
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_FAILED);
    send_vote();
    rig_reply(rig, "$13\r\nA 99 " RUN "\r\n");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_GRANTED);
    ck_assert(vote.accepted && vote.register_value == 99 && vote.record == RL_RECORD_ADMITTED);
    a->fence = 171;
    send_request(a, RL_VERB_RAISE, "EVALSHA raise 2 key rec aa 7 171 cfg;\n");
    rig_reply(rig, "$10\r\nA " RUN "\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
    /* A heal is a plain SET, without a fencing token. */
    send_request(a, RL_VERB_HEAL, "SET key aa NX PX 30000\n");
    rig_reply(rig, "+OK\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
}
END_TEST

START_TEST(unfenced_votes_are_plain)
{
    send_request(b, RL_VERB_ACQUIRE, "SET key bb NX PX 30000\n");
    rig_reply(rig, "+OK\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
}
END_TEST

START_TEST(records_are_read_and_seeded_for_this_run)
{
    send_request(record, RL_VERB_READ, "EVALSHA read 1 rec cfg; " RUN " 0123456789abcdef 1024\n");
    rig_reply(rig, NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <read> 1 rec cfg; " RUN " 0123456789abcdef 1024\n");
    rig_reply(rig, "$2\r\n\n\n\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
    send_request(record, RL_VERB_SEED,
                 "EVALSHA seed 1 rec cfg; " RUN " 0123456789abcdef 1:2 3:4\n");
    rig_reply(rig, "$1\r\nS\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_DENIED);
    record->forced = true;
    rig->common.fence_run_bound = false;
    rig->common.cache.claim = NULL;
    send_request(record, RL_VERB_SEED, "EVALSHA seed 1 rec cfg;  * 1:2 3:4\n");
    rig_reply(rig, "$2\r\nA \r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
}
END_TEST

START_TEST(a_record_of_another_run_does_not_count)
{
    static const char *const others[] = {"$13\r\nA 99 0123abce\r\n", "$12\r\nA 99 0123abc\r\n",
                                         "$5\r\nA 99 \r\n", "$14\r\nG 99 0123abcd0\r\n"};

    send_vote();
    rig_reply(rig, others[_i]);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(vote.cause, REDLOCK_CAUSE_FENCE_RECORD);
    ck_assert_uint_eq(vote.record, RL_RECORD_OLD_RUN);
    ck_assert(!vote.unsent); /* the key is set and must be undone */
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    /* Records that survive restarts may be of any run, but the operator must attest that. */
    rig->common.fence_run_bound = false;
    send_vote();
    rig_reply(rig, others[_i]);
    vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(vote.record, RL_RECORD_UNATTESTED);
    rig->node.eligibility.admission.durable = true;
    send_vote();
    rig_reply(rig, others[_i]);
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
}
END_TEST

/* The vote was requested when too few records were known to be in use. It does not count, but the
 * state of its record is noticed. */
START_TEST(a_vote_requested_too_early_does_not_count)
{
    a->too_early = true;
    a->unread = _i == 1;
    send_vote();
    rig_reply(rig, "$13\r\nA 99 " RUN "\r\n");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(vote.cause,
                      _i == 1 ? REDLOCK_CAUSE_FENCE_RECORDS_UNREAD : REDLOCK_CAUSE_FENCE_RECORD);
    ck_assert_uint_eq(vote.record, RL_RECORD_ADMITTED);
    ck_assert(!vote.unsent); /* the key is set and must be undone */
}
END_TEST

/* NOSCRIPT proves that the vote was not executed. */
START_TEST(an_unknown_script_is_sent_again_in_full)
{
    send_vote();
    rig_reply(rig, NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <vote> 2 key rec aa 30000 7 100 cfg;\n");
    rig_no_vote(rig);
    rig_reply(rig, "$13\r\nA 99 " RUN "\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
}
END_TEST

/* A probe only reads the key, so it does not prevent the repetition. Waiters send one with each
 * vote to the preferred node. */
START_TEST(a_vote_is_repeated_after_a_probe_of_its_key)
{
    send_vote();
    if (_i == 1)
        rig->node.tracker.on = true;
    ck_assert_int_eq(rl_node_probe_and_track(&rig->node, a, 1, rig->now_ns), 0);
    rig_flush(rig);
    ck_assert_str_eq(rig_take_sent(rig), _i == 1 ? "CLIENT CACHING YES\nPTTL key\n" : "PTTL key\n");
    rig_reply(rig, NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <vote> 2 key rec aa 30000 7 100 cfg;\n");
    rig_no_vote(rig);
    rig_reply(rig, _i == 1 ? "+OK\r\n:-2\r\n" : ":-2\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).verb, RL_VERB_PTTL);
    rig_reply(rig, "$13\r\nA 99 " RUN "\r\n");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.verb, RL_VERB_ACQUIRE);
    ck_assert_uint_eq(vote.vote, RL_VOTE_GRANTED);
}
END_TEST

/* After its own undo, a repeated vote would leave a key that is never undone. */
START_TEST(a_vote_is_not_repeated_after_its_undo)
{
    send_vote();
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA release 1 key aa\n");
    rig_reply(rig, NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert(vote.unsent); /* the key was certainly not set */
    rig_reply(rig, ":0\r\n");
    ck_assert_uint_eq(rig->undone, 1);
}
END_TEST

/* A repeated vote that is still unsent when the claim is undone is removed. */
START_TEST(a_repeated_vote_can_be_removed_unsent)
{
    send_vote();
    rig_pass(rig, RL_MS);
    rig->room = 0;
    rig_reply(rig, NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "");
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_DENIED);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), "");
}
END_TEST

/* An undo that could not be sent yet also prevents the repetition. */
START_TEST(a_vote_is_not_repeated_while_its_undo_is_pending)
{
    static char key[64 * 1024];
    struct rl_claim *wide = rl_claim_new(&rig->mem, (struct rl_arg){key, sizeof key}, 64);
    const char *script = rl_protocol_script(RL_VERB_ACQUIRE, RL_FORM_SHA)->text;

    ck_assert_ptr_nonnull(wide);
    rl_claim_set_token(wide, (struct rl_arg){"w", 1});
    send_vote();
    rig->room = 0;
    while (rig->node.pipe.out_len < RL_UNSENT_MAX)
        ck_assert_int_eq(rig_request(rig, wide, 2, RL_VERB_HEAL), 0);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_FAILED);
    rig_reply(rig, NOSCRIPT);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert(vote.unsent);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_ptr_null(memmem(rig->wire, rig->wire_len, script, strlen(script)));
    rl_claim_drop(wide);
}
END_TEST

/* After an extension that was denied, a repeated vote would set a key that the holder believes to
 * be missing. */
START_TEST(a_vote_is_not_repeated_after_an_extension)
{
    send_vote();
    rig_request(rig, a, 2, RL_VERB_EXTEND);
    rig_take_sent(rig);
    rig_reply(rig, NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert(vote.unsent);
    rig_reply(rig, ":0\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_DENIED);
}
END_TEST

START_TEST(a_vote_of_an_ended_attempt_is_not_repeated)
{
    send_vote();
    a->owner = NULL; /* the attempt has ended */
    rig_reply(rig, NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "");
    rig_no_vote(rig);
}
END_TEST

/* Whether the vote was executed is unknown after a lost connection, so it is not sent again. */
START_TEST(a_vote_is_not_repeated_on_the_next_connection)
{
    send_vote();
    rig_lose(rig);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert(!vote.unsent);
    rig_ready(rig);
    ck_assert_str_eq(rig_take_sent(rig), "");
}
END_TEST

START_TEST(invalid_replies_end_the_connection)
{
    static const char *const garbage[] = {":1\r\n",           "+OK\r\n",     "$-1\r\n",
                                          "$1\r\nX\r\n",      "$1\r\nA\r\n", "*1\r\n:1\r\n",
                                          "$7\r\nA 1.5 r\r\n"};
    static const enum rl_verb verbs[] = {RL_VERB_ACQUIRE, RL_VERB_RAISE};

    for (size_t i = 0; i < 2; i++) {
        if (verbs[i] == RL_VERB_RAISE && (_i == 4 || _i == 6))
            continue; /* for RAISE these are valid replies of another run */
        if (i == 1)
            rig_ready(rig);
        ck_assert_int_eq(rig_request(rig, a, 1, verbs[i]), 0);
        rig_take_sent(rig);
        rig_reply(rig, garbage[_i]);
        struct rl_ballot vote = rig_only_vote(rig);
        ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
        ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    }
}
END_TEST

/* A reply about an unusable record does not end the connection. */
START_TEST(unusable_records_fail_the_vote_only)
{
    static const char *const texts[] = {"$1\r\nM\r\n", "$9\r\nR v1 k=64\r\n", "$1\r\nC\r\n",
                                        "-WRONGTYPE Operation against a key\r\n"};
    static const uint8_t states[] = {RL_RECORD_MISSING, RL_RECORD_FOREIGN, RL_RECORD_CORRUPT,
                                     RL_RECORD_CORRUPT};

    send_vote();
    rig_reply(rig, texts[_i]);
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_FAILED);
    ck_assert_uint_eq(vote.cause, REDLOCK_CAUSE_FENCE_RECORD);
    ck_assert_uint_eq(vote.record, states[_i]);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_fence");
    TCase *tcase = tcase_create("node_fence");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_fenced_vote_and_its_second_round);
    tcase_add_test(tcase, unfenced_votes_are_plain);
    tcase_add_test(tcase, records_are_read_and_seeded_for_this_run);
    tcase_add_loop_test(tcase, a_record_of_another_run_does_not_count, 0, 4);
    tcase_add_loop_test(tcase, a_vote_requested_too_early_does_not_count, 0, 2);
    tcase_add_test(tcase, an_unknown_script_is_sent_again_in_full);
    tcase_add_loop_test(tcase, a_vote_is_repeated_after_a_probe_of_its_key, 0, 2);
    tcase_add_test(tcase, a_vote_is_not_repeated_after_its_undo);
    tcase_add_test(tcase, a_repeated_vote_can_be_removed_unsent);
    tcase_add_test(tcase, a_vote_is_not_repeated_while_its_undo_is_pending);
    tcase_add_test(tcase, a_vote_is_not_repeated_after_an_extension);
    tcase_add_test(tcase, a_vote_of_an_ended_attempt_is_not_repeated);
    tcase_add_test(tcase, a_vote_is_not_repeated_on_the_next_connection);
    tcase_add_loop_test(tcase, invalid_replies_end_the_connection, 0, 7);
    tcase_add_loop_test(tcase, unusable_records_fail_the_vote_only, 0, 4);
    return suite_run(suite);
}
