/* SPDX-License-Identifier: MIT
 * A node with overdue replies: how long it may be silent, the effect of suspicion, and that a late
 * reply is never taken for another request's.
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

START_TEST(the_time_limit_follows_from_the_round_trip)
{
    static const struct {
        uint64_t fixed_ns, rtt_ns, limit_ns;
    } rows[] = {
        {0, 0, 250 * RL_MS},
        {0, 100 * RL_US, 10 * RL_MS},
        {0, 1250 * RL_US, 10 * RL_MS},
        {0, 5 * RL_MS, 40 * RL_MS},
        {0, 31 * RL_MS, 248 * RL_MS},
        {0, 90 * RL_MS, 250 * RL_MS},
        {5 * RL_MS, 90 * RL_MS, 5 * RL_MS},
        {3 * RL_SECOND, RL_US, 3 * RL_SECOND},
    };

    rig->common.node_timeout_ns = rows[_i].fixed_ns;
    rig_ready_with_rtt(rig, rows[_i].rtt_ns);
    ck_assert_uint_eq(rl_node_timeout_ns(&rig->node), rows[_i].limit_ns);
    rig_pass(rig, RL_SECOND);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), rig->now_ns + rows[_i].limit_ns);
    rig_pass(rig, rows[_i].limit_ns - 1);
    rig_no_vote(rig);
    ck_assert(rl_node_is_up(&rig->node));
    rig_pass(rig, 1);
    ck_assert(!rl_node_is_up(&rig->node));
    ck_assert(rig->node.detector.suspect);
    uint64_t failure_ns = rows[_i].fixed_ns != 0 ? rows[_i].fixed_ns : 250 * RL_MS;
    if (rows[_i].limit_ns < failure_ns) {
        rig_check_vote(rig, a, RL_VOTE_SUSPECT, REDLOCK_CAUSE_TIMEOUT, 1);
        rig->vote_count = 0;
        rig_pass(rig, failure_ns - rows[_i].limit_ns - 1);
        rig_no_vote(rig);
        rig_pass(rig, 1);
    }
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 1);
}
END_TEST

/* The measured round trip never exceeds the largest time limit, or delays would grow with it. */
START_TEST(a_stopped_client_measures_no_long_round_trip)
{
    static const uint64_t fixed_ns[] = {0, 2 * RL_SECOND};
    uint64_t most_ns = fixed_ns[_i] != 0 ? fixed_ns[_i] : 250 * RL_MS;

    rig->common.node_timeout_ns = fixed_ns[_i];
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_freeze(rig, 100 * RL_SECOND);
    rig_reply(rig, "+OK\r\n");
    ck_assert_uint_gt(rig->node.detector.srtt_ns, RL_MS);
    ck_assert_uint_le(rig->node.detector.srtt_ns, RL_MS + most_ns / 8);
}
END_TEST

START_TEST(a_client_stopped_while_connecting_measures_none)
{
    rig_start(rig);
    rig_connect(rig);
    rig_freeze(rig, 100 * RL_SECOND);
    rig_greet(rig);
    ck_assert_uint_eq(rig->node.detector.srtt_ns, 250 * RL_MS);
}
END_TEST

/* When the node becomes suspect, each pending request gets a SUSPECT vote, one PING is sent, and
 * new requests are refused. A reply within the time limit still counts and ends the suspicion. */
