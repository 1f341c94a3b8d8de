/* SPDX-License-Identifier: MIT
 * How a client grows with sets of servers: the closed loop of redlock-bench in embedded mode, over
 * one, two, three sets of the servers that are given, in slices that take turns. Where all servers
 * share the processors of one machine, pairs a second say little; what the busiest server and the
 * client compute for each pair say when they would be full. */
#include "client.h"
#include "servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_PAIRS 2000
#define SETS_SHOWN  8
#define TTL_MS      10000
#define WAIT_MS     10000

struct growth {
    struct embedded *embedded;
    struct servers servers; /* of all its sets */
    struct result result;
    uint64_t client_us, servers_us;
};

static struct growth growths[SETS_SHOWN];

static uint64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* "s1=a:1,b:2,c:3;s2=…" of the first sets; fresh: nobody else has a lock there. */
static void list_sets(const struct servers *all, unsigned sets, unsigned each, char *text,
                      size_t size)
{
    size_t at = 0;
    for (unsigned i = 0; i < sets * each; i++) {
        if (i % each == 0)
            at += (size_t)snprintf(text + at, size - at, "%ss%u=", i > 0 ? ";" : "", i / each + 1);
        at += (size_t)snprintf(text + at, size - at, "%sredis://%s:%s?fresh=1",
                               i % each > 0 ? "," : "", all->list[i].host, all->list[i].port);
    }
}

static int open_growth(struct growth *growth, const struct servers *all, unsigned sets,
                       unsigned each, unsigned depth_each)
{
    static char text[SERVERS_TEXT_MAX];
    char prefix[64], error[256] = "out of memory";
    unsigned depth = depth_each * sets; /* each set has the same to do */
    list_sets(all, sets, each, text, sizeof text);
    snprintf(prefix, sizeof prefix, "redlock-bench:%d:%u:", (int)getpid(), sets);
    const struct client_settings settings = {.servers = text,
                                             .prefix = prefix,
                                             .depth = depth,
                                             .resources = depth,
                                             .ttl_ms = TTL_MS,
                                             .wait_ms = WAIT_MS};
    growth->servers = *all;
    growth->servers.count = (size_t)sets * each;
    growth->embedded = embedded_open(&settings, error, sizeof error);
    if (growth->embedded == NULL)
        fprintf(stderr, "redlock-sets: %s\n", error);
    return growth->embedded != NULL ? 0 : -1;
}

static int run_slice(struct growth *growth, struct result *result)
{
    uint64_t servers_us = servers_cpu_us(&growth->servers), client_us = cpu_us();
    int status = embedded_run(growth->embedded, SLICE_PAIRS, result);
    growth->client_us += cpu_us() - client_us;
    if (embedded_settle(growth->embedded) != 0)
        status = -1;
    growth->servers_us += servers_cpu_us(&growth->servers) - servers_us;
    return status;
}

static void print(unsigned sets, unsigned each)
{
    printf("%-5s %9s %9s %9s %13s %17s %7s %10s\n", "sets", "pairs/s", "p50 us", "p99 us",
           "client us/pair", "one server us/pair", "failed", "violations");
    for (unsigned i = 0; i < sets; i++) {
        const struct growth *growth = &growths[i];
        double pairs = (double)growth->result.pairs;
        printf("%-5u %9.0f %9.1f %9.1f %14.2f %18.2f %7llu %10llu\n", i + 1,
               pairs * 1e9 / (double)growth->result.elapsed_ns,
               (double)histogram_percentile(&growth->result.pair, 5000) / 1000,
               (double)histogram_percentile(&growth->result.pair, 9900) / 1000,
               (double)growth->client_us / pairs,
               (double)growth->servers_us / pairs / ((i + 1) * each),
               (unsigned long long)growth->result.failed,
               (unsigned long long)growth->result.violations);
    }
}

/* The first slice of each is for warming up. */
static int measure(unsigned sets, unsigned slices)
{
    static struct result warm;
    for (unsigned slice = 0; slice <= slices; slice++) {
        for (unsigned i = 0; i < sets; i++) {
            if (run_slice(&growths[i], slice == 0 ? &warm : &growths[i].result) != 0)
                return -1;
            if (slice == 0)
                growths[i].client_us = growths[i].servers_us = 0;
        }
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\rslice %u of %u", slice, slices);
    }
    return 0;
}

/* redlock-sets [SERVERS IN A SET [LOCKS IN FLIGHT FOR EACH SET [SLICES]]] */
int main(int argc, char **argv)
{
    struct servers all;
    char error[256];
    unsigned each = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
    unsigned depth = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 64;
    unsigned slices = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 10;
    const char *text = getenv("REDLOCK_SERVERS");

    if (text == NULL || each == 0 || depth == 0 || slices == 0) {
        fprintf(stderr,
                "usage: REDLOCK_SERVERS=host:port,... redlock-sets [SERVERS IN A SET "
                "[LOCKS IN FLIGHT FOR EACH SET [SLICES OF %d PAIRS]]]\n",
                SLICE_PAIRS);
        return EXIT_FAILURE;
    }
    if (servers_parse(&all, text, error, sizeof error) != 0) {
        fprintf(stderr, "redlock-sets: %s\n", error);
        return EXIT_FAILURE;
    }
    unsigned sets = (unsigned)all.count / each;
    sets = sets < SETS_SHOWN ? sets : SETS_SHOWN;
    if (sets == 0) {
        fprintf(stderr, "redlock-sets: %zu servers make no set of %u\n", all.count, each);
        return EXIT_FAILURE;
    }
    int status = 0;
    for (unsigned i = 0; status == 0 && i < sets; i++)
        status = open_growth(&growths[i], &all, i + 1, each, depth);
    if (status == 0)
        status = measure(sets, slices);
    if (status == 0)
        print(sets, each);
    bool sound = status == 0;
    for (unsigned i = 0; i < sets; i++) {
        sound = sound && growths[i].result.violations == 0 && growths[i].result.failed == 0;
        if (growths[i].embedded != NULL)
            embedded_close(growths[i].embedded);
    }
    long left = servers_count_keys(&all, "redlock-bench:");
    if (left != 0)
        fprintf(stderr, "redlock-sets: %ld keys are left\n", left);
    return sound && left == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
