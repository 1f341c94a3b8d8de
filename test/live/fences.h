/* SPDX-License-Identifier: MIT
 * Clients that acquire locks with fencing tokens, for the live tests. The fence records are
 * volatile, because the servers of these tests keep no data over a restart. */
#ifndef TEST_LIVE_FENCES_H
#define TEST_LIVE_FENCES_H

#include "live.h"

#define FENCE_TTL_MS  2000 /* max_ttl: how long a node that lost its record is excluded; scaled */
#define FENCE_TIME_MS 1000 /* node timeout: a busy server takes long to read a whole record */

/* Removes the records of all nodes and makes live.max_ttl_ms small. */
void fences_begin(void);
/* Returns a configuration with volatile records. */
redlock_config_t *fences_config(void);
/* Creates a client with it and waits until all nodes are eligible. */
redlock_t *fences_open(void);

/* Acquires the lock with a fencing token. Keeps the report as live_acquire() does. */
int fences_acquire(redlock_t *client, const char *resource, uint64_t wait_ms,
                   redlock_lock_t **ret_lock);
/* Acquires and releases a lock, which must be granted within wait_ms. Returns its fencing token. */
uint64_t fences_pass(redlock_t *client, const char *resource, uint64_t wait_ms);
/* Returns whether the last report excludes the node for its fence record. */
bool fences_is_refused(unsigned node);
/* Returns whether the server's record is in use. */
bool fences_has_record(unsigned node);
/* Returns the fencing token that the server stores for the stripe of "orders:42". */
uint64_t fences_number(unsigned node);
#define FENCES_RESOURCE "orders:42"
#define FENCES_STRIPE   "246"

#endif
