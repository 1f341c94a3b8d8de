/* SPDX-License-Identifier: MIT
 * The handle of a lock: its life, and what can be asked of it without I/O. */
#include "api/handle.h"

#include "api/break.h"
#include "api/report.h"
#include "api/review.h"
#include "platform/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct redlock_lock *rl_api_lock_new(struct rl_set *set, const struct rl_names *names,
                                     struct rl_room *room)
{
    struct redlock *rl = set->rl;
    size_t len = 0;
    for (unsigned i = 0; i < names->count; i++)
        len += names->lens[i] + 1u;
    size_t room_at = offsetof(struct redlock_lock, bytes) + len;
    room_at = (room_at + RL_ROOM_ALIGN - 1) / RL_ROOM_ALIGN * RL_ROOM_ALIGN;
    struct redlock_lock *lock = rl_alloc(&rl->mem, room_at + room->size);

    if (lock == NULL)
        return NULL;
    room->at = (char *)lock + room_at;
    lock->set = set;
    (void)rl_client_ref(rl);
    atomic_init(&lock->refs, 1);
    atomic_init(&lock->lost_fd, -1);
    lock->names = (uint8_t)names->count;
    for (unsigned i = 0; i < names->count; i++) {
        size_t size = names->lens[i] + 1u;
        memcpy(lock->bytes + lock->names_len, names->list[i], size);
        lock->names_len = (uint16_t)(lock->names_len + size);
    }
    return lock;
}

void rl_api_lock_ref(struct redlock_lock *lock)
{
    atomic_fetch_add_explicit(&lock->refs, 1, memory_order_relaxed);
}

void rl_api_lock_drop(struct redlock_lock *lock)
{
    struct redlock *rl = lock->set->rl;

    if (atomic_fetch_sub_explicit(&lock->refs, 1, memory_order_acq_rel) != 1)
        return;
    int fd = atomic_load(&lock->lost_fd);
    if (fd >= 0)
        close(fd);
    rl_lock_dispose(&lock->set->engine, &lock->engine);
    if (lock->breaking != NULL && lock->breaking->whole == lock)
        rl_free(&rl->mem, lock->breaking);
    if (lock->op.cancel != NULL)
        rl_cancel_drop(lock->op.cancel);
    if (lock->subject != NULL)
        rl_api_lock_drop(lock->subject);
    rl_free(&rl->mem, lock);
    rl_client_drop(rl);
}

void rl_api_lock_forget_op(struct redlock_lock *lock)
{
    struct redlock *rl = lock->set->rl;
    struct redlock_lock *whole = rl_break_whole(lock);

    if (whole != NULL) {
        if (rl_break_leave(lock))
            rl_api_lock_forget_op(whole);
        rl_api_lock_drop(whole);
    }
    if (lock->op.kind == RL_OP_NONE)
        return;
    if (lock->op.waiter != NULL)
        rl_client_drop(rl);
    lock->op.kind = RL_OP_NONE;
    rl_api_lock_drop(lock);
}

void rl_api_lock_publish(struct redlock_lock *lock)
{
    const struct rl_validity now = rl_lock_validity(&lock->engine);

    atomic_store_explicit(&lock->deadline_boot_ns, now.deadline.boot_ns, memory_order_relaxed);
    atomic_store_explicit(&lock->deadline_raw_ns, now.deadline.raw_ns, memory_order_relaxed);
    atomic_store_explicit(&lock->wall_us, now.wall_us, memory_order_relaxed);
    atomic_store_explicit(&lock->held, now.held, memory_order_release);
}

void rl_api_lock_signal_lost(struct redlock_lock *lock)
{
    const uint64_t one = 1;
    int fd = atomic_load(&lock->lost_fd);

    if (fd >= 0 && write(fd, &one, sizeof one) < 0)
        RL_ASSERT(errno == EAGAIN); /* readable already */
}

/* Local on purpose: no mutex, so that it may be asked before each side effect, from any thread. A
 * torn read of the two deadlines gives the earlier one on one of the clocks, which is safe. */
