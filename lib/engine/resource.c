/* SPDX-License-Identifier: MIT
 * A hash table of resource states, each with a queue. A state without locks is idle: it is kept for
 * its contention memory only. Of the idle states, about the IDLE_MAX newest are kept. */
#include "engine/resource.h"

#include "engine/engine.h"
#include "platform/hash.h"

#include <string.h>

#define BUCKETS_MIN 64u  /* buckets of the first table; a power of two */
#define IDLE_MAX    256u /* idle states that are kept */

/* Returns the start of the list of states in the bucket of a key with this hash. The table must
 * have been allocated. */
static struct rl_resource **bucket_of(const struct rl_resources *resources, uint64_t hash)
{
    return &resources->buckets[rl_mix(hash ^ resources->secret) & (resources->bucket_count - 1)];
}

/* Puts a state at the start of the list of its bucket. */
static void put(struct rl_resources *resources, struct rl_resource *resource)
{
    struct rl_resource **bucket = bucket_of(resources, resource->hash);

    resource->next = *bucket;
    *bucket = resource;
}

/* Doubles the table if it has as many states as buckets; the first call makes it. Without memory
 * the old table stays. */
static void grow(struct rl_engine *engine)
{
    struct rl_resources *resources = &engine->resources;
    struct rl_resources old = *resources;
    uint32_t count = old.bucket_count != 0 ? old.bucket_count * 2 : BUCKETS_MIN;

    if (resources->count < old.bucket_count)
        return;
    resources->buckets = rl_alloc(engine->mem, count * sizeof(struct rl_resource *));
    if (resources->buckets == NULL) {
        resources->buckets = old.buckets;
        return;
    }
    if (old.bucket_count == 0)
        resources->secret = rl_random_u64(&engine->random);
    memset(resources->buckets, 0, count * sizeof(struct rl_resource *));
    resources->bucket_count = count;
    for (uint32_t i = 0; i < old.bucket_count; i++) {
        for (struct rl_resource *resource = old.buckets[i], *next; resource != NULL;
             resource = next) {
            next = resource->next;
            put(resources, resource);
        }
    }
    rl_free(engine->mem, old.buckets);
}

/* Returns the state of the resource with this key and hash; NULL: there is none. */
static struct rl_resource *find(const struct rl_resources *resources, struct rl_arg key,
                                uint64_t hash)
{
    struct rl_resource *resource =
        resources->bucket_count != 0 ? *bucket_of(resources, hash) : NULL;

    while (resource != NULL && (resource->hash != hash || resource->key_len != key.len ||
                                memcmp(resource->key, key.data, key.len) != 0))
        resource = resource->next;
    return resource;
}

/* Returns the state of the resource with this key; NULL: there is none. */
struct rl_resource *rl_resource_find(const struct rl_engine *engine, struct rl_arg key)
{
    return find(&engine->resources, key, rl_hash_bytes(key.data, key.len));
}

/* Takes a state out of the list of idle ones. */
static void unlink_idle(struct rl_resources *resources, struct rl_resource *resource)
{
    if (resource->idle_older != NULL)
        resource->idle_older->idle_newer = resource->idle_newer;
    else
        resources->idle_oldest = resource->idle_newer;
    if (resource->idle_newer != NULL)
        resource->idle_newer->idle_older = resource->idle_older;
    else
        resources->idle_newest = resource->idle_older;
    resource->idle_older = resource->idle_newer = NULL;
    resources->idle_count--;
}

/* Takes an idle state out of the table and frees it. */
static void forget(struct rl_engine *engine, struct rl_resource *resource)
{
    struct rl_resources *resources = &engine->resources;
    struct rl_resource **at = bucket_of(resources, resource->hash);

    unlink_idle(resources, resource);
    while (*at != resource)
        at = &(*at)->next;
    *at = resource->next;
    resources->count--;
    rl_free(engine->mem, resource);
}

/* Adds a state to the end of the list of idle states. If that list has more than IDLE_MAX, frees
 * the oldest one, unless the list of turns still refers to it. */
static void become_idle(struct rl_engine *engine, struct rl_resource *resource)
{
    struct rl_resources *resources = &engine->resources;

    resource->idle_older = resources->idle_newest;
    resource->idle_newer = NULL;
    if (resources->idle_newest != NULL)
        resources->idle_newest->idle_newer = resource;
    else
        resources->idle_oldest = resource;
    resources->idle_newest = resource;
    if (++resources->idle_count > IDLE_MAX && !resources->idle_oldest->has_turn)
        forget(engine, resources->idle_oldest);
}

/* Returns the score of a node for the resource whose key has this hash. */
uint64_t rl_resource_score(const struct rl_engine *engine, uint64_t hash, unsigned node)
{
    return rl_mix(hash ^ engine->node_hashes[node]);
}

/* Makes the state of the resource with this key and hash, and ranks the nodes for it: all clients
 * compute the same scores from the key and the nodes' ids, so they prefer the same node. Returns
 * NULL without memory. */
static struct rl_resource *make(struct rl_engine *engine, struct rl_arg key, uint64_t hash)
{
    struct rl_resources *resources = &engine->resources;
    uint64_t scores[RL_NODES_MAX];

