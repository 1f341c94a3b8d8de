/* SPDX-License-Identifier: MIT
 * What the actors of test_leftover_keys.c share, over threads and processes: counts of what
 * happened, and who is inside of which resource. */
#ifndef TEST_LEFTOVERS_H
#define TEST_LEFTOVERS_H

#include "live.h"

#include <pthread.h>
#include <stdatomic.h>

#define RESOURCES     8
#define BLOCKERS      4      /* threads with blocking calls on one client; of the main process */
#define CHILD_THREADS 2      /* the same in a process of its own */
#define KEEP_TTL_MS   600000 /* no key goes by itself */

/* X(name, words): each must have happened when the test ends. */
#define HAPPENINGS(X)                                                                              \
    X(GRANTED, "granted")                                                                          \
    X(CONFLICT, "refused: held by another")                                                        \
    X(NO_QUORUM, "refused: no quorum")                                                             \
    X(CANCELED, "canceled")                                                                        \
    X(TINY_BUDGET, "failed within a budget of 1 ms")                                               \
    X(EXTENDED, "extended")                                                                        \
    X(RELEASED, "released")                                                                        \
    X(RELEASE_UNSURE, "release without a majority of answers")                                     \
    X(FREED_HELD, "handle freed while held")                                                       \
    X(RELEASED_AFTER, "released after a delay")                                                    \
    X(EMBEDDED, "operations of the embedded client")                                               \
    X(OTHER_PROCESS, "operations of the other process")                                            \
    X(CLIENT_FREED, "client freed in the middle")                                                  \
    X(CLOSED, "operations ended by that")                                                          \
    X(STOPPED, "SIGSTOP of a server")                                                              \
    X(THREE_STOPPED, "three servers stopped at once")                                              \
    X(CUT, "connections cut by the server")                                                        \
    X(TIMEOUTS, "requests without an answer in time")                                              \
    X(RECONNECTS, "new connections")                                                               \
    X(UNDONE, "undos that a server confirmed")

enum happening {
#define X(name, words) name,
    HAPPENINGS(X)
#undef X
        HAPPENING_COUNT
};

struct leftovers {
    atomic_bool stop;
    atomic_uint operations;
    atomic_uint happened[HAPPENING_COUNT];
    atomic_uint overlaps;               /* two inside of one resource */
    atomic_uint holders[2 * RESOURCES]; /* the second half: database 1 */
    uint64_t seed;
};
extern struct leftovers *leftovers; /* in memory that a child process shares */

void happen(enum happening what);
/* One operation ended with `status`; `waited_ms` is its budget. */
void count_acquire(int status, uint64_t waited_ms);

/* Inside of a resource; whoever finds somebody there counts an overlap. */
void enter(unsigned resource);
void leave(unsigned resource);
const char *resource_name(unsigned resource);

/* A number from 0 to below - 1. */
unsigned draw(uint64_t *random, unsigned below);
uint64_t random_of(unsigned actor);

redlock_t *leftovers_client(const char *urls, int mode);
/* Adds the counters of a client. */
void count_client(redlock_t *client);

/* leftover_keys_blocking.c: threads that lock, extend and release with blocking calls. */
struct blockers;
struct blockers *blockers_start(redlock_t *client, unsigned threads, unsigned first_actor);
/* Cancels the call of some thread, whatever it is doing. */
void blockers_cancel(struct blockers *blockers, unsigned which);
void blockers_join(struct blockers *blockers);

/* Thread functions that run until `stop`; `urls` are the addresses of the nodes.
 * leftover_keys_embedded.c: one thread with many operations in flight.
 * leftover_keys_freed.c: clients that are freed with operations in flight. */
void *run_embedded(void *urls);
void *run_freed(void *urls);

#endif
