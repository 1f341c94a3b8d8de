/* SPDX-License-Identifier: MIT
 * Notifications of turns: the second SUBSCRIBE of the greeting of the second connection, and the
 * messages on its channel.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive_push(). rig_take_sent() returns the commands that the node has sent
 * on the first connection, as text. */
#include "node_rig.h"
#include "suite.h"

#include <string.h>

#define SHORT_GREETING                                                                             \
    "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$12\r\nredlock-wake\r\n"                               \
    "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"                                                           \
    "*2\r\n$9\r\nSUBSCRIBE\r\n$20\r\n__redis__:invalidate\r\n"
#define GREETING   SHORT_GREETING "*2\r\n$9\r\nSUBSCRIBE\r\n$12\r\nredlock:q:77\r\n"
#define SUBSCRIBED "+OK\r\n:5\r\n*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"
#define TURNS      "*3\r\n$9\r\nsubscribe\r\n$12\r\nredlock:q:77\r\n:2\r\n"
#define PUSH       "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"
#define TURN       "*3\r\n$7\r\nmessage\r\n$12\r\nredlock:q:77\r\n"
#define TRACK      "CLIENT TRACKING ON REDIRECT 5 OPTIN NOLOOP\nCLIENT CACHING YES\n"
#define TRACKED    "+OK\r\n+OK\r\n"

static struct rig *rig;
static char taken[256]; /* the notified keys, each with a blank before it, and a turn with a "!" */

/* Adds the notified key to `taken`. */
static void take_key(struct rl_arg key)
{
    size_t len = strlen(taken);

    snprintf(taken + len, sizeof taken - len, " %s%.*s", rig->common.inbox.is_turn ? "!" : "",
             (int)key.len, key.len == 0 ? "" : key.data);
}

/* Fixture: makes a READY node of the waiter 77, which requests notifications. */
static void setup(void)
{
    rig = rig_new();
    rig->common.notifications = true;
    rig->common.waiter = 77;
    rig->pushed_fn = take_key;
    taken[0] = '\0';
    rig_ready(rig);
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
}

/* Fixture: closes and frees the node. */
static void teardown(void)
{
    rig_done(rig);
}

/* Delivers text on the second connection and sends what the node has in return. */
static void receive_push(const char *bytes)
{
    rig_receive_push(rig, bytes, strlen(bytes));
    rig_flush(rig);
}

/* Completes the second connection; `turns` is the reply to the second SUBSCRIBE. */
static void listen(const char *turns)
{
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push(SUBSCRIBED);
    receive_push(turns);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    ck_assert_str_eq(taken, " "); /* any key may have changed before */
    taken[0] = '\0';
}

/* ---- the greeting ---- */

START_TEST(the_channel_of_turns_is_subscribed_to_by_itself)
{
    ck_assert(rl_tracker_may_hear_turns(&rig->node));
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, strlen(GREETING));
    ck_assert_mem_eq(rig->push_wire, GREETING, rig->push_len);
    receive_push(SUBSCRIBED);
    ck_assert_int_eq(rl_tracker_state(&rig->node), RL_TRACKER_GREETING);
    ck_assert_str_eq(rig_take_sent(rig), ""); /* not before the second subscription */
    receive_push(TURNS);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    ck_assert(rl_tracker_may_hear_turns(&rig->node));
    ck_assert(!rl_tracker_hears_turns(&rig->node)); /* a head is of no use without tracking */
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_hears_turns(&rig->node));
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_drain(rig);
    ck_assert(!rl_tracker_hears_turns(&rig->node));
    ck_assert(rl_tracker_may_hear_turns(&rig->node)); /* again, once it is open again */
}
END_TEST

/* Neither the channel nor its absence changes the notifications of keys. */
START_TEST(a_refused_channel_of_turns_is_tolerated)
{
    static const char *const replies[] = {
        "-NOPERM this user has no permissions to access one of the channels\r\n",
        "-\r\n",
        "+OK\r\n",
        ":2\r\n",
        "$-1\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$12\r\nredlock:q:77\r\n:1\r\n",
        "*2\r\n$9\r\nsubscribe\r\n$12\r\nredlock:q:77\r\n",
        "*0\r\n",
    };
    unsigned changed = rig->changed;

    listen(replies[_i]);
    ck_assert_uint_gt(rig->changed, changed);
    ck_assert(!rl_tracker_hears_turns(&rig->node));
    ck_assert(!rl_tracker_may_hear_turns(&rig->node));
    ck_assert_str_eq(rl_tracker_text(&rig->node), "");
    ck_assert_uint_eq(rl_tracker_cause(&rig->node), REDLOCK_CAUSE_NONE);
    receive_push(PUSH "*1\r\n$3\r\nkey\r\n");
    ck_assert_str_eq(taken, " key");
    rig_pass(rig, 60 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 1);
    /* The next second connection asks again: an operator may have changed the user's rights. */
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_pass(rig, 100 * RL_MS);
    taken[0] = '\0';
    listen(TURNS);
    ck_assert(rl_tracker_hears_turns(&rig->node));
}
END_TEST

