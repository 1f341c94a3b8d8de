/* SPDX-License-Identifier: MIT
 * What is reported about a wait for a lock: a line from time to time, or a status line on a
 * terminal; the events "waiting" and "not_acquired"; and the message about its end, with what to
 * do.
 *
 * The status line is one line, so what matters most comes first: the time waited, the place in the
 * line of the lock, when the wait ends without a quorum, and the reason. The end of the line is cut
 * off in a narrow terminal.
 */
#include "waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "durations.h"
#include "exits.h"
#include "json.h"
#include "say.h"
#include "shown.h"
#include "terminal.h"

/* Time between two lines about waiting, and between two events. */
#define REPEAT_NS (10 * UINT64_C(1000000000))
/* Time between two events about the place in the line. */
#define MOVED_NS (UINT64_C(1000000000))
/* Wait after which the first line about it is printed, if stderr is no terminal. cron mails each
 * line, and a wait that is shorter than this and ends with the lock needs none. */
#define FIRST_NS (10 * UINT64_C(1000000000))
/* Columns of the terminal that the status line leaves free. */
#define FREE_COLUMNS 3
/* Size of the buffer that place_text() needs. */
#define PLACE_TEXT 32

/* Returns the text about a stuck key if `status`, the error code of an attempt, is that another
 * client holds the lock; else "". */
static const char *stuck_of(const struct waiting *waiting, int status)
{
    return status == REDLOCK_ECONTENDED ? waiting->stuck : "";
}

/* Returns the place of this client in the line of the lock, from 1; 0 if it is in no line, or waits
 * for something else than the lock. */
static uint32_t place_of(const struct waiting *waiting)
{
    bool held = waiting->attempt_status == REDLOCK_ECONTENDED;

    return held ? report_info(waiting->attempt_report).line_place : 0;
}

/* Returns whether no other client is in the line, so that the place says nothing. */
static bool is_alone(const struct waiting *waiting)
{
    return report_info(waiting->attempt_report).line_length <= 1;
}

/* Returns the place of this client as the beginning of a text, such as "3rd in line, "; "" if it is
 * in no line, or alone in it. */
static const char *place_text(const struct waiting *waiting, char text[PLACE_TEXT])
{
    uint32_t place = is_alone(waiting) ? 0 : place_of(waiting);
    uint32_t last = place % 100 / 10 == 1 ? 0 : place % 10;

    text[0] = '\0';
    if (place != 0)
        snprintf(text, PLACE_TEXT, "%" PRIu32 "%s in line, ", place,
                 last == 1   ? "st"
                 : last == 2 ? "nd"
                 : last == 3 ? "rd"
                             : "th");
    return text;
}

/* Returns the fields of an event as JSON object: the error code `status`, what the report says, the
 * text about a stuck key, and for how long there has been no quorum. `report` may be NULL. */
static json_t *cause_json(const struct waiting *waiting, const redlock_report_t *report, int status)
{
    json_t *fields = must(json_pack("{s:s, s:s}", "error", redlock_error_name(status), "reason",
                                    redlock_strerror(status)));

    if (report) {
        redlock_report_info_t info = report_info(report);
        json_object_set_new(fields, "text", json_text(redlock_report_text(report)));
        json_object_set_new(fields, "attempts", json_integer(info.attempts));
        json_object_set_new(fields, "servers", report_nodes_json(report));
        if (info.line_place != 0) {
            json_object_set_new(fields, "line_place", json_integer(info.line_place));
            json_object_set_new(fields, "line_length", json_integer(info.line_length));
        }
    }
    json_object_set_new(
        fields, "waited_ms",
        json_integer((json_int_t)((boottime_ns() - waiting->start_ns) / NS_PER_MS)));
    if (*stuck_of(waiting, status))
        json_object_set_new(fields, "stuck", json_text(stuck_of(waiting, status)));
    if (waiting->quorum.spent_ns > 0)
        json_object_set_new(fields, "no_quorum_ms",
                            json_integer((json_int_t)(waiting->quorum.spent_ns / NS_PER_MS)));
    return fields;
}

/* Returns how long the wait goes on if no quorum returns, in ms; UINT64_MAX: without limit. */
static uint64_t left_ms(const struct waiting *waiting)
{
    uint64_t waited_ms = (boottime_ns() - waiting->start_ns) / NS_PER_MS;
    uint64_t quorum_ms = quorum_wait_left_ms(&waiting->quorum);

    if (waiting->wait_ms == REDLOCK_WAIT_FOREVER)
        return quorum_ms;
    uint64_t budget_ms = waiting->wait_ms > waited_ms ? waiting->wait_ms - waited_ms : 0;
    return budget_ms < quorum_ms ? budget_ms : quorum_ms;
}

