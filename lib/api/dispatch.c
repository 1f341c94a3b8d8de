/* SPDX-License-Identifier: MIT
 * Takes the announcements of the engines with the mutex held, and runs the callbacks without it. An
 * announcement is a note that an engine leaves in a list: a lock has changed (with a set of RL_FX_*
 * bits that say how), a node has changed, or a key lives longer than max_ttl. For each of them this
 * file ends operations and queues callbacks; rl_dispatch() runs the queued callbacks later. The
 * result of a blocking call is passed to its thread at once. A grant is confirmed before it is
 * reported: the engine checks that the lock is still held. The client's mutex is held in all
 * functions, unless the comment of a function says otherwise. */
#include "api/dispatch.h"

#include "api/break.h"
#include "api/client.h"
#include "api/handle.h"
#include "api/report.h"
#include "api/review.h"
#include "api/verify.h"
#include "core/cause.h"
#include "engine/seen.h"
#include "platform/callback.h"
#include "platform/thread.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Prepares the pending callbacks of a new client, whose fields are 0: there is no descriptor yet.
 * No mutex. */
void rl_dispatch_init(struct redlock_client *rl)
{
    rl->pending.fd = -1;
}

/* Creates the descriptor that is readable while callbacks are pending in hybrid mode; other modes
 * have none. Returns REDLOCK_OK, or REDLOCK_ESYS without a descriptor. No mutex. */
int rl_dispatch_open(struct redlock_client *rl)
{
    if (rl->mode != REDLOCK_MODE_HYBRID)
        return REDLOCK_OK;
    rl->pending.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return rl->pending.fd >= 0 ? REDLOCK_OK : REDLOCK_ESYS;
}

/* Closes the descriptor, if there is one. No mutex. */
void rl_dispatch_close(struct redlock_client *rl)
{
    if (rl->pending.fd >= 0)
        close(rl->pending.fd);
    rl->pending.fd = -1;
}

/* Returns the descriptor of hybrid mode, -1 in other modes. No mutex. */
int rl_dispatch_fd(const struct redlock_client *rl)
{
    return rl->pending.fd;
}

/* Makes the descriptor of hybrid mode unreadable again. No mutex. */
void rl_dispatch_clear(struct redlock_client *rl)
{
    uint64_t count;

    if (read(rl->pending.fd, &count, sizeof count) < 0)
        return; /* it was not readable, which is harmless */
}

/* Makes the descriptor of hybrid mode readable. */
static void signal_pending(struct redlock_client *rl)
{
    const uint64_t one = 1;

    if (rl->pending.fd >= 0 && write(rl->pending.fd, &one, sizeof one) < 0)
        return; /* readable already, or closed by the program */
}

/* Adds the bits `pending` (RL_FX_* and RL_PENDING_*) to handle->pending. Appends the handle to the
 * queue of pending callbacks, which takes a reference, unless it is in the queue already. */
static void queue_pending(struct redlock_client *rl, struct redlock_lock *handle, uint32_t pending)
{
    handle->pending |= pending;
    if (handle->queued)
        return;
    handle->queued = true;
    handle->next_pending = NULL;
    if (rl->pending.last != NULL)
        rl->pending.last->next_pending = handle;
    else
        rl->pending.first = handle;
    rl->pending.last = handle;
    rl_handle_ref(handle);
    signal_pending(rl);
}

/* Returns whether callbacks are pending: of a lock, of a node, of a client operation or for log
 * lines. */
bool rl_dispatch_has_pending(const struct redlock_client *rl)
{
    return rl->pending.first != NULL || rl->pending.has_node_events ||
           rl->pending.client_done != NULL || rl_log_has_lines(&rl->log);
}

/* Returns whether the calling thread runs a callback of this client. */
bool rl_dispatch_is_own_callback(const struct redlock_client *rl)
{
    return rl->pending.in_callback && pthread_equal(rl->pending.callback_thread, pthread_self());
}

/* Returns whether an event callback of the lock or of the client exists. */
static bool has_listener(const struct redlock_client *rl, const struct redlock_lock *handle)
{
    return handle->event_fn != NULL || rl->config->event_fn != NULL;
}

/* Returns whether an operation of this kind (enum rl_op_kind) gives its caller a lock. */
static bool makes_lock(uint8_t kind)
{
    return kind == RL_OP_ACQUIRE || kind == RL_OP_ADOPT;
}

