/* SPDX-License-Identifier: MIT
 * Scenarios in which a client's clocks are wrong: a suspend, a virtual machine whose clocks all
 * stand still, a clock that is slewed. A preloaded object changes the clocks of the other process.
 */
#include "other_client.h"
#include "suite.h"

#define NS_PER_MS    INT64_C(1000000)
#define SHORT_TTL_MS 1500
#define SLOW_TTL_MS  3000

static void wait_gone(const char *key)
{
    ck_assert_msg(WAIT_UNTIL(live_nodes_with(key) == 0, TIME_LIMIT_MS),
                  "%u nodes still have the key", live_nodes_with(key));
}

/* After a suspend CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW show as if no time had passed. */
START_TEST(scenario_10_suspend)
{
    struct other *other = other_start(true, 0);
    ck_assert_msg(other_process_replies(other, "ok", "acquire nap 20000 5000"), "%s",
                  other->answer);
    ck_assert_msg(other_process_replies(other, "ok", "check nap"), "%s", other->answer);
    other_stop(other);
    clockshim_step(other->clocks, CLOCKSHIM_BOOTTIME, 25000 * NS_PER_MS);
    clockshim_step(other->clocks, CLOCKSHIM_REALTIME, 25000 * NS_PER_MS);
    other_continue(other);
    ck_assert_msg(other_process_replies(other, "REDLOCK_ELOST", "check nap"), "%s", other->answer);
    ck_assert(WAIT_UNTIL(live_nodes_with("nap") == 0, TIME_LIMIT_MS)); /* taken back */
    other_end(other);
}
END_TEST

/* The limit of all locks that end by a clock: nothing tells a client that all its clocks stood,
 * until somebody sets the time of day right. */
START_TEST(scenario_11_all_clocks_stand)
{
    struct other *other = other_start(true, 0);
    live_connect();
    ck_assert_msg(other_process_replies(other, "ok", "acquire frozen %d 5000", SHORT_TTL_MS), "%s",
                  other->answer);
    other_slow_down(other, -1000000);
    other_stop(other);
    wait_gone("frozen");
    redlock_lock_t *lock = live_lock("frozen", LONG_TTL_MS);
    other_slow_down(other, 0); /* they go on from where they stood */
    other_continue(other);
    ck_assert_msg(other_process_replies(other, "ok", "check frozen"), "%s", other->answer);
    clockshim_step(other->clocks, CLOCKSHIM_REALTIME, 2 * SHORT_TTL_MS * NS_PER_MS);
    ck_assert_msg(other_process_replies(other, "REDLOCK_ELOST", "check frozen"), "%s",
                  other->answer);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    other_end(other);
}
END_TEST

/* The first one's slewed clock is covered by the one that is not; the second one's are all within
 * the drift; the third one's are beyond it, which it takes for servers' clocks that jump. The
 * fourth one does not look at the servers' clocks: it believes its own. */
START_TEST(scenario_15_slow_clock)
{
    static const char *const names[] = {"slewed", "within", "beyond", "blind"};
    struct other *other[4];
    for (int i = 0; i < 4; i++) {
        live.heartbeat_ms = i < 3 ? 100 : 60000;
        other[i] = other_start(true, 0);
        ck_assert_msg(
            other_process_replies(other[i], "ok", "acquire %s %d 5000", names[i], SLOW_TTL_MS),
            "%s: %s", names[i], other[i]->answer);
    }
    clockshim_set_rate(other[0]->clocks, CLOCKSHIM_BOOTTIME, -100000);
    clockshim_set_rate(other[0]->clocks, CLOCKSHIM_MONOTONIC, -100000);
    clockshim_set_rate(other[0]->clocks, CLOCKSHIM_REALTIME, -100000);
    other_slow_down(other[1], -8000);
    other_slow_down(other[2], -300000);
    other_slow_down(other[3], -300000);
    for (int i = 0; i < 4; i++) {
        wait_gone(names[i]);
        ck_assert_msg(
            other_process_replies(other[i], i < 3 ? "REDLOCK_ELOST" : "ok", "check %s", names[i]),
            "%s: %s", names[i], other[i]->answer);
        other_end(other[i]);
    }
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
