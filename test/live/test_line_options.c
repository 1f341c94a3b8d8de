/* SPDX-License-Identifier: MIT
 * The setting of lines: what a waiter writes to the servers with and without it.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open(live_config()) returns a client.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS() compares two
 * REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done()
 * stores the result of an asynchronous call in a struct outcome, and outcome_wait() waits for it
 * and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdlib.h>

/* What the clients of a case may use. */
struct setting {
    bool notifications, line;
};

/* Creates live.client with this setting. */
static void connect_with(struct setting setting)
{
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_notifications(config, setting.notifications), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_line(config, setting.line), REDLOCK_OK);
    live.client = live_open(config);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "CONFIG RESETSTAT"));
}

/* Returns how often the servers have executed the command since connect_with(). */
static uint64_t all_calls(const char *command)
{
    uint64_t calls = 0;

    for (unsigned i = 0; i < NODES; i++)
        calls += live_calls(i, command);
    return calls;
}

/* Starts to wait for "busy", which a foreign client holds. */
static void start_waiting(struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    *outcome = (struct outcome)OUTCOME;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    cluster_command_all(live.cluster, "SET busy another PX 600000");
    ck_assert_int_eq(redlock_acquire_start(live.client, "busy", &opts, note_done, outcome),
                     REDLOCK_OK);
}

/* Deletes the key of the foreign client, which lets the waiter win, and releases the lock. */
static void end_waiting(struct outcome *outcome)
{
    cluster_command_all(live.cluster, "DEL busy");
    CHECK_STATUS(outcome_wait(live.client, outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome->lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

/* By default a waiter joins the line of the resource, on one server. */
START_TEST(a_waiter_joins_a_line)
{
    static struct outcome outcome;

    live.client = live_open(live_config());
    start_waiting(&outcome);
    ck_assert(WAIT_UNTIL(live_nodes_with("busy{#q}") == 1, TIME_LIMIT_MS));
    end_waiting(&outcome);
}
END_TEST

/* Without the setting, or without notifications, no client writes or reads a line, and a waiter
 * gets the lock nevertheless. */
START_TEST(without_lines_no_other_key_is_used)
{
    static const struct setting settings[] = {{true, false}, {false, true}};
    static struct outcome outcome;

    connect_with(settings[_i]);
    start_waiting(&outcome);
    /* The denied attempt, then the probe of a waiter or the attempt of a poller. */
    ck_assert(WAIT_UNTIL(settings[_i].notifications ? all_calls("pttl") > 0
                                                    : all_calls("set") > 2ull * NODES,
                         TIME_LIMIT_MS));
    end_waiting(&outcome);
    ck_assert_uint_eq(all_calls("getex"), 0);
    ck_assert_uint_eq(all_calls("publish"), 0);
}
END_TEST

/* A configuration is required. */
START_TEST(the_setter_needs_a_configuration)
{
    ck_assert_int_eq(redlock_config_set_line(NULL, true), REDLOCK_EINVAL);
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_line_options");
    live_add(suite, "default", a_waiter_joins_a_line);
    live_add_each(suite, "off", without_lines_no_other_key_is_used, 2);
    live_add(suite, "setter", the_setter_needs_a_configuration);
    live_start_servers();
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
