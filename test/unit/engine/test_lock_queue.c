/* SPDX-License-Identifier: MIT
 * The queue of one client: locks of one and of several resources in the same queues, slots of a
 * semaphore that other locks of the client release, and probes of slots. The engine's servers never
 * reply. */
#include "engine/engine.h"
#include "engine/slot.h"
#include "suite.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES     3
#define LOCKS_MAX 4
#define PERMITS   200

static struct rl_mem mem;
static struct rl_log silent_log; /* logs nothing */
static struct rl_engine engine;
static struct rl_node_spec specs[NODES]; /* the configured addresses */
static uint64_t now_ns;                  /* virtual time */
static struct rl_lock *locks[LOCKS_MAX]; /* the locks of the test, freed by teardown() */
static unsigned lock_count;              /* number of elements of locks in use */

/* Does nothing: no connection is ever established. */
static void on_open(void *ctx, unsigned node)
{
    (void)ctx;
    (void)node;
}

/* Takes all bytes and drops them. Returns their number. */
static ssize_t on_send(void *ctx, unsigned node, const char *bytes, size_t len)
{
    (void)ctx;
    (void)node;
    (void)bytes;
    return (ssize_t)len;
}

/* Does nothing. */
static void on_close(void *ctx, unsigned node, bool abortive)
{
    (void)ctx;
    (void)node;
    (void)abortive;
}

/* Returns the test's virtual time for both clocks. */
static struct rl_now read_clock(void *ctx)
{
    (void)ctx;
    return (struct rl_now){.boot_ns = now_ns, .raw_ns = now_ns};
}

/* Returns the test's wall clock in us, which runs with the virtual time. */
static uint64_t wall_us(void *ctx)
{
    (void)ctx;
    return now_ns / RL_US;
}

/* Does nothing: no bytes wait in sockets. */
static void do_nothing(void *ctx)
{
    (void)ctx;
}

/* Ignores the wish for a timer: the test decides when the engine runs. */
static void no_timer(void *ctx, uint64_t boot_ns)
{
    (void)ctx;
    (void)boot_ns;
}

/* Fixture: opens an engine whose servers never reply. */
static void setup(void)
{
    const struct rl_env env = {
        .transport = {.open = on_open, .send = on_send, .close = on_close},
        .entropy = rl_entropy_kernel(),
        .now = read_clock,
        .wall_us = wall_us,
        .catch_up = do_nothing,
        .wake_at = no_timer,
    };
    const struct rl_engine_params params = {
        .mem = &mem,
        .log = &silent_log,
        .specs = specs,
        .nodes = NODES,
        .admission = {.max_ttl_ns = 10 * RL_SECOND},
        .connect_timeout_ns = 60 * RL_SECOND,
        .node_timeout_ns = 60 * RL_SECOND,
        .heartbeat_ns = 3600 * RL_SECOND,
        .backoff = {.min_ns = 10 * RL_MS, .max_ns = 200 * RL_MS},
    };

    now_ns = 1000 * RL_SECOND;
    lock_count = 0;
    mem = rl_mem_libc();
    for (unsigned i = 0; i < NODES; i++) {
        snprintf(specs[i].host, sizeof specs[i].host, "node%u", i);
        specs[i].port = 6379;
        rl_node_spec_name(&specs[i]);
    }
    ck_assert_int_eq(rl_random_init(), REDLOCK_OK);
    ck_assert_int_eq(rl_engine_open(&engine, &params, &env), REDLOCK_OK);
    rl_engine_refresh(&engine);
    rl_engine_tick(&engine);
    rl_engine_send(&engine);
}

/* Fixture: ends and frees all locks of the test and closes the engine. */
static void teardown(void)
{
    struct rl_announcement announcement;

    rl_engine_end_locks(&engine);
    while (rl_announcements_take(rl_engine_announcements(&engine), &announcement) != NULL)
        continue;
    while (lock_count > 0) {
        rl_lock_dispose(&engine, locks[--lock_count]);
        free(locks[lock_count]);
    }
    rl_engine_close(&engine);
}

/* Starts to acquire one resource, a second one if `second` is not NULL, or a permit of the first.
 */
static struct rl_lock *start(const char *first, const char *second, uint16_t permits)
{
    struct rl_lease_params params = {
        .terms =
            {
                .kind = RL_LEASE_ACQUIRE,
                .nodes = NODES,
                .quorum = 2,
                .permits = permits,
                .ttl_ns = 10 * RL_SECOND,
                .validity_min_ns = RL_MS,
                .backoff = engine.params.backoff,
            },
        .wait_ns = RL_NEVER,
    };
    const struct rl_arg keys[] = {{first, strlen(first)},
                                  {second, second != NULL ? strlen(second) : 0}};
    struct rl_storage storage = rl_storage_for(&params);
    struct rl_lock *lock = calloc(1, sizeof *lock + storage.size);

