/* SPDX-License-Identifier: MIT
 * Operations: what a call has requested, and where its result goes. The asynchronous calls
 * (async.c) and the blocking calls (sync.c) start them here. The client's mutex is held in all
 * functions. */
#ifndef RL_API_OPERATION_H
#define RL_API_OPERATION_H

#include "api/cancel.h"
#include "api/wake.h"
#include "core/types.h"

/* What an operation does. The first group works on a lock, the last three on the whole client. */
enum rl_op_kind {
    RL_OP_NONE = 0,
    RL_OP_ACQUIRE, /* makes a new handle */
    RL_OP_ADOPT,   /* makes a new handle */
    RL_OP_EXTEND,
    RL_OP_RELEASE,       /* by the handle; deletes the keys or lets them expire after a delay */
    RL_OP_UNRETAIN,      /* a release by one of several users: the lock stays held */
    RL_OP_RELEASE_TOKEN, /* a release without a handle of the user */
    RL_OP_INSPECT,
    RL_OP_BREAK,
    RL_OP_VERIFY,
    RL_OP_READY,     /* waits until the client is ready */
    RL_OP_SHUTDOWN,  /* releases all locks and waits until the undos are done */
    RL_OP_FENCE_INIT /* takes the fence records of all reachable servers into use */
};

/* One operation that was started and whose result was not delivered yet. It is part of a handle or
 * of a client operation. start.c fills it, dispatch.c delivers the result. Invariant: at most one
 * of `fn` and `waiter` is set, so the result is delivered once. */
struct rl_op {
    uint8_t kind;             /* enum rl_op_kind */
    bool done;                /* ended with `status`, but the result was not delivered yet */
    int status;               /* enum redlock_error, with `done` */
    redlock_done_fn fn;       /* asynchronous form: the completion callback; NULL: none */
    void *userdata;           /* passed to `fn` */
    struct rl_waiter *waiter; /* blocking form: the thread that waits; NULL: none */
    redlock_cancel_t *cancel; /* referenced; NULL: none */
};

/* An operation on the whole client. review.c owns it while it runs, then dispatch.c, which frees it
 * after its callback. */
struct rl_client_op {
    struct rl_op op;           /* kind RL_OP_READY, RL_OP_SHUTDOWN or RL_OP_FENCE_INIT */
    struct rl_now until;       /* it ends at this time at the latest; RL_NEVER: no limit */
    struct rl_client_op *next; /* in redlock.client_ops or rl_pending_events.client_done */
};

/* What differs between the asynchronous and the blocking form of a call. The call fills it on its
 * stack; the fields become those of struct rl_op. */
struct rl_call {
    redlock_done_fn fn;             /* asynchronous form: the completion callback; NULL: none */
    void *userdata;                 /* passed to `fn` */
    struct rl_waiter *waiter;       /* blocking form: the thread that waits; NULL: none */
    redlock_cancel_t *cancel;       /* ends the operation; borrowed; NULL: none */
    redlock_report_t **ret_refusal; /* receives a report if the call is refused; NULL: the reason of
                                     * an EINVAL goes to the log */
};

/* Each rl_start_ function checks its arguments and starts the operation. It returns REDLOCK_OK, or
 * an error, and then nothing was started and no callback follows. An operation that was started may
 * have ended when the function returns. The operation holds one reference to its handle, which
 * `ret_handle` receives without a further reference. */

/* Starts to acquire `resource`; with a `token` (not NULL), to adopt the lock that has it. */
int rl_start_acquire(struct redlock_client *rl, const char *resource, const char *token,
                     const redlock_opts_t *opts, const struct rl_call *call,
                     struct redlock_lock **ret_handle);
/* Starts to extend a held lock. `ttl_ms`: 0 for the TTL it was acquired with. */
int rl_start_extend(struct redlock_lock *handle, uint64_t ttl_ms, const struct rl_call *call);
/* Starts to release a held lock. `keep`: not at once, but by an expiry after `delay_ms`. If the
 * lock was retained, only drops one of its users. */
int rl_start_release(struct redlock_lock *handle, bool keep, uint64_t delay_ms,
                     const struct rl_call *call);
/* Starts a release by token, an inspection or a break (`kind`) of `count` resources. `token` is
 * used by a release only. */
int rl_start_query(struct redlock_client *rl, const char *const *resources, size_t count,
                   const char *token, uint8_t kind, const struct rl_call *call,
                   struct redlock_lock **ret_handle);
/* Starts to verify `subject`, a held lock. `ret_handle` receives the handle of the verification. */
int rl_start_verify(struct redlock_lock *subject, const struct rl_call *call,
                    struct redlock_lock **ret_handle);
/* Starts an operation on the whole client: RL_OP_READY, RL_OP_SHUTDOWN or RL_OP_FENCE_INIT. It ends
 * after `budget_ms` at the latest (REDLOCK_WAIT_FOREVER: no limit). */
int rl_start_client_op(struct redlock_client *rl, uint8_t kind, uint64_t budget_ms,
                       const struct rl_call *call);

#endif
