/* SPDX-License-Identifier: MIT
 * Runs one scenario once for each allocation or system call in it.
 *
 * run() is one run: it resets the rig, prepares, lets act() meet the failure, judges, and checks
 * that everything recovers. rig_sweep() and sweep_calls() call run() with k = 0, 1, 2 and so on. A
 * run in which nothing failed is a miss: k is larger than the number of allocations or calls.
 * MISSES_MAX misses in a row end the loop. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "call_fail.h"
#include "fdcheck.h"
#include "rig.h"

#define RECOVER_MS      5000       /* time limit of each step of the recovery (scaled) */
#define RUN_SECONDS     15         /* a longer run hangs */
#define NEVER           UINT64_MAX /* as k: nothing fails in this run */
#define ALWAYS          5          /* this many first allocations are tried in every build */
#define MISSES_MAX      3          /* the number of allocations may vary by this many */
#define ALLOCATIONS_MAX 5000       /* far more than any scenario needs: a larger k is an error */

static char note[160];                 /* name of the present run, for the signal handlers */
static volatile sig_atomic_t note_len; /* length of `note`; 0: no run */
static struct sigaction before_segv, before_abort; /* the handlers before catch_signals() */
static struct fdcheck descriptors;                 /* those open before the run */
static int64_t live_first;                         /* blocks after the first run */

/* What fails in the present runs: one kind of system call with one fault; NULL: allocations. */
static const struct call_fault *fault;

/* Sanitizers end the process without a signal that could be caught. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* Writes the name of the run, also from a signal handler. */
static void print_note(void)
{
    const ssize_t written = write(STDERR_FILENO, note, (size_t)note_len);
    (void)written;
}

/* Writes the name of the run and ends the process; SIGALRM means that the run hangs. */
static void on_signal(int number)
{
    print_note();
    if (number == SIGALRM) {
        static const char hang[] = "it hangs\n";
        const ssize_t written = write(STDERR_FILENO, hang, sizeof hang - 1);
        (void)written;
        _exit(1);
    }
    sigaction(number, number == SIGABRT ? &before_abort : &before_segv, NULL);
    raise(number);
}

/* Installs the signal handlers, once. */
static void catch_signals(void)
{
    static bool done;
    const struct sigaction action = {.sa_handler = on_signal};

    if (done)
        return;
    done = true;
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGABRT, &action, &before_abort);
    sigaction(SIGALRM, &action, NULL);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(print_note);
}

/* Records the name of the run in which number `k`, or with `starve` also each later one, fails. */
void rig_note(const char *name, bool starve, uint64_t k)
{
    char text[sizeof note / 2];

    snprintf(text, sizeof text, "%s %llu%s fails", fault != NULL ? fault->name : "allocation",
             (unsigned long long)k, starve ? " and each later one" : "");
    rig_note_text(name, text);
}

/* Records "in NAME, TEXT" as the name of the run, and starts an alarm of RUN_SECONDS (scaled). */
void rig_note_text(const char *name, const char *text)
{
    catch_signals();
    note_len = 0;
    note_len = snprintf(note, sizeof note, "in \"%.60s\", %s\n", name, text);
    alarm((unsigned)wait_scaled_ms(RUN_SECONDS));
}

/* Removes the name of the run and stops the alarm. */
void rig_end_note(void)
{
    alarm(0);
    note_len = 0;
}

/* Lets allocation or call number `k` fail, and with `starve` all later ones. */
static void start_failing(bool starve, uint64_t k)
{
    if (fault != NULL)
        call_fail_start(fault, k, starve);
    else if (starve)
        alloc_fail_from(k, ALLOC_FAIL_ALL_THREADS);
    else
        alloc_fail_once(k, ALLOC_FAIL_ALL_THREADS);
}

/* Ends the failures. Returns true if an allocation or call has failed. */
static bool stop_failing(void)
{
    return fault != NULL ? call_fail_stop() : alloc_fail_stop();
}

/* Returns whether number rig.k of the allocations or system calls was reached, so that it has
 * failed. */
bool rig_has_failed(void)
{
    return (fault != NULL ? call_fail_seen() : alloc_fail_seen()) > rig.k;
}

/* Exempts the calling thread from failures of both kinds while `on`. */
void rig_exempt(bool on)
{
    alloc_fail_exempt(on);
    call_fail_exempt(on);
}

