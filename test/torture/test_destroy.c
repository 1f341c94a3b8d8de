/* SPDX-License-Identifier: MIT
 * A client is ended after each single turn of its loop, while operations of all kinds are in
 * flight: it is freed, its locks are freed, everything is canceled, or the process forks. Each
 * operation gets one callback, no key is left, and servers receive nothing from a forked child.
 *
 * The operations come in scenes, which start_next_scene() starts one after the other. Their numbers
 * are those of the calls in the order of their start: 0 to 3 in the first scene, 4 to 7 in the
 * second, 8 and 9 in the third. run() ends the client after a number of turns, in one of the ways
 * of `enum way`; sweep() calls run() for 0, 1, 2 and more turns. The key "foreign" belongs to
 * another client during the whole test. */
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

#define TURNS_MAX 400   /* more than the scenes need */
#define LINE_MS   10000 /* the key of a line expires that long after its last use */
#define TTL_MS    400   /* of keys that cannot be released any more */
#define WAIT_MS   10000 /* limit of every wait */
#define CALLS     12    /* 10 of the scenes, one of shut_down_and_check(), one spare */

/* Makes each turn handle one event only, so that there are many turns. */
static const struct call_fault one_event = {.call = CALL_EPOLL_WAIT, .lasting = true};

/* How the client is ended: freed at once; after its locks; after a cancel; after a fork, whose
 * child must not be able to use the client; after a shutdown. */
enum way { FREE_CLIENT, FREE_LOCKS, CANCEL, FORK, SHUT_DOWN };

/* The state of the run: what was started, and how it ended. */
static struct {
    struct rig_call call[CALLS]; /* used instead of rig.call, which is too short */
    unsigned calls;              /* number of calls that were started or refused */
    unsigned at;                 /* index of the next scene */
    redlock_opts_t opts;         /* of all acquisitions */
    struct listener {
        bool used;     /* the call with this number is an acquisition */
        unsigned ends; /* how often the end of the lock's events was reported */
        unsigned late; /* number of events after the end */
    } listener[CALLS]; /* one for each call */
} scene_state;

/* Counts events of a lock that come after its end. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *listener)
{
    (void)rl, (void)event;
    ((struct listener *)listener)->late += ((struct listener *)listener)->ends;
}

/* Counts the ends of a lock's events. */
static void on_end(void *listener)
{
    ((struct listener *)listener)->ends++;
}

/* Records the result of the function that started the next call, and counts the call. */
static void note_started(int result)
{
    struct rig_call *call = &scene_state.call[scene_state.calls++];

    call->used = true;
    call->started = result;
}

/* Returns the record for the next call. Fails the case if there are too many. */
static void *next_call(void)
{
    ck_assert_uint_lt(scene_state.calls, CALLS);
    return &scene_state.call[scene_state.calls];
}

/* Starts an acquisition with events; with `waits` it has a wait budget. */
static void acquire(const char *resource, bool waits)
{
    redlock_opts_t opts = scene_state.opts;

    opts.wait_ms = waits ? wait_scaled_ms(WAIT_MS) : 0;
    opts.event_fn = on_event;
    opts.event_end_fn = on_end;
    opts.event_userdata = &scene_state.listener[scene_state.calls];
    scene_state.listener[scene_state.calls].used = true;
    note_started(redlock_acquire_start(rig.client, resource, &opts, rig_done, next_call()));
}

/* Releases or extends the lock that call `of_call` acquired, unless there is none by now. */
static void on_lock(unsigned of_call, bool release)
{
    redlock_lock_t *lock = scene_state.call[of_call].lock;
    struct rig_call *call = next_call();

    if (lock == NULL)
        return;
    call->borrows = true;
    note_started(release ? redlock_release_start(lock, rig_done, call)
                         : redlock_extend_start(lock, scene_state.opts.ttl_ms, rig_done, call));
}

