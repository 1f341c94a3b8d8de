/* SPDX-License-Identifier: MIT
 * Writes messages to the log function of the caller of the library. */
#include "platform/log.h"

#include "platform/callback.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Formats a message and passes it to the caller's log function, unless its level is too high or
 * there is no such function. Cuts a long message, which then ends in "...", and writes '?' for
 * control bytes. */
void rl_logf(const struct rl_log *log, int level, const char *fmt, ...)
{
    char message[RL_LOG_MAX];

    if (log->fn == NULL || level > log->level_max)
        return;

    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (len < 0)
        return; /* the locale cannot represent the text: drops the message */
    if ((size_t)len >= sizeof message)
        memcpy(message + sizeof message - 4, "...", 4);

    for (char *at = message; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    rl_call_log(log, level, message);
}
