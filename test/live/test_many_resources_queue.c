/* SPDX-License-Identifier: MIT
 * Locks of several resources with other waiters: named in any order, from several clients, in the
 * queues of one client, and next to a holder of one resource that waits for another.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_lock()
 * acquires a lock, which must be granted. live_release() returns the status of one call and keeps
 * its report. wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS() compares two
 * REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h: note_done()
 * stores the result of an asynchronous call in a struct outcome, and outcome_wait() waits for it
 * and returns its status. */
#include "live_events.h"
#include "suite.h"

#include <stdatomic.h>

#define KEPT_MS 300 /* how long a waiter reserves a resource; see core/reservation.h */
#define ROUNDS  12  /* locks that each worker acquires */

/* Lists of one further resource. */
static const char *const A[] = {"queue-a"}, *const B[] = {"queue-b"};

/* Starts an acquisition of `resource` and of also[0] (NULL: none) without a time limit. Its
 * result goes to the outcome. Returns the status of the call. */
static int start(redlock_t *client, const char *resource, const char *const *also,
                 struct outcome *outcome)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.also = also;
    opts.also_count = also != NULL;
    return redlock_acquire_start(client, resource, &opts, note_done, outcome);
}

/* Creates live.client with at most so many waiters per resource. */
static void connect_with_queue_max(uint32_t queue_max)
{
    redlock_config_t *config = live_config();
    ck_assert_int_eq(redlock_config_set_queue_max(config, queue_max), REDLOCK_OK);
    live.client = live_open(config);
}

/* A thread that acquires and releases a lock again and again. */
struct worker {
    pthread_t thread;
    redlock_t *client;
    const char *resource;
    const char *const *also; /* a second resource; NULL: none */
    bool a, b;               /* whether the lock contains queue-a, queue-b */
    int status;              /* of the first failed call; REDLOCK_OK: none */
};

/* Number of holders of each resource now, and how often there was more than one. */
static atomic_int inside_a, inside_b, overlaps;

/* Notes that the worker holds its resources (`step` 1), or holds them no more (-1). */
static void enter_or_leave(const struct worker *worker, int step)
{
    int others = 0;
    if (worker->a)
        others += atomic_fetch_add(&inside_a, step) != (step > 0 ? 0 : 1);
    if (worker->b)
        others += atomic_fetch_add(&inside_b, step) != (step > 0 ? 0 : 1);
    atomic_fetch_add(&overlaps, others);
}

/* Thread function: acquires and releases the worker's resources ROUNDS times, and notes when it
 * holds them. */
static void *run_worker(void *userdata)
{
    struct worker *worker = userdata;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = wait_scaled_ms(12 * TIME_LIMIT_MS);
    opts.also = worker->also;
    opts.also_count = worker->also != NULL;
    for (unsigned i = 0; i < ROUNDS && worker->status == REDLOCK_OK; i++) {
        redlock_lock_t *lock = NULL;
        worker->status = redlock_acquire(worker->client, worker->resource, &opts, &lock, NULL);
        if (worker->status != REDLOCK_OK)
            break;
        enter_or_leave(worker, 1);
        wait_pause();
        enter_or_leave(worker, -1);
        worker->status = redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    return NULL;
}

/* (A,B) and (B,A), A alone and B alone, from two clients: all get their locks, one at a time. */
START_TEST(locks_in_any_order_are_all_granted)
{
    live_connect();
    redlock_t *other = live_open(live_config());
    struct worker workers[] = {
        {.client = live.client, .resource = "queue-a", .also = B, .a = true, .b = true},
        {.client = other, .resource = "queue-b", .also = A, .a = true, .b = true},
        {.client = live.client, .resource = "queue-a", .a = true},
        {.client = other, .resource = "queue-a", .a = true},
        {.client = live.client, .resource = "queue-b", .b = true},
        {.client = other, .resource = "queue-b", .b = true},
    };
    const unsigned count = sizeof workers / sizeof workers[0];
    atomic_store(&overlaps, 0);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
    for (unsigned i = 0; i < count; i++)
        ck_assert_msg(workers[i].status == REDLOCK_OK, "worker %u: %s", i,
                      redlock_error_name(workers[i].status));
    ck_assert_int_eq(atomic_load(&overlaps), 0);
    (void)redlock_shutdown(other, wait_scaled_ms(TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_free(other), REDLOCK_OK);
}
END_TEST

/* A waiter for two resources reserves the free one in the queues of its client, but only for a
 * while, because a holder of the other one may need it. */
START_TEST(a_reservation_ends_after_a_while)
{
    struct outcome both = OUTCOME, a = OUTCOME, c = OUTCOME;
    live_connect();
    redlock_lock_t *held = live_lock("queue-b", LONG_TTL_MS);
    const uint64_t attempts_before = live_stats(live.client).attempts, from_ms = wait_now_ms();
    ck_assert_int_eq(start(live.client, "queue-b", A, &both), REDLOCK_OK);
    ck_assert_int_eq(start(live.client, "queue-a", NULL, &a), REDLOCK_OK);
    ck_assert_int_eq(start(live.client, "queue-c", NULL, &c), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &c), REDLOCK_OK); /* not reserved */
    ck_assert_uint_eq(live_stats(live.client).attempts, attempts_before + 1 + outcome_calls(&a));
    /* The reservation of A ends after KEPT_MS. */
    CHECK_STATUS(outcome_wait(live.client, &a), REDLOCK_OK);
    ck_assert_uint_ge(wait_now_ms() - from_ms + 10, KEPT_MS);
    ck_assert_uint_eq(outcome_calls(&both), 0);
    CHECK_STATUS(live_release(a.lock), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &both), REDLOCK_OK);
    CHECK_STATUS(live_release(both.lock), REDLOCK_OK);
    CHECK_STATUS(live_release(c.lock), REDLOCK_OK);
}
END_TEST

