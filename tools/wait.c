/* SPDX-License-Identifier: MIT
 * The loop of a wait for a lock. wait_for_lock() starts an acquisition in the session and calls
 * turn() until the acquisition has ended. Each turn() waits for a signal, for a note of the
 * session, or for the end of the guardian. Notes are: the acquisition waits (a line about that is
 * printed from time to time), the acquisition has ended, or an inspection has ended. After a long
 * wait, the key is inspected, because a stuck key, one that never expires or too late, would block
 * all waiters. If the wait ends without the lock, the key is inspected once more, because the
 * message names its holder. check_quorum() cancels the acquisition when no quorum could be had for
 * too long.
 */
#include "wait.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "exits.h"
#include "guardian.h"
#include "say.h"
#include "signals.h"
#include "waiting.h"

/* Time between two inspections for the status line, and until one that has failed is repeated. */
#define SOON_PROBE_NS (UINT64_C(1000000000))
/* Time before a key is inspected, unless max_ttl is shorter; and time between two inspections. */
#define LONG_WAIT_NS (60 * UINT64_C(1000000000))
/* Time that a canceled acquisition has to end. */
#define END_WAIT_NS (UINT64_C(1000000000))
/* How long, and with what pause, an acquisition without a wait is repeated if servers are slow. */
#define SLOW_TIMEOUT_NS (QUORUM_WAIT_MS_MIN * NS_PER_MS)
#define SLOW_PAUSE_MS   20

/* Returns how long to wait, in ns, before the key is inspected. Within max_ttl every key expires or
 * is extended, so a longer wait may mean that the key is stuck. */
static uint64_t long_wait_ns(const struct wait *wait)
{
    return wait->max_ttl_ms < LONG_WAIT_NS / NS_PER_MS ? wait->max_ttl_ms * NS_PER_MS
                                                       : LONG_WAIT_NS;
}

/* Returns when the next inspection of the key is due. The status line names the holder, so it needs
 * one every second, and each line about the wait needs one. Otherwise only a long wait gives a
 * reason for one. */
static uint64_t probe_at_ns(const struct waiting *waiting)
{
    if (waiting_is_live(waiting))
        return waiting->probed_ns ? waiting->probed_ns + SOON_PROBE_NS : waiting->start_ns;
    uint64_t long_at_ns = waiting->start_ns + long_wait_ns(waiting->wait);
    uint64_t pause_ns = waiting->probe_failed ? SOON_PROBE_NS : LONG_WAIT_NS;
    uint64_t again_ns = waiting->probed_ns ? waiting->probed_ns + pause_ns : 0;
    uint64_t at_ns = long_at_ns > again_ns ? long_at_ns : again_ns;
    bool lacks_holder = say_shows(SAY_NOTE) && waiting->probed_ns < waiting->message_at_ns;
    return lacks_holder && waiting->message_at_ns < at_ns ? waiting->message_at_ns : at_ns;
}

/* Starts an inspection of the lock `name`. */
static void probe_name(struct waiting *waiting, const char *name)
{
    waiting->probed_ns = boottime_ns();
    waiting->probe_name = name;
    waiting->probing = session_inspect(waiting->wait->session, name) == REDLOCK_OK;
    waiting->probe_failed = !waiting->probing;
}

/* Starts an inspection of the key if one is due and another client holds the lock. The keys of
 * several names are inspected in turn. */
static void probe_key(struct waiting *waiting)
{
    if (waiting->attempt_status != REDLOCK_ECONTENDED || waiting->probing ||
        boottime_ns() < probe_at_ns(waiting) ||
        waiting->wait->permits) /* a semaphore has no key of its own name */
        return;
    const struct names *names = waiting->wait->names;
    probe_name(waiting, names->list[waiting->probes++ % names->count]);
}

/* Stores which client holds the lock that was inspected. Of several names, remembers one that is
 * held. */
