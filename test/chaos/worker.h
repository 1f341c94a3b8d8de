/* SPDX-License-Identifier: MIT
 * What the clients of a chaos run have in common: random numbers, the choice of locks, and the
 * lines of the log. A turn is one acquisition and all that is done with its lock. A client calls
 * turn_choose(), acquires, calls turn_begin() with the result, turn_continue() again and again
 * while it holds the lock, and turn_log_end() before it releases the lock. */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include <redlock/redlock.h>
#include <stdatomic.h>

#define RESOURCES    4  /* number of names of locks: r0 to r3 */
#define SEMAPHORES   2  /* number of names of semaphores: s0 and s1 */
#define WORKLOAD_LEN 64 /* bytes for the resources of one lock in the form for the log */

/* The arguments of the process. */
struct world {
    const char *name;    /* of the process, for the owner in tokens */
    const char *urls;    /* of the servers */
    uint64_t max_ttl_ms; /* the client's max_ttl; TTLs are half of it or more */
    uint64_t seed;       /* of the random numbers */
    bool fences;         /* locks of one resource and permits have fencing tokens */
    atomic_bool stop;    /* SIGTERM was received: no new locks */
};
extern struct world world;

/* The resources of a lock, as in the log: `r0`, `r2+r0+r3` (all of them), `s1*3` (one of three
 * permits). Choices overlap, their names come in any order, and other clients lock the same names
 * singly. */
struct lock_choice {
    const char *resource;            /* the first or only one */
    const char *also[RESOURCES - 1]; /* the further ones, `also_count` */
    unsigned also_count;
    unsigned permits;        /* of the semaphore; 0: not a semaphore */
    char text[WORKLOAD_LEN]; /* the form for the log */
};
/* Chooses the resources of a lock. */
void workload_choose(struct lock_choice *workload, uint64_t *random);

/* One acquisition and what follows from it. */
struct turn {
    uint64_t id; /* number of the acquisition in the logs */
    struct lock_choice workload;
    char held[WORKLOAD_LEN]; /* the keys that the lock reports: `s1{#0}` for a permit */
    redlock_opts_t opts;     /* of the acquisition */
    uint64_t hold_ms;        /* how long it is held; if longer than the TTL, it may be lost */
    bool extend;             /* the lock is extended once, when a third of its TTL has passed */
    bool drop;               /* its handle is freed without a release */

    redlock_lock_t *lock; /* NULL: it was not acquired */
    bool extended;        /* the one extension has begun */
    uint64_t since_ns;    /* when it was granted */
    uint64_t deadline_ns; /* its last logged deadline */
    uint64_t held_ns;     /* when a check last found it held */
};

/* Returns a random number below `below` and advances the state. */
unsigned draw(uint64_t *random, unsigned below);
/* Returns the initial state of the random numbers of the thread or slot with this number. */
uint64_t random_of(unsigned actor);

/* Returns a client of all servers in `mode` (REDLOCK_MODE_*). Ends the process with status 70 if it
 * cannot be created. */
redlock_t *worker_client(int mode);

/* Chooses the next turn and logs that the call begins. */
void turn_choose(struct turn *turn, uint64_t *random);
/* Logs how the acquisition ended. `lock`: NULL if it failed. */
void turn_begin(struct turn *turn, int status, redlock_lock_t *lock);
/* Checks the lock. Returns false when it is lost, which is logged, or was held for hold_ms. */
bool turn_continue(struct turn *turn);
/* Logs that the lock is about to be released, or its handle freed. */
void turn_log_end(struct turn *turn);

/* Run the two kinds of clients until world.stop is set: with `threads` threads that make blocking
 * calls (`hybrid`: the caller runs the loop), or with `slots` locks in flight in one loop. */
void work_blocking(redlock_t *client, unsigned threads, bool hybrid);
void work_embedded(redlock_t *client, unsigned slots);

#endif
