/* SPDX-License-Identifier: MIT
 * Announcements of an engine to the api layer: a list of locks to which something has happened,
 * linked through the locks so that it needs no memory, and sets of nodes. To take an announcement
 * is to remove it from here and to return it. */
#include "engine/announcements.h"

#include "engine/lock.h"

/* Adds what happened to a lock in one step. A lock that is in the list already keeps its place, and
 * the new flags are added to its announcement. RL_FX_WAITING cancels an earlier RL_FX_DONE and
 * RL_FX_HELD; of two RL_FX_DONE the status of the first one stays. */
void rl_announcements_add(struct rl_announcements *list, struct rl_lock *lock, uint32_t flags,
                          int status)
{
    struct rl_announcement *announcement = &lock->pending.announcement;

    RL_ASSERT(flags != 0);
    if (announcement->flags == 0) {
        lock->pending.next = NULL;
        if (list->last != NULL)
            list->last->pending.next = lock;
        else
            list->first = lock;
        list->last = lock;
    }
    if (flags & RL_FX_WAITING)
        announcement->flags &= ~(uint32_t)(RL_FX_DONE | RL_FX_HELD);
    if ((flags & RL_FX_DONE) != 0 && (announcement->flags & RL_FX_DONE) == 0)
        announcement->status = status;
    if (flags & (RL_FX_WAITING | RL_FX_EXTEND_FAILED))
        announcement->event_status = status;
    announcement->flags |= flags;
}

/* Adds the node with this index to those that have changed. */
void rl_announcements_add_node(struct rl_announcements *list, unsigned node)
{
    list->changed |= RL_NODE(node);
}

/* Adds a node that has shown a key with `pttl_ms` to live, more than max_ttl. */
void rl_announcements_add_long_ttl(struct rl_announcements *list, unsigned node, uint64_t pttl_ms)
{
    list->long_ttls |= RL_NODE(node);
    list->pttl_ms[node] = pttl_ms;
}

/* Takes the announcement of this lock, wherever it is in the list. Returns false if it has none;
 * then `*ret_announcement` is unchanged. */
bool rl_announcements_take_lock(struct rl_announcements *list, struct rl_lock *lock,
                                struct rl_announcement *ret_announcement)
{
    struct rl_lock *before = NULL;

    if (lock->pending.announcement.flags == 0)
        return false;
    for (struct rl_lock *at = list->first; at != lock; at = at->pending.next)
        before = at;
    if (before != NULL)
        before->pending.next = lock->pending.next;
    else
        list->first = lock->pending.next;
    if (list->last == lock)
        list->last = before;
    *ret_announcement = lock->pending.announcement;
    lock->pending = (struct rl_pending_announcement){0};
    return true;
}

/* Takes the announcement of the first lock in the list and returns that lock; NULL: the list is
 * empty. */
struct rl_lock *rl_announcements_take(struct rl_announcements *list,
                                      struct rl_announcement *ret_announcement)
{
    struct rl_lock *first = list->first;

    if (first != NULL)
        (void)rl_announcements_take_lock(list, first, ret_announcement);
    return first;
}

/* Removes the lowest node from `*set` and sets `*ret_node` to its index. Returns false if the set
 * is empty. */
static bool take_first(rl_nodes *set, unsigned *ret_node)
{
    if (*set == 0)
        return false;
    *ret_node = (unsigned)__builtin_ctz(*set);
    *set &= *set - 1;
    return true;
}

/* Takes the first node that has changed. Returns false if there is none. */
bool rl_announcements_take_node(struct rl_announcements *list, unsigned *ret_node)
{
    return take_first(&list->changed, ret_node);
}

/* Takes the first node that has shown a key with more than max_ttl to live, and that time. Returns
 * false if there is none. */
bool rl_announcements_take_long_ttl(struct rl_announcements *list, unsigned *ret_node,
                                    uint64_t *ret_pttl_ms)
{
    if (!take_first(&list->long_ttls, ret_node))
        return false;
    *ret_pttl_ms = list->pttl_ms[*ret_node];
    return true;
}

/* Drops the announcements of nodes; those of locks stay. */
void rl_announcements_drop_nodes(struct rl_announcements *list)
{
    list->changed = list->long_ttls = 0;
}
