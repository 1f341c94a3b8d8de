/* SPDX-License-Identifier: MIT
 * What of a resource's name decides which set of nodes it belongs to. */
#ifndef RL_CORE_HASH_TAG_H
#define RL_CORE_HASH_TAG_H

#include "core/wire.h"

/* A part of `name`: what is in its first pair of braces, if there is anything; else all of it.
 * Before that, "{#digits}" at the end of a longer name is taken off: the slot of a permit. */
struct rl_arg rl_hash_tag(struct rl_arg name);

#endif
