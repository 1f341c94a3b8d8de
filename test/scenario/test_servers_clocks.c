/* SPDX-License-Identifier: MIT
 * Scenarios in which servers' clocks are wrong. */
#include "bare_majority.h"
#include "other_client.h"
#include "suite.h"

#define TTL_MS 5000

static void start_with_clocks(void)
{
    const struct cluster_opts opts = {.clocks = true};
    live_start_servers_with(&opts);
}

static void heal(void)
{
    for (unsigned i = 0; i < NODES; i++)
        cluster_clock_reset(live.cluster, i);
}

/* Servers 8.3 % fast, as chrony may slew: beyond the drift that is allowed for unless configured.
 * Who asks them for their time sees it and gives up; who does not is in too long. */
START_TEST(scenario_14_slewed_servers)
{
    live.heal = heal;
    live.max_ttl_ms = TTL_MS;
    live.heartbeat_ms = 100;
    struct other *watching = other_start(false, 0);
    live.heartbeat_ms = 60000;
    live_connect();
    struct other *usual = other_start(false, 0), *careful = other_start(false, 100000);
    ck_assert_msg(other_process_replies(watching, "ok", "acquire watching %d 5000", TTL_MS), "%s",
                  watching->answer);
    for (unsigned i = 0; i < NODES; i++)
        cluster_clock_rate(live.cluster, i, 83333);
    ck_assert_msg(other_process_replies(careful, "ok", "acquire careful %d 5000", TTL_MS), "%s",
                  careful->answer);
    ck_assert_msg(other_process_replies(usual, "ok", "acquire usual %d 5000", TTL_MS), "%s",
                  usual->answer);
    ck_assert(WAIT_UNTIL(other_process_replies(watching, "REDLOCK_ELOST", "check watching"),
                         TIME_LIMIT_MS));
    ck_assert_msg(live_nodes_with("usual") >= QUORUM, "not before the keys are gone");
    ck_assert(WAIT_UNTIL(live_nodes_with("careful") < QUORUM, TIME_LIMIT_MS));
    ck_assert_msg(other_process_replies(careful, "REDLOCK_ELOST", "check careful"), "%s",
                  careful->answer);
    redlock_lock_t *lock = live_lock("usual", TTL_MS);
    ck_assert_msg(other_process_replies(usual, "ok", "check usual"), "two at once do not show: %s",
                  usual->answer);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    other_end(watching);
    other_end(usual);
    other_end(careful);
}
END_TEST

/* A minute ahead: the key is over, and a majority is free. */
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

/* A holder that looks does not count on that server any more: it has no majority. */
START_TEST(scenario_12_the_holder_is_told)
{
    live.heal = heal;
    bare_majority.holder_looks = true;
    bare_majority_hold();
    ck_assert_int_eq(redlock_lock_check(bare_majority.held, 0), REDLOCK_OK);
    cluster_clock_step(live.cluster, VICTIM, 60000);
    ck_assert(
        WAIT_UNTIL(redlock_lock_check(bare_majority.held, 0) == REDLOCK_ELOST, MAX_TTL_MS / 2));
    bare_majority_end();
}
END_TEST

/* An hour back: the key stays for an hour, unless somebody deletes it; nobody loses a lock. */
START_TEST(scenario_13_step_back)
{
    live.heal = heal;
    bare_majority_hold();
    cluster_clock_step(live.cluster, VICTIM, -3600000);
    ck_assert_int_gt(cluster_integer(live.cluster, VICTIM, "PTTL " NAME), 3600000);
    bare_majority_check_refused(REDLOCK_CAUSE_CLOCK_STEP);
    ck_assert_msg(WAIT_UNTIL(!live_has_key(VICTIM, NAME), TIME_LIMIT_MS), "the key is stuck");
    bare_majority_end();
}
END_TEST

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    Suite *suite = suite_create("servers' clocks");
    live_add_with(suite, "12", scenario_12_step_forward, start_with_clocks);
    live_add_with(suite, "12", scenario_12_the_holder_is_told, start_with_clocks);
    live_add_with(suite, "13", scenario_13_step_back, start_with_clocks);
    live_add_with(suite, "14", scenario_14_slewed_servers, start_with_clocks);
    return suite_run_nofork(suite);
}
