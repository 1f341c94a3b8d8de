/* SPDX-License-Identifier: MIT
 * Public functions that block. Each enters the client (locks its mutex and reads the clocks),
 * starts an operation with an rl_start_ function of start.c, waits until the operation is done, and
 * leaves the client (sends and releases the mutex). A struct rl_waiter on the stack stands for the
 * waiting thread and receives the result. The waiting thread creates the report itself. It also
 * checks the deadline of a new lock again when it wakes up, because the lock may have expired since
 * the quorum was reached. async.c has the forms that do not block, of all but redlock_with(). */
#include "api/handle.h"
#include "api/operation.h"
#include "api/opts.h"
#include "api/report.h"
#include "platform/callback.h"

/* Sends what was queued and blocks until the operation of the waiter is done. Mutex held, but
 * released during the wait. */
static void sleep_until_done(struct redlock_client *rl, struct rl_waiter *waiter)
{
    rl_client_send(rl);
    rl_leader_wait(rl, waiter);
}

/* Waits for the end of an acquisition; waiter->status receives the result. A granted lock must
 * still be valid when this thread wakes up; if not, the engine continues with the next attempt and
 * this function waits again. If the client was closed or the lock has ended meanwhile, the status
 * becomes REDLOCK_ECLOSED or REDLOCK_ETOOSLOW. Mutex held; it is released while the function waits.
 */
static void confirm(struct redlock_client *rl, struct redlock_lock *handle,
                    struct rl_waiter *waiter)
{
    for (;;) {
        sleep_until_done(rl, waiter);
        if (waiter->status != REDLOCK_OK)
            return;
        if (rl->closed || !rl_lock_is_active(&handle->lock)) {
            rl_dispatch_disown(rl, handle);
            return;
        }
        rl_engine_refresh(&handle->shard->engine);
        waiter->done = false;
        if (rl_dispatch_confirm(rl, handle)) {
            waiter->done = true;
            return; /* the status says whether the lock is confirmed or the acquisition failed */
        }
    }
}

/* Removes the ended operation from the handle. Creates its report in *ret_report, if `ret_report`
 * is not NULL. Returns the result, an enum redlock_error. The operation's reference to the handle
 * passes to the caller. Mutex held. */
static int finish(struct redlock_client *rl, struct redlock_lock *handle, struct rl_waiter *waiter,
                  redlock_report_t **ret_report)
{
    int status = waiter->status;
    redlock_cancel_t *cancel = handle->op.cancel;

    if (ret_report != NULL)
        *ret_report = rl_report_new(rl, handle, status);
    handle->op = (struct rl_op){.kind = RL_OP_NONE};
    if (cancel != NULL)
        rl_cancel_drop(cancel);
    return status;
}

/* Enters the client for a blocking call and adds a reference to the client. Returns REDLOCK_OK with
 * the mutex held; or an error, and then *ret_report receives a constant report or NULL.
 * leave_blocking() ends the call. */
static int enter_blocking(struct redlock_client *rl, redlock_report_t **ret_report)
{
    if (ret_report != NULL)
        *ret_report = NULL;
    if (rl == NULL)
        return REDLOCK_EINVAL;
    int error = rl_client_enter_blocking(rl);
    if (error == REDLOCK_OK)
        rl_client_ref(rl); /* redlock_free() may be called while this thread sleeps */
    else if (ret_report != NULL)
        *ret_report = rl_report_of_entry(error);
    return error;
}

/* Leaves the client: sends, releases the mutex, and drops the reference of enter_blocking(). */
static void leave_blocking(struct redlock_client *rl)
{
    rl_client_leave(rl);
    rl_client_drop(rl);
}

/* Acquires a lock; if `token` is not NULL, adopts the lock that has it. On success *ret_lock
 * receives the handle, which the user owns. Returns REDLOCK_OK or an error. If nothing was started,
 * the end callback of `opts` has run. *ret_report, if ret_report is not NULL, receives the
 * report. */
static int acquire(redlock_t *rl, const char *resource, const char *token,
                   const redlock_opts_t *opts, redlock_lock_t **ret_lock,
                   redlock_report_t **ret_report)
{
    struct rl_waiter waiter = {.done = false};
    const struct rl_call call = {.waiter = &waiter, .ret_refusal = ret_report};
    struct redlock_lock *handle;

    int error = enter_blocking(rl, ret_report);
    if (error != REDLOCK_OK) {
        rl_opts_refused(opts);
        return error;
    }
    if (ret_lock == NULL)
        error = rl_report_refuse(rl, ret_report, REDLOCK_EINVAL, "ret_lock is NULL");
    else
        error = rl_start_acquire(rl, resource, token, opts, &call, &handle);
    bool started = error == REDLOCK_OK;
    if (started) {
        confirm(rl, handle, &waiter);
        error = finish(rl, handle, &waiter, ret_report);
        if (error == REDLOCK_OK) {
            /* The operation's reference becomes the user's. */
            handle->received = handle->owned_by_user = true;
            rl_dispatch_acquired(rl, handle);
            *ret_lock = handle;
        } else {
            rl_handle_drop(handle);
        }
    }
    leave_blocking(rl);
    if (!started)
        rl_opts_refused(opts);
    return error;
}

