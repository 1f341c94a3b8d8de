/* SPDX-License-Identifier: MIT
 * The options of an acquisition. */
#ifndef RL_API_OPTS_H
#define RL_API_OPTS_H

#include <redlock/redlock.h>
#include <stddef.h>

/* The smallest size of options: they have a TTL. */
#define RL_OPTS_SIZE_MIN (offsetof(redlock_opts_t, ttl_ms) + sizeof(uint64_t))

/* Calls event_end_fn, if these options have one, because a call with them was refused and no event
 * follows. The mutex is not held. */
void rl_opts_refused(const redlock_opts_t *opts);

#endif
