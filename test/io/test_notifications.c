/* SPDX-License-Identifier: MIT
 * Notifications from servers that send wrong ones, stop, refuse or send none. A waiter gets the
 * lock all the same, by its timer. No vote is lost, and the statistics show the state. */
#include "hostile_replies.h"
#include "suite.h"
#include "wait.h"
#include "waiter.h"

#include <stdlib.h>
#include <string.h>

#define PUSH "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"

/* ---- as it should be ---- */

START_TEST(an_honest_server)
{
    waiter_connect_patient();
    waiter_begin();
    ck_assert(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS));
    uint64_t before = waiter_wakeups();
    waiter_let_go();
    waiter_check_had("honest");
    ck_assert_uint_gt(waiter_wakeups(), before);
    ck_assert_uint_gt(waiter_notifications_of_all(), 0);
}
END_TEST

/* ---- answers to its greeting, and to CLIENT TRACKING on the first connection ---- */

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

static bool somebody_was_told(const char *line)
{
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        if (fake_redis_count(three_servers.fake[i], line) > 0)
            return true;
    }
    return false;
}

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

/* By all three servers. Who breaks the protocol on the first connection loses its votes for a
 * moment, and is not asked again soon. */
START_TEST(wrong_answers)
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
    ck_assert_msg(WAIT_UNTIL(somebody_was_told(steps[step].line), TIME_LIMIT_MS), "%s", name);
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
    waiter_let_go();
    waiter_check_had(name);
    bool harmful = steps[step].first_connection && hostile->causes != ERROR_REPLY;
    three_servers_check_recovers(name);
    if (harmful) /* not asked for again that soon */
        return;
    for (size_t i = 0; i < THREE_SERVERS;
         i++) /* what is refused is asked for on a new connection */
        fake_redis_drop_connections(three_servers.fake[i]);
    waiter_check_notified_again(name);
}
END_TEST

/* What servers and users say that lack it. */
START_TEST(refused)
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
        /* It is asked for once on a connection. */
        ck_assert_uint_le(fake_redis_count(three_servers.fake[i], "SUBSCRIBE"), 1);
    }
    waiter_let_go();
    waiter_check_had(text);
    ck_assert_msg(waiter_reconnects() == 0, "%s:%s", text, waiter_states());
    three_servers_behave();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_drop_connections(three_servers.fake[i]);
    waiter_check_notified_again(text);
}
END_TEST

/* It ended between its greeting and that answer: it is made again, the server can do it. */
START_TEST(the_redirect_is_gone)
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
    waiter_let_go();
    waiter_check_had("gone");
}
END_TEST

/* ---- on the open connection ---- */

/* Waits until a server will tell of the next change. Returns its index. */
static size_t wait_for_teller(void)
{
    size_t node = THREE_SERVERS;
    ck_assert_msg(WAIT_UNTIL((node = waiter_notifier()) < THREE_SERVERS, TIME_LIMIT_MS), "%s",
                  waiter_states());
    return node;
}

static size_t subscriptions(void)
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
    {"a key of a gigabyte", FAKE_ENDLESS, PUSH "*1\r\n$1000000000\r\n", 0, 0},
    {"a key longer than any", FAKE_ENDLESS, PUSH "*1\r\n$100000\r\n", 0, 0},
    {"no keys at all", FAKE_REPLY, PUSH "*0\r\n", 0, 0},
    {"an empty message", FAKE_REPLY, "*0\r\n", 0, 0},
    {"two words", FAKE_REPLY, "*2\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n", 0, 0},
};
#define PUSHES ((int)(sizeof pushes / sizeof pushes[0]))

/* Says something wrong on it, or ends it. */
static void spoil(struct fake_redis *fake, const struct hostile_reply *hostile)
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

/* It is left, made anew, and what changed in between is asked for. Votes know nothing of it. */
static void check_spoilt(const struct hostile_reply *hostile)
{
    if (hostile->fault == FAKE_SILENCE ||
        strcmp(hostile->name, "bulk of a gigabyte that never comes") == 0)
        return; /* nothing is wrong yet */
    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_teller(), before = subscriptions();
    spoil(three_servers.fake[node], hostile);
    ck_assert_msg(WAIT_UNTIL(subscriptions() > before, TIME_LIMIT_MS), "%s:%s", hostile->name,
                  waiter_states());
    ck_assert_msg(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS), "%s:%s", hostile->name,
                  waiter_states());
    ck_assert_msg(waiter_reconnects() == 0, "%s:%s", hostile->name, waiter_states());
    ck_assert_msg(!waiter_is_done(), "%s", hostile->name);
    waiter_let_go();
    waiter_check_had(hostile->name);
}

START_TEST(nonsense)
{
    check_spoilt(&bad_replies[_i]);
}
END_TEST

START_TEST(wrong_pushes)
{
    check_spoilt(&pushes[_i]);
}
END_TEST

/* The key goes while nobody is told: it is asked for when somebody is told again. */
START_TEST(a_change_in_between)
{
    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_teller();
    fake_redis_rule(three_servers.fake[node],
                    (struct fake_rule){.command = "SUBSCRIBE", .times = 3, .fault = FAKE_DROP});
    fake_redis_end_notifying(three_servers.fake[node], false);
    waiter_let_go();
    waiter_check_had("in between");
}
END_TEST

