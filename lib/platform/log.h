/* SPDX-License-Identifier: MIT
 * Messages for the user's log function. Without one, nothing is said anywhere. */
#ifndef RL_PLATFORM_LOG_H
#define RL_PLATFORM_LOG_H

#define RL_LOG_MAX 512 /* bytes of a message, with its NUL */

struct rl_log {
    int level_max; /* messages above it are dropped; 0 drops all */
    void (*fn)(int level, const char *message, void *userdata);
    void *userdata;
};

/* One line of at most RL_LOG_MAX - 1 bytes; a longer one ends in "...". Control bytes become '?':
 * parts of a message may come from a server. */
void rl_logf(const struct rl_log *log, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
