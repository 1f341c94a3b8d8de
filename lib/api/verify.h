/* SPDX-License-Identifier: MIT
 * The end of a verification. */
#ifndef RL_API_VERIFY_H
#define RL_API_VERIFY_H

struct redlock;
struct redlock_lock;

/* Ends a verification. A lock that no majority can have any more is lost now, because another
 * client may hold it. A lock that has ended here meanwhile is not held, whatever the servers
 * answer. */
void rl_verify_done(struct redlock *rl, struct redlock_lock *handle, int status);

#endif