/* Returns the time, in ms, until the holder's key expires; UINT64_MAX: it never does, or that is
 * not known. */
static uint64_t holder_left_ms(const struct seen_holder *holder)
{
    uint64_t now_ns = boottime_ns();

    if (holder->expires_ns == NEVER_NS)
        return UINT64_MAX;
    return holder->expires_ns > now_ns ? (holder->expires_ns - now_ns) / NS_PER_MS : 0;
}

/* Returns that `holder` holds the lock, with the time left of its key. To be freed. */
static char *held_by(const struct waiting *waiting, const struct seen_holder *holder)
{
    char left[DURATION_TEXT], time[64] = "";
    bool several = waiting->wait->names->count > 1;

    if (!*waiting->stuck && holder_left_ms(holder) != UINT64_MAX)
        snprintf(time, sizeof time, " (%s left)",
                 duration_brief(holder_left_ms(holder) + 999, left));
    return text_format("%s%s%s%s%s%s%s", redlock_strerror(REDLOCK_ECONTENDED), several ? " ('" : "",
                       several ? holder->name : "", several ? "')" : "", *holder->owner ? ": " : "",
                       holder->owner, time);
}

/* Prints one line: why the lock is waited for, and when the wait ends if a quorum is missing. */
static void say_waiting(const struct waiting *waiting)
{
    int status = waiting->attempt_status;
    const char *stuck = stuck_of(waiting, status);
    uint64_t left = left_ms(waiting);
    char end[64] = "", text[DURATION_TEXT], place[PLACE_TEXT];
    const struct seen_holder *holder = &waiting->holder;
    bool known = status == REDLOCK_ECONTENDED && holder->name && holder->majority;
    char *reason = known ? held_by(waiting, holder)
                         : text_copy(report_reason(waiting->attempt_report, status));

    if (status != REDLOCK_ECONTENDED && waiting->quorum.state == QUORUM_MISSING &&
        left != UINT64_MAX)
        snprintf(end, sizeof end, "; gives up in %s",
                 duration_text(left < 1000 ? left : (left + 999) / 1000 * 1000, text));
    say(SAY_NOTE, "waiting for %s: %s%s%s%s%s", waiting->wait->names->text,
        place_text(waiting, place), reason, *stuck ? "; its key " : "", stuck, end);
    free(reason);
}

/* Returns true if stderr is a terminal with us in the foreground, and gets messages for people
 * only. */
bool waiting_is_live(const struct waiting *waiting)
{
    const int *fds = waiting->wait->events->fds;

    return say_shows(SAY_NOTE) && fds[0] != STDERR_FILENO && fds[1] != STDERR_FILENO &&
           terminal_takes_status();
}

/* Sets when the first reports are due: at once, but a line on stderr that is no terminal only after
 * FIRST_NS, unless -v asks for more messages. */
void waiting_schedule(struct waiting *waiting)
{
    bool at_once = isatty(STDERR_FILENO) || say_shows(SAY_INFO);

    waiting->event_at_ns = waiting->start_ns;
    waiting->message_at_ns = waiting->start_ns + (at_once ? 0 : FIRST_NS);
}

/* Returns whether an event about the place in the line is due: the last event did not name a place
 * and others wait, too, or the place has changed and that event is older than MOVED_NS. */
static bool has_moved(const struct waiting *waiting, uint64_t now_ns)
{
    uint32_t place = place_of(waiting);
    uint64_t last_ns = waiting->event_at_ns - REPEAT_NS;

    if (place == 0 || place == waiting->event_place)
        return false;
    return waiting->event_place == 0 ? !is_alone(waiting) : now_ns >= last_ns + MOVED_NS;
}

/* Reports why the lock is waited for, and sets when the next reports are due. */
void waiting_report(struct waiting *waiting)
{
    uint64_t now_ns = boottime_ns();

    bool asks = waiting->probing && now_ns < waiting->probed_ns + HOLDER_WAIT_NS;
    if (now_ns >= waiting->message_at_ns && !asks) {
        waiting->message_at_ns = now_ns + REPEAT_NS;
        if (!waiting_is_live(waiting))
            say_waiting(waiting);
    }
    if (now_ns >= waiting->event_at_ns || has_moved(waiting, now_ns)) {
        waiting->event_at_ns = now_ns + REPEAT_NS;
        waiting->event_place = place_of(waiting);
        event_emit(waiting->wait->events, "waiting",
                   cause_json(waiting, waiting->attempt_report, waiting->attempt_status));
    }
}

/* Returns who holds the lock and how much time its key has left, or that all permits are taken. The
 * time comes first, because the label may be long. To be freed. */
