/* SPDX-License-Identifier: MIT
 * Cancel objects: a flag that ends operations, and a wake-up. */
#ifndef RL_API_CANCEL_H
#define RL_API_CANCEL_H

#include <redlock/redlock.h>
#include <stdatomic.h>

/* Lives until the user and all operations that were started with it have dropped it. */
struct redlock_cancel {
    atomic_uint refs;
    atomic_bool triggered;
    struct redlock *rl; /* referenced */
};

redlock_cancel_t *rl_cancel_ref(redlock_cancel_t *cancel);
void rl_cancel_drop(redlock_cancel_t *cancel);
/* Returns whether it was triggered; false for NULL. */
bool rl_cancel_is_triggered(const redlock_cancel_t *cancel);

#endif
