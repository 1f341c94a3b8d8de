/* SPDX-License-Identifier: MIT
 * Resource states: for each resource the queue of this client's locks, and the contention that the
 * client has met there. One lock of the client acquires or holds the resource, the lock in front;
 * the others wait in the queue, and nothing is sent for them (queue.h has the exceptions).
 *
 * The functions of queue.h call those of this header for each resource of a lock. A change that may
 * let another lock begin, or should wake the lock in front, is only noted at first: the state is
 * put into a list (rl_resources.turns), which rl_resources_turn() works off when the engine sends.
 */
#ifndef RL_ENGINE_RESOURCE_H
#define RL_ENGINE_RESOURCE_H

#include "core/contention.h"
#include "core/wire.h"
#include "engine/queue.h"
#include "platform/memory.h"

/* The state of one resource in this client. For a semaphore, one state covers all slots. Owner:
 * resource.c; queue.c sets `front`.
 *
 * Invariants:
 *   - the state is in the list of idle ones exactly while `locks` is 0; then it is kept for its
 *     contention memory only;
 *   - the lock in front and the locks in the queue have an entry here, and no lock is both;
 *   - if no lock is in front and the queue is not empty, `has_turn` is set, or the first lock of
 *     the queue waits for another of its resources. */
struct rl_resource {
    struct rl_resource *next;       /* next state in the bucket; NULL: the last one */
    struct rl_resource *turn_next;  /* with `has_turn`: next state in rl_resources.turns */
    struct rl_resource *idle_older; /* in the list of idle states: the one that became idle before
                                     * this one; NULL: none */
    struct rl_resource *idle_newer; /* in the same list: the one that became idle after this one;
                                     * NULL: none */
    struct rl_lock *front;          /* the lock in front; NULL: the resource is free */
    struct rl_queue_entry *queue_first, *queue_last; /* entries of waiting locks; NULL: no entry */
    struct rl_contention contention; /* what the client remembers of other contenders */
    uint64_t hash;                   /* rl_hash_bytes() of the key */
    uint32_t queued;                 /* entries in the queue */
    uint32_t queued_many;            /* of `queued`: those of locks of several resources */
    uint32_t locks;         /* locks that have an entry here, in front or queued or neither */
    uint16_t released_slot; /* with `released`, semaphore: the slot; RL_SLOT_ANY: several slots */
    uint16_t key_len;       /* bytes of the key */
    bool released;          /* a lock that is not in front was released; the lock in front is to be
                             * woken by the next rl_resources_turn() */
    bool has_turn;          /* the state is in the list rl_resources.turns */
    char key[];             /* the key, then contention.order: one byte for each node */
};

/* The resource states of one engine, in a hash table. Owner: resource.c. */
struct rl_resources {
    struct rl_resource **buckets;    /* `bucket_count` lists; NULL: not allocated yet */
    uint32_t bucket_count;           /* a power of two, or 0 */
    uint32_t count;                  /* states in the table */
    uint32_t idle_count;             /* of these: states in the list of idle ones */
    struct rl_resource *idle_oldest; /* the list of idle states; NULL: empty */
    struct rl_resource *idle_newest; /* the end of that list; NULL: empty */
    struct rl_resource *turns; /* states that the next rl_resources_turn() handles; NULL: none */
    uint64_t secret;           /* random; selects the bucket of a key, so that hostile names
                                * of resources cannot all fall into one bucket */
};

/* Returns the state of the resource with this key, and makes it if there is none. Counts one more
 * lock that has an entry there. NULL: no memory; the lock then works without a state. */
struct rl_resource *rl_resource_enter(struct rl_engine *engine, struct rl_arg key);
/* Returns the state of the resource with this key; NULL: there is none. */
struct rl_resource *rl_resource_find(const struct rl_engine *engine, struct rl_arg key);
/* Returns the score of a node for the resource whose key has this hash (rl_hash_bytes()). Clients
 * prefer the nodes with high scores; it is the same for all clients. */
uint64_t rl_resource_score(const struct rl_engine *engine, uint64_t hash, unsigned node);

/* Puts an entry at the end of the queue of entry->resource. */
void rl_resource_queue(struct rl_engine *engine, struct rl_queue_entry *entry);
/* Takes an entry out of the queue of entry->resource. */
void rl_resource_unqueue(struct rl_engine *engine, struct rl_queue_entry *entry);
/* Takes `lock` away from the front, if it is in front. The next rl_resources_turn() lets the next
 * lock begin. */
void rl_resource_pass(struct rl_engine *engine, struct rl_resource *resource,
                      const struct rl_lock *lock);
/* Notes that a lock which is not in front is released. `slot`: the slot of a permit, 0 for other
 * locks. The next
 * rl_resources_turn() wakes the lock in front, because the servers do not notify a client of its
 * own changes. */
void rl_resource_note_release(struct rl_engine *engine, struct rl_resource *resource,
                              uint16_t slot);
/* Has the next rl_resources_turn() look for a lock that may begin here, if no lock is in front. */
void rl_resource_review(struct rl_engine *engine, struct rl_resource *resource);
/* Counts one lock less that has an entry here. Without any, the state becomes idle: it is kept for
 * its contention memory only, and may be freed. */
void rl_resource_leave(struct rl_engine *engine, struct rl_resource *resource);

/* Handles the states in rl_resources.turns: lets the next lock of a free resource begin, and wakes
 * the lock in front if another lock of the client was released. Called when
 * the engine sends, after the steps that have released: so releases and undos of the same resource
 * are queued before the next SET. */
void rl_resources_turn(struct rl_engine *engine);
/* Frees all states. The locks must not refer to them any more. */
void rl_resources_free(struct rl_engine *engine);

#endif
