/* SPDX-License-Identifier: MIT
 * Checks of the arguments of a call. Each returns REDLOCK_OK, or REDLOCK_EINVAL with a report of
 * the reason in `refusal` (NULL: into the log). The client's mutex is held. */
#ifndef RL_API_CHECK_H
#define RL_API_CHECK_H

#include "api/client.h"

/* Copies the caller's options, which may be of an older or newer version of the library. */
int rl_check_opts(struct redlock *rl, const redlock_opts_t *opts, redlock_opts_t *ret,
                  redlock_report_t **refusal);
/* Checks a TTL called `what` against `min_ms` and the client's max_ttl_ms. */
int rl_check_ttl(struct redlock *rl, const char *what, uint64_t ttl_ms, uint64_t min_ms,
                 redlock_report_t **refusal);
/* Refuses a time that is a negative number, converted by the compiler. With `forever`,
 * REDLOCK_WAIT_FOREVER is accepted. */
int rl_check_duration(struct redlock *rl, const char *what, uint64_t ms, bool forever,
                      redlock_report_t **refusal);
/* Checks all times of the options, and what drift and the loss margin leave of the TTL. */
int rl_check_times(struct redlock *rl, const redlock_opts_t *opts, redlock_report_t **refusal);
/* Checks a token that another handle had. */
int rl_check_token(struct redlock *rl, const char *token, redlock_report_t **refusal);
/* Checks the token that an acquisition is to use. The undo of one attempt may be executed late, and
 * would delete what a later attempt with the same token has set. */
int rl_check_own_token(struct redlock *rl, const redlock_opts_t *opts, bool adopt,
                       redlock_report_t **refusal);
/* Checks the fence: it comes from the servers, or with a lock that is adopted. */
int rl_check_fence(const struct rl_shard *shard, const redlock_opts_t *opts, bool adopt,
                   redlock_report_t **refusal);

#endif