/* Public function: acquires a lock on `resource` and waits for it as long as opts.wait_ms says. On
 * success *ret_lock receives the handle. *ret_report, if ret_report is not NULL, receives the
 * report. */
REDLOCK_API int redlock_acquire(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                                redlock_lock_t **ret_lock, redlock_report_t **ret_report)
{
    return acquire(rl, resource, NULL, opts, ret_lock, ret_report);
}

/* Public function: adopts the lock on `resource` that has `token`. On success *ret_lock receives
 * the handle. *ret_report, if ret_report is not NULL, receives the report. */
REDLOCK_API int redlock_adopt(redlock_t *rl, const char *resource, const char *token,
                              const redlock_opts_t *opts, redlock_lock_t **ret_lock,
                              redlock_report_t **ret_report)
{
    return acquire(rl, resource, token != NULL ? token : "", opts, ret_lock, ret_report);
}

/* Ends a blocking call on `handle`, whose start has returned `error`: if the operation was started,
 * waits for its result and drops the operation's reference to the handle; leaves the client in any
 * case. Returns the result. */
static int wait_on_handle(struct redlock_lock *handle, struct rl_waiter *waiter, int error,
                          redlock_report_t **ret_report)
{
    struct redlock_client *rl = handle->shard->rl;

    if (error == REDLOCK_OK) {
        sleep_until_done(rl, waiter);
        error = finish(rl, handle, waiter, ret_report);
        rl_handle_drop(handle);
    }
    leave_blocking(rl);
    return error;
}

/* Public function: extends a held lock with a TTL of `ttl_ms`; 0: the TTL of the acquisition.
 * *ret_report, if ret_report is not NULL, receives the report. */
REDLOCK_API int redlock_extend(redlock_lock_t *handle, uint64_t ttl_ms,
                               redlock_report_t **ret_report)
{
    struct rl_waiter waiter = {.done = false};
    const struct rl_call call = {.waiter = &waiter, .ret_refusal = ret_report};

    int error = enter_blocking(handle != NULL ? handle->shard->rl : NULL, ret_report);
    if (error != REDLOCK_OK)
        return error;
    return wait_on_handle(handle, &waiter, rl_start_extend(handle, ttl_ms, &call), ret_report);
}

/* Releases a held lock; a lock with several users only loses one of them. `keep`: its keys expire
 * after `delay_ms` instead of being deleted. Returns REDLOCK_OK or an error. *ret_report, if
 * ret_report is not NULL, receives the report. */
static int release(redlock_lock_t *handle, bool keep, uint64_t delay_ms,
                   redlock_report_t **ret_report)
{
    struct rl_waiter waiter = {.done = false};
    const struct rl_call call = {.waiter = &waiter, .ret_refusal = ret_report};

    int error = enter_blocking(handle != NULL ? handle->shard->rl : NULL, ret_report);
    if (error != REDLOCK_OK)
        return error;
    return wait_on_handle(handle, &waiter, rl_start_release(handle, keep, delay_ms, &call),
                          ret_report);
}

/* Public function: releases a held lock. The handle stays the caller's. *ret_report, if ret_report
 * is not NULL, receives the report. */
REDLOCK_API int redlock_release(redlock_lock_t *handle, redlock_report_t **ret_report)
{
    return release(handle, false, 0, ret_report);
}

/* Public function: releases a held lock whose keys stay for `delay_ms` more. *ret_report, if
 * ret_report is not NULL, receives the report. */
REDLOCK_API int redlock_release_after(redlock_lock_t *handle, uint64_t delay_ms,
                                      redlock_report_t **ret_report)
{
    return release(handle, true, delay_ms, ret_report);
}

/* Runs a release by token, an inspection or a break, as `kind` says (RL_OP_*), of `count`
 * resources. `token`: of a release; else NULL. Returns REDLOCK_OK or an error. *ret_report, if
 * ret_report is not NULL, receives the report. */
static int query(redlock_t *rl, const char *const *resources, size_t count, const char *token,
                 uint8_t kind, redlock_report_t **ret_report)
{
    struct rl_waiter waiter = {.done = false};
    const struct rl_call call = {.waiter = &waiter, .ret_refusal = ret_report};
    struct redlock_lock *handle;

    int error = enter_blocking(rl, ret_report);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_query(rl, resources, count, token, kind, &call, &handle);
    if (error != REDLOCK_OK) {
        leave_blocking(rl);
        return error;
    }
    return wait_on_handle(handle, &waiter, error, ret_report);
}

/* Public function: releases the lock on one resource that has `token`. *ret_report, if ret_report
 * is not NULL, receives the report. */
