/* SPDX-License-Identifier: MIT
 * A client in a process of its own (test/interop/peer.c) that can be stopped and whose clocks can
 * be changed; and the state of sockets. */
#ifndef SCENARIO_OTHER_CLIENT_H
#define SCENARIO_OTHER_CLIENT_H

#include "clockshim.h"
#include "live.h"

#include <stdio.h>
#include <sys/types.h>

/* The process, its pipes and its last answer. */
struct other {
    pid_t pid;
    FILE *to, *from;
    struct clockshim *clocks; /* NULL: the clocks of the machine */
    char answer[512];
};

/* Starts a client of all nodes. drift_ppm 0: the default. */
struct other *other_start(bool with_clocks, unsigned drift_ppm);
void other_end(struct other *other);

/* Sends a line. other_process_reply() waits for the answer and returns it. */
void other_process_send(struct other *other, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *other_process_reply(struct other *other);
/* Sends a line and waits for the answer. Returns whether it begins with `word`. */
bool other_process_replies(struct other *other, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void other_stop(struct other *other);
void other_continue(struct other *other);

/* Changes the rate of all four clocks. */
void other_slow_down(struct other *other, int64_t rate_ppm);

/* Returns the number of sockets of this network namespace in which the kernel still holds written
 * bytes. */
unsigned sockets_unsent(void);
/* Returns the number of nodes that have at least `bytes` unread bytes on one connection. Reads the
 * state of all sockets at once, because the kernel needs long for it. */
unsigned nodes_with_unread(unsigned bytes);

#endif
