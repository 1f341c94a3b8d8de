/* SPDX-License-Identifier: MIT
 * redlock-shards: measures how a client grows with the number of shards. Runs the closed loop of
 * redlock-bench in embedded mode over one, two, three, ... shards of the servers that are given, in
 * slices that take turns.
 *
 * If all servers share the processors of one machine, pairs per second say little. The processor
 * time of the busiest server and of the client per pair shows at which rate each would be
 * saturated. */
#include "client.h"
#include "environment.h"
#include "number.h"
#include "servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_PAIRS 2000  /* pairs of one slice */
#define SHARDS_MAX  8     /* that are measured */
#define TTL_MS      10000 /* of each lock */
#define WAIT_MS     10000 /* longest wait of one acquisition */
#define DEPTH_MAX   4096  /* most locks in flight per shard */
#define EXIT_USAGE  64    /* the command line is not valid */

/* The measurement with one number of shards. growths[i] has i + 1 shards. */
struct growth {
    struct embedded *embedded;
    struct servers servers; /* of all its shards */
    struct result result;
    uint64_t client_us, servers_us; /* processor time of this process and of all servers */
};

/* The measurements of 1 to SHARDS_MAX shards. */
static struct growth growths[SHARDS_MAX];

/* Returns the processor time of this process. */
static uint64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Writes the URLs of the first shards: "s1=a:1,b:2,c:3;s2=...". "fresh=1" makes the servers' votes
 * count at once, because no other client has a lock there. */
static void list_shards(const struct servers *all, unsigned shards, unsigned each, char *text,
                        size_t size)
{
    size_t at = 0;
    for (unsigned i = 0; i < shards * each; i++) {
        if (i % each == 0)
            at += (size_t)snprintf(text + at, size - at, "%ss%u=", i > 0 ? ";" : "", i / each + 1);
        bool v6 = strchr(all->list[i].host, ':') != NULL;
        at += (size_t)snprintf(text + at, size - at, "%sredis://%s%s%s:%s?fresh=1",
                               i % each > 0 ? "," : "", v6 ? "[" : "", all->list[i].host,
                               v6 ? "]" : "", all->list[i].port);
    }
}

/* Connects to the first `shards` shards of `each` servers. Returns 0, or -1 after a line on stderr.
 */
static int open_growth(struct growth *growth, const struct servers *all, unsigned shards,
                       unsigned each, unsigned depth_each)
{
    static char text[2 * SERVERS_TEXT_MAX]; /* URLs are longer than the addresses in the list */
    char prefix[64], error[256] = "out of memory";
    unsigned depth = depth_each * shards; /* the load of each shard is the same */
    list_shards(all, shards, each, text, sizeof text);
    snprintf(prefix, sizeof prefix, "redlock-bench:%d:%u:", (int)getpid(), shards);
    const struct client_settings settings = {.servers = text,
                                             .prefix = prefix,
                                             .depth = depth,
                                             .resources = depth,
                                             .ttl_ms = TTL_MS,
                                             .wait_ms = WAIT_MS};
    growth->servers = *all;
    growth->servers.count = (size_t)shards * each;
    growth->embedded = embedded_open(&settings, error, sizeof error);
    if (growth->embedded == NULL)
        fprintf(stderr, "redlock-shards: %s\n", error);
    return growth->embedded != NULL ? 0 : -1;
}

/* Runs one slice and adds its processor times. Returns 0 or -1. */
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

/* Prints the environment and the table. */
static void print(const struct servers *all, unsigned shards, unsigned each)
{
    struct environment environment;
    environment_read(&environment, all);
    environment_print(&environment, "# ");
    printf("%-6s %9s", "shards", "pairs/s");
    for (size_t i = 0; i < HISTOGRAM_POINTS; i++)
        printf("%6s us", histogram_point_names[i]);
    printf(" %14s %18s %7s %10s\n", "client us/pair", "one server us/pair", "failed", "violations");
    for (unsigned i = 0; i < shards; i++) {
        const struct growth *growth = &growths[i];
        double pairs = (double)growth->result.pairs;
        printf("%-6u %9.0f", i + 1, result_pairs_per_second(&growth->result));
        for (size_t point = 0; point < HISTOGRAM_POINTS; point++)
            printf("%9.1f",
                   (double)histogram_percentile(&growth->result.pair, histogram_points[point]) /
                       1000);
        printf(" %14.2f %18.2f %7llu %10llu\n", (double)growth->client_us / pairs,
               (double)growth->servers_us / pairs / ((i + 1) * each),
               (unsigned long long)growth->result.failed,
               (unsigned long long)growth->result.violations);
    }
}