/* Returns the event, RL_PENDING_ACQUIRED or RL_PENDING_RELEASED, that goes with the end of the
 * operation; 0: none. */
static uint32_t event_of_done(const struct redlock_lock *handle, int status)
{
    uint8_t kind = handle->op.kind;

    if (kind == RL_OP_RELEASE)
        return RL_PENDING_RELEASED;
    return makes_lock(kind) && status == REDLOCK_OK ? RL_PENDING_ACQUIRED : 0;
}

/* Ends the operation of the handle with `status`: wakes the thread that waits for it, or queues its
 * callback. Also queues the event that goes with it (event_of_done()). Does nothing if there is no
 * operation, or if it has ended. */
void rl_dispatch_done(struct redlock_client *rl, struct redlock_lock *handle, int status)
{
    struct rl_op *op = &handle->op;

    if (op->kind == RL_OP_NONE || op->done)
        return;
    op->done = true;
    op->status = status;
    uint32_t pending = has_listener(rl, handle) ? event_of_done(handle, status) : 0;
    if (op->waiter != NULL) {
        rl_leader_complete(rl, op->waiter, status);
        if (pending != 0 &&
            op->kind == RL_OP_RELEASE) /* the waiter of an acquire confirms the grant first */
            queue_pending(rl, handle, pending);
        return;
    }
    queue_pending(rl, handle, RL_FX_DONE | pending);
}

/* Queues the end callback of the lock, if it has one that has not run. */
void rl_dispatch_end(struct redlock_client *rl, struct redlock_lock *handle)
{
    if (handle->event_end_fn != NULL)
        queue_pending(rl, handle, RL_PENDING_END);
}

/* Logs that a node has a key that lives for `pttl_ms` more, longer than max_ttl, and queues the
 * event of the node. */
static void take_long_ttl(struct rl_shard *shard, unsigned node, uint64_t pttl_ms)
{
    struct redlock_client *rl = shard->rl;

    rl_logf(
        &rl->log, REDLOCK_LOG_WARN,
        "%s: a key expires only in %llu ms, later than max_ttl allows: another client's max_ttl "
        "is larger, or a clock was set back; make max_ttl equal in all clients",
        rl_shard_node_name(shard, node), (unsigned long long)pttl_ms);
    if (rl->config->event_fn == NULL)
        return;
    shard->pending.kind[node] = REDLOCK_EVENT_TTL_EXCEEDS_MAX;
    rl->pending.has_node_events = true;
    signal_pending(rl);
}

/* Reports keys that live longer than max_ttl, which an inspection has found. */
static void note_long_ttls(const struct redlock_lock *handle)
{
    const struct rl_seen *seen = rl_lock_seen(&handle->lock);
    rl_nodes longer = rl_engine_note_ttls(&handle->shard->engine, &handle->lock);

    for (; longer != 0; longer &= longer - 1) {
        unsigned node = (unsigned)__builtin_ctz(longer);
        take_long_ttl(handle->shard, node, (uint64_t)seen[node].pttl_ms);
    }
}

/* Reverts the end of an operation with a grant that the engine has withdrawn before it was
 * reported: the operation continues. A cancel that came in the meantime was ignored, so it is
 * reviewed again. */
static void undo_grant(struct redlock_client *rl, struct redlock_lock *handle)
{
    struct rl_op *op = &handle->op;

    handle->pending &= ~(uint32_t)(RL_FX_DONE | RL_PENDING_ACQUIRED);
    op->done = false;
    if (op->waiter != NULL)
        op->waiter->done = false;
    if (rl_cancel_is_triggered(op->cancel)) {
        atomic_store(&rl->cancels, true);
        rl_io_wake(&rl->io);
    }
}

/* Takes the announcement of one lock. Handles its flags in the order in which the engine can have
 * set them: an attempt failed, the operation ended, the lock ended. */
