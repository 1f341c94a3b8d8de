/* SPDX-License-Identifier: MIT
 * The client: its life, and how calls enter and leave it.
 *
 * One mutex guards the engines and all that is not atomic here. It is the only mutex of the
 * library, and never held while a thread waits in the poller, or while a callback of the user runs.
 *
 * A client lives until its user handle, its locks, cancels and reports are gone. */
#ifndef RL_API_CLIENT_H
#define RL_API_CLIENT_H

#include "api/dispatch.h"
#include "api/drive.h"
#include "api/loop.h"
#include "api/sets.h"
#include "api/wake.h"

struct redlock {
    atomic_uint refs;
    struct rl_mem mem;
    struct redlock_config *config; /* our copy */
    struct rl_log log;
    int mode; /* enum redlock_mode */
    pthread_mutex_t mutex;
    struct rl_io io;
    struct rl_loop loop;
    struct rl_leader leader;
    struct rl_wakes wakes;
    struct rl_pending_events pending;
    bool closed;                     /* the engines are gone */
    bool draining;                   /* shutdown began: nothing new starts (review.c) */
    struct rl_client_op *client_ops; /* that run (review.c) */
    atomic_bool cancels;             /* a cancel was triggered */
    int wake_fd; /* of the poller, as a duplicate that lives as long as the cancels */
    const unsigned char *fork_mark; /* a page that a forked child finds zeroed; NULL: pid it is */
    int pid;
    unsigned shard_count;
    struct rl_shard shards[]; /* behind the client, so that the first has a fixed place */
};

struct redlock *rl_client_ref(struct redlock *rl);
void rl_client_drop(struct redlock *rl);
bool rl_client_is_forked(const struct redlock *rl);

/* Takes the mutex and reads the clocks; EFORKED or ECLOSED, and then the mutex is not held. */
int rl_client_enter(struct redlock *rl);
/* The same for a call that changes nothing. rl_client_unlock() ends it: nothing is sent, and a loop
 * of the caller's own is not woken. */
int rl_client_enter_readonly(struct redlock *rl);
/* The same as rl_client_enter(), but the clocks are as they were. */
int rl_client_enter_untimed(struct redlock *rl);
/* The same as rl_client_enter() of a call that blocks: EMODE or EDEADLK where it must not. */
int rl_client_enter_blocking(struct redlock *rl);
/* Sends what was queued, wakes whoever must go on, releases the mutex. */
void rl_client_leave(struct redlock *rl);
/* The first half of leaving, for callers that go on to wait. */
void rl_client_send(struct redlock *rl);

/* Releases the mutex, and wakes the waiters whose operations have ended. */
static inline void rl_client_unlock(struct redlock *rl)
{
    rl_wake_unlock(&rl->wakes);
}

/* Returns the time that was read last; mutex held. */
static inline struct rl_now rl_client_now(const struct redlock *rl)
{
    return rl_engine_now(&rl->shards[0].engine);
}

#endif
