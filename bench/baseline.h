/* SPDX-License-Identifier: MIT
 * The baseline: the lowest cost of acquire and release on all servers with hiredis as the codec. A
 * hand-written closed loop without a library's safeguards; see README.md. */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include "result.h"
#include "servers.h"

/* Script of the release: compare and delete. */
extern const char baseline_release_script[];

struct baseline;

/* Connects, loads the script and prepares `depth` resources named <prefix><number>. Returns NULL
 * and a text in `error` on failure. */
struct baseline *baseline_open(const struct servers *servers, unsigned depth, const char *prefix,
                               uint64_t ttl_ms, char *error, size_t error_size);

/* Runs `pairs` acquisitions with their releases, `depth` in flight, and adds the measurements to
 * `result`. Returns 0, or -1 if a server has closed its connection or sent an invalid reply. */
int baseline_run(struct baseline *baseline, uint64_t pairs, struct result *result);

/* Closes the connections and frees the baseline; NULL does nothing. */
void baseline_close(struct baseline *baseline);

#endif
