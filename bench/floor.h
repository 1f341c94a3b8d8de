/* SPDX-License-Identifier: MIT
 * The floor: the least that acquire and release on all servers cost with hiredis as the codec. A
 * closed loop written by hand, without the things that make a library: see README.md. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "result.h"
#include "servers.h"

/* Compare and delete. */
extern const char floor_release_script[];

struct floor;

/* Connects, loads the script, prepares `depth` resources named <prefix><number>. NULL and a text in
 * `error` if that fails. */
struct floor *floor_open(const struct servers *servers, unsigned depth, const char *prefix,
                         uint64_t ttl_ms, char *error, size_t error_size);

/* Runs `pairs` acquisitions with their releases, `depth` of them in flight, and adds what it
 * measured to `result`. 0, or -1 if a server is gone or does not speak the protocol. */
int floor_run(struct floor *floor, uint64_t pairs, struct result *result);

void floor_close(struct floor *floor);

#endif
