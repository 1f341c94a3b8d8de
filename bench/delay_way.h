/* SPDX-License-Identifier: MIT
 * One direction of a delayed connection: what was read and is to be written when its time comes. */
#ifndef BENCH_DELAY_WAY_H
#define BENCH_DELAY_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum delay_end {
    DELAY_END_NONE = 0,
    DELAY_END_EOF = 1,  /* the sender has no more to say */
    DELAY_END_ABORT = 2 /* the sender's connection broke */
};

struct delay_chunk {
    struct delay_chunk *next;
    uint64_t due_ns;
    size_t len, sent;
    enum delay_end end; /* instead of bytes */
    char bytes[];
};

struct delay_way {
    void *owner; /* its connection */
    struct delay_chunk *first, *last;
    size_t held;     /* bytes */
    bool read_ended; /* the last chunk is an end */
    bool blocked;    /* the receiver takes no more at present */
    bool done;       /* the end was handed on */
    uint64_t heap_due_ns;
    size_t heap_at; /* place in the heap, from 1; 0: in none */
};

enum delay_flush {
    DELAY_FLUSH_WAIT = 0,    /* for the next chunk's time, or for more */
    DELAY_FLUSH_BLOCKED = 1, /* for the receiver */
    DELAY_FLUSH_EOF = 2,     /* handed on the end: nothing more will come */
    DELAY_FLUSH_ABORT = 3    /* both connections are to be broken */
};

/* Reads what there is, up to the bound. `due_ns` is when it is to be handed on; never before what
 * was read earlier. False if there is no memory for it. */
bool delay_way_read(struct delay_way *way, int fd, uint64_t due_ns);
/* Writes what is due. */
enum delay_flush delay_way_flush(struct delay_way *way, int fd, uint64_t now_ns);
void delay_way_free(struct delay_way *way);

/* Ways by the time of their first chunk. */
struct delay_heap {
    struct delay_way **list;
    size_t count, size;
};

bool delay_heap_reserve(struct delay_heap *heap, size_t count);
/* Puts the way where the time of its first chunk belongs; reserved before. */
void delay_heap_put(struct delay_heap *heap, struct delay_way *way);
void delay_heap_remove(struct delay_heap *heap, struct delay_way *way);

#endif
