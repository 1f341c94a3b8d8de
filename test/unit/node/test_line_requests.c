/* SPDX-License-Identifier: MIT
 * Requests to the line of a resource: their words, what each reply means as a vote, and what
 * happens without memory, without the script, and when the claim is undone before they were sent.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node/node_parts.h"
#include "node_rig.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define TRIP_NS  (4 * RL_MS) /* round trip */
#define NOSCRIPT "-NOSCRIPT No matching script. Please use EVAL.\r\n"

static struct rig *rig;
static struct rl_claim *claim; /* of the key "key" with the token "tok" */
static unsigned room;          /* allocations that still succeed */

/* Allocates while `room` lasts. */
static void *scarce_malloc(size_t size, void *userdata)
{
    (void)userdata;
    return room == 0 ? NULL : (room--, malloc(size));
}

/* Reallocates while `room` lasts. */
static void *scarce_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    return room == 0 ? NULL : (room--, realloc(ptr, size));
}

/* Fixture: makes a READY node of the waiter 77 "ada" since the time 42, and a claim. */
static void setup(void)
{
    room = UINT32_MAX;
    rig = rig_new();
    rig->mem.malloc_fn = scarce_malloc;
    rig->mem.realloc_fn = scarce_realloc;
    rig->common.notifications = true;
    rig->common.waiter = 77;
    rig->common.waiter_label = (struct rl_arg){"ada", 3};
    rig_ready_with_rtt(rig, TRIP_NS);
    claim = rig_claim(rig, "tok");
    claim->since_ms = 42;
}

/* Fixture: closes and frees the node, and checks that nothing else refers to the claim. */
static void teardown(void)
{
    rig_done(rig);
    rig_drop(claim);
}

/* Makes the server send notifications; it accepts the channel of turns if `turns`. */
static void start_tracking(bool turns)
{
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    const char *bytes =
        turns ? "+OK\r\n:5\r\n*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"
                "*3\r\n$9\r\nsubscribe\r\n$12\r\nredlock:q:77\r\n:2\r\n"
              : "+OK\r\n:5\r\n*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"
                "-NOPERM no such channel\r\n";
    rig_receive_push(rig, bytes, strlen(bytes));
    rig_flush(rig);
    rig_take_sent(rig);
    rig_reply(rig, "+OK\r\n+OK\r\n");
    ck_assert(rl_tracker_is_on(&rig->node));
}

/* Sends a request to the line, as round `round`. Returns what was sent. */
static const char *request(enum rl_verb verb, uint32_t round)
{
    rig->node.detector.srtt_ns = TRIP_NS;
    ck_assert_int_eq(rl_node_request_line(&rig->node, claim, round, verb, rig->now_ns), 0);
    rig_flush(rig);
    return rig_take_sent(rig);
}

/* Replies after the round trip of 4 ms, so that the measured one stays the same. */
static void reply(const char *bytes)
{
    rig_pass(rig, TRIP_NS);
    rig_reply(rig, bytes);
}

START_TEST(each_request_has_its_words)
{
    static const struct {
        enum rl_verb verb;
        const char *words;
    } table[] = {
        {RL_VERB_LINE_JOIN, "EVALSHA line 2 key{#q} key J 77 d 9 4000 42 ada  1\n"},
        {RL_VERB_LINE_FRONT, "EVALSHA line 2 key{#q} key F 77 d 9 4000 42 ada  1\n"},
        {RL_VERB_LINE_SERVED, "EVALSHA line 2 key{#q} key G 77 d 9 4000 42 ada tok 1\n"},
        {RL_VERB_LINE_LEAVE, "EVALSHA line 2 key{#q} key L 77 d 9 4000 42 ada  1\n"},
        {RL_VERB_LINE_DROP, "EVALSHA line 2 key{#q} key D 77 d 9 4000 42 ada 81 1 3\n"},
    };

    rig->common.beat = 9;
    claim->victim = 81;
    claim->victim_beat = 3;
    ck_assert_str_eq(request(table[_i].verb, 1), table[_i].words);
}
END_TEST

/* An inspection reads the line of the key, and with the key of a first slot that of its semaphore,
 * whose name may have braces in it. */
