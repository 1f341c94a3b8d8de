/* SPDX-License-Identifier: MIT
 * The options of an acquisition. */
#ifndef RL_API_OPTS_H
#define RL_API_OPTS_H

#include <redlock/redlock.h>

/* Calls event_end_fn, if these options have one, because a call with them was refused and no event
 * follows. The mutex is not held. */
void rl_opts_refused(const redlock_opts_t *opts);

#endif
