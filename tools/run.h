/* SPDX-License-Identifier: MIT
 * The state of `redlock run`, shared by its three parts: setting up (cmd_run.c), the loop while
 * the command runs (run_loop.c), and what follows the end of the command (run_end.c).
 */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

#include "clock.h"
#include "environment.h"
#include "events.h"
#include "job.h"
#include "names.h"
#include "options.h"
#include "session.h"
#include "settings.h"
#include "timing.h"

/* Pause between two searches for processes that have to end. */
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
    const struct options *options;
    struct settings settings;
    struct timing timing;
    struct names names;
    const char *name; /* all names in one text, for messages */
    char *key, *path; /* key of the first name on the servers; file of the command's program */
    char **argv;      /* of the command; ends with NULL */
    struct environment environment; /* of the command */

    struct job job;
    struct session session;
    struct events events;
    int signal_fd; /* from signals_open() */

    redlock_lock_t *lock; /* NULL until it is acquired */
    /* CLOCK_BOOTTIME; the deadline is also bounded by --max-hold */
    uint64_t acquired_ns, deadline_ns;
    /* the kill time that the guardian has; 0: none was sent; NEVER_NS: never */
    uint64_t sent_kill_ns;
    /* when the command got its signal to stop, or the user's second signal; 0: not yet */
    uint64_t stopped_ns;
    /* when the last warning about a failed extension was printed; 0: none */
    uint64_t extend_failed_reported_ns;
    enum stop_reason stop;
    unsigned end_signals; /* how many signals that end a command (signal_ends()) were received */
    bool lost, lost_reported; /* the lock is lost; and that was reported */
    bool reports_end;         /* the starter has ended */
    /* the command and its leftovers have been dealt with: there is no kill time any more */
    bool settled;
    bool released; /* the release has ended; the next two fields are valid */
    int release_status;
    redlock_report_t *release_report; /* NULL if there is none */
};

/* Sets deadline_ns from the validity of the lock, and `lost` if none is left. */
void run_refresh_deadline(struct run *run);

/* Sends the kill time to the guardian if it has changed. */
void run_feed_guardian(struct run *run);

/* Waits for the next signal, note or report, until `at_ns` at the latest, and handles all that
 * has arrived. Then checks the deadline and the kill time. */
void run_turn(struct run *run, uint64_t at_ns);

/* Runs the loop until the command has ended or failed, or the starter has ended. */
void run_job(struct run *run);

/* Reports why no command was started. Returns the exit code. */
int run_not_started(const struct run *run);

/* Does what follows the end of the command: leftover processes, --min-hold, release. Returns the
 * exit code. */
int run_end(struct run *run);

/* Reports the result of the release. Call it after the client was closed. `undo_pending`: undos are
 * still pending on some servers. */
void run_report_release(struct run *run, bool undo_pending);

#endif
