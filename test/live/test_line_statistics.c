/* SPDX-License-Identifier: MIT
 * What the statistics count of lines: joins, turns, missed turns, and waits without a line.
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

static struct outcome outcomes[2];

/* Starts to wait for "busy", which a foreign client holds. */
static void start_waiting(redlock_t *client, struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    *outcome = (struct outcome)OUTCOME;
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    ck_assert_int_eq(redlock_acquire_start(client, "busy", &opts, note_done, outcome), REDLOCK_OK);
}

/* Sets the key "busy" on all servers as a foreign client. */
static void set_foreign_key(void)
{
    cluster_command_all(live.cluster, "SET busy another PX 600000");
}

/* Waits until the waiter has the lock, and releases it. */
static void end_waiting(redlock_t *client, struct outcome *outcome)
{
    CHECK_STATUS(outcome_wait(client, outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome->lock), REDLOCK_OK);
}

/* Ends both waits, that of the live client and that of `second`, whichever has the lock first. The
 * first waiter may miss its turn on a busy machine. */
static void end_both(redlock_t *second)
{
    ck_assert(LOOP_UNTIL(live.client, outcome_calls(&outcomes[0]) + outcome_calls(&outcomes[1]) > 0,
                         TIME_LIMIT_MS));
    bool swapped = outcome_calls(&outcomes[0]) == 0;
    end_waiting(swapped ? second : live.client, &outcomes[swapped ? 1 : 0]);
    end_waiting(swapped ? live.client : second, &outcomes[swapped ? 0 : 1]);
}

/* Has both clients wait for the lock, one after the other, until both have had it. */
static void wait_in_turn(redlock_t *second)
{
    const uint64_t first_joins = live_stats(live.client).line_joins,
                   second_joins = live_stats(second).line_joins;

    set_foreign_key();
    start_waiting(live.client, &outcomes[0]);
    ck_assert(WAIT_UNTIL(live_nodes_with("busy{#q}") == 1, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(live_stats(live.client).line_joins > first_joins, TIME_LIMIT_MS));
    start_waiting(second, &outcomes[1]);
    ck_assert(WAIT_UNTIL(live_stats(second).line_joins > second_joins, TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL busy");
    end_both(second);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}

/* Two waiters join, the second gets a turn from the first, and nothing else is counted. On a busy
 * machine the second may look before the message comes, or miss its turn: then they wait again. */
START_TEST(joins_and_turns_are_counted)
{
    live.client = live_open(live_config());
    redlock_t *second = live_open(live_config());
    uint64_t turns = 0;

    for (unsigned i = 0; i < 50 && turns == 0; i++) {
        wait_in_turn(second);
        turns = live_stats(second).line_turns + live_stats(live.client).line_turns;
    }
    ck_assert_uint_gt(turns, 0);
    ck_assert_uint_eq(live_stats(second).line_fallbacks, 0);
    ck_assert_uint_eq(live_stats(live.client).line_fallbacks, 0);
    ck_assert_int_eq(redlock_free(second), REDLOCK_OK);
}
END_TEST

/* A head that makes no request is removed by the waiter behind it, which counts that. */
START_TEST(a_missed_turn_is_counted)
{
    live.client = live_open(live_config());
    set_foreign_key();
    for (unsigned i = 0; i < NODES; i++)
        free(cluster_command(live.cluster, i, "SET busy{#q} %s EX 600",
                             "redlock-line\n99 3 h 250 1700000000001 ghost\n"));
    start_waiting(live.client, &outcomes[0]);
    ck_assert(WAIT_UNTIL(live_stats(live.client).line_missed > 0, TIME_LIMIT_MS));
    ck_assert_uint_eq(live_stats(live.client).line_joins, 1);
    cluster_command_all(live.cluster, "DEL busy");
    end_waiting(live.client, &outcomes[0]);
    cluster_command_all(live.cluster, "DEL busy{#q}");
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A user without the rights for lines counts one fallback for each acquisition that waits. A client
 * whose lines are off counts none. */
START_TEST(waits_without_a_line_are_counted)
{
    redlock_config_t *config = live_config();

    cluster_command_all(live.cluster, "ACL SETUSER waiter reset on >pw ~* &* +@all -getex");
    ck_assert_int_eq(redlock_config_set_auth(config, "waiter", "pw"), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_line(config, _i == 0), REDLOCK_OK);
    live.client = live_open(config);
    for (unsigned i = 1; i <= 2; i++) {
        set_foreign_key();
        start_waiting(live.client, &outcomes[0]);
        if (_i == 0)
            ck_assert(WAIT_UNTIL(live_stats(live.client).line_fallbacks == i, TIME_LIMIT_MS));
        else
            ck_assert(WAIT_UNTIL(live_stats(live.client).attempts > i, TIME_LIMIT_MS));
        cluster_command_all(live.cluster, "DEL busy");
        end_waiting(live.client, &outcomes[0]);
        ck_assert_uint_eq(live_stats(live.client).line_fallbacks, _i == 0 ? i : 0);
    }
    ck_assert_uint_eq(live_stats(live.client).line_turns, 0);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    live_disconnect();
    cluster_command_all(live.cluster, "ACL DELUSER waiter");
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("live_line_statistics");
    live_add(suite, "turns", joins_and_turns_are_counted);
    live_add(suite, "missed", a_missed_turn_is_counted);
    live_add_each(suite, "fallbacks", waits_without_a_line_are_counted, 2);
    live_start_servers();
    const int status = suite_run_nofork(suite);
    live_stop_servers();
    return status;
}
