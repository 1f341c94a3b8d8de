/* SPDX-License-Identifier: MIT
 * One descriptor for everything a client waits for: its sockets, its next deadline, and a wake-up
 * from another thread. Readable in somebody else's poll() when, and only when, there is something
 * to do here. One user at a time, except for rl_poller_wake(), and for rl_poller_arm() while
 * another thread waits. In a forked child only rl_poller_close() may be called: the epoll set is
 * shared with the parent. */
#ifndef RL_PLATFORM_POLLER_H
#define RL_PLATFORM_POLLER_H

#include "core/types.h"

#include <stdatomic.h>

struct rl_poller {
    int epoll_fd;
    int timer_fd;                   /* CLOCK_BOOTTIME */
    int wake_fd;                    /* eventfd */
    atomic_bool woken;              /* a write to wake_fd is under way or not consumed yet */
    _Atomic uint64_t armed_boot_ns; /* what timer_fd stands at; RL_NEVER: nothing, or fired */
};

struct rl_ready {
    uint32_t tag;
    bool readable, writable;
    bool broken; /* error or hang-up: the next read says which */
};

/* 0 or REDLOCK_ESYS; on failure nothing is left open, and closing is allowed. */
int rl_poller_open(struct rl_poller *poller);
void rl_poller_close(struct rl_poller *poller);

/* For an outer poll(POLLIN). */
int rl_poller_fd(const struct rl_poller *poller);

/* Level triggered. Always watched for reading, for writing if wanted. 0 or REDLOCK_ESYS. */
int rl_poller_add(struct rl_poller *poller, int fd, uint32_t tag, bool want_write);
int rl_poller_change(struct rl_poller *poller, int fd, uint32_t tag, bool want_write);
/* Before the descriptor is closed. */
void rl_poller_remove(struct rl_poller *poller, int fd);

/* Waits up to timeout_ms (-1: for ever, 0: not at all) and reports up to `max` > 0 descriptors. The
 * timer and wake-ups end the wait and are consumed here; they are not reported, so 0 may mean
 * that either came, that the time is up, or that a signal came. What did not fit stays ready. */
int rl_poller_wait(struct rl_poller *poller, struct rl_ready *ret_ready, size_t max,
                   int timeout_ms);

/* Reports what is ready now, and leaves the timer and wake-ups to the next wait: in the middle of a
 * tick a wake-up may stand for something that this tick has passed by, or be for another thread. */
int rl_poller_poll(struct rl_poller *poller, struct rl_ready *ret_ready, size_t max);

/* Makes sure that a wait ends at the deadline at the latest. A later deadline than the one that
 * stands costs nothing and changes nothing: waking too early is harmless. To be called again, with
 * the earliest deadline of all, after each wait, which may have used the timer up. RL_NEVER:
 * nothing. */
void rl_poller_arm(struct rl_poller *poller, uint64_t deadline_boot_ns);

/* Ends the wait that runs, or the next one. Any thread, and signal handlers; errno is kept. What
 * was written to memory before the call is seen after the wait that it ends. */
void rl_poller_wake(struct rl_poller *poller);

#endif
