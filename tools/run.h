/* SPDX-License-Identifier: MIT
 * The state of `redlock run`, shared by its three parts: setting up, the loop while the command
 * runs, and what comes after its end.
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

/* Between two looks at processes that have to end. */
#define RUN_LOOK_AGAIN_NS (20 * NS_PER_MS)

enum stop_reason {
    STOP_NOT = 0,
    STOP_LOSS,     /* the lock cannot be kept */
    STOP_MAX_HOLD, /* --max-hold is over */
    STOP_INTERNAL  /* the guardian is gone: nobody could enforce the deadline */
};

struct run {
    const struct options *options;
    struct settings settings;
    struct timing timing;
    struct names names;
    const char *name; /* all of them, in messages */
    char *key, *path; /* path: of the command's program */
    char **argv;
    struct environment environment;

    struct job job;
    struct session session;
    struct events events;
    int signal_fd;

    redlock_lock_t *lock;
    uint64_t acquired_ns, deadline_ns; /* BOOTTIME */
    uint64_t sent_kill_ns;             /* what the guardian knows */
    uint64_t stopped_ns;               /* the command was told to stop; 0: not */
    uint64_t renew_failed_reported_ns;
    enum stop_reason stop;
    unsigned end_signals; /* how many signals that end a wait were passed on */
    bool lost, lost_reported;
    bool reports_end; /* the starter has gone */
    bool settled;     /* nothing is left to guard */
    bool released;    /* it is known what became of the release */
    int release_status;
    redlock_report_t *release_report;
};

/* What the lock says now. */
void run_refresh_deadline(struct run *run);

/* Tells the guardian the kill time if it has changed. */
void run_feed_guardian(struct run *run);

/* Waits for whatever comes first, until `at_ns` at the latest, and deals with it. */
void run_turn(struct run *run, uint64_t at_ns);

/* From the start of the command to its end. */
void run_job(struct run *run);

/* There will be no command: says why, and gives the exit code. */
int run_not_started(const struct run *run);

/* After the end of the command: leftovers, --min-hold, release. The exit code. */
int run_end(struct run *run);

/* Last word about the release, when the client was closed. `owing`: servers still have to be told.
 */
void run_report_release(struct run *run, bool owing);

#endif