START_TEST(a_suspect_node_may_still_reply_in_time)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_pass(rig, 6 * RL_MS);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    rig_take_sent(rig);
    rig_pass(rig, 4 * RL_MS); /* 10 ms after the first request; the second is late with it */
    ck_assert_uint_eq(rig->vote_count, 2);
    ck_assert_ptr_eq(rig->votes[1].claim, b);
    ck_assert_uint_eq(rig->votes[1].ballot.vote, RL_VOTE_SUSPECT);
    ck_assert_uint_eq(rig->votes[1].ballot.cause, REDLOCK_CAUSE_TIMEOUT);
    ck_assert(!rig->votes[1].ballot.unsent);
    ck_assert(!rig->votes[1].has_reply);
    ck_assert_uint_eq(rig->votes[1].ballot.rtt_us, 0);
    rig->vote_count = 0;
    ck_assert_str_eq(rig_take_sent(rig), "PING\n");
    ck_assert_int_eq(rig_request(rig, a, 3, RL_VERB_EXTEND), REDLOCK_CAUSE_TIMEOUT);
    rig_pass(rig, 100 * RL_MS);
    rig_no_vote(rig); /* reported once */
    rig_reply(rig, "+OK\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    ck_assert(rl_node_is_up(&rig->node));
    rig_reply(rig, "$-1\r\n+PONG\r\n");
    rig_check_vote(rig, b, RL_VOTE_DENIED, 0, 2);
    ck_assert_uint_eq(rig->node.counters.replies_late, 0);
    ck_assert_uint_eq(rig->node.counters.timeouts, 1);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);
}
END_TEST

/* The replies that were late come, but the server has ended since: it never replies to the PING.
 * Without a look at that, nothing would show that the connection is dead. */
START_TEST(a_ping_without_a_reply_makes_the_node_suspect_again)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_pass(rig, 6 * RL_MS);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    rig_pass(rig, 4 * RL_MS);
    rig_reply(rig, "+OK\r\n");
    ck_assert(!rig->node.detector.suspect);
    rig_reply(rig, "+OK\r\n");
    ck_assert(!rig->node.detector.suspect);
    ck_assert_uint_ne(rl_node_wake_ns(&rig->node), RL_NEVER);
    rig_pass(rig, rl_node_wake_ns(&rig->node) - rig->now_ns);
    ck_assert(rig->node.detector.suspect);
    rig_pass(rig, 2 * RL_SECOND);
    ck_assert(!rl_connection_is_ready(&rig->node.conn));
}
END_TEST

/* The votes have failed, each at its own limit. The last of the late replies ends the suspicion. */
START_TEST(late_replies_are_no_votes_and_end_the_suspicion)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_pass(rig, 6 * RL_MS);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    rig_take_sent(rig);
    rig_pass(rig, 244 * RL_MS);
    rig->vote_count = 0;
    rig_pass(rig, 5 * RL_MS);
    rig_no_vote(rig);
    rig_pass(rig, RL_MS); /* 250 ms for the second, too */
    rig_check_vote(rig, b, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 2);
    ck_assert_str_eq(rig_take_sent(rig), "PING\n");
    unsigned changed = rig->changed;
    rig_reply(rig, "+OK\r\n");
    ck_assert(rig->node.detector.suspect);
    rig_pass(rig, RL_SECOND);
    ck_assert_str_eq(rig_take_sent(rig), ""); /* only one PING */
    rig_reply(rig, "+OK\r\n");
    rig_no_vote(rig); /* too late for a vote */
    ck_assert(rig->node.detector.suspect);
    ck_assert_uint_eq(rig->changed, changed);
    rig_reply(rig, "+PONG\r\n");
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_uint_eq(rig->changed, changed + 1);
    ck_assert(rig->was_up);
    ck_assert_uint_eq(rig->node.counters.replies_late, 2);
    ck_assert_uint_eq(rig->node.counters.timeouts, 1);
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), RL_NEVER);

    rig_request(rig, b, 4, RL_VERB_EXTEND); /* gets its own reply */
    rig_reply(rig, ":0\r\n");
    rig_check_vote(rig, b, RL_VOTE_DENIED, 0, 4);
}
END_TEST

/* While replies keep arriving, a long pipeline is no reason for suspicion, up to 250 ms. */
START_TEST(replies_in_progress_delay_the_suspicion)
{
    rig_ready_with_rtt(rig, RL_MS);
    for (unsigned i = 0; i < 40; i++)
        rig_request(rig, a, 1, RL_VERB_GET);
    for (unsigned i = 0; i < 25; i++) {
        rig_pass(rig, 9 * RL_MS);
        ck_assert(rl_node_is_up(&rig->node));
        rig_reply(rig, "$-1\r\n");
    }
    rig_pass(rig, 9 * RL_MS); /* 234 ms */
    rig_reply(rig, "$-1\r\n");
    rig_pass(rig, 9 * RL_MS);
    rig_reply(rig, "$-1\r\n");
    ck_assert(rl_node_is_up(&rig->node));
    rig->vote_count = 0;
    rig_pass(rig, 7 * RL_MS - 1);
    rig_no_vote(rig);
    rig_pass(rig, 1);
    ck_assert(rig->node.detector.suspect);
    ck_assert_uint_eq(rig->vote_count, 13);
}
END_TEST

