/* SPDX-License-Identifier: MIT
 * The pending undos of a node: as many as there is memory for, each kept until its key must have
 * expired, and longer if that time is unknown.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "node_rig.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define CLAIMS    2000
#define TTL_NS    (30 * RL_SECOND)
#define DRIFT_NS  (302 * RL_MS)
#define RELEASE_A "EVALSHA release 1 key aa\n"

static struct rig *rig;
static struct rl_claim *a;              /* a claim with the token "aa" */
static struct rl_claim *claims[CLAIMS]; /* those of make_claims() */
static size_t refused_bytes; /* reallocations of at least so many bytes fail; 0: none fails */

/* Reallocates, unless the size is refused. */
static void *grow(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    return refused_bytes != 0 && size >= refused_bytes ? NULL : realloc(ptr, size);
}

/* Fixture: makes a node that has not been started, and one claim; large reallocations can be
 * refused. */
static void setup(void)
{
    rig = rig_new();
    refused_bytes = 0;
    rig->mem.realloc_fn = grow;
    a = rig_claim(rig, "aa");
}

/* Fixture: closes and frees the node, and checks that nothing else refers to claim `a`. */
static void teardown(void)
{
    rig_done(rig);
    rig_drop(a);
}

/* Makes CLAIMS claims with the tokens t00000, t00001, … */
static void make_claims(void)
{
    for (unsigned i = 0; i < CLAIMS; i++) {
        char token[16];
        snprintf(token, sizeof token, "t%05u", i);
        claims[i] = rig_claim(rig, token);
    }
}

/* Drops the test's references to those claims. */
static void drop_claims(void)
{
    for (unsigned i = 0; i < CLAIMS; i++)
        rl_claim_drop(claims[i]);
}

/* Starts the node; its first connection fails. */
static void start_down(void)
{
    rig_start(rig);
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
}

/* Connects the node again and completes its greeting. */
static void reconnect(void)
{
    if (rig->node.conn.state == RL_NODE_DOWN)
        rig_pass(rig,
                 rig->node.conn.due_ns > rig->now_ns ? rig->node.conn.due_ns - rig->now_ns : 0);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    rig_connect(rig);
    rig_greet(rig);
}

/* Advances time by `ns`, in which each attempt to connect fails. */
static void pass_disconnected(uint64_t ns)
{
    uint64_t end_ns = rig->now_ns + ns;

    while (rig->now_ns < end_ns) {
        uint64_t wake_ns = rl_max_u64(rl_node_wake_ns(&rig->node), rig->now_ns);
        rig_pass(rig, rl_min_u64(wake_ns, end_ns) - rig->now_ns);
        if (rig->node.conn.state == RL_NODE_CONNECTING)
            rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    }
}

/* Lets the running attempt to connect fail, and all others for `ns`. */
static void stay_disconnected(uint64_t ns)
{
    rig_pass(rig, 0);
    if (rig->node.conn.state == RL_NODE_CONNECTING)
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    pass_disconnected(ns);
}

/* Replies to `count` undos that they were done. */
static void reply_to_all(unsigned count)
{
    while (count-- > 0)
        rig_receive(rig, ":1\r\n", 4);
}

/* Thousands of locks are released while their node is disconnected. */
START_TEST(many_undos_are_pending)
{
    start_down();
    make_claims();
    for (unsigned i = 0; i < CLAIMS; i++) {
        ck_assert_uint_eq(rig_undo(rig, claims[i], 0), RL_VOTE_FAILED);
        ck_assert_uint_eq(rl_node_undos_pending(&rig->node), i + 1);
    }
    ck_assert_uint_eq(rig_undo(rig, claims[0], 0), RL_VOTE_FAILED);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS); /* not kept twice */
    reconnect();
    const char *sent_text = rig_take_sent(rig);
    ck_assert_ptr_nonnull(strstr(sent_text, " t00000\n"));
    ck_assert_ptr_nonnull(strstr(sent_text, " t01000\n"));
    ck_assert_ptr_nonnull(strstr(sent_text, " t01999\n"));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS);
    ck_assert_uint_ge(rig->node.undos.heap.cap, CLAIMS); /* they may become pending again */
    reply_to_all(CLAIMS);
    ck_assert_uint_eq(rig->undone, CLAIMS);
    ck_assert_uint_eq(rig->given_up + rig->dropped, 0);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_lt(rig->node.undos.heap.cap, CLAIMS); /* the memory is released */
    drop_claims();
}
END_TEST

/* All undos are in flight when the connection ends. The memory to keep them was reserved when they
 * were sent. */