START_TEST(an_inspection_has_two_lines)
{
    static const char *const keys[][2] = {
        {"sem{#0}", "GETRANGE sem{#0}{#q} 0 65535\nGETRANGE sem{#}{#q} 0 65535\n"},
        {"{a}s{#1}{#0}", "GETRANGE {a}s{#1}{#0}{#q} 0 65535\nGETRANGE {a}s{#1}{#}{#q} 0 65535\n"},
    };
    const char *key = keys[_i][0];
    struct rl_claim *slot = rl_claim_new(&rig->mem, (struct rl_arg){key, strlen(key)}, 64);

    ck_assert_ptr_nonnull(slot);
    slot->slot = RL_SLOT_ANY;
    ck_assert_int_eq(rl_node_request(&rig->node, slot, 1, RL_VERB_LINE_LIST, rig->now_ns), 0);
    ck_assert_int_eq(rl_node_request(&rig->node, slot, 1, RL_VERB_LINE_PERMITS, rig->now_ns), 0);
    rig_flush(rig);
    ck_assert_str_eq(rig_take_sent(rig), keys[_i][1]);
    reply("$0\r\n\r\n$0\r\n\r\n");
    rig_lose(rig);
    rig_drop(slot);
}
END_TEST

/* The key of the line is that of the lock and a suffix, also for the longest key. */
START_TEST(the_longest_key_has_a_line)
{
    static char key[RL_KEY_MAX], words[2 * RL_KEY_MAX + 128];

    memset(key, 'k', sizeof key);
    memcpy(key, "prefix:{tag}", 12);
    struct rl_claim *longest = rl_claim_new(&rig->mem, (struct rl_arg){key, sizeof key}, 64);
    ck_assert_ptr_nonnull(longest);
    rl_claim_set_token(longest, (struct rl_arg){"tok", 3});
    longest->since_ms = 42;
    snprintf(words, sizeof words, "EVALSHA line 2 %.*s{#q} %.*s G 77 d 0 4000 42 ada tok 1\n",
             (int)sizeof key, key, (int)sizeof key, key);
    ck_assert_int_eq(rl_node_request_line(&rig->node, longest, 1, RL_VERB_LINE_SERVED, rig->now_ns),
                     0);
    rig_flush(rig);
    ck_assert_str_eq(rig_take_sent(rig), words);
    reply("$7\r\n0 - 0 -\r\n");
    rig_lose(rig);
    rig_drop(longest);
}
END_TEST

/* Overwrites the memory that the functions called last have used for their variables. */
__attribute__((noinline)) static void overwrite_stack(void)
{
    volatile char bytes[4096];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = '#';
}

/* The words of a command outlive the function that puts them together. */
START_TEST(the_key_of_the_line_outlives_the_call)
{
    static struct rl_command command;

    rl_node_build_command(&rig->node, &command, claim, RL_VERB_LINE_JOIN, RL_FORM_SHA);
    overwrite_stack();
    ck_assert_uint_eq(command.args[3].len, 7);
    ck_assert_mem_eq(command.args[3].data, "key{#q}", 7);
}
END_TEST

/* "w" says that the server can notify this client of its turn, "d" that it cannot. */
START_TEST(the_state_says_whether_turns_are_heard)
{
    ck_assert_ptr_nonnull(strstr(request(RL_VERB_LINE_JOIN, 1), " J 77 d "));
    reply("$8\r\n1 d 1 -1\r\n");
    start_tracking(_i == 1);
    const char *sent = request(RL_VERB_LINE_JOIN, 2);
    ck_assert_ptr_nonnull(strstr(sent, _i == 1 ? " J 77 w " : " J 77 d "));
    reply("+OK\r\n$8\r\n1 w 1 -1\r\n");
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_drain(rig);
    ck_assert_ptr_nonnull(strstr(request(RL_VERB_LINE_JOIN, 3), " J 77 d "));
    reply("$8\r\n1 d 1 -1\r\n");
}
END_TEST

/* A request that looks registers the key, because this client may be a head. Others do not. */
START_TEST(only_looks_register_the_key)
{
    start_tracking(true);
    for (int verb = RL_VERB_LINE_JOIN; verb <= RL_VERB_LINE_DROP; verb++) {
        bool looks = verb != RL_VERB_LINE_SERVED && verb != RL_VERB_LINE_LEAVE;
        const char *sent = request((enum rl_verb)verb, 1);
        bool registers = strncmp(sent, "CLIENT CACHING YES\nEVALSHA line ", 32) == 0;
        ck_assert_msg(registers == looks, "verb %d: %s", verb, sent);
        ck_assert_msg(registers || strncmp(sent, "EVALSHA line ", 13) == 0, "%s", sent);
        rig->vote_count = 0;
        reply(looks ? "+OK\r\n$8\r\n1 w 1 -1\r\n" : "$8\r\n0 - 0 -2\r\n");
        ck_assert_uint_eq(rig->vote_count, 1);
    }
}
END_TEST

