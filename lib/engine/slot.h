/* SPDX-License-Identifier: MIT
 * The keys of the slots of a semaphore, `name{#0}`, `name{#1}` and so on, and the probes of several
 * slots at once. All slots of a semaphore share one resource state, which has a key of its own.
 * "name" stands for the semaphore's key with its prefix. */
#ifndef RL_ENGINE_SLOT_H
#define RL_ENGINE_SLOT_H

#include "engine/lock.h"

/* Longest key of a slot, and of a semaphore's resource state, in bytes. */
#define RL_SLOT_KEY_MAX (RL_KEY_MAX + RL_SUFFIX_MAX)

/* Returns whether the lock is for a permit of a semaphore. */
static inline bool rl_slot_is(const struct rl_lock *lock)
{
    return lock->lease.terms->permits != 0;
}

/* Returns the name of the semaphore of a lock for a permit. It points into the lock's claim. */
struct rl_arg rl_slot_name(const struct rl_lock *lock);
/* Writes the key of a slot to `bytes` and returns it; `slot` < RL_PERMITS_MAX. */
struct rl_arg rl_slot_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name, unsigned slot);
/* Divides the key of a slot into name and number. Returns false if it is not the key of a slot. */
bool rl_slot_of(struct rl_arg key, struct rl_arg *ret_name, uint16_t *ret_slot);
/* Writes the key of a semaphore's resource state to `bytes` and returns it. No lock and no slot has
 * that key. */
struct rl_arg rl_slot_resource_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name);

/* Sends a PTTL for the key of each slot of fx->slots to the node of fx->probe; tracks the keys if
 * the call may wait for a change. A probe that cannot be sent is left out: the waiter's timer makes
 * up for it. */
void rl_slot_probe(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx);
/* Frees the lock's probes. Replies that still come are dropped. */
void rl_slot_forget(struct rl_engine *engine, struct rl_lock *lock);

#endif
