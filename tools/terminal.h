/* SPDX-License-Identifier: MIT
 * The controlling terminal, and how to pass it to the shell and back. A terminal serves one process
 * group at a time, its foreground group; the shell has the terminal when its own group is that.
 * "Our group" is the process group of the calling process.
 */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>

/* Returns a close-on-exec descriptor of the controlling terminal, whatever stdin is; -1 if there
 * is none. */
int terminal_open(void);

/* Returns true if a status line may be updated on stderr: stderr is a terminal that can erase a
 * line, and our group is its foreground group, so that the shell has no prompt there. */
bool terminal_takes_status(void);
/* Returns the width of the terminal on stderr in columns; 80 if it does not say. */
unsigned terminal_columns(void);

/* Returns true if the process group of the calling process is the foreground group of the terminal
 * `fd`; false if `fd` is -1. */
bool terminal_is_ours(int fd);

/* Offers the terminal to the shell. Stops our process group, so that a shell with job control
 * takes the terminal. A child continues this process alone once the shell has taken it, or after
 * half a second. Returns true if the shell has taken the terminal, even if it has put us into
 * the foreground since. A SIGCONT of another process stays pending, unless it arrives together
 * with the child's. Call it in the foreground, with TSTP and CONT blocked. */
bool terminal_yield(int fd);

#endif
