/* SPDX-License-Identifier: MIT
 * redlock-growth runs one measurement of one size. Each kind of measurement prints one JSON object
 * in one line; growth.py runs all sizes and combines the lines. */
#ifndef BENCH_GROWTH_H
#define BENCH_GROWTH_H

#include "servers.h"

#include <redlock/redlock.h>
#include <sys/types.h>

/* The command line. Each kind of measurement uses some of the numbers. */
struct growth_settings {
    struct servers servers;                   /* the first ones of those that were given */
    char list[SERVERS_TEXT_MAX];              /* their URLs */
    char prefix[64];                          /* of the names of all resources */
    unsigned held, threads, processes, depth; /* size of the measurement, all the same */
    uint64_t ttl_ms;
    uint64_t hold_ms;         /* growth_held(): time for which the locks are held */
    uint64_t pairs;           /* pairs of the loop, of all threads, or of each process */
    uint32_t node_timeout_ms; /* 0: derived from the round trips */
};

/* Memory that a client has allocated. */
struct growth_memory {
    size_t live;   /* bytes now */
    size_t peak;   /* largest value of `live` */
    size_t blocks; /* allocations now */
};
/* Returns an allocator that counts in `memory`. Not thread-safe: for clients in embedded mode. */
redlock_allocator_t growth_allocator(struct growth_memory *memory);
/* Returns the resident memory of this process in bytes, 0 if unknown. */
size_t growth_rss(void);
/* Returns the same, with pages that several processes share divided among them (Pss). */
size_t growth_pss(void);
/* Returns the processor time of this process in microseconds. */
uint64_t growth_cpu_us(void);
/* Returns how often this process has waited, in voluntary context switches. */
uint64_t growth_switches(void);

/* Work of all servers until now. Without the commands that scripts call, and without INFO and TIME,
 * which the measurement and the heartbeats send. */
struct growth_work {
    uint64_t commands; /* received from clients */
    uint64_t reads;    /* reads from client connections, by INFO's total_reads_processed */
    uint64_t cpu_us;   /* processor time */
};

/* Reads the work of all servers. Returns 0, or -1 if a server does not reply. */
int growth_work(const struct servers *servers, struct growth_work *ret_work);

/* Acquires settings->held locks in one loop, holds them with automatic extension, and releases
 * them. Prints memory and work of each phase. Returns an exit code, as all kinds do. */
int growth_held(const struct growth_settings *settings);
/* Runs pairs of acquire and release in one loop with settings->depth in flight. */
int growth_loop(const struct growth_settings *settings);
/* Runs the pairs in settings->threads threads that share a client. */
int growth_threads(const struct growth_settings *settings);
/* Runs the pairs in settings->processes processes with a client and one blocked thread each. */
int growth_processes(const struct growth_settings *settings);

#endif
