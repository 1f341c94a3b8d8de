/* SPDX-License-Identifier: MIT
 * redlock-growth: one measurement of one size. Each kind prints one JSON object in one line;
 * growth.py asks for the sizes and puts them together. */
#ifndef BENCH_GROWTH_H
#define BENCH_GROWTH_H

#include "servers.h"

#include <redlock/redlock.h>
#include <sys/types.h>

struct growth_settings {
    struct servers servers; /* the first `nodes` of those that were given */
    char list[SERVERS_TEXT_MAX];
    char prefix[64];
    unsigned held, threads, processes, depth;
    uint64_t ttl_ms, hold_ms, pairs;
    uint32_t node_timeout_ms;
};

/* Memory that a client has through its allocator. */
struct growth_memory {
    size_t live, peak, blocks;
};
/* For one thread at a time. */
redlock_allocator_t growth_allocator(struct growth_memory *memory);
/* Of this process: bytes in memory; of those shared with others, its share. */
size_t growth_rss(void);
size_t growth_pss(void);
/* Processor time of this process, in microseconds; how often it was switched away from. */
uint64_t growth_cpu_us(void);
uint64_t growth_switches(void);

/* What all servers have done so far: commands of clients, without what scripts call and what is
 * asked here; how often they read from a connection. -1: one cannot be asked. */
struct growth_work {
    uint64_t commands, reads, cpu_us;
};
int growth_work(const struct servers *servers, struct growth_work *ret_work);

/* Locks that are held and renewed for a while. */
int growth_held(const struct growth_settings *settings);
/* Pairs of acquire and release: in one loop with so many in flight, by threads that share a client,
 * by processes with one blocked thread each. */
int growth_loop(const struct growth_settings *settings);
int growth_threads(const struct growth_settings *settings);
int growth_processes(const struct growth_settings *settings);

#endif
