/* SPDX-License-Identifier: MIT
 * Threads that sleep in a blocking call, and how they are woken. Whoever is told while the mutex is
 * held would wake up only to wait for the mutex: so it is noted who is to be woken, and done when
 * the mutex is free.
 *
 * A thread may find by itself that it was told, and be gone before it is woken. Its stack is not
 * ours then, so what it sleeps at belongs to the client and is used again by the next sleeper, who
 * looks again after a wake-up that was not meant for it. */
#include "api/wake.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not a cancellation point, and nobody's errno. */
static void futex_call(atomic_uint *word, int op, unsigned value)
{
    int saved_errno = errno;

    (void)syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
    errno = saved_errno;
}

/* All who sleep there: more than one only at the shared word. */
static void wake(struct rl_futex *futex)
{
    futex_call(&futex->value, FUTEX_WAKE, INT_MAX);
}

static struct rl_futex *take_futex(struct rl_wakes *wakes)
{
    struct rl_futex *futex = wakes->futexes_free;

    if (futex != NULL) {
        wakes->futexes_free = futex->free_next;
        return futex;
    }
    futex = rl_alloc(wakes->mem, sizeof *futex);
    if (futex == NULL)
        return &wakes->shared;
    futex->all_next = wakes->futexes_all;
    wakes->futexes_all = futex;
    return futex;
}

static void free_futex(struct rl_wakes *wakes, struct rl_futex *futex)
{
    if (futex == &wakes->shared)
        return;
    futex->free_next = wakes->futexes_free;
    wakes->futexes_free = futex;
}

void rl_wake_init(struct rl_wakes *wakes, const struct rl_mem *mem, pthread_mutex_t *mutex)
{
    wakes->mem = mem;
    wakes->mutex = mutex;
}

void rl_wake_free(struct rl_wakes *wakes)
{
    while (wakes->futexes_all != NULL) {
        struct rl_futex *next = wakes->futexes_all->all_next;
        rl_free(wakes->mem, wakes->futexes_all);
        wakes->futexes_all = next;
    }
    wakes->futexes_free = NULL;
}

void rl_wake_note(struct rl_wakes *wakes, struct rl_waiter *waiter)
{
    if (waiter->futex == NULL)
        return; /* it is awake, and looks before it sleeps */
    atomic_fetch_add(&waiter->futex->value, 1);
    if (wakes->count == RL_WAKES_MAX)
        wake(wakes->noted[--wakes->count]);
    wakes->noted[wakes->count++] = waiter->futex;
}

void rl_wake_noted(struct rl_wakes *wakes)
{
    while (wakes->count > 0)
        wake(wakes->noted[--wakes->count]);
}

void rl_wake_unlock(struct rl_wakes *wakes)
{
    struct rl_futex *words[RL_WAKES_MAX];
    unsigned count = wakes->count;

    for (unsigned i = 0; i < count; i++)
        words[i] = wakes->noted[i];
    wakes->count = 0;
    pthread_mutex_unlock(wakes->mutex);
    for (unsigned i = 0; i < count; i++)
        wake(words[i]);
}

void rl_wake_sleep(struct rl_wakes *wakes, struct rl_waiter *waiter)
{
    struct rl_futex *futex = take_futex(wakes);
    unsigned before = atomic_load(&futex->value);

    waiter->futex = futex;
    rl_wake_unlock(wakes);
    futex_call(&futex->value, FUTEX_WAIT, before);
    pthread_mutex_lock(wakes->mutex);
    waiter->futex = NULL;
    free_futex(wakes, futex);
}
