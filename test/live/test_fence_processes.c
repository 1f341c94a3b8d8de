/* SPDX-License-Identifier: MIT
 * Eight processes acquire the same fenced lock in turn, while servers are stopped, emptied and
 * killed. Each records the start and end of each acquisition and its fencing token. Tokens must be
 * unique, and a lock that was granted before another was requested must have the smaller one. That
 * must hold even where an emptied server has let two processes hold the lock at once. */
#include "fences.h"
#include "suite.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 8
#define TURNS     12
#define SLOTS     (PROCESSES * TURNS)

struct board {
    atomic_uint used, failed, inside, overlaps;
    atomic_uint rounds; /* grants that took two round trips */
    struct grant {
        uint64_t asked_ns, told_ns, fence;
    } grants[SLOTS];
};

static struct board *board;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Inside the lock. */
static void write_down(uint64_t asked_ns, uint64_t told_ns, uint64_t fence)
{
    if (atomic_fetch_add(&board->inside, 1) != 0)
        atomic_fetch_add(&board->overlaps, 1);
    const unsigned at = atomic_fetch_add(&board->used, 1);
    if (at < SLOTS)
        board->grants[at] = (struct grant){asked_ns, told_ns, fence};
    atomic_fetch_sub(&board->inside, 1);
}

/* A process of its own: no assertion, only notes. */
static void take_turns(unsigned self, redlock_config_t *config)
{
    redlock_t *client = NULL;
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);

    opts.flags = REDLOCK_FLAG_FENCE;
    opts.wait_ms = wait_scaled_ms(6 * TIME_LIMIT_MS);
    if (redlock_new(&client, config) != REDLOCK_OK) {
        atomic_fetch_add(&board->failed, 1);
        return;
    }
    for (unsigned i = 0; i < TURNS; i++) {
        redlock_lock_t *lock = NULL;
        redlock_report_t *report = NULL;
        redlock_report_info_t info = {0};
        const uint64_t asked_ns = now_ns();
        if (redlock_acquire(client, "contended", &opts, &lock, &report) != REDLOCK_OK) {
            fprintf(stderr, "process %u: %s\n", self, redlock_report_text(report));
            atomic_fetch_add(&board->failed, 1);
            redlock_report_free(report);
            break;
        }
        const uint64_t told_ns = now_ns();
        redlock_report_get_info(report, &info, sizeof info);
        redlock_report_free(report);
        atomic_fetch_add(&board->rounds, info.rounds > 1);
        write_down(asked_ns, told_ns, redlock_lock_fence(lock));
        redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    redlock_shutdown(client, 1000);
    redlock_free(client);
}

static void start(pid_t *pids)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        redlock_config_t *config = fences_config();
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            take_turns(i, config);
            _exit(0);
        }
        redlock_config_free(config);
    }
}

static void finish(const pid_t *pids)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    const unsigned used = atomic_load(&board->used);
    ck_assert_uint_eq(atomic_load(&board->failed), 0);
    ck_assert_uint_eq(used, SLOTS);
    unsigned ordered = 0;
    for (unsigned i = 0; i < used; i++) {
        for (unsigned j = 0; j < used; j++) {
            const struct grant *a = &board->grants[i], *b = &board->grants[j];
            ck_assert_msg(i == j || a->fence != b->fence, "twice: %" PRIu64, a->fence);
            if (a->told_ns >= b->asked_ns)
                continue;
            ordered++;
            ck_assert_msg(a->fence < b->fence,
                          "%" PRIu64 " was told before %" PRIu64 " was asked for", a->fence,
                          b->fence);
        }
    }
    ck_assert_uint_gt(ordered, SLOTS); /* else nothing was compared */
    printf("# %u grants, %u of them in two round trips\n", used, atomic_load(&board->rounds));
}

static void begin(void)
{
    fences_begin();
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(board, MAP_FAILED);
}

static bool reaches(unsigned grants)
{
    return atomic_load(&board->used) >= grants || atomic_load(&board->failed) != 0;
}

START_TEST(undisturbed)
{
    pid_t pids[PROCESSES];

    begin();
    start(pids);
    finish(pids);
    ck_assert_uint_eq(atomic_load(&board->overlaps), 0);
    munmap(board, sizeof *board);
}
END_TEST

/* One disturbance at a time, each after so and so many grants. */
START_TEST(disturbed)
{
    pid_t pids[PROCESSES];

    begin();
    start(pids);
    ck_assert(WAIT_UNTIL(reaches(SLOTS / 6), 6 * TIME_LIMIT_MS));
    live_pause(0, 2);
    ck_assert(WAIT_UNTIL(reaches(SLOTS / 3), 6 * TIME_LIMIT_MS));
    live_resume_all();
    ck_assert(cluster_replies(live.cluster, 4, "OK", "FLUSHALL"));
    ck_assert(WAIT_UNTIL(reaches(SLOTS / 2), 6 * TIME_LIMIT_MS));
    cluster_kill(live.cluster, 0);
    cluster_restart(live.cluster, 0, false);
    ck_assert(WAIT_UNTIL(reaches(2 * SLOTS / 3), 6 * TIME_LIMIT_MS));
    cluster_command_all(live.cluster, "SCRIPT FLUSH");
    finish(pids);
    munmap(board, sizeof *board);
}
END_TEST

static Suite *fence_processes_suite(void)
{
    Suite *suite = suite_create("live_fence_processes");
    live_add(suite, "undisturbed", undisturbed);
    live_add(suite, "disturbed", disturbed);
    return suite;
}

int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(fence_processes_suite());
    live_stop_servers();
    return status;
}
