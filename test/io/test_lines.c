/* SPDX-License-Identifier: MIT
 * A waiter in the line of its resource, on servers that reply wrongly to requests to the line, send
 * wrong turns, or refuse its channel. The waiter gets the lock all the same.
 *
 * Uses waiter.h: three fake servers (three_servers.h) on threads of this process and one threaded
 * client. fake_redis_rule() makes a server misbehave. waiter_begin() starts an acquisition that
 * waits for a key of another holder; waiter_release_key() deletes that key. */
#include "core/scripts.h"
#include "hostile_replies.h"
#include "node/codec.h"
#include "suite.h"
#include "wait.h"
#include "waiter.h"

#include <stdlib.h>
#include <string.h>

#define CHANNEL     "redlock:q:" /* what precedes the id of the waiter */
#define MESSAGE     "*3\r\n$7\r\nmessage\r\n"
#define TURNS_SENT  20000
#define STRANGER_AT "$12\r\nredlock:q:77\r\n" /* the channel of another waiter */

/* Lets all servers keep lines, and creates the client for these causes of failures. */
static void connect_for(unsigned causes)
{
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_set_profile(three_servers.fake[i], &(struct fake_profile){.keeps_lines = true});
    if (causes == 0)
        three_servers_connect();
    else
        three_servers_connect_for(causes);
    ck_assert(three_servers_wait_all_vote());
}

/* Returns the number of waiters in the lines of all servers. */
static size_t waiters(void)
{
    size_t count = 0;

    for (size_t i = 0; i < THREE_SERVERS; i++)
        count += fake_redis_waiters(three_servers.fake[i]);
    return count;
}

/* Returns the number of lines in the logs of all servers that begin with these words. */
static size_t count_commands(const char *words)
{
    size_t count = 0;

    for (size_t i = 0; i < THREE_SERVERS; i++)
        count += fake_redis_count(three_servers.fake[i], words);
    return count;
}

/* Returns the index of a server other than `except` that has the waiter in its line and will notify
 * it of a change, or THREE_SERVERS if there is none. Other servers may notify the waiter, too:
 * after a while without a notification, a head asks a second one. */
static size_t notifier_in_line(size_t except)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (i != except && fake_redis_waiters(three_servers.fake[i]) == 1 &&
            three_servers_stats(i).notify_state == REDLOCK_NOTIFY_ON &&
            fake_redis_notifies(three_servers.fake[i], WAITER_KEY))
            return i;
    }
    return THREE_SERVERS;
}

/* Waits until the waiter is the head of a line of a server other than `except`, and will be
 * notified by it. Returns the index of that server. */
static size_t wait_for_head_except(size_t except)
{
    size_t node = THREE_SERVERS;

    ck_assert_msg(WAIT_UNTIL((node = notifier_in_line(except)) < THREE_SERVERS, TIME_LIMIT_MS),
                  "%zu waiters%s", waiters(), waiter_states());
    return node;
}

/* Waits until the waiter is the head of a line, and will be notified by its server. Returns the
 * index of that server. */
static size_t wait_for_head(void)
{
    return wait_for_head_except(THREE_SERVERS);
}

/* Deletes the other holder's key. Checks that the waiter gets the lock, and that no line is left.
 */
static void check_acquired(const char *name)
{
    waiter_release_key();
    waiter_check_acquired(name);
    ck_assert_msg(WAIT_UNTIL(waiters() == 0, TIME_LIMIT_MS), "%s: %zu waiters are left", name,
                  waiters());
}

START_TEST(a_head_is_notified_and_leaves)
{
    connect_for(0);
    waiter_begin();
    (void)wait_for_head();
    uint64_t before = waiter_notifications_of_all();
    check_acquired("honest");
    ck_assert_uint_gt(waiter_notifications_of_all(), before);
    ck_assert_uint_eq(waiter_reconnects(), 0);
}
END_TEST

/* The servers lose the script. */
START_TEST(a_line_needs_no_loaded_script)
{
    connect_for(0);
    for (unsigned i = 0; i < 3; i++) {
        for (size_t k = 0; k < THREE_SERVERS; k++)
            fake_redis_forget_scripts(three_servers.fake[k]);
        waiter_begin();
        (void)wait_for_head();
        check_acquired("without the script");
    }
    ck_assert_uint_ge(count_commands("EVAL line"), 3);
    ck_assert_uint_eq(waiter_reconnects(), 0);
}
END_TEST

/* All servers send the reply to all requests to a line. The request to leave the line breaks the
 * connections, too, and may so fail the release, which is done later then. */
