/* SPDX-License-Identifier: MIT
 * Calls of functions that the host gave. Every call of one goes through here.
 *
 * A C++ exception or a cancellation that passed through the library would leave it in the middle of
 * a callback, or with its mutex held. callback.c is compiled without unwind tables, so an exception
 * finds no way out of these calls: the C++ runtime calls std::terminate() where it is thrown. */
#ifndef RL_PLATFORM_CALLBACK_H
#define RL_PLATFORM_CALLBACK_H

#include "platform/log.h"
#include "platform/memory.h"

#include <redlock/redlock.h>

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
