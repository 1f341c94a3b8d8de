/* SPDX-License-Identifier: MIT
 * The baseline: the least that acquire and release on all servers cost with hiredis as the codec. A
 * closed loop written by hand, without the things that make a library: see README.md. */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include "result.h"
#include "servers.h"

/* Compare and delete. */
extern const char baseline_release_script[];

struct baseline;

/* Connects, loads the script, prepares `depth` resources named <prefix><number>. NULL and a text in
 * `error` if that fails. */
struct baseline *baseline_open(const struct servers *servers, unsigned depth, const char *prefix,
                               uint64_t ttl_ms, char *error, size_t error_size);

/* Runs `pairs` acquisitions with their releases, `depth` of them in flight, and adds what it
 * measured to `result`. 0, or -1 if a server is gone or does not speak the protocol. */
int baseline_run(struct baseline *baseline, uint64_t pairs, struct result *result);

void baseline_close(struct baseline *baseline);

#endif
