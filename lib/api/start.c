/* SPDX-License-Identifier: MIT
 * Starts operations: checks the arguments, creates the handle and starts the lock in the engine.
 * struct rl_call says where the result of the operation goes. A report of a refusal goes to
 * call->ret_refusal, or to the log if that is NULL. The operation and the engine each hold one
 * reference to the handle. Inspections, verifications and releases by token also work on a lock of
 * their own in the engine, and so on a handle. The client's mutex is held in all functions. */
#include "api/operation.h"

#include "api/check.h"
#include "api/handle.h"
#include "api/permit.h"
#include "api/report.h"
#include "api/review.h"

#include <string.h>

/* Converts milliseconds to nanoseconds; RL_NEVER if the result is too large. */
static uint64_t ms_to_ns(uint64_t ms)
{
    return ms > UINT64_MAX / RL_MS ? RL_NEVER : ms * RL_MS;
}

/* Returns the parameters of a lease of this `kind` (RL_LEASE_*) in `shard`, made from the options
 * and the client's configuration. A margin of 0 becomes a tenth of the TTL, a least validity of 0
 * becomes 1 ms. */
static struct rl_lease_params lease_params(const struct rl_shard *shard, uint8_t kind,
                                           const redlock_opts_t *opts)
{
    const struct redlock_client *rl = shard->rl;

    struct rl_lease_params params = {
        .terms =
            {
                .kind = kind,
                .auto_extend = (opts->flags & REDLOCK_FLAG_AUTO_EXTEND) != 0,
                .permits = (uint16_t)opts->permits,
                .fence = kind == RL_LEASE_ACQUIRE && (opts->flags & REDLOCK_FLAG_FENCE) != 0,
                .extends_max = opts->extends_max,
                .drift = rl->config->drift,
                .wall_slack_us = (uint64_t)rl->config->clock_slack_ms * 1000,
                .ttl_ns = ms_to_ns(opts->ttl_ms),
                .validity_min_ns = ms_to_ns(rl_max_u64(opts->validity_ms_min, 1)),
                .extend_at_ns = ms_to_ns(opts->extend_at_ms),
                .hold_max_ns = ms_to_ns(opts->hold_ms_max),
                .margin_ns = ms_to_ns(opts->margin_ms != 0 ? opts->margin_ms : opts->ttl_ms / 10),
            },
        .fence = kind == RL_LEASE_ADOPT ? opts->fence : 0,
        .wait_ns = ms_to_ns(opts->wait_ms),
        .confirms = kind == RL_LEASE_ACQUIRE || kind == RL_LEASE_ADOPT,
    };
    rl_engine_set_terms(&shard->engine, &params.terms);
    return params;
}

/* Fills the operation *op of this `kind` (RL_OP_*) from the call, and references the call's cancel
 * object. */
static void begin_op(struct rl_op *op, uint8_t kind, const struct rl_call *call)
{
    *op = (struct rl_op){
        .kind = kind,
        .fn = call->fn,
        .userdata = call->userdata,
        .waiter = call->waiter,
        .cancel = call->cancel != NULL ? rl_cancel_ref(call->cancel) : NULL,
    };
}

/* Starts the lock of a new handle in the engine, with the keys of its names. `token`: the token to
 * use; NULL: a random one. Returns REDLOCK_OK or an error; on failure the handle is freed. The
 * operation may have ended when this returns. */
static int launch(struct redlock_lock *handle, const struct rl_lease_params *params,
                  const struct rl_storage *storage, const char *token)
{
    struct rl_keys keys;
    struct rl_arg words = {token, token != NULL ? strlen(token) : 0};

    int error = REDLOCK_ENOMEM;
    if (rl_names_keys(handle, &keys)) {
        rl_handle_ref(handle); /* the engine's reference */
        error = rl_lock_start_multi(&handle->shard->engine, &handle->lock, params, storage,
                                    keys.list, keys.count, words);
        if (error != REDLOCK_OK)
            rl_handle_drop(handle);
        rl_names_keys_done(handle, &keys);
        (void)rl_dispatch_take(handle->shard->rl);
    }
    if (error != REDLOCK_OK)
        rl_handle_drop(handle);
    return error;
}

/* Checks that a new operation may start: the shutdown has not begun, and the cancel object, if
 * there is one, belongs to this client and is not triggered. Returns REDLOCK_OK; or ECLOSED, EINVAL
 * or ECANCELED with a report in call->ret_refusal. */
