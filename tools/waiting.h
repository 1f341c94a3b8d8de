/* SPDX-License-Identifier: MIT
 * The state of one wait for a lock, shared by its two parts: the loop (wait.c), and what is printed
 * for people and for programs (wait_report.c).
 */
#ifndef TOOLS_WAITING_H
#define TOOLS_WAITING_H

#include "clock.h"
#include "quorum_wait.h"
#include "stuck.h"
#include "wait.h"

/* What the last inspection of a held lock has found. */
struct seen_holder {
    const char *name;    /* the lock, borrowed; NULL: no holder was seen */
    char owner[132];     /* label of the holder, at most 128 bytes; "": it has none */
    uint64_t expires_ns; /* when the key expires; NEVER_NS: it never does, or that is not known */
    bool majority;       /* a quorum of servers has a key of that holder */
};

/* Time to find out which client holds the lock, for a message. */
#define HOLDER_WAIT_NS (500 * NS_PER_MS)

/* The state of one call of wait_for_lock(). Times are ns of CLOCK_BOOTTIME. */
struct waiting {
    struct wait *wait;         /* parameters and results of the call */
    uint64_t wait_ms;          /* longest wait, as in redlock_opts_t */
    uint64_t start_ns;         /* when the wait began */
    int signal_code;           /* 128+n once signal n has ended the wait; 0: none has */
    struct quorum_wait quorum; /* for how long there has been no quorum */
    bool no_quorum;            /* there was none for too long, so the acquisition was canceled */
    uint64_t give_up_ns; /* when a canceled acquisition is given up; NEVER_NS: it is not canceled */
    bool finished;       /* the acquisition has ended, or is given up */
    int status;          /* error code of the acquisition, once `finished` */
    bool gone;           /* the guardian has ended */
    /* What the last failed attempt of the acquisition has ended with. */
    int attempt_status;               /* REDLOCK_OK if none has failed yet */
    redlock_report_t *attempt_report; /* NULL if none has failed yet; owned */
    /* Inspections of the key. */
    bool probing;               /* one is under way */
    bool probe_failed;          /* the last one was not started, or a quorum did not reply */
    const char *probe_name;     /* the lock that was inspected last, borrowed */
    uint64_t probed_ns;         /* when the last one was started; 0: none was */
    size_t probes;              /* how many were started */
    struct seen_holder holder;  /* what they have found */
    char stuck[STUCK_TEXT_MAX]; /* text about a stuck key that was found, "" if none */
    /* What was printed. */
    uint64_t event_at_ns;   /* when the next event about waiting is due */
    uint32_t event_place;   /* place in the line that the last event named; 0: none */
    uint64_t message_at_ns; /* when the next line about waiting is due */
    char *line;             /* the status line, as printed last; NULL: there is none; owned */
};

/* Returns true if a status line on the terminal shows why the lock is waited for. Else lines about
 * that are printed from time to time. */
bool waiting_is_live(const struct waiting *waiting);

/* Sets when the first line and the first event about waiting are due. `start_ns` is set. */
void waiting_schedule(struct waiting *waiting);
/* Reports, if a report is due, why the lock is waited for: as message, unless there is a status
 * line, and as event. An attempt has failed. */
void waiting_report(struct waiting *waiting);

/* Updates the status line, if there may be one. */
void waiting_show_line(struct waiting *waiting);
/* Removes the status line. */
void waiting_hide_line(struct waiting *waiting);

/* Returns true if waiting_explain() would print or write the holder of a lock that was not
 * acquired. */
bool waiting_names_holder(const struct waiting *waiting);
/* Reports, as message and as event, why the lock was not acquired and what to do. Returns the exit
 * code. */
int waiting_explain(const struct waiting *waiting);

#endif
