/* SPDX-License-Identifier: MIT
 * The wrapper's side of the guardian: starts it, sends it orders and ends it.
 */
#include "guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "starter.h"
#include "title.h"

/* Closes both ends of a pipe. */
static void close_pipe(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

/* Turns the forked child into the guardian and forks the starter. The starter is forked before
 * setsid(), so that it stays in the session of the wrapper. The subreaper flag is set before the
 * fork, so that no orphan can become a child of another process. */
static _Noreturn void become_guardian(int feed[2], int request[2], int report[2],
                                      const char *remove_dir)
{
    pid_t self = getpid();
    int gate[2];

    close(feed[1]);
    close(request[1]);
    close(report[0]);
    title_set(GUARDIAN_TITLE);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L) != 0 || pipe2(gate, O_CLOEXEC) != 0)
        _exit(GUARDIAN_ORPHANED);
    /* With SIGCHLD ignored, the kernel reaps the starter and the orphans that become our
     * children. */
    signal(SIGCHLD, SIG_IGN);
    pid_t starter = fork();
    if (starter < 0)
        _exit(GUARDIAN_ORPHANED);
    if (starter == 0) {
        close(feed[0]);
        close(gate[1]);
        starter_main(self, gate[0], request[0], report[1]);
    }
    if (getpgrp() != 0)
        setpgid(starter, starter);
    setsid();
    guardian_main(feed[0], gate[1], starter, remove_dir);
}

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

/* Sends one order. An error is ignored, because it means that the guardian has ended or is
 * stopped. */
static void feed(struct guardian *guardian, struct guardian_message message)
{
    if (write(guardian->feed_fd, &message, sizeof message) < 0)
        return;
}

void guardian_set_kill_time(struct guardian *guardian, uint64_t at_ns)
{
    feed(guardian, (struct guardian_message){.order = ORDER_KILL_TIME, .value = at_ns});
}

void guardian_set_command(struct guardian *guardian, pid_t command, bool own_group)
{
    feed(guardian, (struct guardian_message){
                       .order = ORDER_COMMAND, .value = (uint64_t)command, .own_group = own_group});
}

void guardian_close_requests(struct guardian *guardian)
{
    if (guardian->request_fd >= 0)
        close(guardian->request_fd);
    guardian->request_fd = -1;
}

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

void guardian_continue(const struct guardian *guardian)
{
    if (guardian->pid > 0 && !guardian->ended)
        kill(guardian->pid, SIGCONT);
}

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
