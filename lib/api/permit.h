/* SPDX-License-Identifier: MIT
 * Checks the options for permits of a semaphore. */
#ifndef RL_API_PERMIT_H
#define RL_API_PERMIT_H

#include <redlock/redlock.h>

/* Checks opts->kind, and for a semaphore the number of its permits. `adopt`: the call adopts a
 * lock. Returns REDLOCK_OK, or REDLOCK_EINVAL with a report in `refusal` (may be NULL). Mutex held.
 */
int rl_permit_check(struct redlock_client *rl, const char *resource, const redlock_opts_t *opts,
                    bool adopt, redlock_report_t **refusal);

#endif
