/* SPDX-License-Identifier: MIT
 * Resources as this client meets them: for each the locks that want it, in the order in which they
 * came, and the memory of having met other clients there. One lock of a client asks the nodes (or
 * holds); the others wait behind it without a word on the wire. */
#ifndef RL_ENGINE_RESOURCE_H
#define RL_ENGINE_RESOURCE_H

#include "core/contention.h"
#include "core/wire.h"
#include "engine/queue.h"
#include "platform/memory.h"

struct rl_resource {
    struct rl_resource *next;                    /* in its bucket */
    struct rl_resource *turn_next;               /* places whose first in the queue is to begin */
    struct rl_resource *idle_older, *idle_newer; /* nobody wants it; kept for what is remembered */
    struct rl_lock *front;                       /* asks, waits for others, or holds */
    struct rl_queue_entry *queue_first, *queue_last;
    struct rl_contention contention;
    uint64_t hash; /* hash of the key */
    uint32_t queued;
    uint32_t queued_many;   /* of these: for several resources */
    uint32_t locks;         /* that refer to it */
    uint16_t released_slot; /* permits: which one was let go; RL_SLOT_ANY: several */
    uint16_t key_len;
    bool released; /* a lock that was not in front has let the resource go */
    bool has_turn; /* in the list of turns */
    char key[];    /* and behind it the order of the nodes */
};

struct rl_resources {
    struct rl_resource **buckets;
    uint32_t bucket_count; /* a power of two, or 0 */
    uint32_t count;
    uint32_t idle_count;
    struct rl_resource *idle_oldest, *idle_newest;
    struct rl_resource *turns;
    uint64_t secret; /* which bucket a key is in, nobody outside can tell */
};

/* The place of `key`, made if need be, with one more lock that refers to it. NULL: no memory; locks
 * do without. */
struct rl_resource *rl_resource_enter(struct rl_engine *engine, struct rl_arg key);
/* The place of `key` if there is one. */
struct rl_resource *rl_resource_find(const struct rl_engine *engine, struct rl_arg key);

/* The seat goes to the end of the queue, or out of it. */
void rl_resource_queue(struct rl_engine *engine, struct rl_queue_entry *entry);
void rl_resource_unqueue(struct rl_engine *engine, struct rl_queue_entry *entry);
/* `lock` is not in front any more: the first in the queue is, from the next rl_resources_turn() on.
 */
void rl_resource_pass(struct rl_engine *engine, struct rl_resource *resource,
                      const struct rl_lock *lock);
/* A lock that was not in front lets go: no server will tell us what we do ourselves. */
void rl_resource_note_release(struct rl_engine *engine, struct rl_resource *resource,
                              uint16_t slot);
/* If nobody is in front: somebody may be whose turn it is. */
void rl_resource_review(struct rl_engine *engine, struct rl_resource *resource);
/* One lock less that refers to it. */
void rl_resource_leave(struct rl_engine *engine, struct rl_resource *resource);

/* Gives their turn to those who are to begin, when what is let go was written. */
void rl_resources_turn(struct rl_engine *engine);
void rl_resources_free(struct rl_engine *engine);

#endif
