/* SPDX-License-Identifier: MIT
 * Directories that are removed, files of one line, and descriptors that were never opened.
 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include <stdbool.h>

/* With all in it, without following links out of it. */
void remove_tree(const char *directory);

/* The first line, without its end, to be freed; NULL: see errno, EFBIG for a line of more than 1024
 * bytes. What was read does not stay elsewhere in memory: it may be a secret. */
char *read_first_line(int fd);

/* Puts something harmless where stdin, stdout or stderr are closed, so that no socket or pipe gets
 * their numbers and then our messages. Reading and writing fail there as on a closed descriptor,
 * and a command that is started finds them closed. False: not possible. */
bool fill_standard_descriptors(void);

#endif
