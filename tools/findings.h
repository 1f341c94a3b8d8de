/* SPDX-License-Identifier: MIT
 * Makes findings about servers, the shard and fences. Only examination.c calls the functions
 * findings_of_...(). They read what the probes have found: exam->troubles[i] is set if server `i`
 * failed to grant, extend or release the probe's lock; exam->fence_troubles[i] if it took no part
 * in a fenced lock. `i` is the index of a server in the arrays of struct examination.
 */
#ifndef TOOLS_FINDINGS_H
#define TOOLS_FINDINGS_H

#include "examination.h"

/* Adds the findings about server `i`. `median_us` is the median of the shard's round trips.
 * findings_server.c. */
void findings_of_server(struct examination *exam, size_t i, uint64_t median_us);

/* Adds the findings about the whole shard. exam->eligible and exam->useful are set.
 * findings_shard.c. */
void findings_of_shard(struct examination *exam);

/* Adds the findings about fences, of servers and of the shard. findings_fence.c. */
void findings_of_fences(struct examination *exam);

/* Adds a finding to exam->findings; drops it if the array is full. `node` is the index of the
 * server, or -1 for the whole shard. `code` and `advice` are constants that live for ever. `format`
 * and what follows make the text of the finding, as with printf(). */
void finding_add(struct examination *exam, enum severity severity, int node, const char *code,
                 const char *advice, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* What to do about one cause why the votes of a server do not count. */
struct remedy {
    int cause;                 /* enum redlock_cause */
    const char *code, *advice; /* code and advice of the finding, as in struct finding */
};

/* Returns the remedy for a cause, which the library explains with `text`; for a cause without one
 * of its own, the remedy "no_vote". Never NULL. */
const struct remedy *remedy_of(int cause, const char *text);

#endif
