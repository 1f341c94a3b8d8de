/* SPDX-License-Identifier: MIT
 * What a node puts into the inbox: its order, how long a reply is valid, and that no vote is lost
 * without memory or when the node is closed.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define IN_FLIGHT 200

static struct rig *rig;
static struct rl_inbox *inbox; /* that of the rig */
static struct rl_claim *a, *b; /* claims with the tokens "aa" and "bb" */
static bool no_memory;         /* allocations fail while this is set */

/* Allocates while there is memory. */
static void *scarce_malloc(size_t size, void *userdata)
{
    (void)userdata;
    return no_memory ? NULL : malloc(size);
}

/* Reallocates while there is memory. */
static void *scarce_realloc(void *ptr, size_t size, void *userdata)
{
    (void)userdata;
    return no_memory ? NULL : realloc(ptr, size);
}

/* Fixture: makes a READY node, whose allocations fail while no_memory is true, and two claims. */
static void setup(void)
{
    rig = rig_new();
    no_memory = false;
    rig->mem.malloc_fn = scarce_malloc;
    rig->mem.realloc_fn = scarce_realloc;
    inbox = &rig->common.inbox;
    a = rig_claim(rig, "aa");
    b = rig_claim(rig, "bb");
    rig_ready(rig);
}

/* Fixture: closes and frees the node and checks that nothing else refers to the claims. */
static void teardown(void)
{
    rig_done(rig);
    rig_drop(a);
    rig_drop(b);
}

/* Returns true if the inbox has an entry of this kind. */
static bool has_entry(enum rl_inbox_kind kind)
{
    return (inbox->waiting & 1u << kind) != 0;
}

/* Delivers bytes from the server without draining the inbox. */
static void receive(const char *bytes)
{
    rl_node_received(&rig->node, bytes, strlen(bytes), rig->now_ns);
}

/* Takes the vote of a reply from the inbox. Returns its claim, for comparison only. */
static struct rl_claim *take_replied(void)
{
    ck_assert(rl_inbox_is_first(inbox, RL_INBOX_REPLIED));
    struct rl_claim *claim = rl_inbox_take_replied(inbox)->claim;
    rl_claim_drop(claim);
    return claim;
}

/* A reply that ends the connection: its own vote, the change, then the votes of the others. */
START_TEST(the_entries_of_a_disconnect_have_an_order)
{
    a->slot = 5; /* slots of semaphores: each vote names that of its request */
    b->slot = 6;
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    rig_request(rig, a, 3, RL_VERB_EXTEND);
    receive("-READONLY You can't write against a read only replica.\r\n");
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_DOWN);
    ck_assert(has_entry(RL_INBOX_CHANGED) && !rl_inbox_is_first(inbox, RL_INBOX_CHANGED));
    ck_assert(has_entry(RL_INBOX_VOTES) && !rl_inbox_is_first(inbox, RL_INBOX_VOTES));
    ck_assert_ptr_eq(take_replied(), a);
    ck_assert_ptr_null(inbox->reply); /* it was freed with the connection */
    ck_assert(rl_inbox_is_first(inbox, RL_INBOX_CHANGED));
    ck_assert_uint_eq(rl_inbox_take_node(inbox, RL_INBOX_CHANGED), 3);
    for (uint32_t round = 2; round <= 3; round++) {
        ck_assert(rl_inbox_is_first(inbox, RL_INBOX_VOTES));
        struct rl_inbox_vote vote = rl_inbox_take_vote(inbox);
        ck_assert_ptr_eq(vote.claim, round == 2 ? b : a);
        ck_assert_uint_eq(vote.ballot.round, round);
        ck_assert_uint_eq(vote.ballot.slot, round == 2 ? 6 : 5);
        ck_assert_uint_eq(vote.ballot.cause, REDLOCK_CAUSE_READONLY);
        rl_claim_drop(vote.claim);
    }
    ck_assert_uint_eq(inbox->waiting, 0);
}
END_TEST

/* The mark of a turn belongs to one entry: the next notification is a change again. */
START_TEST(a_turn_is_marked)
{
    static const struct rl_arg first = {"first", 5}, second = {"second", 6};
    struct rl_arg key;

    rl_inbox_add_turn(inbox, 3, first);
    ck_assert(rl_inbox_is_first(inbox, RL_INBOX_NOTIFIED));
    ck_assert_uint_eq(rl_inbox_take_key(inbox, &key), 3);
    ck_assert(inbox->is_turn);
    ck_assert_ptr_eq(key.data, first.data);
    ck_assert_uint_eq(key.len, first.len);
    ck_assert_uint_eq(inbox->waiting, 0);
    rl_inbox_add_key(inbox, 5, second);
    ck_assert_uint_eq(rl_inbox_take_key(inbox, &key), 5);
    ck_assert(!inbox->is_turn);
    ck_assert_ptr_eq(key.data, second.data);
}
END_TEST