    ck_assert_ptr_nonnull(lock);
    ck_assert_uint_lt(lock_count, LOCKS_MAX);
    storage.at = lock + 1;
    ck_assert_int_eq(rl_lock_start_multi(&engine, lock, &params, &storage, keys,
                                         second != NULL ? 2 : 1, (struct rl_arg){NULL, 0}),
                     REDLOCK_OK);
    return locks[lock_count++] = lock;
}

/* Cancels a lock that waits. */
static void cancel(struct rl_lock *lock)
{
    rl_lock_event(&engine, lock, RL_EVENT_CANCEL, 0, REDLOCK_ECANCELED);
    ck_assert_uint_eq(lock->lease.state, RL_STATE_ENDED);
}

/* Both resources are released in one turn, in either order. The lock that was queued first at one
 * of them starts first. */
START_TEST(a_lock_of_two_resources_starts_in_order)
{
    struct rl_lock *first = start("a", NULL, 0), *other = start("b", NULL, 0);
    struct rl_lock *single = start("a", NULL, 0), *both = start("a", "b", 0);

    ck_assert_uint_eq(single->lease.state, RL_STATE_QUEUED);
    ck_assert_uint_eq(both->lease.state, RL_STATE_QUEUED);
    cancel(_i == 0 ? first : other);
    cancel(_i == 0 ? other : first);
    rl_engine_tick(&engine);
    rl_engine_send(&engine);
    ck_assert_uint_eq(single->lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(both->lease.state, RL_STATE_QUEUED);
    cancel(single);
    rl_engine_tick(&engine);
    rl_engine_send(&engine);
    ck_assert_uint_eq(both->lease.state, RL_STATE_ACQUIRING);
    ck_assert(rl_queue_is_in_front(both));
}
END_TEST

/* The first lock in the queue is notified of every released slot, not only of the last one. */
START_TEST(two_slots_released_in_one_turn_are_both_notified)
{
    struct rl_lock *waits = start("pool", NULL, 8);
    struct rl_permit *permit = waits->lease.permit;

    permit->known = 0xff;
    rl_resource_note_release(&engine, waits->queue_entry.resource, 3);
    rl_resource_note_release(&engine, waits->queue_entry.resource, _i == 0 ? 5 : 3);
    rl_engine_tick(&engine);
    rl_engine_send(&engine);
    for (unsigned bit = 0; bit < 8; bit++) {
        const unsigned slot = rl_permit_slot(&waits->lease, bit);
        const bool released = slot == 3 || (_i == 0 && slot == 5);
        const bool known = (permit->known >> bit & 1) != 0 && (permit->open >> bit & 1) == 0;
        /* With several released slots the lock probes all slots again. */
        ck_assert_msg(!released || !known || slot == permit->slot, "slot %u is not known", slot);
    }
    ck_assert_int_eq(permit->known == 0, _i == 0);
}
END_TEST

/* Each bit of a window means another slot when the window has moved. */
START_TEST(each_probe_has_the_key_of_its_slot)
{
    struct rl_lock *lock = start("pool", NULL, PERMITS);
    struct rl_effects fx = {.probe = RL_NODE(0), .slots = 0x7};
    char name[RL_SLOT_KEY_MAX];

    for (unsigned window = 0; window < 4; window++) {
        lock->lease.permit->start = (uint16_t)(window / 2 * 64); /* each window twice */
        rl_slot_probe(&engine, lock, &fx);
        for (unsigned bit = 0; bit < 3; bit++) {
            const unsigned slot = rl_permit_slot(&lock->lease, bit);
            const struct rl_arg key = rl_claim_key(lock->probes[bit]);
            const struct rl_arg expected = rl_slot_key(name, (struct rl_arg){"pool", 4}, slot);
            ck_assert_uint_eq(lock->probes[bit]->slot, slot);
            ck_assert_msg(key.len == expected.len && memcmp(key.data, expected.data, key.len) == 0,
                          "slot %u is asked about as %.*s", slot, (int)key.len, key.data);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_queue");
    TCase *tcase = tcase_create("queue");

    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_lock_of_two_resources_starts_in_order, 0, 2);
    tcase_add_loop_test(tcase, two_slots_released_in_one_turn_are_both_notified, 0, 2);
    tcase_add_test(tcase, each_probe_has_the_key_of_its_slot);
    return suite_run(suite);
}
