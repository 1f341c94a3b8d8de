/* SPDX-License-Identifier: MIT
 * Permits on real servers: never more holders than permits, never two of one slot, in several
 * processes and with nodes that die. A waiter is woken by a release. To other clients a slot is an
 * ordinary lock. */
#include "fences.h"
#include "live_events.h"
#include "suite.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PERMITS    3
#define CONTENDERS 8
#define TURNS      12

static redlock_opts_t permit_opts(uint32_t permits, uint64_t wait_ms)
{
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);

    opts.kind = REDLOCK_KIND_PERMIT;
    opts.permits = permits;
    opts.wait_ms = wait_ms;
    return opts;
}

static int take_with(redlock_t *client, const char *name, const redlock_opts_t *opts,
                     redlock_lock_t **ret)
{
    redlock_report_t *report = NULL;

    *ret = NULL;
    const int status = redlock_acquire(client, name, opts, ret, &report);
    live_keep_report(report);
    return status;
}

static int take(const char *name, uint32_t permits, uint64_t wait_ms, redlock_lock_t **ret)
{
    const redlock_opts_t opts = permit_opts(permits, wait_ms);

    return take_with(live.client, name, &opts, ret);
}

static unsigned slot_of(const redlock_lock_t *lock)
{
    const int slot = redlock_lock_slot(lock);

    ck_assert_int_ge(slot, 0);
    ck_assert_int_lt(slot, PERMITS);
    return (unsigned)slot;
}

