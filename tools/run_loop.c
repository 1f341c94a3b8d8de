/* SPDX-License-Identifier: MIT
 * `redlock run` while the command runs. run_job() calls run_turn() until the command has ended.
 * Each call waits for one of three things. A report of the starter says what happened to the
 * command. A note of the session says what happened to the lock. A signal to this process, the
 * wrapper, is passed on to the command. Then run_turn() compares the clock with two times. At the
 * stop time (term_ns(), the deadline minus the grace) the command gets the stop signal. The
 * guardian has the kill time in advance and kills all that is left then; the wrapper does so only
 * if the guardian is late. Times are ns of CLOCK_BOOTTIME.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "durations.h"
#include "exits.h"
#include "run.h"
#include "say.h"
#include "signals.h"

/* Shortest time between two warnings about failed extensions. */
#define REPEAT_NS (10 * UINT64_C(1000000000))
/* The wrapper kills in place of the guardian if the guardian has not killed this long after the
 * kill time. KILL_RESERVE_MS, the time from the kill time to the deadline, includes this delay. */
#define GUARDIAN_LATE_NS (50 * NS_PER_MS)

/* Returns true if the command has ended or failed, or if its end cannot be learnt any more. */
static bool has_job_ended(const struct run *run)
{
    return run->job.state == JOB_ENDED || run->job.state == JOB_FAILED || run->reports_end;
}

/* Sets run->deadline_ns to the deadline of the lock, but at most to the end of --max-hold. Sets
 * run->lost if the lock has no validity left. */
void run_refresh_deadline(struct run *run)
{
    /* The clock is read first: time that passes in between makes the deadline too early, never too
     * late. */
    uint64_t now_ns = boottime_ns();
    uint64_t remaining_ms = redlock_lock_remaining_ms(run->lock);

    run->deadline_ns = now_ns + remaining_ms * NS_PER_MS;
    if (remaining_ms == 0)
        run->lost = true;
    if (run->timing.max_hold_ms) {
        uint64_t most_ns = run->acquired_ns + run->timing.max_hold_ms * NS_PER_MS;
        if (run->deadline_ns > most_ns)
            run->deadline_ns = most_ns;
    }
}

/* Computes the kill time from the deadline, the time of the stop and the grace, and sends it to the
 * guardian if it has changed. There is none (NEVER_NS) once run->settled is set. */
void run_feed_guardian(struct run *run)
{
    uint64_t grace_ms = run->timing.grace_ms;
    uint64_t kill_ns = timing_kill_ns(run->deadline_ns, run->stopped_ns, grace_ms);

    /* With --on-loss warn, only a second signal sets a kill time. */
    if (run->options->warn_on_loss && run->stop != STOP_MAX_HOLD)
        kill_ns = run->stopped_ns ? run->stopped_ns + grace_ms * NS_PER_MS : NEVER_NS;
    if (run->settled)
        kill_ns = NEVER_NS;
    if (kill_ns == run->sent_kill_ns)
        return;
    run->sent_kill_ns = kill_ns;
    /* If the guardian has ended, the end of the starter's reports shows that. */
    guardian_set_kill_time(&run->job.guardian, kill_ns);
}

/* Returns the time at which the command gets the stop signal: the deadline minus the grace; 0 if
 * that is negative. */
static uint64_t term_ns(const struct run *run)
{
    uint64_t grace_ns = run->timing.grace_ms * NS_PER_MS;

    return run->deadline_ns > grace_ns ? run->deadline_ns - grace_ns : 0;
}

/* Prints why the command is stopped, and emits the event "stopping". */
static void report_stop(struct run *run)
{
    char left[DURATION_TEXT], hold[DURATION_TEXT];
    uint64_t now_ns = boottime_ns();
    uint64_t left_ms = run->deadline_ns > now_ns ? (run->deadline_ns - now_ns) / NS_PER_MS : 0;
    const char *what = signal_text(run->options->stop_signal);

    duration_text(left_ms, left);
    if (run->stop == STOP_MAX_HOLD)
        say(SAY_ERROR, "%s: --max-hold %s has been reached; sent %s to the command", run->name,
            duration_text(run->timing.max_hold_ms, hold), what);
    else if (left_ms == 0)
        say(SAY_ERROR, "%s: the lock is lost; the command is stopped at once", run->name);
    else
        say(SAY_ERROR,
            "%s: the lock cannot be extended and is valid for %s more; sent %s to the command",
            run->name, left, what);
    event_emit(&run->events, "stopping",
               json_pack("{s:s, s:s, s:I}", "reason",
                         run->stop == STOP_MAX_HOLD ? "max_hold" : "lock_loss", "signal", what,
                         "remaining_ms", (json_int_t)left_ms));
}

