/* SPDX-License-Identifier: MIT
 * Notifications: the second connection of a node, and the commands on both connections. */
#include "node_rig.h"
#include "suite.h"

#include <string.h>

#define GREETING                                                                                   \
    "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$12\r\nredlock-wake\r\n"                               \
    "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"                                                           \
    "*2\r\n$9\r\nSUBSCRIBE\r\n$20\r\n__redis__:invalidate\r\n"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n"
#define PUSH       "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"
#define TRACK      "CLIENT TRACKING ON REDIRECT 77 OPTIN NOLOOP\nCLIENT CACHING YES\n"
#define TRACKED    "+OK\r\n+OK\r\n"

static struct rig *rig;

static void setup(void)
{
    rig = rig_new();
    rig->common.notifications = true;
}

static void teardown(void)
{
    rig_done(rig);
}

static void hear(const char *bytes)
{
    rig_receive_push(rig, bytes, strlen(bytes));
    rig_flush(rig);
}

static void want(void)
{
    rl_tracker_request(&rig->node, rig->now_ns);
    rl_node_tick(&rig->node, rig->now_ns);
}

static void subscribe(void)
{
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    hear("+OK\r\n:77\r\n" SUBSCRIBED);
}

static void listen(void)
{
    rig_ready(rig);
    want();
    subscribe();
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
}

START_TEST(nobody_waits)
{
    rig_ready(rig);
    rig_pass(rig, 10 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 0);
}
END_TEST

START_TEST(not_asked_for)
{
    rig->common.notifications = false;
    rig_ready(rig);
    want();
    rig_pass(rig, 10 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 0);
}
END_TEST

START_TEST(the_whole_greeting)
{
    rig_ready(rig);
    want();
    ck_assert_uint_eq(rig->push_opens, 1);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, strlen(GREETING));
    ck_assert_mem_eq(rig->push_wire, GREETING, rig->push_len);
    hear("+OK\r\n:7");
    hear("7\r\n");
    ck_assert_str_eq(rig_take_sent(rig), ""); /* who is not subscribed hears nothing */
    hear(SUBSCRIBED);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 0);
    unsigned changed = rig->changed;
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    ck_assert_uint_gt(rig->changed, changed);
    ck_assert_uint_eq(rig->pushes, 1); /* what changed before, nobody told */
    ck_assert_uint_eq(rig->pushed_len, 0);
    rl_tracker_request(&rig->node, rig->now_ns);
    rig_pass(rig, RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 1);
}
END_TEST

START_TEST(with_a_password)
{
    rig->node.user = "me";
    rig->node.password = "secret";
    rig_start(rig);
    rig_connect(rig);
    rig_reply(rig, "+OK\r\n");
    rig_greet(rig);
    want();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_mem_eq(rig->push_wire, "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n*3", 36);
    hear("+OK\r\n+OK\r\n:77\r\n" SUBSCRIBED);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
}
END_TEST

START_TEST(a_narrow_way)
{
    rig_ready(rig);
    want();
    rig->push_room = 10;
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, 10);
    rig->push_room = 100;
    rl_tracker_flush(&rig->node, rig->now_ns);
    rig->push_room = 500;
    rl_tracker_flush(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rig->push_len, strlen(GREETING));
    ck_assert_mem_eq(rig->push_wire, GREETING, rig->push_len);
}
END_TEST

START_TEST(keys_that_changed)
{
    listen();
    hear(PUSH "*1\r\n$3\r\nkey\r\n");
    ck_assert_uint_eq(rig->pushes, 2);
    ck_assert_uint_eq(rig->pushed_len, 3);
    ck_assert_mem_eq(rig->pushed, "key", 3);
    hear(PUSH "*2\r\n$1\r\na\r\n$2\r\nbb\r\n"); /* two at once */
    ck_assert_uint_eq(rig->pushes, 4);
    ck_assert_mem_eq(rig->pushed, "bb", 2);
    hear(PUSH "*-1\r\n"); /* all: FLUSHALL */
    ck_assert_uint_eq(rig->pushes, 5);
    ck_assert_uint_eq(rig->pushed_len, 0);
    ck_assert_uint_eq(rig->node.counters.notifications, 3);
}
END_TEST

