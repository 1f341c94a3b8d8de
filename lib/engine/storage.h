/* SPDX-License-Identifier: MIT
 * The memory that a lock needs in addition to its struct: a copy of its terms, and those parts of
 * the lease (struct rl_lease_storage) whose size depends on the kind of the lock and on the number
 * of nodes. The caller asks for the size with rl_storage_for(), allocates that memory, usually
 * together with the lock, and starts the lock with it. */
#ifndef RL_ENGINE_STORAGE_H
#define RL_ENGINE_STORAGE_H

#include "core/lease.h"

/* Alignment of that memory, in bytes. */
#define RL_STORAGE_ALIGN _Alignof(uint64_t)

/* The memory for one lock. It stays in place as long as the lock. */
struct rl_storage {
    size_t size; /* bytes that are needed */
    void *at;    /* start of the memory, whose bytes are zero at first; set by the caller that has
                  * allocated it */
};

/* Returns the size for a lock with these parameters; `at` of the result is NULL. */
struct rl_storage rl_storage_for(const struct rl_lease_params *params);

/* Copies the terms into the memory and divides the rest of it into the parts that rl_lease_init()
 * takes. `params` are those of rl_storage_for(). */
struct rl_lease_storage rl_storage_parts(const struct rl_storage *storage,
                                         const struct rl_lease_params *params);

#endif
