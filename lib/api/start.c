/* SPDX-License-Identifier: MIT
 * Starting an operation: arguments are checked, words are found for those that are refused, and the
 * engine is set to work. The mutex is held throughout. */
#include "api/client.h"
#include "api/report.h"

#include <string.h>

static int copy_opts(struct redlock *rl, const redlock_opts_t *opts, redlock_opts_t *ret,
                     redlock_report_t **refusal)
{
    static const char HINT[] = "start from redlock_opts(ttl_ms)";

    memset(ret, 0, sizeof *ret);
    if (opts == NULL || opts->size < 2 * sizeof(size_t))
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "opts is missing or has no size: %s",
                                HINT);
    memcpy(ret, opts, opts->size < sizeof *ret ? opts->size : sizeof *ret);
    for (size_t i = sizeof *ret; i < opts->size; i++) {
        if (((const unsigned char *)opts)[i] != 0)
            return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                    "opts uses a field that this version of the library does not "
                                    "know: link the newer library");
    }
    if ((ret->flags & ~(uint32_t)(REDLOCK_AUTO_EXTEND | REDLOCK_FENCE)) != 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "opts.flags 0x%x has an unknown bit",
                                (unsigned)ret->flags);
    return REDLOCK_OK;
}

static int check_ttl(struct redlock *rl, const char *what, uint64_t ttl_ms, uint64_t min_ms,
                     redlock_report_t **refusal)
{
    if (ttl_ms > rl->config->max_ttl_ms)
        return rl_report_refuse(
            rl, refusal, REDLOCK_EINVAL,
            "%s is %llu ms, more than max_ttl_ms, which is %llu: shorten it, or "
            "raise max_ttl_ms, equally in all clients of these nodes",
            what, (unsigned long long)ttl_ms, (unsigned long long)rl->config->max_ttl_ms);
    if (ttl_ms < min_ms)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "%s is %llu ms: it must be at least %llu ms", what,
                                (unsigned long long)ttl_ms, (unsigned long long)min_ms);
    return REDLOCK_OK;
}

static int check_token(struct redlock *rl, const char *token, redlock_report_t **refusal)
{
    if (token == NULL || token[0] == '\0')
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "token is empty: give what redlock_lock_token() returned");
    if (strnlen(token, RL_BULK_MAX + 1) > RL_BULK_MAX)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "token is longer than %d bytes",
                                RL_BULK_MAX);
    return REDLOCK_OK;
}

static bool is_used(const struct redlock *rl, const char *token)
{
    const struct rl_arg words = {token, strlen(token)};
    bool used = false;

    for (unsigned i = 0; i < rl->set_count && !used; i++)
        used = rl_lock_token_is_used(&rl->sets[i].engine, words);
    return used;
}

/* Checks the token that an acquisition is to use. The undo of one attempt may be executed late, and
 * would delete what a later attempt with the same token has set. */
static int check_own_token(struct redlock *rl, const redlock_opts_t *opts, bool adopt,
                           redlock_report_t **refusal)
{
    if (opts->token == NULL)
        return REDLOCK_OK;
    if (adopt)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is for locks that are acquired: the token of an "
                                "adopted one is the argument");
    if (opts->wait_ms != 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is for one attempt, so opts.wait_ms must be 0: try "
                                "again with another token");
    if (opts->kind == REDLOCK_PERMIT)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is for one attempt, and a permit may take several: "
                                "leave it NULL");
    if (opts->token[0] == '\0')
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.token is empty: leave it NULL for a random one");
    int error = check_token(rl, opts->token, refusal);
    if (error == REDLOCK_OK && is_used(rl, opts->token))
        error = rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                 "opts.token is in use by a lock of this client, or a server has "
                                 "not answered what was sent with it: use a new one for each "
                                 "acquisition");
    return error;
}

/* Refuses a time that is a negative number, converted by the compiler. `forever`:
 * REDLOCK_WAIT_FOREVER is none. */
static int check_duration(struct redlock *rl, const char *what, uint64_t ms, bool forever,
                          redlock_report_t **refusal)
{
    if (ms <= INT64_MAX || (forever && ms == REDLOCK_WAIT_FOREVER))
        return REDLOCK_OK;
    return rl_report_refuse(
        rl, refusal, REDLOCK_EINVAL, "%s is %llu ms, a negative number: use 0 to %lld%s", what,
        (unsigned long long)ms, (long long)INT64_MAX, forever ? ", or REDLOCK_WAIT_FOREVER" : "");
}