/* Split at every byte; a reply of the other connection in between uses the same room for text. */
START_TEST(a_push_in_pieces)
{
    static const char push[] = PUSH "*1\r\n$12\r\nkey-of-a-lok\r\n";
    struct rl_claim *claim = rig_claim(rig, "aa");

    listen();
    for (size_t cut = 1; cut < sizeof push - 1; cut++) {
        unsigned before = rig->pushes;
        rig_receive_push(rig, push, cut);
        rig_request(rig, claim, 1, RL_VERB_GET);
        rig_reply(rig, "$20\r\nsomething-else-here!\r\n");
        rig->vote_count = 0;
        rig_receive_push(rig, push + cut, sizeof push - 1 - cut);
        ck_assert_uint_eq(rig->pushes, before + 1);
        ck_assert_uint_eq(rig->pushed_len, 12);
        ck_assert_mem_eq(rig->pushed, "key-of-a-lok", 12);
    }
    rig_done(rig);
    rl_claim_drop(claim);
    setup();
}
END_TEST

/* Servers and users that lack it: no error, no second try on this connection. */
START_TEST(refused)
{
    static const char *const greetings[] = {
        "+OK\r\n-ERR unknown subcommand\r\n",
        "+OK\r\n:77\r\n-NOPERM this user has no permissions to access the channel\r\n",
        "+OK\r\n$2\r\n77\r\n",
        "+OK\r\n:0\r\n",
        "+OK\r\n:77\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n",
        "+OK\r\n:77\r\n+OK\r\n",
    };

    rig_ready(rig);
    want();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    hear(greetings[_i]);
    ck_assert(!rig->push_open);
    ck_assert_uint_eq(rig->node.tracker.state, RL_TRACKER_REFUSED);
    rig_pass(rig, 60 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 1);
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_str_eq(rig->node.conn.text, "");
}
END_TEST

START_TEST(the_name_is_not_needed)
{
    rig_ready(rig);
    want();
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    hear("-ERR unknown subcommand\r\n:77\r\n" SUBSCRIBED);
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
}
END_TEST

START_TEST(tracking_refused)
{
    static const char *const replies[] = {
        "-ERR unknown subcommand or wrong number of arguments for 'tracking'\r\n-ERR no "
        "tracking\r\n",
        "+OK\r\n-NOPERM this user has no permissions to run the 'client|caching' command\r\n"};
    static const char *const texts[] = {"'tracking'", "'client|caching'"};
    static const int causes[] = {REDLOCK_CAUSE_ERROR_REPLY, REDLOCK_CAUSE_NOPERM};

    rig_ready(rig);
    want();
    subscribe();
    rig_reply(rig, replies[_i]);
    ck_assert_ptr_nonnull(strstr(rig->node.tracker.text, texts[_i]));
    ck_assert_int_eq(rig->node.tracker.cause, causes[_i]);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 0);
    ck_assert(!rig->push_open);
    ck_assert(rl_node_is_up(&rig->node));
    rig_lose(rig); /* the next one may be another server */
    rig_pass(rig, RL_MS);
    rig_connect(rig);
    rig_greet(rig);
    rig_pass(rig, RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
}
END_TEST

/* The first connection is made anew, however long that takes. */
static void again(void)
{
    unsigned opens = rig->opens;

    for (unsigned i = 0; i < 1000 && rig->opens == opens; i++)
        rig_pass(rig, 10 * RL_MS);
    rig_connect(rig);
    rig_greet(rig);
}

