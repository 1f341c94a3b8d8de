/* SPDX-License-Identifier: MIT
 * Permits on real servers: never more holders than permits, and never two of one slot, in several
 * processes and with nodes that die. A release wakes a waiter. To other clients a slot is an
 * ordinary lock.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_connect() creates live.client and waits
 * until all nodes are eligible. live_open(live_config()) returns such a client. live_acquire(),
 * live_extend(), live_release() and live_inspect() return the status of one call and keep its
 * report, which live_info() and live_text() read. WAIT_UNTIL(condition, ms) polls and returns
 * false after the deadline. wait_scaled_ms() stretches a time for slow builds. CHECK_STATUS()
 * compares two REDLOCK_* codes. LONG_TTL_MS is a TTL that no case reaches. From live_events.h:
 * note_event() copies each event into its userdata: client_events or lock_events. note_done()
 * stores the result of an asynchronous call in a struct outcome, and outcome_wait() waits for it
 * and returns its status. From fences.h: fences_begin() removes all fence records, fences_open()
 * creates a client with volatile records, fences_acquire() acquires a fenced lock, and
 * fences_pass() also releases it and returns its fencing token. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERMITS    3  /* of the semaphore */
#define CONTENDERS 8  /* processes */
#define TURNS      12 /* permits that each of them acquires */

/* Returns options for one of `permits` permits, with LONG_TTL_MS and this wait budget. */
static redlock_opts_t permit_opts(uint32_t permits, uint64_t wait_ms)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = permits;
    opts.wait_ms = wait_ms;
    return opts;
}

/* Acquires a lock with these options. Keeps the report. */
static int acquire_with(redlock_t *client, const char *name, const redlock_opts_t *opts,
                        redlock_lock_t **ret)
{
    redlock_report_t *report = NULL;

    *ret = NULL;
    const int status = redlock_acquire(client, name, opts, ret, &report);
    live_keep_report(report);
    return status;
}

/* Acquires a permit with live.client. Stores the handle, keeps the report and returns the
 * status. */
static int acquire_permit(const char *name, uint32_t permits, uint64_t wait_ms,
                          redlock_lock_t **ret)
{
    const redlock_opts_t opts = permit_opts(permits, wait_ms);

    return acquire_with(live.client, name, &opts, ret);
}

/* Returns the slot of a permit. */
static unsigned slot_of(const redlock_lock_t *lock)
{
    const int slot = redlock_lock_slot(lock);

    ck_assert_int_ge(slot, 0);
    ck_assert_int_lt(slot, PERMITS);
    return (unsigned)slot;
}

/* PERMITS permits are granted, each on a slot of its own with a key of its own; one more is
 * denied. A lock with the semaphore's plain name is independent of them. A released slot can be
 * acquired again. */
START_TEST(no_more_holders_than_permits)
{
    redlock_lock_t *locks[PERMITS], *more = NULL;
    unsigned seen = 0;
    char key[32];

    live_connect();
    for (unsigned i = 0; i < PERMITS; i++) {
        CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &locks[i]), REDLOCK_OK);
        ck_assert_str_eq(redlock_lock_resource(locks[i], 0), "pool");
        ck_assert_int_eq(redlock_slot_name(key, sizeof key, "pool", slot_of(locks[i])), 0);
        ck_assert(WAIT_UNTIL(live_nodes_with(key) == NODES, TIME_LIMIT_MS));
        seen |= 1u << slot_of(locks[i]);
    }
    ck_assert_uint_eq(seen, (1u << PERMITS) - 1);
    ck_assert_uint_eq(live_nodes_with("pool"), 0);
    CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &more), REDLOCK_ECONTENDED);
    ck_assert_ptr_nonnull(strstr(live_text(), "all 3 permits are taken"));
    ck_assert_ptr_null(more);
    CHECK_STATUS(live_acquire("pool", LONG_TTL_MS, 0, &more), REDLOCK_OK); /* an ordinary lock */
    ck_assert_int_eq(redlock_lock_slot(more), REDLOCK_EINVAL);
    CHECK_STATUS(live_release(more), REDLOCK_OK);
    unsigned freed = slot_of(locks[1]);
    CHECK_STATUS(live_extend(locks[1], 0), REDLOCK_OK);
    CHECK_STATUS(live_release(locks[1]), REDLOCK_OK);
    CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &locks[1]), REDLOCK_OK);
    ck_assert_uint_eq(slot_of(locks[1]), freed);
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Tries to acquire a lock, and checks that the report contains the words. Returns the status. */
static int acquire_refused(const char *name, const redlock_opts_t *opts, const char *words)
{
    redlock_lock_t *lock = NULL;
    const int status = acquire_with(live.client, name, opts, &lock);

    ck_assert_msg(strstr(live_text(), words) != NULL, "\"%s\" is not in \"%s\"", words,
                  live_text());
    return status;
}

