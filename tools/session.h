/* SPDX-License-Identifier: MIT
 * A client whose callbacks arrive as notes on a descriptor. One loop in one thread can then wait
 * for signals, the lock and the command.
 */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "redlock/redlock.h"
#include "reports.h"

/* Which callback a note carries: an event of a lock, or the end of an acquisition, of a release or
 * of an inspection. */
enum note_kind { NOTE_EVENT = 1, NOTE_ACQUIRED, NOTE_RELEASED, NOTE_INSPECTED };

/* One callback of the library, copied. The receiver frees it with note_free(). */
struct note {
    enum note_kind kind;      /* which fields are valid */
    int event;                /* NOTE_EVENT: enum redlock_event_kind */
    int status;               /* error code of the library, REDLOCK_OK after a success */
    redlock_lock_t *lock;     /* NOTE_ACQUIRED: the lock, owned by the receiver, if status is OK */
    uint64_t remaining_ms;    /* NOTE_EVENT: validity */
    redlock_report_t *report; /* owned by the note; may be NULL */
};

/* A client and the pipe of its notes. Only session.c changes the fields. */
struct session {
    redlock_t *rl;             /* the client; owned */
    redlock_cancel_t *cancel;  /* cancels acquisitions and inspections */
    int note_read, note_write; /* ends of the pipe; note_read becomes readable when there is a note;
                                  -1: closed */
};

/* Takes ownership of a started client. Returns -1 on success, or an exit code after a message.
 * session_close() is needed in both cases. */
int session_open(struct session *session, redlock_t *rl);

/* Starts an acquisition of the lock `name`. If the result is REDLOCK_OK, NOTE_ACQUIRED follows, and
 * NOTE_EVENT for each event of the lock. Else the result is an error code of the library. */
int session_acquire(struct session *session, const char *name, redlock_opts_t opts);

/* Starts a release; NOTE_RELEASED follows if it returns REDLOCK_OK. If `after_ms` is not 0, the
 * key stays on the servers for that time. */
int session_release(struct session *session, redlock_lock_t *lock, uint64_t after_ms);

/* Starts an inspection of the lock `name`; NOTE_INSPECTED follows if it returns REDLOCK_OK. */
int session_inspect(struct session *session, const char *name);

/* Returns the next note, or NULL if there is none. Does not block. */
struct note *session_next(const struct session *session);
/* Frees a note and its report, but not its lock. `note` may be NULL. */
void note_free(struct note *note);

/* Closes the client, with at most `budget_ms` for pending undos, and frees notes that were not
 * read. Returns the result of client_close(). */
int session_close(struct session *session, uint64_t budget_ms);

#endif