static void take_holder(struct waiting *waiting, const redlock_report_t *report)
{
    struct holding holding = holding_of(report);
    struct seen_holder *holder = &waiting->holder;

    if (holding.votes.granted == 0) {
        if (holder->name == waiting->probe_name)
            holder->name = NULL;
        return;
    }
    holder->name = waiting->probe_name;
    holder->majority = report_info(report).state == REDLOCK_STATE_HELD;
    snprintf(holder->owner, sizeof holder->owner, "%s", holding.owner);
    holder->expires_ns = holding.pttl_max_ms == UINT64_MAX
                             ? NEVER_NS
                             : boottime_ns() + holding.pttl_max_ms * NS_PER_MS;
}

/* Handles the result of an inspection. If a stuck key is found for the first time, makes the next
 * line about waiting due at once. */
static void take_probe(struct waiting *waiting, const struct note *note)
{
    bool known = *waiting->stuck != '\0';

    waiting->probing = false;
    waiting->probe_failed = note->status != REDLOCK_OK;
    if (waiting->probe_failed)
        return;
    take_holder(waiting, note->report);
    if (stuck_text(note->report, waiting->wait->max_ttl_ms, waiting->stuck,
                   sizeof waiting->stuck) &&
        !known)
        waiting->event_at_ns = waiting->message_at_ns = 0;
}

/* Cancels the acquisition, which has END_WAIT_NS to end. */
static void cancel(struct waiting *waiting)
{
    waiting->give_up_ns = boottime_ns() + END_WAIT_NS;
    redlock_cancel_trigger(waiting->wait->session->cancel);
}

/* Notes whether a quorum can be had, and cancels the acquisition if there has been none for too
 * long. If the last attempt has not failed for that, the next one decides. */
static void check_quorum(struct waiting *waiting)
{
    redlock_report_info_t attempt = report_info(waiting->attempt_report);
    struct quorum_wait *quorum = &waiting->quorum;

    if (waiting->finished || waiting->no_quorum || waiting->signal_code)
        return;
    quorum_wait_note(quorum,
                     quorum_state_of(waiting->wait->session->rl, &attempt, waiting->attempt_status),
                     boottime_ns());
    bool failed =
        waiting->attempt_status != REDLOCK_OK && waiting->attempt_status != REDLOCK_ECONTENDED;
    if (!failed || !quorum_wait_has_ended(quorum))
        return;
    waiting->no_quorum = true;
    cancel(waiting);
}

/* Handles one note of the session (waiting, inspected or acquired), and frees it. */
static void take_note(struct waiting *waiting, struct note *note)
{
    struct wait *wait = waiting->wait;

    if (note->kind == NOTE_EVENT && note->event == REDLOCK_EVENT_WAITING && !waiting->signal_code) {
        redlock_report_free(waiting->attempt_report);
        waiting->attempt_report = redlock_report_ref(note->report);
        waiting->attempt_status = note->status;
        check_quorum(waiting);
        probe_key(waiting);
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
            cancel(waiting);
        }
        /* The terminal has another width, or other text in this line. */
        if (sig == SIGWINCH || sig == SIGCONT || sig == SIGTSTP)
            waiting_hide_line(waiting);
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

    bool ends = waiting->no_quorum || waiting->signal_code;
    uint64_t next_ns = ends ? waiting->give_up_ns : quorum_wait_next_ns(&waiting->quorum);
    if (poll(fds, 3, poll_timeout(boottime_ns(), next_ns)) < 0)
        return;
    take_signals(waiting);
    while ((note = session_next(wait->session)))
        take_note(waiting, note);
    check_quorum(waiting);
    probe_key(waiting);
    if (waiting->attempt_status != REDLOCK_OK && !waiting->finished && !waiting->signal_code)
        waiting_report(waiting);
    waiting_show_line(waiting);
    if (wait->watch_fd >= 0 && fds[2].revents)
        waiting->gone = true;
    if (boottime_ns() >= waiting->give_up_ns)
        waiting->finished = true;
}

/* Replaces the result of an acquisition that was canceled because no quorum could be had: it is
 * that of the last attempt. */
