/* SPDX-License-Identifier: MIT
 * The state of `redlock run`, shared by its three parts: setting up (cmd_run.c), the loop while
 * the command runs (run_loop.c), and what follows the end of the command (run_end.c).
 *
 * Three processes take part beside the command (guardian.h). The wrapper, which is this process,
 * holds the lock. The starter executes the command and reports its start and end. The guardian
 * kills the command and all that it started at the kill time, even if the wrapper is stopped then.
 * The command gets its stop signal earlier: the grace before the deadline of the lock, when
 * --max-hold has passed, or when the user ends it.
 */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

#include "clock.h"
#include "environment.h"
#include "events.h"
#include "job.h"
#include "names.h"
#include "options.h"
#include "run_figures.h"
#include "session.h"
#include "settings.h"
#include "timing.h"

/* Pause between two searches for processes that have to end, in ns. */
#define RUN_LOOK_AGAIN_NS (20 * NS_PER_MS)

/* Why the command is stopped. */
enum stop_reason {
    STOP_NOT = 0,  /* it is not */
    STOP_LOSS,     /* the lock is about to be lost */
    STOP_MAX_HOLD, /* --max-hold has passed */
    STOP_INTERNAL  /* the guardian has ended, so nothing would enforce the deadline */
};

/* One execution of `redlock run`. Invariant: once `lock` is set and until `settled`, the
 * guardian has the kill time `sent_kill_ns`, which follows from `deadline_ns` and `stopped_ns`. */
struct run {
    const struct options *options; /* the command line */
    struct settings settings;      /* the settings in effect */
    struct timing timing;          /* the durations, checked against each other */
    struct names names;            /* the names of the lock */
    const char *name; /* all names of the lock in one text, for messages; borrowed from `names` */
    char *key;        /* key of the first name on the servers; owned; NULL until acquired */
    char *path;       /* file of the command's program; owned */
    char **argv;      /* arguments of the command; ends with NULL; borrowed */
    struct environment environment; /* the environment that the command gets */

    struct job job;              /* the command, under its guardian */
    struct session session;      /* the client, and the notes that its callbacks become */
    struct events events;        /* where --status-fd and --json get their lines */
    int signal_fd;               /* from signals_open() */
    struct run_figures *figures; /* of --metrics-file; NULL: there is no such file */

    redlock_lock_t *lock; /* NULL until it is acquired */
    /* Times are ns of CLOCK_BOOTTIME. */
    uint64_t acquired_ns; /* when the lock was acquired */
    uint64_t deadline_ns; /* deadline of the lock or end of --max-hold, whichever is earlier */
    /* the kill time that was sent to the guardian; 0: none was sent; NEVER_NS: never */
    uint64_t sent_kill_ns;
    /* when the command got its signal to stop, or the user's second signal; 0: not yet */
    uint64_t stopped_ns;
    /* when the last warning about a failed extension was printed; 0: none */
    uint64_t extend_failed_reported_ns;
    enum stop_reason stop; /* set when the command gets its stop signal */
    unsigned end_signals;  /* how many signals that end a command (signal_ends()) were received */
    bool lost;             /* the lock is lost */
    bool lost_reported;    /* the loss was reported */
    bool reports_end;      /* the starter has ended, so no further report comes */
    /* the command has ended, and its leftover processes have ended or may go on; so there is no
     * kill time any more */
    bool settled;
    bool released;                    /* the release has ended; the next two fields are valid */
    int release_status;               /* error code of the release */
    redlock_report_t *release_report; /* NULL if there is none */
};

/* Sets deadline_ns from the present validity of the lock and from --max-hold. Sets `lost` if no
 * validity is left. */
void run_refresh_deadline(struct run *run);

/* Computes the kill time, and sends it to the guardian if it has changed. */
void run_feed_guardian(struct run *run);

/* Waits for the next signal, note of the session or report of the starter, until `at_ns` of
 * CLOCK_BOOTTIME at the latest, and handles all that has arrived. Then checks the deadline and the
 * kill time. */
void run_turn(struct run *run, uint64_t at_ns);

/* Runs the loop until the command has ended or failed, or the starter has ended. */
void run_job(struct run *run);

/* Reports why the starter did not start the command: the guardian was killed, or the kill time had
 * come. Returns the exit code. */
int run_not_started(const struct run *run);

/* Does what follows the end of the command: ends processes that it left behind, waits for
 * --min-hold and releases the lock. Returns the exit code. */
int run_end(struct run *run);

/* Reports the result of the release as event and, if the release failed, as message. Call it after
 * the client was closed. `undo_pending`: undos were still pending on some servers then. */
void run_report_release(struct run *run, bool undo_pending);

/* Returns what the figures say about the end of the run. `code`: exit code of redlock. */
struct run_ending run_ending_of(const struct run *run, int code);

#endif
