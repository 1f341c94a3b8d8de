/* SPDX-License-Identifier: MIT
 * Calls the functions of the caller of the library. lib/meson.build has the flags of this file. */
#include "platform/callback.h"

void rl_call_event(redlock_event_fn fn, redlock_t *rl, const redlock_event_t *event, void *userdata)
{
    fn(rl, event, userdata);
}

void rl_call_event_end(redlock_event_end_fn fn, void *userdata)
{
    fn(userdata);
}

void rl_call_done(redlock_done_fn fn, redlock_t *rl, int status, redlock_lock_t *lock,
                  const redlock_report_t *report, void *userdata)
{
    fn(rl, status, lock, report, userdata);
}

int rl_call_body(redlock_body_fn fn, redlock_lock_t *lock, void *userdata)
{
    return fn(lock, userdata);
}

void rl_call_log(const struct rl_log *log, int level, const char *message)
{
    log->fn(level, message, log->userdata);
}

void *rl_call_malloc(const struct rl_mem *mem, size_t size)
{
    return mem->malloc_fn(size, mem->userdata);
}

void *rl_call_realloc(const struct rl_mem *mem, void *ptr, size_t size)
{
    return mem->realloc_fn(ptr, size, mem->userdata);
}

void rl_call_free(const struct rl_mem *mem, void *ptr)
{
    mem->free_fn(ptr, mem->userdata);
}