/* A holder of one resource gets the other one although another lock waits for both. */
START_TEST(a_second_lock_passes_a_waiter_for_both)
{
    struct outcome both = OUTCOME, second = OUTCOME;
    live_connect();
    redlock_lock_t *first = live_lock("queue-a", LONG_TTL_MS);
    ck_assert_int_eq(start(live.client, "queue-a", B, &both), REDLOCK_OK);
    ck_assert_int_eq(start(live.client, "queue-b", NULL, &second), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &second), REDLOCK_OK);
    ck_assert_uint_eq(outcome_calls(&both), 0);
    CHECK_STATUS(live_release(second.lock), REDLOCK_OK);
    CHECK_STATUS(live_release(first), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &both), REDLOCK_OK);
    CHECK_STATUS(live_release(both.lock), REDLOCK_OK);
}
END_TEST

/* When the first waiter in the queues is canceled, the next one begins at once. */
START_TEST(a_canceled_waiter_frees_its_reservation)
{
    struct outcome both = OUTCOME, a = OUTCOME;
    redlock_cancel_t *cancel;
    live_connect();
    ck_assert_int_eq(redlock_cancel_new(&cancel, live.client), REDLOCK_OK);
    redlock_lock_t *held = live_lock("queue-b", LONG_TTL_MS);
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    opts.wait_ms = REDLOCK_WAIT_FOREVER;
    opts.also = A;
    opts.also_count = 1;
    opts.cancel = cancel;
    ck_assert_int_eq(redlock_acquire_start(live.client, "queue-b", &opts, note_done, &both),
                     REDLOCK_OK);
    ck_assert_int_eq(start(live.client, "queue-a", NULL, &a), REDLOCK_OK);
    redlock_cancel_trigger(cancel);
    CHECK_STATUS(outcome_wait(live.client, &both), REDLOCK_ECANCELED);
    CHECK_STATUS(outcome_wait(live.client, &a), REDLOCK_OK);
    CHECK_STATUS(live_release(a.lock), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    redlock_cancel_free(cancel);
}
END_TEST

/* If the queue of one of two resources is full, the lock is refused with EQUEUEFULL and leaves
 * no entry in the queue of the other resource. */
START_TEST(the_queue_of_each_resource_has_its_limit)
{
    struct outcome first = OUTCOME, both = OUTCOME, more = OUTCOME;
    connect_with_queue_max(1);
    redlock_lock_t *held = live_lock("queue-b", LONG_TTL_MS);
    ck_assert_int_eq(start(live.client, "queue-b", NULL, &first), REDLOCK_OK);
    /* One queue is full: the lock is refused, and has no entry in the other queue. */
    ck_assert_int_eq(start(live.client, "queue-a", B, &both), REDLOCK_EQUEUEFULL);
    ck_assert_int_eq(start(live.client, "queue-a", NULL, &more), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &more), REDLOCK_OK);
    CHECK_STATUS(live_release(more.lock), REDLOCK_OK);
    CHECK_STATUS(live_release(held), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &first), REDLOCK_OK);
    CHECK_STATUS(live_release(first.lock), REDLOCK_OK);
}
END_TEST

/* A shutdown ends a waiting lock of two resources with ECLOSED. */
START_TEST(a_shutdown_ends_waiters)
{
    struct outcome both = OUTCOME;
    live_connect();
    redlock_lock_t *held = live_lock("queue-b", LONG_TTL_MS);
    ck_assert_int_eq(start(live.client, "queue-a", B, &both), REDLOCK_OK);
    ck_assert_int_eq(redlock_shutdown(live.client, wait_scaled_ms(TIME_LIMIT_MS)), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(live.client, &both), REDLOCK_ECLOSED);
    redlock_lock_free(held);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *queue_suite(void)
{
    Suite *suite = suite_create("live_many_resources_queue");
    live_add(suite, "crossing", locks_in_any_order_are_all_granted);
    live_add(suite, "behind", a_reservation_ends_after_a_while);
    live_add(suite, "nested", a_second_lock_passes_a_waiter_for_both);
    live_add(suite, "cancel", a_canceled_waiter_frees_its_reservation);
    live_add(suite, "queue_max", the_queue_of_each_resource_has_its_limit);
    live_add(suite, "shutdown", a_shutdown_ends_waiters);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(queue_suite());
    live_stop_servers();
    return status;
}
