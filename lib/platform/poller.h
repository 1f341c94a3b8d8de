/* SPDX-License-Identifier: MIT
 * Combines all that a client waits for in one descriptor: its sockets, its next deadline, and a
 * wake-up from another thread. In a poll() of the caller's own loop, the descriptor is readable if
 * and only if a socket is ready, the deadline has passed or a wake-up has come.
 *
 * A wake-up here is a call of rl_poller_wake(), which ends the wait of the thread that uses the
 * poller. (The glossary's wake-up of a waiter is another thing.)
 *
 * One thread at a time may use a poller. Exceptions: any thread may call rl_poller_wake() at any
 * time, and rl_poller_arm() while another thread waits. A forked child may call rl_poller_close()
 * only, because it shares the epoll set with its parent. */
#ifndef RL_PLATFORM_POLLER_H
#define RL_PLATFORM_POLLER_H

#include "core/types.h"

#include <stdatomic.h>

/* The poller of one client. Only poller.c changes it. The descriptors are -1 if closed. */
struct rl_poller {
    int epoll_fd;      /* epoll set of the other two and of all sockets */
    int timer_fd;      /* timer on CLOCK_BOOTTIME */
    int wake_fd;       /* eventfd; readable after a wake-up */
    bool lost;         /* the program has closed the three descriptors */
    atomic_bool woken; /* true from a wake-up until a wait has consumed the wake-up. While it is
                        * true, another wake-up need not write to wake_fd */
    _Atomic uint64_t armed_boot_ns; /* boot time at which timer_fd fires; RL_NEVER: it is not armed,
                                     * or has fired */
};

/* A descriptor that is ready, and for what. */
struct rl_ready {
    uint32_t tag;  /* the tag that was given to rl_poller_add() or rl_poller_change() last */
    bool readable; /* a read does not block */
    bool writable; /* a write does not block; reported only if `want_write` was set */
    bool broken;   /* error or hang-up; the next read returns which */
};

/* Opens the poller. Returns 0 or REDLOCK_ESYS. On failure no descriptor is left open, and
 * rl_poller_close() may still be called. */
int rl_poller_open(struct rl_poller *poller);
/* Closes the poller's own descriptors, but not those that were added. */
void rl_poller_close(struct rl_poller *poller);

/* Has the poller not use its descriptors any more, because the program has closed them: their
 * numbers may be those of other files. A wait then only sleeps for a moment, and no descriptor can
 * be added. Called by the thread that uses the poller. */
void rl_poller_forget(struct rl_poller *poller);
/* Returns whether rl_poller_forget() was called. */
bool rl_poller_is_lost(const struct rl_poller *poller);

/* Returns the descriptor for a poll(POLLIN) of the caller's loop. */
int rl_poller_fd(const struct rl_poller *poller);

/* Watches `fd` for reading, and for writing if `want_write`, level triggered. The tag identifies it
 * in struct rl_ready. Returns 0 or REDLOCK_ESYS. */
int rl_poller_add(struct rl_poller *poller, int fd, uint32_t tag, bool want_write);
/* Changes tag and `want_write` of a descriptor that is watched. Returns 0 or REDLOCK_ESYS. */
int rl_poller_change(struct rl_poller *poller, int fd, uint32_t tag, bool want_write);
/* Stops watching `fd`. Call it before the descriptor is closed. */
void rl_poller_remove(struct rl_poller *poller, int fd);

/* Waits up to `timeout_ms` (-1: a second, 0: not at all) and writes up to `max` > 0 ready
 * descriptors to `ret_ready`. Returns their number, or -1 if the program has closed the poller's
 * own descriptors. Other ready descriptors are reported by the next wait. The timer and wake-ups
 * end the wait and are consumed, but not reported. With `max` above 2, as the library uses it, a
 * result of 0 means that no descriptor is ready: the timer has fired, a wake-up or a signal has
 * come, or the timeout has ended. */
int rl_poller_wait(struct rl_poller *poller, struct rl_ready *ret_ready, size_t max,
                   int timeout_ms);

/* Does the same as rl_poller_wait() with a timeout of 0, but leaves the timer and wake-ups to the
 * next wait. For use within a tick: a wake-up that comes then may concern something that the tick
 * has already passed, or another thread. */
int rl_poller_poll(struct rl_poller *poller, struct rl_ready *ret_ready, size_t max);

/* Arms the timer, so that a wait ends at the deadline, a boot time in nanoseconds, at the latest.
 * Does nothing if the timer is armed for an earlier time, because waking too early is harmless, or
 * if the deadline is RL_NEVER. Call it with the earliest of all deadlines after each wait, because
 * a wait may have consumed the timer. */
void rl_poller_arm(struct rl_poller *poller, uint64_t deadline_boot_ns);

/* Ends the running wait, or the next one. Any thread and any signal handler may call it; errno is
 * preserved. The thread whose wait ends sees all that the caller wrote to memory before. */
void rl_poller_wake(struct rl_poller *poller);

#endif
