/* SPDX-License-Identifier: MIT
 * One command under a guardian: its process group, its terminal and its end.
 */
#ifndef TOOLS_JOB_H
#define TOOLS_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "guardian.h"
#include "starter.h"

enum job_state { JOB_NONE = 0, JOB_STARTING, JOB_RUNNING, JOB_SUSPENDED, JOB_ENDED, JOB_FAILED };

struct job {
    struct guardian guardian;
    enum job_state state;
    pid_t pid;         /* also the process group, unless `shares_group` */
    pid_t starter;     /* its parent */
    bool shares_group; /* the command is in our own process group: --foreground, or job_start() */
    int terminal_fd;   /* from job_start() on; -1: no terminal to share */
    bool has_terminal; /* its group was made the foreground group of the terminal */
    unsigned yields_left; /* how often to offer the terminal to the shell after a suspension */
    bool away;            /* the shell has taken the terminal; our group is in the background */
    uint64_t pending;     /* bit n-1: signal n came before the command had a pid */
    int status;           /* JOB_ENDED: wait status; JOB_FAILED: errno */
    bool no_process;      /* JOB_FAILED: it failed before the exec */
};

/* Asks the starter to start the command. 0, or -1 if there is no starter any more. */
int job_start(struct job *job, const char *path, char *const *argv, char *const *envp,
              bool share_group);

/* Takes in what the starter reported about this job; false if it is about another process. */
bool job_report(struct job *job, const struct start_report *report);

/* Passes a signal on: to the group, or with `shares_group` to the command alone. A CONT also gives
 * the terminal to a command that is suspended or was in the background, if we are in the
 * foreground. */
void job_signal(struct job *job, int sig);

/* Takes in a signal of job control that this process got; false: it is another signal. */
bool job_control_signal(struct job *job, int sig);

/* Gives the terminal to the shell when the command was suspended. Gives it to the command, and
 * continues the command, when the shell has brought us back to the foreground: a shell that takes
 * us for running sends no signal then. To be called after each wait. */
void job_watch(struct job *job);

/* `at_ns`, or the earlier time at which job_watch() has to look again. */
uint64_t job_wake_ns(const struct job *job, uint64_t at_ns);

/* Tells whether a process of the group runs; zombies do not. Where /proc cannot be read, zombies
 * count. Always false with `shares_group`: that group is ours. */
bool job_group_alive(const struct job *job);

/* The terminal back to our own group, if the command has it. */
void job_take_terminal(struct job *job);

/* 0-255 as a shell would say it: 128+n for death by signal n, 126/127 if the program could not be
 * executed, 71 if there was no process to execute it in. */
int job_exit_code(const struct job *job);

#endif
