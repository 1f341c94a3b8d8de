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

/* Calls `fn`, not NULL, the caller's callback for events, with the other arguments. */
void rl_call_event(redlock_event_fn fn, redlock_t *rl, const redlock_event_t *event,
                   void *userdata);
/* Calls `fn`, not NULL, the caller's function that runs when an event callback is not used any more
 * and its `userdata` may be freed. */
void rl_call_event_end(redlock_event_end_fn fn, void *userdata);
/* Calls `fn`, not NULL, the caller's callback for the end of an operation, with the other
 * arguments. */
void rl_call_done(redlock_done_fn fn, redlock_t *rl, int status, redlock_lock_t *lock,
                  const redlock_report_t *report, void *userdata);
/* Calls `fn`, not NULL, the function that the caller runs under a lock. Returns its result. */
int rl_call_body(redlock_body_fn fn, redlock_lock_t *lock, void *userdata);
/* Calls the log function of `log`, which must not be NULL, with one message. */
void rl_call_log(const struct rl_log *log, int level, const char *message);
/* Allocates `size` bytes with the allocator `mem`. Returns NULL without memory. */
void *rl_call_malloc(const struct rl_mem *mem, size_t size);
/* Resizes `ptr` with the allocator `mem`. Returns NULL without memory; then `ptr` is unchanged. */
void *rl_call_realloc(const struct rl_mem *mem, void *ptr, size_t size);
/* Frees `ptr` with the allocator `mem`. */
void rl_call_free(const struct rl_mem *mem, void *ptr);

#endif
