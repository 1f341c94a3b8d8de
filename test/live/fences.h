/* SPDX-License-Identifier: MIT
 * Clients with fences, for the live tests of them. Records are volatile: the servers of these
 * tests keep nothing over a restart. */
#ifndef TEST_LIVE_FENCES_H
#define TEST_LIVE_FENCES_H

#include "live.h"

#define FENCE_TTL_MS  2000 /* the max_ttl: how long a node that forgot must wait, scaled */
#define FENCE_TIME_MS 1000 /* node timeout: reading a whole record takes a busy machine a while */

/* Records of all nodes are gone; live.max_ttl_ms is small. */
void fences_begin(void);
/* A configuration with volatile records. */
redlock_config_t *fences_config(void);
/* A client of it; all nodes may vote. */
redlock_t *fences_open(void);

/* Takes the lock with a fence; the report is kept as by live_acquire(). */
int fences_acquire(redlock_t *client, const char *resource, uint64_t wait_ms,
                   redlock_lock_t **ret_lock);
/* Takes and gives back a lock that must be granted. Returns its fence. */
uint64_t fences_pass(redlock_t *client, const char *resource, uint64_t wait_ms);
/* Does the node refuse for its record? After fences_acquire(). */
bool fences_is_refused(unsigned node);
/* The node's record is in use; looks at the server. */
bool fences_has_record(unsigned node);
/* The number that the node stores for the stripe of "orders:42". */
uint64_t fences_number(unsigned node);
#define FENCES_RESOURCE "orders:42"
#define FENCES_STRIPE   "246"

#endif
