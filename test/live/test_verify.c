/* SPDX-License-Identifier: MIT
 * Verifying a held lock on the servers: no TTL changes, and a lock whose key a majority has lost is
 * lost at once, for each kind of lock (_i).
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_open() creates a client from a
 * configuration, such as that of live_config(), and waits until all nodes are eligible.
 * live_extend() and live_release() return the status of one call and keep its report, which
 * live_info(), live_node() and live_text() read. live_pause(first, count) stops servers with
 * SIGSTOP. live_voters() counts the eligible nodes, live_responsive() the nodes that reply.
 * LOOP_UNTIL() turns the loop of a client until a condition holds or the deadline has passed.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms() stretches
 * a time for slow builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that
 * no case reaches. From live_events.h: note_event() copies each event into its userdata:
 * client_events or lock_events. note_done() stores the result of an asynchronous call in a struct
 * outcome, and outcome_wait() waits for it and returns its status. From fences.h: fences_begin()
 * removes all fence records, fences_open() creates a client with volatile records,
 * fences_acquire() acquires a fenced lock, and fences_pass() also releases it and returns its
 * fencing token. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define LATE_MS 20000 /* the node timeout of cases that stop servers and start them again */

enum kind { PLAIN, SEVERAL, PERMIT, FENCED, KINDS };

/* Further resources of a lock of several. */
static const char *const ALSO[] = {"verify-a", "verify-c"};

/* Returns the options for a lock of this kind, with events in lock_events. */
static redlock_opts_t opts_of(enum kind kind)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    if (kind == SEVERAL) {
        opts.also = ALSO;
        opts.also_count = 2;
    }
    if (kind == PERMIT) {
        opts.kind = REDLOCK_KIND_PERMIT;
        opts.permits = 3;
    }
    if (kind == FENCED)
        opts.flags = REDLOCK_FLAG_FENCE;
    return opts;
}

/* Returns the configuration of a client in that mode, with empty fence records on all servers. */
static redlock_config_t *config_of(int mode)
{
    events_reset();
    cluster_command_all(live.cluster, "DEL " CLUSTER_RECORD);
    live.mode = mode;
    return fences_config();
}

/* Writes the name of the key that third parties change in the cases below. */
static void key_of(char *key, size_t size, const redlock_lock_t *lock, enum kind kind)
{
    if (kind == PERMIT)
        ck_assert_int_eq(
            redlock_slot_name(key, size, "verify-b", (uint32_t)redlock_lock_slot(lock)),
            REDLOCK_OK);
    else
        snprintf(key, size, "%s", kind == SEVERAL ? "verify-c" : "verify-b");
}

/* Acquires a lock of that kind, which must be granted, and waits until all nodes have its key. */
static redlock_lock_t *hold(enum kind kind, char *key, size_t size)
{
    const redlock_opts_t opts = opts_of(kind);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;
    const int status = redlock_acquire(live.client, "verify-b", &opts, &lock, &report);

    live_keep_report(report);
    CHECK_STATUS(status, REDLOCK_OK);
    key_of(key, size, lock, kind);
    ck_assert(WAIT_UNTIL(live_nodes_with(key) == NODES, TIME_LIMIT_MS));
    return lock;
}

/* Verifies a lock. Keeps the report. */
static int verify(redlock_lock_t *lock)
{
    redlock_report_t *report = NULL;
    const int status = redlock_verify(lock, &report);

    live_keep_report(report);
    return status;
}

/* Returns the time to live of the key on the server in ms; -2: there is no such key. */
static int64_t pttl(unsigned node, const char *key)
{
    return cluster_integer(live.cluster, node, "PTTL %s", key);
}

/* Returns whether the lock's descriptor is readable, as it is after a loss. */
static bool is_readable(redlock_lock_t *lock)
{
    struct pollfd ready = {.fd = redlock_lock_fd(lock), .events = POLLIN};
    return poll(&ready, 1, 0) == 1;
}

/* Checks that the lock is held. */
static void check_still_held(redlock_lock_t *lock)
{
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_uint_eq(count_events(&lock_events, REDLOCK_EVENT_LOST), 0);
    ck_assert(!is_readable(lock));
}

