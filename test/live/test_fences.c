/* SPDX-License-Identifier: MIT
 * Fences on real servers: fencing tokens increase over hand-overs, also with clocks that are ahead
 * and nodes that fail, and fenced and plain locks exclude each other.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client from a
 * configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_acquire(), live_extend() and live_release() return the status of one call and keep its
 * report, which live_info() reads. live_pause(first, count) stops servers with SIGSTOP.
 * LOOP_UNTIL() turns the loop of a client until a condition holds or the deadline has passed.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS() compares
 * two REDLOCK_* codes. From live_events.h: note_done() stores the result of an asynchronous call
 * in a struct outcome, and outcome_wait() waits for it and returns its status. From fences.h:
 * fences_begin() removes all fence records, fences_open() creates a client with volatile records,
 * fences_acquire() acquires a fenced lock, and fences_pass() also releases it and returns its
 * fencing token. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HANDOVERS 40 /* number of locks, held by two clients in turn */

/* Two clients hold the lock in turn, HANDOVERS times: each fencing token is larger than the one
 * before. */
START_TEST(tokens_increase_over_handovers)
{
    fences_begin();
    live.client = fences_open();
    redlock_t *other = fences_open();
    uint64_t last = 0;

    for (unsigned i = 0; i < HANDOVERS; i++) {
        const uint64_t fence =
            fences_pass(i % 2 == 0 ? live.client : other, "handed", TIME_LIMIT_MS);
        ck_assert_uint_gt(fence, last);
        last = fence;
    }
    live_free(other);
}
END_TEST

/* The same for one client with two dead servers. */
START_TEST(tokens_increase_with_two_nodes_dead)
{
    fences_begin();
    live.client = fences_open();
    uint64_t last = fences_pass(live.client, "dead", TIME_LIMIT_MS);

    cluster_kill(live.cluster, 0);
    cluster_kill(live.cluster, 3);
    for (unsigned i = 0; i < 5; i++) {
        const uint64_t fence = fences_pass(live.client, "dead", TIME_LIMIT_MS);
        ck_assert_uint_gt(fence, last);
        last = fence;
    }
}
END_TEST

/* The records have a token from a clock that was ahead: the next token is above it, after two round
 * trips, and later ones after one. */
START_TEST(tokens_exceed_a_larger_record)
{
    const uint64_t ahead = UINT64_C(9000000000000000);

    fences_begin();
    live.client = fences_open();
    ck_assert_uint_lt(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), ahead);
    ck_assert_uint_eq(live_info().rounds, 1);
    for (unsigned i = 0; i < QUORUM; i++)
        free(cluster_command(live.cluster, i, "HSET " CLUSTER_RECORD " " FENCES_STRIPE " %" PRIu64,
                             ahead));
    live_pause(3, 2); /* all nodes of the majority have it */
    ck_assert_uint_eq(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), ahead + 1);
    ck_assert_uint_eq(live_info().rounds, 2);
    ck_assert_uint_eq(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), ahead + 2);
    ck_assert_uint_eq(live_info().rounds, 1);
    ck_assert_uint_eq(live_stats(live.client).fence_one_round, 2);
    ck_assert_uint_eq(live_stats(live.client).fence_two_rounds, 1);
}
END_TEST

/* One node of the majority has a larger token, which is enough. */
START_TEST(tokens_exceed_the_record_of_one_node)
{
    const uint64_t ahead = UINT64_C(9000000000000000);

    fences_begin();
    live.client = fences_open();
    fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS);
    free(cluster_command(live.cluster, 1, "HSET " CLUSTER_RECORD " " FENCES_STRIPE " %" PRIu64,
                         ahead));
    live_pause(3, 2);
    ck_assert_uint_eq(fences_pass(live.client, FENCES_RESOURCE, TIME_LIMIT_MS), ahead + 1);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert_uint_eq(fences_number(i), ahead + 1);
}
END_TEST

/* A fenced lock is an ordinary key with an ordinary token: plain and foreign clients do not get
 * it, and a fenced acquisition does not get a plain lock. */