START_TEST(many_undos_under_way_are_pending_without_memory)
{
    rig_ready(rig);
    make_claims();
    for (unsigned i = 0; i < CLAIMS; i++)
        ck_assert_uint_eq(rig_undo(rig, claims[i], 0), RL_VOTE_NONE);
    rig_take_sent(rig);
    refused_bytes = 1;
    rig_lose(rig);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS);
    ck_assert_uint_eq(rig->dropped, 0);
    refused_bytes = 0;
    reconnect();
    reply_to_all(CLAIMS);
    ck_assert_uint_eq(rig->undone, CLAIMS);
    drop_claims();
}
END_TEST

/* With TTLs of all lengths in random order, each undo is given up when its key has expired, and not
 * earlier. */
START_TEST(pending_undos_expire_in_their_order)
{
    uint64_t word = 88172645463325252u, begin_ns;
    unsigned expected = 0;

    start_down();
    make_claims();
    begin_ns = rig->now_ns;
    for (unsigned i = 0; i < CLAIMS; i++) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        claims[i]->ttl_max_ms = 1000 + word % 20000;
        rig_undo(rig, claims[i], 0);
    }
    for (unsigned step = 0; step < 30; step++) {
        pass_disconnected(800 * RL_MS);
        expected = 0;
        for (unsigned i = 0; i < CLAIMS; i++) {
            uint64_t ttl_ns = claims[i]->ttl_max_ms * RL_MS;
            uint64_t expiry_ns = ttl_ns + rl_drift_ns(ttl_ns, &rig->common.admission.drift);
            bool is_expired = begin_ns + expiry_ns <= rig->now_ns;
            ck_assert_uint_eq(claims[i]->refs, is_expired ? 1 : 2);
            expected += is_expired;
        }
        ck_assert_uint_eq(rig->given_up, expected);
        ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS - expected);
    }
    ck_assert_uint_eq(expected, CLAIMS);
    ck_assert_uint_lt(rig->node.undos.heap.cap, CLAIMS);
    drop_claims();
}
END_TEST

/* An undo that cannot be kept is counted, and so is the time for which its key may remain. */
START_TEST(undos_dropped_without_memory_are_reported)
{
    start_down();
    make_claims();
    for (unsigned i = 0; i < CLAIMS; i++) {
        refused_bytes = i >= 1000 ? 1 : 0;
        rig_undo(rig, claims[i], 0);
    }
    unsigned kept = rl_node_undos_pending(&rig->node);
    ck_assert_uint_ge(kept, 1000);
    ck_assert_uint_eq(rig->dropped, CLAIMS - kept);
    ck_assert_uint_eq(rig->given_up, 0);
    ck_assert_uint_eq(rig->node.undos.dropped_until_ns, rig->now_ns + TTL_NS + DRIFT_NS);
    reconnect();
    reply_to_all(kept);
    ck_assert_uint_eq(rig->undone, kept);
    drop_claims();
}
END_TEST

/* A SET whose undo could not be kept is not sent. */
START_TEST(a_set_without_room_for_its_undo_is_refused)
{
    unsigned sent = 0;

    rig_ready(rig);
    make_claims();
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    refused_bytes = 1;
    while (sent < CLAIMS && rig_request(rig, claims[sent], 1, RL_VERB_ACQUIRE) == 0)
        sent++;
    ck_assert_uint_lt(sent, 400);
    rig_take_sent(rig);
    ck_assert_int_eq(rig_request(rig, claims[sent], 1, RL_VERB_ACQUIRE), REDLOCK_CAUSE_NO_MEMORY);
    ck_assert_str_eq(rig_take_sent(rig), "");
    for (unsigned i = 0; i < sent; i++)
        ck_assert_uint_eq(rig_undo(rig, claims[i], 0), RL_VOTE_NONE);
    rig_lose(rig);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), sent);
    ck_assert_uint_eq(rig->dropped, 0);
    reconnect();
    reply_to_all(sent);
    rig->vote_count = 0;
    drop_claims();
}
END_TEST

/* ---- undos of keys whose expiry is unknown ---- */

static const enum rl_verb LASTING[] = {RL_VERB_ACQUIRE, RL_VERB_HEAL, RL_VERB_EXTEND};

/* Sends `verb`, loses the connection, undoes the claim, and stays disconnected for three TTLs: the
 * server may still execute the request. */
static void leave_unanswered(enum rl_verb verb)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, verb), 0);
    rig_take_sent(rig);
    rig_lose(rig);
    rig->vote_count = 0;
    rig_undo(rig, a, 0);
    stay_disconnected(3 * TTL_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    ck_assert_uint_eq(rig->given_up, 0);
}

START_TEST(undos_of_unanswered_requests_wait_for_the_server)
{
    leave_unanswered(LASTING[_i]);
    reconnect();
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert_uint_eq(a->maybe_executed, 0);
}
END_TEST

/* A server that has replied to a greeting has read all earlier requests, so the key expires one TTL
 * later at the latest. */