static char *holder_text(const struct waiting *waiting)
{
    const struct seen_holder *holder = &waiting->holder;
    const struct wait *wait = waiting->wait;
    char left[DURATION_TEXT], time[64] = "";

    if (wait->permits)
        return text_format("all %u permits are taken", wait->permits);
    if (!holder->name)
        return text_copy(redlock_strerror(REDLOCK_ECONTENDED));
    const char *owner = *holder->owner ? holder->owner : "a client without a label";
    const char *name = wait->names->count > 1 ? holder->name : "";
    const char *blank = *name ? " " : "";
    if (*waiting->stuck)
        return text_format("%s%sheld by %s; its key %s", name, blank, owner, waiting->stuck);
    uint64_t left_ms = holder_left_ms(holder);
    if (left_ms != UINT64_MAX && left_ms != 0)
        snprintf(time, sizeof time, " (%s left)", duration_brief(left_ms + 999, left));
    return text_format("%s%sheld%s by %s", name, blank, time, owner);
}

/* Returns why the lock is waited for. To be freed. */
static char *reason_text(const struct waiting *waiting)
{
    if (waiting->attempt_status == REDLOCK_OK)
        return text_copy("no reply yet");
    if (waiting->attempt_status == REDLOCK_ECONTENDED)
        return holder_text(waiting);
    return text_copy(report_reason(waiting->attempt_report, waiting->attempt_status));
}

/* Returns the status line, whatever its length and its characters. To be freed. */
static char *line_text(const struct waiting *waiting)
{
    char waited[DURATION_TEXT], most[DURATION_TEXT], left[DURATION_TEXT], end[64] = "",
                                                                          place[PLACE_TEXT];
    bool limited = waiting->wait_ms != REDLOCK_WAIT_FOREVER;
    bool missing = waiting->quorum.state == QUORUM_MISSING &&
                   waiting->attempt_status != REDLOCK_ECONTENDED && left_ms(waiting) != UINT64_MAX;
    char *reason = reason_text(waiting);

    duration_brief((boottime_ns() - waiting->start_ns) / NS_PER_MS, waited);
    if (missing)
        snprintf(end, sizeof end, "gives up in %s, ", duration_brief(left_ms(waiting) + 999, left));
    char *text =
        text_format("redlock: waiting for %s: %s%s%s, %s%s%s", waiting->wait->names->text, waited,
                    limited ? " of " : "", limited ? duration_text(waiting->wait_ms, most) : "",
                    place_text(waiting, place), end, reason);
    free(reason);
    return text;
}

/* Prints the status line if it has changed. The last columns stay free: a terminal may wrap a line
 * that fills it, and prints "^C" behind the line when the user ends the wait. */
void waiting_show_line(struct waiting *waiting)
{
    if (!waiting_is_live(waiting))
        return;
    char *text = line_text(waiting), *shown = text_shown(text);
    unsigned columns = terminal_columns();
    char *line = text_cut(shown, columns > FREE_COLUMNS ? columns - FREE_COLUMNS : 0);
    free(text);
    free(shown);
    if (waiting->line && !strcmp(waiting->line, line)) {
        free(line);
        return;
    }
    say_status(line);
    free(waiting->line);
    waiting->line = line;
}

/* Removes the status line. The next waiting_show_line() prints it again. */
void waiting_hide_line(struct waiting *waiting)
{
    if (waiting->line)
        say_status(NULL);
    free(waiting->line);
    waiting->line = NULL;
}

/* Returns the name of the limit that has ended the wait, in JSON; NULL if an error has ended it. */
static const char *limit_name(const struct waiting *waiting)
{
    if (waiting->no_quorum)
        return "quorum-wait";
    bool limited = waiting->wait_ms != REDLOCK_WAIT_FOREVER;
    return limited && redlock_error_is_retriable(waiting->status) ? "wait" : NULL;
}

/* Returns true if another client holds the lock and stderr or an event says so. A semaphore has no
 * key of its own name, and each of its permits has another holder. */
bool waiting_names_holder(const struct waiting *waiting)
{
    const int *fds = waiting->wait->events->fds;

    return waiting->status == REDLOCK_ECONTENDED && !waiting->wait->permits &&
           (say_shows(SAY_NOTE) || fds[0] >= 0 || fds[1] >= 0);
}

/* Returns the holder of the lock that was not acquired. NULL: it is not known, or no client has a
 * quorum of its keys. */
static const struct seen_holder *known_holder(const struct waiting *waiting)
{
    const struct seen_holder *holder = &waiting->holder;
    bool held = waiting_names_holder(waiting) && holder->name && holder->majority;

    return held ? holder : NULL;
}

