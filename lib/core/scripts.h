/* SPDX-License-Identifier: MIT
 * The Lua scripts of the requests. The table in core/protocol.c defines which request uses which.
 */
#ifndef RL_CORE_SCRIPTS_H
#define RL_CORE_SCRIPTS_H

#include "core/protocol.h"

/* For a lock of one key; for fences; for a lock of several keys. */
extern const struct rl_script rl_script_extend, rl_script_release, rl_script_shorten;
extern const struct rl_script rl_script_vote, rl_script_raise, rl_script_read, rl_script_seed;
extern const struct rl_script rl_script_acquire_many, rl_script_heal_many, rl_script_extend_many,
    rl_script_release_many, rl_script_shorten_many, rl_script_get_many;

#endif
