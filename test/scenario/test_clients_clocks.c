/* SPDX-License-Identifier: MIT
 * Scenarios in which a client's clocks are wrong: a suspend, a virtual machine that is paused with
 * all its clocks, a clock that is slewed. A preloaded object changes the clocks of the other
 * process.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_connect() creates live.client
 * and waits until all nodes are eligible. live_lock() acquires a lock, which must be granted.
 * live_release() returns the status of one call and keeps its report. WAIT_UNTIL(condition, ms)
 * polls and returns false after the deadline. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. From other_client.h: other_start() starts a client in
 * another process, which can be stopped; other_replies() sends it a command and compares the first
 * word of its reply. */
#include "other_client.h"
#include "suite.h"

#define NS_PER_MS    INT64_C(1000000)
#define SHORT_TTL_MS 1500 /* TTL of the lock of scenario 11 */
#define SLOW_TTL_MS  3000 /* TTL of the locks of scenario 15 */

/* Waits until no node has the key. */
static void wait_gone(const char *key)
{
    ck_assert_msg(WAIT_UNTIL(live_nodes_with(key) == 0, TIME_LIMIT_MS),
                  "%u nodes still have the key", live_nodes_with(key));
}

/* A suspend longer than the TTL: CLOCK_BOOTTIME and CLOCK_REALTIME advance, the monotonic clocks do
 * not. The lock is lost when the client continues, and its keys are deleted. */
START_TEST(scenario_10_suspend)
{
    struct other *other = other_start(true, 0);
    ck_assert_msg(other_replies(other, "ok", "acquire nap 20000 5000"), "%s", other->reply);
    ck_assert_msg(other_replies(other, "ok", "check nap"), "%s", other->reply);
    other_stop(other);
    clockshim_step(other->clocks, CLOCKSHIM_BOOTTIME, 25000 * NS_PER_MS);
    clockshim_step(other->clocks, CLOCKSHIM_REALTIME, 25000 * NS_PER_MS);
    other_continue(other);
    ck_assert_msg(other_replies(other, "REDLOCK_ELOST", "check nap"), "%s", other->reply);
    ck_assert(WAIT_UNTIL(live_nodes_with("nap") == 0, TIME_LIMIT_MS));
    other_end(other);
}
END_TEST

/* All clocks of the holder are paused for longer than the TTL. Nothing shows it to the client: it
 * believes that it holds a lock that another client holds, until an operator corrects its wall
 * clock. No lock that ends by a clock can avoid this. */
START_TEST(scenario_11_all_clocks_stand)
{
    struct other *other = other_start(true, 0);
    live_connect();
    ck_assert_msg(other_replies(other, "ok", "acquire frozen %d 5000", SHORT_TTL_MS), "%s",
                  other->reply);
    other_set_rate(other, -1000000);
    other_stop(other);
    wait_gone("frozen");
    redlock_lock_t *lock = live_lock("frozen", LONG_TTL_MS);
    other_set_rate(other, 0); /* the clocks continue with the values at which they were paused */
    other_continue(other);
    ck_assert_msg(other_replies(other, "ok", "check frozen"), "%s", other->reply);
    clockshim_step(other->clocks, CLOCKSHIM_REALTIME, 2 * SHORT_TTL_MS * NS_PER_MS);
    ck_assert_msg(other_replies(other, "REDLOCK_ELOST", "check frozen"), "%s", other->reply);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    other_end(other);
}
END_TEST

/* Holders with slow clocks. Three of them find their lock lost before the keys are gone: one whose
 * CLOCK_MONOTONIC_RAW is right; one whose clocks are slow within the tolerated drift; one whose
 * clocks are slower, which takes the difference for steps of the servers' clocks. The fourth sends
 * no heartbeats and so never reads the servers' clocks: it still believes that it holds its lock.
 */
START_TEST(scenario_15_slow_clock)
{
    static const char *const names[] = {"slewed", "within", "beyond", "blind"};
    struct other *other[4];
    for (int i = 0; i < 4; i++) {
        live.heartbeat_ms = i < 3 ? 100 : 60000;
        other[i] = other_start(true, 0);
        ck_assert_msg(other_replies(other[i], "ok", "acquire %s %d 5000", names[i], SLOW_TTL_MS),
                      "%s: %s", names[i], other[i]->reply);
    }
    clockshim_set_rate(other[0]->clocks, CLOCKSHIM_BOOTTIME, -100000);
    clockshim_set_rate(other[0]->clocks, CLOCKSHIM_MONOTONIC, -100000);
    clockshim_set_rate(other[0]->clocks, CLOCKSHIM_REALTIME, -100000);
    other_set_rate(other[1], -8000);
    other_set_rate(other[2], -300000);
    other_set_rate(other[3], -300000);
    for (int i = 0; i < 4; i++) {
        wait_gone(names[i]);
        ck_assert_msg(other_replies(other[i], i < 3 ? "REDLOCK_ELOST" : "ok", "check %s", names[i]),
                      "%s: %s", names[i], other[i]->reply);
        other_end(other[i]);
    }
}
END_TEST

/* Runs all cases. Skips without a server program. */
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
