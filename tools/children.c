/* SPDX-License-Identifier: MIT
 * Finds children by asking waitid() for each pid that may be one of them.
 */
#include "children.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID_LAST 4194304 /* the largest pid_max that Linux knows */

static bool runs(idtype_t which, pid_t pid)
{
    siginfo_t info = {0};

    return waitid(which, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

bool child_runs(pid_t pid)
{
    return runs(P_PID, pid);
}

static unsigned signal_between(pid_t first, pid_t last, pid_t spare, int sig)
{
    unsigned found = 0;

    for (pid_t pid = first; pid <= last; pid++) {
        /* If it has ended in between, the pid is not in use: it is not given again so soon. */
        if (pid != spare && child_runs(pid) && (kill(pid, sig) == 0 || errno != EPERM))
            found++;
    }
    return found;
}

/* Returns the pid that a new process gets; -1 if there can be none. Pids are given in ascending
 * order, and after the last one again from the first on. */
static pid_t newest_pid(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return pid;
}

unsigned children_signal(pid_t spare, pid_t since, int sig)
{
    pid_t first = since ? since : getpid(), newest = newest_pid();
    unsigned found;

    if (newest >= first)
        found = signal_between(first, newest, spare, sig);
    else
        found = signal_between(first, PID_LAST, spare, sig) + signal_between(1, newest, spare, sig);
    /* There are children with other pids if these were given more than once in the meantime. */
    if (found == 0 && !spare && !since && runs(P_ALL, 0))
        found = signal_between(1, PID_LAST, spare, sig);
    return found;
}
