/* SPDX-License-Identifier: MIT
 * Samples in the order of time, and percentiles of parts of the time. */
#include "timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocates a timeline with room for `size` samples. Returns NULL if out of memory. */
struct timeline *timeline_new(size_t size)
{
    struct timeline *timeline = calloc(1, sizeof *timeline + size * sizeof timeline->samples[0]);
    if (timeline != NULL)
        timeline->size = size;
    return timeline;
}

/* Appends a sample; ignored if there is no room. */
void timeline_add(struct timeline *timeline, uint64_t at_ns, uint64_t took_ns, bool failed)
{
    if (timeline->count < timeline->size)
        timeline->samples[timeline->count++] = (struct sample){at_ns, took_ns, failed};
}

/* Adds a mark; cuts its text if too long, and ignores the mark if there are MARKS_MAX. */
void timeline_mark(struct timeline *timeline, uint64_t at_ns, const char *text)
{
    if (timeline->marks_count == MARKS_MAX)
        return;
    struct mark *mark = &timeline->marks[timeline->marks_count++];
    mark->at_ns = at_ns;
    snprintf(mark->text, sizeof mark->text, "%s", text);
}

/* Compares by start. */
static int compare_at(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Compares by duration; failed operations come last. */
static int compare_took(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->failed != y->failed)
        return x->failed ? 1 : -1;
    return (x->took_ns > y->took_ns) - (x->took_ns < y->took_ns);
}

/* Sorts the samples by their start. */
void timeline_sort(struct timeline *timeline)
{
    qsort(timeline->samples, timeline->count, sizeof timeline->samples[0], compare_at);
}

/* Computes the percentiles of the samples from index *at that begin before end_ns, and moves *at
 * behind them. Changes the order of these samples; failed operations have no time. */
void timeline_bin(struct timeline *timeline, size_t *at, uint64_t end_ns,
                  struct timeline_bin *ret_bin)
{
    struct sample *first = timeline->samples + *at;
    memset(ret_bin, 0, sizeof *ret_bin);
    for (; *at < timeline->count && timeline->samples[*at].at_ns < end_ns; ++*at) {
        ret_bin->count++;
        ret_bin->failed += timeline->samples[*at].failed;
    }
    size_t fine = ret_bin->count - ret_bin->failed;
    if (fine == 0)
        return;
    qsort(first, ret_bin->count, sizeof *first, compare_took);
    ret_bin->p50_ns = first[(fine + 1) / 2 - 1].took_ns;
    ret_bin->p99_ns = first[(fine * 99 + 99) / 100 - 1].took_ns;
    ret_bin->max_ns = first[fine - 1].took_ns;
}
