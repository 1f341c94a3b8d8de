/* SPDX-License-Identifier: MIT
 * A client is ended after each single turn of its loop, while operations of all kinds are in
 * flight: it is freed, its locks are freed, everything is canceled, or the process forks. Each
 * operation gets one callback, no key is left, and servers receive nothing from a forked child. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "call_fail.h"
#include "fdcheck.h"
#include "rig.h"

#define TURNS_MAX 400
#define TTL_MS    400 /* of keys that cannot be released any more */
#define WAIT_MS   10000
#define CALLS     12

/* Makes each turn handle one event only, so that there are many turns. */
static const struct call_fault one_event = {.call = CALL_EPOLL_WAIT, .lasting = true};

enum way { FREE_CLIENT, FREE_LOCKS, CANCEL, FORK, SHUT_DOWN };

/* The state of the run: what was started, and how it ended. */
static struct {
    struct rig_call call[CALLS];
    unsigned calls;
    unsigned at; /* index of the next scene */
    redlock_opts_t opts;
    struct listener {
        bool used;
        unsigned ends, late; /* late: events after the end */
    } listener[CALLS];       /* of the acquisitions */
} story;

static void on_event(redlock_t *rl, const redlock_event_t *event, void *listener)
{
    (void)rl, (void)event;
    ((struct listener *)listener)->late += ((struct listener *)listener)->ends;
}

static void on_end(void *listener)
{
    ((struct listener *)listener)->ends++;
}

static void started(int result)
{
    struct rig_call *call = &story.call[story.calls++];

    call->used = true;
    call->started = result;
}

static void *next_call(void)
{
    ck_assert_uint_lt(story.calls, CALLS);
    return &story.call[story.calls];
}

static void acquire(const char *resource, bool waits)
{
    redlock_opts_t opts = story.opts;

    opts.wait_ms = waits ? wait_scaled_ms(WAIT_MS) : 0;
    opts.event_fn = on_event;
    opts.event_end_fn = on_end;
    opts.event_userdata = &story.listener[story.calls];
    story.listener[story.calls].used = true;
    started(redlock_acquire_start(rig.client, resource, &opts, rig_done, next_call()));
}

/* Makes a call on a lock that may have ended by now. */
static void on_lock(unsigned of_call, bool release)
{
    redlock_lock_t *lock = story.call[of_call].lock;
    struct rig_call *call = next_call();

    if (lock == NULL)
        return;
    call->borrows = true;
    started(release ? redlock_release_start(lock, rig_done, call)
                    : redlock_extend_start(lock, story.opts.ttl_ms, rig_done, call));
}

static void verify(unsigned of_call)
{
    redlock_lock_t *lock = story.call[of_call].lock;
    struct rig_call *call = next_call();

    if (lock == NULL)
        return;
    call->borrows = true;
    started(redlock_verify_start(lock, rig.cancel, rig_done, call));
}

static bool is_told(unsigned i)
{
    const struct rig_call *call = &story.call[i];

    return call->started != REDLOCK_OK || call->told > 0;
}

/* Starts the next scene when the present one has ended. Returns false after the last one. */
static bool tell(void)
{
    switch (story.at) {
    case 0: /* while the connections are made */
        acquire("one", true);
        acquire("foreign", true);
        started(redlock_inspect_start(rig.client, "one", rig.cancel, rig_done, next_call()));
        started(redlock_wait_ready_start(rig.client, WAIT_MS, rig.cancel, rig_done, next_call()));
        break;
    case 1:
        if (!is_told(0) || !is_told(3))
            return true;
        on_lock(0, false);
        acquire("two", false);
        acquire("one", true); /* held by this client */
        started(redlock_break_start(rig.client, "three", rig.cancel, rig_done, next_call()));
        break;
    case 2:
        if (!is_told(4) || !is_told(5))
            return true;
        verify(0);
        on_lock(0, true);
        break;
    default:
        return !is_told(6) || !is_told(7) || !is_told(8) || !is_told(9);
    }
    story.at++;
    return true;
}

static bool turn(void)
{
    struct pollfd ready = {.fd = redlock_get_fd(rig.client), .events = POLLIN};

    if (!tell())
        return false;
    (void)poll(&ready, 1, 5);
    ck_assert_int_eq(redlock_process(rig.client), REDLOCK_OK);
    return true;
}

static bool all_told(void)
{
    for (unsigned i = 0; i < story.calls; i++)
        if (!is_told(i))
            return false;
    return true;
}