START_TEST(fenced_and_plain_locks_exclude_each_other)
{
    redlock_lock_t *lock, *other;

    fences_begin();
    live.client = fences_open();
    CHECK_STATUS(fences_acquire(live.client, "both", TIME_LIMIT_MS, &lock), REDLOCK_OK);
    CHECK_STATUS(live_acquire("both", live.max_ttl_ms, 0, &other), REDLOCK_ECONTENDED);
    ck_assert(cluster_replies(live.cluster, 0, "(nil)", "SET both foreign NX PX 1000"));
    ck_assert(cluster_replies(live.cluster, 0, "string", "TYPE both"));
    ck_assert(cluster_replies(live.cluster, 0, redlock_lock_token(lock), "GET both"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));

    CHECK_STATUS(live_acquire("both", live.max_ttl_ms, 0, &lock), REDLOCK_OK);
    ck_assert_uint_eq(redlock_lock_fence(lock), 0);
    CHECK_STATUS(fences_acquire(live.client, "both", 0, &other), REDLOCK_ECONTENDED);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* The fencing token stays the same over an extension and a detach. Adopting needs it in
 * opts.fence; without it, or with one above 2^53 - 1, the call returns EINVAL. */
START_TEST(extensions_and_adoption_keep_the_fence)
{
    redlock_lock_t *lock, *taken = NULL;

    fences_begin();
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);
    live.client = fences_open();
    CHECK_STATUS(fences_acquire(live.client, "kept", TIME_LIMIT_MS, &lock), REDLOCK_OK);
    const uint64_t fence = redlock_lock_fence(lock);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(redlock_lock_fence(lock), fence);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);

    opts.flags = REDLOCK_FLAG_FENCE;
    ck_assert_int_eq(
        redlock_adopt(live.client, "kept", redlock_lock_token(lock), &opts, &taken, NULL),
        REDLOCK_EINVAL); /* the token is missing in opts.fence */
    opts.fence = UINT64_C(1) << 53;
    ck_assert_int_eq(
        redlock_adopt(live.client, "kept", redlock_lock_token(lock), &opts, &taken, NULL),
        REDLOCK_EINVAL);
    opts.fence = fence;
    CHECK_STATUS(redlock_adopt(live.client, "kept", redlock_lock_token(lock), &opts, &taken, NULL),
                 REDLOCK_OK);
    ck_assert_uint_eq(redlock_lock_fence(taken), fence);
    redlock_lock_free(lock);
    CHECK_STATUS(live_release(taken), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire(live.client, "kept", &opts, &taken, NULL), REDLOCK_EINVAL);
    ck_assert_uint_eq(redlock_lock_fence(NULL), 0);
    ck_assert_uint_gt(fences_pass(live.client, "kept", TIME_LIMIT_MS), fence);
}
END_TEST

/* Without the loaded scripts, the vote is requested once more in the same attempt, and executed
 * once. */
START_TEST(a_vote_is_repeated_after_script_flush)
{
    fences_begin();
    live.client = fences_open();
    const uint64_t first = fences_pass(live.client, "forgotten", TIME_LIMIT_MS);
    cluster_command_all(live.cluster, "SCRIPT FLUSH");
    cluster_command_all(live.cluster, "CONFIG RESETSTAT");
    ck_assert_uint_gt(fences_pass(live.client, "forgotten", TIME_LIMIT_MS), first);
    ck_assert_uint_eq(live_info().attempts, 1);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert_uint_le(live_calls(i, "set"), 1);
}
END_TEST

/* The record has the configured key, without the prefix of the locks. */
START_TEST(records_have_the_configured_key)
{
    fences_begin();
    redlock_config_t *config = fences_config();
    ck_assert_int_eq(redlock_config_set_fence_key(config, ""), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_fence_key(config, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_fence_records(config, 0), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_config_set_fence_key(config, "my{fences}"), REDLOCK_OK);
    ck_assert_int_eq(redlock_config_set_key_prefix(config, "app:"), REDLOCK_OK);
    live.client = live_open(config);
    fences_pass(live.client, "x", TIME_LIMIT_MS);
    ck_assert(live_has_key(0, "my{fences}"));
    ck_assert(!live_has_key(0, CLUSTER_RECORD));
    cluster_command_all(live.cluster, "DEL my{fences}");
}
END_TEST

/* Also right after the start, before a connection is established. */
START_TEST(embedded_clients_get_fences)
{
    static struct outcome acquired = OUTCOME, released = OUTCOME;

    fences_begin();
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);
    live.mode = REDLOCK_MODE_EMBEDDED;
    redlock_config_t *config = fences_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    opts.flags = REDLOCK_FLAG_FENCE;
    opts.wait_ms = TIME_LIMIT_MS;
    ck_assert_int_eq(redlock_acquire_start(live.client, "loop", &opts, note_done, &acquired),
                     REDLOCK_OK);
    ck_assert_int_eq(outcome_wait(live.client, &acquired), REDLOCK_OK);
    ck_assert_uint_gt(redlock_lock_fence(acquired.lock), 0);
    ck_assert_int_eq(redlock_release_start(acquired.lock, note_done, &released), REDLOCK_OK);
    ck_assert_int_eq(outcome_wait(live.client, &released), REDLOCK_OK);
    redlock_lock_free(acquired.lock);
    ck_assert(LOOP_UNTIL(live.client, live_nodes_with("loop") == 0, TIME_LIMIT_MS));
}
END_TEST

