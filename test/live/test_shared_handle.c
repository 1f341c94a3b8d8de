/* SPDX-License-Identifier: MIT
 * A lock with several users in one process: it ends with the last release. Everything else that
 * ends it ends it for all users. Also the lock that is released at the end of its scope.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_lock() acquires a lock, which must be granted.
 * WAIT_UNTIL(condition, ms) polls and returns false after the deadline. CHECK_STATUS() compares
 * two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. */
#include "live.h"
#include "suite.h"

#include <stdatomic.h>

/* The callbacks that have run. */
struct seen {
    atomic_uint calls, released; /* of the completion callback; events RELEASED */
    int status;
    redlock_lock_t *lock;
};

/* Callback of a release: stores its status and lock in the struct seen `userdata`, and counts
 * the call. */
static void on_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                    void *userdata)
{
    struct seen *seen = userdata;

    (void)rl;
    (void)report;
    seen->status = status;
    seen->lock = lock;
    atomic_fetch_add(&seen->calls, 1);
}

/* Event function that counts the events RELEASED. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    struct seen *seen = userdata;

    (void)rl;
    if (event->kind == REDLOCK_EVENT_RELEASED)
        atomic_fetch_add(&seen->released, 1);
}

/* Declares further users of the lock. */
static void retain(redlock_lock_t *lock, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        CHECK_STATUS(redlock_lock_retain(lock), REDLOCK_OK);
}

/* Checks that the lock is held. */
static void check_held(redlock_lock_t *lock)
{
    CHECK_STATUS(redlock_lock_check(lock, 1), REDLOCK_OK);
    ck_assert_uint_ge(live_nodes_with("shared"), QUORUM);
}

/* A lock that was retained twice stays held over two releases and is released by the third. */
START_TEST(the_last_release_releases_the_lock)
{
    redlock_lock_t *lock;
    redlock_report_t *report;

    live_connect();
    lock = live_lock("shared", LONG_TTL_MS);
    retain(lock, 2);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_STATUS(redlock_release(lock, &report), REDLOCK_OK);
        live_keep_report(report);
        ck_assert_uint_gt(live_info().validity_ms, 0);
        check_held(lock);
        CHECK_STATUS(redlock_extend(lock, 0, NULL), REDLOCK_OK);
    }
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    CHECK_STATUS(redlock_lock_retain(lock), REDLOCK_ELOST);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_ELOST);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert_uint_eq(live_stats(live.client).released, 1);
}
END_TEST

/* Each of two releases calls its callback with OK, and only the last one has the event RELEASED. */
START_TEST(each_release_has_a_callback)
{
    struct seen seen = {.calls = 0};
    redlock_lock_t *lock;

    live.event_fn = on_event;
    live.event_userdata = &seen;
    live_connect();
    lock = live_lock("shared", LONG_TTL_MS);
    retain(lock, 1);
    CHECK_STATUS(redlock_release_start(lock, on_done, &seen), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&seen.calls) == 1, TIME_LIMIT_MS));
    CHECK_STATUS(seen.status, REDLOCK_OK);
    ck_assert_ptr_eq(seen.lock, lock);
    check_held(lock);
    ck_assert_uint_eq(atomic_load(&seen.released), 0);
    CHECK_STATUS(redlock_release_start(lock, on_done, &seen), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&seen.calls) == 2, TIME_LIMIT_MS));
    CHECK_STATUS(seen.status, REDLOCK_OK);
    ck_assert(WAIT_UNTIL(atomic_load(&seen.released) == 1, TIME_LIMIT_MS));
    redlock_lock_free(lock);
}
END_TEST

/* A release with a delay by one of two users changes nothing; that by the last one ends the
 * lock. */
START_TEST(only_the_delay_of_the_last_release_counts)
{
    redlock_lock_t *lock;

    live_connect();
    lock = live_lock("shared", LONG_TTL_MS);
    retain(lock, 1);
    CHECK_STATUS(redlock_release_after(lock, 1, NULL), REDLOCK_OK);
    check_held(lock);
    CHECK_STATUS(redlock_release_after(lock, 1, NULL), REDLOCK_OK);
    CHECK_STATUS(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* A lock that expires is lost for all users: retaining and releasing return ELOST. */
START_TEST(a_loss_ends_it_for_all_users)
{
    redlock_lock_t *lock;

    live_connect();
    lock = live_lock("shared", live_brief_ms(1200));
    retain(lock, 3);
    ck_assert(WAIT_UNTIL(redlock_lock_check(lock, 0) == REDLOCK_ELOST, TIME_LIMIT_MS));
    ck_assert(WAIT_UNTIL(redlock_lock_retain(lock) == REDLOCK_ELOST, TIME_LIMIT_MS));
    /* Between the deadline and the timer of the I/O thread, votes decide the release. */
    ck_assert(WAIT_UNTIL(live_stats(live.client).lost == 1, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_ELOST);
    redlock_lock_free(lock);
}
END_TEST

/* Detaching the lock ends it for all users, and freeing the handle releases it, however many
 * have retained it. */
START_TEST(detach_and_free_end_it_for_all_users)
{
    redlock_lock_t *lock;

    live_connect();
    lock = live_lock("shared", LONG_TTL_MS);
    retain(lock, 3);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
    CHECK_STATUS(redlock_release(lock, NULL), REDLOCK_ELOST);
    CHECK_STATUS(redlock_release_token(live.client, "shared", redlock_lock_token(lock), NULL),
                 REDLOCK_OK);
    redlock_lock_free(lock);

    lock = live_lock("shared", LONG_TTL_MS);
    retain(lock, 3);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_retain(NULL), REDLOCK_EINVAL);
}
END_TEST

/* Acquires a lock that is released at the end of this function. */
static void work_in_a_scope(void)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    REDLOCK_SCOPED redlock_lock_t *lock = NULL;

    CHECK_STATUS(redlock_acquire(live.client, "shared", &opts, &lock, NULL), REDLOCK_OK);
    check_held(lock);
}

/* A variable with the library's cleanup attribute releases its lock at the end of the scope. */
START_TEST(the_end_of_a_scope_releases)
{
    live_connect();
    work_in_a_scope();
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *shared_handle_suite(void)
{
    Suite *suite = suite_create("live_shared_handle");

    live_add(suite, "last release", the_last_release_releases_the_lock);
    live_add(suite, "callbacks", each_release_has_a_callback);
    live_add(suite, "delay", only_the_delay_of_the_last_release_counts);
    live_add(suite, "loss", a_loss_ends_it_for_all_users);
    live_add(suite, "detach and free", detach_and_free_end_it_for_all_users);
    live_add(suite, "scope", the_end_of_a_scope_releases);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run(shared_handle_suite());
    live_stop_servers();
    return status;
}
