/* SPDX-License-Identifier: MIT
 * The script of the line, as a function on a struct. Each step does what the same step of
 * rl_script_line (core/scripts.c) does. */
#include "line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the position of the waiter with that id, or line->count. */
static unsigned find(const struct sim_line *line, const char *id)
{
    unsigned at = 0;

    while (at < line->count && strcmp(line->waiters[at].id, id) != 0)
        at++;
    return at;
}

/* Removes the waiter at the position `at`. */
static void remove_at(struct sim_line *line, unsigned at)
{
    line->count--;
    memmove(&line->waiters[at], &line->waiters[at + 1],
            (line->count - at) * sizeof line->waiters[0]);
}

/* Inserts a new waiter at the position `at`. Ends the program if the model cannot keep it. */
static void insert_at(struct sim_line *line, unsigned at, const struct sim_line_request *request)
{
    struct sim_line_waiter *waiter = &line->waiters[at];

    if (line->count == SIM_LINE_MAX || strlen(request->id) >= sizeof waiter->id ||
        strlen(request->text) >= sizeof waiter->text)
        abort();
    memmove(waiter + 1, waiter, (line->count - at) * sizeof *waiter);
    line->count++;
    *waiter = (struct sim_line_waiter){
        .state = request->state, .beat = request->beat, .trip_us = request->trip_us};
    strcpy(waiter->id, request->id);
    strcpy(waiter->text, request->text);
}

/* Removes the victim of D if it is unchanged. */
static void remove_victim(struct sim_line *line, const struct sim_line_request *request)
{
    for (unsigned i = 0; i < line->count; i++) {
        if (strcmp(line->waiters[i].id, request->victim) == 0 &&
            line->waiters[i].beat == request->victim_beat) {
            remove_at(line, i);
            return;
        }
    }
}

/* Does what the request says about the waiter that sends it: it leaves, looks or joins. */
static void join_or_leave(struct sim_line *line, const struct sim_line_request *request,
                          bool has_token)
{
    unsigned at = find(line, request->id);
    struct sim_line_waiter *waiter = &line->waiters[at];

    if (request->what == 'L' || (request->what == 'G' && has_token)) {
        if (at < line->count)
            remove_at(line, at);
    } else if (at < line->count) {
        waiter->beat = request->beat;
        waiter->trip_us = request->trip_us;
        if (request->state == 'd' || waiter->state == 'd')
            waiter->state = request->state;
    } else if (request->what != 'G') {
        insert_at(line, request->what == 'F' ? 0 : line->count, request);
    }
}

/* Makes the first waiters in state 'w' heads, as many as requested, and notifies them. Removes
 * those for which nobody listens. The one that sends the request also becomes a head in state 'd'.
 * Returns the position of the first head, or line->count. */
static unsigned make_heads(struct sim_line *line, const struct sim_line_request *request,
                           const struct sim_line_server *server)
{
    unsigned i = 0, heads = 0, first = SIM_LINE_MAX;

    while (i < line->count && heads < request->heads) {
        struct sim_line_waiter *waiter = &line->waiters[i];
        if (waiter->state == 'w' && strcmp(waiter->id, request->id) != 0 &&
            !server->notify(server->ctx, waiter->id)) {
            remove_at(line, i);
            continue;
        }
        if (waiter->state == 'w' || (waiter->state == 'd' && strcmp(waiter->id, request->id) == 0))
            waiter->state = 'h';
        if (waiter->state == 'h') {
            heads++;
            first = first < i ? first : i;
        }
        i++;
    }
    return first < line->count ? first : line->count;
}

/* Executes the request on the line: what it does to the waiter that sends it, then the new heads.
 * Writes the reply to `ret`, of `size` bytes. Returns whether the script has read the lock's key
 * with PTTL. */
bool sim_line_execute(struct sim_line *line, const struct sim_line_request *request,
                      const struct sim_line_server *server, char *ret, size_t size)
{
    if (request->what == 'D')
        remove_victim(line, request);
    join_or_leave(line, request, server->has_token);
    unsigned first = make_heads(line, request, server);
    unsigned at = find(line, request->id);
    bool is_head = at < line->count && line->waiters[at].state == 'h';
    int64_t left = is_head || server->pttl_ms == -2 ? server->pttl_ms : -1;

    int len = snprintf(ret, size, "%u %c %u %" PRId64, at < line->count ? at + 1 : 0,
                       at < line->count ? line->waiters[at].state : '-', line->count, left);
    if (first < line->count)
        snprintf(ret + len, size - (size_t)len, " %s %" PRIu64 " %" PRIu64, line->waiters[first].id,
                 line->waiters[first].beat, line->waiters[first].trip_us);
    return is_head;
}

/* Writes the value of the key of the line to `ret`, of `size` bytes; "" for an empty line. */
void sim_line_value(const struct sim_line *line, char *ret, size_t size)
{
    size_t len = 0;

    ret[0] = '\0';
    if (line->count != 0)
        len = (size_t)snprintf(ret, size, "redlock-line\n");
    for (unsigned i = 0; i < line->count; i++) {
        const struct sim_line_waiter *waiter = &line->waiters[i];
        len += (size_t)snprintf(ret + len, size - len, "%s %" PRIu64 " %c %" PRIu64 " %s\n",
                                waiter->id, waiter->beat, waiter->state, waiter->trip_us,
                                waiter->text);
    }
}