static void take_attempt(struct waiting *waiting)
{
    redlock_report_free(waiting->wait->report);
    waiting->wait->report = waiting->attempt_report;
    waiting->attempt_report = NULL;
    waiting->status = waiting->attempt_status;
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

/* Runs the acquisition of wait->names until it ends, a signal ends the wait, or the guardian ends.
 * Returns REDLOCK_OK, or the error code with which it was refused. */
static int run_acquisition(struct waiting *waiting, const redlock_opts_t *opts)
{
    struct wait *wait = waiting->wait;

    do {
        waiting->finished = false;
        waiting->status = session_acquire(wait->session, wait->names->list[0], *opts);
        if (waiting->status != REDLOCK_OK)
            return waiting->status;
        while (!waiting->finished && !waiting->gone)
            turn(waiting);
    } while (opts->wait_ms == 0 && request_again(waiting, waiting->start_ns));
    /* A signal that arrived together with the lock is decisive: the command is not started. */
    take_signals(waiting);
    return REDLOCK_OK;
}

/* Waits until the inspection that is under way has ended, at most until `give_up_ns`. Returns false
 * if it has not. */
static bool wait_for_probe(struct waiting *waiting, uint64_t give_up_ns)
{
    struct pollfd notes = {.fd = waiting->wait->session->note_read, .events = POLLIN};
    struct note *note;

    while (waiting->probing && boottime_ns() < give_up_ns) {
        poll(&notes, 1, poll_timeout(boottime_ns(), give_up_ns));
        while ((note = session_next(waiting->wait->session)))
            take_note(waiting, note);
    }
    return !waiting->probing;
}

/* Inspects the lock that was not acquired, for the message about it. Of several names, the first
 * one that a client holds on a quorum of servers decides. Gives up after HOLDER_WAIT_NS. */
static void find_holder(struct waiting *waiting)
{
    const struct names *names = waiting->wait->names;
    struct seen_holder *holder = &waiting->holder;
    uint64_t give_up_ns = boottime_ns() + HOLDER_WAIT_NS;
    bool ended = wait_for_probe(waiting, give_up_ns); /* one may be under way */

    *holder = (struct seen_holder){.name = NULL};
    for (size_t i = 0; i < names->count && ended && !(holder->name && holder->majority); i++) {
        probe_name(waiting, names->list[i]);
        ended = wait_for_probe(waiting, give_up_ns);
    }
}

/* Decides what the wait has ended with. Returns -1 with wait->lock, or an exit code after a
 * message.
 */
static int finish(struct waiting *waiting)
{
    struct wait *wait = waiting->wait;

    wait->waited_ms = (boottime_ns() - waiting->start_ns) / NS_PER_MS;
    if (waiting->gone)
        return guardian_explain_end(wait->watch_fd, wait->names->text, "the lock was not acquired");
    if (waiting->signal_code) {
        redlock_lock_free(wait->lock); /* starts its release */
        wait->lock = NULL;
        return waiting->signal_code;
    }
    if (wait->lock)
        return -1;
    if (waiting->no_quorum)
        take_attempt(waiting);
    if (waiting_names_holder(waiting))
        find_holder(waiting);
    return waiting_explain(waiting);
}

/* Runs the acquisition and reports why it failed. Returns -1 with wait->lock, or an exit code after
 * a message. */
int wait_for_lock(struct wait *wait, redlock_opts_t opts)
{
    struct waiting waiting = {
        .wait = wait, .wait_ms = opts.wait_ms, .start_ns = boottime_ns(), .give_up_ns = NEVER_NS};
    /* An acquisition without a wait ends by itself. */
    uint64_t quorum_ms = opts.wait_ms == 0 ? REDLOCK_WAIT_FOREVER : wait->quorum_wait_ms;

    quorum_wait_start(&waiting.quorum, quorum_ms, waiting.start_ns);
    waiting_schedule(&waiting);
    names_to_opts(wait->names, &opts);
    opts.kind = wait->permits ? REDLOCK_KIND_PERMIT : REDLOCK_KIND_EXCLUSIVE;
    opts.permits = wait->permits;
    int error = run_acquisition(&waiting, &opts);
    waiting_hide_line(&waiting);
    int result = error == REDLOCK_OK ? finish(&waiting) : waiting_explain(&waiting);
    redlock_report_free(waiting.attempt_report);
    return result;
}
