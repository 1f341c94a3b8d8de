/* SPDX-License-Identifier: MIT
 * A client in a process of its own (test/interop/peer.c), that can be stopped and whose clocks can
 * be moved; and looks at sockets. */
#ifndef SCENARIO_OTHER_CLIENT_H
#define SCENARIO_OTHER_CLIENT_H

#include "clockshim.h"
#include "live.h"

#include <stdio.h>
#include <sys/types.h>

struct other {
    pid_t pid;
    FILE *to, *from;
    struct clockshim *clocks; /* NULL: those of everybody */
    char answer[512];
};

/* A client of all nodes. drift_ppm 0: as usual. */
struct other *other_start(bool with_clocks, unsigned drift_ppm);
void other_end(struct other *other);

/* Says a line; the answer is read by other_process_reply(), which waits for it. */
void other_process_send(struct other *other, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *other_process_reply(struct other *other);
/* Both; true if the answer begins with that word. */
bool other_process_replies(struct other *other, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void other_stop(struct other *other);
void other_continue(struct other *other);

/* All four clocks at once. */
void other_slow_down(struct other *other, int64_t rate_ppm);

/* Sockets of this network namespace in which the kernel still holds what was written. */
unsigned sockets_unsent(void);
/* Nodes to which so many bytes have come on one connection that they have not read. One look for
 * all: the kernel takes its time over it. */
unsigned nodes_with_unread(unsigned bytes);

#endif