/* Cleans up after a case. If its run did not end, prints the name of the run, frees the client and
 * removes all keys. */
void rig_after(void)
{
    (void)stop_failing();
    if (note_len == 0)
        return;
    printf("# that was %s", note);
    fflush(stdout);
    rig_end_note();
    redlock_free(rig.client);
    rig.client = NULL;
    if (rig.cluster != NULL)
        cluster_command_all(rig.cluster, "FLUSHALL");
}

/* Returns the distance between the values of k that this build tries: 1 in a normal build, 3 in one
 * up to three times as slow, 13 in slower ones. */
unsigned rig_step(void)
{
    const uint64_t slow = wait_scaled_ms(1);

    return slow <= 1 ? 1 : slow <= 3 ? 3 : 13;
}

/* Returns true if each key on the servers has a holder. */
static bool no_strays(void)
{
    return rig_strays() == 0;
}

/* Returns true if call 0 has had its callback. */
static bool call_0_has_ended(void)
{
    return rig.call[0].callbacks > 0;
}

/* Releases and frees everything that act() was given. */
static void release_all(void)
{
    for (unsigned i = 0; i < RIG_CALLS; i++) {
        if (rig.call[i].lock != NULL && rig.call[i].lock != rig.lock)
            redlock_lock_free(rig.call[i].lock);
        rig.call[i].lock = NULL;
    }
    redlock_lock_free(rig.lock);
    rig.lock = NULL;
}

/* Checks that the client can acquire and release a lock. */
static void check_client_works(void)
{
    redlock_opts_t opts = redlock_opts(RIG_TTL_MS);

    opts.wait_ms = wait_scaled_ms(RECOVER_MS);
    rig_hold("works again", &opts);
    rig_release(0, rig.lock);
    ck_assert_int_eq(rig.call[0].started, REDLOCK_OK);
    ck_assert_msg(rig_drive(call_0_has_ended, RECOVER_MS), "a release does not end");
    ck_assert_msg(rig.call[0].status == REDLOCK_OK, "release: %s", rig.call[0].text);
    release_all();
    ck_assert_msg(rig_drive(rig_no_keys, RECOVER_MS), "keys stay after a release");
}

/* Waits until all has recovered: failed attempts are undone at once, held locks when they are
 * released. */
static void recover(const struct scenario *scenario)
{
    if (!scenario->last && rig.client != NULL) {
        const bool clean = rig_drive(no_strays, RECOVER_MS);
        ck_assert_msg(clean, "%zu keys stay that nobody holds", rig_strays());
        release_all();
        rig_command_all("DEL foreign other");
        if (rig.hit) /* otherwise nothing may be left of a line */
            rig_command_all("DEL foreign" RIG_LINE_SUFFIX);
        ck_assert_msg(rig_drive(rig_no_keys, RECOVER_MS), "%zu keys stay after the release",
                      cluster_count_all_keys(rig.cluster));
        check_client_works();
    }
    release_all();
    redlock_cancel_free(rig.cancel);
    ck_assert_int_eq(redlock_free(rig.client), REDLOCK_OK);
    redlock_config_free(rig.config);
    ck_assert_msg(rig.ended == rig.begun, "of %u acquisitions the events of %u ended", rig.begun,
                  atomic_load(&rig.ended));
    ck_assert_msg(WAIT_UNTIL(rig_no_keys(), RECOVER_MS), "%zu keys outlive the client",
                  cluster_count_all_keys(rig.cluster));
}

/* Resets the rig, apart from its servers. */
static void reset_rig(void)
{
    struct cluster *cluster = rig.cluster;

    memset(&rig, 0, sizeof rig);
    rig.cluster = cluster;
}

/* Returns whether no block has leaked; `live`: number of blocks before the run. If the scenario has
 * `kept`, blocks are counted from the first run instead, because libc keeps blocks for later
 * threads. */
static bool is_freed(const struct scenario *scenario, int64_t live)
{
    const int64_t now = alloc_fail_live();

    if (scenario->kept != 0)
        return now <= live_first + scenario->kept + rig_spare_blocks();
    return now <= live + rig_spare_blocks() && (now == live || rig_is_tls());
}

/* Runs the scenario once, with number `k` failing (`starve`: and each later one), and checks that
 * everything recovers. Returns true if something failed. */
