/* SPDX-License-Identifier: MIT
 * A client in a process of its own (test/interop/peer.c) that can be stopped and whose clocks can
 * be changed; and the state of sockets. */
#ifndef SCENARIO_OTHER_CLIENT_H
#define SCENARIO_OTHER_CLIENT_H

#include "clockshim.h"
#include "live.h"

#include <stdio.h>
#include <sys/types.h>

/* A client in another process. */
struct other {
    pid_t pid;
    FILE *input, *output;     /* its stdin and stdout, one line for each command and reply */
    struct clockshim *clocks; /* NULL: the clocks of the machine */
    char reply[512];          /* its last reply, without the newline */
};

/* Starts a client of all nodes, with clocks of its own or those of the machine. drift_ppm 0: the
 * default. Its max_ttl is live.max_ttl_ms or, if that is 0, LONG_TTL_MS. */
struct other *other_start(bool with_clocks, unsigned drift_ppm);
/* Ends the process, also a stopped one, and checks that its exit status is 0. */
void other_end(struct other *other);

/* Sends a command. other_reply() waits for the reply and returns it. */
void other_send(struct other *other, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *other_reply(struct other *other);
/* Sends a command and waits for the reply. Returns whether the first word of the reply is `word`.
 */
bool other_replies(struct other *other, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Stops the process with SIGSTOP and waits until it is stopped. */
void other_stop(struct other *other);
void other_continue(struct other *other);

/* Sets the rate of all four clocks: 0 is right, -1000000 stops them. */
void other_set_rate(struct other *other, int64_t rate_ppm);

/* Returns the number of sockets of this network namespace in which the kernel still holds written
 * bytes. */
unsigned sockets_unsent(void);
/* Returns the number of nodes that have at least `bytes` unread bytes on one connection. Reads the
 * state of all sockets at once, because the kernel needs long for it. */
unsigned nodes_with_unread(unsigned bytes);

#endif
