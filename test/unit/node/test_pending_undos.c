/* SPDX-License-Identifier: MIT
 * The pending undos of a node: as many as there is memory for, each kept until its key must have
 * expired, and longer if that time is unknown. */
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
static struct rl_claim *a;
static struct rl_claim *claims[CLAIMS];
static size_t refused; /* growing to so many bytes fails; 0: it does not */

static void *grow(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    return refused != 0 && size >= refused ? NULL : realloc(ptr, size);
}

static void setup(void)
{
    rig = rig_new();
    refused = 0;
    rig->mem.realloc_fn = grow;
    a = rig_claim(rig, "aa");
}

static void teardown(void)
{
    rig_done(rig);
    rig_drop(a);
}

static void make_claims(void)
{
    for (unsigned i = 0; i < CLAIMS; i++) {
        char token[16];
        snprintf(token, sizeof token, "t%05u", i);
        claims[i] = rig_claim(rig, token);
    }
}

static void drop_claims(void)
{
    for (unsigned i = 0; i < CLAIMS; i++)
        rl_claim_drop(claims[i]);
}

static void start_down(void)
{
    rig_start(rig);
    rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
}

static void come_up(void)
{
    if (rig->node.conn.state == RL_NODE_DOWN)
        rig_pass(rig,
                 rig->node.conn.due_ns > rig->now_ns ? rig->node.conn.due_ns - rig->now_ns : 0);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    rig_connect(rig);
    rig_greet(rig);
}

/* Never reached for so long; each attempt is refused. */
static void pass_down(uint64_t ns)
{
    uint64_t end_ns = rig->now_ns + ns;

    while (rig->now_ns < end_ns) {
        uint64_t wake_ns = rl_max_u64(rl_node_wake_ns(&rig->node), rig->now_ns);
        rig_pass(rig, rl_min_u64(wake_ns, end_ns) - rig->now_ns);
        if (rig->node.conn.state == RL_NODE_CONNECTING)
            rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    }
}

/* From now on: the attempt that is under way is refused, too. */
static void stay_away(uint64_t ns)
{
    rig_pass(rig, 0);
    if (rig->node.conn.state == RL_NODE_CONNECTING)
        rl_node_opened(&rig->node, false, REDLOCK_CAUSE_CONNECT, "refused", rig->now_ns);
    pass_down(ns);
}

static void answer_all(unsigned count)
{
    while (count-- > 0)
        rig_receive(rig, ":1\r\n", 4);
}

/* Thousands of locks are given back while their node is away. */
START_TEST(many_undos_are_pending)
{
    start_down();
    make_claims();
    for (unsigned i = 0; i < CLAIMS; i++) {
        ck_assert_uint_eq(rig_undo(rig, claims[i], 0), RL_VOTE_FAILED);
        ck_assert_uint_eq(rl_node_undos_pending(&rig->node), i + 1);
    }
    ck_assert_uint_eq(rig_undo(rig, claims[0], 0), RL_VOTE_FAILED);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS); /* once is enough */
    come_up();
    const char *said = rig_take_sent(rig);
    ck_assert_ptr_nonnull(strstr(said, " t00000\n"));
    ck_assert_ptr_nonnull(strstr(said, " t01000\n"));
    ck_assert_ptr_nonnull(strstr(said, " t01999\n"));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS);
    ck_assert_uint_ge(rig->node.undos.heap.cap, CLAIMS); /* they may be owed again */
    answer_all(CLAIMS);
    ck_assert_uint_eq(rig->undone, CLAIMS);
    ck_assert_uint_eq(rig->given_up + rig->dropped, 0);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_lt(rig->node.undos.heap.cap, CLAIMS); /* given back */
    drop_claims();
}
END_TEST

