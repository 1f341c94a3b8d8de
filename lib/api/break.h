/* SPDX-License-Identifier: MIT
 * Breaks a lock: deletes the key that an inspection has found, whatever its value is. A break has
 * one part for each different value that the inspection saw; a part releases this value on all
 * nodes. The break and each of its parts have a handle. The client's mutex is held in all
 * functions. */
#ifndef RL_API_BREAK_H
#define RL_API_BREAK_H

#include "api/handle.h"

/* What a break and its parts share. Owned by break.c. Freed together with the handle `whole`. */
struct rl_break {
    struct redlock_lock *whole; /* the handle of the break; every part holds a reference to it */
    unsigned running;           /* parts that were started and have not ended */
    struct rl_round merged;     /* the votes of all parts together; its arrays follow the struct */
};

/* Returns the break that this handle is a part of; NULL: it is not a part of one. */
static inline struct redlock_lock *rl_break_whole(const struct redlock_lock *handle)
{
    return handle->breaking != NULL && handle->breaking->whole != handle ? handle->breaking->whole
                                                                         : NULL;
}
/* Removes a part from its break. Returns whether it was the last one. */
bool rl_break_leave(struct redlock_lock *part);
/* Continues a break after its inspection has ended: starts the release of each value that was seen,
 * or ends the break. */
void rl_break_inspected(struct redlock_client *rl, struct redlock_lock *handle);
/* Adds the votes of a part that has ended to those of the break. The last part ends the break. */
void rl_break_part_done(struct redlock_client *rl, struct redlock_lock *part);

#endif
