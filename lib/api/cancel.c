/* SPDX-License-Identifier: MIT
 * Cancel objects. A trigger sets a flag and wakes the loop, which ends the operations (review.c),
 * so that it may be called in a signal handler. */
#include "api/cancel.h"

#include "api/client.h"

#include <errno.h>
#include <unistd.h>

/* Adds a reference to the cancel object and returns `cancel`. Needs no mutex. */
redlock_cancel_t *rl_cancel_ref(redlock_cancel_t *cancel)
{
    atomic_fetch_add_explicit(&cancel->refs, 1, memory_order_relaxed);
    return cancel;
}

/* Drops a reference to the cancel object. The last one frees the object and drops the object's
 * reference to the client. */
void rl_cancel_drop(redlock_cancel_t *cancel)
{
    struct redlock_client *rl = cancel->rl;

    if (atomic_fetch_sub_explicit(&cancel->refs, 1, memory_order_acq_rel) != 1)
        return;
    rl_free(&rl->mem, cancel);
    rl_client_drop(rl);
}

/* Returns whether redlock_cancel_trigger() was called for the object; false for NULL. */
bool rl_cancel_is_triggered(const redlock_cancel_t *cancel)
{
    return cancel != NULL && atomic_load(&cancel->triggered);
}

/* Public function: creates a cancel object for operations of `rl` in `ret_cancel`. Returns
 * REDLOCK_OK, EINVAL, EFORKED or ENOMEM. redlock_cancel_free() frees the object. */
REDLOCK_API int redlock_cancel_new(redlock_cancel_t **ret_cancel, redlock_t *rl)
{
    if (ret_cancel == NULL || rl == NULL)
        return REDLOCK_EINVAL;
    if (rl_client_is_forked(rl))
        return REDLOCK_EFORKED;
    redlock_cancel_t *cancel = rl_alloc(&rl->mem, sizeof *cancel);
    if (cancel == NULL)
        return REDLOCK_ENOMEM;
    atomic_init(&cancel->refs, 1);
    atomic_init(&cancel->triggered, false);
    cancel->rl = rl_client_ref(rl);
    *ret_cancel = cancel;
    return REDLOCK_OK;
}

/* Public function: ends all operations that were or will be started with the object. May be called
 * in a signal handler and on any thread; errno is kept. Ignores NULL. */
REDLOCK_API void redlock_cancel_trigger(redlock_cancel_t *cancel)
{
    const uint64_t one = 1;
    int saved = errno;

    if (cancel == NULL)
        return;
    atomic_store(&cancel->triggered, true);
    atomic_store(&cancel->rl->cancels, true);
    /* wake_fd is valid even after the poller was closed. If the counter of the eventfd is full, the
     * write fails, but a wake-up is pending already. */
    if (write(cancel->rl->wake_fd, &one, sizeof one) < 0)
        errno = saved;
    errno = saved;
}

/* Public function: drops the user's reference to the object. Operations that use the object keep
 * it. Ignores NULL. */
REDLOCK_API void redlock_cancel_free(redlock_cancel_t *cancel)
{
    if (cancel != NULL)
        rl_cancel_drop(cancel);
}
