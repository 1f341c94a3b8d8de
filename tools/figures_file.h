/* SPDX-License-Identifier: MIT
 * Replaces a file of figures that another program reads at any time, such as node_exporter: a
 * reader sees the old or the new file, never a part of one.
 */
#ifndef TOOLS_FIGURES_FILE_H
#define TOOLS_FIGURES_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Begins to replace the file `path`: waits until no other `redlock` replaces a file in its
 * directory. Returns a descriptor for figures_file_end(); -1 if the directory cannot be locked,
 * which is harmless. */
int figures_file_begin(const char *path);
/* Ends what figures_file_begin() has begun. */
void figures_file_end(int fd);

/* Writes `len` bytes into a new file with mode 0644 and renames it to `path`. Returns true on
 * success, or false with errno; then the old file is unchanged. */
bool figures_file_write(const char *path, const char *text, size_t len);

/* Returns the number in the line of the file that begins with `start` and a blank; 0 if there is no
 * such line or no such file. */
double figures_file_number(const char *path, const char *start);

/* Returns the value of the label `file` that all figures of the file `path` have: its name without
 * the directory. node_exporter passes on only one of two figures with the same labels; this label
 * makes those of two files in one directory different. To be freed. */
char *figures_file_label(const char *path);

/* Returns why figures_file_write() has failed with this errno, and what to do, for people. To be
 * freed. */
char *figures_file_error(int error);

/* Warns if node_exporter would not read a file with this name. `command`: the subcommand. */
void figures_file_warn_name(const char *command, const char *path);

#endif
