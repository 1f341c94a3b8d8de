/* SPDX-License-Identifier: MIT
 * Finds the program of a command before a lock is acquired.
 */
#ifndef TOOLS_COMMAND_PATH_H
#define TOOLS_COMMAND_PATH_H

/* Searches PATH for the program `name`, as execvp() does. Returns 0 and the path of its file in
 * *ret_path, to be freed. Else returns EXIT_CANNOT_RUN, if a file was found that cannot be
 * executed, or EXIT_NOT_FOUND. */
int command_resolve(const char *name, char **ret_path);

/* What messages say about a command that command_resolve() refuses, for EXIT_NOT_FOUND and for
 * EXIT_CANNOT_RUN. */
#define COMMAND_NOT_FOUND  "command not found; give a program that is on PATH, or its path"
#define COMMAND_CANNOT_RUN "cannot be executed; check its permissions"

#endif
