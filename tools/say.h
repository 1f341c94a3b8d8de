/* SPDX-License-Identifier: MIT
 * What the command tells people: lines on stderr. Writing never blocks, because a reader that
 * stalls must not keep the lock from being renewed.
 */
#ifndef TOOLS_SAY_H
#define TOOLS_SAY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum say_level {
    SAY_ERROR = 0, /* printed always */
    SAY_WARNING = 1,
    SAY_NOTE = 2, /* progress of a wait, another holds the lock: silenced by -q */
    SAY_INFO = 3, /* -v */
    SAY_DEBUG = 4 /* -vv */
};

void say_setup(int level_max, bool json);
bool say_shows(int level);
/* Prints a line. Names and texts of servers may be in it: what does not print is escaped. */
void say(enum say_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes what fits without blocking; false if the line was dropped. */
bool write_line(int fd, const char *line, size_t len);

/* Memory or the end: the command holds nothing that survives running out of it. */
void *must(void *memory);
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *text_copy(const char *text);

#endif
