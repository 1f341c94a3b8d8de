/* SPDX-License-Identifier: MIT
 * Locks of several resources: all of them or none are held, also next to locks of one resource.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_acquire(), live_extend() and live_release() return the status
 * of one call and keep its report, which live_text() reads. WAIT_UNTIL(condition, ms) polls and
 * returns false after the deadline. CHECK_STATUS() compares two REDLOCK_* codes. LONG_TTL_MS is a
 * TTL that no case reaches. From live_events.h: note_done() stores the result of an asynchronous
 * call in a struct outcome, and outcome_wait() waits for it and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdio.h>

/* Further resources of the lock "many-b". */
static const char *const ALSO[] = {"many-a", "many-c"};
static const char *const ALL[] = {"many-b", "many-a", "many-c"}; /* in the order of the options */

/* Returns the options of a lock of all three resources. */
static redlock_opts_t with_also(uint64_t wait_ms)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_ms;
    opts.also = ALSO;
    opts.also_count = 2;
    return opts;
}

/* Acquires "many-b" and the other names of `opts`. Stores the handle, keeps the report and
 * returns the status. */
static int acquire(const redlock_opts_t *opts, redlock_lock_t **ret)
{
    redlock_report_t *report = NULL;
    *ret = NULL;
    const int status = redlock_acquire(live.client, "many-b", opts, ret, &report);
    live_keep_report(report);
    return status;
}

/* Acquires the lock of all three resources, and waits until all nodes have the keys. */
static redlock_lock_t *acquire_all(void)
{
    const redlock_opts_t opts = with_also(0);
    redlock_lock_t *lock;
    CHECK_STATUS(acquire(&opts, &lock), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(WAIT_UNTIL(live_nodes_with(ALL[i]) == NODES, TIME_LIMIT_MS));
    return lock;
}

/* Returns the time to live of the key on the server in ms; -2: there is no such key. */
static int64_t pttl(unsigned node, const char *key)
{
    return cluster_integer(live.cluster, node, "PTTL %s", key);
}

/* Three resources are acquired, extended and released together: every server has all keys with
 * one token, and no other client gets any of them meanwhile. */
START_TEST(all_keys_are_set_together)
{
    live_connect();
    redlock_lock_t *lock = acquire_all(), *other = NULL;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_str_eq(redlock_lock_resource(lock, i), ALL[i]);
        for (unsigned node = 0; node < NODES; node++) {
            ck_assert(
                cluster_replies(live.cluster, node, redlock_lock_token(lock), "GET %s", ALL[i]));
            /* A foreign client gets none of them. */
            ck_assert(cluster_replies(live.cluster, node, "(nil)", "SET %s x NX PX 9", ALL[i]));
        }
        CHECK_STATUS(live_acquire(ALL[i], LONG_TTL_MS, 0, &other), REDLOCK_ECONTENDED);
    }
    ck_assert_ptr_null(redlock_lock_resource(lock, 3));
    ck_assert_ptr_null(redlock_lock_resource(NULL, 0));
    for (unsigned node = 0; node < NODES; node++)
        ck_assert(cluster_replies(live.cluster, node, "1", "PEXPIRE many-a 20000"));
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    for (unsigned node = 0; node < NODES; node++)
        ck_assert(WAIT_UNTIL(pttl(node, "many-a") > 20000 && pttl(node, "many-c") > 20000,
                             TIME_LIMIT_MS));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire("many-c", LONG_TTL_MS, 0, &other), REDLOCK_OK);
    CHECK_STATUS(live_release(other), REDLOCK_OK);
}
END_TEST

