/* SPDX-License-Identifier: MIT
 * Servers that repeat the login in their error reply: neither the password nor a part of such a
 * reply gets into the log, a report or the text of a node.
 *
 * Uses three_servers.h: three fake servers on threads of this process (three_servers.fake[]) and
 * one threaded client. fake_redis_rule() makes a server misbehave, fake_redis_count() counts
 * commands in its log. three_servers_acquire() and the like make one call and keep its report for
 * the checks. */
#include "suite.h"
#include "three_servers.h"
#include "wait.h"

#include <stdio.h>
#include <string.h>

#define SECRET "tr0ub4dor-and-3"
/* Longer than the part of a word that a server repeats. */
#define LONG_SECRET                                                                                \
    SECRET "0123456789012345678901234567890123456789012345678901234567890123456789"                \
           "0123456789012345678901234567890123456789012345678901234567890123456789"

/* Error replies; "%s" stands for the repeated words. */
static const char *const ANSWERS[] = {
    "-ERR unknown command 'AUTH', with args beginning with: %s\r\n",   /* Redis 7, AUTH renamed */
    "-ERR unknown command `AUTH`, with args beginning with: %s, \r\n", /* Redis 5, 6 */
    "-ERR AUTH %s is not supported by this proxy\r\n",
    "-WRONGPASS invalid username-password pair %s or user is disabled.\r\n",
    "-NOAUTH %s is not the password\r\n",
    "-%s\r\n",
    "-LOADING %s\r\n",
};

static const struct {
    const char *login, *repeated;
} LOGINS[] = {
    {":" SECRET "@", "'" SECRET "'"},
    {"app:" SECRET "@", "'app' '" SECRET "'"},
    {":" LONG_SECRET "@", "'" SECRET "01234567890123456789'"},
    {"app:" LONG_SECRET "@", "'app' '" SECRET "01234567890123456789'"},
};

#define LOGINS_COUNT  (sizeof LOGINS / sizeof LOGINS[0])
#define ANSWERS_COUNT (sizeof ANSWERS / sizeof ANSWERS[0])

/* Checks that the text does not contain the password. */
static void check_no_secret(const char *where, const char *text)
{
    ck_assert_msg(strstr(text, "tr0ub4dor") == NULL, "the password is in the %s: %s", where, text);
}

/* Waits until the client knows that the server has refused the login. */
static void wait_until_refused(size_t server)
{
    ck_assert(fake_redis_wait(three_servers.fake[server], "AUTH ", 1, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(three_servers_stats(server).cause == REDLOCK_CAUSE_AUTH, TIME_LIMIT_MS));
}

START_TEST(no_text_shows_a_repeated_password)
{
    char answer[512];
    redlock_lock_t *lock = NULL;
    size_t which = (size_t)_i / LOGINS_COUNT, login = (size_t)_i % LOGINS_COUNT;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(answer, sizeof answer, ANSWERS[which], LOGINS[login].repeated);
#pragma GCC diagnostic pop
    for (size_t i = 0; i < THREE_SERVERS; i++)
        fake_redis_rule(
            three_servers.fake[i],
            (struct fake_rule){.command = "AUTH", .fault = FAKE_REPLY, .bytes = answer});
    three_servers_connect_as(LOGINS[login].login, NULL);
    for (size_t i = 0; i < THREE_SERVERS; i++)
        wait_until_refused(i); /* otherwise a server might still be greeted at the end */
    int status = three_servers_acquire(&lock, wait_scaled_ms(50));
    ck_assert_msg(status == REDLOCK_EAUTH, "%s%s", redlock_strerror(status), three_servers_text());
    check_no_secret("report", three_servers_text());
    for (size_t i = 0; i < THREE_SERVERS; i++) {
        check_no_secret("text of the node", three_servers_stats(i).text);
        check_no_secret("name of the node", three_servers_stats(i).node);
        ck_assert_uint_gt(strlen(three_servers_stats(i).text), 0);
    }
    /* It was logged, by another thread. */
    ck_assert(WAIT_UNTIL(strstr(three_servers_log(), three_servers_stats(0).text) != NULL,
                         TIME_LIMIT_MS));
    check_no_secret("log", three_servers_log());
}
END_TEST

static Suite *secrets_suite(void)
{
    Suite *suite = suite_create("secrets");
    TCase *tcase = tcase_create("repeated");
    tcase_add_checked_fixture(tcase, three_servers_setup, three_servers_teardown);
    tcase_add_loop_test(tcase, no_text_shows_a_repeated_password, 0,
                        (int)(LOGINS_COUNT * ANSWERS_COUNT));
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return suite_run(secrets_suite());
}
