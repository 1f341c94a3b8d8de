/* SPDX-License-Identifier: MIT
 * Notifications from servers that send wrong ones, stop, refuse or send none. A waiter gets the
 * lock all the same, by its timer. No vote is lost, and the statistics show the state.
 *
 * Uses waiter.h: three fake servers (three_servers.h) on threads of this process and one threaded
 * client. fake_redis_rule() makes a server misbehave. waiter_begin() starts an acquisition that
 * waits for a key of another holder; waiter_release_key() deletes that key.
 * three_servers_acquire() and the like make one call and keep its report for the checks. */
#include "hostile_replies.h"
#include "suite.h"
#include "wait.h"
#include "waiter.h"

#include <stdlib.h>
#include <string.h>

#define PUSH "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"

/* ---- correct servers ---- */

START_TEST(a_correct_notification_wakes_the_waiter)
{
    waiter_connect_patient();
    waiter_begin();
    ck_assert(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS));
    uint64_t before = waiter_wakeups();
    waiter_release_key();
    waiter_check_acquired("honest");
    ck_assert_uint_gt(waiter_wakeups(), before);
    ck_assert_uint_gt(waiter_notifications_of_all(), 0);
}
END_TEST

/* ---- replies to the second greeting, and to CLIENT TRACKING on the first connection ---- */

static const struct {
    const char *command, *argument, *line;
    bool first_connection;
} steps[] = {
    {"CLIENT", "ID", "CLIENT ID", false},
    {"SUBSCRIBE", NULL, "SUBSCRIBE", false},
    {"CLIENT", "TRACKING", "CLIENT TRACKING", true},
    {"CLIENT", "CACHING", "CLIENT CACHING", true},
};
#define STEPS ((int)(sizeof steps / sizeof steps[0]))

/* Returns true if a server has got a command that begins with `line`. */
static bool any_server_got(const char *line)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (fake_redis_count(three_servers.fake[i], line) > 0)
            return true;
    }
    return false;
}

/* Checks that only a node that was refused has a printable text about it. */
static void check_texts(const char *name)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        redlock_node_stats_t stats = three_servers_stats(i);
        ck_assert_msg((stats.notify_state == REDLOCK_NOTIFY_REFUSED) ==
                          (stats.notify_text[0] != '\0'),
                      "%s:%s", name, waiter_states());
        for (const char *c = stats.notify_text; *c != '\0'; c++)
            ck_assert_msg(*c >= 0x20 && *c < 0x7f, "%s: byte %d%s", name, *c, waiter_states());
    }
}

/* All three servers send the reply. A protocol error on the first connection costs the votes for a
 * moment, and tracking is not tried again soon. */
START_TEST(invalid_replies_to_the_greeting_do_not_stop_the_waiter)
{
    const struct hostile_reply *hostile = &bad_replies[_i / STEPS];
    int step = _i % STEPS;
    char name[96];

    snprintf(name, sizeof name, "%s: %s", steps[step].line, hostile->name);
    waiter_connect_usual();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i], (struct fake_rule){.command = steps[step].command,
                                                                  .argument = steps[step].argument,
                                                                  .fault = hostile->fault,
                                                                  .bytes = hostile->bytes,
                                                                  .len = hostile->len});
    waiter_begin();
    ck_assert_msg(WAIT_UNTIL(any_server_got(steps[step].line), TIME_LIMIT_MS), "%s", name);
    uint64_t before = waiter_attempts();
    ck_assert_msg(WAIT_UNTIL(waiter_attempts() > before + 1, TIME_LIMIT_MS), "%s:%s", name,
                  waiter_states());
    ck_assert_msg(!waiter_any_notifies(), "%s:%s", name, waiter_states());
    if (hostile->causes == ERROR_REPLY)
        ck_assert_msg(WAIT_UNTIL(waiter_is_refused(), TIME_LIMIT_MS), "%s:%s", name,
                      waiter_states());
    check_texts(name);
    if (!steps[step].first_connection)
        ck_assert_msg(waiter_reconnects() == 0, "%s:%s", name, waiter_states());
    waiter_release_key();
    waiter_check_acquired(name);
    bool harmful = steps[step].first_connection && hostile->causes != ERROR_REPLY;
    three_servers_check_recovers(name);
    if (harmful) /* tracking is not tried again soon */
        return;
    for (size_t i = 0; i < THREE_SERVERS;
         i++) /* a refused command is tried again on a new connection */
        fake_redis_drop_connections(three_servers.fake[i]);
    waiter_check_notified_again(name);
}
END_TEST

