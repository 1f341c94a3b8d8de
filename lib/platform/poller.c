/* SPDX-License-Identifier: MIT
 * Combines sockets, timer and wake-ups of a client in one epoll descriptor. The timer is a timerfd,
 * and a wake-up is a write to an eventfd, so that the one epoll set covers all of them. A wake-up
 * is consumed when the waiting thread has read the eventfd. */
#include "platform/poller.h"

#include <errno.h>
#include <poll.h>
#include <redlock/redlock.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The 64 bits of data that epoll keeps for each descriptor: up to UINT32_MAX, the tag of a socket;
 * these two values for the poller's own timer and eventfd. */
#define DATA_TIMER (UINT64_C(1) << 32)
#define DATA_WAKE  (UINT64_C(2) << 32)
/* The longest wait. If the program closes all descriptors during a wait, neither timer nor wake-ups
 * end it. */
#define WAIT_MAX_MS  1000
#define LOST_WAIT_MS 10 /* in place of a wait, once the descriptors are closed */
#define OWN_EVENTS   2  /* timer and wake-up */
#define BATCH        (RL_NODES_MAX + OWN_EVENTS) /* most events that one epoll_wait() takes */

/* Adds, changes or removes a descriptor of the epoll set; `op` is EPOLL_CTL_*. `data`: what epoll
 * returns with its events. `events`: EPOLL* bits to wait for. Returns 0 or REDLOCK_ESYS. */
static int watch(int epoll_fd, int op, int fd, uint64_t data, uint32_t events)
{
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = events;
    event.data.u64 = data;
    return epoll_ctl(epoll_fd, op, fd, &event) == 0 ? 0 : REDLOCK_ESYS;
}

/* Opens the poller's own three descriptors. Returns 0 or REDLOCK_ESYS; on failure none is left
 * open. */
int rl_poller_open(struct rl_poller *poller)
{
    poller->lost = false;
    atomic_init(&poller->woken, false);
    atomic_init(&poller->armed_boot_ns, RL_NEVER);
    poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    poller->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    poller->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    if (poller->epoll_fd < 0 || poller->timer_fd < 0 || poller->wake_fd < 0 ||
        watch(poller->epoll_fd, EPOLL_CTL_ADD, poller->timer_fd, DATA_TIMER, EPOLLIN) != 0 ||
        watch(poller->epoll_fd, EPOLL_CTL_ADD, poller->wake_fd, DATA_WAKE, EPOLLIN) != 0) {
        rl_poller_close(poller);
        return REDLOCK_ESYS;
    }
    return 0;
}

/* Closes `*fd`, unless it is -1, and sets it to -1. */
static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Closes the poller's own three descriptors, but not the sockets that were added. */
void rl_poller_close(struct rl_poller *poller)
{
    if (poller->lost)
        poller->epoll_fd = poller->timer_fd = poller->wake_fd = -1;
    close_fd(&poller->epoll_fd);
    close_fd(&poller->timer_fd);
    close_fd(&poller->wake_fd);
}

bool rl_poller_is_lost(const struct rl_poller *poller)
{
    return poller->lost;
}

/* Returns the epoll descriptor, for a poll(POLLIN) of the caller's own loop. */
int rl_poller_fd(const struct rl_poller *poller)
{
    return poller->epoll_fd;
}

/* Returns the epoll descriptor; -1 if the program has closed it. */
static int epoll_of(const struct rl_poller *poller)
{
    return poller->lost ? -1 : poller->epoll_fd;
}

