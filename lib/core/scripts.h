/* SPDX-License-Identifier: MIT
 * The Lua scripts of the requests. The table in core/protocol.c defines which request uses which.
 */
#ifndef RL_CORE_SCRIPTS_H
#define RL_CORE_SCRIPTS_H

#include "core/protocol.h"

/* Each script executes the request of its name; `vote` is the fenced ACQUIRE. scripts.c says above
 * each one what it does, its arguments and its result. First those for a lock of one key. */
extern const struct rl_script rl_script_extend, rl_script_release, rl_script_shorten;
/* For fences: `vote` acquires the lock and stores a proposal; the others use the fence record. */
extern const struct rl_script rl_script_vote, rl_script_raise, rl_script_read, rl_script_seed;
/* For a lock of several keys. */
extern const struct rl_script rl_script_acquire_many, rl_script_heal_many, rl_script_extend_many,
    rl_script_release_many, rl_script_shorten_many, rl_script_get_many;
/* For the line of a resource. */
extern const struct rl_script rl_script_line;
/* For the greeting: returns 1, and uses no key, so that only the right to run scripts matters. */
extern const struct rl_script rl_script_check;

#endif
