/* SPDX-License-Identifier: MIT
 * Checks the arguments of a call before it starts, and explains each refusal. */
#include "api/check.h"

#include "api/opts.h"
#include "api/report.h"

#include <string.h>

/* Copies the caller's options, which may be those of an older or newer header, to *ret and zeroes
 * what they lack. Refuses unknown fields that are not zero, and unknown flags. Returns REDLOCK_OK;
 * or REDLOCK_EINVAL with a report in `refusal`, or in the log if that is NULL. */
int rl_check_opts(struct redlock_client *rl, const redlock_opts_t *opts, redlock_opts_t *ret,
                  redlock_report_t **refusal)
{
    static const char HINT[] = "start from redlock_opts(ttl_ms)";

    memset(ret, 0, sizeof *ret);
    if (opts == NULL || opts->size < RL_OPTS_SIZE_MIN)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "opts is missing or has no size: %s",
                                HINT);
    memcpy(ret, opts, opts->size < sizeof *ret ? opts->size : sizeof *ret);
    for (size_t i = sizeof *ret; i < opts->size; i++) {
        if (((const unsigned char *)opts)[i] != 0)
            return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                    "opts uses a field that this version of the library does not "
                                    "know: link the newer library");
    }
    if ((ret->flags & ~(uint32_t)(REDLOCK_FLAG_AUTO_EXTEND | REDLOCK_FLAG_FENCE)) != 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "opts.flags 0x%x has an unknown bit",
                                (unsigned)ret->flags);
    return REDLOCK_OK;
}

/* Checks that the TTL `ttl_ms` is from `min_ms` to the client's max_ttl_ms. `what` is its name in a
 * refusal. Returns REDLOCK_OK; or REDLOCK_EINVAL with a report in `refusal`, or in the log if that
 * is NULL. */
int rl_check_ttl(struct redlock_client *rl, const char *what, uint64_t ttl_ms, uint64_t min_ms,
                 redlock_report_t **refusal)
{
    if (ttl_ms > rl->config->max_ttl_ms)
        return rl_report_refuse(
            rl, refusal, REDLOCK_EINVAL,
            "%s is %llu ms, more than max_ttl_ms, which is %llu: shorten it, or "
            "raise max_ttl_ms, equally in all clients of these servers",
            what, (unsigned long long)ttl_ms, (unsigned long long)rl->config->max_ttl_ms);
    if (ttl_ms < min_ms)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "%s is %llu ms: it must be at least %llu ms", what,
                                (unsigned long long)ttl_ms, (unsigned long long)min_ms);
    return REDLOCK_OK;
}

/* Checks that the token of an existing lock is not NULL and has 1 to RL_CALLER_TOKEN_MAX bytes.
 * Returns REDLOCK_OK; or REDLOCK_EINVAL with a report in `refusal`, or in the log if that is
 * NULL. */
int rl_check_token(struct redlock_client *rl, const char *token, redlock_report_t **refusal)
{
    if (token == NULL || token[0] == '\0')
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "token is empty: give what redlock_lock_token() returned");
    if (strnlen(token, RL_CALLER_TOKEN_MAX + 1) > RL_CALLER_TOKEN_MAX)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "token is longer than %d bytes",
                                RL_CALLER_TOKEN_MAX);
    return REDLOCK_OK;
}

/* Returns whether a lock of this client has the token, or a request with it has no reply yet. */
static bool is_used(const struct redlock_client *rl, const char *token)
{
    const struct rl_arg words = {token, strlen(token)};
    bool used = false;

    for (unsigned i = 0; i < rl->shard_count && !used; i++)
        used = rl_lock_token_is_used(&rl->shards[i].engine, words);
    return used;
}

/* Checks opts->token, the caller's token for an acquisition: it must not be in use, and only one
 * attempt is allowed with it. `adopt`: the call adopts a lock and must not have one. Returns
 * REDLOCK_OK; or REDLOCK_EINVAL with a report in `refusal`, or in the log if that is NULL. */
int rl_check_own_token(struct redlock_client *rl, const redlock_opts_t *opts, bool adopt,
                       redlock_report_t **refusal)
{
    if (opts->token == NULL)
        return REDLOCK_OK;
    if (adopt)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is for an acquisition: an adoption takes the token "
                                "as an argument");
    if (opts->wait_ms != 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is for one attempt, so opts.wait_ms must be 0: try "
                                "again with another token");
    if (opts->kind == REDLOCK_KIND_PERMIT)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is for one attempt, and a permit may take several: "
                                "leave it NULL");
    if (opts->token[0] == '\0')
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is empty: leave it NULL for a random one");
    int error = rl_check_token(rl, opts->token, refusal);
    if (error == REDLOCK_OK && is_used(rl, opts->token))
        error = rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                 "opts.token is in use by a lock of this client, or a server has "
                                 "not replied to a request with it: use a new one for each "
                                 "acquisition");
    return error;
}

/* Refuses a duration above INT64_MAX, which was a negative number before its conversion. `what` is
 * its name in a refusal. `forever`: REDLOCK_WAIT_FOREVER is accepted, too. Returns REDLOCK_OK; or
 * REDLOCK_EINVAL with a report in `refusal`, or in the log if that is NULL. */
int rl_check_duration(struct redlock_client *rl, const char *what, uint64_t ms, bool forever,
                      redlock_report_t **refusal)
{
    if (ms <= INT64_MAX || (forever && ms == REDLOCK_WAIT_FOREVER))
        return REDLOCK_OK;
    return rl_report_refuse(
        rl, refusal, REDLOCK_EINVAL, "%s is %llu ms, a negative number: use 0 to %lld%s", what,
        (unsigned long long)ms, (long long)INT64_MAX, forever ? ", or REDLOCK_WAIT_FOREVER" : "");
}

