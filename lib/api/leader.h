/* SPDX-License-Identifier: MIT
 * Decides which thread drives the loop, the I/O thread or a caller that blocks, and which thread
 * sends what callers have queued. To drive the loop, or to lead, means to wait in the poller
 * (struct rl_io, which waits for sockets and the timer), to process the events, and to wait again.
 * While a caller leads, the I/O thread is parked: it sleeps on a futex, as all other callers that
 * block do. leader.c explains the protocol. The client's mutex is held
 * unless a function says otherwise. */
#ifndef RL_API_LEADER_H
#define RL_API_LEADER_H

#include "api/wake.h"

#include <stdbool.h>
#include <stdint.h>

struct redlock_client;

/* Which thread of one client leads, that is, drives the loop. Owned by leader.c; part of struct
 * redlock. Invariants: at most one thread waits in the poller, so `polls` and `leader_polls` are
 * never both true. A caller leads (`caller_leads`) only while there is an I/O thread, and never two
 * at a time.
 */
struct rl_leader {
    /* The I/O thread. */
    struct rl_waiter thread; /* the I/O thread, which sleeps while a caller leads */
    bool is_parked;          /* the I/O thread sleeps */
    bool parks_long;         /* its present or last sleep may last longer than PARK_NS (2 ms) */
    bool polls;              /* the I/O thread is in the poller, about to enter it, or just back */
    bool yielding;      /* a caller leads, or did lately: the I/O thread stays out of the poller */
    bool flush_pending; /* a caller has left its requests to the I/O thread, which must send them
                         * before it enters the poller */
    /* Callers that block. */
    bool caller_leads;           /* a caller leads */
    bool leader_polls;           /* that caller is in the poller: only rl_io_wake() wakes it */
    struct rl_waiter *candidate; /* the caller that leads next, while it waits for the I/O thread to
                                  * leave the poller; NULL: none */
    struct rl_waiter *closer;    /* the thread that frees the client, while it waits in
                                  * rl_leader_end(); NULL: none */
    unsigned sleepers;           /* callers that sleep and do not lead */
    unsigned streak;             /* blocking calls in a row that found no other blocked caller */
    uint64_t leader_turns;       /* how often a caller began to lead */
    /* Callers that have queued requests. */
    atomic_uint entering; /* threads in rl_leader_enter() that do not have the mutex yet */
    unsigned flush_skips; /* calls in a row that left their requests to the next call, which sends
                           * for both; 0 to FLUSH_SKIPS_MAX (16) */
};

/* Locks the mutex for a caller that may send something when it leaves. The mutex is not held on
 * entry. */
void rl_leader_enter(struct redlock_client *rl);
/* Sends what a caller has queued, or leaves that to a thread that will send it soon. */
void rl_leader_send(struct redlock_client *rl);
/* Sends all queued requests, also those that callers have left to the I/O thread. */
void rl_leader_flush(struct redlock_client *rl);

/* Blocks until the waiter's operation is done: sleeps, or drives the loop. Releases the mutex while
 * it waits. */
void rl_leader_wait(struct redlock_client *rl, struct rl_waiter *waiter);
/* Ends the operation of a waiter with `status` and has its thread woken, whether it sleeps or is in
 * the poller. */
void rl_leader_complete(struct redlock_client *rl, struct rl_waiter *waiter, int status);

/* Notes that the I/O thread is about to enter the poller for the first time. Called before that
 * thread starts; no mutex. */
void rl_leader_begin(struct redlock_client *rl);
/* Notes that the I/O thread has left the poller, and lets a caller that waits for this lead. */
void rl_leader_returned(struct redlock_client *rl);
/* Keeps the I/O thread out of the poller as long as a caller leads. Called by the I/O thread
 * without the mutex. When it returns, the I/O thread must enter the poller, or end if it was
 * stopped. */
void rl_leader_yield(struct redlock_client *rl);
/* Wakes the I/O thread if it is parked, so that it looks for work. */
void rl_leader_recall(struct redlock_client *rl);
/* Waits until no caller leads. Called when the client closes, after all operations have ended and
 * the I/O thread has stopped. */
void rl_leader_end(struct redlock_client *rl);

#endif
