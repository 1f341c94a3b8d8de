/* SPDX-License-Identifier: MIT
 * What an engine announces to the floor above it, as data. The engine writes here and calls nothing
 * above itself. Its user takes everything after each call into the engine. */
#ifndef RL_ENGINE_ANNOUNCEMENTS_H
#define RL_ENGINE_ANNOUNCEMENTS_H

#include "core/types.h"

struct rl_lock;

/* What happened to one lock since it was taken last. All zero: nothing. */
struct rl_announcement {
    uint32_t flags;   /* RL_FX_* */
    int status;       /* with RL_FX_DONE: how the caller's operation ended */
    int event_status; /* with RL_FX_WAITING, RL_FX_EXTEND_FAILED: why the last of both happened */
};

/* The announcement of a lock that waits to be taken. Part of struct rl_lock; owned by
 * announcements.c. The lock is in the list of its engine while `flags` is not 0. */
struct rl_pending_announcement {
    struct rl_announcement news;
    struct rl_lock *next;
};

/* All that waits to be taken from one engine. Owned by announcements.c. */
struct rl_announcements {
    struct rl_lock *first, *last;   /* in the order in which each lock was first announced */
    rl_nodes changed;               /* whether they may be asked, may vote, or why not */
    rl_nodes long_ttls;             /* have shown a key that lives longer than max_ttl */
    uint64_t pttl_ms[RL_NODES_MAX]; /* of the node's key, for each node in `long_ttls` */
};

/* Adds RL_FX_* of a lock. The lock must stay valid until they are taken. `status` belongs to the
 * flags that have one. A lock that waits again has not ended its operation: RL_FX_WAITING removes
 * an RL_FX_DONE that was not taken. Of two RL_FX_DONE the first one's status stays. */
void rl_announcements_add(struct rl_announcements *list, struct rl_lock *lock, uint32_t flags,
                          int status);
/* Adds a node that changed. */
void rl_announcements_add_node(struct rl_announcements *list, unsigned node);
/* Adds a node that showed a key with `pttl_ms` to live. Replaces an earlier one of the node. */
void rl_announcements_add_long_ttl(struct rl_announcements *list, unsigned node, uint64_t pttl_ms);

static inline bool rl_announcements_wait(const struct rl_announcements *list)
{
    return list->first != NULL || (list->changed | list->long_ttls) != 0;
}

/* Takes the lock that was announced first. With RL_FX_ENDED the engine is done with it, and it may
 * be freed. NULL: none waits. */
struct rl_lock *rl_announcements_take(struct rl_announcements *list,
                                      struct rl_announcement *ret_news);
/* Takes one lock out of its turn. Returns false if it does not wait. */
bool rl_announcements_take_lock(struct rl_announcements *list, struct rl_lock *lock,
                                struct rl_announcement *ret_news);
/* Takes the first node that changed. Returns false if none waits. */
bool rl_announcements_take_node(struct rl_announcements *list, unsigned *ret_node);
/* Takes the first node that showed a long TTL. Returns false if none waits. */
bool rl_announcements_take_long_ttl(struct rl_announcements *list, unsigned *ret_node,
                                    uint64_t *ret_pttl_ms);
/* Drops what waits about nodes, which are about to be freed. */
void rl_announcements_drop_nodes(struct rl_announcements *list);

#endif
