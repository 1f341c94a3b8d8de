/* SPDX-License-Identifier: MIT
 * The keys of the slots of a semaphore, `name{#0}`, `name{#1}` and so on, and the probes of several
 * slots at once. All slots of a semaphore share one resource state (the client's queue and
 * contention memory of a resource), which has a key of its own. "name" stands for the semaphore's
 * key with its prefix. Keys are passed as struct rl_arg: bytes and their length, without a NUL. */
#ifndef RL_ENGINE_SLOT_H
#define RL_ENGINE_SLOT_H

#include "engine/lock.h"

/* Longest key of a slot, and of a semaphore's resource state, in bytes: a key of the greatest
 * length and the suffix {#N}. */
#define RL_SLOT_KEY_MAX (RL_KEY_MAX + RL_SUFFIX_MAX)

/* Returns whether the lock is for a permit of a semaphore. */
static inline bool rl_slot_is(const struct rl_lock *lock)
{
    return lock->lease.terms->permits != 0;
}

/* Returns the name of the semaphore that a lock for a permit is about. The name points into the
 * lock's claim. */
struct rl_arg rl_slot_name(const struct rl_lock *lock);
/* Writes the key of slot number `slot` of the semaphore `name` to `bytes` and returns it; `slot` <
 * RL_PERMITS_MAX. */
struct rl_arg rl_slot_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name, unsigned slot);
/* Divides the key of a slot into the name of the semaphore and the number of the slot. Returns
 * false if `key` does not have the form of a slot's key. `*ret_name` points into `key`. */
bool rl_slot_of(struct rl_arg key, struct rl_arg *ret_name, uint16_t *ret_slot);
/* Returns whether `key` has the form of the key of a semaphore's first slot, and then sets
 * `*ret_name` to the name of the semaphore, which points into `key`. */
bool rl_slot_is_first(struct rl_arg key, struct rl_arg *ret_name);
/* Writes the key of a semaphore's resource state to `bytes` and returns it: the name and a zero
 * byte. No lock and no slot has that key, because no name has a zero byte in it. */
struct rl_arg rl_slot_resource_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name);

/* Sends a PTTL for the key of each slot of fx->slots to the node of fx->probe; tracks the keys if
 * the call may wait for a change. A probe that cannot be sent is left out: the waiter's timer makes
 * up for it. */
void rl_slot_probe(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx);
/* Frees the claims of the lock's probes. Replies to these probes that still come are dropped. */
void rl_slot_forget(struct rl_engine *engine, struct rl_lock *lock);

#endif
