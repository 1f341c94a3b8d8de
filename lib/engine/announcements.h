/* SPDX-License-Identifier: MIT
 * What an engine announces to the api layer, as data: the engine adds announcements, and calls no
 * function of the api layer. The api layer takes everything after each call into the engine, before
 * it releases the client's mutex. Announcements of one lock, or of one node, are merged until they
 * are taken. */
#ifndef RL_ENGINE_ANNOUNCEMENTS_H
#define RL_ENGINE_ANNOUNCEMENTS_H

#include "core/types.h"

struct rl_lock;

/* What happened to one lock since its last announcement was taken. All zero: nothing. */
struct rl_announcement {
    uint32_t flags; /* RL_FX_* bits (core/lease.h) of all steps since then, such as RL_FX_DONE: the
                     * operation has ended. Not RL_FX_ATTEMPT and RL_FX_SKIPPED; 0: nothing */
    int status;     /* with RL_FX_DONE: enum redlock_error, the result of the operation */
    int event_status; /* with RL_FX_WAITING or RL_FX_EXTEND_FAILED: enum redlock_error, why the
                       * attempt or the extension failed; of several, the last one's */
};

/* The announcement of one lock that was not taken yet. Part of struct rl_lock. Owner:
 * announcements.c. Invariant: the lock is in its engine's list exactly while announcement.flags is
 * not 0.
 */
struct rl_pending_announcement {
    struct rl_announcement announcement;
    struct rl_lock *next; /* the next lock in the list; NULL: this lock is the last one */
};

/* All announcements of one engine that were not taken yet. Owner: announcements.c. */
struct rl_announcements {
    struct rl_lock *first, *last;   /* list of locks, in the order of their first announcement; both
                                     * NULL: the list is empty */
    rl_nodes changed;               /* nodes whose eligibility or connection has changed, or the
                                     * cause for which their votes do not count */
    rl_nodes long_ttls;             /* nodes that have shown a key whose time to live exceeds
                                     * max_ttl */
    uint64_t pttl_ms[RL_NODES_MAX]; /* time to live of that key in milliseconds, for each node in
                                     * `long_ttls` */
};

/* Adds what happened to a lock in one step: `flags`, RL_FX_*, not 0, and `status` for those flags
 * that have one. The lock must stay valid until its announcement is taken.
 *
 * RL_FX_WAITING removes RL_FX_DONE and RL_FX_HELD that were not taken: the grant did not last until
 * it was reported, and the operation goes on. Of two RL_FX_DONE the first one's status stays,
 * because an operation ends only once. */
void rl_announcements_add(struct rl_announcements *list, struct rl_lock *lock, uint32_t flags,
                          int status);
/* Adds the node with this index to those that have changed. */
void rl_announcements_add_node(struct rl_announcements *list, unsigned node);
/* Adds a node that has shown a key with `pttl_ms` milliseconds to live, more than max_ttl. Replaces
 * an earlier time of the node. */
void rl_announcements_add_long_ttl(struct rl_announcements *list, unsigned node, uint64_t pttl_ms);

/* Returns whether any announcement, of a lock or of a node, waits to be taken. */
static inline bool rl_announcements_wait(const struct rl_announcements *list)
{
    return list->first != NULL || (list->changed | list->long_ttls) != 0;
}

/* Takes the announcement of the first lock in the list and returns that lock; NULL: the list is
 * empty. With RL_FX_ENDED the engine does not use the lock any more, and it may be freed. */
struct rl_lock *rl_announcements_take(struct rl_announcements *list,
                                      struct rl_announcement *ret_announcement);
/* Takes the announcement of this lock, wherever it is in the list. Returns false if it has none. */
bool rl_announcements_take_lock(struct rl_announcements *list, struct rl_lock *lock,
                                struct rl_announcement *ret_announcement);
/* Takes the first node that has changed, and sets `*ret_node` to its index. Returns false if there
 * is none. */
bool rl_announcements_take_node(struct rl_announcements *list, unsigned *ret_node);
/* Takes the first node that has shown a key with more than max_ttl to live, and the key's time to
 * live in milliseconds. Returns false if there is none. */
bool rl_announcements_take_long_ttl(struct rl_announcements *list, unsigned *ret_node,
                                    uint64_t *ret_pttl_ms);
/* Drops the announcements of nodes, because the nodes are about to be freed. */
void rl_announcements_drop_nodes(struct rl_announcements *list);

#endif