static int check_call(struct redlock_client *rl, const struct rl_call *call)
{
    if (rl->draining)
        return rl_report_refuse(rl, call->ret_refusal, REDLOCK_ECLOSED, "client is shutting down");
    if (call->cancel != NULL && call->cancel->rl != rl)
        return rl_report_refuse(
            rl, call->ret_refusal, REDLOCK_EINVAL,
            "the cancel object belongs to another client: use one of this client");
    if (rl_cancel_is_triggered(call->cancel))
        return rl_report_refuse(rl, call->ret_refusal, REDLOCK_ECANCELED,
                                "the cancel object was triggered before the call");
    return REDLOCK_OK;
}

/* Starts the callback thread if the call has a completion callback. Returns REDLOCK_OK; or ESYS
 * with a report in call->ret_refusal. */
static int prepare_callbacks(struct redlock_client *rl, const struct rl_call *call, bool has_events)
{
    if (call->fn == NULL && !has_events)
        return REDLOCK_OK;
    if (rl_callbacks_start(rl) == REDLOCK_OK)
        return REDLOCK_OK;
    return rl_report_refuse(rl, call->ret_refusal, REDLOCK_ESYS,
                            "there is no thread for callbacks: see ulimit -u");
}

/* Checks the arguments and starts to acquire `resource`; if `token` is not NULL, starts to adopt
 * the lock that has it. *ret_handle receives the handle, without a further reference. Returns
 * REDLOCK_OK; or an error, and then nothing was started. */
int rl_start_acquire(struct redlock_client *rl, const char *resource, const char *token,
                     const redlock_opts_t *opts, const struct rl_call *call,
                     struct redlock_lock **ret_handle)
{
    redlock_opts_t own;
    struct rl_names names;
    struct rl_shard *shard;
    struct rl_call with_cancel = *call;
    redlock_report_t **refusal = call->ret_refusal;

    int error = rl_check_opts(rl, opts, &own, refusal);
    if (error == REDLOCK_OK)
        error = rl_names_collect(rl, resource, own.also, own.also_count, &names, refusal);
    if (error == REDLOCK_OK)
        error = rl_shards_find(rl, &names, &shard, refusal);
    if (error == REDLOCK_OK && token != NULL)
        error = rl_check_token(rl, token, refusal);
    if (error == REDLOCK_OK)
        error = rl_check_times(rl, &own, refusal);
    if (error == REDLOCK_OK)
        error = rl_check_fence(shard, &own, token != NULL, refusal);
    if (error == REDLOCK_OK)
        error = rl_permit_check(rl, resource, &own, token != NULL, refusal);
    if (error == REDLOCK_OK)
        error = rl_check_own_token(rl, &own, token != NULL, refusal);
    if (error == REDLOCK_OK)
        error = rl_names_check_keys(rl, &names, own.permits, refusal);
    if (error != REDLOCK_OK)
        return error;
    with_cancel.cancel = own.cancel;
    error = check_call(rl, &with_cancel);
    if (error == REDLOCK_OK)
        error = prepare_callbacks(rl, call, own.event_fn != NULL || own.event_end_fn != NULL);
    if (error != REDLOCK_OK)
        return error;
    bool adopt = token != NULL;
    struct rl_lease_params params =
        lease_params(shard, adopt ? RL_LEASE_ADOPT : RL_LEASE_ACQUIRE, &own);
    struct rl_storage storage = rl_storage_for(&params);
    struct redlock_lock *handle = rl_handle_new(shard, &names, &storage);
    if (handle == NULL)
        return REDLOCK_ENOMEM;
    handle->event_fn = own.event_fn;
    handle->event_end_fn = own.event_end_fn;
    handle->event_userdata = own.event_userdata;
    begin_op(&handle->op, adopt ? RL_OP_ADOPT : RL_OP_ACQUIRE, &with_cancel);
    *ret_handle = handle;
    return launch(handle, &params, &storage, adopt ? token : own.token);
}

/* Returns REDLOCK_OK if the lock is held and no operation runs on it, else EBUSY or ELOST. */
static int check_handle(struct redlock_lock *handle)
{
    if (handle->op.kind != RL_OP_NONE)
        return REDLOCK_EBUSY;
    return rl_dispatch_is_held(handle) ? REDLOCK_OK : REDLOCK_ELOST;
}

/* Starts to extend a held lock. `ttl_ms`: 0 for the TTL it was acquired with. Returns REDLOCK_OK,
 * EINVAL, EBUSY or ELOST; on an error nothing was started. */