static void take_lock(struct redlock_client *rl, struct redlock_lock *handle,
                      const struct rl_announcement *announcement)
{
    uint32_t flags = announcement->flags;
    uint32_t events =
        RL_FX_WAITING | RL_FX_EXTENDED | RL_FX_EXTEND_FAILED | RL_FX_ENDANGERED | RL_FX_LOST;

    if (flags & (RL_FX_DEADLINE | RL_FX_HELD | RL_FX_ENDED))
        rl_handle_publish(handle);
    if (flags & RL_FX_LOST)
        rl_handle_signal_lost(handle);
    if (flags & RL_FX_WAITING) /* a grant that was not reported yet is not held any more */
        undo_grant(rl, handle);
    if ((flags & events) != 0 && has_listener(rl, handle)) {
        if (flags & (RL_FX_WAITING | RL_FX_EXTEND_FAILED))
            handle->pending_status = announcement->event_status;
        queue_pending(rl, handle, flags & events);
    }
    if (flags & RL_FX_DONE) {
        note_long_ttls(handle);
        if (handle->op.kind == RL_OP_BREAK)
            rl_break_inspected(rl, handle);
        else if (rl_break_whole(handle) != NULL)
            rl_break_part_done(rl, handle);
        else if (handle->subject != NULL)
            rl_verify_done(rl, handle, announcement->status);
        else
            rl_dispatch_done(rl, handle, announcement->status);
    }
    if (flags & RL_FX_ENDED) {
        rl_dispatch_end(rl, handle);
        rl_handle_drop(handle); /* the engine's reference */
    }
}

/* Returns whether the cause (enum redlock_cause) says that the server can be reached but cannot be
 * used until its operator changes it. */
static bool is_refusal(uint8_t cause)
{
    int status = rl_cause_of(cause)->status;

    return status == REDLOCK_EAUTH || status == REDLOCK_EEXCLUDED;
}

/* Logs the event `kind` (enum redlock_event_kind) of node `index`, whose state is `node`. */
static void log_node(const struct rl_shard *shard, unsigned index,
                     const struct rl_node_status *node, uint8_t kind)
{
    const struct redlock_client *rl = shard->rl;
    char text[RL_TEXT_MAX] = "";
    uint64_t quarantine_ms;

    if (kind != REDLOCK_EVENT_NODE_UP && node->answers)
        (void)rl_engine_exclusion_text(&shard->engine, index, node->cause, text, sizeof text,
                                       &quarantine_ms);
    if (kind != REDLOCK_EVENT_NODE_UP)
        rl_logf(&rl->log, REDLOCK_LOG_WARN, "%s: %s", node->name,
                node->answers ? text : node->error);
    else if (!node->identified)
        rl_logf(&rl->log, REDLOCK_LOG_WARN,
                "%s: connected, eligible, but does not report its identity: a restart that loses "
                "keys is not detected; allow INFO to its user",
                node->name);
    else
        rl_logf(&rl->log, REDLOCK_LOG_INFO, "%s: connected, eligible", node->name);
}

/* Compares the state of node `index` with the state that was reported last. If a NODE_UP, NODE_DOWN
 * or NODE_EXCLUDED event follows, logs it and queues it for the client's event callback. */
static void take_node(struct rl_shard *shard, unsigned index)
{
    struct redlock_client *rl = shard->rl;
    const struct rl_node_status node = rl_engine_node_status(&shard->engine, index);
    bool up = node.answers, votes = node.votes;
    uint8_t cause = up ? node.cause : node.error_cause;
    uint8_t kind = 0;

    if (node.closed)
        return; /* the client is being closed */
    if (votes && !shard->pending.was_up[index])
        kind = REDLOCK_EVENT_NODE_UP;
    else if (!up && shard->pending.was_up[index])
        kind = REDLOCK_EVENT_NODE_DOWN;
    else if (!votes && cause != shard->pending.last_cause[index] && (up || is_refusal(cause)))
        kind = REDLOCK_EVENT_NODE_EXCLUDED;
    if (up || node.down)
        shard->pending.last_cause[index] = cause;
    shard->pending.was_up[index] = votes;
    if (kind == 0)
        return;
    log_node(shard, index, &node, kind);
    if (kind == REDLOCK_EVENT_NODE_UP && rl->shard_count > 1)
        rl_shards_warn_shared(shard, &node);
    if (rl->config->event_fn == NULL)
        return;
    shard->pending.kind[index] = kind;
    rl->pending.has_node_events = true;
    signal_pending(rl);
}

/* Takes all announcements of the engine of one shard: of nodes that have changed, of keys that live
 * longer than max_ttl, and of locks. */
