/* SPDX-License-Identifier: MIT
 * The starter: the parent of every command. It runs below the guardian but in the session of the
 * wrapper, starts what it is asked to start and reports what becomes of it.
 */
#ifndef TOOLS_STARTER_H
#define TOOLS_STARTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum start_flags {
    START_NEW_GROUP = 1u << 0, /* its own process group */
    START_TERMINAL = 1u << 1   /* make that group the foreground group of the terminal */
};

struct start_request {
    const char *path; /* an executable file; argv[0] may differ */
    char *const *argv, *const *envp;
    const char *directory; /* NULL: stay */
    const char *log;       /* NULL: inherit; else stdout and stderr are appended to this file */
    uint32_t flags;
    pid_t group; /* without START_NEW_GROUP: the process group to join; 0: the starter's */
};

enum report_kind {
    REPORT_STARTED = 1,
    REPORT_FAILED = 2, /* value: errno of the exec */
    REPORT_STOPPED = 3,
    REPORT_CONTINUED = 4,
    REPORT_ENDED = 5,     /* value: wait status */
    REPORT_NO_PROCESS = 6 /* value: errno; the system had no process or descriptor to spare */
};

struct start_report {
    int32_t kind, pid, value;
    int32_t starter; /* who reports */
};

/* Sends a request; 0, or -1 if the starter is gone. STARTED, FAILED or NO_PROCESS
 * answers each. */
int starter_request(int request_fd, const struct start_request *request);

/* Reads one report, waiting for it; false: the starter is gone. */
bool starter_read(int report_fd, struct start_report *ret_report);

/* Inside the starter's own process: ends when requests end and no command is left. It starts
 * nothing until a byte has come through the gate: the guardian is on watch then. */
_Noreturn void starter_main(pid_t guardian, int gate_fd, int request_fd, int report_fd);

/* Forks and executes; 0, or the errno of what failed: the exec if *ret_pid is set, else what comes
 * before it. Called in the starter. */
int spawn_command(const struct start_request *request, pid_t *ret_pid);

#endif