static bool run(const struct scenario *scenario, bool starve, uint64_t k)
{
    reset_rig();
    rig.starve = starve;
    rig.k = k;
    rig.frugal = scenario->frugal;
    rig.fault = fault;
    rig_note(scenario->name, starve, k);
    fdcheck_begin(&descriptors);
    const int64_t live = alloc_fail_live();
    if (!scenario->bare)
        rig_connect();
    if (scenario->prepare != NULL)
        scenario->prepare();
    memset(rig.events, 0, sizeof rig.events);
    start_failing(starve, k);
    scenario->act();
    const bool hit = stop_failing();
    rig.hit = hit;
    if (scenario->judge != NULL)
        scenario->judge();
    recover(scenario);
    reset_rig();
    const char *open = fdcheck_leaked(&descriptors, 1000);
    ck_assert_msg(open == NULL, "descriptors stay open: %s", open);
    /* A thread that resolves a name frees its memory when it ends. */
    ck_assert_msg(k == NEVER || WAIT_UNTIL(is_freed(scenario, live), RECOVER_MS),
                  "%lld blocks are not freed", (long long)(alloc_fail_live() - live));
    rig_end_note();
    return hit;
}

/* Runs the scenario for each k, first with one failing allocation, then with all later ones failing
 * as well. `hits` counts the runs of both kinds in which an allocation failed. */
void rig_sweep(const struct scenario *scenario)
{
    const unsigned step = rig_step();
    unsigned hits[2] = {0, 0};
    const uint64_t begin = wait_now_ms();

    run(scenario, false, NEVER); /* libc keeps what it allocates for its first thread */
    for (int starve = 0; starve < 2; starve++) {
        unsigned misses = 0;
        for (uint64_t k = 0; misses < MISSES_MAX; k += k < ALWAYS ? 1 : step) {
            const bool hit = run(scenario, starve != 0, k);
            misses = hit ? 0 : misses + 1;
            hits[starve] += hit;
            ck_assert_msg(k < ALLOCATIONS_MAX, "no end of allocations");
        }
    }
    if (scenario->frugal)
        ck_assert_msg(hits[0] == 0 && hits[1] == 0, "this has to do without allocating");
    else
        ck_assert_msg(scenario->quiet || (hits[0] > 0 && hits[1] > 0), "nothing was allocated");
    printf("# %s: %u and %u failures, %llu ms", scenario->name, hits[0], hits[1],
           (unsigned long long)(wait_now_ms() - begin));
    printf(step == 1 ? "\n" : "; every %uth allocation only: this build is slow\n", step);
    fflush(stdout);
}

/* Runs the scenario with one fault: call number k alone for each k, then number 0, 1, 3, 7… and all
 * later ones. Returns how many runs met a failure. */
static unsigned sweep_calls(const struct scenario *scenario)
{
    const unsigned step = rig_step();
    unsigned hits = 0, misses = 0;

    for (uint64_t k = 0; misses < MISSES_MAX; k += k < ALWAYS ? 1 : step) {
        const bool hit = run(scenario, false, k);
        misses = hit ? 0 : misses + 1;
        hits += hit;
        ck_assert_msg(k < ALLOCATIONS_MAX, "no end of calls");
    }
    for (uint64_t k = 0; fault->lasting && run(scenario, true, k); k = 2 * k + 1)
        hits++;
    return hits;
}

/* Runs the scenario with each fault of the table in call_fail.h whose call the scenario names. */
void rig_sweep_calls(const struct scenario *scenario)
{
    const uint64_t begin = wait_now_ms();
    unsigned hits = 0, kinds = 0;

    fault = NULL;
    run(scenario, false, NEVER);
    live_first = alloc_fail_live();
    for (unsigned i = 0; i < call_faults_count; i++) {
        if (scenario->calls != 0 && (scenario->calls & 1u << call_faults[i].call) == 0)
            continue;
        fault = &call_faults[i];
        const unsigned of_this = sweep_calls(scenario);
        kinds += of_this > 0;
        hits += of_this;
    }
    fault = NULL;
    ck_assert_msg(hits > 0, "nothing was called");
    printf("# %s: %u failures of %u kinds, %llu ms\n", scenario->name, hits, kinds,
           (unsigned long long)(wait_now_ms() - begin));
    fflush(stdout);
}
