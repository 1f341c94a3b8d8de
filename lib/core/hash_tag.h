/* SPDX-License-Identifier: MIT
 * Finds the part of a resource's name that selects its shard. */
#ifndef RL_CORE_HASH_TAG_H
#define RL_CORE_HASH_TAG_H

#include "core/wire.h"

/* Returns the hash tag of `name`: the text in its first pair of braces, or all of `name` if there
 * is no such pair or it is empty. A suffix "{#digits}" of a longer name, the slot of a permit, is
 * removed first, so that all slots of a semaphore belong to one shard. The result points into
 * `name`. */
struct rl_arg rl_hash_tag(struct rl_arg name);

#endif
