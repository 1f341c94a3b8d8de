/* SPDX-License-Identifier: MIT
 * The client: how it is created and freed, and how calls enter and leave it. To enter a client
 * means to lock its mutex for one call of the user, to check that the client may be used, and to
 * read the clocks. To leave it means to send what the call has queued and to release the mutex. */
#ifndef RL_API_CLIENT_H
#define RL_API_CLIENT_H

#include "api/callbacks.h"
#include "api/dispatch.h"
#include "api/leader.h"
#include "api/loop.h"
#include "api/shards.h"
#include "api/wake.h"

/* One client (redlock_t). Owned by client.c; each part in the middle belongs to the file of its
 * type. It is freed when its user, its handles, its cancel objects, its reports and the threads
 * that block in it have dropped their references.
 *
 * Invariants: `mutex` guards the engines and every field that is not atomic and may change after
 * redlock_new(). It is the only mutex of the library. No thread holds it while it waits in the
 * poller, or while an event or completion callback runs. */
struct redlock_client {
    atomic_uint refs;              /* references; see above */
    struct rl_mem mem;             /* allocator of the client and of all that it makes */
    struct redlock_config *config; /* the client's own copy; constant */
    struct rl_log log;             /* the user's log function */
    int mode;                      /* enum redlock_mode */
    pthread_mutex_t mutex;
    struct rl_io io;                  /* the poller: waits for the sockets and the timer, sends */
    struct rl_loop loop;              /* the I/O thread */
    struct rl_leader leader;          /* which thread drives the loop */
    struct rl_callbacks callbacks;    /* the callback thread of threaded mode */
    struct rl_wakes wakes;            /* threads that sleep in blocking calls */
    struct rl_pending_events pending; /* callbacks that have not run yet */
    bool closed;                      /* redlock_free() has closed the engines: not to be used */
    bool draining;                    /* shutdown has begun: nothing new starts; set by review.c */
    struct rl_client_op *client_ops;  /* operations of the client that run, linked; review.c */
    atomic_bool cancels;              /* a cancel was triggered and not reviewed yet */
    int wake_fd; /* duplicate of the poller's eventfd, valid until the client is freed, because a
                  * cancel may be triggered after the poller was closed; -1: none yet */
    const unsigned char
        *fork_mark;           /* a page that is zeroed in a forked child; NULL: `pid` decides */
    int pid;                  /* of the process that created the client */
    unsigned shard_count;     /* shards that were opened, 1 to RL_SHARDS_MAX */
    struct rl_shard shards[]; /* `shard_count`, in the order of the configuration */
};

/* Adds a reference and returns `rl`. Needs no mutex. */
struct redlock_client *rl_client_ref(struct redlock_client *rl);
/* Drops a reference; the last one frees the client. Needs no mutex, and must not be called with the
 * mutex held if the reference may be the last. */
void rl_client_drop(struct redlock_client *rl);
/* Returns whether this process is a forked child of the one that created the client. */
bool rl_client_is_forked(const struct redlock_client *rl);

/* Locks the mutex for a call and reads the clocks. Returns REDLOCK_OK; or REDLOCK_EFORKED or
 * REDLOCK_ECLOSED, and then the mutex is not held. rl_client_leave() ends the call. */
int rl_client_enter(struct redlock_client *rl);
/* Does the same for a call that queues nothing to be sent. rl_client_unlock() ends the call: it
 * sends nothing and does not wake the loop. */
int rl_client_enter_readonly(struct redlock_client *rl);
/* Does the same as rl_client_enter(), but does not read the clocks. */
int rl_client_enter_untimed(struct redlock_client *rl);
/* Does the same as rl_client_enter() for a call that blocks. Returns also REDLOCK_EMODE in embedded
 * mode and REDLOCK_EDEADLK in a callback of this client. */
int rl_client_enter_blocking(struct redlock_client *rl);
/* Sends what was queued, releases the mutex and wakes the waiters whose operations have ended. */
void rl_client_leave(struct redlock_client *rl);
/* Sends what was queued, or arranges that another thread does; keeps the mutex. For callers that go
 * on to wait. */
void rl_client_send(struct redlock_client *rl);

/* Releases the mutex, and wakes the waiters whose operations have ended and, if callbacks are
 * pending, the callback thread. */
static inline void rl_client_unlock(struct redlock_client *rl)
{
    rl_callbacks_wake(rl);
    rl_wake_unlock(&rl->wakes);
}

/* Returns the time of the last reading of the clocks. The mutex is held. */
static inline struct rl_now rl_client_now(const struct redlock_client *rl)
{
    return rl_engine_now(&rl->shards[0].engine);
}

#endif