/* The servers lack a command, or the user lacks a permission. */
START_TEST(refused_commands_do_not_stop_the_waiter)
{
    static const struct {
        int step;
        const char *error, *text;
    } table[] = {
        {0, "-ERR unknown command 'CLIENT', with args beginning with: 'ID'\r\n", "CLIENT"},
        {0, "-NOPERM this user has no permissions to run the 'client|id' command\r\n", "client|id"},
        {1, "-ERR unknown command 'SUBSCRIBE'\r\n", "SUBSCRIBE"},
        {1, "-NOPERM this user has no permissions to access one of the channels\r\n", "channels"},
        {2, "-ERR unknown subcommand or wrong number of arguments for 'TRACKING'\r\n", "TRACKING"},
        {2, "-NOPERM this user has no permissions to run the 'client|tracking' command\r\n",
         "client|tracking"},
        {3, "-NOPERM this user has no permissions to run the 'client|caching' command\r\n",
         "client|caching"},
    };
    const char *text = table[_i].text;

    waiter_connect_usual();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){.command = steps[table[_i].step].command,
                                           .argument = steps[table[_i].step].argument,
                                           .fault = FAKE_REPLY,
                                           .bytes = table[_i].error});
    waiter_begin();
    ck_assert_msg(WAIT_UNTIL(waiter_is_refused(), TIME_LIMIT_MS), "%s:%s", text, waiter_states());
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        redlock_node_stats_t stats = three_servers_stats(i);
        ck_assert_msg(stats.notify_state != REDLOCK_NOTIFY_REFUSED ||
                          strstr(stats.notify_text, text) != NULL,
                      "%s:%s", text, waiter_states());
        /* It is tried once on a connection. */
        ck_assert_uint_le(fake_redis_count(three_servers.fake[i], "SUBSCRIBE __redis__:"), 1);
        ck_assert_uint_le(fake_redis_count(three_servers.fake[i], "SUBSCRIBE redlock:q:"), 1);
    }
    waiter_release_key();
    waiter_check_acquired(text);
    ck_assert_msg(waiter_reconnects() == 0, "%s:%s", text, waiter_states());
    three_servers_behave();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_drop_connections(three_servers.fake[i]);
    waiter_check_notified_again(text);
}
END_TEST

/* The second connection ends between its greeting and the reply to CLIENT TRACKING. */
START_TEST(a_second_connection_lost_early_is_opened_anew)
{
    waiter_connect_patient();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(three_servers.fake[i],
                        (struct fake_rule){
                            .command = "CLIENT",
                            .argument = "TRACKING",
                            .times = 2,
                            .fault = FAKE_REPLY,
                            .bytes = "-ERR The client ID you want redirect to does not exist\r\n"});
    waiter_begin();
    ck_assert_msg(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS), "%s", waiter_states());
    ck_assert_uint_eq(waiter_reconnects(), 0);
    waiter_release_key();
    waiter_check_acquired("gone");
}
END_TEST

/* ---- on the open connection ---- */

/* Waits until a server will notify of the next change. Returns its index. */
static size_t wait_for_notifier(void)
{
    size_t node = THREE_SERVERS;
    ck_assert_msg(WAIT_UNTIL((node = waiter_notifier()) < THREE_SERVERS, TIME_LIMIT_MS), "%s",
                  waiter_states());
    return node;
}

/* Counts the subscriptions on all servers. */
static size_t count_subscriptions(void)
{
    size_t count = 0;
    for (size_t i = 0; i < THREE_SERVERS; i++)
        count += fake_redis_count(three_servers.fake[i], "SUBSCRIBE");
    return count;
}

static const struct hostile_reply pushes[] = {
    {"another word", FAKE_REPLY, "*3\r\n$8\r\npmessage\r\n$20\r\n__redis__:invalidate\r\n*-1\r\n",
     0, 0},
    {"another channel", FAKE_REPLY, "*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n*1\r\n$3\r\nkey\r\n", 0,
     0},
    {"tracking-redir-broken", FAKE_REPLY, "*2\r\n$21\r\ntracking-redir-broken\r\n:77\r\n", 0, 0},
    {"the same in RESP3", FAKE_REPLY, ">2\r\n$21\r\ntracking-redir-broken\r\n:77\r\n", 0, 0},
    {"unsubscribed", FAKE_REPLY,
     "*3\r\n$11\r\nunsubscribe\r\n$20\r\n__redis__:invalidate\r\n:0\r\n", 0, 0},
    {"an array without end", FAKE_REPLY, PUSH "*1000000000\r\n", 0, 0},
    {"an array in a nested array", FAKE_REPLY, PUSH "*1\r\n*1\r\n", 0, 0},
    {"a key of a gigabyte", FAKE_ENDLESS, PUSH "*1\r\n$1000000000\r\n", 0, 0},
    {"a key longer than any", FAKE_ENDLESS, PUSH "*1\r\n$100000\r\n", 0, 0},
    {"no keys at all", FAKE_REPLY, PUSH "*0\r\n", 0, 0},
    {"an empty message", FAKE_REPLY, "*0\r\n", 0, 0},
    {"two words", FAKE_REPLY, "*2\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n", 0, 0},
};
#define PUSHES ((int)(sizeof pushes / sizeof pushes[0]))

