/* SPDX-License-Identifier: MIT
 * `redlock run` after the end of the command. run_end() reports how the command has ended, ends
 * processes that the command left behind and that would outlive a lost lock, holds the lock for
 * --min-hold, and releases it. The functions that wait call run_turn(), so that events of the lock,
 * signals and the kill time are still handled. "Signal" means a signal to this process, and "stop"
 * the stop signal that the command got because of the lock or of --max-hold. Times are ns of
 * CLOCK_BOOTTIME.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "clock.h"
#include "descendants.h"
#include "exits.h"
#include "run.h"
#include "say.h"
#include "signals.h"

/* Time limit for the release, and for processes that survive their KILL. */
#define RELEASE_WAIT_NS (3 * UINT64_C(1000000000))

/* Returns true if the command was stopped because the lock was about to be lost or because
 * --max-hold had passed. */
static bool was_stopped(const struct run *run)
{
    return run->stop == STOP_LOSS || run->stop == STOP_MAX_HOLD;
}

/* Waits after a stop until the processes that the command started have ended. They have the rest
 * of the grace; at the kill time the guardian kills them. After that, processes of other users,
 * which the guardian cannot kill, are not waited for. */
static void wait_for_descendants(struct run *run)
{
    uint64_t give_up_ns = run->sent_kill_ns + RELEASE_WAIT_NS;

    while (boottime_ns() < give_up_ns) {
        struct descendants_pass pass =
            guardian_signal_rest(&run->job.guardian, run->job.starter, 0);
        /* Without /proc only the guardian can find the processes that are left. It kills them. */
        if (!pass.seen)
            guardian_end(&run->job.guardian, true);
        bool grace_is_over = boottime_ns() >= run->sent_kill_ns;
        if (!pass.seen || (pass.alive == 0 && (pass.foreign == 0 || grace_is_over)))
            return;
        run_turn(run, boottime_ns() + RUN_LOOK_AGAIN_NS);
    }
}

/* Waits, after a signal to this process has ended the command, until the process group of the
 * command has ended. The group gets KILL after the grace. Ends early if a stop becomes necessary.
 */
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

/* Prints a warning with the number of processes that the command started and that still run, if
 * there are any. */
static void warn_about_leftovers(struct run *run)
{
    struct descendants_pass pass = guardian_signal_rest(&run->job.guardian, run->job.starter, 0);

    if (pass.alive + pass.foreign > 0)
        say(SAY_WARNING, "%s: processes that the command started still run, without the lock: %u",
            run->name, pass.alive + pass.foreign);
}

/* Ends processes that the command left behind, as the reason of its end demands. After an internal
 * error they are killed at once. After a stop or a signal they have the grace. After a normal end
 * they may go on, and a warning names their number. Does nothing if the command was not started. */
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

/* Emits the exit status of the command as event, or prints why the command could not be
 * executed. */
static void report_ended(struct run *run)
{
    int code = job_exit_code(&run->job);

    if (run->job.state == JOB_FAILED && run->job.no_process) {
        char *what = text_format("%s: no process could be started for the command", run->name);
        guardian_say_no_process(what, run->job.status);
        free(what);
        return;
    }
    if (run->job.state == JOB_FAILED) {
        say(SAY_ERROR, "%s: %s: %s", run->name, run->argv[0], strerror(run->job.status));
        return;
    }
    json_t *fields = json_pack("{s:i}", "exit", code);
    if (WIFSIGNALED(run->job.status))
        json_object_set_new(fields, "signal", json_string(signal_text(WTERMSIG(run->job.status))));
    event_emit(&run->events, "child_exited", fields);
}

/* Returns how long the lock must still be held because of --min-hold, in ms, rounded up; 0: not any
 * more. */