START_TEST(without_a_reply_to_the_second_subscribe_the_connection_is_opened_anew)
{
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push(SUBSCRIBED);
    rig_pass(rig, 249 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 1);
    rig_pass(rig, 500 * RL_MS);
    ck_assert_uint_ge(rig->push_opens, 2);
    ck_assert_str_eq(rig_take_sent(rig), "");
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert(rl_tracker_may_hear_turns(&rig->node));
}
END_TEST

/* The second connection (0) or the first one (1) ends between the replies to the SUBSCRIBEs. */
START_TEST(a_connection_lost_between_the_subscriptions_is_made_anew)
{
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push(SUBSCRIBED "*3\r\n$9\r\nsub");
    if (_i == 0) {
        rl_tracker_closed(&rig->node, rig->now_ns);
        rig_drain(rig);
        ck_assert(!rig->push_open);
        rig_pass(rig, 100 * RL_MS);
    } else {
        rig_lose(rig);
        ck_assert(!rig->push_open);
        rig_pass(rig, RL_MS);
        rig_connect(rig);
        rig_greet(rig);
        rig_pass(rig, RL_MS);
    }
    ck_assert_uint_eq(rig->push_opens, 2);
    ck_assert_str_eq(rig_take_sent(rig), "");
    ck_assert(!rl_tracker_hears_turns(&rig->node));
    listen(TURNS);
    ck_assert(rl_tracker_hears_turns(&rig->node));
    receive_push(TURN "$3\r\nkey\r\n");
    ck_assert_str_eq(taken, " !key");
}
END_TEST

START_TEST(without_lines_there_is_one_subscribe)
{
    rig->common.waiter = 0;
    ck_assert(!rl_tracker_may_hear_turns(&rig->node));
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, strlen(SHORT_GREETING));
    ck_assert_mem_eq(rig->push_wire, SHORT_GREETING, rig->push_len);
    receive_push(SUBSCRIBED);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    ck_assert(!rl_tracker_hears_turns(&rig->node));
    ck_assert(!rl_tracker_may_hear_turns(&rig->node));
}
END_TEST

START_TEST(without_notifications_no_turns_are_heard)
{
    rig->common.notifications = false;
    ck_assert(!rl_tracker_may_hear_turns(&rig->node));
}
END_TEST

/* The server refuses the second connection as a whole: the engine learns that the node can keep no
 * line. */
START_TEST(a_refused_second_connection_is_reported)
{
    unsigned changed = rig->changed;

    rl_tracker_opened(&rig->node, true, rig->now_ns);
    receive_push("-ERR unknown subcommand\r\n-ERR unknown subcommand\r\n");
    ck_assert_int_eq(rl_tracker_state(&rig->node), RL_TRACKER_REFUSED);
    ck_assert_uint_gt(rig->changed, changed);
    ck_assert(!rl_tracker_may_hear_turns(&rig->node));
}
END_TEST

/* ---- messages ---- */

START_TEST(a_turn_names_the_lock)
{
    listen(TURNS);
    receive_push(TURN "$3\r\nkey\r\n");
    ck_assert_str_eq(taken, " !key");
    ck_assert_uint_eq(rig->turns, 1);
    ck_assert_uint_eq(rig->node.counters.notifications, 1);
    receive_push(PUSH "*1\r\n$3\r\nkey\r\n");
    ck_assert_str_eq(taken, " !key key"); /* a turn is not repeated */
    ck_assert_uint_eq(rig->turns, 1);
    receive_push(PUSH "*-1\r\n"); /* all: FLUSHALL */
    ck_assert_str_eq(taken, " !key key ");
    ck_assert_uint_eq(rig->turns, 1);
}
END_TEST

/* Several keys of one notification, between two turns, all in one read. */
START_TEST(turns_and_changes_keep_their_order)
{
    listen(TURNS);
    receive_push(TURN "$1\r\na\r\n" PUSH "*2\r\n$1\r\nb\r\n$1\r\nc\r\n" TURN "$1\r\nd\r\n" PUSH
                      "*1\r\n$1\r\ne\r\n");
    ck_assert_str_eq(taken, " !a b c !d e");
    ck_assert_uint_eq(rig->node.counters.notifications, 4);
}
END_TEST

