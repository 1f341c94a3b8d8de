/* SPDX-License-Identifier: MIT
 * Breaking a lock: the operation, and its parts. */
#ifndef RL_API_BREAK_H
#define RL_API_BREAK_H

#include "api/handle.h"

/* What the breaking of a lock and its parts share. Owned by break.c. */
struct rl_break {
    struct redlock_lock *whole; /* the operation; it outlives its parts */
    unsigned running;           /* parts: each a release of one value that was seen */
    struct rl_round merged;     /* what all of them did; its arrays are behind this */
};

/* Returns the operation that a release is a part of; NULL: it is none. */
static inline struct redlock_lock *rl_break_whole(const struct redlock_lock *handle)
{
    return handle->breaking != NULL && handle->breaking->whole != handle ? handle->breaking->whole
                                                                         : NULL;
}
/* Takes a part out of the operation. Returns whether it was the last one. */
bool rl_break_leave(struct redlock_lock *part);
/* Continues after the inspection: releases each value that it saw. */
void rl_break_inspected(struct redlock *rl, struct redlock_lock *handle);
/* Ends a part, and with the last one the operation. */
void rl_break_part_done(struct redlock *rl, struct redlock_lock *part);

#endif
