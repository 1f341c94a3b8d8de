/* SPDX-License-Identifier: MIT
 * Scenarios in which a client's clocks are wrong: a suspend, a guest whose clocks all stand, a
 * clock that is slewed. The clocks of the other process are moved by a preloaded object. */
#include "other.h"
#include "suite.h"

#define NS_PER_MS    INT64_C(1000000)
#define SHORT_TTL_MS 1000
#define SLOW_TTL_MS  3000

static void wait_gone(const char *key)
{
    ck_assert_msg(WAIT_UNTIL(live_nodes_with(key) == 0, PATIENCE_MS), "%u nodes still have the key",
                  live_nodes_with(key));
}

/* After a suspend CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW show as if no time had passed. */
START_TEST(scenario_10_suspend)
{
    struct other *other = other_start(true, 0);
    ck_assert_msg(other_answers(other, "ok", "acquire nap 20000 5000"), "%s", other->answer);
    ck_assert_msg(other_answers(other, "ok", "check nap"), "%s", other->answer);
    other_stop(other);
    clockshim_step(other->clocks, CLOCKSHIM_BOOTTIME, 25000 * NS_PER_MS);
    clockshim_step(other->clocks, CLOCKSHIM_REALTIME, 25000 * NS_PER_MS);
    other_continue(other);
    ck_assert_msg(other_answers(other, "REDLOCK_ELOST", "check nap"), "%s", other->answer);
    ck_assert(WAIT_UNTIL(live_nodes_with("nap") == 0, PATIENCE_MS)); /* taken back */
    other_end(other);
}
END_TEST

/* The limit of all locks that end by a clock: nothing tells a client that all its clocks stood. */
START_TEST(scenario_11_all_clocks_stand)
{
    struct other *other = other_start(true, 0);
    live_connect();
    ck_assert_msg(other_answers(other, "ok", "acquire frozen %d 5000", SHORT_TTL_MS), "%s",
                  other->answer);
    other_slow_down(other, -1000000);
    other_stop(other);
    wait_gone("frozen");
    redlock_lock_t *lock = live_lock("frozen", LONG_TTL_MS);
    other_slow_down(other, 0); /* they go on from where they stood */
    other_continue(other);
    ck_assert_msg(other_answers(other, "ok", "check frozen"), "%s", other->answer);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    other_end(other);
}
END_TEST

/* One clock slewed by 10 % is covered by the other; both slow beyond the drift are not; both slow
 * within it are. Heartbeats would show that the servers' clocks run away from ours: without them.
 */
START_TEST(scenario_15_slow_clock)
{
    live.heartbeat_ms = 60000;
    struct other *slewed = other_start(true, 0), *slow = other_start(true, 0),
                 *within = other_start(true, 0);
    clockshim_set_rate(slewed->clocks, CLOCKSHIM_BOOTTIME, -100000);
    clockshim_set_rate(slewed->clocks, CLOCKSHIM_MONOTONIC, -100000);
    clockshim_set_rate(slewed->clocks, CLOCKSHIM_REALTIME, -100000);
    other_slow_down(slow, -300000);
    other_slow_down(within, -8000);
    ck_assert_msg(other_answers(slewed, "ok", "acquire slewed %d 5000", SLOW_TTL_MS), "%s",
                  slewed->answer);
    ck_assert_msg(other_answers(within, "ok", "acquire within %d 5000", SLOW_TTL_MS), "%s",
                  within->answer);
    wait_gone("slewed");
    ck_assert_msg(other_answers(slewed, "REDLOCK_ELOST", "check slewed"), "%s", slewed->answer);
    wait_gone("within");
    ck_assert_msg(other_answers(within, "REDLOCK_ELOST", "check within"), "%s", within->answer);
    ck_assert_msg(other_answers(slow, "ok", "acquire slow %d 5000", SLOW_TTL_MS), "%s",
                  slow->answer);
    wait_gone("slow");
    ck_assert_msg(other_answers(slow, "ok", "check slow"), "not beyond the drift: %s",
                  slow->answer);
    other_end(slewed);
    other_end(slow);
    other_end(within);
}
END_TEST

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("clients' clocks");
    live_add_with(suite, "10", scenario_10_suspend, live_start_servers);
    live_add_with(suite, "11", scenario_11_all_clocks_stand, live_start_servers);
    live_add_with(suite, "15", scenario_15_slow_clock, live_start_servers);
    return suite_run_nofork(suite);
}
