/* SPDX-License-Identifier: MIT
 * What happens to servers in the middle of a run, and how they are put right again. */
#ifndef BENCH_FAULT_H
#define BENCH_FAULT_H

#include "servers.h"
#include "timeline.h"

enum fault_kind {
    FAULT_NONE = 0,
    FAULT_STOPPED = 1,   /* SIGSTOP, then SIGCONT */
    FAULT_KILLED = 2,    /* SIGKILL; started again after the run */
    FAULT_RESTARTED = 3, /* SIGKILL, and started again in the run */
    FAULT_SLOW = 4       /* behind a proxy that delays, for a while */
};

struct fault_plan {
    enum fault_kind kind;
    unsigned nodes; /* the last so many */
    uint64_t from_ns, to_ns;
};

/* Does it need the processes of the servers, that is, a sandbox? */
bool fault_needs_processes(enum fault_kind kind);

struct fault;
/* NULL and a text in `error` on failure. `servers` is borrowed, their process ids change. */
struct fault *fault_open(struct servers *servers, const struct fault_plan *plan, char *error,
                         size_t error_size);
/* The list of servers for clients: by way of the proxy if there is one. */
const char *fault_servers(const struct fault *fault);
/* For struct paced_plan. */
uint64_t fault_step(void *fault, uint64_t elapsed_ns, struct timeline *timeline);
/* Puts the servers right. 0, or -1 and a text in `error` if they do not answer then. */
int fault_close(struct fault *fault, char *error, size_t error_size);

#endif
