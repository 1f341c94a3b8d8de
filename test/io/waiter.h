/* SPDX-License-Identifier: MIT
 * One acquisition by the client of three_servers that waits for a key of another holder, and the
 * question which server notifies it of the change. */
#ifndef TEST_WAITER_H
#define TEST_WAITER_H

#include "three_servers.h"

#define WAITER_KEY "resource"

/* Creates a client that polls soon, and waits until all its nodes are eligible. */
void waiter_connect_usual(void);
/* Does the same, but the client does not poll before the end of any case: only a notification
 * can wake it. */
void waiter_connect_patient(void);

/* Sets the key as another holder and starts an acquisition; returns when the client has requested
 * the key. One at a time. */
void waiter_begin(void);
bool waiter_is_done(void);
/* Deletes the other holder's key on all servers, last on the one whose notification the client
 * expects. */
void waiter_release_key(void);
/* Checks that the acquisition succeeds, and releases the lock. */
void waiter_check_acquired(const char *name);
/* Does the same on servers that misbehave, which may fail the release. Returns its status. */
int waiter_check_granted(const char *name);
/* Checks that the client recovers: all nodes are eligible, and an acquisition is notified. */
void waiter_check_notified_again(const char *name);

/* Returns the server that will send the next notification, or THREE_SERVERS if there is none. */
size_t waiter_notifier(void);
/* Returns whether some server will send one. */
bool waiter_is_tracked(void);
/* Return whether some server sends notifications, and whether some server has refused to. */
bool waiter_any_notifies(void);
bool waiter_is_refused(void);

/* Return sums of the client's and its nodes' statistics. */
uint64_t waiter_attempts(void);
uint64_t waiter_wakeups(void);
uint64_t waiter_notifications_of_all(void);
uint64_t waiter_reconnects(void);
/* Returns the states of the nodes, for messages. */
const char *waiter_states(void);

#endif
