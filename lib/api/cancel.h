/* SPDX-License-Identifier: MIT
 * Cancel objects, which end all operations that were started with them. */
#ifndef RL_API_CANCEL_H
#define RL_API_CANCEL_H

#include <redlock/redlock.h>
#include <stdatomic.h>

/* One cancel object (redlock_cancel_t). Owned by cancel.c. It is freed when the user and all
 * operations that were started with it have dropped their references. */
struct redlock_cancel {
    atomic_uint refs;          /* references: of the user, and one for each operation */
    atomic_bool triggered;     /* never reset */
    struct redlock_client *rl; /* the client whose operations it can end; referenced */
};

/* Adds a reference and returns `cancel`. */
redlock_cancel_t *rl_cancel_ref(redlock_cancel_t *cancel);
/* Drops a reference; the last one frees the object and drops its reference to the client. */
void rl_cancel_drop(redlock_cancel_t *cancel);
/* Returns whether redlock_cancel_trigger() was called; false for NULL. */
bool rl_cancel_is_triggered(const redlock_cancel_t *cancel);

#endif