int rl_start_extend(struct redlock_lock *handle, uint64_t ttl_ms, const struct rl_call *call)
{
    struct redlock_client *rl = handle->shard->rl;
    redlock_report_t **refusal = call->ret_refusal;

    int error = rl_check_ttl(rl, "ttl_ms", ttl_ms, ttl_ms == 0 ? 0 : REDLOCK_TTL_MS_MIN, refusal);
    if (error != REDLOCK_OK)
        return error;
    error = check_handle(handle);
    if (error != REDLOCK_OK)
        return rl_report_refuse(rl, refusal, error, "%s", redlock_strerror(error));
    error = prepare_callbacks(rl, call, false);
    if (error != REDLOCK_OK)
        return error;
    rl_handle_ref(handle);
    begin_op(&handle->op, RL_OP_EXTEND, call);
    rl_dispatch_event(handle, RL_EVENT_EXTEND, ttl_ms * RL_MS, 0);
    return REDLOCK_OK;
}

/* Starts to release a held lock. `keep`: its keys expire after `delay_ms` instead of being deleted
 * at once. If the lock was retained, only drops one of its users. Returns REDLOCK_OK, EINVAL, EBUSY
 * or ELOST; on an error nothing was started. */
int rl_start_release(struct redlock_lock *handle, bool keep, uint64_t delay_ms,
                     const struct rl_call *call)
{
    struct redlock_client *rl = handle->shard->rl;
    redlock_report_t **refusal = call->ret_refusal;
    int error = REDLOCK_OK;

    if (keep)
        error = rl_check_ttl(rl, "delay_ms", delay_ms, 0, refusal);
    if (error != REDLOCK_OK)
        return error;
    error = check_handle(handle);
    if (error != REDLOCK_OK)
        return rl_report_refuse(rl, refusal, error, "%s", redlock_strerror(error));
    error = prepare_callbacks(rl, call, false);
    if (error != REDLOCK_OK)
        return error;
    rl_handle_ref(handle);
    if (handle->retained != 0) {
        handle->retained--;
        begin_op(&handle->op, RL_OP_UNRETAIN, call);
        rl_dispatch_done(rl, handle, REDLOCK_OK);
        return REDLOCK_OK;
    }
    begin_op(&handle->op, RL_OP_RELEASE, call);
    uint8_t kind = keep && delay_ms > 0 ? RL_EVENT_SHORTEN : RL_EVENT_RELEASE;
    rl_dispatch_event(handle, kind, delay_ms * RL_MS, 0);
    return REDLOCK_OK;
}

/* Starts a release by token, an inspection or a break, as `kind` says (RL_OP_*), of `count`
 * resources. `token` is used by a release only. *ret_handle receives a new handle. Returns
 * REDLOCK_OK; or an error, and then nothing was started. */
int rl_start_query(struct redlock_client *rl, const char *const *resources, size_t count,
                   const char *token, uint8_t kind, const struct rl_call *call,
                   struct redlock_lock **ret_handle)
{
    redlock_report_t **refusal = call->ret_refusal;
    redlock_opts_t opts = redlock_opts(rl->config->max_ttl_ms);
    struct rl_names names;
    struct rl_shard *shard;

    if (resources == NULL || count == 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "no resource is given: name at least one");
    int error = rl_names_collect(rl, resources[0], resources + 1, count - 1, &names, refusal);
    if (error == REDLOCK_OK && kind == RL_OP_RELEASE_TOKEN)
        error = rl_check_token(rl, token, refusal);
    if (error == REDLOCK_OK && kind != RL_OP_INSPECT)
        error = rl_names_check_keys(rl, &names, 0, refusal);
    if (error == REDLOCK_OK)
        error = rl_shards_find(rl, &names, &shard, refusal);
    if (error == REDLOCK_OK)
        error = check_call(rl, call);
    if (error == REDLOCK_OK)
        error = prepare_callbacks(rl, call, false);
    if (error != REDLOCK_OK)
        return error;
    bool release = kind == RL_OP_RELEASE_TOKEN;
    struct rl_lease_params params =
        lease_params(shard, release ? RL_LEASE_RELEASE : RL_LEASE_INSPECT, &opts);
    struct rl_storage storage = rl_storage_for(&params);
    struct redlock_lock *handle = rl_handle_new(shard, &names, &storage);
    if (handle == NULL)
        return REDLOCK_ENOMEM;
    begin_op(&handle->op, kind, call);
    *ret_handle = handle;
    return launch(handle, &params, &storage, release ? token : NULL);
}