/* Starts to verify the lock that call `of_call` acquired, unless there is none. */
static void verify(unsigned of_call)
{
    redlock_lock_t *lock = scene_state.call[of_call].lock;
    struct rig_call *call = next_call();

    if (lock == NULL)
        return;
    call->borrows = true;
    note_started(redlock_verify_start(lock, rig.cancel, rig_done, call));
}

/* Returns true if call `i` has ended or was refused. */
static bool has_ended(unsigned i)
{
    const struct rig_call *call = &scene_state.call[i];

    return call->started != REDLOCK_OK || call->callbacks > 0;
}

/* Starts the next scene when the calls of the present one that it needs have ended. Returns false
 * when the last scene is over. */
static bool start_next_scene(void)
{
    switch (scene_state.at) {
    case 0: /* while the connections are made */
        acquire("one", true);
        acquire("foreign", true);
        note_started(redlock_inspect_start(rig.client, "one", rig.cancel, rig_done, next_call()));
        note_started(
            redlock_wait_ready_start(rig.client, WAIT_MS, rig.cancel, rig_done, next_call()));
        break;
    case 1:
        if (!has_ended(0) || !has_ended(3))
            return true;
        on_lock(0, false);
        acquire("two", false);
        acquire("one", true); /* held by this client */
        note_started(redlock_break_start(rig.client, "three", rig.cancel, rig_done, next_call()));
        break;
    case 2:
        if (!has_ended(4) || !has_ended(5))
            return true;
        verify(0);
        on_lock(0, true);
        break;
    default:
        return !has_ended(6) || !has_ended(7) || !has_ended(8) || !has_ended(9);
    }
    scene_state.at++;
    return true;
}

/* Starts the next scene if possible and turns the loop once. Returns false when the last scene is
 * over. */
static bool run_turn(void)
{
    struct pollfd ready = {.fd = redlock_get_fd(rig.client), .events = POLLIN};

    if (!start_next_scene())
        return false;
    (void)poll(&ready, 1, 5);
    ck_assert_int_eq(redlock_process(rig.client), REDLOCK_OK);
    return true;
}

/* Returns true if all calls have ended. */
static bool all_have_ended(void)
{
    for (unsigned i = 0; i < scene_state.calls; i++)
        if (!has_ended(i))
            return false;
    return true;
}

/* Returns true if each key on the servers has a holder. */
static bool keys_explained(void)
{
    return rig_strays() == 0;
}

/* Returns true if the servers have only the key of the other client. */
static bool only_foreign_keys(void)
{
    return cluster_count_all_keys(rig.cluster) == RIG_NODES;
}

/* Frees all locks. */
static void free_locks(void)
{
    for (unsigned i = 0; i < scene_state.calls; i++) {
        redlock_lock_free(scene_state.call[i].lock);
        scene_state.call[i].lock = NULL;
    }
}

/* ---- the ways to end ---- */

/* Checks that each call had one callback, and each listener one end and no event after it. */
static void check_ended_once(void)
{
    for (unsigned i = 0; i < scene_state.calls; i++) {
        const struct rig_call *call = &scene_state.call[i];
        const struct listener *listener = &scene_state.listener[i];
        ck_assert_msg(call->callbacks == (call->started == REDLOCK_OK),
                      "call %u was called back %u times", i, call->callbacks);
        ck_assert_msg(listener->ends == (listener->used ? 1 : 0), "events of %u ended %u times", i,
                      listener->ends);
        ck_assert_uint_eq(listener->late, 0);
    }
}

/* Shuts the client down and checks that no key is left. */
static void shut_down_and_check(void)
{
    struct rig_call *call = next_call();

    note_started(redlock_shutdown_start(rig.client, wait_scaled_ms(WAIT_MS), rig_done, call));
    ck_assert_msg(rig_drive(all_have_ended, WAIT_MS), "a shutdown does not end");
    ck_assert_msg(call->status == REDLOCK_OK, "shutdown: %s", redlock_error_name(call->status));
    ck_assert_msg(rig_drive(only_foreign_keys, WAIT_MS), "shut down, and keys stay");
}

