/* SPDX-License-Identifier: MIT
 * The statistics of an engine, and its reading of the clocks when the process is stopped in
 * between.
 *
 * Uses engine_rig.h: two engines, called clients 0 and 1, on three correct servers, in virtual
 * time. rig_hold() acquires a lock, rig_call() passes a call of the user to it, and rig_pass()
 * advances time and runs the servers and both engines. */
#include "engine_rig.h"

#include "engine/status.h"

#define HOUR_US INT64_C(3600000000)

static struct rl_engine *engine; /* that of client 0 */

/* Fixture: opens both engines and waits until that of client 0 is ready. */
static void setup(void)
{
    rig_begin(NULL);
    engine = rig_engine(0);
    rig_pass(20 * RL_MS);
    ck_assert(rl_engine_is_ready(engine));
}

/* ---- clocks ---- */

static unsigned stop_before; /* the process is stopped before this reading of a clock, from 1 on */
static unsigned readings;

/* Counts a reading of a clock, and stops the process before one of them. */
static void read_one(void)
{
    if (++readings == stop_before)
        world.now_ns += 10 * RL_SECOND;
}

/* Counts a reading and returns the world's time for both clocks. */
static struct rl_now read_now(void *ctx)
{
    (void)ctx;
    read_one();
    return (struct rl_now){.boot_ns = world.now_ns, .raw_ns = world.now_ns};
}

/* Counts a reading and returns the client's wall clock in us. */
static uint64_t read_wall(void *ctx)
{
    const struct world_client *client = ctx;

    read_one();
    return client->wall_us + world.now_ns / RL_US;
}

/* A pause between the readings of two clocks neither looks like a jump of the wall clock nor hides
 * one. */
START_TEST(a_pause_between_clock_readings_is_no_jump)
{
    const int64_t jump_us = _i < 4 ? 0 : HOUR_US;
    const int64_t before_us = engine->view.wall_us;

    engine->env.now = read_now;
    engine->env.wall_us = read_wall;
    readings = 0;
    stop_before = (unsigned)_i % 4 + 1;
    world.clients[0].wall_us += (uint64_t)jump_us;
    rl_engine_refresh(engine);
    ck_assert_int_eq(engine->view.wall_us - before_us, jump_us);
    if (readings >= stop_before)
        ck_assert_uint_eq(engine->view.now.boot_ns, world.now_ns);
}
END_TEST

/* ---- counts ---- */

/* Returns the parameters of a lock with a TTL of a minute. */
static struct rl_lease_params waiting_params(uint64_t wait_ns)
{
    struct rl_lease_params params = rig_params();

    params.terms.ttl_ns = 60 * RL_SECOND;
    params.wait_ns = wait_ns;
    return params;
}

START_TEST(ends_of_locks_are_counted)
{
    const struct rl_engine_stats *stats = &engine->stats;
    const struct rl_lease_params params = waiting_params(0), patient = waiting_params(RL_NEVER);

    (void)rig_hold(1, &params, "taken");
    struct rig_lock *item = rig_hold(0, &params, "a");
    ck_assert_uint_eq(stats->acquired, 1);
    ck_assert_uint_eq(stats->wait_us_hist[9], 1); /* 1000 us */
    ck_assert_uint_eq(stats->held, 1);
    rig_call(rig_start_one(0, &patient, "a"), RL_EVENT_CANCEL, 0);
    ck_assert_uint_eq(stats->canceled, 1);
    ck_assert_uint_eq(stats->queued, 0);
    (void)rig_start_one(0, &patient, "a");
    ck_assert_uint_eq(stats->queued, 1);
    ck_assert_uint_eq(stats->waiting, 1);
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_pass(5 * RL_MS);
    ck_assert_uint_eq(stats->released, 1);
    ck_assert_uint_eq(stats->queued, 0);
    ck_assert_uint_eq(stats->acquired, 2);
    (void)rig_start_one(0, &params, "taken");
    rig_pass(5 * RL_MS);
    ck_assert_uint_eq(stats->contended, 1);
    ck_assert_uint_eq(stats->attempts, 3);
    (void)rig_start_one(0, &patient, "taken");
    rl_engine_end_locks(engine);
    ck_assert_uint_eq(stats->canceled, 2);
    ck_assert_uint_eq(stats->held, 0);
    ck_assert_uint_eq(stats->waiting, 0);
}
END_TEST

