/* SPDX-License-Identifier: MIT
 * Words for the reasons why a node gave no vote. */
#ifndef RL_CORE_CAUSE_H
#define RL_CORE_CAUSE_H

/* A phrase for people, in lower case and without a full stop; never NULL. `cause` is an
 * enum redlock_cause. */
const char *rl_cause_text(int cause);

#endif