static void take_shard(struct redlock_client *rl, struct rl_shard *shard)
{
    struct rl_announcements *list = rl_engine_announcements(&shard->engine);
    struct rl_announcement announcement;
    uint64_t pttl_ms;
    unsigned node;

    while (rl_announcements_wait(list)) {
        while (rl_announcements_take_node(list, &node))
            take_node(shard, node);
        while (rl_announcements_take_long_ttl(list, &node, &pttl_ms))
            take_long_ttl(shard, node, pttl_ms);
        struct rl_lock *lock = rl_announcements_take(list, &announcement);
        if (lock != NULL)
            take_lock(rl, (struct redlock_lock *)lock, &announcement);
    }
}

/* Takes the announcements of all engines until none is left: publishes deadlines, ends operations
 * and queues callbacks, but runs none. Returns whether there was an announcement. */
bool rl_dispatch_take(struct redlock_client *rl)
{
    bool any = false;

    for (unsigned i = 0; i < rl->shard_count; i++) {
        if (!rl_announcements_wait(rl_engine_announcements(&rl->shards[i].engine)))
            continue;
        any = true;
        take_shard(rl, &rl->shards[i]);
    }
    return any;
}

/* Does one turn of the engines: reads from the `count` sockets in `ready`, does what is due, sends,
 * and takes the announcements. */
void rl_dispatch_tick(struct redlock_client *rl, const struct rl_ready *ready, int count)
{
    rl_io_tick(&rl->io, ready, count);
    (void)rl_dispatch_take(rl);
    rl_io_send(&rl->io);
    (void)rl_dispatch_take(rl);
}

/* Sends queued requests and takes announcements, until there are none of either. Arms the timer of
 * the poller. */
void rl_dispatch_flush(struct redlock_client *rl)
{
    int cancel = rl_thread_hold_cancel();

    do {
        rl_io_flush(&rl->io);
    } while (rl_dispatch_take(rl));
    rl_thread_allow_cancel(cancel);
}

/* Passes a lease event to the engine for the lock of the handle, and takes the announcements.
 * `kind`: RL_EVENT_*. `ttl_ns`: the TTL of an extension (0: as acquired), or the delay of
 * RL_EVENT_SHORTEN until the keys expire; else 0. `status`: of RL_EVENT_CANCEL the result of the
 * operation; else 0. */
void rl_dispatch_event(struct redlock_lock *handle, uint8_t kind, uint64_t ttl_ns, int status)
{
    rl_lock_event(&handle->shard->engine, &handle->lock, kind, ttl_ns, status);
    (void)rl_dispatch_take(handle->shard->rl);
}

/* Returns whether the lock is held. In embedded mode, a lock whose deadline has passed since the
 * last turn of the loop is lost now. In the other modes the I/O thread sees to that. Takes the
 * announcements. */
bool rl_dispatch_is_held(struct redlock_lock *handle)
{
    struct redlock_client *rl = handle->shard->rl;

    if (rl->mode == REDLOCK_MODE_EMBEDDED) {
        rl_lock_expire(&handle->shard->engine, &handle->lock);
        (void)rl_dispatch_take(rl);
    }
    return rl_lock_is_held(&handle->lock);
}

/* Notes in the engine that the servers of `nodes` do not have the lock, and takes the announcement
 * of this lock only, so that it can be called within rl_dispatch_take(). */
void rl_dispatch_note_absent(struct redlock_lock *handle, rl_nodes nodes)
{
    struct rl_engine *engine = &handle->shard->engine;
    struct rl_announcement announcement;

    rl_lock_note_absent(engine, &handle->lock, nodes);
    if (rl_announcements_take_lock(rl_engine_announcements(engine), &handle->lock, &announcement))
        take_lock(handle->shard->rl, handle, &announcement);
}

/* Releases the mutex for a callback, and notes that this thread runs one. */
static void begin_callback(struct redlock_client *rl)
{
    rl->pending.in_callback = true;
    rl->pending.callback_thread = pthread_self();
    rl_client_unlock(rl);
}

/* Locks the mutex again after a callback, and reads the clocks, because the callback took time. */
static void end_callback(struct redlock_client *rl)
{
    pthread_mutex_lock(&rl->mutex);
    rl->pending.in_callback = false;
    if (!rl->closed)
        rl_io_refresh(&rl->io);
}

/* Returns the text of the report on an event of this `kind` (enum redlock_event_kind) whose status
 * is REDLOCK_OK. The last round of the lock may be of another operation by now. */
static const char *event_text(int kind)
{
    switch (kind) {
    case REDLOCK_EVENT_ACQUIRED:
        return "acquired";
    case REDLOCK_EVENT_EXTENDED:
        return "extended";
    case REDLOCK_EVENT_ENDANGERED:
        return "endangered";
    default:
        return "released";
    }
}