static uint64_t remaining_ns(const redlock_lock_t *lock)
{
    if (rl_client_is_forked(lock->set->rl))
        return 0;
    if (!atomic_load_explicit(&lock->held, memory_order_acquire))
        return 0;
    struct rl_now deadline = {
        .boot_ns = atomic_load_explicit(&lock->deadline_boot_ns, memory_order_relaxed),
        .raw_ns = atomic_load_explicit(&lock->deadline_raw_ns, memory_order_relaxed),
    };
    struct rl_now now;
    int64_t slack_us = (int64_t)lock->set->rl->config->clock_slack_ms * 1000;
    int64_t wall_us = atomic_load_explicit(&lock->wall_us, memory_order_relaxed);
    int64_t ahead_us = rl_clock_now_and_wall(&now) - wall_us;
    return slack_us != 0 && ahead_us > slack_us ? 0 : rl_remaining_ns(deadline, now);
}

REDLOCK_API int redlock_lock_check(const redlock_lock_t *lock, uint64_t margin_ms)
{
    if (lock == NULL)
        return REDLOCK_EINVAL;
    if (rl_client_is_forked(lock->set->rl))
        return REDLOCK_EFORKED;
    uint64_t left_ns = remaining_ns(lock);
    return left_ns > 0 && left_ns / RL_MS >= margin_ms ? REDLOCK_OK : REDLOCK_ELOST;
}

REDLOCK_API uint64_t redlock_lock_remaining_ms(const redlock_lock_t *lock)
{
    return lock != NULL ? remaining_ns(lock) / RL_MS : 0;
}

REDLOCK_API int redlock_lock_fd(redlock_lock_t *lock)
{
    if (lock == NULL)
        return REDLOCK_EINVAL;
    struct redlock *rl = lock->set->rl;
    if (rl_client_is_forked(rl))
        return REDLOCK_EFORKED;
    pthread_mutex_lock(&rl->mutex);
    int fd = atomic_load(&lock->lost_fd);
    if (fd < 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd >= 0) {
            atomic_store(&lock->lost_fd, fd);
            if (rl_lock_is_lost(&lock->engine))
                rl_api_lock_signal_lost(lock);
        }
    }
    rl_client_unlock(rl);
    return fd >= 0 ? fd : REDLOCK_ESYS;
}

REDLOCK_API const char *redlock_lock_token(const redlock_lock_t *lock)
{
    return lock != NULL ? rl_lock_token(&lock->engine) : NULL;
}

REDLOCK_API int redlock_lock_detach(redlock_lock_t *lock)
{
    if (lock == NULL)
        return REDLOCK_EINVAL;
    struct redlock *rl = lock->set->rl;
    int error = rl_client_enter(rl);
    if (error != REDLOCK_OK)
        return error;
    if (lock->op.kind != RL_OP_NONE)
        error = REDLOCK_EBUSY;
    else if (!rl_lock_is_held(&lock->engine))
        error = REDLOCK_ELOST;
    else
        rl_lock_event(&lock->set->engine, &lock->engine, RL_EVENT_DETACH, 0, 0);
    rl_client_leave(rl);
    return error;
}

REDLOCK_API int redlock_lock_retain(redlock_lock_t *lock)
{
    if (lock == NULL)
        return REDLOCK_EINVAL;
    struct redlock *rl = lock->set->rl;
    int error = rl_client_look(rl);
    if (error != REDLOCK_OK)
        return error;
    if (!rl_lock_is_held(&lock->engine))
        error = REDLOCK_ELOST;
    else if (lock->retained == UINT32_MAX)
        error = REDLOCK_EINVAL;
    else
        lock->retained++;
    rl_client_unlock(rl);
    return error;
}

REDLOCK_API void redlock_lock_free(redlock_lock_t *lock)
{
    if (lock == NULL)
        return;
    struct redlock *rl = rl_client_ref(lock->set->rl); /* the mutex must outlive this call */
    bool entered = rl_client_enter_untimed(rl) == REDLOCK_OK;
    if (entered) {
        bool held = rl_lock_is_held(&lock->engine);
        /* Nobody will hear of it any more. */
        lock->owned_by_user = false;
        lock->event_fn = NULL;
        rl_dispatch_end(rl, lock);
        if (held && rl_lock_is_active(&lock->engine)) {
            rl_io_refresh(&rl->io);
            rl_review_release(rl, lock, REDLOCK_ECANCELED);
        }
    }
    rl_api_lock_drop(lock); /* under the mutex: the engine may be letting go of it as well */
    if (entered)
        rl_client_leave(rl);
    rl_client_drop(rl);
}
