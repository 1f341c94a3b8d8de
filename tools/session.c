/* SPDX-License-Identifier: MIT
 * Passes callbacks from the library's thread to the main thread, through a pipe of pointers. The
 * on_...() functions run on the library's thread; each makes a note and posts it. The session_...()
 * functions run on the main thread, which reads the notes with session_next().
 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "exits.h"
#include "say.h"

/* Copies the note, with a reference to `report` (may be NULL), and writes the address of the copy
 * to the pipe. Drops the note if the pipe is full. The write is atomic, because a pointer is
 * smaller than PIPE_BUF. */
static void post(const struct session *session, struct note note, const redlock_report_t *report)
{
    struct note *copy = must(malloc(sizeof *copy));

    *copy = note;
    copy->report = report ? must(redlock_report_ref(report)) : NULL;
    if (write(session->note_write, &copy, sizeof copy) != (ssize_t)sizeof copy)
        note_free(copy);
}

/* Passes an event of the lock on as a note. */
static void on_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    (void)rl;
    post(userdata,
         (struct note){.kind = NOTE_EVENT,
                       .event = event->kind,
                       .status = event->status,
                       .remaining_ms = event->remaining_ms},
         event->report);
}

/* Passes the result of the acquisition on as a note. */
static void on_acquired(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    (void)rl;
    post(userdata, (struct note){.kind = NOTE_ACQUIRED, .status = status, .lock = lock}, report);
}

/* Passes the result of the release on as a note. */
static void on_released(redlock_t *rl, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)lock;
    post(userdata, (struct note){.kind = NOTE_RELEASED, .status = status}, report);
}

/* Passes the result of an inspection on as a note. */
static void on_inspected(redlock_t *rl, int status, redlock_lock_t *lock,
                         const redlock_report_t *report, void *userdata)
{
    (void)rl;
    (void)lock;
    post(userdata, (struct note){.kind = NOTE_INSPECTED, .status = status}, report);
}

/* Makes the pipe and the cancel object. Takes ownership of `rl`. Returns -1 on success, or an exit
 * code after a message; session_close() is needed in both cases. */
int session_open(struct session *session, redlock_t *rl)
{
    int fds[2];

    *session = (struct session){.rl = rl, .note_read = -1, .note_write = -1};
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        say(SAY_ERROR, "cannot make a pipe: %s; raise the limit of open files (ulimit -n)",
            strerror(errno));
        return EXIT_SYSTEM;
    }
    session->note_read = fds[0];
    session->note_write = fds[1];
    int error = redlock_cancel_new(&session->cancel, rl);
    if (error != REDLOCK_OK) {
        say(SAY_ERROR, "cannot start: %s", redlock_strerror(error));
        return exit_of_error(error, EXIT_HELD);
    }
    return -1;
}

/* Starts an acquisition whose events and end become notes. Returns REDLOCK_OK or the error code
 * with which it was refused. */
int session_acquire(struct session *session, const char *name, redlock_opts_t opts)
{
    opts.cancel = session->cancel;
    opts.event_fn = on_event;
    opts.event_userdata = session;
    return redlock_acquire_start(session->rl, name, &opts, on_acquired, session);
}

/* Starts a release whose end becomes a note. If `after_ms` is not 0, the keys stay on the servers
 * for that time. Returns REDLOCK_OK or an error code; then no note follows. */
int session_release(struct session *session, redlock_lock_t *lock, uint64_t after_ms)
{
    if (after_ms)
        return redlock_release_after_start(lock, after_ms, on_released, session);
    return redlock_release_start(lock, on_released, session);
}

/* Starts an inspection whose end becomes a note. Returns REDLOCK_OK or an error code; then no note
 * follows. */
int session_inspect(struct session *session, const char *name)
{
    return redlock_inspect_start(session->rl, name, session->cancel, on_inspected, session);
}

/* Returns the next note, to be freed, or NULL if there is none. Does not block. */
struct note *session_next(const struct session *session)
{
    struct note *note = NULL;

    return read(session->note_read, &note, sizeof note) == (ssize_t)sizeof note ? note : NULL;
}

/* Frees a note with its report, but not its lock. Accepts NULL. */
void note_free(struct note *note)
{
    if (!note)
        return;
    redlock_report_free(note->report);
    free(note);
}

/* Closes the client within `budget_ms`, frees the notes that are left with their locks, and closes
 * the pipe. Returns the result of client_close(). */
int session_close(struct session *session, uint64_t budget_ms)
{
    struct note *note;

    int result = client_close(session->rl, budget_ms);
    redlock_cancel_free(session->cancel);
    /* After redlock_free() no callback runs any more, so these are the last notes. */
    while ((note = session_next(session))) {
        if (note->kind == NOTE_ACQUIRED && note->lock)
            redlock_lock_free(note->lock);
        note_free(note);
    }
    if (session->note_read >= 0) {
        close(session->note_read);
        close(session->note_write);
    }
    *session = (struct session){.note_read = -1, .note_write = -1};
    return result;
}
