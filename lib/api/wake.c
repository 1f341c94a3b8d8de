/* SPDX-License-Identifier: MIT
 * Threads that sleep in a blocking call, and how they are woken. Whoever is told while the mutex is
 * held would wake up only to wait for the mutex: so it is noted who is to be woken, and done when
 * the mutex is free.
 *
 * A thread may find by itself that it was told, and be gone before it is woken. Its stack is not
 * ours then, so what it sleeps at belongs to the client and is used again by the next sleeper, who
 * looks again after a wake-up that was not meant for it. */
#include "api/client.h"

#include <errno.h>
#include <limits.h>
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

/* All who sleep there: more than one only at the shared word. */
static void wake(struct rl_word *word)
{
    futex(&word->value, FUTEX_WAKE, INT_MAX);
}

static struct rl_word *take_word(struct redlock *rl)
{
    struct rl_word *word = rl->words_free;

    if (word != NULL) {
        rl->words_free = word->free_next;
        return word;
    }
    word = rl_alloc(&rl->mem, sizeof *word);
    if (word == NULL)
        return &rl->word_shared;
    word->all_next = rl->words_all;
    rl->words_all = word;
    return word;
}

static void give_word(struct redlock *rl, struct rl_word *word)
{
    if (word == &rl->word_shared)
        return;
    word->free_next = rl->words_free;
    rl->words_free = word;
}

void rl_wake_free(struct redlock *rl)
{
    while (rl->words_all != NULL) {
        struct rl_word *next = rl->words_all->all_next;
        rl_free(&rl->mem, rl->words_all);
        rl->words_all = next;
    }
    rl->words_free = NULL;
}

void rl_wake_note(struct redlock *rl, struct rl_waiter *waiter)
{
    if (waiter->word == NULL)
        return; /* it is awake, and looks before it sleeps */
    atomic_fetch_add(&waiter->word->value, 1);
    if (rl->wake_count == RL_WAKES_MAX)
        wake(rl->wakes[--rl->wake_count]);
    rl->wakes[rl->wake_count++] = waiter->word;
}

void rl_wake_noted(struct redlock *rl)
{
    while (rl->wake_count > 0)
        wake(rl->wakes[--rl->wake_count]);
}

void rl_client_unlock(struct redlock *rl)
{
    struct rl_word *words[RL_WAKES_MAX];
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
    struct rl_word *word = take_word(rl);
    unsigned before = atomic_load(&word->value);

    waiter->word = word;
    rl_client_unlock(rl);
    futex(&word->value, FUTEX_WAIT, before);
    pthread_mutex_lock(&rl->mutex);
    waiter->word = NULL;
    give_word(rl, word);
}
