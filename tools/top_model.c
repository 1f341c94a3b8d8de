/* SPDX-License-Identifier: MIT
 * Keeps the list of locks of `redlock top`, and sorts and filters it.
 */
#include "top_model.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "reports.h"
#include "say.h"

/* Returns the position of the name in the list, or where it would be inserted. Sets *ret_found. */
static size_t position_of(const struct top_model *model, const char *name, bool *ret_found)
{
    size_t low = 0, high = model->count;

    *ret_found = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int compared = strcmp(model->locks[middle]->name, name);
        if (compared == 0) {
            *ret_found = true;
            return middle;
        }
        if (compared < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Looks a lock up by its name. */
struct top_lock *top_find(const struct top_model *model, const char *name)
{
    bool found;
    size_t at = position_of(model, name, &found);

    return found ? model->locks[at] : NULL;
}

/* Inserts a lock at its place in the alphabet. */
struct top_lock *top_add(struct top_model *model, const char *name)
{
    bool found;
    size_t at = position_of(model, name, &found);

    if (found)
        return model->locks[at];
    if (model->count == TOP_LOCKS_MAX) {
        model->overflow = true;
        return NULL;
    }
    if (model->count == model->capacity) {
        model->capacity = model->capacity ? 2 * model->capacity : 64;
        model->locks = must(realloc(model->locks, model->capacity * sizeof *model->locks));
    }
    memmove(&model->locks[at + 1], &model->locks[at], (model->count - at) * sizeof *model->locks);
    model->locks[at] = must(calloc(1, sizeof *model->locks[at]));
    *model->locks[at] = (struct top_lock){
        .name = text_copy(name), .ttl_min_ms = UINT64_MAX, .ttl_max_ms = UINT64_MAX};
    model->count++;
    return model->locks[at];
}

/* Removes a lock, if it is in the list. */
void top_remove(struct top_model *model, const char *name)
{
    bool found;
    size_t at = position_of(model, name, &found);

    if (!found)
        return;
    free(model->locks[at]->name);
    free(model->locks[at]);
    model->count--;
    model->overflow = false;
    memmove(&model->locks[at], &model->locks[at + 1], (model->count - at) * sizeof *model->locks);
}

/* Frees all locks. */
void top_free(struct top_model *model)
{
    for (size_t i = 0; i < model->count; i++) {
        free(model->locks[i]->name);
        free(model->locks[i]);
    }
    free(model->locks);
    model->locks = NULL;
    model->count = model->capacity = 0;
}

/* Copies the holder, the votes and the TTL out of the report of an inspection. A key that is no
 * string, or that never expires and has no label of a holder, was not set by a Redlock client. */
bool top_take_report(struct top_lock *lock, const redlock_report_t *report, uint64_t now_ns)
{
    struct holding holding = holding_of(report);
    redlock_report_info_t info = report_info(report);
    redlock_node_report_t node;
    bool foreign = false;

    lock->seen_ns = now_ns;
    lock->state = info.state;
    lock->votes = holding.votes.granted;
    lock->configured = info.nodes;
    lock->quorum = info.quorum;
    lock->knows_waiting = info.line_servers > 0;
    lock->waiting = info.line_length;
    lock->ttl_min_ms = holding.pttl_min_ms;
    lock->ttl_max_ms = holding.pttl_max_ms;
    lock->holders = 0;
    lock->endless = false;
    strncpy(lock->owner, holding.owner, sizeof lock->owner - 1);
    for (uint32_t i = 0; report_node(report, i, &node); i++) {
        if (node.vote == REDLOCK_VOTE_GRANTED)
            lock->holders |= UINT32_C(1) << (info.node_first + i);
        lock->endless = lock->endless || node.key == REDLOCK_KEY_PERSISTENT;
        foreign = foreign || node.key == REDLOCK_KEY_FOREIGN;
    }
    if (foreign || (lock->endless && !*lock->owner))
        return false;
    return info.state != REDLOCK_STATE_FREE || lock->votes > 0;
}

/* Subtracts the time since the inspection from the longest TTL. */
uint64_t top_left_ms(const struct top_lock *lock, uint64_t now_ns)
{
    uint64_t passed_ms = (now_ns - lock->seen_ns) / NS_PER_MS;

    if (lock->endless || lock->ttl_max_ms == UINT64_MAX)
        return UINT64_MAX;
    return lock->ttl_max_ms > passed_ms ? lock->ttl_max_ms - passed_ms : 0;
}

/* What compare() needs beside two locks. */
struct ordering {
    enum top_order order;
    bool reverse;
    uint64_t now_ns;
};

/* Returns -1, 0 or 1 as `a` is less than, equal to or greater than `b`. */
static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Compares two locks, for qsort_r(). Locks that are equal are sorted by name, "job/9" before
 * "job/10". */
static int compare(const void *left, const void *right, void *context)
{
    const struct top_lock *a = *(struct top_lock *const *)left;
    const struct top_lock *b = *(struct top_lock *const *)right;
    const struct ordering *ordering = context;
    int result = 0;

    if (ordering->order == TOP_BY_LEFT)
        result = compare_u64(top_left_ms(a, ordering->now_ns), top_left_ms(b, ordering->now_ns));
    if (ordering->order == TOP_BY_HOLDER)
        result = strcmp(a->owner, b->owner);
    if (ordering->order == TOP_BY_VOTES)
        result = compare_u64(a->votes, b->votes);
    if (ordering->order == TOP_BY_WAITING)
        result = compare_u64(a->waiting, b->waiting);
    if (result == 0)
        result = strverscmp(a->name, b->name);
    return ordering->reverse ? -result : result;
}

/* Returns the locks that the filter lets through, sorted. */
struct top_lock **top_select(const struct top_model *model, enum top_order order, bool reverse,
                             const char *filter, uint64_t now_ns, size_t *ret_count)
{
    struct ordering ordering = {order, reverse, now_ns};
    struct top_lock **chosen = must(calloc(model->count + 1, sizeof *chosen));
    size_t count = 0;

    for (size_t i = 0; i < model->count; i++) {
        struct top_lock *lock = model->locks[i];
        if ((lock->seen_ns || lock->given) &&
            (strstr(lock->name, filter) || strstr(lock->owner, filter)))
            chosen[count++] = lock;
    }
    qsort_r(chosen, count, sizeof *chosen, compare, &ordering);
    *ret_count = count;
    return chosen;
}

/* Compares two locks by when they should be inspected, for qsort(). */
static int compare_due(const void *left, const void *right)
{
    const struct top_lock *a = *(struct top_lock *const *)left;
    const struct top_lock *b = *(struct top_lock *const *)right;

    if (a->visible != b->visible)
        return a->visible ? -1 : 1;
    return compare_u64(a->seen_ns, b->seen_ns);
}

/* Returns the locks that were not inspected for long enough, those on the screen first. */
struct top_lock **top_due(const struct top_model *model, uint64_t since_ns, size_t max,
                          size_t *ret_count)
{
    struct top_lock **due = must(calloc(model->count + 1, sizeof *due));
    size_t count = 0;

    for (size_t i = 0; i < model->count; i++)
        if (model->locks[i]->seen_ns < since_ns)
            due[count++] = model->locks[i];
    qsort(due, count, sizeof *due, compare_due);
    *ret_count = count < max ? count : max;
    return due;
}
