/* SPDX-License-Identifier: MIT
 * Starts one command, passes signals on to it, and moves the terminal between command and shell.
 * This process is the wrapper: the `redlock` process that the user started, often from a shell with
 * job control. "Our group" is the process group of the wrapper. The starter, a helper process,
 * executes the command and reports its start, suspensions and end. A terminal serves one process
 * group at a time, its foreground group. If our group is that, a command with a group of its own
 * gets the terminal.
 *
 * When the command is suspended (Ctrl-Z), the wrapper takes the terminal back and offers it to the
 * shell. To do so ("yield"), the wrapper stops itself for a moment, because a shell shows its
 * prompt only when its job has stopped. A busy shell may need several offers. "Away" means that the
 * shell has the terminal and our group is in the background. When the shell continues the job (fg),
 * the wrapper notices it by polling, and gives the command the terminal and a SIGCONT.
 */
#include "job.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "descendants.h"
#include "exits.h"
#include "signals.h"
#include "terminal.h"

/* Time between two calls of job_watch() while the terminal has to be polled. */
#define WATCH_NS (100 * NS_PER_MS)
/* How many times to offer the terminal to a shell that gets no processor time. */
#define YIELDS_MAX 5

/* Opens the terminal, decides on the process group of the command and whether it gets the terminal,
 * and sends the request to the starter. Returns 0, or -1 if the starter has ended. */
int job_start(struct job *job, const char *path, char *const *argv, char *const *envp,
              bool share_group)
{
    struct start_request request = {.path = path, .argv = argv, .envp = envp};

    job->terminal_fd = terminal_open();
    /* Our group is outside of our PID namespace, so it could never get the terminal back. */
    if (job->terminal_fd >= 0 && getpgrp() == 0) {
        share_group = true;
        close(job->terminal_fd);
        job->terminal_fd = -1;
    }
    job->shares_group = share_group;
    request.group = share_group ? getpgrp() : 0;
    if (!share_group)
        request.flags |= START_NEW_GROUP;
    /* Only a foreground group may pass its terminal on. A command in the background of a script
     * is in the group of the script, which needs the terminal. */
    bool ours = terminal_is_ours(job->terminal_fd);
    bool gives_terminal = !share_group && ours && !signals_of_background();
    if (gives_terminal)
        request.flags |= START_TERMINAL;
    if (starter_request(job->guardian.request_fd, &request) != 0)
        return -1;
    job->has_terminal = gives_terminal;
    /* `ours` was read before the request: the shell may have put us into the foreground since. */
    job->away = !ours && !signals_of_background();
    job->state = JOB_STARTING;
    return 0;
}

/* Makes the group of the command the foreground group of the terminal. Does nothing if it is that
 * already, or if the command shares our group. */
static void give_terminal(struct job *job)
{
    if (!job->has_terminal && !job->shares_group)
        job->has_terminal = tcsetpgrp(job->terminal_fd, job->pid) == 0;
}

/* Makes our group the foreground group of the terminal again, if the command's group was made
 * that. */
void job_take_terminal(struct job *job)
{
    /* SIGTTOU is blocked, so this works from the background too. */
    if (job->has_terminal)
        tcsetpgrp(job->terminal_fd, getpgrp());
    job->has_terminal = false;
}

/* Sends a signal to the command's group, or to the command alone if it shares our group; keeps the
 * signal for later if the command is being started. SIGCONT also gives the command the terminal. */
void job_signal(struct job *job, int sig)
{
    if (job->state == JOB_STARTING)
        job->pending |= UINT64_C(1) << (sig - 1);
    if (!job->pid || job->state == JOB_ENDED)
        return;
    if (sig == SIGCONT && (job->state == JOB_SUSPENDED || job->away) &&
        terminal_is_ours(job->terminal_fd)) {
        job->away = false;
        job->yields_left = 0;
        give_terminal(job);
    }
    kill(job->shares_group ? job->pid : -job->pid, sig);
}

/* Handles the suspension of the command by signal `sig`: takes the terminal, and then either
 * continues the command or prepares to offer the terminal to the shell. */
static void suspended(struct job *job, int sig)
{
    job->state = JOB_SUSPENDED;
    job->yields_left = 0;
    job_take_terminal(job);
    /* The shell may put us into the foreground before job_watch() looks, without a signal. */
    job->away = !terminal_is_ours(job->terminal_fd);
    if (job->away)
        return;
    /* TTIN and TTOU mean that the command wanted the terminal. Our group has it now, so the command
     * gets it. */
    if (sig == SIGTTIN || sig == SIGTTOU)
        job_signal(job, SIGCONT);
    else
        job->yields_left = YIELDS_MAX;
}

