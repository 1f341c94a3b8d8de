/* SPDX-License-Identifier: MIT
 * Locks with a token that the caller has chosen: one attempt uses it, the servers store exactly
 * this token, and no other acquisition may use it while an operation with it is in flight.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_extend() and
 * live_release() return the status of one call and keep its report, which live_info() and
 * live_text() read. live_pause(first, count) stops servers with SIGSTOP. WAIT_UNTIL(condition, ms)
 * polls and returns false after the deadline. CHECK_STATUS() compares two REDLOCK_* codes.
 * LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done() stores the result of
 * an asynchronous call in a struct outcome, and outcome_wait() waits for it and returns its
 * status. From fences.h: fences_begin() removes all fence records, fences_open() creates a client
 * with volatile records, fences_acquire() acquires a fenced lock, and fences_pass() also releases
 * it and returns its fencing token. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"

#include <string.h>

#define LATE_MS 20000 /* the node timeout of a case that stops servers and starts them again */
#define TOKEN   "the caller's own:\t\xc3\xbc" /* a token with bytes that a random one never has */

enum kind { PLAIN, SEVERAL, FENCED, KINDS };

/* Further resources of a lock of several. */
static const char *const ALSO[] = {"own-a", "own-c"};

/* Returns options for a lock of this kind with this token. */
static redlock_opts_t opts_with(const char *token, enum kind kind)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.token = token;
    if (kind == SEVERAL) {
        opts.also = ALSO;
        opts.also_count = 2;
    }
    opts.flags = kind == FENCED ? REDLOCK_FLAG_FENCE : 0;
    return opts;
}

/* Acquires a lock with this token. Keeps the report. */
static int acquire_with(const char *resource, const char *token, enum kind kind,
                        redlock_lock_t **ret)
{
    const redlock_opts_t opts = opts_with(token, kind);
    redlock_report_t *report = NULL;
    *ret = NULL;
    const int status = redlock_acquire(live.client, resource, &opts, ret, &report);
    live_keep_report(report);
    return status;
}

/* Checks that an acquisition with this token is refused because the token is in use. */
static void check_in_use(const char *resource, const char *token)
{
    redlock_lock_t *lock;
    CHECK_STATUS(acquire_with(resource, token, PLAIN, &lock), REDLOCK_EINVAL);
    ck_assert_msg(strstr(live_text(), "opts.token is in use") != NULL, "%s", live_text());
    ck_assert_ptr_null(lock);
}

/* Removes the fence records and creates live.client with volatile ones. */
static void connect_with_fences(void)
{
    cluster_command_all(live.cluster, "DEL " CLUSTER_RECORD);
    live.client = live_open(fences_config());
}

/* All servers store exactly the caller's token, for each kind of lock (_i), also after the
 * caller has overwritten its copy. The lock can be extended, verified and released. */