/* Returns the EPOLL* bits to wait for: reading, and writing if `want_write`. */
static uint32_t interest(bool want_write)
{
    return want_write ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

/* Begins to watch a socket, which `tag` identifies in struct rl_ready. Returns 0 or REDLOCK_ESYS.
 */
int rl_poller_add(struct rl_poller *poller, int fd, uint32_t tag, bool want_write)
{
    return watch(epoll_of(poller), EPOLL_CTL_ADD, fd, tag, interest(want_write));
}

/* Changes tag and `want_write` of a socket that is watched. Returns 0 or REDLOCK_ESYS. */
int rl_poller_change(struct rl_poller *poller, int fd, uint32_t tag, bool want_write)
{
    return watch(epoll_of(poller), EPOLL_CTL_MOD, fd, tag, interest(want_write));
}

/* Stops watching a socket. */
void rl_poller_remove(struct rl_poller *poller, int fd)
{
    (void)watch(epoll_of(poller), EPOLL_CTL_DEL, fd, 0, 0);
}

/* Reads the counter of a timer or eventfd, which makes it not readable. EAGAIN is harmless: the
 * timer was armed again after epoll had reported it. */
static void consume(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got;
}

/* Sleeps in place of a wait, because the program has closed the descriptors. */
static void sleep_lost(int timeout_ms)
{
    (void)poll(NULL, 0, timeout_ms < LOST_WAIT_MS ? timeout_ms : LOST_WAIT_MS);
}

void rl_poller_forget(struct rl_poller *poller)
{
    poller->lost = true;
    /* No thread writes to the descriptors: a wake-up is pending, and the timer armed, for ever. */
    atomic_store(&poller->woken, true);
    atomic_store(&poller->armed_boot_ns, 0);
}

/* Waits up to `timeout_ms` (-1: without limit) and writes up to `max` ready sockets to `ret_ready`.
 * Returns their number. If `consumes`, a timer that has fired and a wake-up are consumed; else they
 * end the next wait. Does the work of rl_poller_wait() and rl_poller_poll(). */
static int wait_for(struct rl_poller *poller, struct rl_ready *ret_ready, size_t max,
                    int timeout_ms, bool consumes)
{
    struct epoll_event events[BATCH];
    /* Takes no more events than it can report. epoll moves events that it has returned to the end
     * of its queue, so an event dropped here could be dropped again each time. */
    int room = max < BATCH ? (int)max : BATCH;
    if (timeout_ms < 0)
        timeout_ms = WAIT_MAX_MS;
    if (poller->lost) {
        sleep_lost(timeout_ms);
        return 0;
    }
    int got = epoll_wait(poller->epoll_fd, events, room, timeout_ms);
    size_t count = 0;

    RL_ASSERT(max > 0);
    if (got < 0 && errno != EINTR) {
        sleep_lost(timeout_ms);
        return -1;
    }
    for (int i = 0; i < got; i++) {
        if (events[i].data.u64 > UINT32_MAX && !consumes)
            continue;
        if (events[i].data.u64 == DATA_TIMER) {
            consume(poller->timer_fd);
            atomic_store(&poller->armed_boot_ns, RL_NEVER);
        } else if (events[i].data.u64 == DATA_WAKE) {
            /* The order matters. A thread that wakes us between the two lines finds the flag set
             * and does not write, but we see what it published before. In the other order it would
             * write, we would consume its write, and the flag would stay set: every later wake-up
             * would be lost. */
            consume(poller->wake_fd);
            (void)atomic_exchange(&poller->woken, false);
        } else {
            ret_ready[count++] = (struct rl_ready){
                .tag = (uint32_t)events[i].data.u64,
                .readable = (events[i].events & EPOLLIN) != 0,
                .writable = (events[i].events & EPOLLOUT) != 0,
                .broken = (events[i].events & (EPOLLERR | EPOLLHUP)) != 0,
            };
        }
    }
    return (int)count;
}

/* Waits for ready sockets, the timer or a wake-up. Returns the number of ready sockets. */
int rl_poller_wait(struct rl_poller *poller, struct rl_ready *ret_ready, size_t max, int timeout_ms)
{
    return wait_for(poller, ret_ready, max, timeout_ms, true);
}

/* Returns the sockets that are ready now, without a wait; does not consume the timer and wake-ups.
 */
int rl_poller_poll(struct rl_poller *poller, struct rl_ready *ret_ready, size_t max)
{
    return wait_for(poller, ret_ready, max, 0, false);
}

/* Sets the timer to a boot time in nanoseconds. Does nothing if the timer is armed for that time or
 * an earlier one, or if the time is RL_NEVER. */
void rl_poller_arm(struct rl_poller *poller, uint64_t deadline_boot_ns)
{
    if (deadline_boot_ns >= atomic_load(&poller->armed_boot_ns))
        return; /* always, if the deadline is RL_NEVER */

    uint64_t at = deadline_boot_ns == 0 ? 1 : deadline_boot_ns; /* 0 would disarm the timer */
    struct itimerspec when;
    memset(&when, 0, sizeof when);
    when.it_value.tv_sec = (time_t)(at / RL_SECOND);
    when.it_value.tv_nsec = (long)(at % RL_SECOND);
    /* The order matters. If the deadline has passed, the timer fires inside of timerfd_settime(),
     * and the waiting thread may consume it at once. Stored after that, armed_boot_ns would claim
     * that the timer is armed, and it would not be armed again. */
    atomic_store(&poller->armed_boot_ns, deadline_boot_ns);
    if (timerfd_settime(poller->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        atomic_store(&poller->armed_boot_ns, RL_NEVER);
}

/* Ends the running wait, or the next one, by a write to the eventfd, unless an earlier wake-up was
 * not consumed yet. Any thread and any signal handler may call it. */
void rl_poller_wake(struct rl_poller *poller)
{
    if (atomic_exchange(&poller->woken, true))
        return;

    /* Not write(), which is a cancellation point: a thread cancelled in it would leave the flag set
     * without a write, and every later wake-up would be lost. */
    int saved_errno = errno;
    uint64_t one = 1;
    long rc = syscall(SYS_write, poller->wake_fd, &one, sizeof one);
    (void)rc; /* fails only if the counter is full, and then wake_fd is readable */
    errno = saved_errno;
}