/* Sends invalid bytes on the second connection, or ends it. */
static void send_or_end(struct fake_redis *fake, const struct hostile_reply *hostile)
{
    size_t len = hostile->bytes == NULL ? 0
                 : hostile->len != 0    ? hostile->len
                                        : strlen(hostile->bytes);
    size_t more = hostile->fault == FAKE_ENDLESS ? 400000 : 0;

    if (len == 0) {
        fake_redis_end_notifying(fake, hostile->fault == FAKE_RESET);
        return;
    }
    char *bytes = malloc(len + more);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, hostile->bytes, len);
    memset(bytes + len, 'x', more);
    fake_redis_notify(fake, bytes, len + more);
    free(bytes);
}

/* Checks that the client opens the second connection anew, notices a change in between, and loses
 * no vote. */
static void check_hostile_notification(const struct hostile_reply *hostile)
{
    if (hostile->fault == FAKE_SILENCE ||
        strcmp(hostile->name, "bulk of a gigabyte that never comes") == 0)
        return; /* nothing invalid was sent yet */
    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_notifier(), before = count_subscriptions();
    send_or_end(three_servers.fake[node], hostile);
    ck_assert_msg(WAIT_UNTIL(count_subscriptions() > before, TIME_LIMIT_MS), "%s:%s", hostile->name,
                  waiter_states());
    ck_assert_msg(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS), "%s:%s", hostile->name,
                  waiter_states());
    ck_assert_msg(waiter_reconnects() == 0, "%s:%s", hostile->name, waiter_states());
    ck_assert_msg(!waiter_is_done(), "%s", hostile->name);
    waiter_release_key();
    waiter_check_acquired(hostile->name);
}

START_TEST(invalid_bytes_open_the_second_connection_anew)
{
    check_hostile_notification(&bad_replies[_i]);
}
END_TEST

START_TEST(invalid_notifications_open_the_second_connection_anew)
{
    check_hostile_notification(&pushes[_i]);
}
END_TEST

/* The key is deleted while no server notifies. The client probes for it when tracking works again.
 */
START_TEST(a_change_without_a_notification_is_noticed_later)
{
    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_notifier();
    fake_redis_rule(three_servers.fake[node],
                    (struct fake_rule){.command = "SUBSCRIBE", .times = 3, .fault = FAKE_DROP});
    fake_redis_end_notifying(three_servers.fake[node], false);
    waiter_release_key();
    waiter_check_acquired("in between");
}
END_TEST

/* A notification on the first connection is a reply without a request. */
START_TEST(a_notification_on_the_first_connection_ends_it)
{
    static const char *const lines[] = {
        ">2\r\n$21\r\ntracking-redir-broken\r\n:77\r\n",
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$8\r\nresource\r\n",
        PUSH "*1\r\n$8\r\nresource\r\n",
    };

    waiter_connect_usual();
    waiter_begin();
    size_t node = wait_for_notifier();
    fake_redis_push(three_servers.fake[node], lines[_i]);
    ck_assert_msg(WAIT_UNTIL(three_servers_stats(node).reconnects > 0, TIME_LIMIT_MS), "%s",
                  waiter_states());
    ck_assert_msg(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS), "%s", waiter_states());
    waiter_release_key();
    waiter_check_acquired("first connection");
}
END_TEST

/* Notifications of keys that the client does not track wake no waiter and cause no request. */
START_TEST(notifications_of_other_keys_are_ignored)
{
    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_notifier();
    uint64_t tried = waiter_attempts(), woken = waiter_wakeups(),
             told = three_servers_stats(node).notifications;
    size_t asked = fake_redis_count(three_servers.fake[node], "PTTL");
    for (unsigned i = 0; i < 100; i++) {
        static const char other[] =
            PUSH "*1\r\n$9\r\nresource2\r\n" PUSH "*2\r\n$5\r\nresou\r\n$3\r\nrce\r\n";
        fake_redis_notify(three_servers.fake[node], other, sizeof other - 1);
    }
    ck_assert(WAIT_UNTIL(three_servers_stats(node).notifications >= told + 200, TIME_LIMIT_MS));
    ck_assert_uint_eq(waiter_attempts(), tried);
    ck_assert_uint_eq(waiter_wakeups(), woken);
    ck_assert_uint_eq(fake_redis_count(three_servers.fake[node], "PTTL"), asked);
    ck_assert(!waiter_is_done());
    waiter_release_key();
    waiter_check_acquired("others");
}
END_TEST

/* Many notifications of a key that is still held cause one request at a time, and other locks work.
 */
