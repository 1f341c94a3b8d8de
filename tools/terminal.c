/* SPDX-License-Identifier: MIT
 * The controlling terminal, and how to pass it to the shell and back.
 *
 * A shell shows its prompt again when the job in the foreground stops. A process that holds a
 * lock must not stay stopped, because the lock would expire. So it stops for a moment: a child
 * continues it when the shell has made another group the foreground group.
 */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long the terminal is offered to the shell, and how often it is looked at meanwhile. */
#define YIELD_MS 500
#define STEP_MS  5

/* Opens the controlling terminal; if that fails, duplicates stdin if it is a terminal. Returns the
 * descriptor, or -1. */
int terminal_open(void)
{
    int fd = open(ctermid(NULL), O_RDWR | O_CLOEXEC);

    if (fd < 0 && isatty(STDIN_FILENO))
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return fd;
}

/* Returns true if stderr is a terminal, our group is its foreground group, and TERM does not say
 * that it can only print. */
bool terminal_takes_status(void)
{
    const char *type = getenv("TERM");

    return type && *type && strcmp(type, "dumb") != 0 && tcgetpgrp(STDERR_FILENO) == getpgrp();
}

/* Returns the number of columns of the terminal on stderr, or 80. */
unsigned terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* Returns true if the process group of this process is the foreground group of the terminal `fd`;
 * false if `fd` is -1. */
bool terminal_is_ours(int fd)
{
    return fd >= 0 && tcgetpgrp(fd) == getpgrp();
}

/* Exit status of the child that terminal_yield() forks: a set of these bits. */
#define CHILD_SAW_SHELL 1 /* another group was the foreground group of the terminal */
#define CHILD_SAW_CONT  2 /* somebody sent SIGCONT to our group */

/* Runs in the child that terminal_yield() has forked: continues the parent by SIGCONT when the
 * shell has the terminal, when somebody has continued our group, or after YIELD_MS. Repeats the
 * signal, because the first one may arrive before the parent has stopped. Ends when the parent
 * closes its end of the pipe, whose other end is `fd_pipe`, or ends. `group` is the process group
 * of the parent, and `fd` the terminal. Never returns. Makes system calls only, because the parent
 * has threads. */
static _Noreturn void wake_parent(int fd, int fd_pipe, pid_t parent, pid_t group)
{
    struct pollfd end = {.fd = fd_pipe, .events = 0};
    int seen = 0;

    for (int waited_ms = 0; poll(&end, 1, STEP_MS) <= 0; waited_ms += STEP_MS) {
        sigset_t pending;
        if (tcgetpgrp(fd) != group)
            seen |= CHILD_SAW_SHELL;
        /* Nobody takes the SIGCONT of the group from the child. The parent may lose its own: it is
         * discarded when the parent stops afterwards, and only one can be pending. */
        if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT))
            seen |= CHILD_SAW_CONT;
        if (seen || waited_ms >= YIELD_MS)
            kill(parent, SIGCONT);
    }
    _exit(seen);
}

/* Removes the blocked signal `sig` from those that are pending for this process, and stores who
 * sent it in *ret_info. Returns false if it was not pending. */
static bool take_pending(int sig, siginfo_t *ret_info)
{
    const struct timespec now = {0};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, sig);
    return sigtimedwait(&set, ret_info, &now) == sig;
}

/* Waits until the child that wake_parent() runs in has ended, and returns its exit status. If it
 * is stopped, kills it and returns 0. */
static int end_child(pid_t child)
{
    int status;

    for (;;) {
        pid_t got = waitpid(child, &status, WUNTRACED);
        if (got < 0 && errno != EINTR)
            return 0;
        if (got == child && !WIFSTOPPED(status))
            return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        if (got == child)
            kill(child, SIGKILL);
    }
}

/* Returns true if the shell has the terminal, or a SIGCONT has come that nobody has handled. */
static bool has_continued(int fd)
{
    sigset_t pending;

    return !terminal_is_ours(fd) ||
           (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) != 0);
}

/* Stops this process group with SIGTSTP and SIGSTOP until the child forked here, or another
 * process, continues it. Returns true if the shell has taken the terminal, or if another process
 * sent SIGCONT; that SIGCONT is then made pending again. */
bool terminal_yield(int fd)
{
    pid_t parent = getpid(), group = getpgrp();
    int fds[2];
    siginfo_t info;

    if (getsid(0) == parent || pipe2(fds, O_CLOEXEC) != 0) /* no shell is around this process */
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(fds[1]);
        wake_parent(fd, fds[0], parent, group);
    }
    close(fds[0]);
    /* A stop signal would discard the SIGCONT. */
    bool stops = child > 0 && !has_continued(fd);
    if (stops) {
        /* The whole group is stopped, because a shell waits until all processes of its job have
         * stopped. */
        kill(0, SIGTSTP);
        take_pending(SIGTSTP, &info);
        raise(SIGSTOP);
    }
    close(fds[1]);
    int seen = child > 0 ? end_child(child) : 0;
    if (!stops)
        return child > 0;
    bool sent = take_pending(SIGCONT, &info) && info.si_pid != child;
    if (sent || (seen & CHILD_SAW_CONT))
        kill(parent, SIGCONT);
    return sent || seen != 0;
}
