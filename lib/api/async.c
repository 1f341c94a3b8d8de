/* SPDX-License-Identifier: MIT
 * Public functions that do not block. Each enters the client (locks its mutex and reads the
 * clocks), starts an operation with an rl_start_ function of start.c, and leaves the client (sends
 * and releases the mutex). The result goes to the callback `fn`, with `userdata`. sync.c has the
 * blocking form of each function. */
#include "api/handle.h"
#include "api/operation.h"
#include "api/opts.h"

/* Starts to acquire a lock; if `token` is not NULL, starts to adopt the lock that has it. The
 * result goes to `fn`. Returns REDLOCK_OK; or an error, and then the end callback of `opts` has run
 * and `fn` does not run. */
static int acquire_start(redlock_t *rl, const char *resource, const char *token,
                         const redlock_opts_t *opts, redlock_done_fn fn, void *userdata)
{
    const struct rl_call call = {.fn = fn, .userdata = userdata};
    struct redlock_lock *handle;

    int error = rl != NULL && fn != NULL ? rl_client_enter(rl) : REDLOCK_EINVAL;
    if (error == REDLOCK_OK) {
        error = rl_start_acquire(rl, resource, token, opts, &call, &handle);
        rl_client_leave(rl);
    }
    if (error != REDLOCK_OK)
        rl_opts_refused(opts);
    return error;
}

/* Public function: starts to acquire a lock. On success `fn` receives the lock. Returns REDLOCK_OK,
 * and then `fn` runs once, later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_acquire_start(redlock_t *rl, const char *resource,
                                      const redlock_opts_t *opts, redlock_done_fn fn,
                                      void *userdata)
{
    return acquire_start(rl, resource, NULL, opts, fn, userdata);
}

/* Public function: starts to adopt the lock that has `token`. On success `fn` receives the lock.
 * Returns REDLOCK_OK, and then `fn` runs once, later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_adopt_start(redlock_t *rl, const char *resource, const char *token,
                                    const redlock_opts_t *opts, redlock_done_fn fn, void *userdata)
{
    return acquire_start(rl, resource, token != NULL ? token : "", opts, fn, userdata);
}

/* Public function: starts to extend a held lock with a TTL of `ttl_ms`; 0: the TTL of the
 * acquisition. Returns REDLOCK_OK, and then `fn` runs once, later; or an error, and then `fn` does
 * not run. */
REDLOCK_API int redlock_extend_start(redlock_lock_t *handle, uint64_t ttl_ms, redlock_done_fn fn,
                                     void *userdata)
{
    const struct rl_call call = {.fn = fn, .userdata = userdata};

    if (handle == NULL || fn == NULL)
        return REDLOCK_EINVAL;
    int error = rl_client_enter(handle->shard->rl);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_extend(handle, ttl_ms, &call);
    rl_client_leave(handle->shard->rl);
    return error;
}

/* Starts to release a lock. `keep`: its keys expire after `delay_ms` instead of being deleted. `fn`
 * may be NULL. Returns REDLOCK_OK or an error. */
static int release_start(redlock_lock_t *handle, bool keep, uint64_t delay_ms, redlock_done_fn fn,
                         void *userdata)
{
    const struct rl_call call = {.fn = fn, .userdata = userdata};

    if (handle == NULL)
        return REDLOCK_EINVAL;
    int error = rl_client_enter(handle->shard->rl);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_release(handle, keep, delay_ms, &call);
    rl_client_leave(handle->shard->rl);
    return error;
}

/* Public function: starts to release a held lock. `fn` may be NULL. Returns REDLOCK_OK, and then
 * `fn` runs once, later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_release_start(redlock_lock_t *handle, redlock_done_fn fn, void *userdata)
{
    return release_start(handle, false, 0, fn, userdata);
}

/* Public function: starts to release a held lock whose keys stay for `delay_ms` more. `fn` may be
 * NULL. Returns REDLOCK_OK, and then `fn` runs once, later; or an error, and then `fn` does not
 * run. */
REDLOCK_API int redlock_release_after_start(redlock_lock_t *handle, uint64_t delay_ms,
                                            redlock_done_fn fn, void *userdata)
{
    return release_start(handle, true, delay_ms, fn, userdata);
}

/* Starts a release by token, an inspection or a break, as `kind` says (RL_OP_*), of `count`
 * resources. `token`: of a release; else NULL. `cancel`: ends the operation; NULL: none. Returns
 * REDLOCK_OK or an error. */
static int query_start(redlock_t *rl, const char *const *resources, size_t count, const char *token,
                       uint8_t kind, redlock_cancel_t *cancel, redlock_done_fn fn, void *userdata)
{
    const struct rl_call call = {.fn = fn, .userdata = userdata, .cancel = cancel};
    struct redlock_lock *handle;

    if (rl == NULL || fn == NULL)
        return REDLOCK_EINVAL;
    int error = rl_client_enter(rl);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_query(rl, resources, count, token, kind, &call, &handle);
    rl_client_leave(rl);
    return error;
}

