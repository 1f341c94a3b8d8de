/* SPDX-License-Identifier: MIT
 * The exit codes of the command. With `run`, codes below 64 and above 128 are those of the
 * command that was run.
 */
#ifndef TOOLS_EXITS_H
#define TOOLS_EXITS_H

/* Exit codes of all subcommands, except the results of `status` and `nodes`, which are below. */
enum exit_code {
    EXIT_OK = 0,   /* done */
    EXIT_LOST = 1, /* the lock is not held with this token any more; a repetition would not help */
    EXIT_USAGE = 64,       /* wrong command line */
    EXIT_NO_QUORUM = 69,   /* too few servers granted in time */
    EXIT_INTERNAL = 70,    /* a helper process was killed, or a bug */
    EXIT_SYSTEM = 71,      /* no memory, process or descriptor */
    EXIT_OUTPUT = 74,      /* the output could not be written */
    EXIT_HELD = 75,        /* another client holds the lock; -E changes it */
    EXIT_REFUSED = 77,     /* the servers refused the user */
    EXIT_CONFIG = 78,      /* wrong configuration */
    EXIT_STOPPED = 124,    /* the lock was about to be lost, so the command was stopped */
    EXIT_CANNOT_RUN = 126, /* the command's program cannot be executed */
    EXIT_NOT_FOUND = 127,  /* the command's program does not exist */
    EXIT_SIGNAL_BASE = 128 /* plus n: ended by signal n */
};

/* Exit codes of `status`: the lock is held by a client, is free, or too few servers replied to
 * know. */
enum status_exit { STATUS_HELD = 0, STATUS_FREE = 1, STATUS_UNKNOWN = 3 };
/* Exit codes of `nodes`: no finding that matters; something needs repair; no lock can be acquired
 * or exclusion is at risk; the check could not be made. */
enum health_exit { HEALTH_OK = 0, HEALTH_WARN = 1, HEALTH_CRIT = 2, HEALTH_UNKNOWN = 3 };

#endif