/* The foreign key has any type, and any position in the list. */
START_TEST(one_foreign_key_denies_all)
{
    const redlock_opts_t opts = with_also(0);
    redlock_lock_t *lock;
    char command[64];
    live_connect();
    snprintf(command, sizeof command, _i % 2 == 0 ? "SET %s foreign" : "LPUSH %s x", ALL[_i / 2]);
    cluster_command_all(live.cluster, command);
    CHECK_STATUS(acquire(&opts, &lock), REDLOCK_ECONTENDED);
    ck_assert_msg(strstr(live_text(), ALL[_i / 2]) != NULL, "%s", live_text());
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(live_nodes_with(ALL[i]), (int)i == _i / 2 ? NODES : 0);
    snprintf(command, sizeof command, "DEL %s", ALL[_i / 2]);
    cluster_command_all(live.cluster, command);
    CHECK_STATUS(acquire(&opts, &lock), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Of two names, one begins with the other: the report names the one that was taken. */
START_TEST(the_taken_name_may_begin_with_another_one)
{
    const char *const longer[] = {"many-bx"};
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock;
    opts.also = longer;
    opts.also_count = 1;
    live_connect();
    cluster_command_all(live.cluster, _i == 0 ? "SET many-bx foreign" : "SET many-b foreign");
    CHECK_STATUS(acquire(&opts, &lock), REDLOCK_ECONTENDED);
    ck_assert_msg(strstr(live_text(), _i == 0 ? "('many-bx')" : "('many-b')") != NULL, "%s",
                  live_text());
    cluster_command_all(live.cluster, _i == 0 ? "DEL many-bx" : "DEL many-b");
}
END_TEST

/* The waiter tracks the key that denied it, and then the next one. */
START_TEST(a_waiter_waits_for_each_key)
{
    const redlock_opts_t opts = with_also(REDLOCK_WAIT_FOREVER);
    struct outcome outcome = OUTCOME;
    live_connect();
    cluster_command_all(live.cluster, "SET many-a foreign");
    cluster_command_all(live.cluster, "SET many-c foreign");
    ck_assert_int_eq(redlock_acquire_start(live.client, "many-b", &opts, note_done, &outcome),
                     REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts >= 1, TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "DEL many-a");
    ck_assert(WAIT_UNTIL(live_stats(live.client).attempts >= 3, TIME_LIMIT_MS));
    ck_assert_uint_eq(outcome_calls(&outcome), 0);
    ck_assert_uint_eq(live_nodes_with("many-b"), 0);
    cluster_command_all(live.cluster, "DEL many-c");
    CHECK_STATUS(outcome_wait(live.client, &outcome), REDLOCK_OK);
    CHECK_STATUS(live_release(outcome.lock), REDLOCK_OK);
}
END_TEST

/* Checks that an acquisition with these options is refused, with these words in the report. */
static void check_refused(const redlock_opts_t *opts, const char *words)
{
    redlock_lock_t *lock;
    CHECK_STATUS(acquire(opts, &lock), REDLOCK_EINVAL);
    ck_assert_msg(strstr(live_text(), words) != NULL, "%s", live_text());
    ck_assert_ptr_null(lock);
}

/* A list of names that is too long, missing, or has a name twice or an empty one is refused, and
 * so is a fencing token for several resources. */
START_TEST(invalid_lists_are_refused)
{
    const char *names[REDLOCK_RESOURCES_MAX];
    char texts[REDLOCK_RESOURCES_MAX][8];
    redlock_opts_t opts = with_also(0);
    live_connect();
    for (unsigned i = 0; i < REDLOCK_RESOURCES_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "n%u", i);
        names[i] = texts[i];
    }
    opts.flags = REDLOCK_FLAG_FENCE;
    check_refused(&opts, "fencing token");
    opts.flags = 0;
    opts.also = names;
    opts.also_count = REDLOCK_RESOURCES_MAX;
    check_refused(&opts, "64 further resources");
    opts.also = NULL;
    check_refused(&opts, "no list");
    opts.also = names;
    opts.also_count = 5;
    names[3] = "many-b";
    check_refused(&opts, "'many-b' is named twice");
    names[3] = "n1";
    check_refused(&opts, "'n1' is named twice");
    names[3] = "";
    check_refused(&opts, "number 4 is empty");
    names[3] = NULL;
    check_refused(&opts, "number 4 is empty");
    CHECK_STATUS(redlock_release_token_all(live.client, names, 0, "token", NULL), REDLOCK_EINVAL);
    CHECK_STATUS(redlock_release_token_all(live.client, NULL, 3, "token", NULL), REDLOCK_EINVAL);
    CHECK_STATUS(redlock_release_token_all(live.client, names, 5, "token", NULL), REDLOCK_EINVAL);
    ck_assert_uint_eq(cluster_count_all_keys(live.cluster), 0);
}
END_TEST

/* A lock of REDLOCK_RESOURCES_MAX names of the greatest length is acquired, excludes others from
 * each name, and is extended and released. */
START_TEST(the_most_and_longest_names_work)
{
    static char names[REDLOCK_RESOURCES_MAX][REDLOCK_RESOURCE_LEN_MAX + 1];
    const char *also[REDLOCK_RESOURCES_MAX];
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_lock_t *lock = NULL, *other = NULL;
    live_connect();
    for (unsigned i = 0; i < REDLOCK_RESOURCES_MAX; i++) {
        memset(names[i], 'x', REDLOCK_RESOURCE_LEN_MAX);
        names[i][0] = (char)('0' + i);
        also[i] = names[i];
    }
    opts.also = also + 1;
    opts.also_count = REDLOCK_RESOURCES_MAX - 1;
    CHECK_STATUS(redlock_acquire(live.client, names[0], &opts, &lock, NULL), REDLOCK_OK);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(cluster_count_keys(live.cluster, i) == REDLOCK_RESOURCES_MAX,
                             TIME_LIMIT_MS));
    CHECK_STATUS(live_acquire(names[63], LONG_TTL_MS, 0, &other), REDLOCK_ECONTENDED);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Adopts "many-b" and the names in `also` with the token. Stores the handle (NULL after a
 * failure), keeps the report and returns the status. */
static int adopt_all(const char *const *also, size_t count, const char *token, redlock_lock_t **ret)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    redlock_report_t *report = NULL;
    opts.also = also;
    opts.also_count = count;
    *ret = NULL;
    const int status = redlock_adopt(live.client, "many-b", token, &opts, ret, &report);
    live_keep_report(report);
    return status;
}

