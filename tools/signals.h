/* SPDX-License-Identifier: MIT
 * Signals as events: they are blocked in all threads and read from a descriptor. No handler
 * runs.
 */
#ifndef TOOLS_SIGNALS_H
#define TOOLS_SIGNALS_H

#include <stdbool.h>
#include <sys/signalfd.h>

/* Ignores the signals of output that cannot be written (SIGPIPE, SIGXFSZ): the write fails instead,
 * and the exit code says so. A message that cannot be written must not end a process that holds a
 * lock. */
void signals_ignore_output(void);

/* Blocks all signals except those of output and those that report a fault of this process (SEGV,
 * BUS, FPE, ILL, TRAP). Call it before any thread or fork. */
void signals_block(void);

/* Returns a close-on-exec, non-blocking descriptor for the blocked signals. Ends the process
 * with EXIT_SYSTEM if that is not possible. */
int signals_open(void);

/* Reads one pending signal. Returns false if there is none. */
bool signals_next(int signal_fd, struct signalfd_siginfo *ret_info);

/* Returns true if the signal ends a wait, and a command if it comes twice. These are all blocked
 * signals that end a process by default, except USR1, USR2 and the real-time signals, whose
 * meaning only the command knows. */
bool signal_ends(int sig);

/* Returns true if this program was started with INT ignored, as `cmd &` does in a shell without
 * job control. */
bool signals_of_background(void);

/* Returns true if the kernel sent the signal to the whole foreground group of a terminal. */
bool signal_from_terminal(const struct signalfd_siginfo *info);

/* Returns the number of a signal written as "TERM", "SIGTERM", "term" or "15"; 0 if it is none. */
int signal_parse(const char *text);

/* Returns the name, such as "TERM", or the number as text. Static storage, valid until the next
 * call. */
const char *signal_text(int sig);

#endif
