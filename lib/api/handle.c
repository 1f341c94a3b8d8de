/* SPDX-License-Identifier: MIT
 * Creates, references and frees the handles of locks, and implements the public functions that do
 * not wait for a server. The client's mutex is held in every function that works on a handle,
 * unless its comment says otherwise; the public functions lock it themselves. */
#include "api/handle.h"

#include "api/break.h"
#include "api/report.h"
#include "api/review.h"
#include "platform/clock.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Creates a handle with one reference, for a lock on `names` in `shard`, and references the client.
 * Sets storage->at to memory behind the names, for the engine. Returns NULL without memory. The
 * names are copied. The handle's other fields are 0. */
struct redlock_lock *rl_handle_new(struct rl_shard *shard, const struct rl_names *names,
                                   struct rl_storage *storage)
{
    struct redlock_client *rl = shard->rl;
    size_t len = 0;
    for (unsigned i = 0; i < names->count; i++)
        len += names->lens[i] + 1u;
    size_t room_at = offsetof(struct redlock_lock, bytes) + len;
    room_at = (room_at + RL_STORAGE_ALIGN - 1) / RL_STORAGE_ALIGN * RL_STORAGE_ALIGN;
    struct redlock_lock *handle = rl_alloc(&rl->mem, room_at + storage->size);

    if (handle == NULL)
        return NULL;
    storage->at = (char *)handle + room_at;
    handle->shard = shard;
    (void)rl_client_ref(rl);
    atomic_init(&handle->refs, 1);
    atomic_init(&handle->lost_fd, -1);
    handle->names = (uint8_t)names->count;
    for (unsigned i = 0; i < names->count; i++) {
        size_t size = names->lens[i] + 1u;
        memcpy(handle->bytes + handle->names_len, names->list[i], size);
        handle->names_len = (uint16_t)(handle->names_len + size);
    }
    return handle;
}

/* Adds a reference to the handle. Needs no mutex. */
void rl_handle_ref(struct redlock_lock *handle)
{
    atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
}

/* Drops a reference to the handle. The last one closes its descriptor, frees the handle and drops
 * the handle's references to the client, to a cancel object and to the lock that it verifies. */
void rl_handle_drop(struct redlock_lock *handle)
{
    struct redlock_client *rl = handle->shard->rl;

    if (atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) != 1)
        return;
    int fd = atomic_load(&handle->lost_fd);
    if (fd >= 0)
        close(fd);
    rl_lock_dispose(&handle->shard->engine, &handle->lock);
    if (handle->breaking != NULL && handle->breaking->whole == handle)
        rl_free(&rl->mem, handle->breaking);
    if (handle->op.cancel != NULL)
        rl_cancel_drop(handle->op.cancel);
    if (handle->subject != NULL)
        rl_handle_drop(handle->subject);
    rl_free(&rl->mem, handle);
    rl_client_drop(rl);
}

void rl_handle_drop_in_child(struct redlock_lock *handle)
{
    struct redlock_client *rl = rl_client_ref(handle->shard->rl);

    if (pthread_mutex_trylock(&rl->mutex) == 0) {
        rl_handle_drop(handle);
        rl_wake_unlock(&rl->wakes);
        rl_client_drop(rl);
    }
}

/* In a forked child, drops the references that an operation holds, because no thread of the child
 * ends it: those to its handle, to the break that it is a part of, and that of a thread that waited
 * for it to the client. */
void rl_handle_forget_op(struct redlock_lock *handle)
{
    struct redlock_client *rl = handle->shard->rl;
    struct redlock_lock *whole = rl_break_whole(handle);

    if (whole != NULL) {
        if (rl_break_leave(handle))
            rl_handle_forget_op(whole);
        rl_handle_drop(whole);
    }
    if (handle->op.kind == RL_OP_NONE)
        return;
    if (handle->op.waiter != NULL)
        rl_client_drop(rl);
    handle->op.kind = RL_OP_NONE;
    rl_handle_drop(handle);
}

/* Copies the validity of the lock (its deadline on both clocks, the wall clock, whether it is held)
 * to the atomic fields, which remaining_ns() reads without the mutex. `held` is written last. */
void rl_handle_publish(struct redlock_lock *handle)
{
    const struct rl_validity now = rl_lock_validity(&handle->lock);

    atomic_store_explicit(&handle->deadline_boot_ns, now.deadline.boot_ns, memory_order_relaxed);
    atomic_store_explicit(&handle->deadline_raw_ns, now.deadline.raw_ns, memory_order_relaxed);
    atomic_store_explicit(&handle->wall_us, now.wall_us, memory_order_relaxed);
    atomic_store_explicit(&handle->held, now.held, memory_order_release);
}

/* Makes the descriptor of redlock_lock_fd() readable, if the user has asked for one. */
void rl_handle_signal_lost(struct redlock_lock *handle)
{
    const uint64_t one = 1;
    int fd = atomic_load(&handle->lost_fd);

    if (fd >= 0 && write(fd, &one, sizeof one) < 0)
        return; /* readable already, or closed by the program */
}

/* Returns the nanoseconds until the lock's deadline. Returns 0 if the lock is not held, in a forked
 * child, or if the wall clock has run ahead of the boot clock by more than clock_slack_ms. Takes no
 * mutex, so that a program can call it before each side effect, on any thread. If an extension
 * changes the two deadlines between the two reads, one of the values is still the old one; the
 * earlier deadline decides, which is safe. */
