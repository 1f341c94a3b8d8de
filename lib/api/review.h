/* SPDX-License-Identifier: MIT
 * Client operations, which work on the whole client (wait for readiness, shutdown, initialization
 * of fence records), and cancellation. A review looks at all of them after each tick and ends those
 * that are complete, cancelled or out of time. The client's mutex is held in all functions. */
#ifndef RL_API_REVIEW_H
#define RL_API_REVIEW_H

#include "api/operation.h"

/* Adds a client operation, which the next review examines. Takes ownership of `item`. */
void rl_review_add(struct redlock_client *rl, struct rl_client_op *item);
/* Returns true while a client operation of this kind (enum rl_op_kind) has not ended. */
bool rl_review_has(const struct redlock_client *rl, uint8_t kind);
/* Ends the operations whose cancel was triggered, and the client operations that have reached their
 * goal or their time limit. Called after each tick. */
void rl_review(struct redlock_client *rl);
/* Returns the earliest time limit of the client operations on the boot clock; RL_NEVER: none. */
uint64_t rl_review_wake_ns(const struct redlock_client *rl);
/* Makes the poller return at rl_review_wake_ns() at the latest. */
void rl_review_arm(struct redlock_client *rl);
/* Ends all client operations with `status`; a shutdown ends with ENOQUORUM. */
void rl_review_end_all(struct redlock_client *rl, int status);
/* Frees a list of client operations in a forked child, and drops the references to the client that
 * their waiters hold. `item` is the first one, or NULL. */
void rl_review_abandon(struct redlock_client *rl, struct rl_client_op *item);

/* Begins the shutdown: ends acquisitions with ECLOSED and releases held locks. From now on no new
 * operation starts. Does nothing if the shutdown has begun. */
void rl_review_begin_shutdown(struct redlock_client *rl);
/* Releases a held lock for which the user did not call redlock_release(). A running extension ends
 * with `status`. If that is ECLOSED, the descriptor of redlock_lock_fd() becomes readable. */
void rl_review_release(struct redlock_client *rl, struct redlock_lock *handle, int status);

#endif
