/* SPDX-License-Identifier: MIT
 * Writes messages to the log function of the caller of the library. If there is none, the library
 * prints nothing. */
#ifndef RL_PLATFORM_LOG_H
#define RL_PLATFORM_LOG_H

#define RL_LOG_MAX 512 /* most bytes of a message, with its NUL */

/* The log function of a client, from its configuration; never changed afterwards. */
struct rl_log {
    int level_max; /* REDLOCK_LOG_*: messages with a higher level are dropped; 0 drops all */
    void (*fn)(int level, const char *message, void *userdata); /* NULL: no log */
    void *userdata;                                             /* last argument of `fn` */
};

/* Formats one line (printf) and passes it to the log function, unless `level` (REDLOCK_LOG_*) is
 * higher than level_max or there is no log function. A line has at most RL_LOG_MAX - 1 bytes; a
 * longer one is cut and ends in "...". Control bytes become '?', because parts of a message may
 * come from a server. */
void rl_logf(const struct rl_log *log, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