/* The sum of the durations is counted beside their histogram, and the sum of the round trips. */
START_TEST(durations_are_summed)
{
    const struct rl_lease_params params = waiting_params(0);
    struct rl_node_counters *counters = &engine->nodes[0].counters;
    const uint64_t trips_us = counters->rtt_us_sum;

    (void)rig_hold(0, &params, "a");
    ck_assert_uint_eq(engine->stats.wait_us_sum, 1000);
    ck_assert_uint_eq(counters->rtt_us_sum, trips_us + 1000);
    (void)rig_hold(0, &params, "b");
    ck_assert_uint_eq(engine->stats.wait_us_sum, 2000);
    ck_assert_uint_eq(counters->rtt_us_sum, trips_us + 2000);
}
END_TEST

/* The margin before the deadline is counted once, and the shortest validity is that of the held
 * lock whose deadline is the next one. */
START_TEST(endangered_locks_are_counted)
{
    struct rl_lease_params params = waiting_params(0);

    ck_assert_uint_eq(rl_engine_shortest_validity_ns(engine), RL_NEVER);
    (void)rig_hold(0, &params, "long");
    const uint64_t long_ns = rl_engine_shortest_validity_ns(engine);
    ck_assert_uint_gt(long_ns, 50 * RL_SECOND);
    params.terms.ttl_ns = 10 * RL_SECOND;
    params.terms.margin_ns = RL_SECOND;
    (void)rig_hold(0, &params, "brief");
    const uint64_t brief_ns = rl_engine_shortest_validity_ns(engine);
    ck_assert_uint_gt(brief_ns, 9 * RL_SECOND);
    ck_assert_uint_lt(brief_ns, 10 * RL_SECOND);
    rig_pass(brief_ns - RL_SECOND / 2);
    ck_assert_uint_eq(engine->stats.endangered, 1);
    ck_assert_uint_eq(engine->stats.lost, 0);
    rig_pass(RL_SECOND);
    ck_assert_uint_eq(engine->stats.endangered, 1);
    ck_assert_uint_eq(engine->stats.lost, 1);
    ck_assert_uint_gt(rl_engine_shortest_validity_ns(engine), 40 * RL_SECOND);
}
END_TEST

/* A release that finds no keys fails, as does one without a quorum. */
START_TEST(failed_releases_are_counted)
{
    const struct rl_lease_params params = waiting_params(0);
    struct rig_lock *item = rig_hold(0, &params, "a");

    for (unsigned i = 0; i < NODES; i++)
        fake_store_remove(&world.nodes[i].store, "a");
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_pass(5 * RL_MS);
    ck_assert_int_eq(item->status, REDLOCK_ELOST);
    ck_assert_uint_eq(engine->stats.released, 0);
    ck_assert_uint_eq(engine->stats.release_failed, 1);
}
END_TEST

START_TEST(ends_of_undos_are_counted)
{
    const struct rl_lease_params params = rig_params();
    struct rig_lock *item = rig_hold(0, &params, "a");

    rig_reach(2, false, true);
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_pass(5 * RL_MS);
    ck_assert_uint_eq(engine->stats.undone, 2);
    rig_pass(2 * RIG_TTL_NS);
    ck_assert_uint_eq(engine->stats.undone, 2);
    ck_assert_uint_eq(engine->stats.undo_expired, 1);
    ck_assert_uint_eq(engine->stats.undo_dropped, 0);
    ck_assert(!rl_engine_has_dropped(engine));
    engine->nodes[1].undos.dropped_until_ns = engine->view.now.boot_ns + RL_SECOND;
    ck_assert(rl_engine_has_dropped(engine));
    rig_pass(RL_SECOND);
    ck_assert(!rl_engine_has_dropped(engine));
}
END_TEST

