/* SPDX-License-Identifier: MIT
 * Writes messages to the log function of the caller of the library. */
#include "platform/log.h"

#include "platform/callback.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Returns the next free line of the queue; or NULL, and counts the line as lost, if there is none.
 * As long as lines are lost, all are, so that the queue has all lines before the gap. */
static struct rl_log_line *free_line(struct rl_log_queue *queue)
{
    if (queue->lost > 0 || queue->count == RL_LOG_LINES) {
        queue->lost++;
        return NULL;
    }
    return &queue->lines[(queue->first + queue->count++) % RL_LOG_LINES];
}

/* Formats a text into `line`. Cuts a long one, and replaces control bytes. If the locale cannot
 * represent the text, leaves the format itself. */
__attribute__((format(printf, 3, 0))) static void format(struct rl_log_line *line, int level,
                                                         const char *fmt, va_list args)
{
    int len = vsnprintf(line->text, sizeof line->text, fmt, args);

    line->level = level;
    if (len < 0)
        snprintf(line->text, sizeof line->text, "%s", fmt);
    else if ((size_t)len >= sizeof line->text)
        memcpy(line->text + sizeof line->text - 4, "...", 4);
    for (char *at = line->text; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
}

void rl_logf(const struct rl_log *log, int level, const char *fmt, ...)
{
    struct rl_log_line direct, *line;
    va_list args;

    if (log->fn == NULL || level > log->level_max)
        return;
    line = log->queue != NULL ? free_line(log->queue) : &direct;
    if (line == NULL)
        return;
    va_start(args, fmt);
    format(line, level, fmt, args);
    va_end(args);
    if (line == &direct)
        rl_call_log(log, level, line->text);
}

void rl_log_now(const struct rl_log *log, int level, const char *fmt, ...)
{
    struct rl_log_line line;
    va_list args;

    if (log->fn == NULL || level > log->level_max)
        return;
    va_start(args, fmt);
    format(&line, level, fmt, args);
    va_end(args);
    rl_call_log(log, level, line.text);
}

bool rl_log_take(const struct rl_log *log, struct rl_log_line *ret_line)
{
    struct rl_log_queue *queue = log->queue;

    if (!rl_log_has_lines(log))
        return false;
    if (queue->count > 0) {
        *ret_line = queue->lines[queue->first];
        queue->first = (queue->first + 1) % RL_LOG_LINES;
        queue->count--;
        return true;
    }
    ret_line->level = log->level_max < REDLOCK_LOG_WARN ? log->level_max : REDLOCK_LOG_WARN;
    snprintf(ret_line->text, sizeof ret_line->text,
             "%lu log lines were lost here, because the log function or a callback is slow",
             queue->lost);
    queue->lost = 0;
    return true;
}
