/* SPDX-License-Identifier: MIT
 * Calls the functions of the caller of the library: callbacks, log and allocator. Each function
 * here calls one function of the caller with the arguments that it gets. This file is compiled
 * without unwind tables (lib/meson.build), so that no C++ exception or thread cancellation can
 * unwind through the library. */
#include "platform/callback.h"

/* Calls `fn`, the caller's callback for events. */
void rl_call_event(redlock_event_fn fn, redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    fn(rl, event, userdata);
}

/* Calls `fn`, the caller's function for the time when an event callback is not used any more. */
void rl_call_event_end(redlock_event_end_fn fn, void *userdata)
{
    fn(userdata);
}

/* Calls `fn`, the caller's callback for the end of an operation. */
void rl_call_done(redlock_done_fn fn, redlock_t *rl, int status, redlock_lock_t *lock,
                  const redlock_report_t *report, void *userdata)
{
    fn(rl, status, lock, report, userdata);
}

/* Calls `fn`, the function that redlock_with() runs while the lock is held, and returns its result.
 */
int rl_call_body(redlock_body_fn fn, redlock_lock_t *lock, void *userdata)
{
    return fn(lock, userdata);
}

/* Calls the log function of `log`, which must not be NULL. */
void rl_call_log(const struct rl_log *log, int level, const char *message)
{
    log->fn(level, message, log->userdata);
}

/* Allocates `size` bytes with the caller's allocator; NULL: no memory. */
void *rl_call_malloc(const struct rl_mem *mem, size_t size)
{
    return mem->malloc_fn(size, mem->userdata);
}

/* Resizes `ptr` to `size` bytes with the caller's allocator; NULL: no memory. */
void *rl_call_realloc(const struct rl_mem *mem, void *ptr, size_t size)
{
    return mem->realloc_fn(ptr, size, mem->userdata);
}

/* Frees `ptr` with the caller's allocator. */
void rl_call_free(const struct rl_mem *mem, void *ptr)
{
    mem->free_fn(ptr, mem->userdata);
}
