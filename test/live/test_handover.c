/* SPDX-License-Identifier: MIT
 * Locks that are handed over or inspected from outside: detach and adopt, release by token,
 * release_after, inspection, breaking, and redlock_with(), which always releases.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_acquire(), live_extend(), live_release() and
 * live_inspect() return the status of one call and keep its report, which live_info(), live_node()
 * and live_text() read. live_pause(first, count) stops servers with SIGSTOP. WAIT_UNTIL(condition,
 * ms) polls and returns false after the deadline. wait_scaled_ms() stretches a time for slow
 * builds. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches.
 * From live_events.h: note_done() stores the result of an asynchronous call in a struct outcome,
 * and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <inttypes.h>

/* Acquires a lock, and waits until all nodes have its key. A node that is suspect when the lock is
 * acquired gets no request, so the lock is released and acquired again then. */
static redlock_lock_t *lock_on_all(const char *resource, uint64_t ttl_ms)
{
    for (unsigned attempt = 0; attempt < 5; attempt++) {
        redlock_lock_t *lock = live_lock(resource, ttl_ms);
        if (WAIT_UNTIL(live_nodes_with(resource) == NODES, TIME_LIMIT_MS / 5))
            return lock;
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
    ck_abort_msg("no lock with keys on all nodes in five attempts");
    return NULL;
}

/* Returns the time to live of the key on the server in ms; -2: there is no such key. */
static int64_t pttl(unsigned node, const char *key)
{
    return cluster_integer(live.cluster, node, "PTTL %s", key);
}

/* Adopts the resource with the token. Stores the handle (NULL after a failure), keeps the report
 * and returns the status. */
static int adopt(const char *resource, const char *token, redlock_lock_t **ret)
{
    redlock_report_t *report = NULL;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    *ret = NULL;
    const int status = redlock_adopt(live.client, resource, token, &opts, ret, &report);
    live_keep_report(report);
    return status;
}

/* The first client detaches the lock without a request; the second one holds it from its own
 * extension on. */
START_TEST(a_lock_is_handed_over_by_token)
{
    char token[64];
    redlock_lock_t *taken = NULL, *third = NULL;
    live_connect();
    redlock_t *first_client = live.client, *second_client = live_open(live_config());
    redlock_lock_t *given = lock_on_all("handed", LONG_TTL_MS / 2);
    snprintf(token, sizeof token, "%s", redlock_lock_token(given));
    CHECK_STATUS(redlock_lock_detach(given), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(given, 0), REDLOCK_ELOST);
    CHECK_STATUS(live_extend(given, 0), REDLOCK_ELOST);
    CHECK_STATUS(redlock_lock_detach(given), REDLOCK_ELOST);
    CHECK_STATUS(live_release(given), REDLOCK_ELOST);
    ck_assert_uint_eq(live_nodes_with("handed"), NODES); /* freeing the handle is no release */
    CHECK_STATUS(live_acquire("handed", LONG_TTL_MS, 0, &third), REDLOCK_ECONTENDED);

    live.client = second_client;
    CHECK_STATUS(adopt("handed", token, &taken), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_check(taken, LONG_TTL_MS / 2), REDLOCK_OK);
    ck_assert_str_eq(redlock_lock_token(taken), token);
    ck_assert_str_eq(redlock_lock_resource(taken, 0), "handed");
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(pttl(i, "handed") > (int64_t)LONG_TTL_MS / 2, TIME_LIMIT_MS));
    CHECK_STATUS(live_extend(taken, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(taken), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    CHECK_STATUS(adopt("handed", token, &taken), REDLOCK_ELOST);
    ck_assert_ptr_null(taken);
    live.client = first_client;
    live_free(second_client);
}
END_TEST

/* Adopting with a wrong token, or a lock that no client holds, returns ELOST; without a token,
 * EINVAL. The holder keeps its lock. */
START_TEST(nothing_is_adopted_without_the_token)
{
    redlock_lock_t *taken = NULL;
    live_connect();
    redlock_lock_t *held = lock_on_all("other", LONG_TTL_MS);
    CHECK_STATUS(adopt("other", "not the token", &taken), REDLOCK_ELOST);
    CHECK_STATUS(adopt("nobody's", "token", &taken), REDLOCK_ELOST);
    CHECK_STATUS(adopt("other", NULL, &taken), REDLOCK_EINVAL);
    ck_assert_ptr_null(taken);
    ck_assert_uint_eq(live_nodes_with("other"), NODES);
    ck_assert_int_eq(redlock_lock_check(held, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
}
END_TEST

/* A detached lock is released by its token, once. A wrong token deletes nothing. */
START_TEST(a_lock_is_released_by_token)
{
    char token[64];
    redlock_report_t *report = NULL;
    live_connect();
    redlock_lock_t *lock = lock_on_all("by token", LONG_TTL_MS);
    snprintf(token, sizeof token, "%s", redlock_lock_token(lock));
    CHECK_STATUS(redlock_release_token(live.client, "by token", "wrong", NULL), REDLOCK_ELOST);
    ck_assert_uint_eq(live_nodes_with("by token"), NODES);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
    redlock_lock_free(lock);
    CHECK_STATUS(redlock_release_token(live.client, "by token", token, &report), REDLOCK_OK);
    live_keep_report(report);
    ck_assert_uint_ge(live_info().granted, QUORUM);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    CHECK_STATUS(redlock_release_token(live.client, "by token", token, NULL), REDLOCK_ELOST);
}
END_TEST

/* After a release with a delay, the lock counts as lost at once, but another acquisition is
 * granted only after the delay. A delay of 0 deletes at once. */
START_TEST(release_after_keeps_the_key_for_a_while)
{
    const int64_t delay_ms = (int64_t)wait_scaled_ms(400);
    redlock_lock_t *other = NULL;
    redlock_report_t *report = NULL;
    live_connect();
    redlock_lock_t *lock = lock_on_all("filter", LONG_TTL_MS);
    const uint64_t from_ms = wait_now_ms();
    CHECK_STATUS(redlock_release_after(lock, (uint64_t)delay_ms, &report), REDLOCK_OK);
    live_keep_report(report);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert(WAIT_UNTIL(pttl(i, "filter") <= delay_ms, TIME_LIMIT_MS));
    }
    CHECK_STATUS(live_acquire("filter", LONG_TTL_MS, wait_scaled_ms(TIME_LIMIT_MS), &other),
                 REDLOCK_OK);
    const uint64_t kept_ms = wait_now_ms() - from_ms;
    ck_assert_msg(kept_ms + 20 >= (uint64_t)delay_ms, "kept for %d ms", (int)kept_ms);
    CHECK_STATUS(live_release(other), REDLOCK_OK);
    lock = lock_on_all("filter", LONG_TTL_MS);
    CHECK_STATUS(redlock_release_after(lock, 0, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Inspects a resource, and checks the state of the report. */
static void check_inspection(const char *resource, int state)
{
    CHECK_STATUS(live_inspect(resource), REDLOCK_OK);
    ck_assert_msg(live_info().state == state, "state %d instead of %d: %s", live_info().state,
                  state, live_text());
    ck_assert_str_ne(live_text(), "");
}

/* Inspection reports a free resource as FREE, and a held one as HELD with the owner and the time
 * to live on each node. */
START_TEST(inspection_reports_held_and_free)
{
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_owner(config, "web3/4711"), REDLOCK_OK);
    live.client = live_open(config);
    check_inspection("seen", REDLOCK_STATE_FREE);
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert_int_eq(live_node(i).vote, REDLOCK_VOTE_DENIED);
        ck_assert_str_eq(live_node(i).text, "free");
        ck_assert_str_eq(live_node(i).owner, "");
    }
    redlock_lock_t *lock = lock_on_all("seen", LONG_TTL_MS);
    check_inspection("seen", REDLOCK_STATE_HELD);
    for (unsigned i = 0; i < NODES; i++) {
        const redlock_node_report_t node = live_node(i);
        ck_assert_int_eq(node.vote, REDLOCK_VOTE_GRANTED);
        ck_assert_str_eq(node.owner, "web3/4711");
        ck_assert_msg(node.pttl_ms > 0 && node.pttl_ms <= LONG_TTL_MS, "%" PRIu64, node.pttl_ms);
        ck_assert_msg(strncmp(node.text, "held, expires in ", 17) == 0, "%s", node.text);
    }
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Inspection of keys that this library has not set: without an expiry, with different values, of
 * another type, and with nodes that do not reply. HELD needs one value on a majority; UNKNOWN
 * means that a silent node decides. */
START_TEST(inspection_of_foreign_keys)
{
    live.silence = true;
    live_connect();
    /* Held by a foreign client without an expiry. A foreign token has no owner. */
    cluster_command_all(live.cluster, "SET foreign some-token");
    check_inspection("foreign", REDLOCK_STATE_HELD);
    ck_assert_uint_eq(live_node(0).pttl_ms, UINT64_MAX);
    ck_assert_str_eq(live_node(0).owner, "");
    /* Two values on two nodes each: no client has a majority. */
    for (unsigned i = 0; i < 4; i++)
        ck_assert(cluster_replies(live.cluster, i, "OK", "SET split %u", i / 2));
    check_inspection("split", REDLOCK_STATE_FREE);
    /* A key of another type. */
    cluster_command_all(live.cluster, "LPUSH list element");
    check_inspection("list", REDLOCK_STATE_HELD);
    ck_assert_msg(strstr(live_node(0).text, "not a lock") != NULL, "%s", live_text());
    /* With two values on two nodes and one node silent, it may be either. */
    live_pause(4, 1);
    check_inspection("split", REDLOCK_STATE_UNKNOWN);
    ck_assert(cluster_replies(live.cluster, 2, "OK", "SET split 0"));
    check_inspection("split", REDLOCK_STATE_HELD);
    ck_assert(cluster_replies(live.cluster, 2, "1", "DEL split"));
    ck_assert(cluster_replies(live.cluster, 1, "1", "DEL split"));
    check_inspection("split", REDLOCK_STATE_FREE);
    live_pause(2, 2);
    CHECK_STATUS(live_inspect("split"), REDLOCK_ENOQUORUM);
    ck_assert_int_eq(live_info().state, REDLOCK_STATE_UNKNOWN);
    live_resume_all();
    cluster_command_all(live.cluster, "DEL foreign split list");
}
END_TEST

/* redlock_break() deletes the keys of a held lock, so that another client gets it and the old
 * holder's extension returns ELOST. It also deletes different foreign values on a minority. */
START_TEST(breaking_deletes_the_inspected_keys)
{
    redlock_report_t *report = NULL;
    live_connect();
    redlock_lock_t *lock = lock_on_all("broken", LONG_TTL_MS), *other = NULL;
    CHECK_STATUS(redlock_break(live.client, "broken", &report), REDLOCK_OK);
    live_keep_report(report);
    ck_assert_uint_ge(live_info().granted, QUORUM);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("broken", LONG_TTL_MS, 0, &other), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_ELOST); /* its owner finds out */
    redlock_lock_free(lock);
    ck_assert_uint_eq(live_nodes_with("broken"), NODES);
    CHECK_STATUS(live_release(other), REDLOCK_OK);
    CHECK_STATUS(redlock_break(live.client, "broken", NULL), REDLOCK_OK); /* nothing there */
    /* Keys on a minority, with different values and foreign tokens. */
    ck_assert(cluster_replies(live.cluster, 0, "OK", "SET rest a"));
    ck_assert(cluster_replies(live.cluster, 1, "OK", "SET rest b"));
    ck_assert(cluster_replies(live.cluster, 2, "OK", "SET rest %b", "\0\r\n\xff", (size_t)4));
    CHECK_STATUS(redlock_break(live.client, "rest", NULL), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A key that another client sets between the inspection and the delete stays. */
START_TEST(breaking_leaves_a_newer_key)
{
    struct outcome outcome = OUTCOME;
    live.node_time_ms = 20000;
    live_connect();
    ck_assert(cluster_replies(live.cluster, 0, "OK", "SET between old"));
    ck_assert(cluster_replies(live.cluster, 1, "OK", "SET between old"));
    live_pause(4, 1); /* so that the inspection does not end yet */
    ck_assert_int_eq(redlock_break_start(live.client, "between", NULL, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_calls(0, "pttl") > 0 && live_calls(1, "pttl") > 0, TIME_LIMIT_MS));
    ck_assert(cluster_replies(live.cluster, 0, "OK", "SET between new"));
    live_resume_all();
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_node_stats(live.client, 0).undos_pending == 0, TIME_LIMIT_MS));
    ck_assert(cluster_replies(live.cluster, 0, "new", "GET between"));
    ck_assert(cluster_replies(live.cluster, 1, "(nil)", "GET between"));
    ck_assert(cluster_replies(live.cluster, 0, "1", "DEL between"));
}
END_TEST

/* Returns the number that `userdata` points to, while the lock is held. */
static int body(redlock_lock_t *lock, void *userdata)
{
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    ck_assert_uint_ge(live_nodes_with("with"), QUORUM);
    return *(int *)userdata;
}

/* Deletes the keys of its own lock. */
static int losing_body(redlock_lock_t *lock, void *userdata)
{
    (void)lock;
    (void)userdata;
    ck_assert(WAIT_UNTIL(live_nodes_with("with") == NODES, TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL with");
    return 5;
}

/* redlock_with() returns what its function returned and always releases: also after a negative
 * result, and with ELOST if the lock was lost meanwhile. Without the lock, the function does not
 * run. */
START_TEST(with_always_releases)
{
    int result = 0, wanted = 42;
    redlock_report_t *report = NULL;
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live_connect();
    CHECK_STATUS(redlock_with(live.client, "with", &opts, &result, &report, body, &wanted),
                 REDLOCK_OK);
    live_keep_report(report);
    ck_assert_int_eq(result, 42);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    wanted = -7;
    CHECK_STATUS(redlock_with(live.client, "with", &opts, &result, NULL, body, &wanted),
                 REDLOCK_OK);
    ck_assert_int_eq(result, -7);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    CHECK_STATUS(redlock_with(live.client, "with", &opts, &result, NULL, losing_body, NULL),
                 REDLOCK_ELOST);
    ck_assert_int_eq(result, 5);
    redlock_lock_t *held = live_lock("with", LONG_TTL_MS);
    result = 99;
    CHECK_STATUS(redlock_with(live.client, "with", &opts, &result, &report, body, &wanted),
                 REDLOCK_ECONTENDED);
    live_keep_report(report);
    ck_assert_int_eq(result, 99); /* the body did not run */
    CHECK_STATUS(live_release(held), REDLOCK_OK);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *handover_suite(void)
{
    Suite *suite = suite_create("handover");
    live_add(suite, "hand-over", a_lock_is_handed_over_by_token);
    live_add(suite, "adopt", nothing_is_adopted_without_the_token);
    live_add(suite, "token", a_lock_is_released_by_token);
    live_add(suite, "release_after", release_after_keeps_the_key_for_a_while);
    live_add(suite, "inspect", inspection_reports_held_and_free);
    live_add(suite, "inspect others", inspection_of_foreign_keys);
    live_add(suite, "break", breaking_deletes_the_inspected_keys);
    live_add(suite, "break, others", breaking_leaves_a_newer_key);
    live_add(suite, "with", with_always_releases);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(handover_suite());
    live_stop_servers();
    return status;
}
