/* SPDX-License-Identifier: MIT
 * One acquisition of the three_servers's client that waits for a key of somebody else, and who
 * tells it of the change. */
#ifndef TEST_WAITER_H
#define TEST_WAITER_H

#include "three_servers.h"

#define WAITER_KEY "resource"

/* A client that asks again soon, or one that will not before the end of any case. */
void waiter_connect_usual(void);
void waiter_connect_patient(void);

/* Another holds the key; it was asked for at least once. One at a time. */
void waiter_begin(void);
bool waiter_is_done(void);
/* The other lets go: on the server that is watched at last. */
void waiter_let_go(void);
/* It gets the lock, and gives it back. */
void waiter_check_had(const char *name);
/* All of it once more: all vote, somebody is watched and tells. */
void waiter_check_notified_again(const char *name);

/* The server that will tell of the next change, or THREE_SERVERS; is there one? */
size_t waiter_notifier(void);
bool waiter_is_tracked(void);
/* Some server tells, whether it is asked or not; some server refuses to. */
bool waiter_any_notifies(void);
bool waiter_is_refused(void);

/* Sums of the client and of its nodes. */
uint64_t waiter_attempts(void);
uint64_t waiter_wakeups(void);
uint64_t waiter_notifications_of_all(void);
uint64_t waiter_reconnects(void);
/* For messages. */
const char *waiter_states(void);

#endif