/* Reports, once, that the lock is lost. Does nothing while the lock is held. */
static void report_lost(struct run *run)
{
    if (!run->lost || run->lost_reported)
        return;
    run->lost_reported = true;
    run_figures_lost(run->figures);
    event_emit(&run->events, "lost", json_pack("{s:i}", "remaining_ms", 0));
    if (run->options->warn_on_loss)
        say(SAY_ERROR, "%s: the lock is lost; the command runs on without it (--on-loss warn)",
            run->name);
}

/* Sends the stop signal to the command, and sets run->stop, once the time of term_ns() has come.
 * With
 * --on-loss warn, does so only if the reason is --max-hold. */
static void check_deadline(struct run *run)
{
    if (run->stop || has_job_ended(run) || boottime_ns() < term_ns(run))
        return;
    /* An extension may have succeeded whose note has not arrived yet. */
    run_refresh_deadline(run);
    report_lost(run);
    if (boottime_ns() < term_ns(run))
        return;
    uint64_t most_ns = run->acquired_ns + run->timing.max_hold_ms * NS_PER_MS;
    /* The library ends the lock a little before --max-hold, by the drift at most. */
    bool max_hold = run->timing.max_hold_ms &&
                    run->deadline_ns + timing_drift_ms(&run->timing) * NS_PER_MS >= most_ns;
    if (run->options->warn_on_loss && !max_hold)
        return;
    run->stop = max_hold ? STOP_MAX_HOLD : STOP_LOSS;
    if (!run->stopped_ns)
        run->stopped_ns = boottime_ns();
    report_stop(run);
    job_signal(&run->job, run->options->stop_signal);
    job_signal(&run->job, SIGCONT); /* a suspended process does not handle the stop signal */
    run_feed_guardian(run);
}

/* Reports a failed extension: emits the event, and prints a warning at most every ten seconds. */
static void extension_failed(struct run *run, const struct note *note)
{
    struct votes votes = report_votes(note->report);
    char left[DURATION_TEXT];
    uint64_t now_ns = boottime_ns();

    event_emit(&run->events, "extend_failed",
               json_pack("{s:i, s:i, s:i, s:I, s:s}", "granted", (int)votes.granted, "denied",
                         (int)votes.denied, "failed", (int)votes.failed, "remaining_ms",
                         (json_int_t)note->remaining_ms, "error",
                         redlock_error_name(note->status)));
    bool said =
        run->extend_failed_reported_ns && now_ns < run->extend_failed_reported_ns + REPEAT_NS;
    if (said || note->remaining_ms == 0)
        return;
    run->extend_failed_reported_ns = now_ns;
    say(SAY_WARNING, "%s: not extended, trying again for %s: %s", run->name,
        duration_text(note->remaining_ms, left), report_reason(note->report, note->status));
}

/* Handles an event of the lock: extended, not extended, endangered or lost. Ignores other
 * events. */
static void lock_event(struct run *run, const struct note *note)
{
    struct votes votes = report_votes(note->report);

    switch (note->event) {
    case REDLOCK_EVENT_EXTENDED:
        run_refresh_deadline(run);
        run->extend_failed_reported_ns = 0;
        event_emit(&run->events, "extended",
                   json_pack("{s:i, s:I}", "granted", (int)votes.granted, "remaining_ms",
                             (json_int_t)note->remaining_ms));
        break;
    case REDLOCK_EVENT_EXTEND_FAILED:
        extension_failed(run, note);
        break;
    case REDLOCK_EVENT_ENDANGERED:
        event_emit(&run->events, "endangered",
                   json_pack("{s:I}", "remaining_ms", (json_int_t)note->remaining_ms));
        break;
    case REDLOCK_EVENT_LOST:
        run->lost = true;
        run_refresh_deadline(run);
        report_lost(run);
        break;
    default:
        break;
    }
}

/* Handles one note of the session, an event or the result of the release, and frees it. */
static void take_note(struct run *run, struct note *note)
{
    if (note->kind == NOTE_EVENT)
        lock_event(run, note);
    if (note->kind == NOTE_RELEASED) {
        run->released = true;
        run->release_status = note->status;
        run->release_report = note->report;
        note->report = NULL;
    }
    note_free(note);
}

/* Handles one signal that this process received: passes it on to the command, except SIGCHLD and
 * signals of job control. The second signal that ends a command (signal_ends()) sets the kill time
 * to the end of the grace. */