START_TEST(a_turn_may_be_split_at_every_byte)
{
    static const char push[] = TURN "$3\r\nkey\r\n";

    listen(TURNS);
    for (size_t cut = 1; cut < sizeof push - 1; cut++) {
        taken[0] = '\0';
        rig_receive_push(rig, push, cut);
        ck_assert_str_eq(taken, "");
        rig_receive_push(rig, push + cut, sizeof push - 1 - cut);
        ck_assert_str_eq(taken, " !key");
    }
}
END_TEST

/* The longest key and the longest id together. */
START_TEST(the_longest_turn_is_read)
{
    static char key[RL_KEY_MAX], bytes[RL_KEY_MAX + 128];

    rl_tracker_closed(&rig->node, rig->now_ns);
    rig->common.waiter = UINT64_MAX;
    rig_pass(rig, 100 * RL_MS);
    listen("*3\r\n$9\r\nsubscribe\r\n$30\r\nredlock:q:18446744073709551615\r\n:2\r\n");
    memset(key, 'k', sizeof key);
    rig->pushed_fn = NULL;
    snprintf(bytes, sizeof bytes,
             "*3\r\n$7\r\nmessage\r\n$30\r\nredlock:q:18446744073709551615\r\n$%zu\r\n%.*s\r\n",
             sizeof key, (int)sizeof key, key);
    receive_push(bytes);
    ck_assert_uint_eq(rig->turns, 1);
    ck_assert_uint_eq(rig->pushed_len, sizeof key);
    ck_assert_mem_eq(rig->pushed, key, sizeof key);
}
END_TEST

/* Any client with the right may publish such a message. An empty key would mean that any key may
 * have changed. */
START_TEST(a_turn_without_a_key_is_ignored)
{
    static const char *const lines[] = {TURN "$0\r\n\r\n", TURN "$-1\r\n"};

    listen(TURNS);
    receive_push(lines[_i]);
    ck_assert_str_eq(taken, "");
    ck_assert(rl_tracker_hears_turns(&rig->node));
    receive_push(TURN "$3\r\nkey\r\n");
    ck_assert_str_eq(taken, " !key");
}
END_TEST

/* Neither a turn nor a change: the second connection is opened anew. */
START_TEST(a_malformed_turn_ends_the_second_connection)
{
    static const char *const lines[] = {
        "*4\r\n$7\r\nmessage\r\n$12\r\nredlock:q:77\r\n$1\r\na\r\n$1\r\nb\r\n",
        "*2\r\n$7\r\nmessage\r\n$12\r\nredlock:q:77\r\n",
        "*3\r\n$7\r\nmessage\r\n$10\r\nredlock:q:\r\n$3\r\nkey\r\n",
        "*3\r\n$7\r\nmessage\r\n$12\r\nredlock:p:77\r\n$3\r\nkey\r\n",
        "*3\r\n$7\r\nmessage\r\n$-1\r\n$3\r\nkey\r\n",
        "*3\r\n$8\r\npmessage\r\n$12\r\nredlock:q:77\r\n$3\r\nkey\r\n",
        TURN "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        TURN "*0\r\n",
        TURN "*1\r\n$1000000\r\n",
        TURNS,
        "*3\r\n$11\r\nunsubscribe\r\n$12\r\nredlock:q:77\r\n:1\r\n",
    };

    listen(TURNS);
    receive_push(lines[_i]);
    for (unsigned i = 0; i < 4000 && rig->push_open; i++)
        receive_push("a key without end, which is longer than any key; ");
    ck_assert_str_eq(taken, "");
    ck_assert(!rig->push_open);
    ck_assert(!rl_tracker_hears_turns(&rig->node));
    ck_assert(rl_node_is_up(&rig->node));
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
    listen(TURNS);
    ck_assert(rl_tracker_hears_turns(&rig->node));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_line_turns");
    TCase *tcase = tcase_create("turns");
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_channel_of_turns_is_subscribed_to_by_itself);
    tcase_add_loop_test(tcase, a_refused_channel_of_turns_is_tolerated, 0, 8);
    tcase_add_test(tcase, without_a_reply_to_the_second_subscribe_the_connection_is_opened_anew);
    tcase_add_loop_test(tcase, a_connection_lost_between_the_subscriptions_is_made_anew, 0, 2);
    tcase_add_test(tcase, without_lines_there_is_one_subscribe);
    tcase_add_test(tcase, without_notifications_no_turns_are_heard);
    tcase_add_test(tcase, a_refused_second_connection_is_reported);
    tcase_add_test(tcase, a_turn_names_the_lock);
    tcase_add_test(tcase, turns_and_changes_keep_their_order);
    tcase_add_test(tcase, a_turn_may_be_split_at_every_byte);
    tcase_add_test(tcase, the_longest_turn_is_read);
    tcase_add_loop_test(tcase, a_turn_without_a_key_is_ignored, 0, 2);
    tcase_add_loop_test(tcase, a_malformed_turn_ends_the_second_connection, 0, 11);
    return suite_run(suite);
}
