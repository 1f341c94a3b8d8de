/* SPDX-License-Identifier: MIT
 * The single operations of a run with their times, and marks for the faults of the servers. */
#ifndef BENCH_TIMELINE_H
#define BENCH_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKS_MAX 4 /* marks of one timeline */

/* One operation. */
struct sample {
    uint64_t at_ns;   /* intended start, since the start of the run */
    uint64_t took_ns; /* from the intended start to the end */
    bool failed;      /* its acquisition or release failed */
};

/* The begin or the end of a fault. */
struct mark {
    uint64_t at_ns; /* since the start of the run */
    char text[48];  /* for people, such as "2 stopped" */
};

/* The samples and marks of one run. */
struct timeline {
    size_t count, size; /* samples in use, room for samples */
    size_t marks_count; /* of marks[] */
    struct mark marks[MARKS_MAX];
    struct sample samples[];
};

/* The operations that began in one part of the run. Percentiles are those of the operations that
 * did not fail; 0 if there is none. */
struct timeline_bin {
    size_t count, failed;            /* all operations; of these, failed ones */
    uint64_t p50_ns, p99_ns, max_ns; /* of took_ns */
};

/* Returns an empty timeline with room for `size` samples, or NULL if out of memory. The caller
 * frees it with free(). */
struct timeline *timeline_new(size_t size);
/* Adds a sample. Ignored if the timeline is full. */
void timeline_add(struct timeline *timeline, uint64_t at_ns, uint64_t took_ns, bool failed);
/* Adds a mark with a copy of `text`, cut to the size of a mark. Ignored after MARKS_MAX marks. */
void timeline_mark(struct timeline *timeline, uint64_t at_ns, const char *text);
/* Sorts the samples by start. Must be called before timeline_bin(). */
void timeline_sort(struct timeline *timeline);
/* Evaluates the samples from index *at that began before end_ns, and sets *at to the first later
 * sample. Changes the order of the evaluated samples. */
void timeline_bin(struct timeline *timeline, size_t *at, uint64_t end_ns,
                  struct timeline_bin *ret_bin);

#endif