/* Checks that the lock is lost, with one event. */
static void check_lost(redlock_lock_t *lock)
{
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert_uint_eq(redlock_lock_remaining_ms(lock), 0);
    ck_assert(is_readable(lock));
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    CHECK_STATUS(verify(lock), REDLOCK_ELOST);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_ELOST);
    ck_assert_uint_eq(count_events(&lock_events, REDLOCK_EVENT_LOST), 1);
}

/* Verifying a held lock confirms it by a majority. Neither the keys' TTLs nor the validity grow,
 * and nothing counts as an extension. */
START_TEST(verify_confirms_without_extending)
{
    const enum kind kind = (enum kind)_i;
    char key[64];
    live.client = live_open(config_of(0));
    redlock_lock_t *lock = hold(kind, key, sizeof key);
    const uint64_t requests = live_stats(live.client).extended;
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(cluster_replies(live.cluster, i, "1", "PEXPIRE %s 20000", key));
    const uint64_t remaining_ms = redlock_lock_remaining_ms(lock);
    CHECK_STATUS(verify(lock), REDLOCK_OK);
    ck_assert_uint_ge(live_info().granted, QUORUM);
    ck_assert_uint_le(live_info().validity_ms, remaining_ms);
    ck_assert_uint_gt(live_info().validity_ms, 0);
    ck_assert_uint_le(redlock_lock_remaining_ms(lock), remaining_ms);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_le(pttl(i, key), 20000);
        if (live_node(i).vote != REDLOCK_VOTE_GRANTED)
            continue; /* the operation had ended with a majority */
        if (kind == SEVERAL)
            ck_assert_uint_eq(live_node(i).pttl_ms, UINT64_MAX);
        else
            ck_assert_uint_le(live_node(i).pttl_ms, 20000);
        ck_assert_msg(strncmp(live_node(i).text, "held with this token", 20) == 0, "%s",
                      live_text());
    }
    check_still_held(lock);
    ck_assert_uint_eq(live_stats(live.client).extended, requests);
    ck_assert_uint_eq(count_events(&lock_events, REDLOCK_EVENT_EXTENDED), 0);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* If two of five have lost the key, the lock stays held. With the third one it is lost, and the
 * remaining keys are deleted. */
