/* SPDX-License-Identifier: MIT
 * Shows who waits in the line of a lock or of a semaphore.
 */
#include "waiters.h"

#include <stdlib.h>

#include "clock.h"
#include "json.h"
#include "reports.h"
#include "say.h"
#include "shown.h"

/* Waiters that are printed as text at most. */
#define PRINTED_MAX 100

/* Reads waiter `index` of the report into *ret_waiter. Returns false if there is none. */
static bool waiter_at(const redlock_report_t *report, size_t index, redlock_waiter_t *ret_waiter)
{
    return redlock_report_get_waiter(report, index, ret_waiter, sizeof *ret_waiter) == REDLOCK_OK;
}

/* Returns whether a server has said who is in the line: not without lines, and not if the user may
 * not read them. */
bool waiters_known(const redlock_report_t *report)
{
    return report_info(report).line_servers > 0;
}

/* Returns the number of waiters in the report. A line has no more than fit into 64 KB. */
size_t waiters_count(const redlock_report_t *report)
{
    return report_info(report).line_length;
}

/* Returns the JSON object of one waiter. */
static json_t *waiter_json(const redlock_waiter_t *waiter)
{
    char time[32];
    json_t *object = must(json_pack("{s:o}", "owner", json_text(waiter->owner)));

    if (waiter->since_ms != 0)
        json_object_set_new(object, "since", json_string(rfc3339(waiter->since_ms, time)));
    return object;
}

/* Adds "waiting", "waiters", and "waiting_more" if more clients wait than were read; nothing if it
 * is not known who waits. */
void waiters_to_json(json_t *object, const redlock_report_t *report, size_t most)
{
    redlock_waiter_t waiter;

    if (!waiters_known(report))
        return;
    json_t *list = must(json_array());
    for (size_t i = 0; i < most && waiter_at(report, i, &waiter); i++)
        json_array_append_new(list, waiter_json(&waiter));
    json_object_set_new(object, "waiting", json_integer((json_int_t)waiters_count(report)));
    if (report_info(report).line_more)
        json_object_set_new(object, "waiting_more", json_true());
    json_object_set_new(object, "waiters", list);
}

/* Prints the waiters with their places in the line, up to PRINTED_MAX, and how many others wait. */
void waiters_print(const redlock_report_t *report)
{
    size_t count = waiters_count(report);
    bool more = report_info(report).line_more;
    redlock_waiter_t waiter;
    char time[32];

    for (size_t i = 0; i < PRINTED_MAX && waiter_at(report, i, &waiter); i++) {
        show("  waiting %zu: %s", i + 1, *waiter.owner ? waiter.owner : "a client without a label");
        if (waiter.since_ms != 0)
            show(", since %s", rfc3339(waiter.since_ms, time));
        show("\n");
    }
    if (count > PRINTED_MAX || more)
        show("  and %s%zu more\n", more ? "at least " : "",
             (count > PRINTED_MAX ? count - PRINTED_MAX : 0) + more);
}

/* Returns the number of waiters, and the first ones with their times; "" if it is not known who
 * waits. To be freed. */
char *waiters_text(const redlock_report_t *report, size_t most)
{
    redlock_waiter_t waiter;

    if (!waiters_known(report))
        return text_copy("");
    char *text = text_format("%zu", waiters_count(report));
    for (size_t i = 0; i < most && waiter_at(report, i, &waiter); i++) {
        char *longer =
            text_format("%s\n%s %llu", text, waiter.owner, (unsigned long long)waiter.since_ms);
        free(text);
        text = longer;
    }
    return text;
}
