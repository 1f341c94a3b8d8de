/* SPDX-License-Identifier: MIT
 * What the actors of test_leftover_keys.c share across threads and processes: counts of what
 * happened, and the holder of each resource. */
#ifndef TEST_LEFTOVERS_H
#define TEST_LEFTOVERS_H

#include "live.h"

#include <pthread.h>
#include <stdatomic.h>

#define RESOURCES     8
#define BLOCKERS      4      /* threads of the main process with blocking calls on one client */
#define CHILD_THREADS 2      /* the same in a process of its own */
#define KEEP_TTL_MS   600000 /* so long that no key expires */

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

/* The state that all actors share. */
struct leftovers {
    atomic_bool stop;
    atomic_uint operations;
    atomic_uint happened[HAPPENING_COUNT];
    atomic_uint overlaps;               /* times that two actors were inside of one resource */
    atomic_uint holders[2 * RESOURCES]; /* actors inside of each resource; the second half: database
                                         * 1 */
    uint64_t seed;
};
extern struct leftovers *leftovers; /* in memory that a child process shares */

void happen(enum happening what);
/* Counts an acquisition that ended with `status`; `waited_ms` is its wait budget. */
void count_acquire(int status, uint64_t waited_ms);

/* Enter and leave a resource. An actor that finds another one inside counts an overlap. */
void enter(unsigned resource);
void leave(unsigned resource);
const char *resource_name(unsigned resource);

/* Returns a number from 0 to below - 1. */
unsigned draw(uint64_t *random, unsigned below);
uint64_t random_of(unsigned actor);

redlock_t *leftovers_client(const char *urls, int mode);
/* Adds the counters of a client. */
void count_client(redlock_t *client);

/* Threads that lock, extend and release with blocking calls (leftover_keys_blocking.c). */
struct blockers;
struct blockers *blockers_start(redlock_t *client, unsigned threads, unsigned first_actor);
/* Cancels the pending call of one of the threads. */
void blockers_cancel(struct blockers *blockers, unsigned which);
void blockers_join(struct blockers *blockers);

/* Thread functions that run until `stop`; `urls` are the addresses of the nodes.
 * leftover_keys_embedded.c: one thread with many operations in flight.
 * leftover_keys_freed.c: clients that are freed with operations in flight. */
void *run_embedded(void *urls);
void *run_freed(void *urls);

#endif