static void take_signal(struct run *run, const struct signalfd_siginfo *info)
{
    int sig = (int)info->ssi_signo;
    bool ends = signal_ends(sig);

    if (sig == SIGCHLD)
        guardian_reap(&run->job.guardian);
    if (sig == SIGCHLD || job_control_signal(&run->job, sig))
        return;
    /* In a shared group, the terminal has already sent the signal to the command. */
    if (!(run->job.shares_group && signal_from_terminal(info)))
        job_signal(&run->job, sig);
    if (ends && run->job.state == JOB_SUSPENDED)
        job_signal(&run->job, SIGCONT);
    if (!ends)
        return;
    run->end_signals++;
    if (run->end_signals == 2 && !run->stopped_ns) {
        run->stopped_ns = boottime_ns();
        run_feed_guardian(run);
    }
}

/* Returns the time at which the wrapper kills in place of the guardian; NEVER_NS if there is no
 * kill time. */
static uint64_t enforce_at_ns(const struct run *run)
{
    return run->sent_kill_ns == NEVER_NS ? NEVER_NS : run->sent_kill_ns + GUARDIAN_LATE_NS;
}

/* Kills the command and all that it started, if the guardian should have done so by now. The
 * guardian may have been stopped or killed. Does nothing before enforce_at_ns(). */
static void enforce_kill_time(struct run *run)
{
    if (boottime_ns() < enforce_at_ns(run))
        return;
    /* The command's group comes first: it is nearly all there is, and reading /proc takes time. */
    job_signal(&run->job, SIGKILL);
    struct descendants_pass pass =
        guardian_signal_rest(&run->job.guardian, run->job.starter, SIGKILL);
    /* Only the report of the end is missing now. Guardian and starter have to run for that. */
    if (pass.alive == 0)
        guardian_continue(&run->job.guardian);
}

/* Reads and handles one report of the starter. Sets run->reports_end if the starter has ended. */
static void take_report(struct run *run)
{
    struct start_report report;

    if (!starter_read(run->job.guardian.report_fd, &report)) {
        run->reports_end = true;
        return;
    }
    job_report(&run->job, &report);
    if (report.kind == REPORT_STARTED) {
        guardian_set_command(&run->job.guardian, run->job.pid, !run->job.shares_group);
        event_emit(&run->events, "child_started", json_pack("{s:i}", "pid", (int)report.pid));
    } else if (report.kind == REPORT_STOPPED && !run->job.has_terminal) {
        say(SAY_NOTE,
            "the command is suspended, the lock is still held; fg or kill -CONT %d continues it, "
            "Ctrl-C ends it",
            (int)getpid());
    }
}

/* Waits until `at_ns` at the latest, and handles reports, notes and signals. Then sends the stop
 * signal if it is due, updates the kill time, and kills if the guardian is late. */
void run_turn(struct run *run, uint64_t at_ns)
{
    struct pollfd fds[3] = {
        {.fd = run->signal_fd, .events = POLLIN},
        {.fd = run->session.note_read, .events = POLLIN},
        {.fd = run->reports_end ? -1 : run->job.guardian.report_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    struct note *note;

    poll(fds, 3, poll_timeout(boottime_ns(), job_wake_ns(&run->job, at_ns)));
    if (fds[2].revents)
        take_report(run);
    while ((note = session_next(&run->session)))
        take_note(run, note);
    while (signals_next(run->signal_fd, &info))
        take_signal(run, &info);
    job_watch(&run->job);
    check_deadline(run);
    run_feed_guardian(run);
    enforce_kill_time(run);
}

/* Returns the next time at which check_deadline() has something to do; NEVER_NS once the command
 * was stopped or the lock is lost. */
static uint64_t stop_at_ns(const struct run *run)
{
    if (run->stop || run->lost)
        return NEVER_NS;
    /* With --on-loss warn, the time of the stop passes without a stop. The loss itself comes
     * next. */
    if (run->options->warn_on_loss && boottime_ns() >= term_ns(run))
        return run->deadline_ns + NS_PER_MS;
    return term_ns(run);
}

/* Returns the time at which the loop has to run even if no signal, note or report arrives. */
static uint64_t next_wake_ns(const struct run *run)
{
    uint64_t now_ns = boottime_ns();
    uint64_t stop_ns = stop_at_ns(run), kill_ns = enforce_at_ns(run);

    if (kill_ns <= now_ns)
        kill_ns = now_ns + RUN_LOOK_AGAIN_NS;
    return stop_ns < kill_ns ? stop_ns : kill_ns;
}

/* Calls run_turn() until the command has ended or could not be executed, or the starter has
 * ended. */
void run_job(struct run *run)
{
    while (!has_job_ended(run))
        run_turn(run, next_wake_ns(run));
}
