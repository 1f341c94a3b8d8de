/* SPDX-License-Identifier: MIT
 * The format of the configuration file: lines "name = value" in sections.
 */
#ifndef TOOLS_INI_TEXT_H
#define TOOLS_INI_TEXT_H

#include <stdbool.h>

/* Takes one value. `line` is the number of its line, from 1. `section` is "" before the first one.
 * The texts are borrowed until the whole text is freed. Returns false to end the reading. */
typedef bool ini_take_fn(void *user, unsigned line, const char *section, const char *name,
                         const char *value);

/* Calls `take` for each value in `text`, which is cut into pieces. The format:
 * - A section begins with "[section]".
 * - "name = value" and "name: value" are values, without the white space around them.
 * - An indented line has a further value of the name above it.
 * - A comment begins with '#' or ';' at the beginning of a line, or with ';' after white space.
 * Returns the number of the first line that is none of these; 0: there is none, or `take` has ended
 * the reading before. */
unsigned ini_read(char *text, ini_take_fn *take, void *user);

#endif
