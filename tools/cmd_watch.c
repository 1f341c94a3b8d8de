/* SPDX-License-Identifier: MIT
 * `redlock watch`: prints who holds each lock and who waits for it, and a line of JSON for each
 * change. It inspects the locks periodically, so it misses a change that is reverted between two
 * inspections. An inspection is unclear if it shows neither a holder nor that the lock is free.
 * With --permits it watches the lock of each slot of a semaphore instead; the waiters for a permit
 * are shown with the first slot.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "commands.h"
#include "durations.h"
#include "exits.h"
#include "inspect.h"
#include "json.h"
#include "pass_file.h"
#include "reports.h"
#include "say.h"
#include "signals.h"
#include "waiters.h"

#define CLOSE_BUDGET_MS 1000 /* time limit for closing the client */
#define INTERVAL_MIN_MS 10   /* shortest --interval */
#define AGAIN_MS        50   /* pause after an inspection without a clear result */
#define WAITERS_MAX     10   /* waiters that a line names */
#define DOUBTS_MAX      3    /* unclear inspections in a row until the state counts as unknown */

/* One lock that is watched, and what was printed about it last. */
struct watched {
    const char *name;       /* of the lock or slot, borrowed */
    int slot;               /* number of the slot; -1: a lock */
    int state;              /* enum redlock_state, as printed last */
    char owner[132];        /* label of the holder as printed last, at most 128 bytes */
    char *waiters;          /* the first waiters as printed last; NULL: none were; owned */
    bool reported;          /* false until the first line was printed */
    unsigned failed_probes; /* inspections in a row without a clear state */
};

/* The words for enum redlock_state in the output. */
static const char *const state_names[] = {[REDLOCK_STATE_UNKNOWN] = "unknown",
                                          [REDLOCK_STATE_FREE] = "free",
                                          [REDLOCK_STATE_HELD] = "held"};

/* Returns the JSON object for one line about the lock: time, state, votes, holder and the longest
 * TTL that is left on a server. */
static json_t *line_of(const struct watched *watched, const redlock_report_t *report)
{
    char time[32];
    uint64_t longest_ms = 0;
    redlock_node_report_t node;
    json_t *object =
        must(json_pack("{s:s, s:s, s:o, s:s, s:i, s:i}", "schema", "redlock.watch/1", "t",
                       rfc3339(unix_ms(), time), "name", json_text(watched->name), "state",
                       state_names[watched->state], "votes", (int)report_votes(report).granted,
                       "quorum", (int)report_info(report).quorum));

    if (watched->slot >= 0)
        json_object_set_new(object, "slot", json_integer(watched->slot));
    if (watched->state == REDLOCK_STATE_HELD)
        json_object_set_new(object, "owner", json_text(watched->owner));
    for (size_t i = 0; report_node(report, i, &node); i++) {
        if (node.vote == REDLOCK_VOTE_GRANTED && node.pttl_ms != UINT64_MAX &&
            node.pttl_ms > longest_ms)
            longest_ms = node.pttl_ms;
    }
    if (longest_ms != 0)
        json_object_set_new(object, "ttl_ms", json_integer((json_int_t)longest_ms));
    if (watched->slot <= 0) /* the report on the first slot has the waiters of the semaphore */
        waiters_to_json(object, report, WAITERS_MAX);
    if (watched->state == REDLOCK_STATE_UNKNOWN && *redlock_report_text(report))
        json_object_set_new(object, "text", json_text(redlock_report_text(report)));
    return object;
}

/* Takes the report of one inspection, and prints a line if it shows another state, another holder
 * or other waiters than the line before. A single unclear inspection is ignored, because it may
 * have met the servers in the middle of a change. Returns false if stdout could not be written. */
static bool handle_inspection(struct watched *watched, const redlock_report_t *report)
{
    int state = report_info(report).state;
    const char *owner = state == REDLOCK_STATE_HELD ? report_owner(report) : "";

    watched->failed_probes = state == REDLOCK_STATE_UNKNOWN ? watched->failed_probes + 1 : 0;
    bool settled = watched->failed_probes == 0 || watched->failed_probes >= DOUBTS_MAX;
    if (!settled)
        return true;
    char *waiters = waiters_text(report, WAITERS_MAX);
    bool same = watched->reported && state == watched->state &&
                strcmp(owner, watched->owner) == 0 && strcmp(waiters, watched->waiters) == 0;
    free(watched->waiters);
    watched->waiters = waiters;
    if (same)
        return true;
    watched->reported = true;
    watched->state = state;
    snprintf(watched->owner, sizeof watched->owner, "%s", owner);
    return json_print(line_of(watched, report));
}

/* Reports that stdout cannot be written. Returns EXIT_OUTPUT. */
static int reader_is_gone(void)
{
    say(SAY_ERROR, OUTPUT_LOST);
    return EXIT_OUTPUT;
}

/* Takes the result of the inspection of one lock. Returns -1 on success, or an exit code after a
 * message. */