/* All under way when the connection ends: room for what is then owed was made when it was sent. */
START_TEST(many_undos_under_way_are_pending_without_memory)
{
    rig_ready(rig);
    make_claims();
    for (unsigned i = 0; i < CLAIMS; i++)
        ck_assert_uint_eq(rig_undo(rig, claims[i], 0), RL_VOTE_NONE);
    rig_take_sent(rig);
    refused = 1;
    rig_lose(rig);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS);
    ck_assert_uint_eq(rig->dropped, 0);
    refused = 0;
    come_up();
    answer_all(CLAIMS);
    ck_assert_uint_eq(rig->undone, CLAIMS);
    drop_claims();
}
END_TEST

/* Lives of all lengths, in no order: each is given up when it is over, none before. */
START_TEST(debts_expire_in_their_order)
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
        pass_down(800 * RL_MS);
        expected = 0;
        for (unsigned i = 0; i < CLAIMS; i++) {
            uint64_t ttl_ns = claims[i]->ttl_max_ms * RL_MS;
            uint64_t life_ns = ttl_ns + rl_drift_ns(ttl_ns, &rig->common.admission.drift);
            bool over = begin_ns + life_ns <= rig->now_ns;
            ck_assert_uint_eq(claims[i]->refs, over ? 1 : 2);
            expected += over;
        }
        ck_assert_uint_eq(rig->given_up, expected);
        ck_assert_uint_eq(rl_node_undos_pending(&rig->node), CLAIMS - expected);
    }
    ck_assert_uint_eq(expected, CLAIMS);
    ck_assert_uint_lt(rig->node.undos.heap.cap, CLAIMS);
    drop_claims();
}
END_TEST

/* What cannot be kept is told, and for how long a key may be left by it. */
START_TEST(without_memory_it_is_told)
{
    start_down();
    make_claims();
    for (unsigned i = 0; i < CLAIMS; i++) {
        refused = i >= 1000 ? 1 : 0;
        rig_undo(rig, claims[i], 0);
    }
    unsigned kept = rl_node_undos_pending(&rig->node);
    ck_assert_uint_ge(kept, 1000);
    ck_assert_uint_eq(rig->dropped, CLAIMS - kept);
    ck_assert_uint_eq(rig->given_up, 0);
    ck_assert_uint_eq(rig->node.undos.dropped_until_ns, rig->now_ns + TTL_NS + DRIFT_NS);
    come_up();
    answer_all(kept);
    ck_assert_uint_eq(rig->undone, kept);
    drop_claims();
}
END_TEST

/* A SET that could not be taken back is not sent. */
START_TEST(without_room_for_its_undo_nothing_is_asked)
{
    unsigned asked = 0;

    rig_ready(rig);
    make_claims();
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    refused = 1;
    while (asked < CLAIMS && rig_request(rig, claims[asked], 1, RL_VERB_ACQUIRE) == 0)
        asked++;
    ck_assert_uint_lt(asked, 400);
    rig_take_sent(rig);
    ck_assert_int_eq(rig_request(rig, claims[asked], 1, RL_VERB_ACQUIRE), REDLOCK_CAUSE_NO_MEMORY);
    ck_assert_str_eq(rig_take_sent(rig), "");
    for (unsigned i = 0; i < asked; i++)
        ck_assert_uint_eq(rig_undo(rig, claims[i], 0), RL_VOTE_NONE);
    rig_lose(rig);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), asked);
    ck_assert_uint_eq(rig->dropped, 0);
    come_up();
    answer_all(asked);
    rig->vote_count = 0;
    drop_claims();
}
END_TEST

/* ---- nobody knows when the key will be over ---- */

static const enum rl_verb LASTING[] = {RL_VERB_ACQUIRE, RL_VERB_HEAL, RL_VERB_EXTEND};

/* The server stands still with the request before it, for longer than the time to live. */
static void leave_unanswered(enum rl_verb verb)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, verb), 0);
    rig_take_sent(rig);
    rig_lose(rig);
    rig->vote_count = 0;
    rig_undo(rig, a, 0);
    stay_away(3 * TTL_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    ck_assert_uint_eq(rig->given_up, 0);
}

START_TEST(unknown_keys_are_owed_until_the_server_answers)
{
    leave_unanswered(LASTING[_i]);
    come_up();
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert_uint_eq(a->maybe_executed, 0);
}
END_TEST