/* Runs the event callback `fn`, unless it is NULL, for one event of the lock. event->lock is NULL
 * if the user does not own the lock any more, which may have been freed by an earlier callback. */
static void call_event(struct redlock_client *rl, struct redlock_lock *handle,
                       redlock_event_t *event, redlock_event_fn fn, void *userdata)
{
    if (fn == NULL)
        return;
    event->lock = handle->owned_by_user ? handle : NULL;
    begin_callback(rl);
    rl_call_event(fn, rl, event, userdata);
    end_callback(rl);
}

/* Runs the event callbacks of the lock and of the client, if they exist, for one event of the lock.
 * `kind`: enum redlock_event_kind. `status`: enum redlock_error that the event reports. */
static void report_event(struct redlock_client *rl, struct redlock_lock *handle, int kind,
                         int status)
{
    struct redlock_report report;

    if (!has_listener(rl, handle))
        return;
    rl_report_fill(&report, rl, handle, status, event_text(kind));
    redlock_event_t event = {
        .size = sizeof event,
        .kind = kind,
        .status = status,
        .resource = handle->bytes,
        .report = &report,
        .remaining_ms =
            rl_lock_remaining_ns(&handle->lock, rl_engine_now(&handle->shard->engine)) / RL_MS,
    };
    call_event(rl, handle, &event, handle->event_fn, handle->event_userdata);
    call_event(rl, handle, &event, rl->config->event_fn, rl->config->event_userdata);
    rl_report_done(&report);
}

/* Delivers the result of the operation to its callback and ends it: drops its reference, or passes
 * it to the user together with the lock. Does nothing if a blocking call gets the result. */
static void report_done(struct redlock_client *rl, struct redlock_lock *handle)
{
    struct redlock_report report;
    struct rl_op op = handle->op;
    bool gives_lock = makes_lock(op.kind) && op.status == REDLOCK_OK;
    bool has_lock = op.kind == RL_OP_EXTEND || op.kind == RL_OP_RELEASE ||
                    op.kind == RL_OP_UNRETAIN || op.kind == RL_OP_VERIFY;
    struct redlock_lock *about = handle->subject != NULL ? handle->subject : handle;

    if (op.kind == RL_OP_NONE || !op.done)
        return;
    if (gives_lock)
        handle->received = handle->owned_by_user = true;
    if (op.fn != NULL)
        rl_report_fill(&report, rl, handle, op.status, NULL);
    handle->op = (struct rl_op){.kind = RL_OP_NONE}; /* the callback may start another one */
    if (op.fn != NULL) {
        redlock_lock_t *lock = gives_lock || (has_lock && about->owned_by_user) ? about : NULL;
        begin_callback(rl);
        rl_call_done(op.fn, rl, op.status, lock, &report, op.userdata);
        rl_report_done(&report);
        end_callback(rl);
    }
    if (op.cancel != NULL)
        rl_cancel_drop(op.cancel);
    if (!gives_lock)
        rl_handle_drop(handle); /* the operation's reference; with a grant it becomes the user's */
}

/* Runs the end callback of the lock, and removes its event callback, so that no event follows. */
static void report_event_end(struct redlock_client *rl, struct redlock_lock *handle)
{
    redlock_event_end_fn fn = handle->event_end_fn;
    void *userdata = handle->event_userdata;

    handle->event_fn = NULL;
    handle->event_end_fn = NULL;
    if (fn == NULL)
        return;
    begin_callback(rl);
    rl_call_event_end(fn, userdata);
    end_callback(rl);
}

/* Turns the result of the handle's operation into an error if it is a grant that was not reported
 * yet and whose lock is not held any more: REDLOCK_ECLOSED in a shutdown, else REDLOCK_ETOOSLOW. */
void rl_dispatch_disown(const struct redlock_client *rl, struct redlock_lock *handle)
{
    struct rl_op *op = &handle->op;
    bool held = !rl->closed && rl_lock_is_held(&handle->lock);

    if (!op->done || op->status != REDLOCK_OK || held)
        return;
    op->status = rl->draining ? REDLOCK_ECLOSED : REDLOCK_ETOOSLOW;
    if (op->waiter != NULL)
        op->waiter->status = op->status;
}

