/* SPDX-License-Identifier: MIT
 * The loop of a wait for a lock. wait_for_lock() starts an acquisition in the session and calls
 * turn() until the acquisition has ended. Each turn() waits for a signal, for a note of the
 * session, or for the end of the guardian. Notes are: the acquisition waits (a line about that is
 * printed from time to time), the acquisition has ended, or an inspection has ended. After a long
 * wait, the key is inspected, because a stuck key, one that never expires or too late, would block
 * all waiters.
 */
#include "wait.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "exits.h"
#include "json.h"
#include "say.h"
#include "signals.h"
#include "stuck.h"

/* Time between two lines about waiting. */
#define REPEAT_NS (10 * UINT64_C(1000000000))
/* Time before a key is inspected, unless max_ttl is shorter; and time between two inspections. */
#define LONG_WAIT_NS (60 * UINT64_C(1000000000))
/* Time that a canceled acquisition has to end. */
#define END_WAIT_NS (UINT64_C(1000000000))
/* How long, and with what pause, an acquisition without a wait is repeated if servers are slow. */
#define SLOW_TIMEOUT_NS (500 * NS_PER_MS)
#define SLOW_PAUSE_MS   20

/* The state of one call of wait_for_lock(). */
struct waiting {
    struct wait *wait; /* parameters and results of the call */
    int signal_code;   /* 128+n once signal n has ended the wait; 0: none has */
    /* Times are ns of CLOCK_BOOTTIME. */
    uint64_t give_up_ns; /* when a canceled acquisition is given up; NEVER_NS: it is not canceled */
    uint64_t report_at_ns;      /* when the next line about waiting is due */
    uint64_t probe_at_ns;       /* when the next inspection of the key is due */
    bool probing;               /* an inspection is under way */
    size_t probes;              /* number of inspections that were started */
    bool finished;              /* the acquisition has ended, or is given up */
    bool gone;                  /* the guardian has ended */
    char stuck[STUCK_TEXT_MAX]; /* text about a stuck key that was found, "" if none */
    int status;                 /* error code of the acquisition, once `finished` */
};

/* Returns the text about a stuck key if `status`, the error code of an attempt, is that another
 * client holds the lock; else "". */
static const char *stuck_of(const struct waiting *waiting, int status)
{
    return status == REDLOCK_ECONTENDED ? waiting->stuck : "";
}

/* Returns the fields of an event as JSON object: the error code `status`, what the report says, and
 * the text about a stuck key. `report` may be NULL. */
static json_t *cause_json(const struct waiting *waiting, const redlock_report_t *report, int status)
{
    json_t *fields = must(json_pack("{s:s, s:s}", "error", redlock_error_name(status), "reason",
                                    redlock_strerror(status)));

    if (report) {
        redlock_report_info_t info = report_info(report);
        json_object_set_new(fields, "text", json_text(redlock_report_text(report)));
        json_object_set_new(fields, "attempts", json_integer(info.attempts));
        json_object_set_new(fields, "waited_ms", json_integer((json_int_t)(info.waited_us / 1000)));
        json_object_set_new(fields, "servers", report_nodes_json(report));
    }
    if (*stuck_of(waiting, status))
        json_object_set_new(fields, "stuck", json_text(stuck_of(waiting, status)));
    return fields;
}

/* Prints one line: why the lock is waited for or, if `final`, why it was not acquired. */
static void report_cause(const struct waiting *waiting, enum say_level level, bool final,
                         const redlock_report_t *report, int status)
{
    const char *stuck = stuck_of(waiting, status);

    say(level, "%s%s: %s%s%s%s", final ? "" : "waiting for ", waiting->wait->names->text,
        final ? "not acquired: " : "", report_reason(report, status), *stuck ? "; its key " : "",
        stuck);
}

/* Returns how long to wait, in ns, before the key is inspected. Within max_ttl every key expires or
 * is extended, so a longer wait may mean that the key is stuck. */
static uint64_t long_wait_ns(const struct wait *wait)
{
    return wait->max_ttl_ms < LONG_WAIT_NS / NS_PER_MS ? wait->max_ttl_ms * NS_PER_MS
                                                       : LONG_WAIT_NS;
}

/* Starts an inspection of the key if one is due and `status` says that another client holds the
 * lock. The keys of several names are inspected in turn. */
static void probe_key(struct waiting *waiting, int status)
{
    uint64_t now_ns = boottime_ns();

    if (status != REDLOCK_ECONTENDED || waiting->probing || now_ns < waiting->probe_at_ns ||
        waiting->wait->permits) /* a semaphore has no key of its own name */
        return;
    waiting->probe_at_ns = now_ns + LONG_WAIT_NS;
    const struct names *names = waiting->wait->names;
    const char *name = names->list[waiting->probes++ % names->count];
    waiting->probing = session_inspect(waiting->wait->session, name) == REDLOCK_OK;
}

/* Handles the result of an inspection. If a stuck key is found for the first time, makes the next
 * line about waiting due at once. */
static void take_probe(struct waiting *waiting, const struct note *note)
{
    bool known = *waiting->stuck != '\0';

    waiting->probing = false;
    if (note->status != REDLOCK_OK)
        return;
    if (stuck_text(note->report, waiting->wait->max_ttl_ms, waiting->stuck,
                   sizeof waiting->stuck) &&
        !known)
        waiting->report_at_ns = 0;
}

/* Prints why the lock is waited for, if a line is due. */
static void report_waiting(struct waiting *waiting, const struct note *note)
{
    uint64_t now_ns = boottime_ns();

    if (now_ns < waiting->report_at_ns)
        return;
    waiting->report_at_ns = now_ns + REPEAT_NS;
    report_cause(waiting, SAY_NOTE, false, note->report, note->status);
    event_emit(waiting->wait->events, "waiting", cause_json(waiting, note->report, note->status));
}