START_TEST(as_many_as_there_are)
{
    redlock_lock_t *locks[PERMITS], *more = NULL;
    unsigned seen = 0;
    char key[32];

    live_connect();
    for (unsigned i = 0; i < PERMITS; i++) {
        CHECK_STATUS(take("pool", PERMITS, 0, &locks[i]), REDLOCK_OK);
        ck_assert_str_eq(redlock_lock_resource(locks[i], 0), "pool");
        ck_assert_int_eq(redlock_slot_name(key, sizeof key, "pool", slot_of(locks[i])), 0);
        ck_assert(WAIT_UNTIL(live_nodes_with(key) == NODES, TIME_LIMIT_MS));
        seen |= 1u << slot_of(locks[i]);
    }
    ck_assert_uint_eq(seen, (1u << PERMITS) - 1);
    ck_assert_uint_eq(live_nodes_with("pool"), 0);
    CHECK_STATUS(take("pool", PERMITS, 0, &more), REDLOCK_ECONTENDED);
    ck_assert_ptr_nonnull(strstr(live_text(), "all 3 permits are taken"));
    ck_assert_ptr_null(more);
    CHECK_STATUS(live_acquire("pool", LONG_TTL_MS, 0, &more), REDLOCK_OK); /* another thing */
    ck_assert_int_eq(redlock_lock_slot(more), REDLOCK_EINVAL);
    CHECK_STATUS(live_release(more), REDLOCK_OK);
    unsigned freed = slot_of(locks[1]);
    CHECK_STATUS(live_extend(locks[1], 0), REDLOCK_OK);
    CHECK_STATUS(live_release(locks[1]), REDLOCK_OK);
    CHECK_STATUS(take("pool", PERMITS, 0, &locks[1]), REDLOCK_OK);
    ck_assert_uint_eq(slot_of(locks[1]), freed);
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

static int refused(const char *name, const redlock_opts_t *opts, const char *words)
{
    redlock_lock_t *lock = NULL;
    const int status = take_with(live.client, name, opts, &lock);

    ck_assert_msg(strstr(live_text(), words) != NULL, "\"%s\" is not in \"%s\"", words,
                  live_text());
    return status;
}

START_TEST(mistakes)
{
    char name[REDLOCK_RESOURCE_LEN_MAX + 1], key[REDLOCK_RESOURCE_LEN_MAX + 1];
    redlock_opts_t opts = permit_opts(0, 0);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;

    live_connect();
    CHECK_STATUS(refused("pool", &opts, "opts.permits is missing"), REDLOCK_EINVAL);
    opts.permits = REDLOCK_PERMITS_MAX + 1;
    CHECK_STATUS(refused("pool", &opts, "at most 1024"), REDLOCK_EINVAL);
    opts.kind = REDLOCK_KIND_EXCLUSIVE;
    CHECK_STATUS(refused("pool", &opts, "opts.kind is not"), REDLOCK_EINVAL);
    opts.kind = 1;
    CHECK_STATUS(refused("pool", &opts, "opts.kind is 1"), REDLOCK_EINVAL);
    opts = permit_opts(10, 0);
    memset(name, 'n', sizeof name);
    name[REDLOCK_RESOURCE_LEN_MAX - 3] = '\0';
    CHECK_STATUS(refused(name, &opts, "with {#9} behind it"), REDLOCK_EINVAL);
    ck_assert_int_eq(redlock_slot_name(key, sizeof key, name, 9), REDLOCK_EINVAL);
    name[REDLOCK_RESOURCE_LEN_MAX - 4] = '\0';
    CHECK_STATUS(take(name, 10, 0, &lock), REDLOCK_OK);
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

/* Towards clients that set the keys of slots by hand. */
START_TEST(foreign_keys_are_respected)
{
    redlock_lock_t *lock = NULL, *more = NULL;

    live_connect();
    for (unsigned i = 0; i < QUORUM; i++) {
        ck_assert(cluster_replies(live.cluster, i, "OK", "SET pool{#0} x NX PX %d", LONG_TTL_MS));
        ck_assert(cluster_replies(live.cluster, i, "OK", "SET pool{#2} x NX PX %d", LONG_TTL_MS));
    }
    CHECK_STATUS(take("pool", PERMITS, 0, &lock), REDLOCK_OK);
    ck_assert_uint_eq(slot_of(lock), 1);
    CHECK_STATUS(take("pool", PERMITS, 0, &more), REDLOCK_ECONTENDED);
    for (unsigned i = 0; i < NODES; i++) /* and theirs is refused by ours */
        ck_assert(WAIT_UNTIL(live_has_key(i, "pool{#1}"), TIME_LIMIT_MS));
    for (unsigned i = 0; i < NODES; i++)
        ck_assert(!cluster_replies(live.cluster, i, "OK", "SET pool{#1} theirs NX PX 1000"));
    CHECK_STATUS(live_release(lock), REDLOCK_OK);
    for (unsigned i = 0; i < QUORUM; i++)
        ck_assert_int_eq(cluster_integer(live.cluster, i, "DEL pool{#0} pool{#2}"), 2);
}
END_TEST

/* A client that does not ask by itself. */
static redlock_t *open_patient(void)
{
    redlock_config_t *config = live_config();

    ck_assert_int_eq(redlock_config_set_retry_ms(config, 60000, 60000), REDLOCK_OK);
    return live_open(config);
}

/* One client waits, another one lets go: the first hears of it and gets that slot. */
START_TEST(a_release_wakes_who_waits)
{
    redlock_lock_t *locks[PERMITS];
    redlock_opts_t opts = permit_opts(PERMITS, REDLOCK_WAIT_FOREVER);

    live_connect();
    redlock_t *waiter = open_patient();
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(take("pool", PERMITS, 0, &locks[i]), REDLOCK_OK);
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

/* In one client they queue, and the next one goes on as soon as the one before it holds. */
START_TEST(waiting_in_one_client)
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
    for (unsigned i = 0; i < WAITERS; i++) { /* in the order in which they came */
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

/* A slot is handed over, looked at and broken as the lock that it is. */
START_TEST(a_slot_by_its_name)
{
    redlock_lock_t *lock = NULL, *taken = NULL;
    redlock_opts_t opts = redlock_opts(LONG_TTL_MS);
    char token[64], key[32];

    live_connect();
    CHECK_STATUS(take("pool", PERMITS, 0, &lock), REDLOCK_OK);
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

    CHECK_STATUS(take("pool", 1, 0, &lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(live_nodes_with("pool{#0}") == NODES, TIME_LIMIT_MS));
    CHECK_STATUS(redlock_break(live.client, "pool{#0}", NULL), REDLOCK_OK);
    CHECK_STATUS(live_extend(lock, 0), REDLOCK_ELOST);
    redlock_lock_free(lock);
    CHECK_STATUS(take("pool", 1, 0, &lock), REDLOCK_OK);
    CHECK_STATUS(redlock_release_after(lock, 1, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* Extended by itself on the key of its slot, and lost with it. */
START_TEST(kept_and_lost)
{
    redlock_lock_t *lock = NULL;
    redlock_opts_t opts = permit_opts(PERMITS, wait_scaled_ms(TIME_LIMIT_MS));

    live_connect();
    events_reset();
    opts.ttl_ms = live_brief_ms(1500);
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.extend_at_ms = live_brief_ms(1200); /* often, and in good time */
    opts.event_fn = note_event;
    opts.event_userdata = &lock_events;
    CHECK_STATUS(take_with(live.client, "pool", &opts, &lock), REDLOCK_OK);
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_EXTENDED) > 1, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_OK);
    cluster_command_all(live.cluster, "DEL pool{#0} pool{#1} pool{#2}");
    ck_assert(WAIT_UNTIL(count_events(&lock_events, REDLOCK_EVENT_LOST) == 1, TIME_LIMIT_MS));
    ck_assert_int_eq(redlock_lock_check(lock, 0), REDLOCK_ELOST);
    ck_assert_int_ge(redlock_lock_slot(lock), 0); /* which it was */
    redlock_lock_free(lock);
}
END_TEST

/* Who waits for a permit is ended by a cancel, and by the end of the client. */
START_TEST(waiting_is_ended)
{
    redlock_lock_t *locks[PERMITS];
    redlock_cancel_t *cancel = NULL;
    redlock_opts_t opts = permit_opts(PERMITS, REDLOCK_WAIT_FOREVER);
    struct outcome canceled = OUTCOME, closed = OUTCOME, queued = OUTCOME;

    live_connect();
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(take("pool", PERMITS, 0, &locks[i]), REDLOCK_OK);
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
    ck_assert_int_eq(redlock_free(waiter), REDLOCK_OK);
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_STATUS(live_release(locks[i]), REDLOCK_OK);
}
END_TEST

/* A minimum hold, as redlock_release_after() keeps it: the slot stays taken, and is taken again
 * after. */
START_TEST(kept_for_a_while)
{
    redlock_lock_t *lock = NULL, *next = NULL;
    const redlock_opts_t opts = permit_opts(1, wait_scaled_ms(TIME_LIMIT_MS));

    live_connect();
    CHECK_STATUS(take("pool", 1, 0, &lock), REDLOCK_OK);
    const uint64_t from_ms = wait_now_ms();
    const uint64_t delay_ms = wait_scaled_ms(400);
    CHECK_STATUS(redlock_release_after(lock, delay_ms, NULL), REDLOCK_OK);
    redlock_lock_free(lock);
    CHECK_STATUS(take_with(live.client, "pool", &opts, &next), REDLOCK_OK);
    ck_assert_uint_ge(wait_now_ms() - from_ms + 20, delay_ms);
    CHECK_STATUS(live_release(next), REDLOCK_OK);
}
END_TEST

/* Numbers of one slot grow. */
START_TEST(fences_of_a_slot)
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
        CHECK_STATUS(take_with(live.client, "pool", &opts, &lock), REDLOCK_OK);
        ck_assert_uint_gt(redlock_lock_fence(lock), last);
        last = redlock_lock_fence(lock);
        CHECK_STATUS(live_release(lock), REDLOCK_OK);
    }
}
END_TEST

static int in_permit(redlock_lock_t *lock, void *userdata)
{
    *(int *)userdata = redlock_lock_slot(lock);
    return 7;
}

START_TEST(with_a_permit)
{
    const redlock_opts_t opts = permit_opts(PERMITS, 0);
    int slot = -1, body = 0;

    live_connect();
    CHECK_STATUS(redlock_with(live.client, "pool", &opts, &body, NULL, in_permit, &slot),
                 REDLOCK_OK);
    ck_assert_int_eq(body, 7);
    ck_assert_int_ge(slot, 0);
    ck_assert_int_lt(slot, PERMITS);
    ck_assert(live_wait_no_keys(TIME_LIMIT_MS));
}
END_TEST

/* What several processes write down. */
struct board {
    atomic_uint turns, failed, not_extended, inside, overlaps, shared;
    atomic_uint holders[PERMITS];
};

static struct board *board;

static void write_down(redlock_lock_t *lock)
{
    const int slot = redlock_lock_slot(lock);

    if (atomic_fetch_add(&board->inside, 1) >= PERMITS)
        atomic_fetch_add(&board->overlaps, 1);
    if (atomic_fetch_add(&board->holders[slot], 1) != 0)
        atomic_fetch_add(&board->shared, 1);
    /* It takes a while. Of two nodes that die both may have granted: then it fails. */
    if (redlock_extend(lock, 0, NULL) != REDLOCK_OK)
        atomic_fetch_add(&board->not_extended, 1);
    atomic_fetch_sub(&board->holders[slot], 1);
    atomic_fetch_sub(&board->inside, 1);
    atomic_fetch_add(&board->turns, 1);
}

/* A process of its own: no assertion, only notes. */
static void take_turns(unsigned self, redlock_config_t *config)
{
    redlock_t *client = NULL;
    const redlock_opts_t opts = permit_opts(PERMITS, wait_scaled_ms(6 * TIME_LIMIT_MS));

    if (redlock_new(&client, config) != REDLOCK_OK) {
        atomic_fetch_add(&board->failed, 1);
        return;
    }
    for (unsigned i = 0; i < TURNS; i++) {
        redlock_lock_t *lock = NULL;
        redlock_report_t *report = NULL;
        if (redlock_acquire(client, "pool", &opts, &lock, &report) != REDLOCK_OK) {
            fprintf(stderr, "process %u: %s\n", self, redlock_report_text(report));
            atomic_fetch_add(&board->failed, 1);
            redlock_report_free(report);
            break;
        }
        redlock_report_free(report);
        write_down(lock);
        redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    redlock_shutdown(client, 1000);
    redlock_free(client);
}

static bool reaches(unsigned turns)
{
    return atomic_load(&board->turns) >= turns || atomic_load(&board->failed) != 0;
}

/* The second time two nodes die on the way, among them the one that contenders may ask first. */
START_TEST(eight_processes)
{
    pid_t pids[CONTENDERS];

    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(board, MAP_FAILED);
    for (unsigned i = 0; i < CONTENDERS; i++) {
        redlock_config_t *config = live_config();
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            take_turns(i, config);
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
    ck_assert_uint_eq(atomic_load(&board->failed), 0);
    if (_i == 0)
        ck_assert_uint_eq(atomic_load(&board->not_extended), 0);
    ck_assert_uint_eq(atomic_load(&board->overlaps), 0);
    ck_assert_uint_eq(atomic_load(&board->shared), 0);
    ck_assert_uint_eq(atomic_load(&board->turns), CONTENDERS * TURNS);
    munmap(board, sizeof *board);
}
END_TEST

static Suite *permits_suite(void)
{
    Suite *suite = suite_create("live_permits");
    live_add(suite, "as_many_as_there_are", as_many_as_there_are);
    live_add(suite, "mistakes", mistakes);
    live_add(suite, "foreign_keys_are_respected", foreign_keys_are_respected);
    live_add(suite, "a_release_wakes_who_waits", a_release_wakes_who_waits);
    live_add(suite, "waiting_in_one_client", waiting_in_one_client);
    live_add(suite, "a_slot_by_its_name", a_slot_by_its_name);
    live_add(suite, "kept_and_lost", kept_and_lost);
    live_add(suite, "waiting_is_ended", waiting_is_ended);
    live_add(suite, "kept_for_a_while", kept_for_a_while);
    live_add(suite, "fences_of_a_slot", fences_of_a_slot);
    live_add(suite, "with_a_permit", with_a_permit);
    live_add_each(suite, "eight_processes", eight_processes, 1 + NODES);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(permits_suite());
    live_stop_servers();
    return status;
}
