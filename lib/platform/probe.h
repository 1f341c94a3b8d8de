/* SPDX-License-Identifier: MIT
 * USDT probes: places in the code that tracers such as bpftrace, perf and gdb can watch in a
 * running process. A probe is one instruction (nop) and a note in the binary that says where the
 * arguments are. Without sys/sdt.h, or with -Dprobes=disabled, the functions do nothing.
 *
 * Names and arguments are documented in examples/tracing/README.md and tested in
 * test/abi/probes_test.py. New arguments are appended. Keys are not NUL-terminated: a length
 * follows. */
#ifndef RL_PLATFORM_PROBE_H
#define RL_PLATFORM_PROBE_H

#include <stddef.h>
#include <stdint.h>

#ifdef RL_PROBES
#include <sys/sdt.h>
#ifdef __clang__ /* the macros of sys/sdt.h leave the arguments of "..." out */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define RL_PROBE3(name, a, b, c)       DTRACE_PROBE3(redlock, name, a, b, c)
#define RL_PROBE4(name, a, b, c, d)    DTRACE_PROBE4(redlock, name, a, b, c, d)
#define RL_PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(redlock, name, a, b, c, d, e)
#else
#define RL_PROBE3(name, a, b, c)       ((void)(a), (void)(b), (void)(c))
#define RL_PROBE4(name, a, b, c, d)    ((void)(a), (void)(b), (void)(c), (void)(d))
#define RL_PROBE5(name, a, b, c, d, e) ((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

/* An acquisition begins. `key`: the first one of `keys`. */
static inline void rl_probe_acquire(const char *key, size_t key_len, unsigned keys, uint64_t ttl_ms)
{
    RL_PROBE4(acquire, key, key_len, keys, ttl_ms);
}

/* A quorum has granted a lock, in the attempt with this number, `waited_us` after the acquisition
 * began. */
static inline void rl_probe_grant(const char *key, size_t key_len, uint64_t validity_ms,
                                  unsigned attempts, uint64_t waited_us)
{
    RL_PROBE5(grant, key, key_len, validity_ms, attempts, waited_us);
}

/* An attempt has failed with `status` (enum redlock_error). `granted`, `denied`: numbers of votes
 * that had arrived by then. */
static inline void rl_probe_attempt_failed(const char *key, size_t key_len, int status,
                                           unsigned granted, unsigned denied)
{
    RL_PROBE5(attempt_failed, key, key_len, status, granted, denied);
}

/* A lock is lost, `age_ms` after its acquisition began. */
static inline void rl_probe_loss(const char *key, size_t key_len, uint64_t age_ms)
{
    RL_PROBE3(loss, key, key_len, age_ms);
}

/* A release has ended with `status` (enum redlock_error). */
static inline void rl_probe_release(const char *key, size_t key_len, int status)
{
    RL_PROBE3(release, key, key_len, status);
}

/* The server with this address (NUL-terminated) has notified that `key` has changed. `key_len` 0:
 * any key may have changed. */
static inline void rl_probe_notification(const char *server, const char *key, size_t key_len)
{
    RL_PROBE3(notification, server, key, key_len);
}

#endif
