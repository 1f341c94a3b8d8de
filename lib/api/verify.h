/* SPDX-License-Identifier: MIT
 * Ends a verification. */
#ifndef RL_API_VERIFY_H
#define RL_API_VERIFY_H

struct redlock_client;
struct redlock_lock;

/* Ends the verification `handle`, whose round has ended with `status`. If the replies prove
 * that no quorum can have the key with the lock's token any more, the verified lock is lost at
 * once. If the lock has reached its deadline or was released meanwhile, the result is ELOST
 * regardless of the replies. Mutex held. */
void rl_verify_done(struct redlock_client *rl, struct redlock_lock *handle, int status);

#endif
