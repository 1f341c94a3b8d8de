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

#define LINE_MAX_BYTES 256 /* a longer line is cut off */

static int file = -1; /* descriptor of the log; -1: not open */

/* Opens the log for appending. Returns false if it cannot be opened. */
bool history_open(const char *path)
{
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return file >= 0;
}

/* Returns the time of CLOCK_BOOTTIME in ns. */
uint64_t history_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Writes a line feed, `at_ns`, a space, the text and " ;" in one write(). Another process of the
 * client may continue the file after a kill that cuts a line off: the line feed separates its next
 * line, and the semicolon shows which lines are complete. Ends the process with status 70 if the
 * line cannot be written. */
void history_write(uint64_t at_ns, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    int length = snprintf(line, sizeof line, "\n%" PRIu64 " ", at_ns);
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 3)
        length = (int)sizeof line - 3;
    line[length++] = ' ';
    line[length++] = ';';
    if (write(file, line, (size_t)length) != length)
        _exit(70);
}

/* Returns the number of a new acquisition: the process id and a counter. */
uint64_t history_new_id(void)
{
    static _Atomic uint64_t count;
    return (uint64_t)getpid() << 32 | atomic_fetch_add(&count, 1);
}
