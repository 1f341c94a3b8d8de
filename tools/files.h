/* SPDX-License-Identifier: MIT
 * Helpers for files: removes directories, reads files of one line, and opens missing standard
 * descriptors.
 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include <stdbool.h>

/* Removes a directory with all its contents. Does not follow symbolic links. Errors are ignored. */
void remove_tree(const char *directory);

/* Reads from `fd`. Returns the first line without its line end, to be freed. Returns NULL with
 * errno on an error; EFBIG means that the line has more than 1024 bytes. Leaves no other copy in
 * memory, because the line may be secret. */
char *read_first_line(int fd);

/* Opens /dev/null for each closed one of stdin, stdout and stderr, so that no socket or pipe
 * gets their numbers. Reading and writing there fail as with a closed descriptor, and a started
 * command finds them closed. Returns false if that is not possible. */
bool fill_standard_descriptors(void);

#endif
