/* SPDX-License-Identifier: MIT
 * The wrapper's side of the guardian: starts it, sends it orders and ends it. The wrapper is the
 * `redlock` process that the user started; guardian.h describes the three processes. Three pipes
 * connect them: feed (orders, wrapper to guardian), request (what to execute, wrapper to starter)
 * and report (starter to wrapper). fds[0] of a pipe is its end for reading. A subreaper is a
 * process that becomes the parent of orphans among its descendants.
 */
#include "guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exits.h"
#include "say.h"
#include "starter.h"
#include "title.h"

/* Closes both ends of a pipe. */
static void close_pipe(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

/* Reports to the wrapper, with errno, that a helper process could not be set up, and ends. */
static _Noreturn void give_up(int report_fd)
{
    starter_report(report_fd, REPORT_NO_PROCESS, -1, errno);
    _exit(GUARDIAN_ORPHANED);
}

/* Turns the forked child into the guardian and forks the starter. The parameters are the three
 * pipes and the directory to remove at the end (NULL: none). The starter is forked before setsid(),
 * so that it stays in the session of the wrapper. The subreaper flag is set before the fork, so
 * that no orphan can become a child of another process. */
static _Noreturn void become_guardian(int feed[2], int request[2], int report[2],
                                      const char *remove_dir)
{
    pid_t self = getpid();
    int gate[2];

    close(feed[1]);
    close(request[1]);
    close(report[0]);
    title_set(GUARDIAN_TITLE);
    int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1L) != 0 || pipe2(gate, O_CLOEXEC) != 0)
        give_up(report[1]);
    /* With SIGCHLD ignored, the kernel reaps the starter and the orphans that become our
     * children. */
    signal(SIGCHLD, SIG_IGN);
    pid_t starter = fork();
    if (starter < 0)
        give_up(report[1]);
    if (starter == 0) {
        close(feed[0]);
        close(gate[1]);
        close(timer_fd);
        starter_main(self, gate[0], request[0], report[1]);
    }
    if (getpgrp() != 0)
        setpgid(starter, starter);
    setsid();
    guardian_main(feed[0], timer_fd, gate[1], starter, remove_dir);
}

/* Makes the three pipes and forks the guardian. Returns 0, or -1 with errno and nothing left
 * open. */
int guardian_start(struct guardian *ret_guardian, const char *remove_dir)
{
    int feed[2], request[2], report[2];

    if (prctl(PR_SET_CHILD_SUBREAPER, 1L) != 0 || pipe2(feed, O_CLOEXEC) != 0)
        return -1;
    if (pipe2(request, O_CLOEXEC) != 0) {
        close_pipe(feed);
        return -1;
    }
    if (pipe2(report, O_CLOEXEC) != 0) {
        close_pipe(feed);
        close_pipe(request);
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        become_guardian(feed, request, report, remove_dir);
    close(feed[0]);
    close(request[0]);
    close(report[1]);
    if (pid < 0) {
        close(feed[1]);
        close(request[1]);
        close(report[0]);
        return -1;
    }
    /* A stopped guardian does not read. A full pipe must then be an error and not block the
     * wrapper. */
    fcntl(feed[1], F_SETFL, O_NONBLOCK);
    *ret_guardian = (struct guardian){.pid = pid,
                                      .started_ticks = descendants_started(pid),
                                      .feed_fd = feed[1],
                                      .request_fd = request[1],
                                      .report_fd = report[0]};
    return 0;
}

/* Prints `what` could not be done for want of a process, and what to do. */
void guardian_say_no_process(const char *what, int error)
{
    say(SAY_ERROR, "%s: %s; %s", what, strerror(error),
        error == EMFILE || error == ENFILE
            ? "raise the limit of open files (ulimit -n)"
            : "free memory, or raise the limit of processes (ulimit -u)");
}

/* Reads the error of guardian or starter, if there is one, and prints it or `killed`. */
int guardian_explain_end(int report_fd, const char *name, const char *killed)
{
    struct start_report report;

    if (starter_read(report_fd, &report) && report.kind == REPORT_NO_PROCESS) {
        guardian_say_no_process("run: cannot fork", report.value);
        return EXIT_SYSTEM;
    }
    say(SAY_ERROR, "%s: the guardian process was killed, so %s; start again", name, killed);
    return EXIT_INTERNAL;
}

/* Sends one order to the guardian. An error is ignored, because it means that the guardian has
 * ended or is stopped. */
static void feed(struct guardian *guardian, struct guardian_message message)
{
    if (write(guardian->feed_fd, &message, sizeof message) < 0)
        return;
}

/* Sends the kill time `at_ns` (ns of CLOCK_BOOTTIME; UINT64_MAX: never) to the guardian. */
void guardian_set_kill_time(struct guardian *guardian, uint64_t at_ns)
{
    feed(guardian, (struct guardian_message){.order = ORDER_KILL_TIME, .value = at_ns});
}

/* Sends the pid of the command to the guardian, and whether that pid is also a process group. */
void guardian_set_command(struct guardian *guardian, pid_t command, bool own_group)
{
    feed(guardian, (struct guardian_message){
                       .order = ORDER_COMMAND, .value = (uint64_t)command, .own_group = own_group});
}

/* Closes the pipe of requests, if it is open: the starter then ends with its last command. */
void guardian_close_requests(struct guardian *guardian)
{
    if (guardian->request_fd >= 0)
        close(guardian->request_fd);
    guardian->request_fd = -1;
}

/* Waits, without blocking, for all children that have ended, and records the end of the
 * guardian. */
void guardian_reap(struct guardian *guardian)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != guardian->pid)
            continue;
        guardian->ended = true;
        guardian->status = status;
    }
}

