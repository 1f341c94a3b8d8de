/* SPDX-License-Identifier: MIT
 * An open loop: operations begin at set times, whether or not earlier ones have ended, as the
 * customers of a service do. Each one's time counts from when it was to begin: what a slow server
 * delays is not left out because nobody asked meanwhile. */
#ifndef BENCH_PACED_H
#define BENCH_PACED_H

#include "client.h"
#include "timeline.h"

struct paced_plan {
    uint64_t rate_per_s;  /* 0: a closed loop, one after the other, that hides what it waits for */
    uint64_t duration_ns; /* no new ones after it */
    uint64_t count_max;   /* no more operations; 0: any number */
    /* Called when it is due, with the time since the beginning; returns when the next time is,
     * UINT64_MAX: never. May be NULL. */
    uint64_t (*step)(void *state, uint64_t elapsed_ns, struct timeline *timeline);
    void *step_state;
};

/* Set times are evenly spaced. */
static inline uint64_t paced_due_ns(uint64_t start_ns, uint64_t rate_per_s, uint64_t index)
{
    uint64_t seconds = index / rate_per_s, rest = index % rate_per_s;
    return start_ns + seconds * UINT64_C(1000000000) + rest * UINT64_C(1000000000) / rate_per_s;
}

/* At most settings->depth in flight; what is to begin when there are so many begins when one of
 * them ends, and its time counts from when it was to begin. `intended` gets times from the intended
 * start, `sent` (may be NULL) from when the library was asked. *ret_timeline is freed by free().
 * 0, or -1 and a text in `error`. */
int paced_run(const struct client_settings *settings, const struct paced_plan *plan,
              struct result *intended, struct result *sent, struct timeline **ret_timeline,
              char *error, size_t error_size);

#endif
