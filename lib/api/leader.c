/* SPDX-License-Identifier: MIT
 * The leader/follower protocol: which thread drives the loop, and which thread sends what callers
 * have queued.
 *
 * To drive the loop means to wait in the poller, to process what it returns, and to wait again. The
 * thread that drives is the leader. Two kinds of threads can lead: the I/O thread (threaded and
 * hybrid mode), and a caller that blocks in a call. In embedded mode there is no leader:
 * redlock_process() makes one turn at a time, and no call blocks.
 *
 * Why a caller leads: a blocking call that sleeps needs two switches between threads, one to the
 * I/O thread and one back. They cost more than the processing of the replies.
 *
 * Hand-over to a caller: a caller may lead if no other call is blocked. It must also find the I/O
 * thread parked, or make the last of STREAK blocking calls in a row of which none met another one.
 * If the I/O thread is in the poller, the caller wakes it and sleeps as the candidate until the I/O
 * thread has left the poller. Then the caller drives until its own operation is done. All other
 * blocking calls sleep on a futex (wake.c).
 *
 * Hand-over to the I/O thread: after each turn the I/O thread calls rl_leader_yield(). While a
 * caller leads, it is parked: it sleeps on a futex and does not enter the poller. A caller that
 * stops leading recalls the I/O thread if something is left to do: sleepers, a timer that is due
 * within PARK_NS, or a park that lasts longer than PARK_NS. Otherwise the I/O thread returns to the
 * poller after a park in which no caller began to lead.
 *
 * Invariants:
 * - At most one thread is in the poller: `polls` and `leader_polls` are never both true. With two,
 *   one would sleep on although the other is woken.
 * - At most one caller leads, and only while the I/O thread exists.
 * - When no caller leads, the I/O thread is in the poller, in a turn, recalled, or parked for at
 *   most PARK_NS.
 * - A thread that reads or changes struct rl_leader or a waiter holds the client's mutex. The only
 *   exception is `entering`, which is atomic.
 * - Queued requests are never forgotten. A caller that does not send them relies on another thread
 *   that will: the I/O thread with `flush_pending`, or one in rl_leader_enter(), which sends when
 * it leaves, also if its own call is refused.
 *
 * Lock order: the client's mutex is the only lock. It is released before a thread waits in the
 * poller or on a futex. Callbacks run without it.
 */
#include "api/leader.h"

#include "api/client.h"
#include "api/review.h"
#include "platform/thread.h"

/* How long the I/O thread parks before it checks again whether callers drive. */
#define PARK_NS (2 * RL_MS)
/* The longest park. Each park during the same drive is four times longer than the one before. */
#define PARK_MAX_NS RL_SECOND
/* Blocking calls in a row without another blocked caller after which a caller leads. */
#define STREAK 8
/* Calls in a row that may leave their requests to the next call. */
#define FLUSH_SKIPS_MAX 16
/* Sleeping callers from which on a call leaves its requests to the I/O thread. */
#define SLEEPERS_MIN 2

/* Lets the I/O thread sleep for at most `ns` nanoseconds, until rl_leader_recall() wakes it. The
 * mutex is held on entry and on return, and released meanwhile. */
static void park(struct redlock_client *rl, uint64_t ns)
{
    struct rl_leader *leader = &rl->leader;

    leader->parks_long = ns > PARK_NS;
    leader->is_parked = true;
    rl_wake_sleep(&rl->wakes, &leader->thread, ns);
    leader->is_parked = false;
}

/* Notes that the I/O thread is about to enter the poller for the first time. Called before the
 * thread starts, without the mutex. */
void rl_leader_begin(struct redlock_client *rl)
{
    rl->leader.polls = true;
}

/* Notes that the I/O thread has left the poller. Has the candidate woken, which may lead now. */
void rl_leader_returned(struct redlock_client *rl)
{
    struct rl_leader *leader = &rl->leader;

    leader->polls = false;
    if (leader->candidate != NULL)
        rl_wake_note(&rl->wakes, leader->candidate);
}

