/* SPDX-License-Identifier: MIT
 * `redlock run` after the end of the command: nothing of it may outlive a lost lock, the lock is
 * held for --min-hold, then released.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "clock.h"
#include "descendants.h"
#include "exits.h"
#include "run.h"
#include "say.h"
#include "signals.h"

#define RELEASE_WAIT_NS (3 * UINT64_C(1000000000))

static bool is_lost(const struct run *run)
{
    return run->stop == STOP_LOSS || run->stop == STOP_MAX_HOLD;
}

/* The command was told to stop: what it started gets the rest of the grace, the guardian ends it.
 * Processes of other users, which it cannot end, are not waited for any longer. */
static void wait_for_descendants(struct run *run)
{
    uint64_t give_up_ns = run->sent_kill_ns + RELEASE_WAIT_NS;

    while (boottime_ns() < give_up_ns) {
        struct descendants_pass pass =
            guardian_signal_rest(&run->job.guardian, run->job.starter, 0);
        /* Only the guardian finds what is left: it ends that at once. */
        if (!pass.seen)
            guardian_end(&run->job.guardian, true);
        bool grace_is_over = boottime_ns() >= run->sent_kill_ns;
        if (!pass.seen || (pass.alive == 0 && (pass.foreign == 0 || grace_is_over)))
            return;
        run_turn(run, boottime_ns() + RUN_LOOK_AGAIN_NS);
    }
}

/* Somebody ended the job with a signal: its process group gets the grace, and then KILL. */
static void wait_for_group(struct run *run)
{
    uint64_t kill_ns = boottime_ns() + run->timing.grace_ms * NS_PER_MS;
    uint64_t give_up_ns = NEVER_NS;

    while (job_group_alive(&run->job) && !run->stop && boottime_ns() < give_up_ns) {
        if (boottime_ns() >= kill_ns) {
            kill(-run->job.pid, SIGKILL);
            kill_ns = NEVER_NS;
            /* Zombies whose parent does not wait for them may be all that is left. */
            if (!descendants_visible())
                give_up_ns = boottime_ns() + RELEASE_WAIT_NS;
        }
        run_turn(run, boottime_ns() + RUN_LOOK_AGAIN_NS);
    }
}

static void warn_about_leftovers(struct run *run)
{
    struct descendants_pass pass = guardian_signal_rest(&run->job.guardian, run->job.starter, 0);

    if (pass.alive + pass.foreign > 0)
        say(SAY_WARNING,
            "%s: what the command started still runs, without the lock (processes: %u)", run->name,
            pass.alive + pass.foreign);
}

static void settle_leftovers(struct run *run)
{
    if (run->stop == STOP_INTERNAL) {
        if (!run->job.shares_group && run->job.pid)
            kill(-run->job.pid, SIGKILL);
        guardian_end(&run->job.guardian, true);
    } else if (run->job.state != JOB_ENDED) {
        return;
    } else if (run->stop) {
        wait_for_descendants(run);
    } else if (run->end_signals > 0) {
        wait_for_group(run);
        if (run->stop)
            wait_for_descendants(run);
    }
    warn_about_leftovers(run);
}

static void report_ended(struct run *run)
{
    int code = job_exit_code(&run->job);

    if (run->job.state == JOB_FAILED) {
        say(SAY_ERROR, "%s: %s: %s", run->name,
            run->job.no_process ? "no process could be started for the command" : run->argv[0],
            strerror(run->job.status));
        return;
    }
    json_t *fields = json_pack("{s:i}", "exit", code);
    if (WIFSIGNALED(run->job.status))
        json_object_set_new(fields, "signal", json_string(signal_text(WTERMSIG(run->job.status))));
    event_emit(&run->events, "child_exited", fields);
}

