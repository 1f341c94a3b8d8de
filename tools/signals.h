/* SPDX-License-Identifier: MIT
 * Signals as events: blocked everywhere and read from a descriptor, so that no handler runs.
 */
#ifndef TOOLS_SIGNALS_H
#define TOOLS_SIGNALS_H

#include <stdbool.h>
#include <sys/signalfd.h>

/* Blocks what the command handles and ignores SIGPIPE. Before any thread or fork. */
void signals_block(void);

/* A close-on-exec, non-blocking descriptor for the blocked signals; exits the process on failure.
 */
int signals_open(void);

/* False: nothing pending. */
bool signals_next(int signal_fd, struct signalfd_siginfo *ret_info);

/* HUP, INT, QUIT and TERM: they end a wait. */
bool signal_ends(int sig);

/* "TERM", "SIGTERM", "term" or "15"; 0 if it is none. */
int signal_parse(const char *text);

/* "TERM"; for unnamed numbers the number. Static, valid until the next call. */
const char *signal_text(int sig);

#endif