/* Returns the scope of the processes that became children of the wrapper when the guardian
 * ended. Older children are excluded: the process may have had them before it executed
 * `redlock`. */
static struct descendants_scope orphans(const struct guardian *guardian, pid_t starter)
{
    return (struct descendants_scope){.ancestor = getpid(),
                                      .spare = starter,
                                      .since = guardian->pid,
                                      .since_ticks = guardian->started_ticks};
}

/* Sends `sig` to all that the command started: descendants of the guardian, or orphans of the
 * wrapper if the guardian has ended. Returns the numbers that one search found. */
struct descendants_pass guardian_signal_rest(struct guardian *guardian, pid_t starter, int sig)
{
    const struct descendants_scope left = orphans(guardian, starter);
    const struct descendants_scope below = {.ancestor = guardian->pid, .spare = starter};

    guardian_reap(guardian);
    if (!guardian->ended) {
        struct descendants_pass pass = descendants_signal(&below, sig);
        guardian_reap(guardian);
        if (!guardian->ended)
            return pass;
    }
    return descendants_signal(&left, sig);
}

/* Sends SIGCONT to the guardian if it has not ended. */
void guardian_continue(const struct guardian *guardian)
{
    if (guardian->pid > 0 && !guardian->ended)
        kill(guardian->pid, SIGCONT);
}

/* Orders the guardian to end, with KILL for the rest if `kill_rest`, closes the pipes, and waits
 * for its end. Returns true if the guardian had killed at the kill time; false at a second call. */
bool guardian_end(struct guardian *guardian, bool kill_rest)
{
    if (guardian->pid <= 0 || guardian->end_requested)
        return false;
    guardian->end_requested = true;
    guardian_close_requests(guardian);
    feed(guardian, (struct guardian_message){.order = kill_rest ? ORDER_KILL : ORDER_LEAVE});
    close(guardian->feed_fd);
    close(guardian->report_fd);
    guardian->feed_fd = guardian->report_fd = -1;
    /* A stopped guardian cannot end. */
    guardian_continue(guardian);
    while (!guardian->ended) {
        pid_t pid = waitpid(guardian->pid, &guardian->status, 0);
        guardian->ended = pid == guardian->pid || (pid < 0 && errno != EINTR);
    }
    if (kill_rest) {
        const struct descendants_scope left = orphans(guardian, 0);
        descendants_end(&left);
    }
    return WIFEXITED(guardian->status) && WEXITSTATUS(guardian->status) == GUARDIAN_KILLED_IN_TIME;
}