/* With a configured limit, replies to other requests do not delay the suspicion. */
START_TEST(a_configured_limit_holds_for_each_reply)
{
    rig->common.node_timeout_ns = 30 * RL_MS;
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_GET);
    rig_request(rig, b, 2, RL_VERB_GET);
    rig_pass(rig, 29 * RL_MS);
    rig_reply(rig, "$-1\r\n");
    ck_assert(rl_node_is_up(&rig->node));
    rig->vote_count = 0;
    rig_pass(rig, RL_MS);
    rig_check_vote(rig, b, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 2);
    ck_assert(rig->node.detector.suspect);
}
END_TEST

/* A late reply to an old request must not be taken for the reply to a later one. */
START_TEST(a_late_reply_belongs_to_its_own_request)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_pass(rig, 250 * RL_MS);
    rig->vote_count = 0;
    rig_take_sent(rig);
    ck_assert_uint_eq(rig_undo(rig, a, 2), RL_VOTE_NONE); /* undos are sent all the same */
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA release 1 key aa\n");
    rig_reply(rig, "+OK\r\n"); /* the reply to the SET; invalid as a reply to the release */
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    rig_reply(rig, "+PONG\r\n");
    rig_no_vote(rig);
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 2);
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
}
END_TEST

/* A round that needs the suspect node asks it, with the usual time limit. */
START_TEST(a_suspect_node_is_asked_where_it_is_needed)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_pass(rig, 10 * RL_MS);
    ck_assert(rig->node.detector.suspect);
    rig->vote_count = 0;
    rig_take_sent(rig);
    ck_assert_int_eq(rl_node_request_suspect(&rig->node, b, 2, RL_VERB_ACQUIRE, rig->now_ns), 0);
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), "SET key bb NX PX 30000\n");
    rig_pass(rig, 240 * RL_MS);
    rig_check_vote(rig, a, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 1);
    rig->vote_count = 0;
    rig_pass(rig, 10 * RL_MS - 1);
    rig_no_vote(rig);
    if (_i == 1) {
        rig_pass(rig, 1);
        rig_check_vote(rig, b, RL_VOTE_FAILED, REDLOCK_CAUSE_TIMEOUT, 2);
        return;
    }
    rig_reply(rig, "+OK\r\n+PONG\r\n");
    rig_no_vote(rig);
    rig_reply(rig, "+OK\r\n");
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 2);
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

/* Makes requests and replies to each after 1 ms, for `time_ns`. */
static void reply_quickly(uint64_t time_ns)
{
    for (uint64_t until_ns = rig->now_ns + time_ns; rig->now_ns < until_ns;) {
        rig->vote_count = 0;
        rig_request(rig, b, 1, RL_VERB_GET);
        rig_pass(rig, RL_MS);
        rig_reply(rig, "$-1\r\n");
    }
}

/* On a busy machine one reply in a hundred is late. A late reply raises the limit, so that the next
 * one causes no suspicion. The limit decreases again within seconds. */