/* A push that comes on the first connection: an answer that nobody asked for. */
START_TEST(told_on_the_first_connection)
{
    static const char *const lines[] = {
        ">2\r\n$21\r\ntracking-redir-broken\r\n:77\r\n",
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$8\r\nresource\r\n",
        PUSH "*1\r\n$8\r\nresource\r\n",
    };

    waiter_connect_usual();
    waiter_begin();
    size_t node = wait_for_teller();
    fake_redis_push(three_servers.fake[node], lines[_i]);
    ck_assert_msg(WAIT_UNTIL(three_servers_stats(node).reconnects > 0, TIME_LIMIT_MS), "%s",
                  waiter_states());
    ck_assert_msg(WAIT_UNTIL(waiter_is_tracked(), TIME_LIMIT_MS), "%s", waiter_states());
    waiter_let_go();
    waiter_check_had("first connection");
}
END_TEST

/* Keys that nobody asked about. Nobody is woken, no server is asked. */
START_TEST(keys_of_others)
{
    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_teller();
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
    waiter_let_go();
    waiter_check_had("others");
}
END_TEST

/* Our key, over and over, although it is taken: one question at a time, and other locks go on. */
START_TEST(a_flood)
{
    enum { PUSHES_SENT = 20000 };
    static const char push[] = PUSH "*1\r\n$8\r\nresource\r\n";
    redlock_lock_t *other = NULL;
    redlock_opts_t opts = redlock_opts(TTL_MS);

    waiter_connect_patient();
    waiter_begin();
    size_t node = wait_for_teller();
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
    ck_assert_msg(
        WAIT_UNTIL(three_servers_stats(node).notifications >= told + PUSHES_SENT, TIME_LIMIT_MS),
        "%s", waiter_states());
    /* What comes while one is under way is one more question at most. */
    ck_assert_uint_lt(fake_redis_count(three_servers.fake[node], "SET " WAITER_KEY),
                      PUSHES_SENT / 4);
    ck_assert(!waiter_is_done());
    (void)wait_for_teller();
    ck_assert_uint_eq(waiter_reconnects(), 0);
    waiter_let_go();
    waiter_check_had("flood");
}
END_TEST

/* It said that it would tell. The timer asks. */
START_TEST(a_server_that_never_tells)
{
    waiter_connect_usual();
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_set_profile(three_servers.fake[i],
                               &(struct fake_profile){.never_notifies = true,
                                                      .run_id = three_servers_stats(i).run_id});
    waiter_begin();
    (void)wait_for_teller();
    uint64_t before = waiter_attempts();
    ck_assert_msg(WAIT_UNTIL(waiter_attempts() >= before + 2, TIME_LIMIT_MS), "%s",
                  waiter_states());
    waiter_let_go();
    waiter_check_had("silent");
    ck_assert_uint_eq(waiter_notifications_of_all(), 0);
}
END_TEST

/* All connections are lost, and for a while there are no new ones. */
START_TEST(servers_that_come_back)
{
    waiter_connect_usual();
    waiter_begin();
    size_t node = wait_for_teller();
    fake_redis_listen(three_servers.fake[node], false);
    fake_redis_drop_connections(three_servers.fake[node]);
    ck_assert(WAIT_UNTIL(three_servers_stats(node).eligible == 0, TIME_LIMIT_MS));
    ck_assert(
        WAIT_UNTIL(three_servers_stats(node).notify_state == REDLOCK_NOTIFY_IDLE, TIME_LIMIT_MS));
    ck_assert_uint_ne(wait_for_teller(), node);
    fake_redis_listen(three_servers.fake[node], true);
    ck_assert_msg(WAIT_UNTIL(three_servers_stats(node).notify_state == REDLOCK_NOTIFY_ON &&
                                 fake_redis_notifies(three_servers.fake[node], WAITER_KEY),
                             TIME_LIMIT_MS),
                  "%s", waiter_states());
    waiter_let_go();
    waiter_check_had("back");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_notifications");
    TCase *greeting = three_servers_add_case(suite, "greeting"),
          *open = three_servers_add_case(suite, "open");

    tcase_add_test(greeting, an_honest_server);
    tcase_add_loop_test(greeting, wrong_answers, 0, BAD_REPLIES * STEPS);
    tcase_add_loop_test(greeting, refused, 0, 7);
    tcase_add_test(greeting, the_redirect_is_gone);
    tcase_add_loop_test(open, nonsense, 0, BAD_REPLIES);
    tcase_add_loop_test(open, wrong_pushes, 0, PUSHES);
    tcase_add_test(open, a_change_in_between);
    tcase_add_loop_test(open, told_on_the_first_connection, 0, 3);
    tcase_add_test(open, keys_of_others);
    tcase_add_test(open, a_flood);
    tcase_add_test(open, a_server_that_never_tells);
    tcase_add_test(open, servers_that_come_back);
    return suite_run(suite);
}