/* Confirms in the engine that a grant, whose operation has ended, is about to be reported. Returns
 * true if the operation has a final result: a grant whose lock is still held, or an error. Returns
 * false if the lock is not held any more and the engine goes on with the next attempt. */
bool rl_dispatch_confirm(struct redlock_client *rl, struct redlock_lock *handle)
{
    bool gave_up;

    handle->op.done = false; /* if the operation fails now, rl_dispatch_done() sets it again */
    rl_dispatch_event(handle, RL_EVENT_CONFIRM, 0, 0);
    gave_up = handle->op.done;
    bool retries = rl_lock_is_active(&handle->lock) && rl_lock_is_between_attempts(&handle->lock);
    handle->op.done = gave_up || !retries;
    rl_dispatch_disown(rl, handle);
    return handle->op.done;
}

/* Confirms a grant right before it is reported, because time has passed since the votes: it must be
 * valid when the callback begins. Does nothing for other results. */
static void confirm(struct redlock_client *rl, struct redlock_lock *handle)
{
    bool grant = handle->op.done && handle->op.status == REDLOCK_OK && makes_lock(handle->op.kind);

    if (!grant)
        return;
    if (!rl->closed)
        rl_engine_refresh(&handle->shard->engine);
    if (rl->closed || !rl_lock_is_active(&handle->lock))
        rl_dispatch_disown(rl, handle);
    else
        (void)rl_dispatch_confirm(rl, handle);
}

/* Returns the status that the event of the pending bit `flag` reports. */
static int status_of_pending(const struct redlock_lock *handle, uint32_t flag)
{
    switch (flag) {
    case RL_FX_LOST:
        return REDLOCK_ELOST;
    case RL_FX_WAITING:
    case RL_FX_EXTEND_FAILED:
        return handle->pending_status;
    case RL_PENDING_RELEASED:
        return rl_lock_status(&handle->lock);
    default:
        return REDLOCK_OK;
    }
}

/* Returns whether an ACQUIRED event must be reported. That is also true if the lock was released in
 * the meantime, because RELEASED is never reported without an earlier ACQUIRED. */
static bool was_acquired(const struct redlock_lock *handle)
{
    bool pending = (handle->pending & RL_FX_DONE) != 0 && makes_lock(handle->op.kind);

    return (handle->pending & RL_PENDING_ACQUIRED) != 0 &&
           (!pending || handle->op.status == REDLOCK_OK);
}

/* Runs the callbacks of one handle: events in a fixed order, the result of its operation, then the
 * end callback. */
static void report_handle(struct redlock_client *rl, struct redlock_lock *handle)
{
    static const struct {
        uint32_t flag; /* bit of redlock_lock.pending */
        int kind;      /* enum redlock_event_kind that is reported for the bit */
    } table[] = {
        {RL_FX_WAITING, REDLOCK_EVENT_WAITING},
        {RL_FX_EXTEND_FAILED, REDLOCK_EVENT_EXTEND_FAILED},
        {RL_FX_EXTENDED, REDLOCK_EVENT_EXTENDED},
        {RL_FX_ENDANGERED, REDLOCK_EVENT_ENDANGERED},
        {RL_FX_LOST, REDLOCK_EVENT_LOST},
        {RL_PENDING_RELEASED, REDLOCK_EVENT_RELEASED},
    };

    if (handle->pending & RL_FX_DONE)
        confirm(rl, handle);
    uint32_t pending = handle->pending;
    bool acquired = was_acquired(handle);
    bool has_event_fn = has_listener(rl, handle);
    handle->pending = 0;
    if (acquired)
        report_event(rl, handle, REDLOCK_EVENT_ACQUIRED, REDLOCK_OK);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if ((pending & table[i].flag) == 0)
            continue;
        /* Events of a held lock are not reported if the user has never received the lock. */
        bool of_holder = table[i].flag != RL_FX_WAITING && table[i].flag != RL_PENDING_RELEASED;
        if (of_holder && !handle->received && !acquired)
            continue;
        report_event(rl, handle, table[i].kind, status_of_pending(handle, table[i].flag));
    }
    if (pending & RL_FX_DONE) {
        if (has_event_fn)
            confirm(rl, handle); /* the event callbacks above have taken time */
        report_done(rl, handle);
    }
    if (pending & RL_PENDING_END)
        report_event_end(rl, handle);
}

