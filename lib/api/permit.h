/* SPDX-License-Identifier: MIT
 * Permits of a semaphore. */
#ifndef RL_API_PERMIT_H
#define RL_API_PERMIT_H

#include <redlock/redlock.h>

/* Checks the kind of lock that is asked for, and how many permits its semaphore has. Returns
 * REDLOCK_OK, or REDLOCK_EINVAL with a report of the reason in `refusal` (may be NULL). */
int rl_permit_check(struct redlock *rl, const char *resource, const redlock_opts_t *opts,
                    bool adopt, redlock_report_t **refusal);

#endif
