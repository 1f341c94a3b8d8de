/* SPDX-License-Identifier: MIT
 * Writes events without blocking. A reader that is too slow misses lines, so that it cannot
 * delay the extension of the lock.
 */
#include "events.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "json.h"
#include "say.h"

/* Prepares *events for events of the lock `name`. `status_fd` (-1: none) becomes close-on-exec.
 * `on_stderr`: write to stderr as well. */
void events_open(struct events *events, const char *name, int status_fd, bool on_stderr)
{
    *events = (struct events){.name = name, .fds = {status_fd, on_stderr ? STDERR_FILENO : -1}};
    /* The command must not inherit the descriptor, because the reader waits for the end of file. */
    if (status_fd > STDERR_FILENO)
        fcntl(status_fd, F_SETFD, FD_CLOEXEC);
}

/* Writes one line of JSON: schema, time, the name of the event, the name of the lock, `fields`, and
 * how many lines were dropped before. Takes ownership of `fields` (may be NULL). */
void event_emit(struct events *events, const char *event, json_t *fields)
{
    char time[32];
    json_t *object;

    if (events->fds[0] < 0 && events->fds[1] < 0) {
        json_decref(fields);
        return;
    }
    object =
        must(json_pack("{s:s, s:s, s:s, s:o}", "schema", "redlock.event/1", "t",
                       rfc3339(unix_ms(), time), "event", event, "name", json_text(events->name)));
    if (fields)
        json_object_update(object, fields);
    if (events->dropped)
        json_object_set_new(object, "events_dropped", json_integer(events->dropped));
    char *line = json_line(object);
    for (int i = 0; i < 2; i++)
        if (events->fds[i] >= 0 && !write_line(events->fds[i], line, strlen(line)))
            events->dropped++;
    free(line);
    json_decref(fields);
}