START_TEST(a_late_reply_raises_the_limit_for_a_while)
{
    rig_ready_with_rtt(rig, RL_MS);
    reply_quickly(20 * RL_MS);
    ck_assert_uint_eq(rl_node_timeout_ns(&rig->node), 10 * RL_MS);
    rig_request(rig, a, 1, RL_VERB_GET);
    rig_pass(rig, 30 * RL_MS);
    ck_assert(rig->node.detector.suspect);
    rig_reply(rig, "$-1\r\n+PONG\r\n");
    reply_quickly(100 * RL_MS);
    rig_request(rig, a, 1, RL_VERB_GET);
    rig_pass(rig, 30 * RL_MS);
    ck_assert(!rig->node.detector.suspect);
    rig_reply(rig, "$-1\r\n");
    for (unsigned seconds = 0; seconds < 4; seconds++) {
        ck_assert_uint_ge(rl_node_timeout_ns(&rig->node), 60 * RL_MS >> seconds);
        reply_quickly(RL_SECOND);
    }
    ck_assert_uint_eq(rl_node_timeout_ns(&rig->node), 10 * RL_MS);
}
END_TEST

/* The longest recent round trip is halved after each whole second, however often replies come. */
START_TEST(the_longest_round_trip_is_halved_each_second)
{
    static const uint64_t periods_ns[] = {100 * RL_MS, 750 * RL_MS, 1900 * RL_MS, 5 * RL_SECOND};
    const uint64_t begun_ns = rig->now_ns;

    rl_detector_note_heartbeat(&rig->node, 128 * RL_MS, begun_ns);
    for (uint64_t passed_ns = 0; passed_ns < 6 * RL_SECOND; passed_ns += periods_ns[_i]) {
        rl_detector_note_heartbeat(&rig->node, RL_US, begun_ns + passed_ns);
        ck_assert_uint_eq(rig->node.detector.worst_ns, 128 * RL_MS >> passed_ns / RL_SECOND);
    }
}
END_TEST

START_TEST(an_unresponsive_server_is_disconnected_after_two_seconds)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_EXTEND);
    rig_pass(rig, 10 * RL_MS);
    ck_assert(rig->node.detector.suspect);
    rig_pass(rig, 2 * RL_SECOND - 1);
    ck_assert_uint_eq(rig->closes, 0);
    rig_pass(rig, 1);
    ck_assert_uint_eq(rig->closes, 1);
    ck_assert(!rl_node_is_up(&rig->node)); /* down while it connects again */
    rig->vote_count = 0;
    rig_pass(rig, 50 * RL_MS);
    ck_assert_uint_eq(rig->opens, 2);
    rig_connect(rig);
    ck_assert(!rl_node_is_up(&rig->node));
    rig_greet(rig);
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

/* After a pause of the process, timeouts and replies are due in one tick. Replies are read first,
 * and a request with a reply is not late. */
START_TEST(replies_read_after_a_pause_of_the_client_are_in_time)
{
    rig_ready_with_rtt(rig, RL_MS);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_freeze(rig, RL_SECOND);
    rig_reply(rig, "+OK\r\n");
    rl_node_tick(&rig->node, rig->now_ns);
    rig_check_vote(rig, a, RL_VOTE_GRANTED, 0, 1);
    ck_assert(!rig->node.detector.suspect);
}
END_TEST

/* The next time limit is not computed anew for each request and reply. */
START_TEST(a_known_limit_is_kept)
{
    static const uint64_t fixed_ns[] = {0, RL_SECOND};

    rig->common.node_timeout_ns = fixed_ns[_i];
    rig_ready_with_rtt(rig, RL_MS);
    rig_pass(rig, RL_SECOND / 2);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    uint64_t limit_ns = rl_node_wake_ns(&rig->node);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(rig->common.wake_ns, limit_ns);
        rig_pass(rig, RL_MS);
        rig_reply(rig, "+OK\r\n");
        rig_request(rig, b, 2, RL_VERB_ACQUIRE);
        ck_assert(rig->common.wake_known);
    }
    ck_assert_uint_gt(rl_node_wake_ns(&rig->node), limit_ns);
}
END_TEST

/* A node that was slow and is fast again gets the short limit of a fast node. */
START_TEST(a_shorter_limit_is_noticed)
{
    rig_ready_with_rtt(rig, 31 * RL_MS);
    for (unsigned i = 0; i < 100; i++) {
        rig_request(rig, a, 1, RL_VERB_ACQUIRE);
        rig_pass(rig, 100 * RL_US);
        rig_request(rig, b, 2, RL_VERB_ACQUIRE);
        rig_reply(rig, "+OK\r\n");
        ck_assert_uint_le(rig->common.wake_ns, rl_node_wake_ns(&rig->node));
        rig_reply(rig, "+OK\r\n");
    }
    ck_assert_uint_lt(rl_node_timeout_ns(&rig->node), 100 * RL_MS);
}
END_TEST

