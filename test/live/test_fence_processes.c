/* SPDX-License-Identifier: MIT
 * Eight processes acquire the same fenced lock in turn, while servers are stopped, emptied and
 * killed. Each records the start and end of each acquisition and its fencing token. Tokens must be
 * unique, and a lock that was granted before another was requested must have the smaller one. That
 * must hold even if an emptied server has let two processes hold the lock at once.
 *
 * Uses live.h: five real servers, nodes 0 to 4, that run as long as the program, and `live`, the
 * settings and the client of the running case. After each case all servers are made healthy, and a
 * key or descriptor that is left fails the case. live_pause(first, count) stops servers with
 * SIGSTOP. WAIT_UNTIL(condition, ms) polls and returns false after the deadline. wait_scaled_ms()
 * stretches a time for slow builds. From fences.h: fences_begin() removes all fence records,
 * fences_open() creates a client with volatile records, fences_acquire() acquires a fenced lock,
 * and fences_pass() also releases it and returns its fencing token. */
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
#define TURNS     12                  /* locks that each process acquires */
#define SLOTS     (PROCESSES * TURNS) /* one for the result of each acquisition */

/* The results of all processes, in shared memory. */
struct results {
    atomic_uint used;     /* of grants[] */
    atomic_uint failed;   /* calls that failed */
    atomic_uint inside;   /* processes that hold the lock now */
    atomic_uint overlaps; /* times that two processes held it */
    atomic_uint rounds;   /* grants that took two round trips */
    struct grant {
        uint64_t requested_ns, granted_ns; /* CLOCK_MONOTONIC */
        uint64_t fence;
    } grants[SLOTS];
};

static struct results *results; /* in memory that all processes share */

/* Returns CLOCK_MONOTONIC in nanoseconds, which all processes share. */
static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Records a grant while the lock is held. */
static void record_grant(uint64_t requested_ns, uint64_t granted_ns, uint64_t fence)
{
    if (atomic_fetch_add(&results->inside, 1) != 0)
        atomic_fetch_add(&results->overlaps, 1);
    const unsigned at = atomic_fetch_add(&results->used, 1);
    if (at < SLOTS)
        results->grants[at] = (struct grant){requested_ns, granted_ns, fence};
    atomic_fetch_sub(&results->inside, 1);
}

/* Acquires and releases the lock TURNS times, in a process of its own. Counts failures instead of
 * asserting. */
static void run_process(unsigned self, redlock_config_t *config)
{
    redlock_t *client = NULL;
    redlock_opts_t opts = redlock_opts(live.max_ttl_ms);

    opts.flags = REDLOCK_FLAG_FENCE;
    opts.wait_ms = wait_scaled_ms(6 * TIME_LIMIT_MS);
    if (redlock_new(&client, config) != REDLOCK_OK) {
        atomic_fetch_add(&results->failed, 1);
        return;
    }
    for (unsigned i = 0; i < TURNS; i++) {
        redlock_lock_t *lock = NULL;
        redlock_report_t *report = NULL;
        redlock_report_info_t info = {0};
        const uint64_t requested_ns = now_ns();
        if (redlock_acquire(client, "contended", &opts, &lock, &report) != REDLOCK_OK) {
            fprintf(stderr, "process %u: %s\n", self, redlock_report_text(report));
            atomic_fetch_add(&results->failed, 1);
            redlock_report_free(report);
            break;
        }
        const uint64_t granted_ns = now_ns();
        redlock_report_get_info(report, &info, sizeof info);
        redlock_report_free(report);
        atomic_fetch_add(&results->rounds, info.rounds > 1);
        record_grant(requested_ns, granted_ns, redlock_lock_fence(lock));
        redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    redlock_shutdown(client, 1000);
    redlock_free(client);
}

/* Starts all processes. */
static void start(pid_t *pids)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        redlock_config_t *config = fences_config();
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            run_process(i, config);
            _exit(0);
        }
        redlock_config_free(config);
    }
}

/* Waits for all processes, and checks the fencing tokens of all pairs of grants. */
static void finish(const pid_t *pids)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    const unsigned used = atomic_load(&results->used);
    ck_assert_uint_eq(atomic_load(&results->failed), 0);
    ck_assert_uint_eq(used, SLOTS);
    unsigned ordered = 0;
    for (unsigned i = 0; i < used; i++) {
        for (unsigned j = 0; j < used; j++) {
            const struct grant *a = &results->grants[i], *b = &results->grants[j];
            ck_assert_msg(i == j || a->fence != b->fence, "twice: %" PRIu64, a->fence);
            if (a->granted_ns >= b->requested_ns)
                continue;
            ordered++;
            ck_assert_msg(a->fence < b->fence,
                          "%" PRIu64 " was granted before %" PRIu64 " was requested", a->fence,
                          b->fence);
        }
    }
    ck_assert_uint_gt(ordered, SLOTS); /* enough pairs were compared */
    printf("# %u grants, %u of them in two round trips\n", used, atomic_load(&results->rounds));
}

/* Removes the fence records and makes the shared memory for the results. */
static void begin(void)
{
    fences_begin();
    results =
        mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(results, MAP_FAILED);
}

/* Returns whether there are that many grants, or a failure. */
static bool reaches(unsigned grants)
{
    return atomic_load(&results->used) >= grants || atomic_load(&results->failed) != 0;
}

/* The control: without faults, tokens increase and no two processes hold the lock at once. */
START_TEST(tokens_increase_without_faults)
{
    pid_t pids[PROCESSES];

    begin();
    start(pids);
    finish(pids);
    ck_assert_uint_eq(atomic_load(&results->overlaps), 0);
    munmap(results, sizeof *results);
}
END_TEST

/* One fault at a time, each after a certain number of grants. */
START_TEST(tokens_increase_with_faults)
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
    munmap(results, sizeof *results);
}
END_TEST

/* Returns the suite of all cases. The names are those of CK_RUN_CASE, which runs one group. */
static Suite *fence_processes_suite(void)
{
    Suite *suite = suite_create("live_fence_processes");
    live_add(suite, "undisturbed", tokens_increase_without_faults);
    live_add(suite, "disturbed", tokens_increase_with_faults);
    return suite;
}

/* Starts the servers, runs all cases and stops the servers. Skips without a server program. */
int main(void)
{
    if (!cluster_available())
        return suite_skip(CLUSTER_MISSING);
    live_start_servers();
    const int status = suite_run_nofork(fence_processes_suite());
    live_stop_servers();
    return status;
}
