/* SPDX-License-Identifier: MIT
 * Finds the program of a command before any lock is tried.
 */
#ifndef TOOLS_COMMAND_PATH_H
#define TOOLS_COMMAND_PATH_H

/* 0 and a path to be freed, or EXIT_CANNOT_RUN / EXIT_NOT_FOUND. */
int command_resolve(const char *name, char **ret_path);

#endif
