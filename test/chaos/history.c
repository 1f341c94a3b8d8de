/* SPDX-License-Identifier: MIT
 * Writes the log of a process. */
#include "history.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 256 /* bytes of a line, with the newline; longer ones are cut */

static int file = -1; /* the log; -1: not open */

/* Opens the log for appending. Returns false if that fails. */
bool history_open(const char *path)
{
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return file >= 0;
}

/* Returns CLOCK_BOOTTIME in nanoseconds. */
uint64_t history_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Writes the line "at_ns text". Ends the process if that fails. */
void history_write(uint64_t at_ns, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    int length = snprintf(line, sizeof line, "%" PRIu64 " ", at_ns);
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    if (write(file, line, (size_t)length) != length)
        _exit(70);
}

/* Returns a number from the process id and a counter, so that it differs from all others. */
uint64_t history_new_id(void)
{
    static _Atomic uint64_t count;
    return (uint64_t)getpid() << 32 | atomic_fetch_add(&count, 1);
}