/* Acquisitions that wait until the records are read can be canceled, and end with their client. */
START_TEST(acquisitions_end_before_the_first_vote)
{
    static struct outcome canceled = OUTCOME, closed = OUTCOME;
    redlock_cancel_t *cancel = NULL;

    fences_begin();
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);
    live_pause(0, NODES);
    live.connect_time_ms = TIME_LIMIT_MS;
    redlock_config_t *config = fences_config();
    ck_assert_int_eq(redlock_new(&live.client, config), REDLOCK_OK);
    redlock_config_free(config);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    opts.flags = REDLOCK_FLAG_FENCE;
    opts.cancel = cancel;
    ck_assert_int_eq(redlock_acquire_start(live.client, "early", &opts, note_done, &canceled),
                     REDLOCK_OK);
    opts.cancel = NULL;
    ck_assert_int_eq(redlock_acquire_start(live.client, "early", &opts, note_done, &closed),
                     REDLOCK_OK);
    redlock_cancel_trigger(cancel);
    ck_assert_int_eq(outcome_wait(live.client, &canceled), REDLOCK_ECANCELED);
    redlock_cancel_free(cancel);
    live_free(live.client);
    live.client = NULL;
    ck_assert_int_eq(closed.status, REDLOCK_ECLOSED);
}
END_TEST

static atomic_uint long_ttls; /* events of count_long_ttls() */

/* Event function that counts the events TTL_EXCEEDS_MAX. */
static void count_long_ttls(redlock_t *client, const redlock_event_t *event, void *unused)
{
    (void)client;
    (void)unused;
    atomic_fetch_add(&long_ttls, event->kind == REDLOCK_EVENT_TTL_EXCEEDS_MAX);
}

/* The denial of a fenced lock contains the TTL of the key. A TTL above max_ttl has one event for
 * each node, also if the lock is denied several times, and makes quarantines as long. */
START_TEST(a_longer_ttl_is_reported_by_a_denial)
{
    redlock_lock_t *lock;
    fences_begin();
    atomic_store(&long_ttls, 0);
    live.event_fn = count_long_ttls;
    live.client = fences_open();
    fences_pass(live.client, "stuck", TIME_LIMIT_MS);
    const uint64_t pttl_ms = 20 * live.max_ttl_ms;
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(
            cluster_replies(live.cluster, i, "OK", "SET stuck somebody PX %" PRIu64, pttl_ms));
    for (unsigned i = 0; i < 5; i++)
        CHECK_STATUS(fences_acquire(live.client, "stuck", 0, &lock), REDLOCK_ECONTENDED);
    ck_assert(WAIT_UNTIL(atomic_load(&long_ttls) > 0, TIME_LIMIT_MS));
    ck_assert_uint_le(atomic_load(&long_ttls), NODES);
    cluster_restart(live.cluster, 1, false);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 1).cause == REDLOCK_CAUSE_RESTARTED,
                         TIME_LIMIT_MS));
    ck_assert_uint_gt(live_node_stats(live.client, 1).quarantine_ms, 2 * live.max_ttl_ms);
    cluster_command_all(live.cluster, "DEL stuck");
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *fences_suite(void)
{
    Suite *suite = suite_create("live_fences");
    live_add(suite, "fences_grow_over_handovers", tokens_increase_over_handovers);
    live_add(suite, "fences_grow_with_two_nodes_dead", tokens_increase_with_two_nodes_dead);
    live_add(suite, "a_clock_an_hour_ahead", tokens_exceed_a_larger_record);
    live_add(suite, "one_node_that_knows_is_enough", tokens_exceed_the_record_of_one_node);
    live_add(suite, "fenced_and_plain_exclude_each_other",
             fenced_and_plain_locks_exclude_each_other);
    live_add(suite, "extensions_and_adoption_keep_the_fence",
             extensions_and_adoption_keep_the_fence);
    live_add(suite, "scripts_that_were_forgotten", a_vote_is_repeated_after_script_flush);
    live_add(suite, "records_and_prefixes", records_have_the_configured_key);
    live_add(suite, "embedded_clients", embedded_clients_get_fences);
    live_add(suite, "long life", a_longer_ttl_is_reported_by_a_denial);
    live_add(suite, "ended_before_the_first_vote", acquisitions_end_before_the_first_vote);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(fences_suite());
    live_stop_servers();
    return status;
}