/* Counts out of range, unknown kinds and names that are too long for their slots end in EINVAL
 * with a message. The longest name that leaves room for "{#9}" works. */
START_TEST(invalid_permits_are_refused)
{
    char name[REDLOCK_RESOURCE_LEN_MAX + 1], key[REDLOCK_RESOURCE_LEN_MAX + 1];
    redlock_opts_t opts = permit_opts(0, 0);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;

    live_connect();
    CHECK_STATUS(acquire_refused("pool", &opts, "opts.permits is missing"), REDLOCK_EINVAL);
    opts.permits = REDLOCK_PERMITS_MAX + 1;
    CHECK_STATUS(acquire_refused("pool", &opts, "at most 1024"), REDLOCK_EINVAL);
    opts.kind = REDLOCK_KIND_EXCLUSIVE;
    CHECK_STATUS(acquire_refused("pool", &opts, "opts.kind is not"), REDLOCK_EINVAL);
    opts.kind = 1;
    CHECK_STATUS(acquire_refused("pool", &opts, "opts.kind is 1"), REDLOCK_EINVAL);
    opts = permit_opts(10, 0);
    memset(name, 'n', sizeof name);
    name[REDLOCK_RESOURCE_LEN_MAX - 3] = '\0';
    CHECK_STATUS(acquire_refused(name, &opts, "with {#9} behind it"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_slot_name(key, sizeof key, name, 9), REDLOCK_EINVAL);
    name[REDLOCK_RESOURCE_LEN_MAX - 4] = '\0';
    CHECK_STATUS(acquire_permit(name, 10, 0, &lock), REDLOCK_OK);
    ck_assert_int_eq(redlock_slot_name(key, sizeof key, name, 9), REDLOCK_OK);
    ck_assert_int_eq(redlock_slot_name(key, sizeof key - 1, name, 9), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_slot_name(key, sizeof key, name, REDLOCK_PERMITS_MAX), REDLOCK_EINVAL);
    ck_assert_int_eq(
        redlock_adopt(live.client, "pool", redlock_lock_token(lock), &opts, &lock, &report),
        REDLOCK_EINVAL);
    live_keep_report(report);
    ck_assert_ptr_nonnull(strstr(live_text(), "redlock_slot_name()"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
}
END_TEST

/* Foreign clients that set the keys of slots themselves exclude permits, and are excluded by them.
 */
START_TEST(foreign_keys_are_respected)
{
    redlock_lock_t *lock = NULL, *more = NULL;

    live_connect();
    for (unsigned i = 0; i < QUORUM; i++) {
        ck_assert(cluster_replies(live.cluster, i, "OK", "SET pool{#0} x NX PX %d", LONG_TTL_MS));
        ck_assert(cluster_replies(live.cluster, i, "OK", "SET pool{#2} x NX PX %d", LONG_TTL_MS));
    }
    CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &lock), REDLOCK_OK);
    ck_assert_uint_eq(slot_of(lock), 1);
    CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &more), REDLOCK_ECONTENDED);
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(WAIT_UNTIL(live_has_key(i, "pool{#1}"), TIME_LIMIT_MS));
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(!cluster_replies(live.cluster, i, "OK", "SET pool{#1} theirs NX PX 1000"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert_int_eq(cluster_integer(live.cluster, i, "DEL pool{#0} pool{#2}"), 2);
}
END_TEST

/* Creates a client that does not poll during the case, so that only a notification wakes it. */
static redlock_t *open_patient(void)
{
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_retry_ms(config, 60000, 60000), REDLOCK_OK);
    return live_open(config);
}

/* One client waits, and another one releases: the first one is notified and gets that slot. */
START_TEST(a_release_wakes_a_waiter_elsewhere)
{
    redlock_lock_t *locks[PERMITS];
    redlock_opts_t opts = permit_opts(PERMITS, REDLOCK_WAIT_FOREVER);

    live_connect();
    redlock_t *waiter = open_patient();
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &locks[i]), REDLOCK_OK);
    for (unsigned i = 0; i < 3 * PERMITS; i++) {
        struct outcome outcome = OUTCOME;
        redlock_lock_t **lock = &locks[i % PERMITS];
        const unsigned slot = slot_of(*lock);
        events_reset();
        ck_assert_int_eq(redlock_acquire_start(waiter, "pool", &opts, note_done, &outcome), 0);
        ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_WAITING) > 0, TIME_LIMIT_MS));
        ck_assert_uint_eq(outcome_calls(&outcome), 0);
        CHECK_STATUS(live_release(*lock), REDLOCK_OK);
        CHECK_STATUS(outcome_wait(waiter, &outcome), REDLOCK_OK);
        ck_assert_uint_eq(slot_of(outcome.lock), slot);
        *lock = outcome.lock;
    }
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
    ck_assert_int_eq(redlock_shutdown(waiter, TIME_LIMIT_MS), REDLOCK_OK);
    ck_assert_int_eq(redlock_free(waiter), REDLOCK_OK);
}
END_TEST

