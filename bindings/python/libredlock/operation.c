/* SPDX-License-Identifier: MIT
 * A started call of the library, which Python waits for. It is a part of the extension module.
 *
 * Callbacks run on the library's thread. They must not need the interpreter, because that may be
 * busy or already gone. So the callback here stores the result and makes a descriptor readable; the
 * waiting thread polls it, or an event loop does. */
#include <redlock/redlock.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* One started call. Python has a reference, and so has the library until the callback has run. */
typedef struct {
    int fd;                   /* readable when the call has ended */
    int status;               /* then: its result */
    redlock_report_t *report; /* then: its report, or NULL; owned */
    redlock_lock_t *lock;     /* then: the lock of an acquisition that nothing has taken; owned */
    bool acquires;            /* the lock that the callback gets belongs to the operation */
    atomic_int references;
} operation_t;

/* Creates an operation with one reference. acquires: whether the call delivers a new lock. Returns
 * NULL if memory or descriptors are missing. */
static operation_t *operation_new(bool acquires)
{
    operation_t *operation = calloc(1, sizeof *operation);
    if (!operation)
        return NULL;
    operation->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (operation->fd < 0) {
        free(operation);
        return NULL;
    }
    operation->acquires = acquires;
    atomic_init(&operation->references, 1);
    return operation;
}

/* Adds a reference, for the library. */
static void operation_ref(operation_t *operation)
{
    atomic_fetch_add(&operation->references, 1);
}

/* Drops a reference. The last one releases a lock that nothing has taken, as after a cancelled
 * wait, in the background. */
static void operation_unref(operation_t *operation)
{
    if (atomic_fetch_sub(&operation->references, 1) != 1)
        return;
    redlock_lock_free(operation->lock);
    redlock_report_free(operation->report);
    close(operation->fd);
    free(operation);
}

/* Callback of the started call: keeps the result and wakes up the waiting thread. */
static void operation_done(redlock_t *rl, int status, redlock_lock_t *lock,
                           const redlock_report_t *report, void *userdata)
{
    operation_t *operation = userdata;
    (void)rl;
    operation->status = status;
    operation->report = redlock_report_ref(report);
    if (operation->acquires)
        operation->lock = lock;
    eventfd_write(operation->fd, 1);
    operation_unref(operation);
}

/* Returns the lock of an acquisition that has ended, which the caller owns from now on. */
static redlock_lock_t *operation_take_lock(operation_t *operation)
{
    redlock_lock_t *lock = operation->lock;
    operation->lock = NULL;
    return lock;
}

static _Thread_local char refusal[512]; /* the last line of the log on this thread */

/* Log function of a configuration: keeps the line. A _start call that is refused has no report, but
 * writes its reason to the log, on the calling thread. */
static void refusal_keep(int level, const char *message, void *userdata)
{
    (void)level;
    (void)userdata;
    snprintf(refusal, sizeof refusal, "%s", message);
}

/* Forgets the last line of the log on this thread. To be called before a _start call. */
static void refusal_forget(void)
{
    refusal[0] = '\0';
}

/* Returns the last line of the log on this thread; "": none. Borrowed until the next call. */
static const char *refusal_text(void)
{
    return refusal;
}

/* Has a configuration keep the lines of errors. Returns REDLOCK_OK or an error. */
static int refusal_log(redlock_config_t *config)
{
    return redlock_config_set_log(config, REDLOCK_LOG_ERROR, refusal_keep, NULL);
}
