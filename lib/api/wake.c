/* SPDX-License-Identifier: MIT
 * Threads that sleep in a blocking call, and how they are woken. Whoever is told while the mutex is
 * held would wake up only to wait for the mutex: so it is noted who is to be woken, and done when
 * the mutex is free.
 *
 * A thread may find by itself that it was told, and be gone before it is woken: its waiter, which
 * was on its stack, is not there any more. So only the address is kept, and it is only handed to
 * the kernel, to which any address will do; who sleeps at it for another reason looks again, as all
 * who sleep on a futex do. */
#include "api/client.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not a cancellation point, and nobody's errno. */
static void futex(atomic_uint *word, int op, unsigned value)
{
    int saved_errno = errno;

    (void)syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
    errno = saved_errno;
}

static void wake(atomic_uint *word)
{
    futex(word, FUTEX_WAKE, 1);
}

void rl_wake_note(struct redlock *rl, struct rl_waiter *waiter)
{
    atomic_fetch_add(&waiter->word, 1);
    if (rl->wake_count == RL_WAKES_MAX)
        wake(rl->wakes[--rl->wake_count]);
    rl->wakes[rl->wake_count++] = &waiter->word;
}

void rl_wake_noted(struct redlock *rl)
{
    while (rl->wake_count > 0)
        wake(rl->wakes[--rl->wake_count]);
}

void rl_client_unlock(struct redlock *rl)
{
    atomic_uint *words[RL_WAKES_MAX];
    unsigned count = rl->wake_count;

    for (unsigned i = 0; i < count; i++)
        words[i] = rl->wakes[i];
    rl->wake_count = 0;
    pthread_mutex_unlock(&rl->mutex);
    for (unsigned i = 0; i < count; i++)
        wake(words[i]);
}

void rl_wake_sleep(struct redlock *rl, struct rl_waiter *waiter)
{
    unsigned before = atomic_load(&waiter->word);

    rl_client_unlock(rl);
    futex(&waiter->word, FUTEX_WAIT, before);
    pthread_mutex_lock(&rl->mutex);
}
