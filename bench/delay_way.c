/* SPDX-License-Identifier: MIT
 * A queue of chunks for each direction, and a binary heap of such queues. */
#include "delay_way.h"

#include "delay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define READ_SIZE 16384 /* most bytes of one chunk */

/* Appends a chunk with a copy of the bytes, or an end. A chunk is never due before an earlier one.
 * Returns false if out of memory. */
static bool append(struct delay_way *way, const char *bytes, size_t len, enum delay_end end,
                   uint64_t due_ns)
{
    struct delay_chunk *chunk = malloc(sizeof *chunk + len);
    if (chunk == NULL)
        return false;
    *chunk = (struct delay_chunk){.len = len, .due_ns = due_ns, .end = end};
    if (len != 0)
        memcpy(chunk->bytes, bytes, len);
    if (way->last != NULL && way->last->due_ns > due_ns)
        chunk->due_ns = way->last->due_ns;
    if (way->last != NULL)
        way->last->next = chunk;
    else
        way->first = chunk;
    way->last = chunk;
    way->held += len;
    way->read_ended = end != DELAY_END_NONE;
    return true;
}

/* Appends what can be read from `fd` without waiting, due at due_ns. The end of the connection
 * becomes the last chunk. Returns false if out of memory. */
bool delay_way_read(struct delay_way *way, int fd, uint64_t due_ns)
{
    char bytes[READ_SIZE];
    while (!way->read_ended && way->held < DELAY_HELD_MAX) {
        ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return true;
        enum delay_end end = got > 0 ? DELAY_END_NONE : got == 0 ? DELAY_END_EOF : DELAY_END_ABORT;
        if (!append(way, bytes, got > 0 ? (size_t)got : 0, end, due_ns))
            return false;
        if (got > 0 && (size_t)got < sizeof bytes)
            return true;
    }
    return true;
}

/* Frees the first chunk of the queue. */
static void drop_first(struct delay_way *way)
{
    struct delay_chunk *chunk = way->first;
    way->held -= chunk->len;
    way->first = chunk->next;
    if (way->first == NULL)
        way->last = NULL;
    free(chunk);
}

/* Sends the chunks that are due at now_ns to `fd` and frees them. Returns why it stopped. */
enum delay_flush delay_way_flush(struct delay_way *way, int fd, uint64_t now_ns)
{
    way->blocked = false;
    while (way->first != NULL && way->first->due_ns <= now_ns) {
        struct delay_chunk *chunk = way->first;
        if (chunk->end != DELAY_END_NONE) {
            bool abort = chunk->end == DELAY_END_ABORT;
            drop_first(way);
            way->done = true;
            return abort ? DELAY_FLUSH_ABORT : DELAY_FLUSH_EOF;
        }
        ssize_t sent = send(fd, chunk->bytes + chunk->sent, chunk->len - chunk->sent,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            way->blocked = true;
            return DELAY_FLUSH_BLOCKED;
        }
        if (sent < 0)
            return DELAY_FLUSH_ABORT;
        chunk->sent += (size_t)sent;
        if (chunk->sent == chunk->len)
            drop_first(way);
    }
    return DELAY_FLUSH_WAIT;
}

/* Frees all chunks of the direction, but not the direction itself. */
void delay_way_free(struct delay_way *way)
{
    while (way->first != NULL)
        drop_first(way);
}

/* Makes room for `count` directions. Returns false if out of memory. */
bool delay_heap_reserve(struct delay_heap *heap, size_t count)
{
    if (count + 1 <= heap->size)
        return true;
    size_t size = 2 * (count + 1);
    struct delay_way **list = realloc(heap->list, size * sizeof(struct delay_way *));
    if (list == NULL)
        return false;
    heap->list = list;
    heap->size = size;
    return true;
}

/* Stores a direction at a position of the heap. */
static void set(struct delay_heap *heap, size_t at, struct delay_way *way)
{
    heap->list[at] = way;
    way->heap_at = at;
}

/* Moves a direction from position `at` up or down until the heap is ordered again. */
static void sift(struct delay_heap *heap, size_t at, struct delay_way *way)
{
    for (; at > 1 && heap->list[at / 2]->heap_due_ns > way->heap_due_ns; at /= 2)
        set(heap, at, heap->list[at / 2]);
    for (;;) {
        size_t child = 2 * at;
        if (child > heap->count)
            break;
        if (child < heap->count &&
            heap->list[child + 1]->heap_due_ns < heap->list[child]->heap_due_ns)
            child++;
        if (heap->list[child]->heap_due_ns >= way->heap_due_ns)
            break;
        set(heap, at, heap->list[child]);
        at = child;
    }
    set(heap, at, way);
}

/* Inserts the direction, or moves it, by the due time of its first chunk. */
void delay_heap_put(struct delay_heap *heap, struct delay_way *way)
{
    size_t at = way->heap_at != 0 ? way->heap_at : ++heap->count;
    way->heap_due_ns = way->first->due_ns;
    sift(heap, at, way);
}

/* Removes the direction; does nothing if it is not in the heap. */
void delay_heap_remove(struct delay_heap *heap, struct delay_way *way)
{
    if (way->heap_at == 0)
        return;
    struct delay_way *last = heap->list[heap->count--];
    size_t at = way->heap_at;
    way->heap_at = 0;
    if (last != way)
        sift(heap, at, last);
}