REDLOCK_API int redlock_release_token(redlock_t *rl, const char *resource, const char *token,
                                      redlock_report_t **ret_report)
{
    return query(rl, &resource, 1, token, RL_OP_RELEASE_TOKEN, ret_report);
}

/* Public function: releases the lock on `count` resources that has `token`. *ret_report, if
 * ret_report is not NULL, receives the report. */
REDLOCK_API int redlock_release_token_all(redlock_t *rl, const char *const *resources, size_t count,
                                          const char *token, redlock_report_t **ret_report)
{
    return query(rl, resources, count, token, RL_OP_RELEASE_TOKEN, ret_report);
}

/* Public function: inspects a resource. The result is in the report. *ret_report, if ret_report is
 * not NULL, receives the report. */
REDLOCK_API int redlock_inspect(redlock_t *rl, const char *resource, redlock_report_t **ret_report)
{
    return query(rl, &resource, 1, NULL, RL_OP_INSPECT, ret_report);
}

/* Public function: breaks the lock on a resource. *ret_report, if ret_report is not NULL, receives
 * the report. */
REDLOCK_API int redlock_break(redlock_t *rl, const char *resource, redlock_report_t **ret_report)
{
    return query(rl, &resource, 1, NULL, RL_OP_BREAK, ret_report);
}

/* Public function: verifies a held lock. Returns REDLOCK_OK if a majority of the servers has it.
 * *ret_report, if ret_report is not NULL, receives the report. */
REDLOCK_API int redlock_verify(redlock_lock_t *handle, redlock_report_t **ret_report)
{
    struct rl_waiter waiter = {.done = false};
    const struct rl_call call = {.waiter = &waiter, .ret_refusal = ret_report};
    struct redlock_client *rl = handle != NULL ? handle->shard->rl : NULL;
    struct redlock_lock *verification;

    int error = enter_blocking(rl, ret_report);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_verify(handle, &call, &verification);
    if (error != REDLOCK_OK) {
        leave_blocking(rl);
        return error;
    }
    return wait_on_handle(verification, &waiter, error, ret_report);
}

/* Runs an operation on the whole client: RL_OP_READY, RL_OP_SHUTDOWN or RL_OP_FENCE_INIT (`kind`),
 * for at most `budget_ms`. Returns its result. */
static int client_op(redlock_t *rl, uint8_t kind, uint64_t budget_ms)
{
    struct rl_waiter waiter = {.done = false};
    const struct rl_call call = {.waiter = &waiter};

    int error = enter_blocking(rl, NULL);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_client_op(rl, kind, budget_ms, &call);
    if (error == REDLOCK_OK) {
        sleep_until_done(rl, &waiter);
        error = waiter.status;
    }
    leave_blocking(rl);
    return error;
}

/* Public function: waits, for at most `wait_ms`, until a quorum of servers is connected and
 * eligible in each shard. Returns REDLOCK_OK or an error. */
REDLOCK_API int redlock_wait_ready(redlock_t *rl, uint64_t wait_ms)
{
    return client_op(rl, RL_OP_READY, wait_ms);
}

/* Public function: takes the fence records of all servers that reply into use, within `wait_ms`.
 * Returns REDLOCK_OK or an error. */
REDLOCK_API int redlock_init_fence_records(redlock_t *rl, uint64_t wait_ms)
{
    return client_op(rl, RL_OP_FENCE_INIT, wait_ms);
}

/* Public function: shuts the client down within `budget_ms`: releases all locks and sends the
 * pending undos. Returns REDLOCK_OK or an error. */
REDLOCK_API int redlock_shutdown(redlock_t *rl, uint64_t budget_ms)
{
    return client_op(rl, RL_OP_SHUTDOWN, budget_ms);
}

/* Public function: acquires a lock, runs body(lock, userdata) on the calling thread, and releases
 * the lock. *ret_body receives the result of `body`. Returns the error of the acquisition, and then
 * `body` has not run; else the result of the release. *ret_report, if ret_report is not NULL,
 * receives the report. */
REDLOCK_API int redlock_with(redlock_t *rl, const char *resource, const redlock_opts_t *opts,
                             int *ret_body, redlock_report_t **ret_report, redlock_body_fn body,
                             void *userdata)
{
    redlock_lock_t *handle;
    int error;

    if (body == NULL) {
        error = enter_blocking(rl, ret_report);
        if (error == REDLOCK_OK) {
            error = rl_report_refuse(rl, ret_report, REDLOCK_EINVAL,
                                     "body is NULL: give the function that needs the lock");
            leave_blocking(rl);
        }
        rl_opts_refused(opts);
        return error;
    }
    error = redlock_acquire(rl, resource, opts, &handle, ret_report);
    if (error != REDLOCK_OK)
        return error;
    int result = rl_call_body(body, handle, userdata);
    if (ret_body != NULL)
        *ret_body = result;
    if (ret_report != NULL)
        redlock_report_free(*ret_report);
    error = redlock_release(handle, ret_report);
    redlock_lock_free(handle);
    return error;
}
