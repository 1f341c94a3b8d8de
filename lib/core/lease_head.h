/* SPDX-License-Identifier: MIT
 * What the head of a line does; used by lease_line.c and lease_wait.c only. `view` and `fx` are
 * those of lease_hold.h. */
#ifndef RL_CORE_LEASE_HEAD_H
#define RL_CORE_LEASE_HEAD_H

#include "core/lease.h"

/* When a head looks or asks all nodes although it was not notified: between these times. */
#define RL_HEAD_MIN_NS (100 * RL_MS)
#define RL_HEAD_MAX_NS (300 * RL_MS)

/* Asks all nodes for the lock; for a permit, searches for a free slot. */
void rl_head_attempt(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx);
/* The same, because the key has changed. */
void rl_head_attempt_after_change(struct rl_lease *lease, const struct rl_view *view,
                                  struct rl_effects *fx);
/* Processes the reply to a request to the line. `split`: the last attempt has split the votes. */
void rl_head_look(struct rl_lease *lease, const struct rl_line_reply *reply, bool split,
                  const struct rl_view *view, struct rl_effects *fx);
/* Processes the reply to a probe of the second node. */
void rl_head_probed(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx);

#endif