START_TEST(invalid_replies_of_a_line_do_not_stop_the_waiter)
{
    const struct hostile_reply *hostile = &bad_replies[_i];

    connect_for(hostile->causes);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.command = "EVALSHA",
                                                                  .argument = rl_script_line.sha,
                                                                  .fault = hostile->fault,
                                                                  .bytes = hostile->bytes,
                                                                  .len = hostile->len});
    waiter_begin();
    ck_assert_msg(WAIT_UNTIL(count_commands("EVALSHA line") > 0, TIME_LIMIT_MS), "%s",
                  hostile->name);
    ck_assert_msg(!waiter_is_done(), "%s", hostile->name);
    waiter_release_key();
    (void)waiter_check_granted(hostile->name);
    three_servers_check_recovers(hostile->name);
}
END_TEST

/* Replies that a server could send, but that contradict themselves or say that the key is another
 * one. The connection of a server that sends nonsense is closed; an error is none. */
START_TEST(malformed_replies_of_a_line_do_not_stop_the_waiter)
{
    static const struct {
        const char *bytes;
        bool closes;
    } replies[] = {
        {"$1\r\nX\r\n", false},
        {"-NOPERM ACL failure in script: User x has no permissions to run the 'getex' command\r\n",
         false},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", false},
        {"-ERR Unknown Redis command called from script script: 1f\r\n", false},
        {"$0\r\n\r\n", true},
        {"$8\r\n2 w 1 -1\r\n", true},
        {"$8\r\n1 x 1 -1\r\n", true},
        {"$32\r\n1 h 1 99999999999999999999 77 0 9\r\n", true},
        {"$9\r\n1 w 1 -1 \r\n", true},
    };
    connect_for(0);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.command = "EVALSHA",
                                                                  .argument = rl_script_line.sha,
                                                                  .fault = FAKE_REPLY,
                                                                  .bytes = replies[_i].bytes});
    waiter_begin();
    ck_assert(WAIT_UNTIL(count_commands("EVALSHA line") > 0, TIME_LIMIT_MS));
    uint64_t before = waiter_attempts();
    ck_assert_msg(WAIT_UNTIL(waiter_attempts() > before + 1, TIME_LIMIT_MS), "%s%s",
                  replies[_i].bytes, waiter_states());
    ck_assert_msg((waiter_reconnects() > 0) == replies[_i].closes, "%s%s", replies[_i].bytes,
                  waiter_states());
    waiter_release_key();
    int status = waiter_check_granted(replies[_i].bytes);
    ck_assert_msg(status == REDLOCK_OK || replies[_i].closes, "%s%s", replies[_i].bytes,
                  waiter_states());
    three_servers_check_recovers(replies[_i].bytes);
}
END_TEST

/* The user may subscribe to notifications of keys, but not to the channel of turns. The waiter
 * cannot be a head. */
START_TEST(a_refused_channel_does_not_stop_the_waiter)
{
    connect_for(0);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){
                            .command = "SUBSCRIBE",
                            .skip = 1,
                            .fault = FAKE_REPLY,
                            .bytes = "-NOPERM no permissions to access one of the channels\r\n"});
    waiter_begin();
    ck_assert(WAIT_UNTIL(count_commands("SUBSCRIBE " CHANNEL) > 0, TIME_LIMIT_MS));
    ck_assert_msg(WAIT_UNTIL(waiter_any_notifies(), TIME_LIMIT_MS), "%s", waiter_states());
    ck_assert_msg(!waiter_is_refused(), "%s", waiter_states());
    check_acquired("refused channel");
    ck_assert_uint_eq(waiter_reconnects(), 0);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        ck_assert_uint_le(fake_redis_count(three_servers.fake[i], "SUBSCRIBE " CHANNEL), 1);
}
END_TEST

/* Any client with the right can publish on the channel. A text that is longer than the client reads
 * closes the connection, as all that no server would send. */
