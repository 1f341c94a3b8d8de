/* SPDX-License-Identifier: MIT
 * The memory that a lock needs beside its struct. Its size depends on the lock's kind and on the
 * number of nodes; it lies in the same allocation as the handle. */
#ifndef RL_ENGINE_STORAGE_H
#define RL_ENGINE_STORAGE_H

#include "core/lease.h"

#define RL_STORAGE_ALIGN _Alignof(uint64_t)

struct rl_storage {
    size_t size; /* bytes that are needed */
    void *at;    /* start of the memory, zero at first; set by the caller who allocates it */
};

/* Returns the size of the room for a lock with these parameters; `at` is still NULL. */
struct rl_storage rl_storage_for(const struct rl_lease_params *params);

/* Copies the terms into the room and divides the rest into the parts that rl_lease_init() takes. */
struct rl_lease_storage rl_storage_parts(const struct rl_storage *storage,
                                         const struct rl_lease_params *params);

#endif