/* Keeps the I/O thread parked as long as a caller leads or has led lately (`yielding`). Then sends
 * what callers have left to this thread, and notes that the thread enters the poller. Called by the
 * I/O thread without the mutex. Returns at once if the thread must end. */
void rl_leader_yield(struct redlock_client *rl)
{
    struct rl_leader *leader = &rl->leader;
    uint64_t park_ns = PARK_NS;

    pthread_mutex_lock(&rl->mutex);
    while (!rl_loop_is_stopping(rl)) {
        uint64_t turns_before = leader->leader_turns;
        if (!leader->caller_leads && (leader->sleepers > 0 || !leader->yielding))
            break;
        park(rl, park_ns);
        bool goes_on = leader->caller_leads && leader->leader_turns == turns_before;
        park_ns = goes_on ? rl_min_u64(4 * park_ns, PARK_MAX_NS) : PARK_NS;
        leader->yielding =
            leader->caller_leads || (leader->yielding && leader->leader_turns != turns_before);
    }
    leader->yielding = false;
    if (leader->flush_pending)
        rl_leader_flush(rl);
    leader->polls = !rl_loop_is_stopping(rl);
    rl_client_unlock(rl);
}

/* Ends the sleep of the I/O thread, if it is parked, so that it looks for work. */
void rl_leader_recall(struct redlock_client *rl)
{
    rl_wake_note(&rl->wakes, &rl->leader.thread);
}

/* Locks the mutex for a caller that may send something when it leaves. Counts the caller in
 * `entering` until it has the mutex. */
void rl_leader_enter(struct redlock_client *rl)
{
    atomic_fetch_add(&rl->leader.entering, 1);
    pthread_mutex_lock(&rl->mutex);
    atomic_fetch_sub(&rl->leader.entering, 1);
}

/* Sends all queued requests, also those that callers have left to the I/O thread. */
void rl_leader_flush(struct redlock_client *rl)
{
    rl->leader.flush_pending = false;
    rl_dispatch_flush(rl);
}

/* Leaves the queued requests to the I/O thread if several callers sleep. More calls are likely
 * then, and the I/O thread sends the requests of all of them with one write for each node. Returns
 * whether the I/O thread will send. */
static bool hand_to_thread(struct redlock_client *rl)
{
    struct rl_leader *leader = &rl->leader;

    if (leader->sleepers < SLEEPERS_MIN || !rl_io_is_dirty(&rl->io) || leader->caller_leads ||
        !rl_loop_has_thread(rl))
        return false;
    if (leader->polls)
        rl_io_wake(&rl->io);
    else
        rl_leader_recall(rl);
    leader->flush_pending = true;
    leader->flush_skips = 0;
    return true;
}

/* Sends what a caller has queued; or leaves it to the next caller, which is about to enter and will
 * send for both, at most FLUSH_SKIPS_MAX times in a row; or leaves it to the I/O thread
 * (hand_to_thread()). */
void rl_leader_send(struct redlock_client *rl)
{
    struct rl_leader *leader = &rl->leader;

    if (atomic_load(&leader->entering) != 0 && leader->flush_skips < FLUSH_SKIPS_MAX) {
        leader->flush_skips++;
    } else if (!hand_to_thread(rl)) {
        leader->flush_skips = 0;
        rl_dispatch_flush(rl);
    }
}

/* Ends the operation of a waiter with `status`, an enum redlock_error, and has its thread woken,
 * whether it sleeps on a futex or is in the poller. */
void rl_leader_complete(struct redlock_client *rl, struct rl_waiter *waiter, int status)
{
    waiter->done = true;
    waiter->status = status;
    rl_wake_note(&rl->wakes, waiter);
    if (rl->leader.leader_polls)
        rl_io_wake(&rl->io);
}