/* In whatever way it ends the first connection, or does not belong there. */
START_TEST(it_is_not_borne)
{
    static const char *const replies[] = {NULL, ":7\r\n", "*1\r\n:7\r\n", "+OKAY\r\n",
                                          "$2\r\nOK\r\n+OK\r\n"};
    rig_ready(rig);
    want();
    subscribe();
    if (replies[_i] != NULL)
        rig_reply(rig, replies[_i]);
    ck_assert(!rl_tracker_is_on(&rig->node));
    if (rl_node_is_up(&rig->node))
        rig_lose(rig);
    for (unsigned i = 0; i < 5; i++) {
        again();
        rig_pass(rig, 20 * RL_SECOND);
        ck_assert(rl_node_is_up(&rig->node));
        rig_lose(rig);
    }
    ck_assert_uint_eq(rig->push_opens, 1);
    again();
    rig_pass(rig, 30 * RL_SECOND);
    ck_assert_uint_eq(rig->push_opens, 2);
    subscribe();
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    rig_lose(rig); /* forgiven */
    again();
    rig_pass(rig, RL_MS);
    ck_assert_uint_eq(rig->push_opens, 3);
}
END_TEST

/* Sooner known to the server than to us. */
START_TEST(it_is_gone_already)
{
    rig_ready(rig);
    want();
    subscribe();
    rig_reply(rig, "-ERR The client ID you want redirect to does not exist\r\n");
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_ne(rig->node.tracker.state, RL_TRACKER_REFUSED);
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
}
END_TEST

START_TEST(refused_without_a_word)
{
    rig_ready(rig);
    want();
    subscribe();
    rig_reply(rig, "-\r\n");
    ck_assert_uint_eq(rig->node.tracker.state, RL_TRACKER_REFUSED);
    ck_assert_str_eq(rig->node.tracker.text, "unexpected reply");
    ck_assert_int_eq(rig->node.tracker.cause, REDLOCK_CAUSE_PROTOCOL);
}
END_TEST

START_TEST(it_is_lost)
{
    listen();
    unsigned changed = rig->changed;
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_drain(rig);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_gt(rig->changed, changed);
    ck_assert(rl_node_is_up(&rig->node));
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
    subscribe();
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 2); /* what changed in between, nobody told */
}
END_TEST

/* A server that takes the second connection and the question, and closes it, gets it ever more
 * rarely. One that has lasted is made again soon. */
START_TEST(it_does_not_last)
{
    const uint64_t minute_ns = 60 * RL_SECOND, end_ns = rig->now_ns + minute_ns;

    listen();
    while (rig->now_ns < end_ns && rig->push_opens < 1000) {
        rl_tracker_closed(&rig->node, rig->now_ns);
        rig_pass(rig, rig->node.tracker.due_ns - rig->now_ns);
        subscribe();
        rig_reply(rig, TRACKED);
        ck_assert(rl_tracker_is_on(&rig->node));
        rig_pass(rig, RL_MS);
    }
    /* After 50 ms, 100 ms and so on up to 5 s. */
    ck_assert_uint_le(rig->push_opens, 2 + 7 + minute_ns / (5 * RL_SECOND));
    rig_pass(rig, RL_SECOND);
    rl_tracker_closed(&rig->node, rig->now_ns);
    ck_assert_uint_le(rig->node.tracker.due_ns, rig->now_ns + 50 * RL_MS);
}
END_TEST

/* Ever more rarely, while nothing gets better. */
START_TEST(it_cannot_be_had)
{
    rig_ready(rig);
    want();
    for (unsigned i = 0; i < 20; i++) {
        unsigned opens = rig->push_opens;
        if (i % 2 == 0)
            rl_tracker_opened(&rig->node, false, rig->now_ns);
        else
            rig_pass(rig, 250 * RL_MS); /* no answer at all */
        rig_pass(rig, 5 * RL_SECOND);
        ck_assert_uint_gt(rig->push_opens, opens);
        ck_assert_uint_le(rig->push_opens, opens + 8);
        if (!rig->push_open)
            rig_pass(rig, 5 * RL_SECOND);
    }
    ck_assert(rl_node_is_up(&rig->node));
}
END_TEST