/* What of --min-hold is left, in ms. */
static uint64_t hold_left_ms(const struct run *run)
{
    uint64_t until_ns = run->acquired_ns + run->timing.min_hold_ms * NS_PER_MS;
    uint64_t now_ns = boottime_ns();

    return now_ns < until_ns ? (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* The key can be left behind with exactly the rest of the time, so nobody has to wait for it. The
 * rest is never longer than what is still ours. */
static uint64_t wait_for_min_hold(struct run *run)
{
    unsigned signals = run->end_signals;
    uint64_t left_ms;

    while ((left_ms = hold_left_ms(run)) > 0 && !run->lost) {
        uint64_t remaining_ms = redlock_lock_remaining_ms(run->lock);
        if (left_ms <= remaining_ms)
            return left_ms;
        if (run->end_signals > signals)
            return remaining_ms;
        run_turn(run, boottime_ns() + (left_ms - remaining_ms) * NS_PER_MS);
    }
    return 0;
}

static void report_not_held(const struct run *run)
{
    say(SAY_WARNING,
        "%s: the lock was no longer ours at its release; another client may have had it",
        run->name);
}

static void release(struct run *run)
{
    uint64_t after_ms = wait_for_min_hold(run);
    uint64_t give_up_ns = boottime_ns() + RELEASE_WAIT_NS;

    if (run->options->keep && !run->lost) {
        int error = redlock_lock_detach(run->lock);
        if (error != REDLOCK_OK)
            say(SAY_WARNING, "%s: not kept: %s", run->name, redlock_strerror(error));
        return;
    }
    int error = session_release(&run->session, run->lock, after_ms);
    if (error == REDLOCK_ELOST) {
        /* The library has removed what was left of it. */
        if (!run->lost)
            report_not_held(run);
        return;
    }
    if (error != REDLOCK_OK) {
        say(SAY_WARNING, "%s: not released: %s; it ends with its TTL", run->name,
            redlock_strerror(error));
        return;
    }
    while (!run->released && boottime_ns() < give_up_ns)
        run_turn(run, give_up_ns);
    if (!run->released)
        run->release_status = REDLOCK_ENOQUORUM;
    run->released = true;
}

/* A release that too few servers have confirmed in time is repeated by the library until the client
 * is closed; only if it still owes something then is it a failure. */
void run_report_release(struct run *run, bool owing)
{
    int status = run->release_status;

    if (!run->released)
        return;
    if (status != REDLOCK_ELOST && !owing)
        status = REDLOCK_OK;
    event_emit(&run->events, status == REDLOCK_OK ? "released" : "release_failed",
               json_pack("{s:s}", "error", status == REDLOCK_OK ? "" : redlock_error_name(status)));
    if (status == REDLOCK_OK || run->lost)
        return;
    if (status == REDLOCK_ELOST)
        report_not_held(run);
    else
        say(SAY_WARNING, "%s: the release was not confirmed: %s; its TTL ends it at the latest",
            run->name, report_reason(run->release_report, status));
}

int run_not_started(const struct run *run)
{
    if (run->sent_kill_ns == NEVER_NS || boottime_ns() < run->sent_kill_ns) {
        say(SAY_ERROR, "%s: the guardian process was killed; the command was not started",
            run->name);
        return EXIT_INTERNAL;
    }
    /* The guardian's time had come: we were stopped, or got no processor. */
    say(SAY_ERROR,
        "%s: the lock was over before the command could be started: redlock was stopped, or the "
        "machine is too busy for a TTL this short",
        run->name);
    return EXIT_STOPPED;
}

int run_end(struct run *run)
{
    if (run->reports_end && run->job.state == JOB_STARTING) {
        int code = run_not_started(run);
        /* The starter may have been killed between the start and its report. */
        guardian_end(&run->job.guardian, true);
        run->settled = true;
        release(run);
        return code;
    }
    if (run->reports_end && run->job.state != JOB_ENDED && run->job.state != JOB_FAILED) {
        say(SAY_ERROR, "%s: the guardian process was killed, so the command was ended too",
            run->name);
        run->stop = STOP_INTERNAL;
    } else {
        report_ended(run);
    }
    job_take_terminal(&run->job);
    settle_leftovers(run);
    run->settled = true;
    run_feed_guardian(run);
    release(run);
    if (run->stop == STOP_INTERNAL)
        return EXIT_INTERNAL;
    int code = job_exit_code(&run->job);
    return is_lost(run) && !run->options->preserve_status ? EXIT_STOPPED : code;
}
