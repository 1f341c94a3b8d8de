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
#define SLEEPERS_MIN    2 /* callers that sleep */

void rl_leader_init(struct redlock *rl)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rl->leader.park, &attr);
    pthread_condattr_destroy(&attr);
}

static void park(struct redlock *rl, uint64_t ns)
{
    struct rl_leader *drive = &rl->leader;
    struct timespec until;

    rl_clock_wait_until(&until, ns);
    drive->parks_long = ns > PARK_NS;
    drive->is_parked = true;
    rl_wake_noted(&rl->wakes);
    pthread_cond_timedwait(&drive->park, &rl->mutex, &until);
    drive->is_parked = false;
}

void rl_leader_free(struct redlock *rl)
{
    pthread_cond_destroy(&rl->leader.park);
}

void rl_leader_begin(struct redlock *rl)
{
    rl->leader.polls = true;
}

void rl_leader_returned(struct redlock *rl)
{
    struct rl_leader *drive = &rl->leader;

    drive->polls = false;
    if (drive->candidate != NULL)
        rl_wake_note(&rl->wakes, drive->candidate);
}

void rl_leader_yield(struct redlock *rl)
{
    struct rl_leader *drive = &rl->leader;
    uint64_t park_ns = PARK_NS;

    pthread_mutex_lock(&rl->mutex);
    while (!rl_loop_is_stopping(rl)) {
        uint64_t drives = drive->leader_turns;
        bool needed = drive->sleepers > 0 || rl_dispatch_has_pending(rl);
        if (!drive->caller_leads && (needed || !drive->yielding))
            break;
        if (rl->mode == REDLOCK_MODE_THREADED && rl_dispatch_has_pending(rl))
            rl_loop_settle(rl); /* callbacks are ours, whoever reads the sockets */
        park(rl, park_ns);
        bool goes_on = drive->caller_leads && drive->leader_turns == drives;
        park_ns = goes_on ? rl_min_u64(4 * park_ns, PARK_MAX_NS) : PARK_NS;
        drive->yielding = drive->caller_leads || (drive->yielding && drive->leader_turns != drives);
    }
    drive->yielding = false;
    if (drive->flush_pending)
        rl_leader_flush(rl);
    drive->polls = !rl_loop_is_stopping(rl);
    rl_client_unlock(rl);
}

void rl_leader_recall(struct redlock *rl)
{
    struct rl_leader *drive = &rl->leader;

    if (drive->is_parked)
        pthread_cond_signal(&drive->park);
}

void rl_leader_enter(struct redlock *rl)
{
    atomic_fetch_add(&rl->leader.entering, 1);
    pthread_mutex_lock(&rl->mutex);
    atomic_fetch_sub(&rl->leader.entering, 1);
}

void rl_leader_flush(struct redlock *rl)
{
    rl->leader.flush_pending = false;
    rl_io_flush(&rl->io);
}

/* Where many callers sleep, more are about to come: what this one has to say waits for the I/O
 * thread, which says it for all, in one write for each node. */
static bool hand_to_thread(struct redlock *rl)
{
    struct rl_leader *drive = &rl->leader;

    if (drive->sleepers < SLEEPERS_MIN || !rl_io_is_dirty(&rl->io) || drive->caller_leads ||
        !rl_loop_has_thread(rl))
        return false;
    if (drive->polls)
        rl_io_wake(&rl->io);
    else
        rl_leader_recall(rl);
    drive->flush_pending = true;
    drive->flush_skips = 0;
    return true;
}

void rl_leader_send(struct redlock *rl, bool in_callback)
{
    struct rl_leader *drive = &rl->leader;

    if (in_callback && drive->flush_skips == 0)
        return; /* the loop goes on when the callback returns */
    /* Another caller is about to enter: it sends for both. The number of callers that leave it to
     * the next one is limited. A callback sends what callers before it have left to it. */
    if (!in_callback && atomic_load(&drive->entering) != 0 &&
        drive->flush_skips < FLUSH_SKIPS_MAX) {
        drive->flush_skips++;
    } else if (in_callback || !hand_to_thread(rl)) {
        drive->flush_skips = 0;
        rl_io_flush(&rl->io);
    }
    if (rl->mode == REDLOCK_MODE_THREADED && rl_dispatch_has_pending(rl)) {
        rl_io_wake(&rl->io);
        rl_leader_recall(rl);
    }
}

void rl_leader_tell(struct redlock *rl, struct rl_waiter *waiter, int status)
{
    waiter->done = true;
    waiter->status = status;
    rl_wake_note(&rl->wakes, waiter);
    if (rl->leader.leader_polls)
        rl_io_wake(&rl->io);
}

static bool may_lead(struct redlock *rl)
{
    struct rl_leader *drive = &rl->leader;

    if (drive->sleepers > 0 || drive->caller_leads || !rl_loop_has_thread(rl)) {
        drive->streak = 0;
        return false;
    }
    if (drive->is_parked)
        return true;
    return ++drive->streak >= STREAK;
}

static bool is_due_soon(struct redlock *rl)
{
    uint64_t soon_ns = rl_add_sat(rl_client_now(rl).boot_ns, PARK_NS);
    bool due = rl_review_wake_ns(rl) <= soon_ns;

    for (unsigned i = 0; i < rl->shard_count; i++)
        due = rl_engine_is_due(&rl->shards[i].engine, soon_ns) || due;
    return due;
}

static void await_poller(struct redlock *rl, struct rl_waiter *waiter)
{
    struct rl_leader *drive = &rl->leader;

    rl_io_wake(&rl->io);
    drive->candidate = waiter;
    while (drive->polls && !waiter->done)
        rl_wake_sleep(&rl->wakes, waiter);
    drive->candidate = NULL;
}

static void drive_until_done(struct redlock *rl, struct rl_waiter *waiter)
{
    struct rl_leader *drive = &rl->leader;

    drive->caller_leads = true;
    drive->yielding = true;
    drive->leader_turns++;
    if (drive->polls)
        await_poller(rl, waiter);
    while (!waiter->done) {
        struct rl_ready ready[RL_READY_MAX];
        rl_review_arm(rl);
        drive->leader_polls = true;
        rl_client_unlock(rl);
        int count = rl_io_wait(&rl->io, ready, -1);
        pthread_mutex_lock(&rl->mutex);
        drive->leader_polls = false;
        rl_io_tick(&rl->io, ready, count);
        rl_review(rl);
        rl_io_flush(&rl->io);
        if (rl_dispatch_has_pending(rl))
            rl_leader_recall(rl);
    }
    drive->caller_leads = false;
    if (rl->draining)
        pthread_cond_broadcast(&drive->park);
    else if (drive->sleepers > 0 || drive->parks_long || rl_dispatch_has_pending(rl) ||
             is_due_soon(rl))
        rl_leader_recall(rl);
}

void rl_leader_end(struct redlock *rl)
{
    struct rl_leader *drive = &rl->leader;

    while (drive->caller_leads) {
        rl_io_wake(&rl->io);
        rl_wake_noted(&rl->wakes);
        pthread_cond_wait(&drive->park, &rl->mutex);
    }
}

void rl_leader_wait(struct redlock *rl, struct rl_waiter *waiter)
{
    struct rl_leader *drive = &rl->leader;

    if (!waiter->done && may_lead(rl)) {
        drive_until_done(rl, waiter);
        return;
    }
    drive->sleepers++;
    while (!waiter->done)
        rl_wake_sleep(&rl->wakes, waiter);
    drive->sleepers--;
}