START_TEST(a_lock_lost_by_a_majority_is_lost)
{
    char key[64];
    live.client = live_open(config_of(0));
    redlock_lock_t *lock = hold((enum kind)_i, key, sizeof key);
    for (unsigned i = 0; i < 2; i++)
        ck_assert(cluster_replies(live.cluster, i, "1", "DEL %s", key));
    CHECK_STATUS(verify(lock), REDLOCK_OK);
    check_still_held(lock);
    ck_assert(cluster_replies(live.cluster, 4, "1", "DEL %s", key));
    CHECK_STATUS(verify(lock), REDLOCK_ELOST);
    ck_assert_int_eq(live_info().status, REDLOCK_ELOST);
    ck_assert_uint_eq(live_info().validity_ms, 0);
    check_lost(lock);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The keys of a majority have the token of another client. */
START_TEST(a_lock_replaced_on_a_majority_is_lost)
{
    char key[64];
    live.client = live_open(config_of(0));
    redlock_lock_t *lock = hold((enum kind)_i, key, sizeof key);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "SET %s theirs PX 60000", key));
    CHECK_STATUS(verify(lock), REDLOCK_ELOST);
    if (_i != SEVERAL)
        ck_assert_msg(strstr(live_node(0).text, "another client") != NULL, "%s", live_text());
    check_lost(lock);
    redlock_lock_free(lock);
    ck_assert(WAIT_UNTIL(live_nodes_with(key) == QUORUM, TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL verify-b");
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert(cluster_replies(live.cluster, i, _i == PLAIN || _i == FENCED ? "0" : "1",
                                  "DEL %s", key));
}
END_TEST

/* Without replies from a majority, verifying returns ENOQUORUM, and the lock stays held. */
START_TEST(a_silent_majority_loses_no_lock)
{
    char key[64];
    live.silence = true;
    live.client = live_open(config_of(0));
    redlock_lock_t *lock = hold((enum kind)_i, key, sizeof key);
    live_pause(0, QUORUM);
    CHECK_STATUS(verify(lock), REDLOCK_ENOQUORUM);
    check_still_held(lock);
    live_resume_all();
    ck_assert(WAIT_UNTIL(live_responsive(live.client) == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(verify(lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* The lock expires by the client's clock before the servers reply that they still have it (_i 0),
 * or before their time limit (1). */
START_TEST(an_expired_lock_is_lost_although_servers_have_it)
{
    struct outcome outcome = OUTCOME;
    live.node_time_ms = _i == 0 ? LATE_MS : 2000;
    live.client = live_open(config_of(0));
    redlock_opts_t opts = opts_of(PLAIN);
    redlock_lock_t *lock = NULL;
    opts.ttl_ms = live_brief_ms(900);
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    CHECK_STATUS(redlock_acquire(live.client, "verify-b", &opts, &lock, NULL), REDLOCK_OK);
    cluster_command_all(live.cluster, "PERSIST verify-b");
    live_pause(0, NODES);
    const int started = redlock_verify_start(lock, NULL, note_done, &outcome);
    ck_assert(WAIT_UNTIL(redlock_lock_check(lock, 0) == REDLOCK_ELOST, TIME_LIMIT_MS));
    ck_assert(started == REDLOCK_ELOST || outcome_calls(&outcome) == 0);
    if (_i == 0)
        live_resume_all();
    if (started == REDLOCK_OK)
        CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ELOST);
    live_resume_all();
    CHECK_STATUS(verify(lock), REDLOCK_ELOST);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Verifying a detached or released lock returns ELOST without a request; without a lock, EINVAL. */
START_TEST(a_lock_that_is_not_held_sends_no_request)
{
    char key[64];
    redlock_report_t *report = NULL;
    live.client = live_open(config_of(0));
    ck_assert_int_eq(redlock_verify(NULL, &report), REDLOCK_EINVAL);
    ck_assert_ptr_null(report);
    redlock_lock_t *lock = hold(PLAIN, key, sizeof key);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
    const uint64_t gets = live_calls(0, "get");
    CHECK_STATUS(verify(lock), REDLOCK_ELOST);
    ck_assert_str_ne(live_text(), "");
    ck_assert_uint_eq(live_calls(0, "get"), gets);
    CHECK_STATUS(redlock_release_token(live.client, "verify-b", redlock_lock_token(lock), NULL),
                 REDLOCK_OK);
    redlock_lock_free(lock);
    lock = hold(PLAIN, key, sizeof key);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    CHECK_STATUS(verify(lock), REDLOCK_ELOST);
    redlock_lock_free(lock);
}
END_TEST

/* A thread that polls the descriptor is not woken by the holder's own release or detach. */
START_TEST(a_release_does_not_signal_the_descriptor)
{
    char key[64];
    live.client = live_open(config_of(0));
    for (unsigned i = 0; i < 2; i++) {
        redlock_lock_t *lock = hold(PLAIN, key, sizeof key);
        ck_assert(!is_readable(lock));
        if (i == 0)
            CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
        else
            CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
        ck_assert(!is_readable(lock));
        redlock_lock_free(lock);
    }
    cluster_command_all(live.cluster, "DEL verify-b");
    redlock_lock_t *lock = hold(PLAIN, key, sizeof key);
    ck_assert(!is_readable(lock));
    CHECK_STATUS(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    ck_assert(is_readable(lock)); /* a shutdown is no release by the holder */
    redlock_lock_free(lock);
}
END_TEST

/* The mode of the client, by _i. */
static const int MODES[] = {REDLOCK_MODE_THREADED, REDLOCK_MODE_EMBEDDED, REDLOCK_MODE_HYBRID};

/* Acquires a plain lock in that mode. */
static redlock_lock_t *hold_in_mode(int mode)
{
    struct outcome outcome = OUTCOME;
    const redlock_opts_t opts = opts_of(PLAIN);
    live.node_time_ms = LATE_MS;
    live.client = live_open(config_of(mode));
    ck_assert_int_eq(redlock_acquire_start(live.client, "verify-b", &opts, note_done, &outcome),
                     REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    ck_assert(LOOP_UNTIL(live.client, live_nodes_with("verify-b") == NODES, TIME_LIMIT_MS));
    return outcome.lock;
}

/* Two verifications at the same time, beside an extension, and one that finds the loss. */
START_TEST(verify_start_runs_beside_other_operations)
{
    struct outcome first = OUTCOME, second = OUTCOME, extended = OUTCOME, lost = OUTCOME;
    redlock_lock_t *lock = hold_in_mode(MODES[_i]);
    ck_assert_int_eq(redlock_verify_start(lock, NULL, NULL, NULL), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_verify_start(lock, NULL, note_done, &first), REDLOCK_OK);
    ck_assert_int_eq(redlock_extend_start(lock, 0, note_done, &extended), REDLOCK_OK);
    ck_assert_int_eq(redlock_verify_start(lock, NULL, note_done, &second), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &first), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &second), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &extended), REDLOCK_OK);
    ck_assert_ptr_eq(first.lock, lock);
    ck_assert_uint_ge(first.info.granted, QUORUM);
    cluster_command_all(live.cluster, "DEL verify-b");
    ck_assert_int_eq(redlock_verify_start(lock, NULL, note_done, &lost), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &lost), REDLOCK_ELOST);
    ck_assert_ptr_eq(lost.lock, lock);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert(LOOP_UNTIL(live.client, count_events(&lock_events, REDLOCK_EVENT_LOST) == 1,
                         TIME_LIMIT_MS));
    redlock_lock_free(lock);
}
END_TEST

/* One verification is canceled before the servers reply, and the handle of another one is freed. */
START_TEST(canceled_or_freed_before_the_reply)
{
    struct outcome canceled = OUTCOME, freed = OUTCOME, refused = OUTCOME;
    redlock_cancel_t *cancel = NULL;
    redlock_lock_t *lock = hold_in_mode(MODES[_i]);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    live_pause(0, NODES);
    ck_assert_int_eq(redlock_verify_start(lock, cancel, note_done, &canceled), REDLOCK_OK);
    ck_assert_int_eq(redlock_verify_start(lock, NULL, note_done, &freed), REDLOCK_OK);
    redlock_cancel_trigger(cancel);
    CHECK_STATUS(outcome_wait(live.client, &canceled), REDLOCK_ECANCELED);
    ck_assert_ptr_eq(canceled.lock, lock);
    ck_assert_int_eq(redlock_verify_start(lock, cancel, note_done, &refused), REDLOCK_ECANCELED);
    redlock_lock_free(lock);
    live_resume_all();
    CHECK_STATUS(outcome_wait(live.client, &freed), REDLOCK_ELOST);
    ck_assert_ptr_null(freed.lock);
    ck_assert_uint_eq(outcome_calls(&refused), 0);
    redlock_cancel_free(cancel);
}
END_TEST

/* redlock_free() ends a verification in flight. The handle is freed afterwards. */
START_TEST(verify_ends_with_the_client)
{
    struct outcome outcome = OUTCOME;
    redlock_lock_t *lock = hold_in_mode(MODES[_i]);
    live_pause(0, NODES);
    ck_assert_int_eq(redlock_verify_start(lock, NULL, note_done, &outcome), REDLOCK_OK);
    live_disconnect();
    ck_assert_uint_eq(outcome_calls(&outcome), 1);
    CHECK_STATUS(outcome.status, REDLOCK_ECLOSED);
    ck_assert_int_eq(redlock_verify_start(lock, NULL, note_done, &outcome), REDLOCK_ECLOSED);
    redlock_lock_free(lock);
    live_resume_all();
    cluster_command_all(live.cluster, "DEL verify-b");
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *verify_suite(void)
{
    Suite *suite = suite_create("verify");
    live_add_each(suite, "there", verify_confirms_without_extending, KINDS);
    live_add_each(suite, "deleted", a_lock_lost_by_a_majority_is_lost, KINDS);
    live_add_each(suite, "replaced", a_lock_replaced_on_a_majority_is_lost, KINDS);
    live_add_each(suite, "silent", a_silent_majority_loses_no_lock, KINDS);
    live_add_each(suite, "expired here", an_expired_lock_is_lost_although_servers_have_it, 2);
    live_add(suite, "not held", a_lock_that_is_not_held_sends_no_request);
    live_add(suite, "descriptor", a_release_does_not_signal_the_descriptor);
    live_add_each(suite, "starts", verify_start_runs_beside_other_operations, 3);
    live_add_each(suite, "ends", canceled_or_freed_before_the_reply, 3);
    live_add_each(suite, "client ends", verify_ends_with_the_client, 3);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(verify_suite());
    live_stop_servers();
    return status;
}
