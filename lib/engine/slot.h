/* SPDX-License-Identifier: MIT
 * The slots of a semaphore as keys: `name{#i}` for i = 0 to L - 1. Each is an ordinary lock; all of
 * them share one place, under the name. */
#ifndef RL_ENGINE_SLOT_H
#define RL_ENGINE_SLOT_H

#include "engine/lock.h"

#define RL_SLOT_KEY_MAX (RL_KEY_MAX + RL_SUFFIX_MAX)

/* The lock is for a permit. */
static inline bool rl_slot_is(const struct rl_lock *lock)
{
    return lock->lease.terms->permits != 0;
}

/* The name of the semaphore that the lock wants a permit of. */
struct rl_arg rl_slot_name(const struct rl_lock *lock);
/* The key of a slot, in `bytes`. */
struct rl_arg rl_slot_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name, unsigned slot);
/* false: the key does not look like one of a slot. */
bool rl_slot_of(struct rl_arg key, struct rl_arg *ret_name, uint16_t *ret_slot);
/* How the place of a semaphore is called: as no lock can be. */
struct rl_arg rl_slot_resource_key(char bytes[RL_SLOT_KEY_MAX], struct rl_arg name);

/* Asks about the slots of fx->slots. What cannot be asked now is found out by the timer. */
void rl_slot_probe(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx);
/* The lock does not want to know any more. */
void rl_slot_forget(struct rl_engine *engine, struct rl_lock *lock);

#endif
