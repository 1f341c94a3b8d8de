/* SPDX-License-Identifier: MIT
 * Prints messages for people to stderr, and keeps a status line below them. Writing never blocks,
 * because a slow reader must not delay the extension of the lock. Also helpers for text in memory.
 */
#ifndef TOOLS_SAY_H
#define TOOLS_SAY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* How important a message is. A message is printed if its level is at most that of say_setup(). */
enum say_level {
    SAY_ERROR = 0,   /* always printed */
    SAY_WARNING = 1, /* a problem that does not end the subcommand: not with -q */
    SAY_NOTE = 2,    /* progress of a wait, lock held by another client: not with -q */
    SAY_INFO = 3,    /* with -v */
    SAY_DEBUG = 4    /* with -vv */
};

/* Sets the highest level that is printed, and whether messages are JSON lines. */
void say_setup(int level_max, bool json);
/* Returns true if messages of this level are printed. */
bool say_shows(int level);
/* Prints one message as a line, if its level is printed. Unprintable characters are escaped,
 * because names and texts of servers may be in the message. */
void say(enum say_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the status line: a line without '\n' that stays below all messages, at the bottom of the
 * terminal on stderr. Replaces the line before; NULL removes it. The text is printed as it is, so
 * it must be printable and fit the terminal. */
void say_status(const char *line);

/* While `restore` is set, the terminal shows a full screen: messages are dropped, and must() calls
 * `restore` before it ends the process. NULL ends that. */
void say_set_screen(void (*restore)(void));

/* Writes as much of the `len` bytes at `line` to `fd` as is possible without blocking. Returns
 * false if not all was written. */
bool write_line(int fd, const char *line, size_t len);

/* Returns `memory`. If it is NULL, prints a message and ends the process with EXIT_SYSTEM. The
 * keys of held locks then expire. */
void *must(void *memory);
/* Returns the text that printf() would print. To be freed. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns a copy of the text. To be freed. */
char *text_copy(const char *text);

/* The message about output that could not be written. */
#define OUTPUT_LOST                                                                                \
    "stdout: the output could not be written; check where it goes (a full disk, a closed pipe)"

#endif
