/* SPDX-License-Identifier: MIT
 * Single operations by their time, and marks of what happened to the servers meanwhile. */
#ifndef BENCH_TIMELINE_H
#define BENCH_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKS_MAX 4

struct sample {
    uint64_t at_ns;   /* intended start, since the beginning */
    uint64_t took_ns; /* from there to the end */
    bool failed;
};

struct mark {
    uint64_t at_ns;
    char text[48];
};

struct timeline {
    size_t count, size, marks_count;
    struct mark marks[MARKS_MAX];
    struct sample samples[];
};

/* What began in one stretch of time; percentiles are of what did not fail, in nanoseconds. */
struct timeline_bin {
    size_t count, failed;
    uint64_t p50_ns, p99_ns, max_ns;
};

/* NULL: no memory. Freed by free(). */
struct timeline *timeline_new(size_t size);
void timeline_add(struct timeline *timeline, uint64_t at_ns, uint64_t took_ns, bool failed);
void timeline_mark(struct timeline *timeline, uint64_t at_ns, const char *text);
/* Puts samples in the order of their times; before timeline_bin(). */
void timeline_sort(struct timeline *timeline);
/* From the sample *at on, those that began before end_ns; *at is then the next one. It changes
 * their order. */
void timeline_bin(struct timeline *timeline, size_t *at, uint64_t end_ns,
                  struct timeline_bin *ret_bin);

#endif
