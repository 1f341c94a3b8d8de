/* SPDX-License-Identifier: MIT
 * How a connection ends when its client closes while replies are still unread. If a TCP socket with
 * unread bytes is closed, the connection is reset, and a server that is about to write drops it
 * without reading the rest: the undo.
 *
 * Uses fake_redis.h: a fake Redis server on a thread of this process. The server executes
 * commands, logs them, and misbehaves where a rule (fake_redis_rule()) says so. */
#include "fake_redis.h"
#include "suite.h"
#include "wait.h"

#include <redlock/redlock.h>

#define TIME_LIMIT_MS 10000

/* Returns an embedded client with long time limits. */
static redlock_t *connect_embedded(const char *urls)
{
    redlock_config_t *config = NULL;
    redlock_t *client = NULL;
    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_add_nodes(config, urls), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_mode(config, REDLOCK_MODE_EMBEDDED), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_node_timeout_ms(config, TIME_LIMIT_MS), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_connect_timeout_ms(config, TIME_LIMIT_MS), REDLOCK_OK);
    ck_assert_int_eq(redlock_new(&client, config), REDLOCK_OK);
    redlock_config_free(config);
    return client;
}

/* Runs the client's loop once. Returns true if its first node is eligible. */
static bool is_eligible(redlock_t *client)
{
    redlock_node_stats_t stats;
    ck_assert_int_eq(redlock_process(client), REDLOCK_OK);
    ck_assert_int_eq(redlock_get_node_stats(client, 0, &stats, sizeof stats), REDLOCK_OK);
    return stats.eligible == 1;
}

/* Stores the status in the int at `userdata`. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    (void)rl;
    (void)lock;
    (void)report;
    *(int *)userdata = status;
}

START_TEST(unread_replies_do_not_reset_the_connection)
{
    const redlock_opts_t opts = redlock_opts(10000);
    struct fake_redis *fake = fake_redis_start(NULL);
    redlock_t *client = connect_embedded(fake_redis_url(fake));
    int status = REDLOCK_OK;
    ck_assert(WAIT_UNTIL(is_eligible(client), TIME_LIMIT_MS));
    fake_redis_rule(fake, (struct fake_rule){.command = "EVALSHA", .fault = FAKE_GATE});
    ck_assert_int_eq(redlock_acquire_start(client, "left", &opts, on_done, &status), REDLOCK_OK);
    ck_assert_int_eq(redlock_process(client), REDLOCK_OK); /* sends */
    /* The reply to the SET has been sent now. The client's descriptor does not show it, because a
     * timer may make it readable, too. The reply to the undo is held back, or it could arrive just
     * after the client's last read. */
    ck_assert(fake_redis_wait(fake, "SET left", 1, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
    ck_assert_int_eq(status, REDLOCK_ECLOSED);
    ck_assert(fake_redis_wait_connections(fake, 0, TIME_LIMIT_MS));
    char *log = fake_redis_log(fake);
    ck_assert_msg(fake_redis_count(fake, "(closed)") == 1, "%s", log);
    ck_assert_msg(fake_redis_keys(fake) == 0, "%s", log);
    free(log);
    fake_redis_stop(fake);
}
END_TEST

/* Runs the client's loop once. Returns true if the operation has ended. */
static bool is_done(redlock_t *client, const int *status)
{
    ck_assert_int_eq(redlock_process(client), REDLOCK_OK);
    return *status != 1;
}

/* A new process releases a lock. A majority has replied before one server has replied to the
 * greeting. The undo for that server waits for the greeting, and the shutdown waits for the undo.
 */
START_TEST(a_shutdown_waits_for_undos_after_a_greeting)
{
    struct fake_redis *fake[3];
    char urls[3 * 64] = "";
    for (size_t i = 0; i < 3; i++) {
        fake[i] = fake_redis_start(NULL);
        fake_redis_put(fake[i], "left", "somebodys-token", 10000);
        strcat(strcat(urls, " "), fake_redis_url(fake[i]));
    }
    fake_redis_rule(fake[2], (struct fake_rule){.command = "SCRIPT", .fault = FAKE_GATE});
    redlock_t *client = connect_embedded(urls);
    int released = 1, left = 1;
    ck_assert_int_eq(
        redlock_release_token_start(client, "left", "somebodys-token", NULL, on_done, &released),
        REDLOCK_OK);
    ck_assert(WAIT_UNTIL(is_done(client, &released), TIME_LIMIT_MS));
    ck_assert_int_eq(released, REDLOCK_OK);
    ck_assert_int_eq(redlock_shutdown_start(client, TIME_LIMIT_MS, on_done, &left), REDLOCK_OK);
    for (int i = 0; i < 3; i++)
        ck_assert(!is_done(client, &left));
    fake_redis_clear_rules(fake[2]);
    fake_redis_open_gate(fake[2]);
    ck_assert(WAIT_UNTIL(is_done(client, &left), TIME_LIMIT_MS));
    ck_assert_int_eq(left, REDLOCK_OK);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(fake_redis_keys(fake[i]), 0);
    ck_assert_int_eq(redlock_free(client), REDLOCK_OK);
    for (size_t i = 0; i < 3; i++)
        fake_redis_stop(fake[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("io_close_unread");
    TCase *group = tcase_create("leaving");
    tcase_add_test(group, unread_replies_do_not_reset_the_connection);
    tcase_add_test(group, a_shutdown_waits_for_undos_after_a_greeting);
    suite_add_tcase(suite, group);
    return suite_run_nofork(suite);
}
