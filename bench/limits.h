/* SPDX-License-Identifier: MIT
 * What cannot be beaten: a round trip to enough servers, and what the servers do in a second. */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include "result.h"
#include "servers.h"

/* ping.c: PING to all servers at once, `count` times one after the other; times are those of the
 * q-th answer. Ends after `budget_ns` (0: not before). 0, or -1 and a text in `error`. */
int ping_run(const struct servers *servers, uint64_t count, uint64_t budget_ns,
             struct result *result, char *error, size_t error_size);

/* What the slowest server does in a second while all of them are asked. */
struct server_limits {
    double set_per_s, release_per_s;
};

/* redis-benchmark, pipelined, on all servers at the same time: the commands of an acquisition, then
 * those of a release, on keys that begin with `prefix`, which are deleted. `requests` of each, or
 * as many more as the slowest server needs 20 ms for. 1 if there is no redis-benchmark, 0, or -1
 * and a text in `error`. */
int server_limits_run(const struct servers *servers, const char *prefix, uint64_t requests,
                      struct server_limits *ret_limits, char *error, size_t error_size);

#endif
