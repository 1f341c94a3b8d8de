/* SPDX-License-Identifier: MIT
 * A client whose callbacks arrive as notes on a descriptor, so that one loop in one thread sees
 * everything: signals, the lock, the command.
 */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "redlock/redlock.h"
#include "reports.h"

enum note_kind { NOTE_EVENT = 1, NOTE_ACQUIRED, NOTE_RELEASED, NOTE_INSPECTED };

struct note {
    enum note_kind kind;
    int event;            /* NOTE_EVENT: enum redlock_event_kind */
    int status;           /* error code */
    redlock_lock_t *lock; /* NOTE_ACQUIRED: ours on success */
    uint64_t remaining_ms;
    redlock_report_t *report; /* may be NULL */
};

struct session {
    redlock_t *rl;
    redlock_cancel_t *cancel;
    int note_read, note_write;
};

/* Takes a client that was started. -1, or an exit code that was said. */
int session_open(struct session *session, redlock_t *rl);

/* Starts an acquisition; its end comes as NOTE_ACQUIRED if this returned REDLOCK_OK. */
int session_acquire(struct session *session, const char *name, redlock_opts_t opts);

/* Starts a release, or with `after_ms` one that leaves the key for that long: NOTE_RELEASED. */
int session_release(struct session *session, redlock_lock_t *lock, uint64_t after_ms);

/* Starts to look who holds it; what was seen comes as NOTE_INSPECTED. */
int session_inspect(struct session *session, const char *name);

/* NULL: none. */
struct note *session_next(const struct session *session);
void note_free(struct note *note);

/* Closes the client too, and returns what client_close() does. */
int session_close(struct session *session, uint64_t budget_ms);

#endif