/* A detached lock of three names is adopted with all names, not with one too many, and released
 * by its token. A wrong token deletes nothing. If only one of the keys has the token, the
 * release returns ELOST but deletes this key. */
START_TEST(adopted_and_released_by_token)
{
    static const char *const more[] = {"many-a", "many-c", "many-d"};
    char token[64];
    live_connect();
    redlock_lock_t *given = acquire_all(), *taken;
    snprintf(token, sizeof token, "%s", redlock_lock_token(given));
    CHECK_STATUS(redlock_lock_detach(given), REDLOCK_OK);
    redlock_lock_free(given);
    CHECK_STATUS(adopt_all(more, 3, token, &taken), REDLOCK_ELOST); /* one too many */
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(live_nodes_with(ALL[i]), NODES); /* no key was deleted */
    CHECK_STATUS(adopt_all(ALSO, 2, token, &taken), REDLOCK_OK);
    CHECK_STATUS(live_extend(taken, 0), REDLOCK_OK);
    ck_assert_str_eq(redlock_lock_resource(taken, 2), "many-c");
    CHECK_STATUS(redlock_lock_detach(taken), REDLOCK_OK);
    redlock_lock_free(taken);
    CHECK_STATUS(redlock_release_token_all(live.client, ALL, 3, "wrong", NULL), REDLOCK_ELOST);
    ck_assert_uint_eq(live_nodes_with("many-c"), NODES);
    CHECK_STATUS(redlock_release_token_all(live.client, ALL, 3, token, NULL), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    CHECK_STATUS(redlock_release_token_all(live.client, ALL, 3, token, NULL), REDLOCK_ELOST);
    /* Only one key has the token: the lock is not held, but the key is deleted. */
    cluster_command_all(live.cluster, "SET many-b half");
    CHECK_STATUS(redlock_release_token_all(live.client, ALL, 3, "half", NULL), REDLOCK_ELOST);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A release with a delay of 10 s leaves all keys with at most 10 s to live. */
START_TEST(release_after_keeps_all_for_a_while)
{
    live_connect();
    redlock_lock_t *lock = acquire_all();
    CHECK_STATUS(redlock_release_after(lock, 10000, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    for (unsigned node = 0; node < NODES; node++) {
        for (unsigned i = 0; i < 3; i++)
            ck_assert(WAIT_UNTIL(pttl(node, ALL[i]) <= 10000, TIME_LIMIT_MS));
        ck_assert_int_gt(pttl(node, "many-a"), 0);
        ck_assert_int_eq(cluster_integer(live.cluster, node, "DEL many-a many-b many-c"), 3);
    }
}
END_TEST

/* An operator breaks the lock of one resource: the whole lock is lost. */
START_TEST(breaking_one_is_the_loss_of_all)
{
    live_connect();
    redlock_lock_t *lock = acquire_all();
    CHECK_STATUS(redlock_break(live.client, ALL[_i], NULL), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_nodes_with(ALL[_i]) == 0, TIME_LIMIT_MS));
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_ELOST);
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS)); /* the remaining keys were deleted */
    redlock_lock_free(lock);
}
END_TEST

