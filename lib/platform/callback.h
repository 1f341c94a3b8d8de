/* SPDX-License-Identifier: MIT
 * Calls the functions of the caller of the library: callbacks, log and allocator. The library calls
 * them only through this file.
 *
 * A C++ exception or a thread cancellation that unwinds through the library would leave a mutex
 * locked or a data structure half changed. callback.c is compiled without unwind tables, so that
 * unwinding cannot pass these functions: the C++ runtime calls std::terminate() instead. */
#ifndef RL_PLATFORM_CALLBACK_H
#define RL_PLATFORM_CALLBACK_H

#include "platform/log.h"
#include "platform/memory.h"

#include <redlock/redlock.h>

/* Each function calls `fn`, which must not be NULL, or the function of `log` or `mem`, with the
 * other arguments, and returns its result. */
void rl_call_event(redlock_event_fn fn, redlock_t *rl, const redlock_event_t *event,
                   void *userdata);
void rl_call_event_end(redlock_event_end_fn fn, void *userdata);
void rl_call_done(redlock_done_fn fn, redlock_t *rl, int status, redlock_lock_t *lock,
                  const redlock_report_t *report, void *userdata);
int rl_call_body(redlock_body_fn fn, redlock_lock_t *lock, void *userdata);
void rl_call_log(const struct rl_log *log, int level, const char *message);
void *rl_call_malloc(const struct rl_mem *mem, size_t size);
void *rl_call_realloc(const struct rl_mem *mem, void *ptr, size_t size);
void rl_call_free(const struct rl_mem *mem, void *ptr);

#endif