static int take(struct watched *watched, const struct inspection *seen)
{
    if (seen->error != REDLOCK_EAUTH && seen->error != REDLOCK_EINVAL)
        return handle_inspection(watched, seen->report) ? -1 : reader_is_gone();
    say(SAY_ERROR, "%s: %s", watched->name, report_reason(seen->report, seen->error));
    report_say_nodes(seen->report, SAY_ERROR);
    return exit_of_error(seen->error, EXIT_HELD);
}

/* Inspects all `count` locks once and prints changes. `seen` has an element for each, with its
 * name. Returns -1 on success, or an exit code after a message. */
static int probe(redlock_t *rl, struct watched *watched, struct inspection *seen, size_t count)
{
    int result = -1;

    inspect_once(rl, seen, count);
    for (size_t i = 0; i < count; i++) {
        if (result < 0)
            result = take(&watched[i], &seen[i]);
        redlock_report_free(seen[i].report);
    }
    return result;
}

/* Returns the pause, in ms, before the next inspection; a shorter one if the last inspection of a
 * lock had no clear result. */
static int next_probe_ms(const struct watched *watched, size_t count, uint64_t interval_ms)
{
    for (size_t i = 0; i < count; i++)
        if (watched[i].failed_probes > 0 && watched[i].failed_probes < DOUBTS_MAX &&
            AGAIN_MS < interval_ms)
            return AGAIN_MS;
    return interval_ms < INT32_MAX ? (int)interval_ms : INT32_MAX;
}

/* Waits for `ms` milliseconds. Returns -1 on success, or the exit code if a signal ends the program
 * or the reader of stdout has closed it. */
static int sleep_or_end(int signal_fd, int ms)
{
    uint64_t until_ns = boottime_ns() + (uint64_t)ms * NS_PER_MS;
    struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};
    struct signalfd_siginfo info;

    for (;;) {
        uint64_t now_ns = boottime_ns();
        int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : 0;
        poll(fds, 2, left_ms);
        while (signals_next(signal_fd, &info))
            if (signal_ends((int)info.ssi_signo))
                return EXIT_SIGNAL_BASE + (int)info.ssi_signo;
        if ((fds[1].revents & (POLLERR | POLLHUP)) != 0)
            return reader_is_gone();
        if (boottime_ns() >= until_ns)
            return -1;
    }
}

/* Inspects the locks again and again until a signal or an error ends the program. `watched` and
 * `seen` have `count` elements. Returns the exit code. */
static int watch(const struct options *options, redlock_t *rl, struct watched *watched,
                 struct inspection *seen, size_t count)
{
    int signal_fd = signals_open();

    for (;;) {
        int result = probe(rl, watched, seen, count);
        if (result >= 0)
            return result;
        result = sleep_or_end(signal_fd, next_probe_ms(watched, count, options->interval_ms));
        if (result >= 0)
            return result;
    }
}

/* Watches the locks of the operands, or with --permits the slots of each operand. Returns the exit
 * code. */
static int watch_operands(const struct options *options, redlock_t *rl)
{
    size_t slots = options->permits ? options->permits : 1, count = options->operand_count * slots;
    struct watched *watched = must(calloc(count, sizeof *watched));
    struct inspection *seen = must(calloc(count, sizeof *seen));

    for (size_t i = 0; i < count; i++) {
        const char *name = options->operands[i / slots];
        watched[i].slot = options->permits ? (int)(i % slots) : -1;
        seen[i].name =
            options->permits ? text_format("%s{#%zu}", name, i % slots) : text_copy(name);
        watched[i].name = seen[i].name;
    }
    int result = watch(options, rl, watched, seen, count);
    for (size_t i = 0; i < count; i++) {
        free(seen[i].name);
        free(watched[i].waiters);
    }
    free(seen);
    free(watched);
    return result;
}

/* Runs `redlock watch`: checks the operands, starts a client and watches the locks. Returns the
 * exit code: 128+n after signal n. */
int cmd_watch(const struct options *options)
{
    struct settings settings;
    redlock_t *rl;
    int result = -1;
    char interval[DURATION_TEXT];

    if (options->operand_count == 0) {
        say(SAY_ERROR, "watch: no name; write: redlock watch NAME...");
        return EXIT_USAGE;
    }
    if (options->interval_ms < INTERVAL_MIN_MS) {
        say(SAY_ERROR,
            "watch: --interval %s: too short, because each inspection sends a request to all "
            "servers; write %dms or more",
            duration_text(options->interval_ms, interval), INTERVAL_MIN_MS);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < options->operand_count && result < 0; i++)
        result = client_check_name("watch", options->operands[i]);
    for (size_t i = 0; i < options->operand_count && result < 0; i++)
        result = client_check_slots("watch", options->operands[i], options->permits);
    if (result >= 0)
        return result;
    signals_block();
    result = client_open(options, &settings, &rl);
    if (result >= 0)
        return result;
    pass_file_follow(&settings, rl);
    result = watch_operands(options, rl);
    client_close(rl, CLOSE_BUDGET_MS);
    settings_free(&settings);
    return result;
}
