/* SPDX-License-Identifier: MIT
 * Does a server tell when a lock is given back?
 */
#ifndef TOOLS_NODES_WAKE_H
#define TOOLS_NODES_WAKE_H

#include "doctor.h"

/* Two clients of this server only, and a name that nobody else has. */
void nodes_probe_notifications(redlock_t *holder, redlock_t *waiter, const char *name,
                               uint64_t ttl_ms, struct notify_check *wake);

/* "on", "refused", "silent", "unknown". */
const char *notify_result_name(enum notify_result state);

#endif