/* Handles one note of the session (waiting, inspected or acquired), and frees it. */
static void take_note(struct waiting *waiting, struct note *note)
{
    struct wait *wait = waiting->wait;

    if (note->kind == NOTE_EVENT && note->event == REDLOCK_EVENT_WAITING && !waiting->signal_code) {
        report_waiting(waiting, note);
        probe_key(waiting, note->status);
    }
    if (note->kind == NOTE_INSPECTED)
        take_probe(waiting, note);
    if (note->kind == NOTE_ACQUIRED) {
        waiting->finished = true;
        waiting->status = note->status;
        wait->lock = note->status == REDLOCK_OK ? note->lock : NULL;
        redlock_report_free(wait->report);
        wait->report = note->report;
        note->report = NULL;
    }
    note_free(note);
}

/* Handles all pending signals. The first one that ends a wait cancels the acquisition. */
static void take_signals(struct waiting *waiting)
{
    struct signalfd_siginfo info;

    while (signals_next(waiting->wait->signal_fd, &info)) {
        int sig = (int)info.ssi_signo;
        if (signal_ends(sig) && !waiting->signal_code) {
            waiting->signal_code = EXIT_SIGNAL_BASE + sig;
            waiting->give_up_ns = boottime_ns() + END_WAIT_NS;
            redlock_cancel_trigger(waiting->wait->session->cancel);
        }
        /* No lock is held yet, so stopping is harmless. The validity is checked again
         * afterwards. */
        if (sig == SIGTSTP)
            raise(SIGSTOP);
    }
}

/* Waits for the next signal or note, or for the end of the guardian, and handles all that has
 * arrived. Sets `finished` when a canceled acquisition does not end in time. */
static void turn(struct waiting *waiting)
{
    struct wait *wait = waiting->wait;
    struct pollfd fds[3] = {{.fd = wait->signal_fd, .events = POLLIN},
                            {.fd = wait->session->note_read, .events = POLLIN},
                            {.fd = wait->watch_fd, .events = POLLIN}};
    struct note *note;

    if (poll(fds, 3, poll_timeout(boottime_ns(), waiting->give_up_ns)) < 0)
        return;
    take_signals(waiting);
    while ((note = session_next(wait->session)))
        take_note(waiting, note);
    if (wait->watch_fd >= 0 && fds[2].revents)
        waiting->gone = true;
    if (boottime_ns() >= waiting->give_up_ns)
        waiting->finished = true;
}

/* Reports, as message and as event, why the lock was not acquired. Returns the exit code. */
static int explain(const struct waiting *waiting)
{
    const struct wait *wait = waiting->wait;
    int code = exit_of_error(waiting->status, wait->conflict_code);
    int level = waiting->status == REDLOCK_ECONTENDED ? SAY_NOTE : SAY_ERROR;
    json_t *fields = cause_json(waiting, wait->report, waiting->status);

    report_cause(waiting, (enum say_level)level, true, wait->report, waiting->status);
    if (code == EXIT_NO_QUORUM || code == EXIT_REFUSED || code == EXIT_CONFIG)
        report_say_nodes(wait->report, level);
    json_object_set_new(fields, "exit", json_integer(code));
    event_emit(wait->events, "not_acquired", fields);
    return code;
}

/* Returns true, after a short pause, if an acquisition without a wait has to be repeated: the
 * servers were too slow, and less than half a second has passed since `start_ns`. Returns false if
 * another client holds the lock. */
static bool request_again(struct waiting *waiting, uint64_t start_ns)
{
    struct pollfd signals = {.fd = waiting->wait->signal_fd, .events = POLLIN};
    bool slow = waiting->status == REDLOCK_ENOQUORUM || waiting->status == REDLOCK_ETOOSLOW;

    if (!slow || waiting->signal_code || waiting->gone ||
        boottime_ns() >= start_ns + SLOW_TIMEOUT_NS)
        return false;
    poll(&signals, 1, SLOW_PAUSE_MS);
    take_signals(waiting);
    return !waiting->signal_code;
}

/* Starts the acquisition and waits until it ends, a signal ends the wait, or the guardian ends.
 * Returns -1 with wait->lock, or an exit code after a message. */
int wait_for_lock(struct wait *wait, redlock_opts_t opts)
{
    struct waiting waiting = {.wait = wait, .give_up_ns = NEVER_NS};
    uint64_t start_ns = boottime_ns();

    waiting.probe_at_ns = start_ns + long_wait_ns(wait);
    names_to_opts(wait->names, &opts);
    opts.kind = wait->permits ? REDLOCK_KIND_PERMIT : REDLOCK_KIND_EXCLUSIVE;
    opts.permits = wait->permits;
    do {
        waiting.finished = false;
        waiting.status = session_acquire(wait->session, wait->names->list[0], opts);
        if (waiting.status != REDLOCK_OK)
            return explain(&waiting);
        while (!waiting.finished && !waiting.gone)
            turn(&waiting);
    } while (opts.wait_ms == 0 && request_again(&waiting, start_ns));
    /* A signal that arrived together with the lock is decisive: the command is not started. */
    take_signals(&waiting);
    wait->waited_ms = (boottime_ns() - start_ns) / NS_PER_MS;
    if (waiting.gone) {
        say(SAY_ERROR, "the guardian process was killed");
        return EXIT_INTERNAL;
    }
    if (waiting.signal_code) {
        redlock_lock_free(wait->lock); /* starts its release */
        wait->lock = NULL;
        return waiting.signal_code;
    }
    return waiting.status == REDLOCK_OK ? -1 : explain(&waiting);
}