static bool keys_explained(void)
{
    return rig_strays() == 0;
}

static bool only_foreign_keys(void)
{
    return cluster_count_all_keys(rig.cluster) == RIG_NODES;
}

static void free_locks(void)
{
    for (unsigned i = 0; i < story.calls; i++) {
        redlock_lock_free(story.call[i].lock);
        story.call[i].lock = NULL;
    }
}

/* ---- the ways to end ---- */

static void check_told_once(void)
{
    for (unsigned i = 0; i < story.calls; i++) {
        const struct rig_call *call = &story.call[i];
        const struct listener *listener = &story.listener[i];
        ck_assert_msg(call->told == (call->started == REDLOCK_OK), "call %u was told of %u times",
                      i, call->told);
        ck_assert_msg(listener->ends == (listener->used ? 1 : 0), "events of %u ended %u times", i,
                      listener->ends);
        ck_assert_uint_eq(listener->late, 0);
    }
}

static void shut_down(void)
{
    struct rig_call *call = next_call();

    started(redlock_shutdown_start(rig.client, wait_scaled_ms(WAIT_MS), rig_done, call));
    ck_assert_msg(rig_drive(all_told, WAIT_MS), "a shutdown does not end");
    ck_assert_msg(call->status == REDLOCK_OK, "shutdown: %s", redlock_error_name(call->status));
    ck_assert_msg(rig_drive(only_foreign_keys, WAIT_MS), "shut down, and keys stay");
}

static void cancel_all(void)
{
    redlock_cancel_trigger(rig.cancel);
    ck_assert_msg(rig_drive(all_told, WAIT_MS), "a cancelled operation does not end");
    free_locks();
    ck_assert_msg(rig_drive(only_foreign_keys, WAIT_MS), "cancelled and freed, and keys stay");
}

/* Frees only the handles that were received; the waiting calls go on. */
static void let_locks_go(void)
{
    free_locks();
    redlock_cancel_trigger(rig.cancel);
    ck_assert_msg(rig_drive(all_told, WAIT_MS), "an operation does not end");
    free_locks();
    ck_assert_msg(rig_drive(only_foreign_keys, WAIT_MS), "locks are freed, and keys stay");
}

/* Returns how many bytes the servers have read from all connections. Only the harness sends to them
 * meanwhile. */
static uint64_t bytes_read(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < RIG_NODES; i++) {
        char *info = cluster_command(rig.cluster, i, "INFO stats");
        const char *field = strstr(info, "total_net_input_bytes:");
        ck_assert_ptr_nonnull(field);
        sum += strtoull(field + strlen("total_net_input_bytes:"), NULL, 10);
        free(info);
    }
    return sum;
}

static uint64_t question; /* number of bytes that bytes_read() itself sends */

static bool is_still(void)
{
    const uint64_t before = bytes_read(), cost = bytes_read() - before;
    const bool still = cost == question;

    question = cost;
    return still;
}

#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "child, line %d: %s\n", __LINE__, #condition);                         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Writes the counters of ./dev coverage, which _exit() does not. */
void __gcov_dump(void) __attribute__((weak));

static void live_as_child(void)
{
    struct rig_call call = {.used = false};
    redlock_lock_t *lock = story.call[0].lock;
    redlock_stats_t stats;

    CHILD_CHECK(redlock_process(rig.client) == REDLOCK_EFORKED);
    CHILD_CHECK(redlock_acquire_start(rig.client, "x", &story.opts, rig_done, &call) ==
                REDLOCK_EFORKED);
    CHILD_CHECK(redlock_inspect_start(rig.client, "x", NULL, rig_done, &call) == REDLOCK_EFORKED);
    CHILD_CHECK(redlock_get_stats(rig.client, &stats, sizeof stats) == REDLOCK_EFORKED);
    if (lock != NULL) {
        CHILD_CHECK(redlock_lock_check(lock, 0) == REDLOCK_EFORKED);
        CHILD_CHECK(redlock_release_start(lock, rig_done, &call) == REDLOCK_EFORKED);
        CHILD_CHECK(redlock_verify_start(lock, NULL, rig_done, &call) == REDLOCK_EFORKED);
    }
    for (unsigned i = 0; i < story.calls; i++)
        story.call[i].told = story.listener[i].ends = 0;
    free_locks();
    redlock_cancel_free(rig.cancel);
    CHILD_CHECK(redlock_free(rig.client) == REDLOCK_OK);
    for (unsigned i = 0; i < story.calls; i++)
        CHILD_CHECK(story.call[i].told == 0 && story.listener[i].ends == 0);
    if (__gcov_dump != NULL)
        __gcov_dump();
    _exit(0);
}