START_TEST(replies_are_votes)
{
    static const struct {
        const char *reply;
        enum rl_vote vote;
        int cause;
        uint64_t pttl_ms;
        bool ready; /* the connection stays */
    } table[] = {
        {"$17\r\n1 h 3 5000 77 0 9\r\n", RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 5000, true},
        {"$15\r\n1 h 3 -1 77 0 9\r\n", RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 0, true},
        {"$8\r\n3 w 3 -1\r\n", RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 0, true},
        {"$8\r\n0 - 0 -2\r\n", RL_VOTE_DENIED, REDLOCK_CAUSE_NONE, 0, true},
        {"$1\r\nX\r\n", RL_VOTE_FAILED, REDLOCK_CAUSE_WRONGTYPE, 0, true},
        {"-NOPERM this user has no permissions to run the 'getex' command\r\n", RL_VOTE_FAILED,
         REDLOCK_CAUSE_NOPERM, 0, true},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", RL_VOTE_FAILED,
         REDLOCK_CAUSE_OOM, 0, true},
        {"-ERR user_script:1: Wrong number of args calling Redis command from script\r\n",
         RL_VOTE_FAILED, REDLOCK_CAUSE_ERROR_REPLY, 0, true},
        {"$1\r\nY\r\n", RL_VOTE_FAILED, REDLOCK_CAUSE_PROTOCOL, 0, false},
        {"$-1\r\n", RL_VOTE_FAILED, REDLOCK_CAUSE_PROTOCOL, 0, false},
        {"+OK\r\n", RL_VOTE_FAILED, REDLOCK_CAUSE_PROTOCOL, 0, false},
        {":1\r\n", RL_VOTE_FAILED, REDLOCK_CAUSE_PROTOCOL, 0, false},
        {"*1\r\n:1\r\n", RL_VOTE_FAILED, REDLOCK_CAUSE_PROTOCOL, 0, false},
    };

    request(RL_VERB_LINE_JOIN, 4);
    reply(table[_i].reply);
    uint64_t pttl_ms = rig->votes[0].ballot.pttl_ms;
    ck_assert_uint_eq(rig->votes[0].ballot.verb, RL_VERB_LINE_JOIN);
    /* The engine reads the reply of a vote that has not failed. */
    ck_assert(rig->votes[0].has_reply == (table[_i].vote != RL_VOTE_FAILED));
    rig_check_vote(rig, claim, table[_i].vote, table[_i].cause, 4);
    ck_assert_uint_eq(pttl_ms, table[_i].pttl_ms);
    ck_assert(rl_connection_is_ready(&rig->node.conn) == table[_i].ready);
}
END_TEST

START_TEST(a_closed_node_is_not_asked)
{
    rig_lose(rig);
    rig_pass(rig, RL_SECOND);
    rig_take_sent(rig);
    ck_assert_int_ne(rl_node_request_line(&rig->node, claim, 1, RL_VERB_LINE_JOIN, rig->now_ns),
                     REDLOCK_CAUSE_NONE);
    rig_flush(rig);
    ck_assert_str_eq(rig_take_sent(rig), "");
    rig_no_vote(rig);
}
END_TEST

/* A request in flight fails with its connection. */
START_TEST(a_lost_connection_is_a_failed_vote)
{
    request(RL_VERB_LINE_JOIN, 2);
    rig_lose(rig);
    ck_assert_uint_eq(rig->votes[0].ballot.verb, RL_VERB_LINE_JOIN);
    ck_assert_uint_eq(rig->votes[0].ballot.rtt_us, 0);
    rig_check_vote(rig, claim, RL_VOTE_FAILED, REDLOCK_CAUSE_DISCONNECT, 2);
}
END_TEST

/* Each allocation of the request fails in turn: nothing is sent then, and there is no vote. */
START_TEST(without_memory_nothing_is_requested)
{
    static char owner[9000]; /* of which RL_OWNER_MAX bytes are sent */
    unsigned refusals = 0;

    memset(owner, 'o', sizeof owner);
    rig->common.waiter_label = (struct rl_arg){owner, sizeof owner};
    for (unsigned k = 0;; k++) {
        ck_assert_uint_lt(k, 20);
        room = k;
        int cause = rl_node_request_line(&rig->node, claim, 1, RL_VERB_LINE_JOIN, rig->now_ns);
        room = UINT32_MAX;
        if (cause == REDLOCK_CAUSE_NONE)
            break;
        ck_assert_int_eq(cause, REDLOCK_CAUSE_NO_MEMORY);
        refusals++;
        rig_flush(rig);
        ck_assert_str_eq(rig_take_sent(rig), "");
        rig_no_vote(rig);
    }
    ck_assert_uint_ge(refusals, 2); /* for the words and for the output */
    rig_flush(rig);
    ck_assert_ptr_nonnull(
        strstr(rig_take_sent(rig), "EVALSHA line 2 key{#q} key J 77 d 0 4000 42 oo"));
    reply("$8\r\n1 d 1 -1\r\n");
    rig_check_vote(rig, claim, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 1);
}
END_TEST