START_TEST(strange_turns_do_not_stop_the_waiter)
{
    static const struct {
        const char *bytes;
        bool closes;
    } turns[] = {
        {MESSAGE STRANGER_AT "$5\r\nother\r\n", false},
        {MESSAGE STRANGER_AT "$0\r\n\r\n", false},
        {MESSAGE STRANGER_AT "$-1\r\n", false},
        {MESSAGE STRANGER_AT "*2\r\n$1\r\na\r\n$1\r\nb\r\n", true},
        {MESSAGE STRANGER_AT "$1000000000\r\n", true},
        {MESSAGE "$10\r\nredlock:q:\r\n$8\r\nresource\r\n", true},
        {MESSAGE "$12\r\nredlock:r:77\r\n$8\r\nresource\r\n", true},
    };
    static char filler[RL_UNPARSED_MAX + 1];
    connect_for(0);
    waiter_begin();
    size_t node = wait_for_head();
    size_t before = fake_redis_count(three_servers.fake[node], "SUBSCRIBE " CHANNEL);
    uint64_t told = waiter_notifications_of_all();
    memset(filler, 'x', sizeof filler);
    fake_redis_notify(three_servers.fake[node], turns[_i].bytes, strlen(turns[_i].bytes));
    if (strstr(turns[_i].bytes, "$1000000000") != NULL)
        fake_redis_notify(three_servers.fake[node], filler, sizeof filler);
    if (turns[_i].closes)
        ck_assert(
            WAIT_UNTIL(fake_redis_count(three_servers.fake[node], "SUBSCRIBE " CHANNEL) > before,
                       TIME_LIMIT_MS));
    else
        ck_assert(WAIT_UNTIL(waiter_notifications_of_all() > told, TIME_LIMIT_MS));
    ck_assert(!waiter_is_done());
    (void)wait_for_head();
    ck_assert_uint_eq(waiter_reconnects(), 0);
    if (!turns[_i].closes)
        ck_assert_uint_eq(fake_redis_count(three_servers.fake[node], "SUBSCRIBE " CHANNEL), before);
    check_acquired("strange turn");
}
END_TEST

/* Many turns while the lock is held cause one request at a time, and other locks work. */
START_TEST(a_flood_of_turns_does_not_block_other_locks)
{
    static const char turn[] = MESSAGE STRANGER_AT "$8\r\nresource\r\n";
    redlock_lock_t *other = NULL;
    redlock_opts_t opts = redlock_opts(TTL_MS);

    connect_for(0);
    waiter_begin();
    size_t node = wait_for_head();
    uint64_t told = waiter_notifications_of_all();
    size_t requested = count_commands("EVALSHA line");
    char *flood = malloc(TURNS_SENT * (sizeof turn - 1));
    ck_assert_ptr_nonnull(flood);
    for (size_t i = 0; i < TURNS_SENT; i++)
        memcpy(flood + i * (sizeof turn - 1), turn, sizeof turn - 1);
    fake_redis_notify(three_servers.fake[node], flood, TURNS_SENT * (sizeof turn - 1));
    free(flood);
    ck_assert_int_eq(redlock_acquire(three_servers.client, "other", &opts, &other, NULL),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_release(other, NULL), REDLOCK_OK);
    redlock_lock_free(other);
    ck_assert(WAIT_UNTIL(waiter_notifications_of_all() >= told + TURNS_SENT, TIME_LIMIT_MS));
    ck_assert_uint_lt(count_commands("EVALSHA line") - requested, TURNS_SENT / 4);
    ck_assert(!waiter_is_done());
    check_acquired("flood");
    ck_assert_uint_eq(waiter_reconnects(), 0);
}
END_TEST

/* The server with the line ends all connections and refuses new ones: the waiter goes on in the
 * line of another server, and gets the lock. */
START_TEST(a_waiter_goes_on_in_another_line)
{
    connect_for(0);
    waiter_begin();
    size_t node = wait_for_head();
    fake_redis_listen(three_servers.fake[node], false);
    fake_redis_drop_connections(three_servers.fake[node]);
    size_t next = wait_for_head_except(node);
    waiter_release_key();
    ck_assert(WAIT_UNTIL(waiter_is_done(), TIME_LIMIT_MS));
    fake_redis_listen(three_servers.fake[node], true);
    waiter_check_acquired("another line");
    ck_assert(WAIT_UNTIL(fake_redis_waiters(three_servers.fake[next]) == 0, TIME_LIMIT_MS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_lines");
    TCase *tcase = three_servers_add_case(suite, "lines");

    tcase_add_test(tcase, a_head_is_notified_and_leaves);
    tcase_add_test(tcase, a_line_needs_no_loaded_script);
    tcase_add_loop_test(tcase, invalid_replies_of_a_line_do_not_stop_the_waiter, 0, BAD_REPLIES);
    tcase_add_loop_test(tcase, malformed_replies_of_a_line_do_not_stop_the_waiter, 0, 9);
    tcase_add_test(tcase, a_refused_channel_does_not_stop_the_waiter);
    tcase_add_loop_test(tcase, strange_turns_do_not_stop_the_waiter, 0, 7);
    tcase_add_test(tcase, a_flood_of_turns_does_not_block_other_locks);
    tcase_add_test(tcase, a_waiter_goes_on_in_another_line);
    return suite_run(suite);
}
