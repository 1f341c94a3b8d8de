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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
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

/* Runs in the child that terminal_yield() has forked: continues the parent by SIGCONT when the
 * shell has the terminal, or after YIELD_MS. Repeats the signal, because the first one may arrive
 * before the parent has stopped. The value sent with the signal is 1 if the shell has the terminal,
 * else 0. `group` is the process group of the parent, and `fd` the terminal. Never returns. Makes
 * system calls only, because the parent has threads. */
static _Noreturn void wake_parent(int fd, pid_t parent, pid_t group)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    union sigval taken = {.sival_int = 0};

    if (prctl(PR_SET_PDEATHSIG, (long)SIGKILL) != 0)
        _exit(1);
    for (int waited_ms = 0; getppid() == parent; waited_ms += STEP_MS) {
        nanosleep(&step, NULL);
        if (tcgetpgrp(fd) != group)
            taken.sival_int = 1;
        if (taken.sival_int || waited_ms >= YIELD_MS)
            sigqueue(parent, SIGCONT, taken);
    }
    _exit(0);
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

/* Stops this process group with SIGTSTP and SIGSTOP until the child forked here, or another
 * process, continues it. Returns true if the shell has taken the terminal, or if another process
 * sent SIGCONT; that SIGCONT is then made pending again. */
bool terminal_yield(int fd)
{
    pid_t parent = getpid(), group = getpgrp();
    siginfo_t info;

    if (getsid(0) == parent) /* no shell is around this process */
        return false;
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0)
        wake_parent(fd, parent, group);
    /* The whole group is stopped, because a shell waits until all processes of its job have
     * stopped. */
    kill(0, SIGTSTP);
    take_pending(SIGTSTP, &info);
    raise(SIGSTOP);
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (!take_pending(SIGCONT, &info))
        return false;
    if (info.si_pid == child)
        return info.si_value.sival_int != 0;
    kill(parent, SIGCONT);
    return true;
}