/* Once it has answered it has read what lay before it, and the rest is a matter of time. */
START_TEST(they_expire_when_the_server_has_answered)
{
    leave_unanswered(LASTING[_i]);
    come_up();
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_lose(rig); /* not answered, but sent where nothing could come behind it */
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    stay_away(TTL_NS + DRIFT_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
}
END_TEST

/* The same of one that was owed already, and whose SET was under way behind. */
START_TEST(what_is_owed_already_may_become_unknown)
{
    rig_ready(rig);
    rig_undo(rig, a, 0);
    rig_take_sent(rig);
    rig_reply(rig, "-LOADING Redis is loading the dataset in memory\r\n");
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_EXTEND), 0);
    rig_lose(rig);
    rig->vote_count = 0;
    stay_away(3 * TTL_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
}
END_TEST

/* It waited for the connection in our buffer, and left when that was ready. */
START_TEST(asked_while_it_was_connecting)
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
    stay_away(3 * TTL_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
}
END_TEST

/* A key whose making was answered lives for its time, whoever stands still. */
START_TEST(known_keys_expire)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "+OK\r\n");
    rig_undo(rig, a, 0);
    rig_lose(rig);
    rig->vote_count = 0;
    stay_away(TTL_NS + DRIFT_NS);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
}
END_TEST

/* ---- servers that never do what they are asked ---- */

#define LIFE_NS(ttl_ns) ((ttl_ns) + rl_drift_ns(ttl_ns, &rig->common.admission.drift))

enum hostile_server { REFUSES = 0, GREETS_ONLY, HANGS_UP, BAD_REPLIES };

/* Plays the server until `end_ns`. REFUSES: each undo is answered with an error at once.
 * GREETS_ONLY: nothing but the greeting is answered. HANGS_UP: the connection ends when an undo
 * arrives. */
static void play(enum hostile_server hostile, uint64_t end_ns)
{
    for (;;) {
        const char *said = rig_take_sent(rig);
        if (rig->node.conn.state == RL_NODE_CONNECTING) {
            rig_connect(rig);
            rig_greet_as(rig, "run_id:x\r\n", "role:master\r\n");
            continue;
        }
        if (rig->node.conn.state == RL_NODE_READY && hostile == HANGS_UP &&
            strstr(said, "EVAL") != NULL) {
            rig_lose(rig);
            continue;
        }
        for (; hostile == REFUSES && *said != '\0'; said = strchr(said, '\n') + 1)
            rig_reply(rig, said[0] == 'S' ? "+OK\r\n" : "-NOPERM this user has no permissions\r\n");
        rig->vote_count = 0;
        uint64_t wake_ns = rl_max_u64(rl_node_wake_ns(&rig->node), rig->now_ns);
        if (wake_ns > end_ns)
            break;
        rig_pass(rig, rl_max_u64(wake_ns - rig->now_ns, 1));
    }
    if (rig->now_ns < end_ns)
        rig_pass(rig, end_ns - rig->now_ns);
}

/* The time of an undo is counted from the last request that could make the key live longer, and
 * not anew with each try. */
START_TEST(retries_do_not_renew_the_expiry)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_reply(rig, "+OK\r\n");
    rig_take_sent(rig);
    const uint64_t set_ns = rig->now_ns;
    rig_pass(rig, 7 * RL_SECOND);
    rig_undo(rig, a, 0);
    /* What the server may have read late counts from the next greeting. */
    play((enum hostile_server)_i, set_ns + LIFE_NS(TTL_NS) - 1);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    play((enum hostile_server)_i, set_ns + LIFE_NS(TTL_NS) + 5 * RL_SECOND);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
    ck_assert_uint_eq(a->refs, 1);
}
END_TEST

/* A SET that was sent and not answered may be read until the next greeting, and no later. */
START_TEST(an_unanswered_set_counts_from_one_greeting)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_undo(rig, a, 0);
    const uint64_t set_ns = rig->now_ns;
    play(GREETS_ONLY, set_ns + LIFE_NS(TTL_NS));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    play(GREETS_ONLY, set_ns + LIFE_NS(TTL_NS) + 7 * RL_SECOND);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->given_up, 1);
}
END_TEST