/* What drift and the loss margin leave of the TTL must be enough for what was asked. */
static int check_validity(struct redlock *rl, const redlock_opts_t *opts,
                          redlock_report_t **refusal)
{
    uint64_t ttl_ns = opts->ttl_ms * RL_MS;
    uint64_t usable_ms = rl_usable_ns(ttl_ns, &rl->config->drift) / RL_MS;
    const struct {
        const char *name;
        uint64_t value;
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
                (unsigned long long)(rl_lost_margin_ns(ttl_ns) / RL_MS),
                (unsigned long long)usable_ms, parts[i].name, (unsigned long long)parts[i].value);
    }
    if (opts->hold_ms_max != 0 && opts->hold_ms_max <= parts[0].value)
        return rl_report_refuse(
            rl, refusal, REDLOCK_EINVAL,
            "opts.hold_ms_max = %llu ends every lock before opts.validity_ms_min = %llu could be "
            "left: raise opts.hold_ms_max",
            (unsigned long long)opts->hold_ms_max, (unsigned long long)parts[0].value);
    return REDLOCK_OK;
}

static int check_times(struct redlock *rl, const redlock_opts_t *opts, redlock_report_t **refusal)
{
    int error = check_ttl(rl, "opts.ttl_ms", opts->ttl_ms, REDLOCK_TTL_MS_MIN, refusal);

    if (error == REDLOCK_OK)
        error = check_duration(rl, "opts.wait_ms", opts->wait_ms, true, refusal);
    if (error == REDLOCK_OK)
        error = check_duration(rl, "opts.hold_ms_max", opts->hold_ms_max, false, refusal);
    return error == REDLOCK_OK ? check_validity(rl, opts, refusal) : error;
}

/* Durable records want somebody to attest that they are, for a majority: no wait would mend that.
 */
static int check_records(const struct rl_set *set, redlock_report_t **refusal)
{
    const struct rl_engine *engine = &set->engine;
    unsigned attested = 0;

    for (unsigned i = 0; i < engine->count; i++)
        attested += engine->nodes[i].admission.durable;
    if (engine->params.fence_run_bound || attested >= engine->quorum)
        return REDLOCK_OK;
    return rl_report_refuse(set->rl, refusal, REDLOCK_EINVAL,
                            "nobody attests that fence records survive a restart on %u of %u "
                            "nodes: write ?durable=1 or ?waitaof=1 behind at least %u addresses, "
                            "or use volatile records",
                            engine->count - attested, engine->count, engine->quorum);
}

/* A fence comes from the nodes, or with a lock that is handed over. */
static int check_fence(const struct rl_set *set, const redlock_opts_t *opts, bool adopt,
                       redlock_report_t **refusal)
{
    struct redlock *rl = set->rl;
    bool fenced = (opts->flags & REDLOCK_FENCE) != 0;

    if (opts->also_count != 0 && (fenced || opts->fence != 0))
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "a fence is a number of one resource, and there are %zu more: take "
                                "each with a lock of its own, or all without REDLOCK_FENCE",
                                opts->also_count);
    if (opts->fence >= RL_FENCE_END)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.fence is %llu: that is no fence, they are below 2^53",
                                (unsigned long long)opts->fence);
    if (!adopt && opts->fence != 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.fence is for adopted locks: whoever acquires gets a new one");
    if (adopt && fenced && opts->fence == 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.fence is missing: give the number that the lock was acquired "
                                "with, it cannot be asked for");
    return !adopt && fenced ? check_records(set, refusal) : REDLOCK_OK;
}

static uint64_t ms_to_ns(uint64_t ms)
{
    return ms > UINT64_MAX / RL_MS ? RL_NEVER : ms * RL_MS;
}