/* Public function: starts to release the lock on one resource that has `token`. Returns REDLOCK_OK,
 * and then `fn` runs once, later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_release_token_start(redlock_t *rl, const char *resource, const char *token,
                                            redlock_cancel_t *cancel, redlock_done_fn fn,
                                            void *userdata)
{
    return query_start(rl, &resource, 1, token, RL_OP_RELEASE_TOKEN, cancel, fn, userdata);
}

/* Public function: starts to release the lock on `count` resources that has `token`. Returns
 * REDLOCK_OK, and then `fn` runs once, later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_release_token_all_start(redlock_t *rl, const char *const *resources,
                                                size_t count, const char *token,
                                                redlock_cancel_t *cancel, redlock_done_fn fn,
                                                void *userdata)
{
    return query_start(rl, resources, count, token, RL_OP_RELEASE_TOKEN, cancel, fn, userdata);
}

/* Public function: starts to inspect a resource. The result is in the report that `fn` gets.
 * Returns REDLOCK_OK, and then `fn` runs once, later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_inspect_start(redlock_t *rl, const char *resource, redlock_cancel_t *cancel,
                                      redlock_done_fn fn, void *userdata)
{
    return query_start(rl, &resource, 1, NULL, RL_OP_INSPECT, cancel, fn, userdata);
}

/* Public function: starts to break the lock on a resource. Returns REDLOCK_OK, and then `fn` runs
 * once, later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_break_start(redlock_t *rl, const char *resource, redlock_cancel_t *cancel,
                                    redlock_done_fn fn, void *userdata)
{
    return query_start(rl, &resource, 1, NULL, RL_OP_BREAK, cancel, fn, userdata);
}

/* Public function: starts to verify a held lock. Returns REDLOCK_OK, and then `fn` runs once,
 * later; or an error, and then `fn` does not run. */
REDLOCK_API int redlock_verify_start(redlock_lock_t *handle, redlock_cancel_t *cancel,
                                     redlock_done_fn fn, void *userdata)
{
    const struct rl_call call = {.fn = fn, .userdata = userdata, .cancel = cancel};
    struct redlock_lock *verification;

    if (handle == NULL || fn == NULL)
        return REDLOCK_EINVAL;
    struct redlock_client *rl = handle->shard->rl;
    int error = rl_client_enter(rl);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_verify(handle, &call, &verification);
    rl_client_leave(rl);
    return error;
}

/* Starts an operation on the whole client: RL_OP_READY, RL_OP_SHUTDOWN or RL_OP_FENCE_INIT
 * (`kind`). It ends after `budget_ms` at the latest. `cancel`: ends the operation; NULL: none.
 * Returns REDLOCK_OK or an error. */
static int client_op_start(redlock_t *rl, uint8_t kind, uint64_t budget_ms,
                           redlock_cancel_t *cancel, redlock_done_fn fn, void *userdata)
{
    const struct rl_call call = {.fn = fn, .userdata = userdata, .cancel = cancel};

    if (rl == NULL || fn == NULL)
        return REDLOCK_EINVAL;
    int error = rl_client_enter(rl);
    if (error != REDLOCK_OK)
        return error;
    error = rl_start_client_op(rl, kind, budget_ms, &call);
    rl_client_leave(rl);
    return error;
}

/* Public function: starts to wait, for at most `wait_ms`, until a quorum of servers is connected
 * and eligible in each shard. Returns REDLOCK_OK, and then `fn` runs once, later; or an error, and
 * then `fn` does not run. */
REDLOCK_API int redlock_wait_ready_start(redlock_t *rl, uint64_t wait_ms, redlock_cancel_t *cancel,
                                         redlock_done_fn fn, void *userdata)
{
    return client_op_start(rl, RL_OP_READY, wait_ms, cancel, fn, userdata);
}

/* Public function: starts to take the fence records of all servers that reply into use, within
 * `wait_ms`. Returns REDLOCK_OK, and then `fn` runs once, later; or an error, and then `fn` does
 * not run. */
REDLOCK_API int redlock_init_fence_records_start(redlock_t *rl, uint64_t wait_ms,
                                                 redlock_cancel_t *cancel, redlock_done_fn fn,
                                                 void *userdata)
{
    return client_op_start(rl, RL_OP_FENCE_INIT, wait_ms, cancel, fn, userdata);
}

/* Public function: starts to shut the client down within `budget_ms`: releases all locks and sends
 * the pending undos. Returns REDLOCK_OK, and then `fn` runs once, later; or an error, and then `fn`
 * does not run. */
REDLOCK_API int redlock_shutdown_start(redlock_t *rl, uint64_t budget_ms, redlock_done_fn fn,
                                       void *userdata)
{
    return client_op_start(rl, RL_OP_SHUTDOWN, budget_ms, NULL, fn, userdata);
}
