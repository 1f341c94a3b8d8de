/* SPDX-License-Identifier: MIT
 * Reviews operations after each tick. A client operation (struct rl_client_op) works on the whole
 * client: wait until it is ready, shut it down, or initialize fence records. A review ends those
 * that are complete, cancelled or out of time. It also cancels the operations on locks whose cancel
 * object was triggered. The client's mutex is held in all functions. */
#include "api/review.h"

#include "api/client.h"
#include "api/handle.h"

/* Ends the client operation `item`, which is not in rl->client_ops any more, with `status`: wakes
 * the thread that waits for it and frees `item`, or queues its callback. */
static void finish(struct redlock_client *rl, struct rl_client_op *item, int status)
{
    struct rl_waiter *waiter = item->op.waiter;

    item->op.status = status;
    if (waiter == NULL) {
        rl_dispatch_client_op(rl, item);
        return;
    }
    if (item->op.cancel != NULL)
        rl_cancel_drop(item->op.cancel);
    rl_free(&rl->mem, item);
    rl_leader_complete(rl, waiter, status);
}

/* Returns the result of a shutdown: REDLOCK_OK if all locks are released and all undos done, ENOMEM
 * if an undo was dropped for lack of memory, ENOQUORUM if the time limit is reached (`late`); or 1
 * if the shutdown goes on. */
static int judge_shutdown(const struct redlock_client *rl, bool late)
{
    bool settled = true, dropped = false;

    for (unsigned i = 0; i < rl->shard_count; i++) {
        settled = settled && rl_engine_is_settled(&rl->shards[i].engine);
        dropped = dropped || rl_engine_has_dropped(&rl->shards[i].engine);
    }
    if (settled)
        return dropped ? REDLOCK_ENOMEM : REDLOCK_OK;
    return late ? REDLOCK_ENOQUORUM : 1;
}

/* Returns the result of a client operation of this `kind` (RL_OP_READY or RL_OP_FENCE_INIT) on the
 * shard of `engine`, an enum redlock_error; or 1 if the operation goes on. `late`: its time limit
 * is reached. */
static int judge_shard(const struct rl_engine *engine, uint8_t kind, bool late)
{
    int status;

    if (rl_engine_has_duplicate(engine))
        return REDLOCK_EDUPLICATE;
    if (kind == RL_OP_FENCE_INIT) {
        bool done = rl_records_init_is_done(engine, &status);
        return done || late ? status : 1;
    }
    if (rl_engine_is_ready(engine))
        return REDLOCK_OK;
    return late ? rl_engine_unready_status(engine) : 1;
}

/* Returns the result of the client operation `item`, an enum redlock_error; or 1 if the operation
 * goes on. */
static int judge(const struct redlock_client *rl, const struct rl_client_op *item)
{
    bool late = rl_remaining_ns(item->until, rl_client_now(rl)) == 0;

    if (item->op.kind == RL_OP_SHUTDOWN)
        return judge_shutdown(rl, late);
    if (rl_cancel_is_triggered(item->op.cancel))
        return REDLOCK_ECANCELED;
    if (rl->draining)
        return REDLOCK_ECLOSED;
    /* Succeeds once every shard has succeeded. A wait for readiness fails with the first shard. */
    int failed = REDLOCK_OK;
    bool pending = false;
    for (unsigned i = 0; i < rl->shard_count; i++) {
        int status = judge_shard(&rl->shards[i].engine, item->op.kind, late);
        if (status == 1)
            pending = true;
        else if (failed == REDLOCK_OK)
            failed = status;
    }
    bool ended = !pending || (failed != REDLOCK_OK && item->op.kind == RL_OP_READY);
    return ended ? failed : 1;
}

/* Adds a client operation, which the next turn of the loop reviews. Takes ownership of `item`. A
 * shutdown begins at once. */
void rl_review_add(struct redlock_client *rl, struct rl_client_op *item)
{
    item->next = rl->client_ops;
    rl->client_ops = item;
    if (item->op.kind == RL_OP_SHUTDOWN)
        rl_review_begin_shutdown(rl);
    rl_io_wake(&rl->io); /* reviewed by the next turn of the loop */
}

bool rl_review_has(const struct redlock_client *rl, uint8_t kind)
{
    const struct rl_client_op *item = rl->client_ops;

    while (item != NULL && item->op.kind != kind)
        item = item->next;
    return item != NULL;
}

/* Ends the client operations that have a result (judge()). */
static void review_client_ops(struct redlock_client *rl)
{
    struct rl_client_op **at = &rl->client_ops;

    while (*at != NULL) {
        struct rl_client_op *item = *at;
        int status = judge(rl, item);
        if (status == 1) {
            at = &item->next;
            continue;
        }
        *at = item->next;
        finish(rl, item, status);
    }
}