static struct rl_lease_params lease_params(const struct rl_set *set, uint8_t kind,
                                           const redlock_opts_t *opts)
{
    const struct redlock *rl = set->rl;

    return (struct rl_lease_params){
        .terms =
            {
                .kind = kind,
                .nodes = (uint8_t)set->engine.count,
                .quorum = (uint8_t)set->engine.quorum,
                .auto_extend = (opts->flags & REDLOCK_AUTO_EXTEND) != 0,
                .permits = (uint16_t)opts->permits,
                .fence = kind == RL_LEASE_ACQUIRE && (opts->flags & REDLOCK_FENCE) != 0,
                .extends_max = opts->extends_max,
                .drift = rl->config->drift,
                .wall_slack_us = (uint64_t)rl->config->clock_slack_ms * 1000,
                .backoff = set->engine.params.backoff,
                .ttl_ns = ms_to_ns(opts->ttl_ms),
                .validity_min_ns = ms_to_ns(rl_max_u64(opts->validity_ms_min, 1)),
                .extend_at_ns = ms_to_ns(opts->extend_at_ms),
                .hold_max_ns = ms_to_ns(opts->hold_ms_max),
                .margin_ns = ms_to_ns(opts->margin_ms != 0 ? opts->margin_ms : opts->ttl_ms / 10),
            },
        .fence_number = kind == RL_LEASE_ADOPT ? opts->fence : 0,
        .wait_ns = ms_to_ns(opts->wait_ms),
        .confirms = kind == RL_LEASE_ACQUIRE || kind == RL_LEASE_ADOPT,
    };
}

static void begin_op(struct redlock_lock *lock, uint8_t kind, const struct rl_call *call)
{
    lock->op = (struct rl_op){
        .kind = kind,
        .fn = call->fn,
        .userdata = call->userdata,
        .waiter = call->waiter,
        .cancel = call->cancel != NULL ? rl_cancel_ref(call->cancel) : NULL,
    };
}

/* Sets the engine to work on a new lock with these keys. The caller's reference is that of the
 * operation, and stays the caller's on failure. */
static int launch_keys(struct redlock_lock *lock, const struct rl_lease_params *params,
                       const struct rl_room *room, const struct rl_arg *keys, unsigned count,
                       struct rl_arg token)
{
    rl_api_lock_ref(lock); /* the engine's reference */
    int error =
        rl_lock_start_many(&lock->set->engine, &lock->engine, params, room, keys, count, token);
    if (error != REDLOCK_OK)
        rl_api_lock_drop(lock);
    return error;
}

/* The same with the keys of the lock's names. On failure the lock is freed. */
static int launch(struct redlock_lock *lock, const struct rl_lease_params *params,
                  const struct rl_room *room, const char *token)
{
    struct rl_keys keys;
    struct rl_arg words = {token, token != NULL ? strlen(token) : 0};

    int error = REDLOCK_ENOMEM;
    if (rl_names_keys(lock, &keys)) {
        error = launch_keys(lock, params, room, keys.list, keys.count, words);
        rl_names_keys_done(lock, &keys);
    }
    if (error != REDLOCK_OK)
        rl_api_lock_drop(lock);
    return error;
}

static bool is_canceled(const redlock_cancel_t *cancel)
{
    return cancel != NULL && atomic_load(&cancel->triggered);
}

static int check_call(struct redlock *rl, const struct rl_call *call)
{
    if (rl->draining)
        return rl_report_refuse(rl, call->ret_refusal, REDLOCK_ECLOSED, "client is shutting down");
    if (call->cancel != NULL && call->cancel->rl != rl)
        return rl_report_refuse(rl, call->ret_refusal, REDLOCK_EINVAL,
                                "the cancel object belongs to another client");
    if (is_canceled(call->cancel))
        return rl_report_refuse(rl, call->ret_refusal, REDLOCK_ECANCELED,
                                "the cancel object was triggered before the call");
    return REDLOCK_OK;
}

int rl_start_acquire(struct redlock *rl, const char *resource, const char *token,
                     const redlock_opts_t *opts, const struct rl_call *call,
                     struct redlock_lock **ret_lock)
{
    redlock_opts_t own;
    struct rl_names names;
    struct rl_set *set;
    struct rl_call with_cancel = *call;
    redlock_report_t **refusal = call->ret_refusal;

