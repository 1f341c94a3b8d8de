/* SPDX-License-Identifier: MIT
 * Announcements: a list of locks, linked through the locks so that it needs no memory, and sets of
 * nodes. */
#include "engine/announcements.h"

#include "engine/lock.h"

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

void rl_announcements_add_node(struct rl_announcements *list, unsigned node)
{
    list->changed |= RL_NODE(node);
}

void rl_announcements_add_long_ttl(struct rl_announcements *list, unsigned node, uint64_t pttl_ms)
{
    list->long_ttls |= RL_NODE(node);
    list->pttl_ms[node] = pttl_ms;
}

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

struct rl_lock *rl_announcements_take(struct rl_announcements *list,
                                      struct rl_announcement *ret_announcement)
{
    struct rl_lock *first = list->first;

    if (first != NULL)
        (void)rl_announcements_take_lock(list, first, ret_announcement);
    return first;
}

/* Takes the first node out of a set. Returns false if the set is empty. */
static bool take_first(rl_nodes *set, unsigned *ret_node)
{
    if (*set == 0)
        return false;
    *ret_node = (unsigned)__builtin_ctz(*set);
    *set &= *set - 1;
    return true;
}

bool rl_announcements_take_node(struct rl_announcements *list, unsigned *ret_node)
{
    return take_first(&list->changed, ret_node);
}

bool rl_announcements_take_long_ttl(struct rl_announcements *list, unsigned *ret_node,
                                    uint64_t *ret_pttl_ms)
{
    if (!take_first(&list->long_ttls, ret_node))
        return false;
    *ret_pttl_ms = list->pttl_ms[*ret_node];
    return true;
}

void rl_announcements_drop_nodes(struct rl_announcements *list)
{
    list->changed = list->long_ttls = 0;
}