/* Runs the event callback of the client for each event of the shard's nodes. */
static void report_nodes(struct redlock_client *rl, struct rl_shard *shard)
{
    for (unsigned i = 0; i < shard->config->count; i++) {
        uint8_t kind = shard->pending.kind[i];
        shard->pending.kind[i] = 0;
        if (kind == 0 || rl->config->event_fn == NULL)
            continue;
        const redlock_event_t event = {
            .size = sizeof event,
            .kind = kind,
            .node = rl_shard_node_name(shard, i),
        };
        begin_callback(rl);
        rl_call_event(rl->config->event_fn, rl, &event, rl->config->event_userdata);
        end_callback(rl);
    }
}

/* Queues the callback of a client operation that has ended. Takes ownership of `item`. */
void rl_dispatch_client_op(struct redlock_client *rl, struct rl_client_op *item)
{
    item->next = rl->pending.client_done;
    rl->pending.client_done = item;
    signal_pending(rl);
}

/* Runs the callbacks of the client operations that have ended, and frees them. */
static void report_client_ops(struct redlock_client *rl)
{
    while (rl->pending.client_done != NULL && !rl->callbacks.stop) {
        struct rl_client_op *item = rl->pending.client_done;
        struct rl_op op = item->op;
        rl->pending.client_done = item->next;
        rl_free(&rl->mem, item);
        if (op.fn != NULL) {
            begin_callback(rl);
            rl_call_done(op.fn, rl, op.status, NULL, NULL, op.userdata);
            end_callback(rl);
        }
        if (op.cancel != NULL)
            rl_cancel_drop(op.cancel);
    }
}

/* Queues the ACQUIRED event of an acquisition by a blocking call, if there is an event callback. */
void rl_dispatch_acquired(struct redlock_client *rl, struct redlock_lock *handle)
{
    if (has_listener(rl, handle))
        queue_pending(rl, handle, RL_PENDING_ACQUIRED);
}

/* Passes the queued log lines to the log function. */
static void report_log(struct redlock_client *rl)
{
    struct rl_log_line line;

    while (rl_log_take(&rl->log, &line)) {
        begin_callback(rl);
        rl_call_log(&rl->log, line.level, line.text);
        end_callback(rl);
    }
}

/* Runs the callbacks of the handles that are queued now. Those that are queued meanwhile are left
 * to the next call, so that other callbacks get their turn. */
static void report_handles(struct redlock_client *rl)
{
    const struct redlock_lock *last = rl->pending.last;
    bool more = true;

    /* In hybrid mode another thread may take `last`. */
    while (more && rl->pending.first != NULL) {
        struct redlock_lock *handle = rl->pending.first;
        more = handle != last;
        rl->pending.first = handle->next_pending;
        if (rl->pending.first == NULL)
            rl->pending.last = NULL;
        handle->queued = false;
        report_handle(rl, handle);
        rl_handle_drop(handle); /* the queue's reference */
    }
}

void rl_dispatch(struct redlock_client *rl)
{
    report_log(rl);
    report_handles(rl);
    bool has_node_events = rl->pending.has_node_events;
    rl->pending.has_node_events = false;
    for (unsigned i = 0; has_node_events && i < rl->shard_count; i++)
        report_nodes(rl, &rl->shards[i]);
    report_client_ops(rl);
}

/* Drops the references of the engines and operations to the locks whose end the engines of a forked
 * child have announced. */
static void abandon_locks(struct redlock_client *rl)
{
    struct rl_announcement announcement;
    struct rl_lock *lock;

    for (unsigned i = 0; i < rl->shard_count; i++) {
        struct rl_announcements *list = rl_engine_announcements(&rl->shards[i].engine);
        while ((lock = rl_announcements_take(list, &announcement)) != NULL) {
            rl_handle_forget_op((struct redlock_lock *)lock);
            rl_handle_drop((struct redlock_lock *)lock); /* the engine's reference */
        }
    }
}

/* In a forked child, drops all pending callbacks and the references of the engines, of the queue
 * and of all operations to their handles. Runs no callback. */
void rl_dispatch_abandon(struct redlock_client *rl)
{
    abandon_locks(rl);
    while (rl->pending.first != NULL) {
        struct redlock_lock *handle = rl->pending.first;
        rl->pending.first = handle->next_pending;
        rl_handle_forget_op(handle); /* ended, but its result was not delivered */
        rl_handle_drop(handle);      /* the queue's reference */
    }
    rl_review_abandon(rl, rl->pending.client_done);
}
