/* SPDX-License-Identifier: MIT
 * The controlling terminal and the shell that lends it.
 */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>

/* Opens the controlling terminal, whatever stdin is. Close-on-exec; -1 if there is none. */
int terminal_open(void);

/* True if our process group is the foreground group of the terminal. False for fd -1. */
bool terminal_is_ours(int fd);

/* Stops our process group, so that a shell with job control takes the terminal back, and continues
 * this process alone as soon as the shell has it, or half a second later. True if the shell has
 * taken it; it may have given it back already. A SIGCONT of another process that comes meanwhile
 * stays pending, unless it comes together with the one of the child. To be called from the
 * foreground, with TSTP and CONT blocked. */
bool terminal_yield(int fd);

#endif
