/* SPDX-License-Identifier: MIT
 * The starter: the process that is the parent of every command. It is a child of the guardian, but
 * stays in the session of the wrapper, which is the `redlock` process that the user started. The
 * starter executes what the wrapper requests on one pipe, and reports on another pipe when a
 * command has started, stopped, continued or ended. See guardian.h for the processes, their signals
 * and the invariants.
 */
#ifndef TOOLS_STARTER_H
#define TOOLS_STARTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How to start a command. */
enum start_flags {
    START_NEW_GROUP = 1u << 0, /* in a process group of its own */
    START_TERMINAL =
        1u << 1 /* make the group of the command the foreground group of the terminal */
};

/* What to execute. The strings are borrowed; starter_request() sends copies. */
struct start_request {
    const char *path;                /* an executable file; argv[0] may differ */
    char *const *argv, *const *envp; /* arguments and environment; both end with NULL */
    const char *directory; /* working directory of the command; NULL: that of the starter */
    /* stdout and stderr are appended to this file, stdin is /dev/null; NULL: all three are
     * inherited */
    const char *log;
    uint32_t flags; /* enum start_flags */
    pid_t group;    /* without START_NEW_GROUP: the process group to join; 0: the starter's */
};

/* What the starter reports about one process. REPORT_NO_PROCESS means that the system had no
 * process or descriptor left, so that nothing was executed. If the guardian or the
 * starter cannot be set up, that is their only report. */
enum report_kind {
    REPORT_STARTED = 1,   /* the exec has succeeded; value: 0 */
    REPORT_FAILED = 2,    /* value: errno of the exec */
    REPORT_STOPPED = 3,   /* value: the signal that stopped the command */
    REPORT_CONTINUED = 4, /* the command runs again after a stop; value: 0 */
    REPORT_ENDED = 5,     /* value: wait status */
    REPORT_NO_PROCESS = 6 /* value: errno */
};

/* One report on the pipe from the starter to the wrapper. */
struct start_report {
    int32_t kind;    /* enum report_kind */
    int32_t pid;     /* the process that the report is about; -1: none */
    int32_t value;   /* see enum report_kind */
    int32_t starter; /* pid of the starter */
};

/* Sends a request to the starter. Exactly one report STARTED, FAILED or NO_PROCESS follows.
 * Returns 0, or -1 if the starter has ended. */
int starter_request(int request_fd, const struct start_request *request);

/* Reads one report; blocks until there is one. Returns false if the starter has ended. */
bool starter_read(int report_fd, struct start_report *ret_report);

/* Sends one report to the wrapper. The parameters are the fields of struct start_report. An error
 * is ignored: a wrapper that has ended needs no report. */
void starter_report(int report_fd, enum report_kind kind, pid_t pid, int value);

/* Runs the starter's own process; never returns. Ends when the pipe of requests is closed and no
 * command is left. Starts nothing before a byte has come through `gate_fd`, which the guardian
 * writes when it is ready to kill. If the guardian ends first, the kernel kills the starter. */
_Noreturn void starter_main(pid_t guardian, int gate_fd, int request_fd, int report_fd);

/* Forks and executes one command; called in the starter. Waits for the exec. Returns 0, with the
 * pid of the command in *ret_pid, after a successful exec; else an errno. After an error, *ret_pid
 * is set if the exec failed, and unchanged if no process could be made. */
int spawn_command(const struct start_request *request, pid_t *ret_pid);

#endif