/* Cancels all operations, frees the locks, and checks that no key is left. */
static void cancel_and_free(void)
{
    redlock_cancel_trigger(rig.cancel);
    ck_assert_msg(rig_drive(all_have_ended, WAIT_MS), "a cancelled operation does not end");
    free_locks();
    ck_assert_msg(rig_drive(only_foreign_keys, WAIT_MS), "cancelled and freed, and keys stay");
}

/* Frees only the handles that were received, while other calls continue. */
static void free_locks_and_wait(void)
{
    free_locks();
    redlock_cancel_trigger(rig.cancel);
    ck_assert_msg(rig_drive(all_have_ended, WAIT_MS), "an operation does not end");
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

static uint64_t status_request_size; /* number of bytes that bytes_read() itself sends */

/* Returns true if the servers have read nothing but the requests of bytes_read() meanwhile, as many
 * bytes as at the call before. Sets status_request_size. */
static bool is_quiet(void)
{
    const uint64_t before = bytes_read(), cost = bytes_read() - before;
    const bool still = cost == status_request_size;

    status_request_size = cost;
    return still;
}

/* Ends a forked child with status 1 unless the condition holds: Check's assertions belong to the
 * parent. */
#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "child, line %d: %s\n", __LINE__, #condition);                         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Writes the counters of ./dev coverage, which _exit() does not. */
void __gcov_dump(void) __attribute__((weak));

/* Checks in a forked child that each call is refused, and ends the child. */
static void use_client_in_child(void)
{
    struct rig_call call = {.used = false};
    redlock_lock_t *lock = scene_state.call[0].lock;
    redlock_stats_t stats;

    CHILD_CHECK(redlock_process(rig.client) == REDLOCK_EFORKED);
    CHILD_CHECK(redlock_acquire_start(rig.client, "x", &scene_state.opts, rig_done, &call) ==
                REDLOCK_EFORKED);
    CHILD_CHECK(redlock_inspect_start(rig.client, "x", NULL, rig_done, &call) == REDLOCK_EFORKED);
    CHILD_CHECK(redlock_get_stats(rig.client, &stats, sizeof stats) == REDLOCK_EFORKED);
    if (lock != NULL) {
        CHILD_CHECK(redlock_lock_check(lock, 0) == REDLOCK_EFORKED);
        CHILD_CHECK(redlock_release_start(lock, rig_done, &call) == REDLOCK_EFORKED);
        CHILD_CHECK(redlock_verify_start(lock, NULL, rig_done, &call) == REDLOCK_EFORKED);
    }
    for (unsigned i = 0; i < scene_state.calls; i++)
        scene_state.call[i].callbacks = scene_state.listener[i].ends = 0;
    free_locks();
    redlock_cancel_free(rig.cancel);
    CHILD_CHECK(redlock_free(rig.client) == REDLOCK_OK);
    for (unsigned i = 0; i < scene_state.calls; i++)
        CHILD_CHECK(scene_state.call[i].callbacks == 0 && scene_state.listener[i].ends == 0);
    if (__gcov_dump != NULL)
        __gcov_dump();
    _exit(0);
}

/* Forks while the servers are quiet, and checks that they receive nothing from the child. */
static void fork_and_check(void)
{
    int status = -1;

    status_request_size = 0;
    ck_assert_msg(WAIT_UNTIL(is_quiet(), WAIT_MS), "the servers are never quiet");
    const uint64_t before = bytes_read();
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        use_client_in_child();
    ck_assert_msg(WAIT_UNTIL(waitpid(child, &status, WNOHANG) == child, WAIT_MS),
                  "the child hangs");
    ck_assert_msg(status == 0, "the child ended with status %x", (unsigned)status);
    ck_assert_uint_eq(bytes_read() - before, status_request_size);
    for (unsigned i = 0; i < TURNS_MAX && run_turn(); i++)
        ;
    cancel_and_free();
}

/* Ends the client in this way, frees it, and checks that each call ended once and no key is left.
 */
static void end_client(enum way way)
{
    switch (way) {
    case FREE_LOCKS:
        free_locks_and_wait();
        break;
    case CANCEL:
        cancel_and_free();
        break;
    case FORK:
        fork_and_check();
        break;
    case SHUT_DOWN:
        shut_down_and_check();
        break;
    default:
        break;
    }
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    rig.client = NULL;
    check_ended_once();
    redlock_cancel_free(rig.cancel);
    free_locks();
    /* After redlock_free() alone some keys disappear by expiry only, with TLS also that of a line.
     */
    const uint64_t limit_ms = 4 * TTL_MS + 2000 + (rig_is_tls() ? LINE_MS : 0);
    ck_assert_msg(WAIT_UNTIL(only_foreign_keys(), limit_ms), "keys outlive the client");
    ck_assert(keys_explained());
}

/* Creates a client, runs `turns` turns of its loop with the scenes, and ends the client in this
 * way. Returns true if the scenes were not over by then. */
static bool run(enum way way, unsigned turns)
{
    static const char *const names[] = {"free", "free locks", "cancel", "fork", "shut down"};
    static struct fdcheck descriptors;
    char text[40];
    struct cluster *cluster = rig.cluster;
    unsigned i = 0;
    bool going = true;

    memset(&rig, 0, sizeof rig);
    memset(&scene_state, 0, sizeof scene_state);
    rig.cluster = cluster;
    snprintf(text, sizeof text, "ended after %u turns", turns);
    rig_note_text(names[way], text);
    fdcheck_begin(&descriptors);
    const int64_t live = alloc_fail_live();
    rig_new_config(REDLOCK_MODE_EMBEDDED);
    ck_assert_int_eq(redlock_new(&rig.client, rig.config), REDLOCK_OK);
    redlock_config_free(rig.config);
    ck_assert_int_eq(redlock_cancel_new(&rig.cancel, rig.client), REDLOCK_OK);
    scene_state.opts = redlock_opts(wait_scaled_ms(TTL_MS));
    scene_state.opts.flags |= REDLOCK_FLAG_AUTO_EXTEND;
    scene_state.opts.cancel = rig.cancel;
    call_fail_start(&one_event, 0, true);
    for (; i < turns && going; i++)
        going = run_turn();
    call_fail_stop();
    end_client(way);
    const char *open = fdcheck_leaked(&descriptors, 1000);
    ck_assert_msg(open == NULL, "descriptors stay open: %s", open);
    const int64_t left = alloc_fail_live() - live;
    ck_assert_msg(left <= rig_spare_blocks() && (left == 0 || rig_is_tls()),
                  "%lld blocks are not freed", (long long)left);
    rig_end_note();
    return going;
}

/* Runs with 0, 1, 2 and more turns, until the scenes are over before the end. */
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

START_TEST(a_client_can_be_freed_after_each_turn)
{
    sweep(FREE_CLIENT);
}
END_TEST

START_TEST(locks_can_be_freed_after_each_turn)
{
    sweep(FREE_LOCKS);
}
END_TEST

START_TEST(operations_can_be_canceled_after_each_turn)
{
    sweep(CANCEL);
}
END_TEST

START_TEST(a_client_can_be_shut_down_after_each_turn)
{
    sweep(SHUT_DOWN);
}
END_TEST

START_TEST(a_process_can_fork_after_each_turn)
{
    sweep(FORK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torture_destroy");
    TCase *tcase = tcase_create("destroy");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, a_client_can_be_freed_after_each_turn);
    tcase_add_test(tcase, locks_can_be_freed_after_each_turn);
    tcase_add_test(tcase, operations_can_be_canceled_after_each_turn);
    tcase_add_test(tcase, a_client_can_be_shut_down_after_each_turn);
    tcase_add_test(tcase, a_process_can_fork_after_each_turn);
    suite_add_tcase(suite, tcase);
    return rig_main(suite);
}
