/* SPDX-License-Identifier: MIT
 * Checks the arguments of calls. Each function returns REDLOCK_OK or REDLOCK_EINVAL. After a
 * failure *refusal receives a report of the reason; if `refusal` is NULL, the reason is logged. The
 * client's mutex is held in all functions. */
#ifndef RL_API_CHECK_H
#define RL_API_CHECK_H

#include "api/client.h"

/* Copies the caller's options and zeroes what they lack. They may be those of an older or newer
 * version of the header. Refuses unknown fields that are used, and unknown flags. */
int rl_check_opts(struct redlock_client *rl, const redlock_opts_t *opts, redlock_opts_t *ret,
                  redlock_report_t **refusal);
/* Checks that a TTL is between `min_ms` and the client's max_ttl_ms. `what` is its name. */
int rl_check_ttl(struct redlock_client *rl, const char *what, uint64_t ttl_ms, uint64_t min_ms,
                 redlock_report_t **refusal);
/* Refuses a duration above INT64_MAX: it was a negative number before its conversion. `what` is its
 * name. `forever`: REDLOCK_WAIT_FOREVER is accepted, too. */
int rl_check_duration(struct redlock_client *rl, const char *what, uint64_t ms, bool forever,
                      redlock_report_t **refusal);
/* Checks all durations of the options, and that the validity of the TTL, after drift and loss
 * margin, is long enough for them. */
int rl_check_times(struct redlock_client *rl, const redlock_opts_t *opts,
                   redlock_report_t **refusal);
/* Checks the form of a token that names an existing lock. */
int rl_check_token(struct redlock_client *rl, const char *token, redlock_report_t **refusal);
/* Checks opts->token, the caller's token for an acquisition. It must be new, because the undo of an
 * earlier attempt may be executed late and would delete the key of a later one with the same token.
 * `adopt`: the call adopts a lock and must not have one. */
int rl_check_own_token(struct redlock_client *rl, const redlock_opts_t *opts, bool adopt,
                       redlock_report_t **refusal);
/* Checks the options about fencing tokens: an acquisition receives its token from the servers, an
 * adoption brings it in opts->fence. */
int rl_check_fence(const struct rl_shard *shard, const redlock_opts_t *opts, bool adopt,
                   redlock_report_t **refusal);

#endif