/* A request that is repeated in another form keeps the time limit of its first form, although it
 * comes after younger requests in the pipeline. */
START_TEST(a_repeated_request_keeps_its_time_limit)
{
    rig_ready_with_rtt(rig, 31 * RL_MS);
    uint64_t asked_ns = rig->now_ns;
    rig_request(rig, a, 1, RL_VERB_EXTEND);
    rig_pass(rig, 200 * RL_MS);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    rig_reply(rig, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    rig_pass(rig, 49 * RL_MS);
    rig_flush(rig); /* the first limit has passed: computes the next one */
    ck_assert_uint_gt(rl_node_wake_ns(&rig->node), asked_ns + 250 * RL_MS);
    rig_reply(rig, "+OK\r\n");
    ck_assert_uint_eq(rl_node_wake_ns(&rig->node), asked_ns + 250 * RL_MS);
    ck_assert_uint_le(rig->common.wake_ns, asked_ns + 250 * RL_MS);
    rig_reply(rig, ":1\r\n");
}
END_TEST

/* The server may still read a request that timed out. Its bytes count as unread until the server
 * replies to it or to a later one. */
START_TEST(requests_that_timed_out_count_as_unread)
{
    const struct rl_pipeline *pipe = &rig->node.pipe;

    rig->common.node_timeout_ns = 100 * RL_MS;
    rig_ready(rig);
    const uint64_t begin = pipe->sent;
    ck_assert_uint_eq(rl_pipeline_unread(pipe), 0);
    rig_request(rig, a, 1, RL_VERB_EXTEND);
    const uint64_t behind_a = pipe->sent;
    rig_request(rig, b, 1, RL_VERB_EXTEND);
    ck_assert_uint_eq(rl_pipeline_unread(pipe), pipe->sent - begin);
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->vote_count, 2); /* both have failed */
    ck_assert_uint_eq(rl_pipeline_unread(pipe), pipe->sent - begin);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rl_pipeline_unread(pipe), pipe->sent - behind_a);
    rig->vote_count = 0;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_unresponsive");
    TCase *tcase = tcase_create("unresponsive");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, the_time_limit_follows_from_the_round_trip, 0, 8);
    tcase_add_loop_test(tcase, a_stopped_client_measures_no_long_round_trip, 0, 2);
    tcase_add_test(tcase, a_client_stopped_while_connecting_measures_none);
    tcase_add_test(tcase, a_suspect_node_may_still_reply_in_time);
    tcase_add_test(tcase, a_ping_without_a_reply_makes_the_node_suspect_again);
    tcase_add_test(tcase, late_replies_are_no_votes_and_end_the_suspicion);
    tcase_add_test(tcase, replies_in_progress_delay_the_suspicion);
    tcase_add_test(tcase, a_configured_limit_holds_for_each_reply);
    tcase_add_test(tcase, a_late_reply_belongs_to_its_own_request);
    tcase_add_loop_test(tcase, a_suspect_node_is_asked_where_it_is_needed, 0, 2);
    tcase_add_test(tcase, a_late_reply_raises_the_limit_for_a_while);
    tcase_add_loop_test(tcase, the_longest_round_trip_is_halved_each_second, 0, 4);
    tcase_add_test(tcase, an_unresponsive_server_is_disconnected_after_two_seconds);
    tcase_add_test(tcase, replies_read_after_a_pause_of_the_client_are_in_time);
    tcase_add_loop_test(tcase, a_known_limit_is_kept, 0, 2);
    tcase_add_test(tcase, a_shorter_limit_is_noticed);
    tcase_add_test(tcase, a_repeated_request_keeps_its_time_limit);
    tcase_add_test(tcase, requests_that_timed_out_count_as_unread);
    return suite_run(suite);
}