/* Ends the operations on locks of one shard whose cancel object was triggered. */
static void review_cancels(struct rl_engine *engine)
{
    struct rl_lock *next;

    for (struct rl_lock *item = rl_engine_first_lock(engine); item != NULL; item = next) {
        struct redlock_lock *handle = (struct redlock_lock *)item;
        next = rl_engine_next_lock(item);
        bool hit = handle->op.kind != RL_OP_NONE && !handle->op.done &&
                   rl_cancel_is_triggered(handle->op.cancel);
        if (hit)
            rl_lock_event(engine, item, RL_EVENT_CANCEL, 0, REDLOCK_ECANCELED);
    }
}

/* Ends the operations whose cancel object was triggered, and the client operations that have a
 * result. Called after each tick. */
void rl_review(struct redlock_client *rl)
{
    bool canceled = atomic_exchange(&rl->cancels, false);

    for (unsigned i = 0; canceled && i < rl->shard_count; i++)
        review_cancels(&rl->shards[i].engine);
    (void)rl_dispatch_take(rl);
    if (rl->client_ops != NULL)
        review_client_ops(rl);
}

/* Ends all client operations with `status`; a shutdown ends with REDLOCK_ENOQUORUM instead. */
void rl_review_end_all(struct redlock_client *rl, int status)
{
    while (rl->client_ops != NULL) {
        struct rl_client_op *item = rl->client_ops;
        rl->client_ops = item->next;
        finish(rl, item, item->op.kind == RL_OP_SHUTDOWN ? REDLOCK_ENOQUORUM : status);
    }
}

/* Frees a list of client operations in a forked child, from `item` (NULL: none) on. Drops the
 * references to their cancel objects, and those of their waiting threads to the client. */
void rl_review_abandon(struct redlock_client *rl, struct rl_client_op *item)
{
    while (item != NULL) {
        struct rl_client_op *next = item->next;
        if (item->op.cancel != NULL)
            rl_cancel_drop(item->op.cancel);
        if (item->op.waiter != NULL)
            rl_client_drop(rl); /* the reference of the thread that waited in the parent */
        rl_free(&rl->mem, item);
        item = next;
    }
}

/* Returns the earliest time limit of the client operations, in ns on the boot clock; RL_NEVER if
 * there is none. */
uint64_t rl_review_wake_ns(const struct redlock_client *rl)
{
    uint64_t wake_ns = RL_NEVER;

    for (const struct rl_client_op *item = rl->client_ops; item != NULL; item = item->next)
        wake_ns = rl_min_u64(wake_ns, item->until.boot_ns);
    return wake_ns;
}

/* Makes the poller return at rl_review_wake_ns() at the latest. */
void rl_review_arm(struct redlock_client *rl)
{
    if (rl->client_ops != NULL)
        rl_io_wake_at(&rl->io, rl_review_wake_ns(rl));
}

/* Releases a held lock for which the user did not call redlock_release(). First ends a running
 * extension with `status`, so that it does not receive the result of the release. If `status` is
 * ECLOSED, also makes the descriptor of redlock_lock_fd() readable. */
void rl_review_release(struct redlock_client *rl, struct redlock_lock *handle, int status)
{
    if (handle->op.kind == RL_OP_EXTEND)
        rl_dispatch_done(rl, handle, status);
    if (status == REDLOCK_ECLOSED)
        rl_handle_signal_lost(handle); /* the user still relies on the lock */
    rl_lock_event(&handle->shard->engine, &handle->lock, RL_EVENT_RELEASE, 0, 0);
}

/* Ends the acquisitions of one shard with ECLOSED, and releases its held locks. */
static void end_locks(struct redlock_client *rl, struct rl_engine *engine)
{
    struct rl_lock *next;

    for (struct rl_lock *item = rl_engine_first_lock(engine); item != NULL; item = next) {
        next = rl_engine_next_lock(item);
        if (rl_lock_is_unacquired(item))
            rl_lock_event(engine, item, RL_EVENT_CANCEL, 0, REDLOCK_ECLOSED);
        else if (rl_lock_is_held(item))
            rl_review_release(rl, (struct redlock_lock *)item, REDLOCK_ECLOSED);
    }
}

/* Begins the shutdown: sets rl->draining, so that no new operation starts, and ends the locks of
 * all shards. Does nothing if the shutdown has begun. */
void rl_review_begin_shutdown(struct redlock_client *rl)
{
    if (rl->draining)
        return;
    rl->draining = true;
    for (unsigned i = 0; i < rl->shard_count; i++)
        end_locks(rl, &rl->shards[i].engine);
    (void)rl_dispatch_take(rl);
}
