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
#include "api/drive.h"

#include "api/client.h"
#include "api/review.h"
#include "platform/clock.h"

#define PARK_NS (2 * RL_MS)
/* While one call drives for long there is nothing to look at: so seldom. */
#define PARK_MAX_NS RL_SECOND
/* So many blocking calls in a row, each the only one, before a caller asks for the wheel. */
#define STREAK          8
#define FLUSH_SKIPS_MAX 16
#define CROWD_MIN       2 /* callers that sleep */

void rl_drive_init(struct redlock *rl)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rl->drive.park, &attr);
    pthread_condattr_destroy(&attr);
}

static void park(struct redlock *rl, uint64_t ns)
{
    struct rl_drive *drive = &rl->drive;
    struct timespec until;

    rl_clock_wait_until(&until, ns);
    drive->parks_long = ns > PARK_NS;
    drive->parked = true;
    rl_wake_noted(&rl->wakes);
    pthread_cond_timedwait(&drive->park, &rl->mutex, &until);
    drive->parked = false;
}

void rl_drive_free(struct redlock *rl)
{
    pthread_cond_destroy(&rl->drive.park);
}

void rl_drive_begin(struct redlock *rl)
{
    rl->drive.polls = true;
}

void rl_drive_arrived(struct redlock *rl)
{
    struct rl_drive *drive = &rl->drive;

    drive->polls = false;
    if (drive->candidate != NULL)
        rl_wake_note(&rl->wakes, drive->candidate);
}

void rl_drive_yield(struct redlock *rl)
{
    struct rl_drive *drive = &rl->drive;
    uint64_t park_ns = PARK_NS;

    pthread_mutex_lock(&rl->mutex);
    while (!rl_loop_is_stopping(rl)) {
        uint64_t drives = drive->drives;
        bool needed = drive->sleepers > 0 || rl_dispatch_has_news(rl);
        if (!drive->caller_drives && (needed || !drive->yielding))
            break;
        if (rl->mode == REDLOCK_MODE_THREADED && rl_dispatch_has_news(rl))
            rl_loop_settle(rl); /* callbacks are ours, whoever reads the sockets */
        park(rl, park_ns);
        bool goes_on = drive->caller_drives && drive->drives == drives;
        park_ns = goes_on ? rl_min_u64(4 * park_ns, PARK_MAX_NS) : PARK_NS;
        drive->yielding = drive->caller_drives || (drive->yielding && drive->drives != drives);
    }
    drive->yielding = false;
    if (drive->flush_owed)
        rl_drive_flush(rl);
    drive->polls = !rl_loop_is_stopping(rl);
    rl_client_unlock(rl);
}

void rl_drive_recall(struct redlock *rl)
{
    struct rl_drive *drive = &rl->drive;

    if (drive->parked)
        pthread_cond_signal(&drive->park);
}

void rl_drive_enter(struct redlock *rl)
{
    atomic_fetch_add(&rl->drive.entering, 1);
    pthread_mutex_lock(&rl->mutex);
    atomic_fetch_sub(&rl->drive.entering, 1);
}

void rl_drive_flush(struct redlock *rl)
{
    rl->drive.flush_owed = false;
    rl_io_flush(&rl->io);
}

/* Where many callers sleep, more are about to come: what this one has to say waits for the I/O
 * thread, which says it for all, in one write for each node. */
static bool leave_to_thread(struct redlock *rl)
{
    struct rl_drive *drive = &rl->drive;

    if (drive->sleepers < CROWD_MIN || !rl_io_is_dirty(&rl->io) || drive->caller_drives ||
        !rl_loop_has_thread(rl))
        return false;
    if (drive->polls)
        rl_io_wake(&rl->io);
    else
        rl_drive_recall(rl);
    drive->flush_owed = true;
    drive->flush_skips = 0;
    return true;
}

void rl_drive_send(struct redlock *rl, bool in_callback)
{
    struct rl_drive *drive = &rl->drive;

    if (in_callback && drive->flush_skips == 0)
        return; /* the loop goes on when the callback returns */
    /* Another caller is about to enter: it sends for both. The number of callers that leave it to
     * the next one is limited. A callback sends what callers before it have left to it. */
    if (!in_callback && atomic_load(&drive->entering) != 0 &&
        drive->flush_skips < FLUSH_SKIPS_MAX) {
        drive->flush_skips++;
    } else if (in_callback || !leave_to_thread(rl)) {
        drive->flush_skips = 0;
        rl_io_flush(&rl->io);
    }
    if (rl->mode == REDLOCK_MODE_THREADED && rl_dispatch_has_news(rl)) {
        rl_io_wake(&rl->io);
        rl_drive_recall(rl);
    }
}

void rl_drive_tell(struct redlock *rl, struct rl_waiter *waiter, int status)
{
    waiter->done = true;
    waiter->status = status;
    rl_wake_note(&rl->wakes, waiter);
    if (rl->drive.driver_sleeps)
        rl_io_wake(&rl->io);
}

static bool may_drive(struct redlock *rl)
{
    struct rl_drive *drive = &rl->drive;

    if (drive->sleepers > 0 || drive->caller_drives || !rl_loop_has_thread(rl)) {
        drive->streak = 0;
        return false;
    }
    if (drive->parked)
        return true;
    return ++drive->streak >= STREAK;
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
    struct rl_drive *drive = &rl->drive;

    rl_io_wake(&rl->io);
    drive->candidate = waiter;
    while (drive->polls && !waiter->done)
        rl_wake_sleep(&rl->wakes, waiter);
    drive->candidate = NULL;
}

static void drive_until_done(struct redlock *rl, struct rl_waiter *waiter)
{
    struct rl_drive *drive = &rl->drive;

    drive->caller_drives = true;
    drive->yielding = true;
    drive->drives++;
    if (drive->polls)
        await_poller(rl, waiter);
    while (!waiter->done) {
        struct rl_ready ready[RL_READY_MAX];
        rl_review_arm(rl);
        drive->driver_sleeps = true;
        rl_client_unlock(rl);
        int count = rl_io_wait(&rl->io, ready, -1);
        pthread_mutex_lock(&rl->mutex);
        drive->driver_sleeps = false;
        rl_io_tick(&rl->io, ready, count);
        rl_review(rl);
        rl_io_flush(&rl->io);
        if (rl_dispatch_has_news(rl))
            rl_drive_recall(rl);
    }
    drive->caller_drives = false;
    if (rl->draining)
        pthread_cond_broadcast(&drive->park);
    else if (drive->sleepers > 0 || drive->parks_long || rl_dispatch_has_news(rl) ||
             is_due_soon(rl))
        rl_drive_recall(rl);
}

void rl_drive_end(struct redlock *rl)
{
    struct rl_drive *drive = &rl->drive;

    while (drive->caller_drives) {
        rl_io_wake(&rl->io);
        rl_wake_noted(&rl->wakes);
        pthread_cond_wait(&drive->park, &rl->mutex);
    }
}

void rl_drive_wait(struct redlock *rl, struct rl_waiter *waiter)
{
    struct rl_drive *drive = &rl->drive;

    if (!waiter->done && may_drive(rl)) {
        drive_until_done(rl, waiter);
        return;
    }
    drive->sleepers++;
    while (!waiter->done)
        rl_wake_sleep(&rl->wakes, waiter);
    drive->sleepers--;
}