START_TEST(undos_expire_one_ttl_after_the_next_greeting)
{
    leave_unanswered(LASTING[_i]);
    reconnect();
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_lose(rig); /* no reply to the undo, but no earlier request is unread */
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    stay_disconnected(TTL_NS + DRIFT_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
}
END_TEST

/* An extension that is sent while the undo is pending, and not replied to, makes the expiry
 * unknown. */
START_TEST(a_pending_undo_can_become_unlimited)
{
    rig_ready(rig);
    rig_undo(rig, a, 0);
    rig_take_sent(rig);
    rig_reply(rig, "-LOADING Redis is loading the dataset in memory\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_EXTEND), 0);
    rig_lose(rig);
    rig->vote_count = 0;
    stay_disconnected(3 * TTL_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
}
END_TEST

/* The SET waited for the connection and was sent when the greeting was complete. */
START_TEST(a_set_sent_with_the_greeting_makes_its_undo_unlimited)
{
    rig_start(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_pass(rig, RL_MS);
    rig_connect(rig);
    rig_greet_as(rig, "run_id:x\r\n", "role:master\r\n");
    rig_flush(rig);
    rig_lose(rig);
    rig->vote_count = 0;
    rig_undo(rig, a, 0);
    stay_disconnected(3 * TTL_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
}
END_TEST

/* The SET was replied to, so its key expires one TTL later. */
START_TEST(undos_of_answered_sets_expire_with_their_keys)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "+OK\r\n");
    rig_undo(rig, a, 0);
    rig_lose(rig);
    rig->vote_count = 0;
    stay_disconnected(TTL_NS + DRIFT_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
}
END_TEST

/* ---- servers that never confirm an undo ---- */

#define EXPIRY_NS(ttl_ns) ((ttl_ns) + rl_drift_ns(ttl_ns, &rig->common.admission.drift))

/* Kinds of servers that never confirm an undo; HOSTILE_SERVERS is their number. */
enum hostile_server { REFUSES = 0, GREETS_ONLY, HANGS_UP, HOSTILE_SERVERS };

/* Simulates the server until `end_ns`. REFUSES: replies to each undo with an error at once.
 * GREETS_ONLY: replies to the greeting only. HANGS_UP: disconnects when an undo arrives. */
static void simulate_server(enum hostile_server hostile, uint64_t end_ns)
{
    for (;;) {
        const char *sent_text = rig_take_sent(rig);
        if (rig->node.conn.state == RL_NODE_CONNECTING) {
            rig_connect(rig);
            rig_greet_as(rig, "run_id:x\r\n", "role:master\r\n");
            continue;
        }
        if (rig->node.conn.state == RL_NODE_READY && hostile == HANGS_UP &&
            strstr(sent_text, "EVALSHA release") != NULL) {
            rig_lose(rig);
            continue;
        }
        for (; hostile == REFUSES && *sent_text != '\0'; sent_text = strchr(sent_text, '\n') + 1)
            rig_reply(rig,
                      sent_text[0] == 'S' ? "+OK\r\n" : "-NOPERM this user has no permissions\r\n");
        rig->vote_count = 0;
        uint64_t wake_ns = rl_max_u64(rl_node_wake_ns(&rig->node), rig->now_ns);
        if (wake_ns > end_ns)
            break;
        rig_pass(rig, rl_max_u64(wake_ns - rig->now_ns, 1));
    }
    if (rig->now_ns < end_ns)
        rig_pass(rig, end_ns - rig->now_ns);
}

/* The expiry of an undo counts from the last request that could prolong the key, and not from each
 * retry. */
START_TEST(retries_do_not_renew_the_expiry)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_reply(rig, "+OK\r\n");
    rig_take_sent(rig);
    const uint64_t set_ns = rig->now_ns;
    rig_pass(rig, 7 * RL_SECOND);
    rig_undo(rig, a, 0);
    /* The SET has had its reply, so the expiry counts from the SET itself. */
    simulate_server((enum hostile_server)_i, set_ns + EXPIRY_NS(TTL_NS) - 1);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    simulate_server((enum hostile_server)_i, set_ns + EXPIRY_NS(TTL_NS));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
    ck_assert_uint_eq(a->refs, 1);
}
END_TEST

/* A SET without a reply may be read until the next greeting, and not later. */
START_TEST(an_unanswered_set_counts_from_one_greeting)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_undo(rig, a, 0);
    const uint64_t set_ns = rig->now_ns;
    simulate_server(GREETS_ONLY, set_ns + EXPIRY_NS(TTL_NS));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    simulate_server(GREETS_ONLY, set_ns + EXPIRY_NS(TTL_NS) + 7 * RL_SECOND);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
}
END_TEST

/* The undo waits for the next connection in the pipeline, and is then refused. */
START_TEST(a_refused_undo_of_an_unanswered_set_expires_after_the_greeting)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_take_sent(rig);
    rig_lose(rig);
    rig_pass(rig, 0);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    rig_freeze(rig, TTL_NS); /* both the server and this process are stopped */
    rig_connect(rig);
    rig_greet(rig);
    const uint64_t greeted_ns = rig->now_ns;
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_reply(rig, "-NOPERM this user has no permissions\r\n");
    simulate_server(REFUSES, greeted_ns + EXPIRY_NS(TTL_NS) - 1);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    simulate_server(REFUSES, greeted_ns + EXPIRY_NS(TTL_NS));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
}
END_TEST

/* An extension prolongs the key, and with it the time in which its undo is tried. */
START_TEST(extensions_and_heals_renew_the_expiry)
{
    const enum rl_verb verb = _i == 0 ? RL_VERB_EXTEND : RL_VERB_HEAL;

    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_reply(rig, "+OK\r\n");
    rig_pass(rig, 20 * RL_SECOND);
    ck_assert_int_eq(rig_request(rig, a, 2, verb), 0);
    rig_reply(rig, _i == 0 ? ":1\r\n" : "+OK\r\n");
    rig_take_sent(rig);
    const uint64_t set_ns = rig->now_ns;
    rig_undo(rig, a, 0);
    simulate_server(REFUSES, set_ns + EXPIRY_NS(TTL_NS) - 1);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    simulate_server(REFUSES, set_ns + EXPIRY_NS(TTL_NS));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
}
END_TEST

/* A lock every 50 ms with a TTL of 10 s, for five minutes. The number of pending undos is bounded
 * by the locks of one TTL, plus those of the time in which a request may be unread: none for
 * REFUSES. The others do not reply for SILENCE_NS, are greeted within BACKOFF_NS, and do not reply
 * again. */
#define SILENCE_NS (2250 * RL_MS)
#define BACKOFF_NS (2 * RL_SECOND)

START_TEST(the_undos_pending_are_those_of_one_ttl)
{
    const uint64_t ttl_ns = 10 * RL_SECOND, step_ns = 50 * RL_MS;
    const uint64_t longest_ns =
        EXPIRY_NS(ttl_ns) + (_i == REFUSES ? 0 : SILENCE_NS + BACKOFF_NS + SILENCE_NS);
    const unsigned bound = (unsigned)(longest_ns / step_ns) + 2;
    unsigned sent = 0;

    rig_ready(rig);
    for (unsigned i = 0; i < 6000; i++) {
        struct rl_claim *claim = rig_claim(rig, "tt");
        claim->ttl_ms = claim->ttl_max_ms = ttl_ns / RL_MS;
        if (rig_request(rig, claim, 1, RL_VERB_ACQUIRE) == 0) {
            rig_undo(rig, claim, 0);
            sent++;
        }
        claim->owner = NULL;
        rl_claim_drop(claim);
        simulate_server((enum hostile_server)_i, rig->now_ns + step_ns);
        ck_assert_uint_le(rl_node_undos_pending(&rig->node), bound);
    }
    ck_assert_uint_gt(sent, _i == REFUSES ? 5990 : 10);
    simulate_server((enum hostile_server)_i, rig->now_ns + longest_ns);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->undone, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_pending_undos");
    TCase *tcase = tcase_create("pending_undos");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, many_undos_are_pending);
    tcase_add_test(tcase, many_undos_under_way_are_pending_without_memory);
    tcase_add_test(tcase, pending_undos_expire_in_their_order);
    tcase_add_test(tcase, undos_dropped_without_memory_are_reported);
    tcase_add_test(tcase, a_set_without_room_for_its_undo_is_refused);
    tcase_add_loop_test(tcase, undos_of_unanswered_requests_wait_for_the_server, 0, 3);
    tcase_add_loop_test(tcase, undos_expire_one_ttl_after_the_next_greeting, 0, 3);
    tcase_add_test(tcase, a_pending_undo_can_become_unlimited);
    tcase_add_test(tcase, a_set_sent_with_the_greeting_makes_its_undo_unlimited);
    tcase_add_test(tcase, undos_of_answered_sets_expire_with_their_keys);
    tcase_add_loop_test(tcase, retries_do_not_renew_the_expiry, 0, HOSTILE_SERVERS);
    tcase_add_test(tcase, an_unanswered_set_counts_from_one_greeting);
    tcase_add_test(tcase, a_refused_undo_of_an_unanswered_set_expires_after_the_greeting);
    tcase_add_loop_test(tcase, extensions_and_heals_renew_the_expiry, 0, 2);
    tcase_add_loop_test(tcase, the_undos_pending_are_those_of_one_ttl, 0, HOSTILE_SERVERS);
    return suite_run(suite);
}
