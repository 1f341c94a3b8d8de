/* SPDX-License-Identifier: MIT
 * Records events and callbacks. */
#include "live_events.h"

#include <stdio.h>
#include <string.h>

struct events client_events = {.mutex = PTHREAD_MUTEX_INITIALIZER};
struct events lock_events = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Empties one list. */
static void reset(struct events *events)
{
    pthread_mutex_lock(&events->mutex);
    events->count = 0;
    pthread_mutex_unlock(&events->mutex);
}

/* Empties both lists. */
void events_reset(void)
{
    reset(&client_events);
    reset(&lock_events);
}

/* Appends a copy of the event to the list `userdata`. Drops it if the list is full. */
void note_event(redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    struct events *events = userdata;
    redlock_report_info_t info = {.line_place = 0};
    (void)rl;
    (void)redlock_report_get_info(event->report, &info, sizeof info);
    pthread_mutex_lock(&events->mutex);
    if (events->count < EVENTS_MAX) {
        struct noted_event *noted = &events->list[events->count++];
        const char *name = event->resource != NULL ? event->resource : event->node;
        *noted = (struct noted_event){
            .kind = event->kind,
            .status = event->status,
            .has_lock = event->lock != NULL,
            .has_report = event->report != NULL,
            .remaining_ms = event->remaining_ms,
            .line_place = info.line_place,
            .at_ms = wait_now_ms(),
            .thread = pthread_self(),
        };
        snprintf(noted->name, sizeof noted->name, "%s", name == NULL ? "" : name);
    }
    pthread_mutex_unlock(&events->mutex);
}

/* Returns the number of events of this kind about the resource or node `name` (NULL: about any). */
unsigned count_events_of(struct events *events, int kind, const char *name)
{
    unsigned count = 0;
    pthread_mutex_lock(&events->mutex);
    for (unsigned i = 0; i < events->count; i++)
        count += events->list[i].kind == kind &&
                 (name == NULL || strcmp(events->list[i].name, name) == 0);
    pthread_mutex_unlock(&events->mutex);
    return count;
}

/* Returns the number of events of this kind. */
unsigned count_events(struct events *events, int kind)
{
    return count_events_of(events, kind, NULL);
}

/* Returns the index-th event of this kind, counted from 0. Fails the case if there is none. */
struct noted_event find_event(struct events *events, int kind, unsigned index)
{
    struct noted_event found = {.kind = 0};
    pthread_mutex_lock(&events->mutex);
    for (unsigned i = 0; i < events->count && found.kind == 0; i++)
        if (events->list[i].kind == kind && index-- == 0)
            found = events->list[i];
    pthread_mutex_unlock(&events->mutex);
    ck_assert_msg(found.kind == kind, "no event of kind %d among \"%s\"", kind,
                  event_letters(events));
    return found;
}

/* Returns one letter per event, in their order. Index i of `letters` is the letter of the event
 * kind with number i. */
const char *event_letters(struct events *events)
{
    static const char letters[] = "?AEFRDLWUNX";
    static char text[EVENTS_MAX + 1];
    pthread_mutex_lock(&events->mutex);
    for (unsigned i = 0; i < events->count; i++)
        text[i] = letters[events->list[i].kind <= 10 ? events->list[i].kind : 0];
    text[events->count] = '\0';
    pthread_mutex_unlock(&events->mutex);
    return text;
}

/* Stores the result of a call in the outcome `userdata`, and counts the call of this callback. */
void note_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
               void *userdata)
{
    struct outcome *outcome = userdata;
    (void)rl;
    pthread_mutex_lock(&outcome->mutex);
    outcome->calls++;
    outcome->status = status;
    outcome->lock = lock;
    outcome->thread = pthread_self();
    if (report != NULL) {
        redlock_report_get_info(report, &outcome->info, sizeof outcome->info);
        snprintf(outcome->text, sizeof outcome->text, "%s", redlock_report_text(report));
    }
    pthread_mutex_unlock(&outcome->mutex);
}

/* Returns how often note_done() has run for this outcome. */
unsigned outcome_calls(struct outcome *outcome)
{
    pthread_mutex_lock(&outcome->mutex);
    const unsigned calls = outcome->calls;
    pthread_mutex_unlock(&outcome->mutex);
    return calls;
}

/* Waits until the callback has run, and returns the status that it got. Fails the case if it
 * does not run in time, or runs twice. */
int outcome_wait(redlock_t *client, struct outcome *outcome)
{
    ck_assert_msg(LOOP_UNTIL(client, outcome_calls(outcome) > 0, TIME_LIMIT_MS), "no callback");
    ck_assert_uint_eq(outcome_calls(outcome), 1);
    return outcome->status;
}