    grow(engine);
    if (resources->bucket_count == 0)
        return NULL;
    struct rl_resource *resource =
        rl_alloc(engine->mem, offsetof(struct rl_resource, key) + key.len + engine->count);
    if (resource == NULL)
        return NULL;
    RL_ASSERT(key.len <= UINT16_MAX);
    resource->hash = hash;
    resource->key_len = (uint16_t)key.len;
    memcpy(resource->key, key.data, key.len);
    for (unsigned i = 0; i < engine->count; i++)
        scores[i] = rl_resource_score(engine, hash, i);
    uint8_t *order = (uint8_t *)resource->key + key.len;
    rl_contention_init(&resource->contention, order, engine->count, scores);
    put(resources, resource);
    resources->count++;
    return resource;
}

/* Returns the state of the resource with this key, for one more lock that has an entry there; makes
 * it if there is none. NULL: no memory. */
struct rl_resource *rl_resource_enter(struct rl_engine *engine, struct rl_arg key)
{
    uint64_t hash = rl_hash_bytes(key.data, key.len);
    struct rl_resource *resource = find(&engine->resources, key, hash);

    if (resource == NULL)
        resource = make(engine, key, hash);
    else if (resource->locks == 0)
        unlink_idle(&engine->resources, resource);
    if (resource != NULL)
        resource->locks++;
    return resource;
}

/* Puts a state into the list that the next rl_resources_turn() handles, unless it is there. */
static void plan_turn(struct rl_engine *engine, struct rl_resource *resource)
{
    if (resource->has_turn)
        return;
    resource->has_turn = true;
    resource->turn_next = engine->resources.turns;
    engine->resources.turns = resource;
}

/* Has the next rl_resources_turn() look for a lock that may begin here, if no lock is in front and
 * the queue is not empty. */
void rl_resource_review(struct rl_engine *engine, struct rl_resource *resource)
{
    if (resource->front == NULL && resource->queue_first != NULL)
        plan_turn(engine, resource);
}

/* Puts an entry at the end of its resource's queue. */
void rl_resource_queue(struct rl_engine *engine, struct rl_queue_entry *entry)
{
    struct rl_resource *resource = entry->resource;

    entry->next = NULL;
    entry->prev = resource->queue_last;
    if (resource->queue_last != NULL)
        resource->queue_last->next = entry;
    else
        resource->queue_first = entry;
    resource->queue_last = entry;
    resource->queued++;
    resource->contention.followers += entry->lock->more == 0;
    resource->queued_many += entry->lock->more != 0;
    rl_resource_review(engine, resource);
}

/* Takes an entry out of its resource's queue. */
void rl_resource_unqueue(struct rl_engine *engine, struct rl_queue_entry *entry)
{
    struct rl_resource *resource = entry->resource;

    if (entry->prev != NULL)
        entry->prev->next = entry->next;
    else
        resource->queue_first = entry->next;
    if (entry->next != NULL)
        entry->next->prev = entry->prev;
    else
        resource->queue_last = entry->prev;
    resource->queued--;
    resource->contention.followers -= entry->lock->more == 0;
    resource->queued_many -= entry->lock->more != 0;
    rl_resource_review(engine, resource);
}

/* Takes `lock` away from the front of the resource, if it is in front. */
void rl_resource_pass(struct rl_engine *engine, struct rl_resource *resource,
                      const struct rl_lock *lock)
{
    if (resource->front != lock)
        return;
    resource->front = NULL;
    rl_resource_review(engine, resource);
}

/* Notes that a lock which is not in front is released. If there is a lock in front, the next
 * rl_resources_turn() wakes it. `slot`: the slot of a permit, 0 for other locks. After the releases
 * of different slots, released_slot is RL_SLOT_ANY. */
void rl_resource_note_release(struct rl_engine *engine, struct rl_resource *resource, uint16_t slot)
{
    bool several = resource->released && resource->released_slot != slot;

    resource->released_slot = several ? RL_SLOT_ANY : slot;
    resource->released = resource->front != NULL;
    if (resource->released)
        plan_turn(engine, resource);
}

/* Counts one lock less that has an entry here. Without any, the state becomes idle. */
void rl_resource_leave(struct rl_engine *engine, struct rl_resource *resource)
{
    if (--resource->locks == 0)
        become_idle(engine, resource);
}

/* Handles all states in the list of turns. Wakes the lock in front if another lock of this client
 * was released. If no lock is in front, sends TURN to the lock of the queue that may begin; a lock
 * that needs the fence records gets its TURN later, from rl_lock_start_deferred(). */
void rl_resources_turn(struct rl_engine *engine)
{
    struct rl_resources *resources = &engine->resources;

    while (resources->turns != NULL) {
        struct rl_resource *resource = resources->turns;
        resources->turns = resource->turn_next;
        resource->has_turn = false;
        if (resource->released && resource->front != NULL)
            rl_lock_wake_local(engine, resource->front, resource->released_slot);
        resource->released = false;
        struct rl_lock *lock = resource->front == NULL ? rl_queue_next(engine, resource) : NULL;
        if (lock != NULL && rl_lock_may_start(engine, lock))
            rl_lock_event(engine, lock, RL_EVENT_TURN, 0, 0);
    }
}

/* Frees all states and the table. */
void rl_resources_free(struct rl_engine *engine)
{
    struct rl_resources *resources = &engine->resources;

    for (uint32_t i = 0; i < resources->bucket_count; i++) {
        for (struct rl_resource *resource = resources->buckets[i], *next; resource != NULL;
             resource = next) {
            next = resource->next;
            rl_free(engine->mem, resource);
        }
    }
    rl_free(engine->mem, resources->buckets);
    memset(resources, 0, sizeof *resources);
}
