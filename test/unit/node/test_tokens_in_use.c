/* SPDX-License-Identifier: MIT
 * The tokens that a node has in use: from the first request to the last reply, and as long as an
 * undo is pending.
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

/* Returns true if the node has the token in use. */
static bool uses(const char *token)
{
    return rl_node_uses_token(&rig->node, (struct rl_arg){token, strlen(token)});
}

START_TEST(a_token_is_in_use_until_the_last_reply)
{
    rig_ready(rig);
    ck_assert(!uses("aa"));
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    ck_assert(uses("aa") && uses("bb"));
    ck_assert(!uses("a") && !uses("aaa") && !uses("ab"));
    rig_reply(rig, "+OK\r\n");
    ck_assert(!uses("aa") && uses("bb"));
    rig_undo(rig, a, 0);
    ck_assert(uses("aa"));
    rig_reply(rig, "$-1\r\n");
    ck_assert(uses("aa") && !uses("bb"));
    rig_reply(rig, ":1\r\n");
    ck_assert(!uses("aa"));
}
END_TEST

START_TEST(a_token_is_in_use_while_an_undo_is_pending)
{
    rig_ready(rig);
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_reply(rig, "+OK\r\n");
    rig_undo(rig, a, 0);
    rig_lose(rig);
    ck_assert(uses("aa"));
    rig_pass(rig, rl_sub_sat(rig->node.conn.due_ns, rig->now_ns));
    rig_connect(rig);
    ck_assert(uses("aa"));
    rig_greet(rig);
    ck_assert(uses("aa"));
    rig_reply(rig, ":1\r\n");
    ck_assert(!uses("aa"));
}
END_TEST

/* A removed request that was never sent leaves nothing on the server. */
START_TEST(the_token_of_an_unsent_request_is_not_in_use)
{
    rig_ready(rig);
    rig->room = 0;
    (void)rl_node_request(&rig->node, a, 1, RL_VERB_ACQUIRE, rig->now_ns);
    ck_assert(uses("aa"));
    ck_assert_int_eq(rig_undo(rig, a, 0), RL_VOTE_DENIED);
    ck_assert(!uses("aa"));
    rig->room = SIZE_MAX;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tokens_in_use");
    TCase *tcase = tcase_create("node_token");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_token_is_in_use_until_the_last_reply);
    tcase_add_test(tcase, a_token_is_in_use_while_an_undo_is_pending);
    tcase_add_test(tcase, the_token_of_an_unsent_request_is_not_in_use);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
