/* SPDX-License-Identifier: MIT
 * Checks whether a server sends a notification when a lock is released.
 */
#ifndef TOOLS_NODES_NOTIFY_H
#define TOOLS_NODES_NOTIFY_H

#include "examination.h"

/* Lets `waiter` wait for the lock `name` while `holder` holds it, and records in `check` whether
 * a notification arrives. Both clients use this server only, and no other client uses the name.
 * `ttl_ms` is the TTL of the lock. */
void nodes_probe_notifications(redlock_t *holder, redlock_t *waiter, const char *name,
                               uint64_t ttl_ms, struct notify_check *check);

/* Returns "unknown", "on", "refused", "not_received" or "not_connected". */
const char *notify_result_name(enum notify_result state);
/* Returns "off", "on", "refused" or "unknown": whether the server keeps lines of waiters. */
const char *notify_line_name(const struct notify_check *check);

#endif
