/* SPDX-License-Identifier: MIT
 * A job: one command under a guardian, with its process group, its terminal and its end. The
 * caller is the wrapper, the `redlock` process that the user started. The starter, a helper
 * process, executes the command and sends reports (starter.h); the wrapper passes these reports,
 * and the signals that it receives itself, to the functions of this file. "Our group" is the
 * process group of the wrapper. The shell is the one that started the wrapper, if it has job
 * control. A terminal serves one process group at a time, its foreground group.
 */
#ifndef TOOLS_JOB_H
#define TOOLS_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "guardian.h"
#include "starter.h"

/* JOB_NONE: no command was requested. JOB_STARTING: the start was requested, but not reported yet.
 * JOB_SUSPENDED: the command is stopped by a signal, such as Ctrl-Z. JOB_ENDED: the command has
 * ended. JOB_FAILED: the command could not be executed. */
enum job_state { JOB_NONE = 0, JOB_STARTING, JOB_RUNNING, JOB_SUSPENDED, JOB_ENDED, JOB_FAILED };

/* The state of the command. job_start() begins it; only job.c changes it after that, except that
 * the caller drives `guardian` through guardian.h. The command has the terminal only if
 * `has_terminal`. */
struct job {
    struct guardian guardian; /* started by the caller before job_start() */
    enum job_state state;     /* see there */
    pid_t pid; /* 0 until the start is reported; also the process group, unless `shares_group` */
    pid_t starter; /* pid of the starter; 0 until the start is reported */
    /* the command is in our own process group: --foreground, or decided by job_start() */
    bool shares_group;
    int terminal_fd;   /* controlling terminal, valid after job_start(); -1: no terminal to share */
    bool has_terminal; /* the group of the command was made the foreground group of the terminal */
    /* how many more times to offer the terminal to the shell after a suspension */
    unsigned yields_left;
    bool away;        /* the shell has the terminal, and our group is in the background */
    uint64_t pending; /* bit n-1: signal n arrived before the command had a pid */
    int status;       /* JOB_ENDED: wait status; JOB_FAILED: errno */
    bool no_process;  /* JOB_FAILED: there was no process to execute the command in */
};

/* Requests the start of the command from the starter. The strings are copied. `share_group`:
 * keep the command in our own process group. Returns 0, or -1 if the starter has ended. */
int job_start(struct job *job, const char *path, char *const *argv, char *const *envp,
              bool share_group);

/* Applies a report of the starter to the job. Returns false if the report is about another
 * process. */
bool job_report(struct job *job, const struct start_report *report);

/* Passes a signal on to the group of the command, or with `shares_group` to the command alone.
 * Before the command has a pid, the signal is kept and sent later. SIGCONT also gives the
 * terminal to a command that is suspended or was in the background, if our group is in the
 * foreground. */
void job_signal(struct job *job, int sig);

/* Handles a signal of job control that this process received: TTIN, TTOU, or TSTP while the command
 * is suspended and our group is in the foreground. Returns false, and does nothing, if `sig` is
 * another signal or is to be passed on to the command. */
bool job_control_signal(struct job *job, int sig);

/* Gives the terminal to the shell after a suspension of the command. When the shell has made our
 * group the foreground group again, gives the terminal back to the command and continues the
 * command. Polling is necessary, because a shell that believes us to be running sends no signal
 * then. Call it after each wait. */
void job_watch(struct job *job);

/* Returns `at_ns`, or an earlier time if job_watch() has to be called by then. In ns of
 * CLOCK_BOOTTIME. */
uint64_t job_wake_ns(const struct job *job, uint64_t at_ns);

/* Returns true if a process of the command's group runs. Zombies count only where /proc cannot
 * be read. Always false with `shares_group`, because that group is our own. */
bool job_group_alive(const struct job *job);

/* Makes our own group the foreground group of the terminal, if the command's group was made
 * that. */
void job_take_terminal(struct job *job);

/* Returns the exit code, 0 to 255, as a shell would: the command's own, 128+n for death by
 * signal n, 126 or 127 if the program could not be executed, 71 if no process could be made. */
int job_exit_code(const struct job *job);

#endif