/* Handles SIGTSTP of a suspended job and SIGTTIN and SIGTTOU of this process. Returns false if the
 * signal has to be passed on to the command. */
bool job_control_signal(struct job *job, int sig)
{
    if (sig == SIGTSTP && job->state == JOB_SUSPENDED && terminal_is_ours(job->terminal_fd)) {
        job->yields_left = YIELDS_MAX;
        return true;
    }
    if (sig != SIGTTIN && sig != SIGTTOU)
        return false;
    /* A process of our own group, such as a pager after the command in a pipeline, wants the
     * terminal. */
    if (job->has_terminal) {
        job_take_terminal(job);
        kill(0, SIGCONT);
    }
    return true;
}

/* Returns true if job_watch() has something to do. A running command is watched, too, while the
 * shell has the terminal: a nested `redlock run` is suspended only for a moment, and needs the
 * terminal when the shell puts us into the foreground. */
static bool is_watched(const struct job *job)
{
    if (job->terminal_fd < 0 || job->has_terminal)
        return false;
    return job->state == JOB_SUSPENDED ||
           (job->state == JOB_RUNNING && (job->away || job->yields_left > 0));
}

/* Returns `at_ns`, or the time of the next call of job_watch() if that is earlier. */
uint64_t job_wake_ns(const struct job *job, uint64_t at_ns)
{
    uint64_t look_ns = boottime_ns() + WATCH_NS;

    return is_watched(job) && look_ns < at_ns ? look_ns : at_ns;
}

/* Offers the terminal to the shell while yields are left, and continues our group and the command
 * when the shell has given the terminal back. Does nothing unless is_watched(). */
void job_watch(struct job *job)
{
    if (!is_watched(job))
        return;
    if (job->yields_left > 0) {
        job->yields_left--;
        job->away = terminal_yield(job->terminal_fd);
    }
    if (!terminal_is_ours(job->terminal_fd))
        job->away = true;
    if (job->away)
        job->yields_left = 0;
    if (job->away && terminal_is_ours(job->terminal_fd))
        /* to the whole group, as a shell does; ours is passed on to the command */
        kill(0, SIGCONT);
}

/* Sends the signals that arrived before the command had a pid. */
static void send_pending(struct job *job)
{
    for (int sig = 1; sig <= 64; sig++) /* Linux has 64 signals, `pending` one bit for each */
        if (job->pending & UINT64_C(1) << (sig - 1))
            job_signal(job, sig);
    job->pending = 0;
}

/* Applies a report of the starter: start, failure, suspension, continuation or end of the command.
 * Returns false if the report is about another process. */
bool job_report(struct job *job, const struct start_report *report)
{
    if (job->state == JOB_STARTING && report->kind == REPORT_STARTED) {
        job->pid = report->pid;
        job->starter = report->starter;
        job->state = JOB_RUNNING;
        send_pending(job);
        return true;
    }
    if (job->state == JOB_STARTING &&
        (report->kind == REPORT_FAILED || report->kind == REPORT_NO_PROCESS)) {
        job->status = report->value;
        job->no_process = report->kind == REPORT_NO_PROCESS;
        job->state = JOB_FAILED;
        job_take_terminal(job);
        return true;
    }
    if (!job->pid || report->pid != job->pid)
        return false;
    if (report->kind == REPORT_STOPPED) {
        suspended(job, report->value);
    } else if (report->kind == REPORT_CONTINUED) {
        job->state = JOB_RUNNING;
    } else if (report->kind == REPORT_ENDED) {
        job->state = JOB_ENDED;
        job->status = report->value;
        job_take_terminal(job);
    }
    return true;
}

/* Returns true if a process of the command's group runs; false if there is no such group or it is
 * our own. */
bool job_group_alive(const struct job *job)
{
    if (!job->pid || job->shares_group || (kill(-job->pid, 0) != 0 && errno != EPERM))
        return false;
    /* kill() counts zombies as members of the group. */
    struct descendants_pass pass = descendants_in_group(job->pid);
    return !pass.seen || pass.alive + pass.foreign > 0;
}

/* Returns the exit code for the end of the command, as a shell would. Valid in the states JOB_ENDED
 * and JOB_FAILED. */
int job_exit_code(const struct job *job)
{
    if (job->state == JOB_FAILED && job->no_process)
        return EXIT_SYSTEM;
    if (job->state == JOB_FAILED)
        return job->status == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    if (WIFSIGNALED(job->status))
        return EXIT_SIGNAL_BASE + WTERMSIG(job->status);
    return WEXITSTATUS(job->status);
}
