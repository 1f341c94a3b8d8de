/* SPDX-License-Identifier: MIT
 * The full-screen view of `redlock top`.
 */
#ifndef TOOLS_TOP_SCREEN_H
#define TOOLS_TOP_SCREEN_H

#include "top_collect.h"

/* Takes the terminal on stdin and stdout, starts the thread that collects, and draws what it finds
 * until the user or a signal ends it. `signal_fd` is that of signals_open(). The terminal is as
 * before when this returns. Returns the exit code, after a message if it is an error. */
int top_screen(struct top *top, int signal_fd);

#endif