    int error = copy_opts(rl, opts, &own, refusal);
    if (error == REDLOCK_OK)
        error = rl_names_collect(rl, resource, own.also, own.also_count, &names, refusal);
    if (error == REDLOCK_OK)
        error = rl_sets_find(rl, &names, &set, refusal);
    if (error == REDLOCK_OK && token != NULL)
        error = check_token(rl, token, refusal);
    if (error == REDLOCK_OK)
        error = check_times(rl, &own, refusal);
    if (error == REDLOCK_OK)
        error = check_fence(set, &own, token != NULL, refusal);
    if (error == REDLOCK_OK)
        error = rl_permit_check(rl, resource, &own, token != NULL, refusal);
    if (error == REDLOCK_OK)
        error = check_own_token(rl, &own, token != NULL, refusal);
    if (error == REDLOCK_OK)
        error = rl_names_check_record(rl, &names, own.permits, refusal);
    if (error != REDLOCK_OK)
        return error;
    with_cancel.cancel = own.cancel;
    error = check_call(rl, &with_cancel);
    if (error != REDLOCK_OK)
        return error;
    bool adopt = token != NULL;
    struct rl_lease_params params =
        lease_params(set, adopt ? RL_LEASE_ADOPT : RL_LEASE_ACQUIRE, &own);
    struct rl_room room = rl_room_for(&set->engine, &params);
    struct redlock_lock *lock = rl_api_lock_new(set, &names, &room);
    if (lock == NULL)
        return REDLOCK_ENOMEM;
    lock->event_fn = own.event_fn;
    lock->event_end_fn = own.event_end_fn;
    lock->event_userdata = own.event_userdata;
    begin_op(lock, adopt ? RL_OP_ADOPT : RL_OP_ACQUIRE, &with_cancel);
    *ret_lock = lock;
    return launch(lock, &params, &room, adopt ? token : own.token);
}

/* May this call of the user touch the lock now? */
static int check_lock(struct redlock_lock *lock)
{
    if (lock->op.kind != RL_OP_NONE)
        return REDLOCK_EBUSY;
    return rl_lease_is_held(&lock->engine.lease) ? REDLOCK_OK : REDLOCK_ELOST;
}

int rl_start_extend(struct redlock_lock *lock, uint64_t ttl_ms, const struct rl_call *call)
{
    struct redlock *rl = lock->set->rl;
    redlock_report_t **refusal = call->ret_refusal;

    int error = check_ttl(rl, "ttl_ms", ttl_ms, ttl_ms == 0 ? 0 : REDLOCK_TTL_MS_MIN, refusal);
    if (error != REDLOCK_OK)
        return error;
    error = check_lock(lock);
    if (error != REDLOCK_OK)
        return rl_report_refuse(rl, refusal, error, "%s", redlock_strerror(error));
    rl_api_lock_ref(lock);
    begin_op(lock, RL_OP_EXTEND, call);
    rl_lock_event(&lock->set->engine, &lock->engine, RL_EVENT_EXTEND, ttl_ms * RL_MS, 0);
    return REDLOCK_OK;
}

int rl_start_release(struct redlock_lock *lock, bool keep, uint64_t delay_ms,
                     const struct rl_call *call)
{
    struct redlock *rl = lock->set->rl;
    redlock_report_t **refusal = call->ret_refusal;
    int error = REDLOCK_OK;

    if (keep)
        error = check_ttl(rl, "delay_ms", delay_ms, 0, refusal);
    if (error != REDLOCK_OK)
        return error;
    error = check_lock(lock);
    if (error != REDLOCK_OK)
        return rl_report_refuse(rl, refusal, error, "%s", redlock_strerror(error));
    rl_api_lock_ref(lock);
    if (lock->retained != 0) {
        lock->retained--;
        begin_op(lock, RL_OP_UNRETAIN, call);
        rl_dispatch_done(rl, lock, REDLOCK_OK);
        return REDLOCK_OK;
    }
    begin_op(lock, RL_OP_RELEASE, call);
    uint8_t kind = keep && delay_ms > 0 ? RL_EVENT_SHORTEN : RL_EVENT_RELEASE;
    rl_lock_event(&lock->set->engine, &lock->engine, kind, delay_ms * RL_MS, 0);
    return REDLOCK_OK;
}

int rl_start_question(struct redlock *rl, const char *const *resources, size_t count,
                      const char *token, uint8_t kind, const struct rl_call *call,
                      struct redlock_lock **ret_lock)
{
    redlock_report_t **refusal = call->ret_refusal;
    redlock_opts_t opts = redlock_opts(rl->config->max_ttl_ms);
    struct rl_names names;
    struct rl_set *set;

