/* SPDX-License-Identifier: MIT
 * Writes messages to the log function of the caller of the library. If there is none, the library
 * prints nothing. The function is called at once; or, if the log has a queue, by the thread that
 * takes the lines from it, so that a slow log function delays no other thread. */
#ifndef RL_PLATFORM_LOG_H
#define RL_PLATFORM_LOG_H

#include <stdbool.h>
#include <stddef.h>

#define RL_LOG_MAX   512 /* most bytes of a message, with its NUL */
#define RL_LOG_LINES 64  /* most lines in a queue */

/* One line for the log function. */
struct rl_log_line {
    int level; /* REDLOCK_LOG_* */
    char text[RL_LOG_MAX];
};

/* Lines that were not taken yet, the oldest first, and the number of lines after them for which
 * there was no room. Owned by log.c. */
struct rl_log_queue {
    unsigned first, count;
    unsigned long lost;
    struct rl_log_line lines[RL_LOG_LINES]; /* a ring: `count` lines from `first` on */
};

/* The log function of a client, from its configuration, and its queue. */
struct rl_log {
    int level_max; /* REDLOCK_LOG_*: messages with a higher level are dropped; 0 drops all */
    void (*fn)(int level, const char *message, void *userdata); /* NULL: no log */
    void *userdata;                                             /* last argument of `fn` */
    struct rl_log_queue *queue; /* where lines wait for their thread; NULL: fn is called at once */
};

/* Formats one line (printf) and passes it to the log function or its queue, unless `level`
 * (REDLOCK_LOG_*) is higher than level_max or there is no log function. The client's mutex is held
 * if there is a queue. A line has at most RL_LOG_MAX - 1 bytes; a
 * longer one is cut and ends in "...". Control bytes become '?', because parts of a message may
 * come from a server. */
void rl_logf(const struct rl_log *log, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Does the same, but calls the log function at once, on this thread. Needs no mutex, which is not
 * held, because the function may be slow. */
void rl_log_now(const struct rl_log *log, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns whether rl_log_take() would take a line. */
static inline bool rl_log_has_lines(const struct rl_log *log)
{
    return log->queue != NULL && (log->queue->count > 0 || log->queue->lost > 0);
}
/* Takes the oldest line of the queue into *ret_line. Where lines were lost because the queue was
 * full, makes a line that says how many. Returns false if there is none. */
bool rl_log_take(const struct rl_log *log, struct rl_log_line *ret_line);

#endif
