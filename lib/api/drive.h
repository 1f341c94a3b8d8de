/* SPDX-License-Identifier: MIT
 * Who turns the loop, the I/O thread or a caller that blocks, and who of them sends what callers
 * have queued. The client's mutex is held unless a function says otherwise. */
#ifndef RL_API_DRIVE_H
#define RL_API_DRIVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct redlock;
struct rl_waiter;

/* Owned by leader.c. At most one of the I/O thread and the driving caller is in the poller:
 * `polls` and `leader_polls` are never both true. */
struct rl_leader {
    /* The I/O thread. */
    pthread_cond_t park; /* where it waits while callers drive */
    bool is_parked;      /* it waits there */
    bool parks_long;     /* and does not look soon by itself whether callers still drive */
    bool polls;          /* it is in the poller, or on its way there or back */
    bool yielding;       /* callers drive, or have done so lately: it stays away */
    bool flush_pending;  /* callers left the sending to it; it sends before it waits again */
    /* Callers that block. */
    bool caller_leads;           /* one of them turns the loop */
    bool leader_polls;           /* it is in the poller, where no futex wakes it */
    struct rl_waiter *candidate; /* waits for the I/O thread to leave the poller; NULL: none */
    unsigned sleepers;           /* wait and do not drive */
    unsigned streak;             /* calls in a row that were alone */
    uint64_t leader_turns;       /* times that a caller began to drive */
    /* Callers that have queued something to be sent. */
    atomic_uint entering; /* threads on their way to the mutex */
    unsigned flush_skips; /* callers in a row that left the sending to the next one */
};

/* Before the first thread, and after the last one. No mutex. */
void rl_leader_init(struct redlock *rl);
void rl_leader_free(struct redlock *rl);

/* Takes the mutex for a caller that may send something when it leaves. */
void rl_leader_enter(struct redlock *rl);
/* Sends what a caller has queued, or leaves that to a thread that is about to do it.
 * `in_callback`: the loop goes on when the caller returns, and sends then. */
void rl_leader_send(struct redlock *rl, bool in_callback);
/* Sends all that is queued, also what was left to the I/O thread. */
void rl_leader_flush(struct redlock *rl);

/* Sleeps, or turns the loop, until the waiter's operation is done. */
void rl_leader_wait(struct redlock *rl, struct rl_waiter *waiter);
/* Ends the operation of a waiter: wakes it, wherever it sleeps. */
void rl_leader_tell(struct redlock *rl, struct rl_waiter *waiter, int status);

/* The I/O thread is about to enter the poller for the first time. */
void rl_leader_begin(struct redlock *rl);
/* The I/O thread has come out of the poller. */
void rl_leader_returned(struct redlock *rl);
/* Called by the I/O thread without the mutex: stays away from the poller as long as callers
 * drive. */
void rl_leader_yield(struct redlock *rl);
/* Wakes the I/O thread if it is parked: there is something for it to do. */
void rl_leader_recall(struct redlock *rl);
/* Waits until no caller is in the poller. All operations have ended. */
void rl_leader_end(struct redlock *rl);

#endif
