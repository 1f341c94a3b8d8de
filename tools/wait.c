/* SPDX-License-Identifier: MIT
 * The loop of a wait.
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

#define REPEAT_NS       (10 * UINT64_C(1000000000))
#define LONG_WAIT_NS    (60 * UINT64_C(1000000000))
#define END_WAIT_NS     (UINT64_C(1000000000))
#define SLOW_TIMEOUT_NS (500 * NS_PER_MS)
#define SLOW_PAUSE_MS   20

struct waiting {
    struct wait *wait;
    int signal_code;
    uint64_t give_up_ns;   /* once canceled: the end should come at once */
    uint64_t report_at_ns; /* next time that a line about waiting is due */
    uint64_t probe_at_ns;  /* next time that the key is looked at */
    bool probing;          /* at the key: the answer is under way */
    size_t probes;
    bool is_expired, gone;
    char stuck[STUCK_TEXT_MAX]; /* what was found then */
    int status;
};

/* "" unless the lock is held by a key that may never end. */
static const char *stuck_of(const struct waiting *waiting, int status)
{
    return status == REDLOCK_ECONTENDED ? waiting->stuck : "";
}

static json_t *cause_json(const struct waiting *waiting, const redlock_report_t *report, int status)
{
    json_t *fields = must(json_pack("{s:s, s:s}", "error", redlock_error_name(status), "reason",
                                    redlock_strerror(status)));

    if (report) {
        redlock_report_info_t info = report_info(report);
        json_object_set_new(fields, "text", json_text(redlock_report_text(report)));
        json_object_set_new(fields, "attempts", json_integer(info.attempts));
        json_object_set_new(fields, "waited_ms", json_integer((json_int_t)(info.waited_us / 1000)));
        json_object_set_new(fields, "nodes", report_nodes_json(report));
    }
    if (*stuck_of(waiting, status))
        json_object_set_new(fields, "stuck", json_text(stuck_of(waiting, status)));
    return fields;
}

static void report_cause(const struct waiting *waiting, enum say_level level, bool over,
                         const redlock_report_t *report, int status)
{
    const char *stuck = stuck_of(waiting, status);

    say(level, "%s%s: %s%s%s%s", over ? "" : "waiting for ", waiting->wait->names->text,
        over ? "not acquired: " : "", report_reason(report, status), *stuck ? "; its key " : "",
        stuck);
}

/* Within max_ttl each key ends or is renewed: to have waited for longer says something. */
static uint64_t long_wait_ns(const struct wait *wait)
{
    return wait->max_ttl_ms < LONG_WAIT_NS / NS_PER_MS ? wait->max_ttl_ms * NS_PER_MS
                                                       : LONG_WAIT_NS;
}

static void probe_key(struct waiting *waiting, int status)
{
    uint64_t now_ns = boottime_ns();

    if (status != REDLOCK_ECONTENDED || waiting->probing || now_ns < waiting->probe_at_ns ||
        waiting->wait->slots) /* no key of that name */
        return;
    waiting->probe_at_ns = now_ns + LONG_WAIT_NS;
    /* Of several, one after the other. */
    const struct names *names = waiting->wait->names;
    const char *name = names->list[waiting->probes++ % names->count];
    waiting->probing = session_inspect(waiting->wait->session, name) == REDLOCK_OK;
}

/* What is new is said with the next attempt. */
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

static void report_waiting(struct waiting *waiting, const struct note *note)
{
    uint64_t now_ns = boottime_ns();

    if (now_ns < waiting->report_at_ns)
        return;
    waiting->report_at_ns = now_ns + REPEAT_NS;
    report_cause(waiting, SAY_NOTE, false, note->report, note->status);
    event_emit(waiting->wait->events, "waiting", cause_json(waiting, note->report, note->status));
}

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
        waiting->is_expired = true;
        waiting->status = note->status;
        wait->lock = note->status == REDLOCK_OK ? note->lock : NULL;
        redlock_report_free(wait->report);
        wait->report = note->report;
        note->report = NULL;
    }
    note_free(note);
}

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
        /* Nothing is held yet, so stopping is harmless; validity is checked again afterwards. */
        if (sig == SIGTSTP)
            raise(SIGSTOP);
    }
}

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
        waiting->is_expired = true;
}

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

/* Without a budget there is one attempt, and servers that are slow for once would fail it. They are
 * asked again for a moment; a lock that is held by another is not waited for. */
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

int wait_for_lock(struct wait *wait, redlock_opts_t opts)
{
    struct waiting waiting = {.wait = wait, .give_up_ns = NEVER_NS};
    uint64_t start_ns = boottime_ns();

    waiting.probe_at_ns = start_ns + long_wait_ns(wait);
    names_to_opts(wait->names, &opts);
    opts.kind = wait->slots ? REDLOCK_KIND_PERMIT : REDLOCK_KIND_EXCLUSIVE;
    opts.permits = wait->slots;
    do {
        waiting.is_expired = false;
        waiting.status = session_acquire(wait->session, wait->names->list[0], opts);
        if (waiting.status != REDLOCK_OK)
            return explain(&waiting);
        while (!waiting.is_expired && !waiting.gone)
            turn(&waiting);
    } while (opts.wait_ms == 0 && request_again(&waiting, start_ns));
    /* A signal that came with the lock still wins: the command is never started after it. */
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