/* Checks that the validity of the TTL, after drift and loss margin, is long enough for the times in
 * the options, and that hold_ms_max is longer than the least validity. Returns REDLOCK_OK; or
 * REDLOCK_EINVAL with a report in `refusal`, or in the log if that is NULL. */
static int check_validity(struct redlock_client *rl, const redlock_opts_t *opts,
                          redlock_report_t **refusal)
{
    uint64_t ttl_ns = opts->ttl_ms * RL_MS;
    uint64_t usable_ms = rl_usable_ns(ttl_ns, &rl->config->drift) / RL_MS;
    /* Times that the validity must contain. The first may be all of it; the others, which are
     * instants before the deadline, must come after the begin of the validity. */
    const struct {
        const char *name; /* for the refusal */
        uint64_t value;   /* in ms; 0: not set */
    } parts[] = {
        {"opts.validity_ms_min", rl_max_u64(opts->validity_ms_min, 1)},
        {"opts.extend_at_ms", opts->extend_at_ms},
        {"opts.margin_ms", opts->margin_ms},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bool fits = i == 0 ? parts[i].value <= usable_ms
                           : parts[i].value == 0 || parts[i].value < usable_ms;
        if (!fits)
            return rl_report_refuse(
                rl, refusal, REDLOCK_EINVAL,
                "of a TTL of %llu ms, clock drift (%llu ms) and the loss margin (%llu ms) leave "
                "%llu ms, too little for %s = %llu: raise opts.ttl_ms",
                (unsigned long long)opts->ttl_ms,
                (unsigned long long)(rl_drift_ns(ttl_ns, &rl->config->drift) / RL_MS),
                (unsigned long long)(rl_loss_margin_ns(ttl_ns) / RL_MS),
                (unsigned long long)usable_ms, parts[i].name, (unsigned long long)parts[i].value);
    }
    if (opts->hold_ms_max != 0 && opts->hold_ms_max <= parts[0].value)
        return rl_report_refuse(
            rl, refusal, REDLOCK_EINVAL,
            "opts.hold_ms_max = %llu leaves no lock the validity of opts.validity_ms_min = %llu: "
            "raise opts.hold_ms_max",
            (unsigned long long)opts->hold_ms_max, (unsigned long long)parts[0].value);
    return REDLOCK_OK;
}

/* Checks the TTL and all durations of the options, and that the validity of the TTL is long enough
 * for them. Returns REDLOCK_OK; or REDLOCK_EINVAL with a report in `refusal`, or in the log if that
 * is NULL. */
int rl_check_times(struct redlock_client *rl, const redlock_opts_t *opts,
                   redlock_report_t **refusal)
{
    int error = rl_check_ttl(rl, "opts.ttl_ms", opts->ttl_ms, REDLOCK_TTL_MS_MIN, refusal);

    if (error == REDLOCK_OK)
        error = rl_check_duration(rl, "opts.wait_ms", opts->wait_ms, true, refusal);
    if (error == REDLOCK_OK)
        error = rl_check_duration(rl, "opts.hold_ms_max", opts->hold_ms_max, false, refusal);
    return error == REDLOCK_OK ? check_validity(rl, opts, refusal) : error;
}

/* Checks, if the configuration wants durable fence records, that a quorum of the shard's servers is
 * attested as durable. Waiting would not change that, so the call is refused at once. Returns
 * REDLOCK_OK; or REDLOCK_EINVAL with a report in `refusal`, or in the log if that is NULL. */
static int check_records(const struct rl_shard *shard, redlock_report_t **refusal)
{
    const struct redlock_config *config = shard->rl->config;
    const struct rl_node_spec *specs = config->nodes + shard->config->first;
    unsigned nodes = shard->config->count, quorum = rl_engine_quorum(&shard->engine);
    unsigned attested = 0;

    for (unsigned i = 0; i < nodes; i++)
        attested += specs[i].durable;
    if (config->fence_records != REDLOCK_FENCE_RECORDS_DURABLE || attested >= quorum)
        return REDLOCK_OK;
    return rl_report_refuse(shard->rl, refusal, REDLOCK_EINVAL,
                            "%u of %u servers are not attested as durable and may lose their "
                            "fence records in a restart: write ?durable=1 behind at least %u "
                            "addresses, or use volatile records",
                            nodes - attested, nodes, quorum);
}

/* Checks the options about fencing tokens: an acquisition receives its token from the servers, an
 * adoption (`adopt`) brings it in opts->fence. Returns REDLOCK_OK; or REDLOCK_EINVAL with a report
 * in `refusal`, or in the log if that is NULL. */
int rl_check_fence(const struct rl_shard *shard, const redlock_opts_t *opts, bool adopt,
                   redlock_report_t **refusal)
{
    struct redlock_client *rl = shard->rl;
    bool fenced = (opts->flags & REDLOCK_FLAG_FENCE) != 0;

    if (opts->also_count != 0 && (fenced || opts->fence != 0))
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "a fencing token belongs to one resource, and opts.also has %zu "
                                "more: acquire each with a lock of its own, or all without "
                                "REDLOCK_FLAG_FENCE",
                                opts->also_count);
    if (opts->fence >= RL_FENCE_END)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.fence is %llu: a fencing token is below 2^53",
                                (unsigned long long)opts->fence);
    if (!adopt && opts->fence != 0)
        return rl_report_refuse(
            rl, refusal, REDLOCK_EINVAL,
            "opts.fence is for adopted locks: an acquisition receives a new fencing token");
    if (adopt && fenced && opts->fence == 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.fence is missing: give the fencing token of the acquisition, "
                                "the servers do not return it");
    return !adopt && fenced ? check_records(shard, refusal) : REDLOCK_OK;
}
