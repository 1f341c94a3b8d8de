/* SPDX-License-Identifier: MIT
 * Operations of the client itself, and cancellation. The client's mutex is held throughout. */
#ifndef RL_API_REVIEW_H
#define RL_API_REVIEW_H

#include "api/operation.h"

/* Begins an operation of the client, and takes the item. */
void rl_review_add(struct redlock *rl, struct rl_client_op *item);
/* Ends operations whose cancel was triggered, and operations of the client that are due. */
void rl_review(struct redlock *rl);
/* Returns when the next operation of the client runs out of time (boot clock). */
uint64_t rl_review_wake_ns(const struct redlock *rl);
/* Has the poller return at that time at the latest. */
void rl_review_arm(struct redlock *rl);
/* Ends all operations of the client with `status`. */
void rl_review_end_all(struct redlock *rl, int status);
/* In a forked child: frees a list of operations of the client, and the references of their waiters.
 */
void rl_review_abandon(struct redlock *rl, struct rl_client_op *item);

/* Begins the shutdown: ends what waits, releases what is held; nothing new starts. */
void rl_review_begin_shutdown(struct redlock *rl);
/* Releases a held lock on behalf of the client. An extension that runs on it ends with `status`. */
void rl_review_release(struct redlock *rl, struct redlock_lock *handle, int status);

#endif
