/* SPDX-License-Identifier: MIT
 * The state that the actors of test_leftover_keys.c share across threads and processes: counts of
 * occurrences, and the number of holders of each resource. An actor is a thread or a client that
 * acquires locks; it has a number. */
#ifndef TEST_LEFTOVERS_H
#define TEST_LEFTOVERS_H

#include "live.h"

#include <pthread.h>
#include <stdatomic.h>

#define RESOURCES     8
#define BLOCKERS      4      /* threads of the main process with blocking calls on one client */
#define CHILD_THREADS 2      /* the same in a process of its own */
#define KEEP_TTL_MS   600000 /* so long that no key expires */

/* X(name, words): the occurrences that are counted. Each must have a count above 0 at the end. */
#define OCCURRENCES(X)                                                                             \
    X(GRANTED, "granted")                                                                          \
    X(CONFLICT, "denied: held by another")                                                         \
    X(NO_QUORUM, "failed: no quorum")                                                              \
    X(CANCELED, "canceled")                                                                        \
    X(TINY_BUDGET, "failed within a budget of 1 ms")                                               \
    X(EXTENDED, "extended")                                                                        \
    X(RELEASED, "released")                                                                        \
    X(RELEASE_UNSURE, "release without a majority of replies")                                     \
    X(FREED_HELD, "handle freed while held")                                                       \
    X(RELEASED_AFTER, "released after a delay")                                                    \
    X(EMBEDDED, "operations of the embedded client")                                               \
    X(OTHER_PROCESS, "operations of the other process")                                            \
    X(CLIENT_FREED, "client freed in the middle")                                                  \
    X(CLOSED, "operations ended with their client")                                                \
    X(STOPPED, "SIGSTOP of a server")                                                              \
    X(THREE_STOPPED, "three servers stopped at once")                                              \
    X(CUT, "connections cut by the server")                                                        \
    X(TIMEOUTS, "requests without a reply in time")                                                \
    X(RECONNECTS, "new connections")                                                               \
    X(UNDONE, "undos that a server confirmed")

enum occurrence {
#define X(name, words) name,
    OCCURRENCES(X)
#undef X
        OCCURRENCE_COUNT
};

/* The state that all actors share. */
struct leftovers {
    atomic_bool stop;       /* all actors end soon */
    atomic_bool was_silent; /* with `stop`: a server was silent for so long that clients may still
                             * take it for down */
    atomic_uint operations; /* steps that the clients have taken: operations begun, and ends of
                             * acquisitions; grows while the clients work */
    atomic_uint occurred[OCCURRENCE_COUNT];
    atomic_uint overlaps;               /* times that two actors held one resource */
    atomic_uint holders[2 * RESOURCES]; /* actors that hold each resource; the second half: in
                                         * database 1 */
    uint64_t seed;                      /* of the random choices of all actors */
};
extern struct leftovers *leftovers; /* in memory that a child process shares */

/* Counts one occurrence. */
void count_one(enum occurrence what);
/* Counts an acquisition that ended with `status`; `waited_ms` is its wait budget. */
void count_acquire(int status, uint64_t waited_ms);

/* Note that an actor holds a resource, or holds it no more. If another actor holds it, enter()
 * counts an overlap. */
void enter(unsigned resource);
void leave(unsigned resource);
/* Returns the name of a resource. */
const char *resource_name(unsigned resource);

/* Returns a random number from 0 to below - 1. */
unsigned draw(uint64_t *random, unsigned below);
/* Returns the initial state of an actor's random numbers. */
uint64_t random_of(unsigned actor);

/* Creates a client with short time limits, whose tokens carry the label `owner`. */
redlock_t *leftovers_client(const char *urls, int mode, const char *owner);
/* Waits until all servers are connected, if one was silent for long. To be called before a
 * shutdown, which does not wait for servers that are down. */
void await_servers(redlock_t *client);
/* Adds the statistics of a client to the occurrences. */
void count_client(redlock_t *client);

/* Threads that acquire, extend and release with blocking calls (leftover_keys_blocking.c). They run
 * until `stop`. */
struct blockers;
struct blockers *blockers_start(redlock_t *client, unsigned threads, unsigned first_actor);
/* Cancels the pending call of one of the threads. */
void blockers_cancel(struct blockers *blockers, unsigned which);
/* Waits until all threads have ended, and frees `blockers`. */
void blockers_join(struct blockers *blockers);

/* Thread functions that run until `stop`; `urls` are the addresses of the nodes.
 * leftover_keys_embedded.c: one thread with many operations in flight.
 * leftover_keys_freed.c: clients that are freed with operations in flight. */
void *run_embedded(void *urls);
void *run_freed(void *urls);

#endif