START_TEST(a_flood_of_notifications_does_not_block_other_locks)
{
    enum { PUSHES_SENT = 20000 };
    static const char push[] = PUSH "*1\r\n$8\r\nresource\r\n";
    redlock_lock_t *other = NULL;
    redlock_opts_t opts = redlock_opts(TTL_MS);

    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_notifier();
    uint64_t told = three_servers_stats(node).notifications;
    char *flood = malloc(PUSHES_SENT * (sizeof push - 1));
    ck_assert_ptr_nonnull(flood);
    for (size_t i = 0; i < PUSHES_SENT; i++)
        memcpy(flood + i * (sizeof push - 1), push, sizeof push - 1);
    fake_redis_notify(three_servers.fake[node], flood, PUSHES_SENT * (sizeof push - 1));
    free(flood);
    ck_assert_int_eq(redlock_acquire(three_servers.client, "other", &opts, &other, NULL),
                     REDLOCK_OK);
    ck_assert_int_eq(redlock_release(other, NULL), REDLOCK_OK);
    redlock_lock_free(other);
    ck_assert_msg(WAIT_UNTIL(three_servers_stats(node).notifications >= told + PUSHES_SENT,
                             3 * TIME_LIMIT_MS),
                  "%s", waiter_states());
    /* Notifications during a request cause at most one more request. */
    ck_assert_uint_lt(fake_redis_count(three_servers.fake[node], "SET " WAITER_KEY),
                      PUSHES_SENT / 4);
    ck_assert(!waiter_is_done());
    (void)wait_for_notifier();
    ck_assert_uint_eq(waiter_reconnects(), 0);
    waiter_release_key();
    waiter_check_acquired("flood");
}
END_TEST

/* The server accepts CLIENT TRACKING and never notifies. */
START_TEST(the_timer_replaces_missing_notifications)
{
    waiter_connect_usual();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_set_profile(three_servers.fake[i],
                               &(struct fake_profile){.never_notifies = true,
                                                      .run_id = three_servers_stats(i).run_id});
    waiter_begin();
    (void)wait_for_notifier();
    uint64_t before = waiter_attempts();
    ck_assert_msg(WAIT_UNTIL(waiter_attempts() >= before + 2, TIME_LIMIT_MS), "%s",
                  waiter_states());
    waiter_release_key();
    waiter_check_acquired("silent");
    ck_assert_uint_eq(waiter_notifications_of_all(), 0);
}
END_TEST

/* All connections are lost, and the servers refuse new ones for a while. */
START_TEST(after_a_reconnection_the_waiter_is_notified)
{
    waiter_connect_usual();
    waiter_begin();
    size_t node = wait_for_notifier();
    fake_redis_listen(three_servers.fake[node], false);
    fake_redis_drop_connections(three_servers.fake[node]);
    ck_assert(WAIT_UNTIL(three_servers_stats(node).eligible == 0, TIME_LIMIT_MS));
    ck_assert(
        WAIT_UNTIL(three_servers_stats(node).notify_state == REDLOCK_NOTIFY_IDLE, TIME_LIMIT_MS));
    ck_assert_uint_ne(wait_for_notifier(), node);
    fake_redis_listen(three_servers.fake[node], true);
    ck_assert_msg(
        WAIT_UNTIL(three_servers_stats(node).notify_state == REDLOCK_NOTIFY_ON, TIME_LIMIT_MS),
        "%s", waiter_states());
    (void)wait_for_notifier(); /* this node or another one that has denied */
    waiter_release_key();
    waiter_check_acquired("back");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_notifications");
    TCase *greeting = three_servers_add_case(suite, "greeting"),
          *open = three_servers_add_case(suite, "open");

    tcase_add_test(greeting, a_correct_notification_wakes_the_waiter);
    tcase_add_loop_test(greeting, invalid_replies_to_the_greeting_do_not_stop_the_waiter, 0,
                        BAD_REPLIES * STEPS);
    tcase_add_loop_test(greeting, refused_commands_do_not_stop_the_waiter, 0, 7);
    tcase_add_test(greeting, a_second_connection_lost_early_is_opened_anew);
    tcase_add_loop_test(open, invalid_bytes_open_the_second_connection_anew, 0, BAD_REPLIES);
    tcase_add_loop_test(open, invalid_notifications_open_the_second_connection_anew, 0, PUSHES);
    tcase_add_test(open, a_change_without_a_notification_is_noticed_later);
    tcase_add_loop_test(open, a_notification_on_the_first_connection_ends_it, 0, 3);
    tcase_add_test(open, notifications_of_other_keys_are_ignored);
    tcase_add_test(open, a_flood_of_notifications_does_not_block_other_locks);
    tcase_add_test(open, the_timer_replaces_missing_notifications);
    tcase_add_test(open, after_a_reconnection_the_waiter_is_notified);
    return suite_run(suite);
}
