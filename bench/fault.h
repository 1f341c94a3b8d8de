/* SPDX-License-Identifier: MIT
 * Faults of servers in the middle of a run, and their repair. */
#ifndef BENCH_FAULT_H
#define BENCH_FAULT_H

#include "servers.h"
#include "timeline.h"

/* The kinds of faults. */
enum fault_kind {
    FAULT_NONE = 0,
    FAULT_STOPPED = 1,   /* SIGSTOP, later SIGCONT */
    FAULT_KILLED = 2,    /* SIGKILL; the server is started again after the run */
    FAULT_RESTARTED = 3, /* SIGKILL; the server is started again during the run */
    FAULT_SLOW = 4       /* a proxy delays all bytes for a while */
};

/* A fault, the servers that have it, and its time. */
struct fault_plan {
    enum fault_kind kind;
    unsigned nodes;          /* number of servers with the fault: the last ones of the list */
    uint64_t from_ns, to_ns; /* begin and end, since the start of the run */
};

/* Returns true if the fault needs the process ids of the servers, which only a sandbox provides. */
bool fault_needs_processes(enum fault_kind kind);

struct fault;
/* Prepares the fault of a plan. Returns NULL and a text in `error` on failure. Borrows `servers`
 * and changes their process ids when servers restart. */
struct fault *fault_open(struct servers *servers, const struct fault_plan *plan, char *error,
                         size_t error_size);
/* Returns the list of URLs for clients, which leads through the proxy if there is one. Valid until
 * fault_close(). */
const char *fault_servers(const struct fault *fault);
/* Begins or ends the fault when its time has come, and marks it in the timeline. Returns the next
 * time at which it must be called, as paced_plan.step requires. `fault` is a struct fault. */
uint64_t fault_step(void *fault, uint64_t elapsed_ns, struct timeline *timeline);
/* Ends the fault, waits until all servers reply, and frees `fault`; NULL does nothing. Returns 0,
 * or -1 and a text in `error` if a server does not reply. */
int fault_close(struct fault *fault, char *error, size_t error_size);

#endif