static uint64_t remaining_ns(const redlock_lock_t *handle)
{
    if (rl_client_is_forked(handle->shard->rl))
        return 0;
    if (!atomic_load_explicit(&handle->held, memory_order_acquire))
        return 0;
    struct rl_now deadline = {
        .boot_ns = atomic_load_explicit(&handle->deadline_boot_ns, memory_order_relaxed),
        .raw_ns = atomic_load_explicit(&handle->deadline_raw_ns, memory_order_relaxed),
    };
    struct rl_now now;
    int64_t slack_us = (int64_t)handle->shard->rl->config->clock_slack_ms * 1000;
    int64_t wall_us = atomic_load_explicit(&handle->wall_us, memory_order_relaxed);
    int64_t ahead_us = rl_clock_now_and_wall(&now) - wall_us;
    return slack_us != 0 && ahead_us > slack_us ? 0 : rl_remaining_ns(deadline, now);
}

/* Public function: returns REDLOCK_OK if the lock is valid for at least `margin_ms` more,
 * REDLOCK_ELOST if not, REDLOCK_EINVAL for NULL, REDLOCK_EFORKED in a forked child. */
REDLOCK_API int redlock_lock_check(const redlock_lock_t *handle, uint64_t margin_ms)
{
    if (handle == NULL)
        return REDLOCK_EINVAL;
    if (rl_client_is_forked(handle->shard->rl))
        return REDLOCK_EFORKED;
    uint64_t left_ns = remaining_ns(handle);
    return left_ns > 0 && left_ns / RL_MS >= margin_ms ? REDLOCK_OK : REDLOCK_ELOST;
}

/* Public function: returns the milliseconds until the deadline, rounded down; 0 if the lock cannot
 * be relied on, or for NULL. */
REDLOCK_API uint64_t redlock_lock_remaining_ms(const redlock_lock_t *handle)
{
    return handle != NULL ? remaining_ns(handle) / RL_MS : 0;
}

/* Public function: returns a descriptor that becomes readable when the lock is lost, and creates it
 * at the first call. The handle owns the descriptor. Returns a negative error: EINVAL, EFORKED or
 * ESYS. */
REDLOCK_API int redlock_lock_fd(redlock_lock_t *handle)
{
    if (handle == NULL)
        return REDLOCK_EINVAL;
    struct redlock_client *rl = handle->shard->rl;
    if (rl_client_is_forked(rl))
        return REDLOCK_EFORKED;
    pthread_mutex_lock(&rl->mutex);
    int fd = atomic_load(&handle->lost_fd);
    if (fd < 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd >= 0) {
            atomic_store(&handle->lost_fd, fd);
            if (rl_lock_is_lost(&handle->lock))
                rl_handle_signal_lost(handle);
        }
    }
    rl_client_unlock(rl);
    return fd >= 0 ? fd : REDLOCK_ESYS;
}

/* Public function: returns the token of the lock, which is valid as long as the handle; NULL for
 * NULL. */
REDLOCK_API const char *redlock_lock_token(const redlock_lock_t *handle)
{
    return handle != NULL ? rl_lock_token(&handle->lock) : NULL;
}

/* Public function: detaches the lock. Its keys stay on the servers until they expire. Returns
 * REDLOCK_OK; EBUSY while an operation runs on the handle; ELOST if the lock is not held; EINVAL,
 * EFORKED or ECLOSED. */
REDLOCK_API int redlock_lock_detach(redlock_lock_t *handle)
{
    if (handle == NULL)
        return REDLOCK_EINVAL;
    struct redlock_client *rl = handle->shard->rl;
    int error = rl_client_enter(rl);
    if (error != REDLOCK_OK)
        return error;
    if (handle->op.kind != RL_OP_NONE)
        error = REDLOCK_EBUSY;
    else if (!rl_dispatch_is_held(handle))
        error = REDLOCK_ELOST;
    else
        rl_dispatch_event(handle, RL_EVENT_DETACH, 0, 0);
    rl_client_leave(rl);
    return error;
}

/* Public function: declares one more user of the held lock, who must release it as well. Returns
 * REDLOCK_OK; ELOST if the lock is not held; EINVAL for NULL or after UINT32_MAX calls; EFORKED or
 * ECLOSED. */
REDLOCK_API int redlock_lock_retain(redlock_lock_t *handle)
{
    if (handle == NULL)
        return REDLOCK_EINVAL;
    struct redlock_client *rl = handle->shard->rl;
    int error = rl_client_enter_readonly(rl);
    if (error != REDLOCK_OK)
        return error;
    if (!rl_lock_is_held(&handle->lock) || remaining_ns(handle) == 0)
        error = REDLOCK_ELOST;
    else if (handle->retained == UINT32_MAX)
        error = REDLOCK_EINVAL;
    else
        handle->retained++;
    rl_client_unlock(rl);
    return error;
}

/* Public function: frees the user's handle. Releases the lock in the background if it is still held
 * and active; no further event of the lock is reported, apart from its end callback. */
REDLOCK_API void redlock_lock_free(redlock_lock_t *handle)
{
    if (handle == NULL)
        return;
    if (rl_client_is_forked(handle->shard->rl)) {
        rl_handle_drop_in_child(handle);
        return;
    }
    struct redlock_client *rl =
        rl_client_ref(handle->shard->rl); /* the mutex must outlive this call */
    rl_leader_enter(rl);
    /* No event of the lock is reported any more. */
    handle->owned_by_user = false;
    handle->event_fn = NULL;
    if (!rl->closed) {
        rl_dispatch_end(rl, handle);
        if (rl_lock_is_held(&handle->lock) && rl_lock_is_active(&handle->lock)) {
            rl_io_refresh(&rl->io);
            rl_review_release(rl, handle, REDLOCK_ECANCELED);
            (void)rl_dispatch_take(rl);
        }
    }
    rl_handle_drop(handle); /* under the mutex, because this may change the engine */
    rl_client_leave(rl);
    rl_client_drop(rl);
}
