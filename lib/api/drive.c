/* SPDX-License-Identifier: MIT
 * Who turns the loop. Normally our I/O thread; but a caller that blocks alone turns it itself: two
 * hand-overs between threads cost more than the work they hand over.
 *
 * While callers drive, the I/O thread is not in the poller: it runs callbacks, or is parked. With
 * two in there, the one would sleep on while the other is woken again and again, and callbacks,
 * which are the I/O thread's, would wait with it. So a caller that finds it there wakes it, and
 * begins to drive when it has come out, unless its operation is done by then. It takes the loop
 * back when nobody has driven for PARK_NS (the end of a long drive wakes it), and is called back at
 * once when something is left to do that the leaving caller will not wait for: other sleepers,
 * callbacks, a timer that is due soon.
 */
#include "api/client.h"

#define PARK_NS (2 * RL_MS)
/* While one call drives for long there is nothing to look at: so seldom. */
#define PARK_MAX_NS RL_SECOND
/* So many blocking calls in a row, each the only one, before a caller asks for the wheel. */
#define STREAK 8

void rl_drive_init(struct redlock *rl)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rl->park, &attr);
    pthread_condattr_destroy(&attr);
}

static void park(struct redlock *rl, uint64_t ns)
{
    struct timespec until;

    rl_clock_wait_until(&until, ns);
    rl->parks_long = ns > PARK_NS;
    rl->parked = true;
    rl_wake_noted(rl);
    pthread_cond_timedwait(&rl->park, &rl->mutex, &until);
    rl->parked = false;
}

void rl_drive_arrived(struct redlock *rl)
{
    rl->polls = false;
    if (rl->at_door != NULL)
        rl_wake_note(rl, rl->at_door);
}

void rl_drive_yield(struct redlock *rl)
{
    uint64_t park_ns = PARK_NS;

    pthread_mutex_lock(&rl->mutex);
    while (!atomic_load(&rl->stop)) {
        uint64_t drives = rl->drives;
        bool needed = rl->sleepers > 0 || rl_dispatch_has_news(rl);
        if (!rl->caller_drives && (needed || !rl->yielding))
            break;
        if (rl->mode == REDLOCK_MODE_THREADED && rl_dispatch_has_news(rl))
            rl_loop_settle(rl); /* callbacks are ours, whoever reads the sockets */
        park(rl, park_ns);
        bool goes_on = rl->caller_drives && rl->drives == drives;
        park_ns = goes_on ? rl_min_u64(4 * park_ns, PARK_MAX_NS) : PARK_NS;
        rl->yielding = rl->caller_drives || (rl->yielding && rl->drives != drives);
    }
    rl->yielding = false;
    if (rl->flush_owed)
        rl_io_flush(&rl->io);
    rl->flush_owed = false;
    rl->polls = !atomic_load(&rl->stop);
    rl_client_unlock(rl);
}

void rl_drive_recall(struct redlock *rl)
{
    if (rl->parked)
        pthread_cond_signal(&rl->park);
}

static bool may_drive(struct redlock *rl)
{
    if (rl->sleepers > 0 || rl->caller_drives || !rl->thread_runs) {
        rl->streak = 0;
        return false;
    }
    if (rl->parked)
        return true;
    return ++rl->streak >= STREAK;
}

static bool is_due_soon(struct redlock *rl)
{
    uint64_t soon_ns = rl_add_sat(rl_client_now(rl).boot_ns, PARK_NS);
    bool due = rl_review_wake_ns(rl) <= soon_ns;

    for (unsigned i = 0; i < rl->set_count; i++)
        due = rl_engine_is_due(&rl->sets[i].engine, soon_ns) || due;
    return due;
}

static void await_poller(struct redlock *rl, struct rl_waiter *waiter)
{
    rl_io_wake(&rl->io);
    rl->at_door = waiter;
    while (rl->polls && !waiter->done)
        rl_wake_sleep(rl, waiter);
    rl->at_door = NULL;
}

static void drive(struct redlock *rl, struct rl_waiter *waiter)
{
    rl->caller_drives = true;
    rl->yielding = true;
    rl->drives++;
    if (rl->polls)
        await_poller(rl, waiter);
    while (!waiter->done) {
        struct rl_ready ready[RL_READY_MAX];
        if (rl->client_ops != NULL)
            rl_poller_arm(&rl->io.poller, rl_review_wake_ns(rl));
        rl->driver_sleeps = true;
        rl_client_unlock(rl);
        int count = rl_io_wait(&rl->io, ready, -1);
        pthread_mutex_lock(&rl->mutex);
        rl->driver_sleeps = false;
        rl_io_tick(&rl->io, ready, count);
        rl_review(rl);
        rl_io_flush(&rl->io);
        if (rl_dispatch_has_news(rl))
            rl_drive_recall(rl);
    }
    rl->caller_drives = false;
    if (rl->draining)
        pthread_cond_broadcast(&rl->park);
    else if (rl->sleepers > 0 || rl->parks_long || rl_dispatch_has_news(rl) || is_due_soon(rl))
        rl_drive_recall(rl);
}

void rl_drive_end(struct redlock *rl)
{
    while (rl->caller_drives) {
        rl_io_wake(&rl->io);
        rl_wake_noted(rl);
        pthread_cond_wait(&rl->park, &rl->mutex);
    }
}

void rl_drive_wait(struct redlock *rl, struct rl_waiter *waiter)
{
    if (!waiter->done && may_drive(rl)) {
        drive(rl, waiter);
        return;
    }
    rl->sleepers++;
    while (!waiter->done)
        rl_wake_sleep(rl, waiter);
    rl->sleepers--;
}