/* The same if the undo waited for the connection in its pipeline, and was refused. */
START_TEST(a_refused_undo_of_an_unanswered_set)
{
    rig_ready(rig);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_ACQUIRE), 0);
    rig_take_sent(rig);
    rig_lose(rig);
    rig_pass(rig, 0);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_CONNECTING);
    ck_assert_uint_eq(rig_undo(rig, a, 0), RL_VOTE_NONE);
    rig_freeze(rig, TTL_NS); /* the server is stopped, and this process too */
    rig_connect(rig);
    rig_greet(rig);
    const uint64_t greeted_ns = rig->now_ns;
    ck_assert_str_eq(rig_take_sent(rig), RELEASE_A);
    rig_reply(rig, "-NOPERM this user has no permissions\r\n");
    play(REFUSES, greeted_ns + LIFE_NS(TTL_NS) - 1);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    play(REFUSES, greeted_ns + LIFE_NS(TTL_NS));
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
    play(REFUSES, set_ns + LIFE_NS(TTL_NS) - 1);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 1);
    play(REFUSES, set_ns + LIFE_NS(TTL_NS));
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
}
END_TEST

/* A lock each 50 ms, each with a TTL of 10 s, for five minutes. What is pending is bounded by the
 * locks of one TTL, and of the time in which it is not known that the server has read a request:
 * REFUSES answers at once, the others leave a connection unanswered for SILENCE_NS, and are greeted
 * again within BACKOFF_NS. The undo is then unanswered once more. */
#define SILENCE_NS (2250 * RL_MS)
#define BACKOFF_NS (2 * RL_SECOND)

START_TEST(the_undos_pending_are_those_of_one_ttl)
{
    const uint64_t ttl_ns = 10 * RL_SECOND, step_ns = 50 * RL_MS;
    const uint64_t longest_ns =
        LIFE_NS(ttl_ns) + (_i == REFUSES ? 0 : SILENCE_NS + BACKOFF_NS + SILENCE_NS);
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
        play((enum hostile_server)_i, rig->now_ns + step_ns);
        ck_assert_uint_le(rl_node_undos_pending(&rig->node), bound);
    }
    ck_assert_uint_gt(sent, _i == REFUSES ? 5990 : 10);
    play((enum hostile_server)_i, rig->now_ns + longest_ns);
    ck_assert_uint_eq(rl_node_undos_pending(&rig->node), 0);
    ck_assert_uint_eq(rig->undone, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_pending_undos");
    TCase *tcase = tcase_create("debts");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, many_undos_are_pending);
    tcase_add_test(tcase, many_undos_under_way_are_pending_without_memory);
    tcase_add_test(tcase, debts_expire_in_their_order);
    tcase_add_test(tcase, without_memory_it_is_told);
    tcase_add_test(tcase, without_room_for_its_undo_nothing_is_asked);
    tcase_add_loop_test(tcase, unknown_keys_are_owed_until_the_server_answers, 0, 3);
    tcase_add_loop_test(tcase, they_expire_when_the_server_has_answered, 0, 3);
    tcase_add_test(tcase, what_is_owed_already_may_become_unknown);
    tcase_add_test(tcase, asked_while_it_was_connecting);
    tcase_add_test(tcase, known_keys_expire);
    tcase_add_loop_test(tcase, retries_do_not_renew_the_expiry, 0, BAD_REPLIES);
    tcase_add_test(tcase, an_unanswered_set_counts_from_one_greeting);
    tcase_add_test(tcase, a_refused_undo_of_an_unanswered_set);
    tcase_add_loop_test(tcase, extensions_and_heals_renew_the_expiry, 0, 2);
    tcase_add_loop_test(tcase, the_undos_pending_are_those_of_one_ttl, 0, BAD_REPLIES);
    return suite_run(suite);
}
