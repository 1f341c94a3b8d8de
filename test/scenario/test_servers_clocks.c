/* SPDX-License-Identifier: MIT
 * Scenarios in which servers' clocks are wrong.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the group of cases, and
 * `live`, the settings and the client of the running case. After each case all servers are made
 * healthy, and a key or descriptor that is left fails the case. live_connect() creates live.client
 * and waits until all nodes are eligible. live_lock() acquires a lock, which must be granted.
 * live_release() returns the status of one call and keeps its report. WAIT_UNTIL(condition, ms)
 * polls and returns false after the deadline. CHECK_STATUS() compares two REDLOCK_* codes. From
 * bare_majority.h: bare_majority_hold() acquires a lock on nodes 0 to 2 alone and starts another
 * client; server 2 is the VICTIM, whose key a case removes. bare_majority_check_free() checks that
 * a majority of servers would grant the lock then. bare_majority_check_refused() checks that the
 * other client does not get it because of a given cause for the victim. From other_client.h:
 * other_start() starts a client in another process, which can be stopped; other_replies() sends it
 * a command and compares the first word of its reply. */
#include "bare_majority.h"
#include "other_client.h"
#include "suite.h"

#define TTL_MS 5000 /* of the locks of scenario 14 */

/* Starts servers whose clocks a case can step or make faster. */
static void start_with_clocks(void)
{
    const struct cluster_opts opts = {.clocks = true};
    live_start_servers_with(&opts);
}

/* Sets the servers' clocks right at the end of a case. */
static void heal(void)
{
    for (unsigned i = 0; i < NODES; i++)
        cluster_clock_reset(live.cluster, i);
}

/* The servers' clocks are 8.3 % fast, as fast as chrony may slew: beyond the default drift, so that
 * keys expire early. A client with heartbeats notices and counts its lock as lost; one that allows
 * for 10 % drift counts it as lost in time, too. A client with neither still believes that it holds
 * its lock when another client has it. */
START_TEST(scenario_14_slewed_servers)
{
    live.heal = heal;
    live.max_ttl_ms = TTL_MS;
    live.heartbeat_ms = 100;
    struct other *watching = other_start(false, 0);
    live.heartbeat_ms = 60000;
    live_connect();
    struct other *usual = other_start(false, 0), *careful = other_start(false, 100000);
    ck_assert_msg(other_replies(watching, "ok", "acquire watching %d 5000", TTL_MS), "%s",
                  watching->reply);
    for (unsigned i = 0; i < NODES; i++)
        cluster_clock_rate(live.cluster, i, 83333);
    ck_assert_msg(other_replies(careful, "ok", "acquire careful %d 5000", TTL_MS), "%s",
                  careful->reply);
    ck_assert_msg(other_replies(usual, "ok", "acquire usual %d 5000", TTL_MS), "%s", usual->reply);
    ck_assert(
        WAIT_UNTIL(other_replies(watching, "REDLOCK_ELOST", "check watching"), TIME_LIMIT_MS));
    ck_assert_msg(live_nodes_with("usual") >= QUORUM,
                  "the loss was noticed after the keys expired");
    ck_assert(WAIT_UNTIL(live_nodes_with("careful") < QUORUM, TIME_LIMIT_MS));
    ck_assert_msg(other_replies(careful, "REDLOCK_ELOST", "check careful"), "%s", careful->reply);
    redlock_lock_t *lock = live_lock("usual", TTL_MS);
    ck_assert_msg(other_replies(usual, "ok", "check usual"), "this client noticed its loss: %s",
                  usual->reply);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    other_end(watching);
    other_end(usual);
    other_end(careful);
}
END_TEST

/* The victim's clock steps a minute forward: the key expires, and a majority is free. The other
 * client notices the step and does not count the victim's vote. */
START_TEST(scenario_12_step_forward)
{
    live.heal = heal;
    bare_majority_hold();
    cluster_clock_step(live.cluster, VICTIM, 60000);
    ck_assert(WAIT_UNTIL(live_nodes_with(NAME) < QUORUM, TIME_LIMIT_MS));
    bare_majority_check_free();
    bare_majority_check_refused(REDLOCK_CAUSE_CLOCK_STEP);
    bare_majority_end();
}
END_TEST

/* A holder that sends heartbeats notices the step. It does not count the victim any more, has no
 * majority left, and reports its lock as lost. */
START_TEST(scenario_12_holder_notices_step)
{
    live.heal = heal;
    bare_majority.holder_beats = true;
    bare_majority_hold();
    ck_assert_int_eq(redlock_lock_check(bare_majority.held, 0), REDLOCK_OK);
    cluster_clock_step(live.cluster, VICTIM, 60000);
    ck_assert(
        WAIT_UNTIL(redlock_lock_check(bare_majority.held, 0) == REDLOCK_ELOST, MAX_TTL_MS / 2));
    bare_majority_end();
}
END_TEST

/* The victim's clock steps an hour back: the key would stay for an hour. The holder keeps its lock,
 * and the next client deletes the key that has stayed too long. */
START_TEST(scenario_13_step_back)
{
    live.heal = heal;
    bare_majority_hold();
    cluster_clock_step(live.cluster, VICTIM, -3600000);
    /* Valkey 9 may execute the first command with the time that it read before the step. */
    ck_assert(
        WAIT_UNTIL(cluster_integer(live.cluster, VICTIM, "PTTL " NAME) > 3600000, TIME_LIMIT_MS));
    bare_majority_check_refused(REDLOCK_CAUSE_CLOCK_STEP);
    ck_assert_msg(WAIT_UNTIL(!live_has_key(VICTIM, NAME), TIME_LIMIT_MS),
                  "the key was not deleted");
    bare_majority_end();
}
END_TEST

/* Runs all cases. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("servers' clocks");
    live_add_with(suite, "12", scenario_12_step_forward, start_with_clocks);
    live_add_with(suite, "12", scenario_12_holder_notices_step, start_with_clocks);
    live_add_with(suite, "13", scenario_13_step_back, start_with_clocks);
    live_add_with(suite, "14", scenario_14_slewed_servers, start_with_clocks);
    return suite_run_nofork(suite);
}
