/* SPDX-License-Identifier: MIT
 * Makes text of other origin (names, labels, paths, messages of servers) safe to print.
 * Printable UTF-8 stays unchanged. Characters that could control a terminal, fake a line or
 * change the direction of text are escaped.
 */
#ifndef TOOLS_SHOWN_H
#define TOOLS_SHOWN_H

#include <stddef.h>

/* Returns a copy for a terminal: each byte of an unprintable character, and each byte that is not
 * UTF-8, is "\xHH". To be freed. */
char *text_shown(const char *text);

/* Returns the text as one argument of a command line of bash, zsh or ksh: in quotes, if it has
 * other characters than letters, digits and a few signs; as $'...', if some do not print, so that
 * text_shown() changes nothing. To be freed. */
char *shell_word(const char *text);

/* Prints to stdout as printf() does, with text_shown() of the result. A '\n' at the end of the
 * format ends the line; any other one is escaped. */
void show(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns how many columns of a terminal a printable text takes. */
size_t text_width(const char *shown);

/* Returns a copy of a printable text, cut to this many columns of a terminal. "..." at the end
 * shows that something is missing. To be freed. */
char *text_cut(const char *shown, size_t columns);

/* Returns a copy that is valid UTF-8. Nothing is lost: each byte that is not UTF-8, and each byte
 * of a U+FFFD, is U+FFFD followed by two hex digits. To be freed. */
char *text_utf8(const char *text);

/* Returns a copy of a JSON text, which is valid UTF-8, with "\uHHHH" for unprintable characters. To
 * be freed. */
char *json_shown(const char *json);

#endif