    if (resources == NULL || count == 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "no resource is named");
    int error = rl_names_collect(rl, resources[0], resources + 1, count - 1, &names, refusal);
    if (error == REDLOCK_OK && kind == RL_OP_RELEASE_TOKEN)
        error = check_token(rl, token, refusal);
    if (error == REDLOCK_OK && kind != RL_OP_INSPECT)
        error = rl_names_check_record(rl, &names, 0, refusal);
    if (error == REDLOCK_OK)
        error = rl_sets_find(rl, &names, &set, refusal);
    if (error == REDLOCK_OK)
        error = check_call(rl, call);
    if (error != REDLOCK_OK)
        return error;
    bool release = kind == RL_OP_RELEASE_TOKEN;
    struct rl_lease_params params =
        lease_params(set, release ? RL_LEASE_RELEASE : RL_LEASE_INSPECT, &opts);
    struct rl_room room = rl_room_for(&set->engine, &params);
    struct redlock_lock *lock = rl_api_lock_new(set, &names, &room);
    if (lock == NULL)
        return REDLOCK_ENOMEM;
    begin_op(lock, kind, call);
    *ret_lock = lock;
    return launch(lock, &params, &room, release ? token : NULL);
}

int rl_start_verify(struct redlock_lock *subject, const struct rl_call *call,
                    struct redlock_lock **ret_lock)
{
    struct rl_set *set = subject->set;
    struct redlock *rl = set->rl;
    const redlock_opts_t opts = redlock_opts(rl->config->max_ttl_ms);
    struct rl_names names = {.count = subject->names};
    struct rl_arg keys[RL_KEYS_MAX];

    int error = check_call(rl, call);
    if (error != REDLOCK_OK)
        return error;
    if (!rl_lease_is_held(&subject->engine.lease) || redlock_lock_check(subject, 0) != REDLOCK_OK)
        return rl_report_refuse(rl, call->ret_refusal, REDLOCK_ELOST, "%s",
                                redlock_strerror(REDLOCK_ELOST));
    for (unsigned i = 0; i < names.count; i++) {
        names.list[i] = redlock_lock_resource(subject, i);
        names.lens[i] = (uint16_t)strlen(names.list[i]);
    }
    struct rl_lease_params params = lease_params(set, RL_LEASE_VERIFY, &opts);
    params.unproven = rl_lease_unproven(&subject->engine.lease);
    struct rl_room room = rl_room_for(&set->engine, &params);
    struct redlock_lock *lock = rl_api_lock_new(set, &names, &room);
    if (lock == NULL)
        return REDLOCK_ENOMEM;
    rl_api_lock_ref(subject);
    lock->subject = subject;
    begin_op(lock, RL_OP_VERIFY, call);
    *ret_lock = lock;
    const struct rl_claim *claim = subject->engine.claim;
    error =
        launch_keys(lock, &params, &room, keys, rl_claim_keys(claim, keys), rl_claim_token(claim));
    if (error != REDLOCK_OK)
        rl_api_lock_drop(lock);
    return error;
}

/* An operator's decision is one about all sets: memory for them comes first. */
static bool init_records(struct redlock *rl, uint64_t wait_ns)
{
    for (unsigned i = 1; i < rl->set_count; i++) {
        if (!rl_records_want(&rl->sets[i].engine))
            return false;
    }
    bool begun = true;
    for (unsigned i = 0; begun && i < rl->set_count; i++)
        begun = rl_records_init(&rl->sets[i].engine, wait_ns);
    return begun;
}

int rl_start_client_op(struct redlock *rl, uint8_t kind, uint64_t budget_ms,
                       const struct rl_call *call)
{
    int error = kind == RL_OP_SHUTDOWN ? REDLOCK_OK : check_call(rl, call);

    if (error == REDLOCK_OK)
        error = check_duration(rl, kind == RL_OP_SHUTDOWN ? "budget_ms" : "wait_ms", budget_ms,
                               true, call->ret_refusal);
    if (error != REDLOCK_OK)
        return error;
    struct rl_client_op *item = rl_alloc(&rl->mem, sizeof *item);
    if (item == NULL)
        return REDLOCK_ENOMEM;
    if (kind == RL_OP_FENCE_INIT && !init_records(rl, ms_to_ns(budget_ms))) {
        rl_free(&rl->mem, item);
        return REDLOCK_ENOMEM;
    }
    item->op = (struct rl_op){
        .kind = kind,
        .fn = call->fn,
        .userdata = call->userdata,
        .waiter = call->waiter,
        .cancel = call->cancel != NULL ? rl_cancel_ref(call->cancel) : NULL,
    };
    item->until = rl_later(rl_client_now(rl), ms_to_ns(budget_ms));
    item->next = rl->client_ops;
    rl->client_ops = item;
    if (kind == RL_OP_SHUTDOWN)
        rl_review_begin_shutdown(rl);
    rl_io_wake(&rl->io); /* reviewed by the next turn of the loop */
    return REDLOCK_OK;
}