START_TEST(the_servers_store_the_token)
{
    char copy[] = TOKEN;
    redlock_lock_t *lock;
    connect_with_fences();
    CHECK_STATUS(acquire_with("own-b", copy, (enum kind)_i, &lock), REDLOCK_OK);
    memset(copy, 'x', sizeof copy - 1); /* the client has its own copy */
    ck_assert_str_eq(redlock_lock_token(lock), TOKEN);
    ck_assert_uint_eq(live_info().attempts, 1);
    ck_assert(WAIT_UNTIL(live_nodes_with("own-b") == NODES, TIME_LIMIT_MS));
    for (unsigned i = 0; i < NODES; i++) {
        ck_assert(cluster_replies(live.cluster, i, TOKEN, "GET own-b"));
        if (_i == SEVERAL)
            ck_assert(cluster_replies(live.cluster, i, TOKEN, "GET own-c"));
    }
    if (_i == FENCED)
        ck_assert_uint_gt(redlock_lock_fence(lock), 0);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert_str_eq(redlock_lock_token(lock), TOKEN);
    CHECK_STATUS(redlock_verify(lock, NULL), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A token may have 1024 bytes. */
START_TEST(the_longest_token_is_accepted)
{
    char longest[1025];
    redlock_lock_t *lock;
    memset(longest, 't', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    live_connect();
    CHECK_STATUS(acquire_with("own-b", longest, PLAIN, &lock), REDLOCK_OK);
    ck_assert_str_eq(redlock_lock_token(lock), longest);
    CHECK_STATUS(redlock_release_token(live.client, "own-b", longest, NULL), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_ELOST);
}
END_TEST

/* A process that knows the token can adopt the lock, and release it. */
START_TEST(the_token_allows_adoption_and_release)
{
    redlock_lock_t *lock, *adopted = NULL;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    live_connect();
    CHECK_STATUS(acquire_with("own-b", "known", PLAIN, &lock), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
    redlock_lock_free(lock);
    CHECK_STATUS(redlock_adopt(live.client, "own-b", "known", &opts, &adopted, NULL), REDLOCK_OK);
    redlock_lock_free(adopted);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    opts.token = "other";
    CHECK_STATUS(redlock_acquire(live.client, "own-b", &opts, &lock, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_release_token(live.client, "own-b", "other", NULL), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_ELOST);
}
END_TEST

/* Returns whether an attempt succeeds. Each attempt has a token of its own. */
static bool is_acquired_with_a_new_token(redlock_lock_t **ret)
{
    static unsigned tries;
    char token[24];
    snprintf(token, sizeof token, "fresh %u", tries++);
    return acquire_with("own-b", token, PLAIN, ret) == REDLOCK_OK;
}

/* Each call makes one attempt, also with contention, and leaves no key. */
START_TEST(a_token_is_used_for_one_attempt)
{
    char token[16];
    redlock_lock_t *lock;
    live_connect();
    cluster_command_all(live.cluster, "SET own-b another PX 60000");
    for (unsigned i = 0; i < 8; i++) {
        snprintf(token, sizeof token, "attempt %u", i);
        CHECK_STATUS(acquire_with("own-b", token, PLAIN, &lock), REDLOCK_ECONTENDED);
        ck_assert_uint_eq(live_info().attempts, 1);
    }
    cluster_command_all(live.cluster, "DEL own-b");
    ck_assert(WAIT_UNTIL(is_acquired_with_a_new_token(&lock), TIME_LIMIT_MS));
    ck_assert_uint_eq(live_info().attempts, 1);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A token that a held lock uses, or a released one whose undos are not confirmed, is refused for
 * any name; afterwards it can be used again. */
START_TEST(a_token_in_use_is_refused)
{
    redlock_lock_t *lock, *made = NULL;
    live.node_time_ms = LATE_MS;
    live_connect();
    CHECK_STATUS(acquire_with("own-b", TOKEN, PLAIN, &lock), REDLOCK_OK);
    check_in_use("own-b", TOKEN);
    check_in_use("other", TOKEN);
    const redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    CHECK_STATUS(redlock_acquire(live.client, "made", &opts, &made, NULL), REDLOCK_OK);
    check_in_use("other", redlock_lock_token(made));
    CHECK_STATUS(live_release(made), REDLOCK_OK);
    /* The lock is released, but two servers have not confirmed that they have deleted the key. */
    ck_assert(WAIT_UNTIL(live_nodes_with("own-b") == NODES, TIME_LIMIT_MS));
    live_pause(0, 2);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    check_in_use("own-b", TOKEN);
    live_resume_all();
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(live_node_stats(live.client, i).undos_pending == 0, TIME_LIMIT_MS));
    CHECK_STATUS(acquire_with("own-b", TOKEN, PLAIN, &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* A token is in use during its attempt, and until the undos of a failed attempt are confirmed. */
START_TEST(a_token_of_a_pending_undo_is_refused)
{
    struct outcome outcome = OUTCOME;
    redlock_cancel_t *cancel = NULL;
    redlock_opts_t opts = opts_with(TOKEN, PLAIN);
    live.node_time_ms = LATE_MS;
    live_connect();
    live_pause(0, NODES);
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    opts.cancel = cancel;
    ck_assert_int_eq(redlock_acquire_start(live.client, "own-b", &opts, note_done, &outcome),
                     REDLOCK_OK);
    check_in_use("own-b", TOKEN);
    redlock_cancel_trigger(cancel);
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_ECANCELED);
    check_in_use("own-b", TOKEN);
    live_resume_all();
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    redlock_cancel_free(cancel);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *own_token_suite(void)
{
    Suite *suite = suite_create("live_caller_token");
    live_add_each(suite, "stored", the_servers_store_the_token, KINDS);
    live_add(suite, "longest", the_longest_token_is_accepted);
    live_add(suite, "known", the_token_allows_adoption_and_release);
    live_add(suite, "one attempt", a_token_is_used_for_one_attempt);
    live_add(suite, "once", a_token_in_use_is_refused);
    live_add(suite, "under way", a_token_of_a_pending_undo_is_refused);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(own_token_suite());
    live_stop_servers();
    return status;
}