static void fork_and_go_on(void)
{
    int status = -1;

    question = 0;
    ck_assert_msg(WAIT_UNTIL(is_still(), WAIT_MS), "the servers are never quiet");
    const uint64_t before = bytes_read();
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        live_as_child();
    ck_assert_msg(WAIT_UNTIL(waitpid(child, &status, WNOHANG) == child, WAIT_MS),
                  "the child hangs");
    ck_assert_msg(status == 0, "the child ended with status %x", (unsigned)status);
    ck_assert_uint_eq(bytes_read() - before, question);
    for (unsigned i = 0; i < TURNS_MAX && turn(); i++)
        ;
    cancel_all();
}

static void end(enum way way)
{
    switch (way) {
    case FREE_LOCKS:
        let_locks_go();
        break;
    case CANCEL:
        cancel_all();
        break;
    case FORK:
        fork_and_go_on();
        break;
    case SHUT_DOWN:
        shut_down();
        break;
    default:
        break;
    }
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    check_told_once();
    redlock_cancel_free(rig.cancel);
    free_locks();
    /* After redlock_free() alone some keys disappear by expiry only. */
    ck_assert_msg(WAIT_UNTIL(only_foreign_keys(), 4 * TTL_MS + 2000), "keys outlive the client");
    ck_assert(keys_explained());
}

/* Ends the client after that many turns. Returns true if some operation was still in flight. */
static bool run(enum way way, unsigned turns)
{
    static const char *const names[] = {"free", "free locks", "cancel", "fork", "shut down"};
    static struct fdcheck descriptors;
    char text[40];
    struct cluster *cluster = rig.cluster;
    unsigned i = 0;
    bool going = true;

    memset(&rig, 0, sizeof rig);
    memset(&story, 0, sizeof story);
    rig.cluster = cluster;
    snprintf(text, sizeof text, "ended after %u turns", turns);
    rig_note_text(names[way], text);
    fdcheck_begin(&descriptors);
    const int64_t live = alloc_fail_live();
    rig_new_config(REDLOCK_MODE_EMBEDDED);
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    redlock_config_free(rig.config);
    ck_assert_int_eq(redlock_cancel_new(&rig.cancel, rig.client), REDLOCK_OK);
    story.opts = redlock_opts(wait_scaled_ms(TTL_MS));
    story.opts.flags |= REDLOCK_FLAG_AUTO_EXTEND;
    story.opts.cancel = rig.cancel;
    call_fail_start(&one_event, 0, true);
    for (; i < turns && going; i++)
        going = turn();
    call_fail_stop();
    end(way);
    const char *open = fdcheck_leaked(&descriptors, 1000);
    ck_assert_msg(open == NULL, "descriptors stay open: %s", open);
    ck_assert_msg(alloc_fail_live() == live, "%lld blocks are not freed",
                  (long long)(alloc_fail_live() - live));
    rig_stop_server();
    return going;
}

static void sweep(enum way way)
{
    const unsigned step = rig_step();
    unsigned turns = 0;

    rig_command_all("SET foreign foreign-token");
    run(way, 0); /* libc keeps what it allocates once */
    while (run(way, turns) && turns < TURNS_MAX)
        turns += turns < 10 ? 1 : step;
    printf("# ended after each of %u turns\n", turns);
    fflush(stdout);
    ck_assert_uint_gt(turns, 10);
    rig_command_all("DEL foreign");
}

START_TEST(freed)
{
    sweep(FREE_CLIENT);
}
END_TEST

START_TEST(locks_freed)
{
    sweep(FREE_LOCKS);
}
END_TEST

START_TEST(canceled)
{
    sweep(CANCEL);
}
END_TEST

START_TEST(shut)
{
    sweep(SHUT_DOWN);
}
END_TEST

START_TEST(forked)
{
    sweep(FORK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_destroy");
    TCase *tcase = tcase_create("destroy");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, freed);
    tcase_add_test(tcase, locks_freed);
    tcase_add_test(tcase, canceled);
    tcase_add_test(tcase, shut);
    tcase_add_test(tcase, forked);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
