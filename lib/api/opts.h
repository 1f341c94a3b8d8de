/* SPDX-License-Identifier: MIT
 * The options of an acquisition. */
#ifndef RL_API_OPTS_H
#define RL_API_OPTS_H

#include <redlock/redlock.h>

/* Runs the notice that no event follows, for a call with these options that was refused before it
 * started anything. The mutex is not held. */
void rl_opts_refused(const redlock_opts_t *opts);

#endif
