/* SPDX-License-Identifier: MIT
 * Starts a detached thread for each piece of work. */
#include "node/background.h"

#include "platform/thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)256 * 1024) /* name service modules of libc need much stack */

/* Closes the descriptor and frees the work. */
static void destroy(struct rl_background *work)
{
    close(work->wake_fd);
    work->destroy(work);
}

/* Drops one reference, and destroys the work with the last one. */
static void drop_ref(struct rl_background *work)
{
    if (atomic_fetch_sub(&work->refs, 1) == 1)
        destroy(work);
}

/* Does the work `arg`, as the start function of its thread; then writes to the eventfd, and drops
 * the thread's reference. */
static void *run(void *arg)
{
    struct rl_background *work = arg;

    work->run(work);
    atomic_store(&work->done, true);

    uint64_t one = 1;
    ssize_t written = write(work->wake_fd, &one, sizeof one);
    (void)written; /* fails only if the counter is full; then the descriptor is readable anyway */
    drop_ref(work);
    return NULL;
}

/* Starts the thread, detached. Returns 0, or -1 if there is no thread. */
static int start_thread(struct rl_background *work)
{
    pthread_attr_t attr;
    pthread_t thread;

    if (pthread_attr_init(&attr) != 0)
        return -1;
    int rc = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (rc == 0)
        rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (rc == 0)
        rc = rl_thread_start(&thread, &attr, run, work);
    pthread_attr_destroy(&attr);
    return rc == 0 ? 0 : -1;
}

/* Starts the work on a thread of its own. Returns false, with the work destroyed, if threads or
 * descriptors are exhausted. */
bool rl_background_start(struct rl_background *work, int wake_fd)
{
    work->pid = getpid();
    atomic_init(&work->refs, 2);
    atomic_init(&work->done, false);
    work->wake_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
    if (work->wake_fd < 0) {
        work->destroy(work);
        return false;
    }
    if (start_thread(work) != 0) {
        destroy(work);
        return false;
    }
    return true;
}

/* Returns true after run() has returned. */
bool rl_background_is_done(const struct rl_background *work)
{
    return atomic_load(&work->done);
}

/* Ends the use of the work by its caller. */
void rl_background_drop(struct rl_background *work)
{
    if (work->pid != getpid())
        destroy(work); /* a forked child has a copy of the work, but no thread that would free it */
    else
        drop_ref(work);
}
