/* SPDX-License-Identifier: MIT
 * A request that a server did not understand and that is repeated in another form: not after a
 * release in between, and again if the first repetition was never sent.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

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

/* Makes the node READY with a server of this version. */
static void ready_as(const char *version)
{
    rig_start(rig);
    rig_connect(rig);
    rig_take_sent(rig);
    rig_greet_as(rig, version, "role:master\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
}

static const struct {
    const char *version, *extension, *refusal, *repeated;
} REFUSALS[] = {
    {"redis_version:8.4.0\r\n", "EVALSHA extend 1 key aa 30000\n",
     "-ERR unknown command 'EVALSHA', with args beginning with: \r\n",
     "EVAL <extend> 1 key aa 30000\n"},
    {"redis_version:7.0.15\r\n", "EVALSHA extend 1 key aa 30000\n",
     "-NOSCRIPT No matching script. Please use EVAL.\r\n", "EVAL <extend> 1 key aa 30000\n"},
};
#define REFUSALS_COUNT ((int)(sizeof REFUSALS / sizeof REFUSALS[0]))

/* Sends the extension of row `i`. */
static void extend_a(int i)
{
    ready_as(REFUSALS[i].version);
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_EXTEND), 0);
    ck_assert_str_eq(rig_take_sent(rig), REFUSALS[i].extension);
}

START_TEST(an_extension_is_repeated_in_another_form)
{
    extend_a(_i);
    rig_reply(rig, REFUSALS[_i].refusal);
    ck_assert_str_eq(rig_take_sent(rig), REFUSALS[_i].repeated);
    rig_no_vote(rig);
    rig_reply(rig, ":1\r\n");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_GRANTED);
}
END_TEST

/* After the delayed release, a repeated extension would reset the TTL of the key. */
START_TEST(an_extension_is_not_repeated_after_a_delayed_release)
{
    extend_a(_i);
    a->undo_verb = RL_VERB_SHORTEN;
    a->keep_until_ns = rig->now_ns + 5 * RL_SECOND;
    ck_assert_uint_eq(rig_undo(rig, a, 2), RL_VOTE_NONE);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA shorten 1 key aa 5000\n");
    rig_reply(rig, REFUSALS[_i].refusal);
    ck_assert_str_eq(rig_take_sent(rig), "");
    ck_assert_uint_eq(rig_only_vote(rig).vote, RL_VOTE_FAILED);
    rig_reply(rig, ":1\r\n");
    struct rl_ballot vote = rig_only_vote(rig);
    ck_assert_uint_eq(vote.vote, RL_VOTE_GRANTED);
    ck_assert_uint_eq(vote.round, 2);
    ck_assert_uint_eq(rig->undone, 1);
    ck_assert_str_eq(rig_take_sent(rig), "");
}
END_TEST

/* The first native command was removed from the pipeline unsent, so it has not been tried. */
START_TEST(an_unsent_native_command_may_be_tried_again)
{
    ready_as("redis_version:8.4.0\r\n");
    rig->room = 0;
    ck_assert_int_eq(rig_request(rig, a, 1, RL_VERB_EXTEND), 0);
    rig_undo(rig, a, 2);
    rig_undo(rig, a, 3);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), "DELEX key IFEQ aa\n");
    rig_reply(rig, ":1\r\n");
    rig_only_vote(rig);
}
END_TEST

/* Fails, as an allocator without memory. */
static void *no_malloc(size_t size, void *userdata)
{
    (void)size;
    (void)userdata;
    return NULL;
}

/* Fails, as an allocator without memory. */
static void *no_realloc(void *ptr, size_t size, void *userdata)
{
    (void)ptr;
    (void)size;
    (void)userdata;
    return NULL;
}

/* The first native command could not be sent for lack of memory, so it has not been tried. */
START_TEST(a_native_command_without_memory_may_be_tried_again)
{
    ready_as("redis_version:8.4.0\r\n");
    const struct rl_mem memory = rig->mem;
    rig->mem.malloc_fn = no_malloc;
    rig->mem.realloc_fn = no_realloc;
    ck_assert_uint_eq(rig_undo(rig, a, 1), RL_VOTE_FAILED);
    rig->mem = memory;
    ck_assert_str_eq(rig_take_sent(rig), "");
    ck_assert_uint_eq(rig_undo(rig, b, 2), RL_VOTE_NONE);
    ck_assert_str_eq(rig_take_sent(rig), "DELEX key IFEQ bb\n");
    rig_reply(rig, ":1\r\n");
    rig_check_vote(rig, b, RL_VOTE_GRANTED, 0, 2);
}
END_TEST

static Suite *repeated_requests_suite(void)
{
    Suite *suite = suite_create("node_repeated_requests");
    TCase *repeated = tcase_create("repeated");
    tcase_add_checked_fixture(repeated, setup, teardown);
    tcase_add_loop_test(repeated, an_extension_is_repeated_in_another_form, 0, REFUSALS_COUNT);
    tcase_add_loop_test(repeated, an_extension_is_not_repeated_after_a_delayed_release, 0,
                        REFUSALS_COUNT);
    tcase_add_test(repeated, an_unsent_native_command_may_be_tried_again);
    tcase_add_test(repeated, a_native_command_without_memory_may_be_tried_again);
    suite_add_tcase(suite, repeated);
    return suite;
}

int main(void)
{
    return suite_run(repeated_requests_suite());
}
