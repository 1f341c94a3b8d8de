/* SPDX-License-Identifier: MIT
 * Start, signals, terminal and exit status of one command.
 */
#include "job.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descendants.h"
#include "exits.h"

int job_start(struct job *job, const char *path, char *const *argv, char *const *envp,
              bool share_group)
{
    struct start_request request = {
        .path = path, .argv = argv, .envp = envp, .group = share_group ? getpgrp() : 0};

    job->shares_group = share_group;
    if (!share_group) {
        request.flags |= START_NEW_GROUP;
        /* Only a foreground group may give its terminal away; a background one never had it. */
        job->wants_terminal = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
        if (job->wants_terminal)
            request.flags |= START_TERMINAL;
    }
    if (starter_request(job->guardian.request_fd, &request) != 0)
        return -1;
    job->state = JOB_STARTING;
    return 0;
}

static void give_terminal(struct job *job)
{
    if (job->wants_terminal && !job->has_terminal)
        job->has_terminal = tcsetpgrp(STDIN_FILENO, job->pid) == 0;
}

void job_take_terminal(struct job *job)
{
    /* SIGTTOU is blocked, so this works from the background too. */
    if (job->has_terminal)
        tcsetpgrp(STDIN_FILENO, getpgrp());
    job->has_terminal = false;
}

void job_signal(struct job *job, int sig)
{
    if (job->state == JOB_STARTING)
        job->pending |= UINT64_C(1) << (sig - 1);
    if (!job->pid || job->state == JOB_ENDED)
        return;
    if (sig == SIGCONT && job->state == JOB_SUSPENDED && tcgetpgrp(STDIN_FILENO) == getpgrp())
        give_terminal(job);
    kill(job->shares_group ? job->pid : -job->pid, sig);
}

static void send_pending(struct job *job)
{
    for (int sig = 1; sig <= 64; sig++)
        if (job->pending & UINT64_C(1) << (sig - 1))
            job_signal(job, sig);
    job->pending = 0;
}

bool job_report(struct job *job, const struct start_report *report)
{
    if (job->state == JOB_STARTING && report->kind == REPORT_STARTED) {
        job->pid = report->pid;
        job->starter = report->starter;
        job->state = JOB_RUNNING;
        job->has_terminal = job->wants_terminal;
        send_pending(job);
        return true;
    }
    if (job->state == JOB_STARTING &&
        (report->kind == REPORT_FAILED || report->kind == REPORT_NO_PROCESS)) {
        job->status = report->value;
        job->no_process = report->kind == REPORT_NO_PROCESS;
        job->state = JOB_FAILED;
        job->has_terminal = job->wants_terminal;
        job_take_terminal(job);
        return true;
    }
    if (!job->pid || report->pid != job->pid)
        return false;
    if (report->kind == REPORT_STOPPED) {
        job->state = JOB_SUSPENDED;
        job_take_terminal(job);
    } else if (report->kind == REPORT_CONTINUED) {
        job->state = JOB_RUNNING;
    } else if (report->kind == REPORT_ENDED) {
        job->state = JOB_ENDED;
        job->status = report->value;
        job_take_terminal(job);
    }
    return true;
}

bool job_group_alive(const struct job *job)
{
    if (!job->pid || job->shares_group || (kill(-job->pid, 0) != 0 && errno != EPERM))
        return false;
    /* kill() finds zombies, too. */
    struct descendants_pass pass = descendants_in_group(job->pid);
    return !pass.seen || pass.alive > 0;
}

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
