/* SPDX-License-Identifier: MIT
 * Puts threads to sleep in blocking calls and wakes them.
 *
 * A thread that is woken while the mutex is held would at once sleep again on the mutex. Therefore
 * rl_wake_note() only notes the futex, and rl_wake_unlock() wakes its sleeper after the release.
 *
 * A thread can find that its operation is done before the wake-up arrives, and return. Its stack
 * may not be touched then. Therefore the futexes belong to the client. The next sleeper reuses a
 * futex and may receive the late wake-up, so every sleeper checks its own waiter in a loop.
 *
 * Invariants: the client's mutex guards the lists, the notes and the waiters; only the value of a
 * futex is read without it. A waiter has a futex exactly while its thread sleeps. A note is made in
 * the same critical section that sets the waiter's state, so no wake-up is lost. */
#include "api/wake.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Calls futex(2) with the operation `op` (FUTEX_WAIT or FUTEX_WAKE) on `word`. `value`: for a wait
 * the value that the word must still have, for a wake-up the number of threads. `limit`: the
 * longest wait; NULL: no limit. Ignores the result and keeps errno. It is not a cancellation point.
 */
static void futex_call(atomic_uint *word, int op, unsigned value, const struct timespec *limit)
{
    int saved_errno = errno;

    (void)syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, limit, NULL, 0);
    errno = saved_errno;
}

/* Wakes all threads that sleep on the futex. There is more than one only on the shared one. */
static void wake(struct rl_futex *futex)
{
    futex_call(&futex->value, FUTEX_WAKE, INT_MAX, NULL);
}

/* Returns a futex for one sleeper: a free one, a new one, or the shared one without memory. */
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

/* Puts a futex into the list of free ones. The shared one stays where it is. */
static void free_futex(struct rl_wakes *wakes, struct rl_futex *futex)
{
    if (futex == &wakes->shared)
        return;
    futex->free_next = wakes->futexes_free;
    wakes->futexes_free = futex;
}

/* Prepares the futexes of a new client, which has zeroed `wakes`. `mem` and `mutex` are the
 * client's, and are not copied. */
void rl_wake_init(struct rl_wakes *wakes, const struct rl_mem *mem, pthread_mutex_t *mutex)
{
    wakes->mem = mem;
    wakes->mutex = mutex;
}

/* Frees all futexes. No thread may sleep on one any more. */
void rl_wake_free(struct rl_wakes *wakes)
{
    while (wakes->futexes_all != NULL) {
        struct rl_futex *next = wakes->futexes_all->all_next;
        rl_free(wakes->mem, wakes->futexes_all);
        wakes->futexes_all = next;
    }
    wakes->futexes_free = NULL;
}

/* Notes that the waiter's thread must be woken when the mutex is released. Does nothing if the
 * thread does not sleep. If RL_WAKES_MAX notes are waiting, wakes one of the noted threads at once
 * to make room. */
void rl_wake_note(struct rl_wakes *wakes, struct rl_waiter *waiter)
{
    if (waiter->futex == NULL)
        return; /* the thread is awake and checks the waiter before it sleeps */
    atomic_fetch_add(&waiter->futex->value, 1);
    if (wakes->count == RL_WAKES_MAX)
        wake(wakes->noted[--wakes->count]);
    wakes->noted[wakes->count++] = waiter->futex;
}

/* Releases the mutex, then wakes the threads that were noted before. Copies the notes first,
 * because another thread may add notes as soon as the mutex is free. */
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

void rl_wake_sleep(struct rl_wakes *wakes, struct rl_waiter *waiter, uint64_t ns)
{
    const struct timespec limit = {.tv_sec = (time_t)(ns / RL_SECOND),
                                   .tv_nsec = (long)(ns % RL_SECOND)};
    struct rl_futex *futex = take_futex(wakes);
    unsigned before = atomic_load(&futex->value);

    waiter->futex = futex;
    rl_wake_unlock(wakes);
    futex_call(&futex->value, FUTEX_WAIT, before, ns != RL_NEVER ? &limit : NULL);
    pthread_mutex_lock(wakes->mutex);
    waiter->futex = NULL;
    free_futex(wakes, futex);
}
