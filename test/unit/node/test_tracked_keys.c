/* SPDX-License-Identifier: MIT
 * The keys that a server tracks for a node: those that a lock waits for, and no others.
 *
 * Uses node_rig.h: one node without a network, in virtual time. The test plays the server with
 * rig_reply() and rig_receive(). rig_take_sent() returns the commands that the node has sent, as
 * text; rig_check_vote() checks the vote that it has reported. */
#include "node_rig.h"

#include <string.h>

#include "suite.h"

#define NAMED      "+OK\r\n"
#define SUBSCRIBED ":77\r\n*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"
#define TRACKED    "+OK\r\n+OK\r\n"

static struct rig *rig;

/* Fixture: makes a READY node with notifications. */
static void setup(void)
{
    rig = rig_new();
    rig->common.notifications = true;
    rig_ready(rig);
}

/* Fixture: closes and frees the node. */
static void teardown(void)
{
    rig_done(rig);
}

/* Establishes the second connection; the server sends notifications of tracked keys from now on. */
static void start_tracking(void)
{
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    rig_receive_push(rig, NAMED SUBSCRIBED, strlen(NAMED SUBSCRIBED));
    rig_flush(rig);
    rig_take_sent(rig);
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
}

/* A key is tracked by CLIENT CACHING YES before its PTTL. Other requests do not track. */
START_TEST(only_probed_keys_are_tracked)
{
    struct rl_claim *claim = rig_claim(rig, "tok");

    rl_node_probe_and_track(&rig->node, claim, 1, rig->now_ns);
    rig_flush(rig);
    ck_assert_str_eq(rig_take_sent(rig), "PTTL key\n"); /* tracking is not on yet */
    rig_reply(rig, ":-2\r\n");
    start_tracking();
    rig_request(rig, claim, 1, RL_VERB_GET);
    rig_request(rig, claim, 1, RL_VERB_PTTL);
    ck_assert_str_eq(rig_take_sent(rig), "GET key\nPTTL key\n");
    rig_reply(rig, "$-1\r\n:-2\r\n");
    rl_node_probe_and_track(&rig->node, claim, 2, rig->now_ns);
    rig_flush(rig);
    ck_assert_str_eq(rig_take_sent(rig), "CLIENT CACHING YES\nPTTL key\n");
    rig->vote_count = 0;
    rig_reply(rig, "+OK\r\n:5\r\n");
    rig_check_vote(rig, claim, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, 2);
    ck_assert(rl_tracker_is_on(&rig->node));
    /* A removed probe leaves no CLIENT CACHING YES before the next request. */
    rig->room = 0;
    rl_node_probe_and_track(&rig->node, claim, 3, rig->now_ns);
    rig_undo(rig, claim, 0);
    rig->room = SIZE_MAX;
    rl_node_flush(&rig->node, rig->now_ns);
    ck_assert_str_eq(rig_take_sent(rig), "EVALSHA release 1 key tok\n");
    rig_reply(rig, ":0\r\n");
    rig_drop(claim);
}
END_TEST

/* A permission is removed later: the server sends no notifications any more, but it votes. */
START_TEST(tracking_can_be_refused_later)
{
    static const char *const replies[] = {"-NOPERM no 'client|caching'\r\n", ":1\r\n"};
    struct rl_claim *claim = rig_claim(rig, "tok");

    start_tracking();
    rl_node_probe_and_track(&rig->node, claim, 1, rig->now_ns);
    rl_node_probe_and_track(&rig->node, claim, 2, rig->now_ns);
    rig_flush(rig);
    rig_reply(rig, replies[_i]);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->node.tracker.state, RL_TRACKER_REFUSED);
    rig_reply(rig, ":-2\r\n");
    rig_check_vote(rig, claim, RL_VOTE_DENIED, REDLOCK_CAUSE_NONE, 1);
    rig_reply(rig, replies[_i]);
    rig_reply(rig, ":-2\r\n");
    rig_check_vote(rig, claim, RL_VOTE_DENIED, REDLOCK_CAUSE_NONE, 2);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_uint_eq(rig->closes, 0);
    rig_drop(claim);
}
END_TEST

/* A server that is busy with a script refuses for a while. Tracking is then tried again. */
START_TEST(a_busy_server_is_tried_again)
{
    static const char BUSY[] = "-BUSY Redis is busy running a script.\r\n";
    struct rl_claim *claim = rig_claim(rig, "tok");

    start_tracking();
    rl_node_probe_and_track(&rig->node, claim, 1, rig->now_ns);
    rig_flush(rig);
    rig_reply(rig, BUSY);
    rig_reply(rig, BUSY);
    rig_check_vote(rig, claim, RL_VOTE_FAILED, REDLOCK_CAUSE_BUSY, 1);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->node.tracker.state, RL_TRACKER_OFF);
    for (int i = 0; i < 3; i++) {
        unsigned opens = rig->push_opens;
        const char *greeting = i == 0 ? BUSY : SUBSCRIBED;
        while (rig->push_opens == opens)
            rig_pass(rig, 100 * RL_MS);
        rl_tracker_opened(&rig->node, true, rig->now_ns);
        rig_receive_push(rig, NAMED, strlen(NAMED));
        rig_receive_push(rig, greeting, strlen(greeting));
        rig_flush(rig);
        rig_take_sent(rig);
        if (i != 0)
            rig_reply(rig, i == 1 ? BUSY : TRACKED);
        if (i == 1)
            rig_reply(rig, BUSY);
    }
    ck_assert(rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->closes, 0);
    rig_drop(claim);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tracked_keys");
    TCase *tcase = tcase_create("tracked_keys");
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, only_probed_keys_are_tracked);
    tcase_add_loop_test(tcase, tracking_can_be_refused_later, 0, 2);
    tcase_add_test(tcase, a_busy_server_is_tried_again);
    return suite_run(suite);
}
