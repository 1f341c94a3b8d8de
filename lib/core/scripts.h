/* SPDX-License-Identifier: MIT
 * The Lua scripts that requests are made of; core/protocol.c says which request uses which. */
#ifndef RL_CORE_SCRIPTS_H
#define RL_CORE_SCRIPTS_H

#include "core/protocol.h"

extern const struct rl_script rl_script_extend, rl_script_release, rl_script_shorten;
extern const struct rl_script rl_script_vote, rl_script_raise, rl_script_read, rl_script_seed;
extern const struct rl_script rl_script_acquire_many, rl_script_heal_many, rl_script_extend_many,
    rl_script_release_many, rl_script_shorten_many, rl_script_get_many;

#endif
