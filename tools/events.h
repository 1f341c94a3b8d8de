/* SPDX-License-Identifier: MIT
 * Emits what happens to a lock as JSON lines for programs (--status-fd, run --json).
 */
#ifndef TOOLS_EVENTS_H
#define TOOLS_EVENTS_H

#include <jansson.h>
#include <stdbool.h>

/* Where the events of one lock go. Only events.c changes it. */
struct events {
    const char *name; /* of the lock, borrowed */
    int fds[2];       /* --status-fd and stderr; -1: unused */
    unsigned dropped; /* number of lines that could not be written because a reader was too slow */
};

/* Prepares for events of the lock `name`. `status_fd` is -1 if there is none; it becomes
 * close-on-exec. `on_stderr`: write to stderr as well. Nothing has to be closed. */
void events_open(struct events *events, const char *name, int status_fd, bool on_stderr);

/* Writes the event named `event`, such as "extended", with these fields. Drops the line for a
 * reader that is too slow. Takes ownership of `fields`, which may be NULL. */
void event_emit(struct events *events, const char *event, json_t *fields);

#endif
