/* SPDX-License-Identifier: MIT
 * What happens to a lock, as JSON lines for programs (--status-fd, run --json).
 */
#ifndef TOOLS_EVENTS_H
#define TOOLS_EVENTS_H

#include <jansson.h>
#include <stdbool.h>

struct events {
    const char *name; /* of the lock */
    int fds[2];       /* -1: unused */
    unsigned dropped; /* lines a stalled reader missed */
};

void events_open(struct events *events, const char *name, int status_fd, bool on_stderr);

/* Takes `fields` (may be NULL). */
void event_emit(struct events *events, const char *event, json_t *fields);

#endif