START_TEST(duplicates_are_counted_as_refusals)
{
    const struct rl_lease_params params = rig_params();

    for (unsigned i = 1; i < NODES; i++) {
        memcpy(world.nodes[i].run_id, world.nodes[0].run_id, sizeof world.nodes[0].run_id);
        rig_reach(i, false, false);
        rig_reach(i, true, false);
    }
    rig_pass(RL_SECOND);
    const struct rig_lock *item = rig_start_one(0, &params, "a");
    ck_assert_int_eq(item->status, REDLOCK_EDUPLICATE);
    ck_assert_uint_eq(engine->stats.refused, 1);
}
END_TEST

/* A lock that ends in the queue of its client has no votes of its own. */
START_TEST(a_queued_lock_reports_the_votes_of_the_lock_ahead)
{
    const struct rl_lease_params params = waiting_params(0), brief = waiting_params(20 * RL_MS);
    const struct rl_lease_params patient = waiting_params(RL_NEVER);

    (void)rig_hold(0, &params, "held");
    const struct rig_lock *holder = rig_start_one(0, &brief, "held");
    (void)rig_hold(1, &params, "taken");
    (void)rig_start_one(0, &patient, "taken");
    rig_pass(5 * RL_MS);
    const struct rig_lock *waiter = rig_start_one(0, &brief, "taken");
    rig_pass(40 * RL_MS);
    ck_assert_int_eq(holder->status, REDLOCK_ECONTENDED);
    ck_assert_int_eq(holder->lock.queue_end, RL_QUEUE_END_HOLDER);
    ck_assert_int_eq(waiter->status, REDLOCK_ECONTENDED);
    ck_assert_int_eq(waiter->lock.queue_end, RL_QUEUE_END_WAITER);
    ck_assert_uint_ne(waiter->lock.lease.round.denied, 0); /* copied from the lock ahead */
}
END_TEST

START_TEST(locks_of_one_tick_retry_at_different_times)
{
    struct rl_lease_params params = rig_params();

    params.salt = 0;
    const struct rig_lock *first = rig_start_one(0, &params, "a");
    const struct rig_lock *second = rig_start_one(0, &params, "b");
    ck_assert_uint_ne(first->lock.lease.salt, second->lock.lease.salt);
}
END_TEST

/* A client that acquires several permits knows its own slots. */
START_TEST(a_client_does_not_try_its_own_slots_again)
{
    struct rl_lease_params params = waiting_params(0);

    params.terms.permits = 12;
    for (unsigned i = 0; i < 12; i++)
        (void)rig_hold(0, &params, "s");
    ck_assert_uint_eq(engine->stats.attempts, 12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_statistics");
    TCase *tcase = tcase_create("counts");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, rig_end);
    tcase_add_loop_test(tcase, a_pause_between_clock_readings_is_no_jump, 0, 8);
    tcase_add_test(tcase, ends_of_locks_are_counted);
    tcase_add_test(tcase, durations_are_summed);
    tcase_add_test(tcase, endangered_locks_are_counted);
    tcase_add_test(tcase, failed_releases_are_counted);
    tcase_add_test(tcase, ends_of_undos_are_counted);
    tcase_add_test(tcase, duplicates_are_counted_as_refusals);
    tcase_add_test(tcase, a_queued_lock_reports_the_votes_of_the_lock_ahead);
    tcase_add_test(tcase, locks_of_one_tick_retry_at_different_times);
    tcase_add_test(tcase, a_client_does_not_try_its_own_slots_again);
    return suite_run(suite);
}
