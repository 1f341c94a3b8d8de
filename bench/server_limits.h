/* SPDX-License-Identifier: MIT
 * The limits of every client: a round trip to a majority of the servers, and the number of
 * commands that the servers can execute in a second. */
#ifndef BENCH_SERVER_LIMITS_H
#define BENCH_SERVER_LIMITS_H

#include "result.h"
#include "servers.h"

/* ping.c. Sends PING to all servers at once, `count` times in sequence, and adds the times up to
 * the reply of the q-th server (q: quorum) to `result`. Ends early after `budget_ns`, unless that
 * is 0. Returns 0, or -1 and a text in `error`. */
int ping_run(const struct servers *servers, uint64_t count, uint64_t budget_ns,
             struct result *result, char *error, size_t error_size);

/* Commands per second of the slowest server while all servers are busy. */
struct server_limits {
    double set_per_s;     /* the command of an acquisition */
    double release_per_s; /* the command of a release */
};

/* Measures the commands of an acquisition, then those of a release, with redis-benchmark and
 * pipelining on all servers at the same time. Uses keys that begin with `prefix` and deletes them.
 * Sends `requests` of each command, or more if the slowest server needs less than 20 ms for them.
 * Returns 0, 1 if there is no redis-benchmark, or -1 and a text in `error`. */
int server_limits_run(const struct servers *servers, const char *prefix, uint64_t requests,
                      struct server_limits *ret_limits, char *error, size_t error_size);

#endif