/* In one client, the next waiter begins its attempt as soon as the one before it holds a permit. */
START_TEST(waiters_of_one_client_follow_in_order)
{
    enum { WAITERS = 2 * PERMITS + 1 };
    const redlock_opts_t opts = permit_opts(PERMITS, REDLOCK_WAIT_FOREVER);
    struct outcome outcomes[WAITERS];
    unsigned released = 0;

    live.client = open_patient();
    for (unsigned i = 0; i < WAITERS; i++) {
        outcomes[i] = (struct outcome)OUTCOME;
        ck_assert_int_eq(redlock_acquire_start(live.client, "pool", &opts, note_done, &outcomes[i]),
                         0);
    }
    for (unsigned i = 0; i < WAITERS; i++) { /* in the order of their calls */
        CHECK_STATUS(outcome_wait(live.client, &outcomes[i]), REDLOCK_OK);
        const redlock_stats_t stats = live_stats(live.client);
        ck_assert_uint_le(stats.held, PERMITS);
        if (i + 1 >= PERMITS)
            CHECK_STATUS(live_release(outcomes[released++].lock), REDLOCK_OK);
    }
    while (released < WAITERS)
        CHECK_STATUS(live_release(outcomes[released++].lock), REDLOCK_OK);
}
END_TEST

/* A slot can be inspected, adopted, released by token and broken by its name. */
START_TEST(a_slot_is_an_ordinary_lock)
{
    redlock_lock_t *lock = NULL, *taken = NULL;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    char token[64], key[32];

    live_connect();
    CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &lock), REDLOCK_OK);
    snprintf(token, sizeof token, "%s", redlock_lock_token(lock));
    ck_assert_int_eq(redlock_slot_name(key, sizeof key, "pool", slot_of(lock)), REDLOCK_OK);
    CHECK_STATUS(live_inspect(key), REDLOCK_OK);
    ck_assert_int_eq(live_info().state, REDLOCK_STATE_HELD);
    CHECK_STATUS(redlock_lock_detach(lock), REDLOCK_OK);
    redlock_lock_free(lock);
    CHECK_STATUS(redlock_adopt(live.client, key, token, &opts, &taken, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_lock_slot(taken), REDLOCK_EINVAL);
    CHECK_STATUS(redlock_lock_detach(taken), REDLOCK_OK);
    redlock_lock_free(taken);
    CHECK_STATUS(redlock_release_token(live.client, key, token, NULL), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));

    CHECK_STATUS(acquire_permit("pool", 1, 0, &lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_nodes_with("pool{#0}") == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_break(live.client, "pool{#0}", NULL), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
    CHECK_STATUS(acquire_permit("pool", 1, 0, &lock), REDLOCK_OK);
    CHECK_STATUS(redlock_release_after(lock, 1, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Automatic extension extends the key of the slot; the permit is lost with the key. */
START_TEST(a_permit_is_extended_and_lost_with_its_key)
{
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = permit_opts(PERMITS, wait_scaled_ms(TIME_LIMIT_MS));

    live_connect();
    events_reset();
    opts.ttl_ms = live_brief_ms(1500);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = live_brief_ms(1200); /* soon after each extension */
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    CHECK_STATUS(acquire_with(live.client, "pool", &opts, &lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_EXTENDED) > 1, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    cluster_command_all(live.cluster, "DEL pool{#0} pool{#1} pool{#2}");
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert_int_ge(redlock_lock_slot(lock), 0); /* the slot that it had */
    redlock_lock_free(lock);
}
END_TEST

/* A wait for a permit ends by a cancel, and with the client. */
START_TEST(waiters_end_by_cancel_and_shutdown)
{
    redlock_lock_t *locks[PERMITS];
    redlock_cancel_t *cancel = NULL;
    redlock_opts_t opts = permit_opts(PERMITS, REDLOCK_WAIT_FOREVER);
    struct outcome canceled = OUTCOME, closed = OUTCOME, queued = OUTCOME;

    live_connect();
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(acquire_permit("pool", PERMITS, 0, &locks[i]), REDLOCK_OK);
    redlock_t *waiter = live_open(live_config());
    ck_assert_int_eq(redlock_cancel_new(&cancel, waiter), REDLOCK_OK);
    opts.cancel = cancel;
    ck_assert_int_eq(redlock_acquire_start(waiter, "pool", &opts, note_done, &canceled), 0);
    opts.cancel = NULL;
    ck_assert_int_eq(redlock_acquire_start(waiter, "pool", &opts, note_done, &closed), 0);
    ck_assert_int_eq(redlock_acquire_start(waiter, "pool", &opts, note_done, &queued), 0);
    ck_assert(WAIT_UNTIL(live_stats(waiter).waiting == 3, TIME_LIMIT_MS));
    redlock_cancel_trigger(cancel);
    CHECK_STATUS(outcome_wait(waiter, &canceled), REDLOCK_ECANCELED);
    ck_assert_uint_eq(outcome_calls(&closed), 0);
    ck_assert_int_eq(redlock_shutdown(waiter, TIME_LIMIT_MS), REDLOCK_OK);
    CHECK_STATUS(outcome_wait(waiter, &closed), REDLOCK_ECLOSED);
    CHECK_STATUS(outcome_wait(waiter, &queued), REDLOCK_ECLOSED);
    redlock_cancel_free(cancel);
    live_free(waiter);
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
}
END_TEST

/* redlock_release_after() keeps the slot for the delay. Then it can be acquired again. */
START_TEST(release_after_keeps_the_slot)
{
    redlock_lock_t *lock = NULL, *next = NULL;
    const redlock_opts_t opts = permit_opts(1, wait_scaled_ms(TIME_LIMIT_MS));

    live_connect();
    CHECK_STATUS(acquire_permit("pool", 1, 0, &lock), REDLOCK_OK);
    const uint64_t from_ms = wait_now_ms();
    const uint64_t delay_ms = wait_scaled_ms(400);
    CHECK_STATUS(redlock_release_after(lock, delay_ms, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    CHECK_STATUS(acquire_with(live.client, "pool", &opts, &next), REDLOCK_OK);
    ck_assert_uint_ge(wait_now_ms() - from_ms + 20, delay_ms);
    CHECK_STATUS(live_release(next), REDLOCK_OK);
}
END_TEST

/* The fencing tokens of one slot increase. */
START_TEST(tokens_of_a_slot_increase)
{
    uint64_t last = 0;

    fences_begin();
    live.client = fences_open();
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);
    opts.flags = REDLOCK_FLAG_FENCE;
    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = 1;
    opts.wait_ms = wait_scaled_ms(TIME_LIMIT_MS);
    for (unsigned i = 0; i < 5; i++) {
        redlock_lock_t *lock = NULL;
        CHECK_STATUS(acquire_with(live.client, "pool", &opts, &lock), REDLOCK_OK);
        ck_assert_uint_gt(redlock_lock_fence(lock), last);
        last = redlock_lock_fence(lock);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
}
END_TEST

/* Stores the slot of the permit in the int that `userdata` points to. */
static int read_slot(redlock_lock_t *lock, void *userdata)
{
    *(int *)userdata = redlock_lock_slot(lock);
    return 7;
}

/* redlock_with() acquires a permit, runs its function with the slot known, returns the
 * function's result and releases the permit. */
START_TEST(with_acquires_a_permit)
{
    const redlock_opts_t opts = permit_opts(PERMITS, 0);
    int slot = -1, body = 0;

    live_connect();
    CHECK_STATUS(redlock_with(live.client, "pool", &opts, &body, NULL, read_slot, &slot),
                 REDLOCK_OK);
    ck_assert_int_eq(body, 7);
    ck_assert_int_ge(slot, 0);
    ck_assert_int_lt(slot, PERMITS);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* The results of all processes, in shared memory. */
struct results {
    atomic_uint turns;            /* permits that were acquired */
    atomic_uint failed;           /* calls that failed */
    atomic_uint not_extended;     /* extensions that failed */
    atomic_uint inside;           /* holders now */
    atomic_uint overlaps;         /* times that there were more holders than permits */
    atomic_uint shared;           /* times that a slot had two holders */
    atomic_uint holders[PERMITS]; /* holders of each slot now */
};

static struct results *results; /* in memory that all processes share */

/* Extends a permit, and counts holders meanwhile. */
static void use_permit(redlock_lock_t *lock)
{
    const int slot = redlock_lock_slot(lock);

    if (atomic_fetch_add(&results->inside, 1) >= PERMITS)
        atomic_fetch_add(&results->overlaps, 1);
    if (atomic_fetch_add(&results->holders[slot], 1) != 0)
        atomic_fetch_add(&results->shared, 1);
    /* An extension takes a while. It fails if two nodes that die had both granted the permit. */
    if (redlock_extend(lock, 0, NULL) != REDLOCK_OK)
        atomic_fetch_add(&results->not_extended, 1);
    atomic_fetch_sub(&results->holders[slot], 1);
    atomic_fetch_sub(&results->inside, 1);
    atomic_fetch_add(&results->turns, 1);
}

/* Acquires and releases a permit TURNS times, in a process of its own. Counts failures instead of
 * asserting. */
static void run_process(unsigned self, redlock_config_t *config)
{
    redlock_t *client = NULL;
    const redlock_opts_t opts = permit_opts(PERMITS, wait_scaled_ms(6 * TIME_LIMIT_MS));

    if (redlock_new(&client, config) != REDLOCK_OK) {
        atomic_fetch_add(&results->failed, 1);
        return;
    }
    for (unsigned i = 0; i < TURNS; i++) {
        redlock_lock_t *lock = NULL;
        redlock_report_t *report = NULL;
        if (redlock_acquire(client, "pool", &opts, &lock, &report) != REDLOCK_OK) {
            fprintf(stderr, "process %u: %s\n", self, redlock_report_text(report));
            atomic_fetch_add(&results->failed, 1);
            redlock_report_free(report);
            break;
        }
        redlock_report_free(report);
        use_permit(lock);
        redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    redlock_shutdown(client, 1000);
    redlock_free(client);
}

/* Returns whether that many permits were acquired, or a call failed. */
static bool reaches(unsigned turns)
{
    return atomic_load(&results->turns) >= turns || atomic_load(&results->failed) != 0;
}

/* _i 0: without faults. Otherwise two nodes die: _i - 1, which is the preferred node in one of the
 * cases, and the next one. */
START_TEST(eight_processes_share_permits)
{
    pid_t pids[CONTENDERS];

    results =
        mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(results, MAP_FAILED);
    for (unsigned i = 0; i < CONTENDERS; i++) {
        redlock_config_t *config = live_config();
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            run_process(i, config);
            _exit(0);
        }
        redlock_config_free(config);
    }
    if (_i > 0) {
        const unsigned first = (unsigned)_i - 1;
        ck_assert(WAIT_UNTIL(reaches(CONTENDERS * TURNS / 4), 6 * TIME_LIMIT_MS));
        cluster_kill(live.cluster, first);
        ck_assert(WAIT_UNTIL(reaches(CONTENDERS * TURNS / 2), 6 * TIME_LIMIT_MS));
        cluster_kill(live.cluster, (first + 1) % NODES);
    }
    for (unsigned i = 0; i < CONTENDERS; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(atomic_load(&results->failed), 0);
    if (_i == 0)
        ck_assert_uint_eq(atomic_load(&results->not_extended), 0);
    ck_assert_uint_eq(atomic_load(&results->overlaps), 0);
    ck_assert_uint_eq(atomic_load(&results->shared), 0);
    ck_assert_uint_eq(atomic_load(&results->turns), CONTENDERS * TURNS);
    munmap(results, sizeof *results);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *permits_suite(void)
{
    Suite *suite = suite_create("live_permits");
    live_add(suite, "as_many_as_there_are", no_more_holders_than_permits);
    live_add(suite, "mistakes", invalid_permits_are_refused);
    live_add(suite, "foreign_keys_are_respected", foreign_keys_are_respected);
    live_add(suite, "a_release_wakes_who_waits", a_release_wakes_a_waiter_elsewhere);
    live_add(suite, "waiting_in_one_client", waiters_of_one_client_follow_in_order);
    live_add(suite, "a_slot_by_its_name", a_slot_is_an_ordinary_lock);
    live_add(suite, "kept_and_lost", a_permit_is_extended_and_lost_with_its_key);
    live_add(suite, "waiting_is_ended", waiters_end_by_cancel_and_shutdown);
    live_add(suite, "kept_for_a_while", release_after_keeps_the_slot);
    live_add(suite, "fences_of_a_slot", tokens_of_a_slot_increase);
    live_add(suite, "with_a_permit", with_acquires_a_permit);
    live_add_each(suite, "eight_processes", eight_processes_share_permits, 1 + NODES);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(permits_suite());
    live_stop_servers();
    return status;
}