/* Returns whether the caller that is about to wait may lead: no other call is blocked, and the I/O
 * thread is parked or the streak is long enough. Counts this call in `streak`, or sets `streak` to
 * 0 if another call is blocked. */
static bool may_lead(struct redlock_client *rl)
{
    struct rl_leader *leader = &rl->leader;

    if (leader->sleepers > 0 || leader->caller_leads || !rl_loop_has_thread(rl)) {
        leader->streak = 0;
        return false;
    }
    if (leader->is_parked)
        return true;
    return ++leader->streak >= STREAK;
}

/* Returns whether a timer of an engine, or the time limit of a client operation, is due within
 * PARK_NS. */
static bool is_due_soon(struct redlock_client *rl)
{
    uint64_t soon_ns = rl_add_sat(rl_client_now(rl).boot_ns, PARK_NS);
    bool due = rl_review_wake_ns(rl) <= soon_ns;

    for (unsigned i = 0; i < rl->shard_count; i++)
        due = rl_engine_is_due(&rl->shards[i].engine, soon_ns) || due;
    return due;
}

/* Waits until the I/O thread has left the poller or the waiter's operation is done. */
static void await_poller(struct redlock_client *rl, struct rl_waiter *waiter)
{
    struct rl_leader *leader = &rl->leader;

    rl_io_wake(&rl->io);
    leader->candidate = waiter;
    while (leader->polls && !waiter->done)
        rl_wake_sleep(&rl->wakes, waiter, RL_NEVER);
    leader->candidate = NULL;
}

/* Leads until the waiter's operation is done, then hands over to the I/O thread if something is
 * left to do. */
static void drive_until_done(struct redlock_client *rl, struct rl_waiter *waiter)
{
    struct rl_leader *leader = &rl->leader;

    leader->caller_leads = true;
    leader->yielding = true;
    leader->leader_turns++;
    if (leader->polls)
        await_poller(rl, waiter);
    while (!waiter->done) {
        struct rl_ready ready[RL_READY_MAX];
        rl_review_arm(rl);
        leader->leader_polls = true;
        rl_client_unlock(rl);
        int count = rl_io_wait(&rl->io, ready, -1);
        pthread_mutex_lock(&rl->mutex);
        leader->leader_polls = false;
        rl_dispatch_tick(rl, ready, count);
        rl_review(rl);
        rl_dispatch_flush(rl);
    }
    leader->caller_leads = false;
    if (leader->closer != NULL)
        rl_wake_note(&rl->wakes, leader->closer);
    else if (leader->sleepers > 0 || leader->parks_long || is_due_soon(rl))
        rl_leader_recall(rl);
}

/* Waits until no caller leads. Called when the client closes, after all operations have ended and
 * the I/O thread has stopped. The mutex is released during the wait. */
void rl_leader_end(struct redlock_client *rl)
{
    struct rl_leader *leader = &rl->leader;
    struct rl_waiter closer = {.done = false};

    leader->closer = &closer;
    while (leader->caller_leads) {
        rl_io_wake(&rl->io);
        rl_wake_sleep(&rl->wakes, &closer, RL_NEVER);
    }
    leader->closer = NULL;
}

/* Blocks the calling thread until the waiter's operation is done: drives the loop if it may lead,
 * else sleeps on a futex. The mutex is held on entry and on return, and released meanwhile. */
void rl_leader_wait(struct redlock_client *rl, struct rl_waiter *waiter)
{
    struct rl_leader *leader = &rl->leader;

    if (!waiter->done && may_lead(rl)) {
        int cancel = rl_thread_hold_cancel();
        drive_until_done(rl, waiter);
        rl_thread_allow_cancel(cancel);
        return;
    }
    rl_callbacks_wake(rl);
    leader->sleepers++;
    while (!waiter->done)
        rl_wake_sleep(&rl->wakes, waiter, RL_NEVER);
    leader->sleepers--;
}