/* Runs all slices; the first one of each measurement warms up. Returns 0 or -1. */
static int measure(unsigned shards, unsigned slices)
{
    static struct result warm;
    for (unsigned slice = 0; slice <= slices; slice++) {
        for (unsigned i = 0; i < shards; i++) {
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

/* Text of --help. */
static const char usage[] =
    "usage: redlock-shards [SERVERS PER SHARD (5) [LOCKS IN FLIGHT PER SHARD (64) [SLICES (10)]]]\n"
    "  Measures one, two, three, ... shards of the servers in REDLOCK_SERVERS, in slices of 2000\n"
    "  pairs that take turns.\n"
    "exit: 0 success, 1 violation, leftover key, or more than one call in a hundred failed\n"
    "example: redlock sandbox -n 15 -- redlock-shards 5 64 6\n";

/* Prints what is wrong with the command line. Returns the exit code. */
static int refuse(const char *what, const char *word)
{
    fprintf(stderr, "redlock-shards: %s: '%s'\n%s", what, word, usage);
    return EXIT_USAGE;
}

/* Returns true without violations, if at most one pair in a hundred failed. A release fails if the
 * machine stands still for too long. */
static bool passed(const struct result *result)
{
    return result->violations == 0 && result->failed * 100 <= result->pairs;
}

/* Opens all measurements, runs them, prints the table and closes them. Returns false on failure. */
static bool run(const struct servers *all, unsigned shards, unsigned each, unsigned depth,
                unsigned slices)
{
    int status = 0;
    for (unsigned i = 0; status == 0 && i < shards; i++)
        status = open_growth(&growths[i], all, i + 1, each, depth);
    if (status == 0)
        status = measure(shards, slices);
    if (status == 0)
        print(all, shards, each);
    bool sound = status == 0;
    for (unsigned i = 0; i < shards; i++) {
        sound = sound && passed(&growths[i].result);
        if (growths[i].embedded != NULL)
            embedded_close(growths[i].embedded);
    }
    return sound;
}

/* Parses the arguments, measures as many shards as the servers allow, and counts leftover keys.
 * Returns an exit code. */
int main(int argc, char **argv)
{
    static struct servers all;
    char error[256], prefix[64];
    uint64_t given[] = {5, 64, 10}; /* servers per shard, locks in flight per shard, slices */
    static const unsigned most[] = {SERVERS_MAX, DEPTH_MAX, 100000};
    const char *text = getenv("REDLOCK_SERVERS");

    if (argc > 1 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0))
        return fputs(usage, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    for (int i = 1; i < argc; i++) {
        if (i > 3 || !number_parse(argv[i], 1, most[i - 1], &given[i - 1]))
            return refuse("not understood", argv[i]);
    }
    if (text == NULL)
        return refuse("no servers", "REDLOCK_SERVERS");
    if (servers_parse(&all, text, error, sizeof error) != 0)
        return refuse("REDLOCK_SERVERS", error);
    unsigned each = (unsigned)given[0], shards = (unsigned)all.count / each;
    shards = shards < SHARDS_MAX ? shards : SHARDS_MAX;
    if (shards == 0) {
        fprintf(stderr, "redlock-shards: %zu servers are too few for a shard of %u\n", all.count,
                each);
        return EXIT_USAGE;
    }
    bool sound = run(&all, shards, each, (unsigned)given[1], (unsigned)given[2]);
    snprintf(prefix, sizeof prefix, "redlock-bench:%d:", (int)getpid());
    long left = servers_count_keys(&all, prefix);
    if (left < 0)
        fprintf(stderr, "redlock-shards: a server does not reply: leftover keys unknown\n");
    else if (left > 0)
        fprintf(stderr, "redlock-shards: %ld keys are left\n", left);
    return sound && left == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