/* One node has lost one key: an extension sets it again, and does not shorten the others. */
START_TEST(a_missing_key_is_healed)
{
    live_connect();
    redlock_lock_t *lock = acquire_all();
    ck_assert(cluster_replies(live.cluster, 2, "1", "DEL many-a"));
    ck_assert(cluster_replies(live.cluster, 2, "1", "PEXPIRE many-c 90000"));
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_has_key(2, "many-a"), TIME_LIMIT_MS));
    ck_assert_int_gt(pttl(2, "many-c"), 60000);
    ck_assert(cluster_replies(live.cluster, 2, redlock_lock_token(lock), "GET many-a"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* On one node a foreign client has set one of the keys: the release deletes the others there. */
START_TEST(a_release_deletes_the_remaining_keys)
{
    live_connect();
    redlock_lock_t *lock = acquire_all();
    ck_assert(cluster_replies(live.cluster, 2, "OK", "SET many-a foreign"));
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    /* After the second extension, the node has refused to heal the key for certain. */
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    ck_assert(live_has_key(2, "many-c"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(!live_has_key(2, "many-c") && !live_has_key(2, "many-b"), TIME_LIMIT_MS));
    ck_assert(cluster_replies(live.cluster, 2, "foreign", "GET many-a"));
    ck_assert(cluster_replies(live.cluster, 2, "1", "DEL many-a"));
}
END_TEST

/* Servers without memory still extend and release a lock of several resources, and refuse a new
 * one. */
START_TEST(full_servers_extend_and_release)
{
    const redlock_opts_t opts = with_also(0);
    redlock_lock_t *none;
    live_connect();
    redlock_lock_t *lock = acquire_all();
    cluster_command_all(live.cluster, "CONFIG SET maxmemory 1");
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_OK);
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    CHECK_STATUS(acquire(&opts, &none), REDLOCK_ENOQUORUM);
    ck_assert_uint_eq(cluster_count_all_keys(live.cluster), 0);
    cluster_command_all(live.cluster, "CONFIG SET maxmemory 0");
}
END_TEST

/* Checks that all keys are set while the body runs. */
static int body(redlock_lock_t *lock, void *userdata)
{
    *(const char **)userdata = redlock_lock_resource(lock, 1);
    return live_nodes_with("many-a") >= QUORUM && live_nodes_with("many-c") >= QUORUM ? 7 : 0;
}

/* redlock_with() acquires all names, runs its function and releases all. */
START_TEST(with_acquires_and_releases_all)
{
    const redlock_opts_t opts = with_also(0);
    const char *second = NULL;
    int result = 0;
    live_connect();
    CHECK_STATUS(redlock_with(live.client, "many-b", &opts, &result, NULL, body, (void *)&second),
                 REDLOCK_OK);
    ck_assert_int_eq(result, 7);
    ck_assert_ptr_nonnull(second);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *many_suite(void)
{
    Suite *suite = suite_create("live_many_resources");
    live_add(suite, "together", all_keys_are_set_together);
    live_add_each(suite, "taken", one_foreign_key_denies_all, 6);
    live_add_each(suite, "prefix", the_taken_name_may_begin_with_another_one, 2);
    live_add(suite, "wait", a_waiter_waits_for_each_key);
    live_add(suite, "refused", invalid_lists_are_refused);
    live_add(suite, "largest", the_most_and_longest_names_work);
    live_add(suite, "by token", adopted_and_released_by_token);
    live_add(suite, "release_after", release_after_keeps_all_for_a_while);
    live_add_each(suite, "break", breaking_one_is_the_loss_of_all, 3);
    live_add(suite, "heal", a_missing_key_is_healed);
    live_add(suite, "rest", a_release_deletes_the_remaining_keys);
    live_add(suite, "full", full_servers_extend_and_release);
    live_add(suite, "with", with_acquires_and_releases_all);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(many_suite());
    live_stop_servers();
    return status;
}
