/* SPDX-License-Identifier: MIT
 * Operations: what was asked for and how its end is told. The asynchronous and the blocking calls
 * start them here; the client's mutex is held throughout. */
#ifndef RL_API_OPERATION_H
#define RL_API_OPERATION_H

#include "api/cancel.h"
#include "api/wake.h"
#include "core/types.h"

enum rl_op_kind {
    RL_OP_NONE = 0,
    RL_OP_ACQUIRE,
    RL_OP_ADOPT,
    RL_OP_EXTEND,
    RL_OP_RELEASE,
    RL_OP_UNRETAIN, /* a release that another user of the lock survives */
    RL_OP_RELEASE_TOKEN,
    RL_OP_INSPECT,
    RL_OP_BREAK,
    RL_OP_VERIFY,
    RL_OP_READY,     /* of the client */
    RL_OP_SHUTDOWN,  /* of the client */
    RL_OP_FENCE_INIT /* of the client */
};

/* One operation. Its end is told to a waiter or a function, never to both. */
struct rl_op {
    uint8_t kind; /* enum rl_op_kind */
    bool done;    /* with `status`, not told yet */
    int status;
    redlock_done_fn fn;
    void *userdata;
    struct rl_waiter *waiter;
    redlock_cancel_t *cancel; /* referenced */
};

/* An operation of the client itself. */
struct rl_client_op {
    struct rl_op op;
    struct rl_now until; /* RL_NEVER: for ever */
    struct rl_client_op *next;
};

/* The part of a call that the asynchronous and the blocking form do not share. */
struct rl_call {
    redlock_done_fn fn;
    void *userdata;
    struct rl_waiter *waiter;
    redlock_cancel_t *cancel;
    redlock_report_t **ret_refusal; /* receives the reason of a refusal as a report; may be NULL */
};

int rl_start_acquire(struct redlock *rl, const char *resource, const char *token,
                     const redlock_opts_t *opts, const struct rl_call *call,
                     struct redlock_lock **ret_handle);
int rl_start_extend(struct redlock_lock *handle, uint64_t ttl_ms, const struct rl_call *call);
int rl_start_release(struct redlock_lock *handle, bool keep, uint64_t delay_ms,
                     const struct rl_call *call);
/* Starts a release by token, an inspection or a break (`kind`) of `count` resources. */
int rl_start_query(struct redlock *rl, const char *const *resources, size_t count,
                   const char *token, uint8_t kind, const struct rl_call *call,
                   struct redlock_lock **ret_handle);
/* Asks the servers whether they still have `subject`. */
int rl_start_verify(struct redlock_lock *subject, const struct rl_call *call,
                    struct redlock_lock **ret_handle);
/* Starts an operation of the client. */
int rl_start_client_op(struct redlock *rl, uint8_t kind, uint64_t budget_ms,
                       const struct rl_call *call);

#endif
