/* SPDX-License-Identifier: MIT
 * The baseline as a driver. It supports only callers with a resource of their own, and it prints
 * histograms instead of single holds. */
#include "baseline.h"
#include "driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENOUGH_NS UINT64_C(20000000) /* 20 ms: short against a slice */

/* Prints a histogram, one line for each basis point at which there are values: "histogram NAME
 * NANOSECONDS COUNT". */
static void print_histogram(const char *name, const struct histogram *histogram)
{
    uint64_t seen = 0;
    for (unsigned point = 1; point <= 10000; point++) {
        uint64_t until = (histogram->count * point + 9999) / 10000;
        if (until > seen)
            printf("histogram %s %" PRIu64 " %" PRIu64 "\n", name,
                   histogram_percentile(histogram, point), until - seen);
        seen = until;
    }
}

/* Runs pairs until end_ns. The callers of one call of baseline_run() all begin and end together, so
 * the calls are short: each may take about ENOUGH_NS. Returns 0 or -1. */
static int run_until(struct baseline *baseline, unsigned callers, uint64_t end_ns,
                     struct result *result)
{
    uint64_t turns = 5, start_ns;
    while ((start_ns = result_now_ns()) < end_ns) {
        if (baseline_run(baseline, callers * turns, result) != 0)
            return -1;
        if (result_now_ns() - start_ns < ENOUGH_NS)
            turns *= 2;
    }
    return 0;
}

/* Parses the list of servers of the driver. With addresses for TLS, REDLOCK_SERVERS has the plain
 * ones of the same servers. Returns 0, or -1 and a text in `error`. */
static int parse_servers(struct servers *servers, const char *text, char *error, size_t error_size)
{
    const char *plain = getenv("REDLOCK_SERVERS");
    bool tls = plain != NULL && strncmp(text, "rediss:", strlen("rediss:")) == 0;
    int failed = servers_parse(servers, tls ? plain : text, error, error_size);
    servers->tls = tls;
    return failed == 0 && tls ? servers_add_tls(servers, text, error, error_size) : failed;
}

/* Runs one measurement for each slice that standard input announces. Exit codes: 0 success, 64
 * wrong arguments, 69 a server failed. */
int main(int argc, char **argv)
{
    static struct result result;
    struct driver_task task;
    struct servers servers;
    char error[512] = "";
    uint64_t end_ns;
    if (!driver_parse(&task, argc - 1, argv + 1) || !task.own)
        return 64;
    if (parse_servers(&servers, task.servers, error, sizeof error) != 0) {
        fprintf(stderr, "baseline: %s\n", error);
        return 64;
    }
    struct baseline *baseline =
        baseline_open(&servers, task.count, task.resource, task.ttl_ms, error, sizeof error);
    if (baseline == NULL) {
        fprintf(stderr, "baseline: %s\n", error);
        return 69;
    }
    driver_ready();
    while (driver_next(&end_ns)) {
        result = (struct result){.pairs = 0};
        if (run_until(baseline, task.count, end_ns, &result) != 0) {
            fputs("baseline: a server closed the connection or sent an invalid reply\n", stderr);
            baseline_close(baseline);
            return 69;
        }
        print_histogram("acquire", &result.acquire);
        print_histogram("pair", &result.pair);
        printf("sums 0 %" PRIu64 " %" PRIu64 " 0 %" PRIu64 "\n", result.pairs - result.failed,
               result.pairs, result.failed);
        driver_over();
    }
    baseline_close(baseline);
    return 0;
}