/* Two replies come at once: the second is not read before the vote of the first is taken. */
START_TEST(one_reply_at_a_time)
{
    rig_request(rig, a, 1, RL_VERB_GET);
    rig_request(rig, b, 2, RL_VERB_GET);
    receive("$3\r\none\r\n$3\r\ntwo\r\n");
    ck_assert(has_entry(RL_INBOX_UNREAD));
    ck_assert_ptr_eq(take_replied(), a);
    ck_assert_mem_eq(inbox->reply->text, "one", 3);
    ck_assert(rl_inbox_is_first(inbox, RL_INBOX_UNREAD));
    rl_node_next(&rig->node, rig->now_ns);
    ck_assert_ptr_eq(take_replied(), b);
    ck_assert_mem_eq(inbox->reply->text, "two", 3);
    ck_assert_uint_eq(inbox->waiting, 0);
}
END_TEST

/* A pending undo is sent after the engine has taken the change of the node, not before. */
START_TEST(a_connection_is_reported_before_it_is_used)
{
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    (void)rig_undo(rig, a, 0);
    rig_lose(rig);
    rig_pass(rig, 0);
    rig_connect(rig);
    rig_take_sent(rig);
    receive("+OK\r\n$12\r\nrun_id:abcd\n\r\n$11\r\nrole:master\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"
            "-NOPERM\r\n-x\r\n-x\r\n-x\r\n-x\r\n-x\r\n");
    while (!has_entry(RL_INBOX_CHANGED))
        rl_node_next(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rig->node.conn.state, RL_NODE_READY);
    ck_assert_uint_eq(rl_pipeline_count(&rig->node.pipe), 0);
    ck_assert_uint_eq(rig->node.undos.heap.count, 1);
    rig_drain(rig);
    ck_assert_uint_eq(rig->node.undos.heap.count, 0);
    rig_flush(rig);
    rig_reply(rig, ":1\r\n");
}
END_TEST

/* As many requests as there is memory for; each has its vote when the connection ends. */
START_TEST(room_is_reserved_before_a_request_is_sent)
{
    struct rl_claim *claims[IN_FLIGHT];
    unsigned sent = 0;

    for (unsigned i = 0; i < IN_FLIGHT; i++)
        claims[i] = rig_claim(rig, "cc");
    for (; sent < 20; sent++)
        ck_assert_int_eq(rig_request(rig, claims[sent], sent + 1, RL_VERB_GET), 0);
    no_memory = true;
    while (sent < IN_FLIGHT && rig_request(rig, claims[sent], sent + 1, RL_VERB_GET) == 0)
        sent++;
    ck_assert_uint_lt(sent, IN_FLIGHT);
    ck_assert_uint_ge(inbox->room, sent);
    rig_lose(rig);
    ck_assert_uint_eq(rig->vote_count, sent);
    for (unsigned i = 0; i < sent; i++) {
        ck_assert_ptr_eq(rig->votes[i].claim, claims[i]);
        ck_assert_uint_eq(rig->votes[i].ballot.round, i + 1);
    }
    for (unsigned i = 0; i < IN_FLIGHT; i++)
        rig_drop(claims[i]);
}
END_TEST

/* Only the inbox needs memory: the request is refused, and the pipeline is unchanged. */
START_TEST(without_room_in_the_inbox_a_request_is_refused)
{
    uint32_t cap = 0;

    for (unsigned i = 0; i < 31 || cap == 0; i++) {
        ck_assert_int_eq(rig_request(rig, a, i + 1, RL_VERB_GET), 0);
        cap = rig->node.pipe.ring_cap;
    }
    uint32_t room = inbox->room;
    ck_assert_uint_eq(room, cap);
    no_memory = true;
    ck_assert_int_eq(rig_request(rig, b, 1, RL_VERB_GET), REDLOCK_CAUSE_NO_MEMORY);
    ck_assert_uint_eq(inbox->room, room);
    ck_assert_uint_eq(rig->node.pipe.ring_cap, cap);
    no_memory = false;
    ck_assert_int_eq(rig_request(rig, b, 1, RL_VERB_GET), 0);
    ck_assert_uint_eq(inbox->room, rig->node.pipe.ring_cap);
}
END_TEST

/* The node is freed while votes of both kinds wait: their claims are dropped. */
START_TEST(freeing_a_node_drops_the_claims_of_waiting_votes)
{
    rig_request(rig, a, 1, RL_VERB_ACQUIRE);
    rig_request(rig, b, 2, RL_VERB_ACQUIRE);
    receive("+OK\r\n");
    rl_node_close(&rig->node, REDLOCK_CAUSE_NONE, "client was closed", false, rig->now_ns);
    ck_assert(has_entry(RL_INBOX_REPLIED) && has_entry(RL_INBOX_VOTES));
    rl_node_free(&rig->node);
    ck_assert_uint_eq(inbox->room, 0);
    ck_assert_uint_eq(a->refs, 2);
    rl_inbox_free(inbox);
    ck_assert_uint_eq(a->refs, 1);
    ck_assert_uint_eq(b->refs, 1);
    ck_assert_uint_eq(inbox->waiting, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_inbox");
    TCase *tcase = tcase_create("inbox");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_entries_of_a_disconnect_have_an_order);
    tcase_add_test(tcase, a_turn_is_marked);
    tcase_add_test(tcase, one_reply_at_a_time);
    tcase_add_test(tcase, a_connection_is_reported_before_it_is_used);
    tcase_add_test(tcase, room_is_reserved_before_a_request_is_sent);
    tcase_add_test(tcase, without_room_in_the_inbox_a_request_is_refused);
    tcase_add_test(tcase, freeing_a_node_drops_the_claims_of_waiting_votes);
    return suite_run(suite);
}