/* Returns why the lock was not acquired: of a held lock the holder's label and the time left of its
 * key, if they are known, or that all permits are taken. To be freed. */
static char *end_reason(const struct waiting *waiting)
{
    const struct wait *wait = waiting->wait;
    const struct seen_holder *holder = known_holder(waiting);

    if (waiting->status == REDLOCK_ECONTENDED && wait->permits)
        return text_format("%s: all %u permits are taken", redlock_strerror(REDLOCK_ECONTENDED),
                           wait->permits);
    if (!holder)
        return text_copy(report_reason(wait->report, waiting->status));
    return held_by(waiting, holder);
}

/* Returns the words that show the holders of the lock, for a shell. To be freed. */
static char *status_command(const struct waiting *waiting)
{
    const struct wait *wait = waiting->wait;
    const struct seen_holder *holder = known_holder(waiting);

    if (!holder && wait->names->count > 1)
        return text_copy("redlock status NAME...");
    char *name = shell_word(holder ? holder->name : wait->names->list[0]);
    char *text = wait->permits ? text_format("redlock status --permits %u %s", wait->permits, name)
                               : text_format("redlock status %s", name);
    free(name);
    return text;
}

/* Returns what to do about a lock that another client holds; "" if its key is stuck, because the
 * text about that says it. To be freed. */
static char *holder_advice(const struct waiting *waiting)
{
    if (*waiting->stuck)
        return text_copy("");
    char *command = status_command(waiting);
    char *text =
        text_format("; to check the holder: %s; to wait %s", command,
                    waiting->wait_ms == 0 ? "for the lock: --wait 1m" : "longer: raise --wait");
    free(command);
    return text;
}

/* Returns what to do about a lock that was not acquired, after "; ", or "". To be freed. */
static char *end_advice(const struct waiting *waiting)
{
    int code = exit_of_error(waiting->status, EXIT_HELD);

    if (waiting->status == REDLOCK_ECONTENDED)
        return holder_advice(waiting);
    if (code != EXIT_NO_QUORUM && code != EXIT_REFUSED)
        return text_copy("");
    return text_format("; check the servers: redlock nodes%s",
                       waiting->status == REDLOCK_EFENCE ? " --fence" : "");
}

/* Prints one line: why the lock was not acquired, which limit has ended the wait, and what to do.
 */
static void say_not_acquired(const struct waiting *waiting, enum say_level level)
{
    const char *stuck = stuck_of(waiting, waiting->status), *limit = limit_name(waiting);
    char *reason = end_reason(waiting), *advice = end_advice(waiting);
    char end[96] = "", text[DURATION_TEXT];

    if (waiting->no_quorum)
        snprintf(end, sizeof end, "; gave up after %s without a quorum (--quorum-wait)",
                 duration_text(waiting->quorum.limit_ns / NS_PER_MS, text));
    else if (limit && waiting->wait_ms > 0)
        snprintf(end, sizeof end, "; gave up after %s (--wait)",
                 duration_text(waiting->wait_ms, text));
    say(level, "%s: not acquired: %s%s%s%s%s", waiting->wait->names->text, reason,
        *stuck ? "; its key " : "", stuck, end, advice);
    free(reason);
    free(advice);
}

/* Adds the holder of the lock, if it is known, to the fields of an event. */
static void add_holder(const struct waiting *waiting, json_t *fields)
{
    const struct seen_holder *holder = known_holder(waiting);

    if (!holder)
        return;
    json_t *object = must(json_pack("{s:o, s:o}", "name", json_text(holder->name), "owner",
                                    json_text(holder->owner)));
    if (holder_left_ms(holder) != UINT64_MAX)
        json_object_set_new(object, "ttl_ms", json_integer((json_int_t)holder_left_ms(holder)));
    json_object_set_new(fields, "holder", object);
}

/* Reports, as message and as event, why the lock was not acquired. Returns the exit code. */
int waiting_explain(const struct waiting *waiting)
{
    const struct wait *wait = waiting->wait;
    int code = exit_of_error(waiting->status, wait->conflict_code);
    int level = waiting->status == REDLOCK_ECONTENDED ? SAY_NOTE : SAY_ERROR;
    json_t *fields = cause_json(waiting, wait->report, waiting->status);

    say_not_acquired(waiting, (enum say_level)level);
    if (code == EXIT_NO_QUORUM || code == EXIT_REFUSED || code == EXIT_CONFIG)
        report_say_nodes(wait->report, level);
    add_holder(waiting, fields);
    if (limit_name(waiting))
        json_object_set_new(fields, "limit", json_string(limit_name(waiting)));
    json_object_set_new(fields, "exit", json_integer(code));
    event_emit(wait->events, "not_acquired", fields);
    return code;
}
