/* SPDX-License-Identifier: MIT
 * What the clients of a chaos run have in common: chance, what a turn with a lock is to be like,
 * and the lines about it. */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include <redlock/redlock.h>
#include <stdatomic.h>

#define RESOURCES    4
#define SEMAPHORES   2
#define WORKLOAD_LEN 64

struct world {
    const char *name, *urls;
    uint64_t max_ttl_ms, seed;
    bool fences;
    atomic_bool stop;
};
extern struct world world;

/* What a lock is to be on, as the history has it: `r0`, `r2+r0+r3` (all of them), `s1*3` (one of
 * three permits). Sets overlap, their names come in any order, and others want the same names
 * singly. */
struct lock_choice {
    const char *resource, *also[RESOURCES - 1];
    unsigned also_count, permits; /* permits 0: not a semaphore */
    char text[WORKLOAD_LEN];
};
void workload_choose(struct lock_choice *workload, uint64_t *random);

struct turn {
    uint64_t id;
    struct lock_choice workload;
    char held[WORKLOAD_LEN]; /* what the lock says that it is on: `s1{#0}` for a permit */
    redlock_opts_t opts;
    uint64_t hold_ms;  /* as long as it is held; more than the TTL: it may be lost */
    bool extend, drop; /* extend once in the middle; free the handle instead of a release */

    redlock_lock_t *lock;
    bool extended;
    uint64_t since_ns, deadline_ns, held_ns; /* granted; told; last seen to be held */
};

unsigned draw(uint64_t *random, unsigned below);
uint64_t random_of(unsigned actor);

/* A client of all nodes; ends the process if there can be none. */
redlock_t *worker_client(int mode);

/* Chooses the next turn and writes that the call begins. */
void turn_choose(struct turn *turn, uint64_t *random);
/* The call has ended. */
void turn_began(struct turn *turn, int status, redlock_lock_t *lock);
/* Looks at the lock: false when it is lost, which is written, or its time is over. */
bool turn_goes_on(struct turn *turn);
/* About to be released, or the handle to be freed. */
void turn_ends(struct turn *turn);

/* The two kinds of clients; both return when world.stop is set. */
void work_blocking(redlock_t *client, unsigned threads, bool hybrid);
void work_embedded(redlock_t *client, unsigned slots);

#endif
