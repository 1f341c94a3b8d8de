/* SPDX-License-Identifier: MIT
 * Signals as events: blocked everywhere and read from a descriptor, so that no handler runs.
 */
#ifndef TOOLS_SIGNALS_H
#define TOOLS_SIGNALS_H

#include <stdbool.h>
#include <sys/signalfd.h>

/* Blocks all signals but those that report a fault of this process (SEGV, BUS, FPE, ILL, TRAP), and
 * ignores SIGPIPE and SIGXFSZ. Call before any thread or fork. */
void signals_block(void);

/* A close-on-exec, non-blocking descriptor for the blocked signals; exits the process on failure.
 */
int signals_open(void);

/* False: nothing pending. */
bool signals_next(int signal_fd, struct signalfd_siginfo *ret_info);

/* True for signals that end a wait, and a command if they come twice: all blocked signals that end
 * a process by default, except USR1, USR2 and the real-time signals: only the command knows what
 * those mean. */
bool signal_ends(int sig);

/* True if the caller of this program ignored INT: `cmd &` in a shell without job control does. */
bool signals_of_background(void);

/* True if the kernel sent the signal to the whole foreground group of a terminal. */
bool signal_from_terminal(const struct signalfd_siginfo *info);

/* "TERM", "SIGTERM", "term" or "15"; 0 if it is none. */
int signal_parse(const char *text);

/* "TERM"; for unnamed numbers the number. Static, valid until the next call. */
const char *signal_text(int sig);

#endif