static uint64_t hold_left_ms(const struct run *run)
{
    uint64_t until_ns = run->acquired_ns + run->timing.min_hold_ms * NS_PER_MS;
    uint64_t now_ns = boottime_ns();

    return now_ns < until_ns ? (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* Waits until the rest of --min-hold fits into the validity of the lock, and returns that rest in
 * ms. The caller passes it to the release, which leaves the key on the servers for that time, so
 * this process need not wait for it. After a signal, returns the validity instead, at once. Returns
 * 0 if nothing of --min-hold is left or the lock is lost. */
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

/* Warns that the lock was not held any more when it was released. */
static void report_not_held(const struct run *run)
{
    say(SAY_WARNING,
        "%s: the lock was not held any more when it was released; another client may have "
        "held it",
        run->name);
}

/* Releases the lock after --min-hold and waits up to three seconds for the result. With --keep,
 * the lock is detached instead and expires with its TTL. */
static void release(struct run *run)
{
    uint64_t after_ms = wait_for_min_hold(run);
    uint64_t give_up_ns = boottime_ns() + RELEASE_WAIT_NS;

    if (run->options->keep && !run->lost) {
        int error = redlock_lock_detach(run->lock);
        if (error != REDLOCK_OK)
            say(SAY_WARNING, "%s: --keep failed: %s", run->name, redlock_strerror(error));
        return;
    }
    int error = session_release(&run->session, run->lock, after_ms);
    if (error == REDLOCK_ELOST) {
        /* The lock had expired or was lost. The library has undone what was left of it. */
        if (!run->lost)
            report_not_held(run);
        return;
    }
    if (error != REDLOCK_OK) {
        say(SAY_WARNING, "%s: not released: %s; it expires with its TTL", run->name,
            redlock_strerror(error));
        return;
    }
    while (!run->released && boottime_ns() < give_up_ns)
        run_turn(run, give_up_ns);
    if (!run->released)
        run->release_status = REDLOCK_ENOQUORUM;
    run->released = true;
}

/* Emits the event "released" or "release_failed", and warns if the release failed. The library
 * repeats a release that no quorum has confirmed until the client is closed. So the release has
 * failed only if `undo_pending`, or if the lock was not held (REDLOCK_ELOST). Does nothing if there
 * was no release. */
void run_report_release(struct run *run, bool undo_pending)
{
    int status = run->release_status;

    if (!run->released)
        return;
    if (status != REDLOCK_ELOST && !undo_pending)
        status = REDLOCK_OK;
    event_emit(&run->events, status == REDLOCK_OK ? "released" : "release_failed",
               json_pack("{s:s}", "error", status == REDLOCK_OK ? "" : redlock_error_name(status)));
    if (status == REDLOCK_OK || run->lost)
        return;
    if (status == REDLOCK_ELOST)
        report_not_held(run);
    else
        say(SAY_WARNING,
            "%s: the release was not confirmed: %s; the lock expires with its TTL at the latest",
            run->name, report_reason(run->release_report, status));
}

/* Reports why the starter has ended without starting the command. Returns EXIT_INTERNAL if the
 * guardian was killed, EXIT_STOPPED if the kill time came first. */
int run_not_started(const struct run *run)
{
    if (run->sent_kill_ns == NEVER_NS || boottime_ns() < run->sent_kill_ns)
        return guardian_explain_end(run->job.guardian.report_fd, run->name,
                                    "the command was not started");
    /* The kill time has passed: this process was stopped, or got no processor time. */
    say(SAY_ERROR,
        "%s: the lock expired before the command could be started: redlock was suspended, or "
        "the machine is too busy for so short a TTL; raise -t",
        run->name);
    return EXIT_STOPPED;
}

/* Reports the end of the command, ends its leftover processes and releases the lock. Returns the
 * exit code: that of the command, EXIT_STOPPED if it was stopped, or EXIT_INTERNAL. */
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
        say(SAY_ERROR,
            "%s: the guardian process was killed, so the command was killed too; start again",
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
    return was_stopped(run) && !run->options->preserve_status ? EXIT_STOPPED : code;
}

/* Returns how a run has ended that did not acquire the lock, by its exit code. */
static enum run_result result_without_lock(const struct run *run, int code)
{
    if (code == run->options->conflict_code)
        return RUN_HELD;
    if (code == EXIT_NO_QUORUM)
        return RUN_NO_QUORUM;
    if (code == EXIT_REFUSED)
        return RUN_REFUSED;
    return code > EXIT_SIGNAL_BASE ? RUN_SIGNALED : RUN_ERROR;
}

/* Returns how a run has ended that acquired the lock. */
static enum run_result result_with_lock(const struct run *run, int code)
{
    /* The guardian has killed a command whose wrapper was suspended. */
    bool killed = code == EXIT_STOPPED && job_exit_code(&run->job) != EXIT_STOPPED;

    if (run->stop == STOP_INTERNAL || run->job.state != JOB_ENDED)
        return RUN_ERROR;
    if (run->stop == STOP_MAX_HOLD)
        return RUN_MAX_HOLD;
    if (run->lost || run->stop == STOP_LOSS || killed)
        return RUN_LOST;
    if (run->end_signals > 0)
        return RUN_SIGNALED;
    return code == EXIT_OK ? RUN_SUCCESS : RUN_FAILED;
}

/* Returns what the figures say about the end of the run, which exits with `code`. */
struct run_ending run_ending_of(const struct run *run, int code)
{
    bool acquired = run->acquired_ns != 0;

    return (struct run_ending){
        .result = acquired ? result_with_lock(run, code) : result_without_lock(run, code),
        .exit_code = code,
        .lost = run->lost,
        .kept = run->options->keep && acquired && !run->lost,
    };
}