/* The failed EVALSHA has used up CLIENT CACHING YES, so a look registers the key again. */
START_TEST(without_the_script_the_request_is_sent_again)
{
    start_tracking(true);
    request(RL_VERB_LINE_JOIN, 3);
    reply("+OK\r\n" NOSCRIPT);
    rig_no_vote(rig);
    ck_assert_str_eq(rig_take_sent(rig), "CLIENT CACHING YES\n"
                                         "EVAL <line> 2 key{#q} key J 77 w 0 4000 42 ada  1\n");
    reply("+OK\r\n$17\r\n1 h 1 5000 77 0 9\r\n");
    rig_check_vote(rig, claim, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 3);
    request(RL_VERB_LINE_SERVED, 4);
    reply(NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <line> 2 key{#q} key G 77 w 0 4000 42 ada tok 1\n");
    reply("$8\r\n0 - 0 -1\r\n");
    rig_check_vote(rig, claim, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 4);
}
END_TEST

/* Other requests of a round have the same words for all nodes, and are encoded once. */
START_TEST(each_request_has_the_values_of_its_time)
{
    start_tracking(true);
    request(RL_VERB_LINE_SERVED, 1);
    request(RL_VERB_LINE_SERVED, 2);
    reply(NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <line> 2 key{#q} key G 77 w 0 4000 42 ada tok 1\n");
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_drain(rig);
    rig_reply(rig, NOSCRIPT); /* at the same time as the first one */
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <line> 2 key{#q} key G 77 d 0 4000 42 ada tok 1\n");
    reply("$8\r\n0 - 0 -2\r\n$8\r\n0 - 0 -2\r\n");
    ck_assert_uint_eq(rig->vote_count, 2);
}
END_TEST

/* The victim of the request may not be known any more when the request is sent again: it only looks
 * then. */
START_TEST(a_victim_is_removed_only_by_its_own_request)
{
    rig->common.beat = 9;
    claim->victim = 81;
    request(RL_VERB_LINE_DROP, 1);
    claim->victim = 99; /* by a request to another line */
    reply(NOSCRIPT);
    ck_assert_str_eq(rig_take_sent(rig), "EVAL <line> 2 key{#q} key J 77 d 9 4000 42 ada  1\n");
    reply("$8\r\n1 d 1 -1\r\n");
    ck_assert_uint_eq(rig->votes[0].ballot.verb, RL_VERB_LINE_JOIN);
    rig_check_vote(rig, claim, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 1);
}
END_TEST

/* An undo removes the requests of its claim that were not sent. The server must learn of a LEAVE
 * all the same, because nothing else removes this client from the line. */
START_TEST(an_undo_does_not_remove_a_leave)
{
    rig->room = 0;
    rl_node_request_line(&rig->node, claim, 1, RL_VERB_LINE_JOIN, rig->now_ns);
    rl_node_request_line(&rig->node, claim, 1, RL_VERB_LINE_LEAVE, rig->now_ns);
    rig_undo(rig, claim, 0);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA line 2 key{#q} key L 77 d 0 4000 42 ada  1\n"
                                         "EVALSHA release 1 key tok\n");
    reply("$8\r\n0 - 0 -2\r\n:0\r\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_line_requests");
    TCase *tcase = tcase_create("line");
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_request_has_its_words, 0, 5);
    tcase_add_loop_test(tcase, an_inspection_has_two_lines, 0, 2);
    tcase_add_test(tcase, the_longest_key_has_a_line);
    tcase_add_test(tcase, the_key_of_the_line_outlives_the_call);
    tcase_add_loop_test(tcase, the_state_says_whether_turns_are_heard, 0, 2);
    tcase_add_test(tcase, only_looks_register_the_key);
    tcase_add_loop_test(tcase, replies_are_votes, 0, 13);
    tcase_add_test(tcase, a_closed_node_is_not_asked);
    tcase_add_test(tcase, a_lost_connection_is_a_failed_vote);
    tcase_add_test(tcase, without_memory_nothing_is_requested);
    tcase_add_test(tcase, without_the_script_the_request_is_sent_again);
    tcase_add_test(tcase, each_request_has_the_values_of_its_time);
    tcase_add_test(tcase, a_victim_is_removed_only_by_its_own_request);
    tcase_add_test(tcase, an_undo_does_not_remove_a_leave);
    return suite_run(suite);
}
