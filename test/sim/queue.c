/* SPDX-License-Identifier: MIT
 * The queue of events as a binary heap. */
#include "queue.h"

#include <stdlib.h>

/* Returns whether event a comes before event b: earlier, or appended earlier for the same time. */
static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

/* Appends a copy of the event, and moves it up to its place in the heap. */
void sim_queue_push(struct sim_queue *queue, const struct sim_event *event)
{
    if (queue->count == queue->cap) {
        queue->cap = queue->cap != 0 ? 2 * queue->cap : 256;
        queue->list = realloc(queue->list, queue->cap * sizeof *queue->list);
        if (queue->list == NULL)
            abort();
    }
    struct sim_event placed = *event;
    placed.order = queue->order++;
    uint32_t at = queue->count++;
    while (at > 0 && is_before(&placed, &queue->list[(at - 1) / 2])) {
        queue->list[at] = queue->list[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->list[at] = placed;
}

/* Removes the earliest event and stores it in *ret. Returns false if the queue is empty. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *ret)
{
    if (queue->count == 0)
        return false;
    *ret = queue->list[0];
    struct sim_event last = queue->list[--queue->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= queue->count)
            break;
        if (child + 1 < queue->count && is_before(&queue->list[child + 1], &queue->list[child]))
            child++;
        if (!is_before(&queue->list[child], &last))
            break;
        queue->list[at] = queue->list[child];
        at = child;
    }
    if (queue->count > 0)
        queue->list[at] = last;
    return true;
}

/* Frees the list of events. The data of the events is not freed. */
void sim_queue_free(struct sim_queue *queue)
{
    free(queue->list);
}