/* Starts to verify `subject`, a held lock. *ret_handle receives the handle of the verification,
 * which references `subject`. Returns REDLOCK_OK; or an error, and then nothing was started. */
int rl_start_verify(struct redlock_lock *subject, const struct rl_call *call,
                    struct redlock_lock **ret_handle)
{
    struct rl_shard *shard = subject->shard;
    struct redlock_client *rl = shard->rl;
    const redlock_opts_t opts = redlock_opts(rl->config->max_ttl_ms);
    struct rl_names names = {.count = subject->names};

    int error = check_call(rl, call);
    if (error != REDLOCK_OK)
        return error;
    if (!rl_dispatch_is_held(subject) || redlock_lock_check(subject, 0) != REDLOCK_OK)
        return rl_report_refuse(rl, call->ret_refusal, REDLOCK_ELOST, "%s",
                                redlock_strerror(REDLOCK_ELOST));
    error = prepare_callbacks(rl, call, false);
    if (error != REDLOCK_OK)
        return error;
    for (unsigned i = 0; i < names.count; i++) {
        names.list[i] = redlock_lock_resource(subject, i);
        names.lens[i] = (uint16_t)strlen(names.list[i]);
    }
    struct rl_lease_params params = lease_params(shard, RL_LEASE_VERIFY, &opts);
    struct rl_storage storage = rl_storage_for(&params);
    struct redlock_lock *handle = rl_handle_new(shard, &names, &storage);
    if (handle == NULL)
        return REDLOCK_ENOMEM;
    rl_handle_ref(subject);
    handle->subject = subject;
    begin_op(&handle->op, RL_OP_VERIFY, call);
    *ret_handle = handle;
    rl_handle_ref(handle); /* the engine's reference */
    error = rl_lock_start_verify(&shard->engine, &handle->lock, &params, &storage, &subject->lock);
    (void)rl_dispatch_take(rl);
    if (error != REDLOCK_OK) {
        rl_handle_drop(handle);
        rl_handle_drop(handle);
    }
    return error;
}

/* Starts the initialization of the fence records of all shards, which ends after `wait_ns` at the
 * latest. First allocates what each shard needs, so that it does not start in some shards only.
 * Returns false without memory. */
static bool init_records(struct redlock_client *rl, uint64_t wait_ns)
{
    for (unsigned i = 1; i < rl->shard_count; i++) {
        if (!rl_records_start(&rl->shards[i].engine))
            return false;
    }
    bool begun = true;
    for (unsigned i = 0; begun && i < rl->shard_count; i++)
        begun = rl_records_init(&rl->shards[i].engine, wait_ns);
    return begun;
}

/* Starts an operation on the whole client: RL_OP_READY, RL_OP_SHUTDOWN or RL_OP_FENCE_INIT
 * (`kind`). It ends after `budget_ms` at the latest (REDLOCK_WAIT_FOREVER: no limit). Returns
 * REDLOCK_OK; or an error, and then nothing was started. */
int rl_start_client_op(struct redlock_client *rl, uint8_t kind, uint64_t budget_ms,
                       const struct rl_call *call)
{
    int error = kind == RL_OP_SHUTDOWN ? REDLOCK_OK : check_call(rl, call);

    if (error == REDLOCK_OK)
        error = rl_check_duration(rl, kind == RL_OP_SHUTDOWN ? "budget_ms" : "wait_ms", budget_ms,
                                  true, call->ret_refusal);
    if (error == REDLOCK_OK)
        error = prepare_callbacks(rl, call, false);
    if (error == REDLOCK_OK && kind == RL_OP_FENCE_INIT && rl_review_has(rl, kind))
        error = REDLOCK_EBUSY; /* two would share the state of the records */
    if (error != REDLOCK_OK)
        return error;
    struct rl_client_op *item = rl_alloc(&rl->mem, sizeof *item);
    if (item == NULL)
        return REDLOCK_ENOMEM;
    if (kind == RL_OP_FENCE_INIT && !init_records(rl, ms_to_ns(budget_ms))) {
        rl_free(&rl->mem, item);
        return REDLOCK_ENOMEM;
    }
    begin_op(&item->op, kind, call);
    item->until = rl_later(rl_client_now(rl), ms_to_ns(budget_ms));
    rl_review_add(rl, item);
    return REDLOCK_OK;
}
