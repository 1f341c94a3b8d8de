/* SPDX-License-Identifier: MIT
 * One direction of a delayed connection: what was read and is forwarded when its time comes. */
#ifndef BENCH_DELAY_WAY_H
#define BENCH_DELAY_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a direction ends. */
enum delay_end {
    DELAY_END_NONE = 0, /* more may come */
    DELAY_END_EOF = 1,  /* the sender has closed its side */
    DELAY_END_ABORT = 2 /* the sender's connection broke */
};

/* Bytes that were read at once, or the end of the direction. */
struct delay_chunk {
    struct delay_chunk *next;
    uint64_t due_ns;    /* CLOCK_MONOTONIC time at which it is forwarded */
    size_t len;         /* of bytes[] */
    size_t sent;        /* bytes that were forwarded already */
    enum delay_end end; /* not NONE: the chunk has no bytes and is the last one */
    char bytes[];       /* as they were received */
};

/* One direction. Owns its chunks, which are in the order of their due_ns. */
struct delay_way {
    void *owner;                      /* the pair of connections that it belongs to */
    struct delay_chunk *first, *last; /* the queue; NULL: empty */
    size_t held;                      /* bytes in all chunks */
    bool read_ended;                  /* the last chunk is an end */
    bool blocked;                     /* the receiver's socket buffer is full */
    bool done;                        /* the end was forwarded */
    uint64_t heap_due_ns;             /* due_ns of the first chunk, while in the heap */
    size_t heap_at;                   /* position in the heap, from 1; 0: not in the heap */
};

/* Why delay_way_flush() has stopped. */
enum delay_flush {
    DELAY_FLUSH_WAIT = 0,    /* nothing more is due */
    DELAY_FLUSH_BLOCKED = 1, /* the receiver's socket buffer is full */
    DELAY_FLUSH_EOF = 2,     /* reached the end of the direction: close the receiver's side */
    DELAY_FLUSH_ABORT = 3    /* close both connections with a reset */
};

/* Reads what is available from `fd`, up to DELAY_HELD_MAX held bytes. The bytes are due at due_ns,
 * or with the bytes before them if those are due later. Returns false if out of memory. */
bool delay_way_read(struct delay_way *way, int fd, uint64_t due_ns);
/* Sends to `fd` what is due at now_ns, and frees the chunks that were sent whole. */
enum delay_flush delay_way_flush(struct delay_way *way, int fd, uint64_t now_ns);
/* Frees all chunks. */
void delay_way_free(struct delay_way *way);

/* Binary heap of directions, ordered by the time of their first chunk. */
struct delay_heap {
    struct delay_way **list; /* list[1] is the earliest; list[0] is not used; owned */
    size_t count;            /* directions in the heap */
    size_t size;             /* of list[], with list[0] */
};

/* Makes room for `count` directions. Returns false if out of memory. */
bool delay_heap_reserve(struct delay_heap *heap, size_t count);
/* Inserts the direction, or moves it to where its first chunk belongs. There must be a first chunk,
 * and room from delay_heap_reserve(). */
void delay_heap_put(struct delay_heap *heap, struct delay_way *way);
/* Removes the direction; does nothing if it is not in the heap. */
void delay_heap_remove(struct delay_heap *heap, struct delay_way *way);

#endif
