/* SPDX-License-Identifier: MIT
 * Finds children by calling waitid() for each pid that may be one of them.
 */
#include "children.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID_LAST 4194304 /* the largest pid_max that Linux knows */

/* Returns true if this process has a child that matches `which` and `pid`, as in waitid(), and if
 * no matching child has ended and waits to be reaped. No child is reaped here. */
static bool runs(idtype_t which, pid_t pid)
{
    siginfo_t info = {0};

    return waitid(which, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* Returns true if `pid` is a child of this process that has not ended. */
bool child_runs(pid_t pid)
{
    return runs(P_PID, pid);
}

/* Sends `sig` to the children with pids from `first` to `last`, except `spare`. Returns the number
 * of those that run, without those that may not be signalled (EPERM). */
static unsigned signal_between(pid_t first, pid_t last, pid_t spare, int sig)
{
    unsigned found = 0;

    for (pid_t pid = first; pid <= last; pid++) {
        /* A child that ends between the two calls leaves its pid unused: the kernel does not
         * reuse a pid at once. */
        if (pid != spare && child_runs(pid) && (kill(pid, sig) == 0 || errno != EPERM))
            found++;
    }
    return found;
}

/* Returns the pid that a new process gets, or -1 if none can be made. The kernel assigns pids in
 * ascending order and starts again from the first after the last one. */
static pid_t newest_pid(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return pid;
}

/* Tries all pids from that of `since` (0: from our own) to the newest one, because a child of this
 * process has a later pid than its parent or than `since`. Returns how many running children were
 * found. */
unsigned children_signal(pid_t spare, pid_t since, int sig)
{
    pid_t first = since ? since : getpid(), newest = newest_pid();
    unsigned found;

    if (newest >= first)
        found = signal_between(first, newest, spare, sig);
    else
        found = signal_between(first, PID_LAST, spare, sig) + signal_between(1, newest, spare, sig);
    /* Children with other pids exist if all pids were assigned more than once in the meantime. */
    if (found == 0 && !spare && !since && runs(P_ALL, 0))
        found = signal_between(1, PID_LAST, spare, sig);
    return found;
}