START_TEST(the_first_one_is_lost)
{
    listen();
    rig_lose(rig);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert(!rig->push_open);
    rig_pass(rig, RL_MS);
    rig_connect(rig);
    ck_assert_uint_eq(rig->push_opens, 1);
    rig_greet(rig);
    rig_pass(rig, RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
    subscribe();
    ck_assert_str_eq(rig_take_sent(rig), TRACK);
}
END_TEST

/* It ended before the first one has answered: that answer is not for its successor. */
START_TEST(lost_before_tracking_is_on)
{
    rig_ready(rig);
    want();
    subscribe();
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_reply(rig, TRACKED);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert_uint_eq(rig->pushes, 0);
}
END_TEST

START_TEST(the_old_answer_is_not_the_new_ones)
{
    rig_ready(rig);
    want();
    subscribe();
    rl_tracker_closed(&rig->node, rig->now_ns);
    rig_pass(rig, 20 * RL_MS);
    rig->node.tracker.due_ns = rig->now_ns;
    rl_node_tick(&rig->node, rig->now_ns);
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    hear("+OK\r\n:78\r\n" SUBSCRIBED);
    rig_reply(rig, TRACKED); /* to REDIRECT 77 */
    ck_assert(!rl_tracker_is_on(&rig->node));
    rig_reply(rig, TRACKED);
    ck_assert(rl_tracker_is_on(&rig->node));
}
END_TEST

/* Whatever else comes on it: it is left, and tried again. */
START_TEST(nonsense)
{
    static const char *const lines[] = {
        "+OK\r\n",
        ":1\r\n",
        "$3\r\nkey\r\n",
        "*2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
        "*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n*1\r\n$3\r\nkey\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\nx\r\n$1\r\ny\r\n$3\r\nkey\r\n",
        "*9\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n",
        PUSH "*1000000000\r\n",
        PUSH "*1\r\n$1000000\r\n",
        PUSH "*7\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n",
        "garbage\r\n",
    };

    listen();
    char big[2000];
    hear(lines[_i]);
    if (strstr(lines[_i], "$1000000\r\n") != NULL) {
        memset(big, 'x', sizeof big - 1);
        big[sizeof big - 1] = '\0';
        for (unsigned i = 0; i < 600 && rig->push_open; i++)
            hear(big);
    }
    ck_assert(!rig->push_open);
    ck_assert(!rl_tracker_is_on(&rig->node));
    ck_assert(rl_node_is_up(&rig->node));
    ck_assert_uint_eq(rig->pushes, 1);
    rig_pass(rig, 100 * RL_MS);
    ck_assert_uint_eq(rig->push_opens, 2);
}
END_TEST

START_TEST(late_events)
{
    rl_tracker_opened(&rig->node, true, rig->now_ns);
    hear(PUSH "*1\r\n$3\r\nkey\r\n");
    rl_tracker_flush(&rig->node, rig->now_ns);
    ck_assert_uint_eq(rig->pushes, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_tracker");
    TCase *tcase = tcase_create("tracker");
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, nobody_waits);
    tcase_add_test(tcase, not_asked_for);
    tcase_add_test(tcase, the_whole_greeting);
    tcase_add_test(tcase, with_a_password);
    tcase_add_test(tcase, a_narrow_way);
    tcase_add_test(tcase, keys_that_changed);
    tcase_add_test(tcase, a_push_in_pieces);
    tcase_add_loop_test(tcase, refused, 0, 6);
    tcase_add_test(tcase, the_name_is_not_needed);
    tcase_add_loop_test(tcase, tracking_refused, 0, 2);
    tcase_add_loop_test(tcase, it_is_not_borne, 0, 5);
    tcase_add_test(tcase, it_is_gone_already);
    tcase_add_test(tcase, refused_without_a_word);
    tcase_add_test(tcase, it_is_lost);
    tcase_add_test(tcase, it_does_not_last);
    tcase_add_test(tcase, it_cannot_be_had);
    tcase_add_test(tcase, the_first_one_is_lost);
    tcase_add_test(tcase, lost_before_tracking_is_on);
    tcase_add_test(tcase, the_old_answer_is_not_the_new_ones);
    tcase_add_loop_test(tcase, nonsense, 0, 11);
    tcase_add_test(tcase, late_events);
    return suite_run(suite);
}
