/* SPDX-License-Identifier: MIT
 * What a lock needs beside itself, in room that comes with its handle: so much as its kind and the
 * number of nodes ask for, in the same allocation. Terms that many locks have in common are kept
 * once, by their engine. */
#ifndef RL_ENGINE_ROOM_H
#define RL_ENGINE_ROOM_H

#include "core/lease.h"

#include <stdatomic.h>

struct rl_engine;

/* Terms that some locks share. Handles are freed without the mutex when the client is closed, so
 * the count is atomic; whoever starts a lock has the mutex. */
struct rl_terms {
    struct rl_lease_terms terms;
    atomic_uint locks; /* 0: the place is free */
};

/* A client has few kinds of locks; terms for which there is no place are the lock's own. */
#define RL_TERMS_MAX  8

#define RL_ROOM_ALIGN _Alignof(uint64_t)

struct rl_room {
    size_t size;             /* bytes that are needed */
    void *at;                /* they are here, zero; set by who makes the lock */
    struct rl_terms *shared; /* NULL: the room has terms of its own */
};

/* The room for a lock with these parameters. The engine must not start another one before this is
 * used: a place for its terms is not taken yet. */
struct rl_room rl_room_for(struct rl_engine *engine, const struct rl_lease_params *params);

/* Its parts, for rl_lease_init(). From here on the lock shares its terms with others, until
 * rl_room_leave(). */
struct rl_lease_room rl_room_parts(const struct rl_room *room,
                                   const struct rl_lease_params *params);

/* The lock is about to be freed. */
void rl_room_leave(struct rl_engine *engine, const struct rl_lease *lease);

#endif
