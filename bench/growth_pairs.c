/* SPDX-License-Identifier: MIT
 * Measures pairs of acquire and release without contention: how time, processor time, memory and
 * commands grow with the number in flight, with threads, and with processes. */
#include "growth.h"

#include "client.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 5000 /* longest wait of one acquisition */

/* Measurements of one process, or of all. Processes send it through a pipe. */
struct share {
    uint64_t pairs, failed, violations; /* as in struct result */
    uint64_t start_ns, end_ns;          /* CLOCK_MONOTONIC; growth_loop(): 0 and the duration */
    uint64_t cpu_us;                    /* processor time of the process */
    uint64_t switches;                  /* voluntary context switches of the process */
    uint64_t p50_ns, p99_ns;            /* of a pair */
    uint64_t rss, pss;                  /* memory, bytes */
};

/* Returns the settings of a client without contention: a resource for each operation in flight. */
static struct client_settings client_settings(const struct growth_settings *settings,
                                              const char *prefix, unsigned depth)
{
    return (struct client_settings){
        .servers = settings->list,
        .prefix = prefix,
        .depth = depth,
        .resources = depth,
        .ttl_ms = settings->ttl_ms,
        .wait_ms = WAIT_MS,
        .node_timeout_ms = settings->node_timeout_ms,
    };
}

/* Copies the counts and percentiles of a run, and reads the memory of this process. */
static void fill(struct share *share, const struct result *result)
{
    share->pairs = result->pairs;
    share->failed = result->failed;
    share->violations = result->violations;
    share->p50_ns = histogram_percentile(&result->pair, 5000);
    share->p99_ns = histogram_percentile(&result->pair, 9900);
    share->rss = growth_rss();
    share->pss = growth_pss();
}

/* Prints one measurement as a JSON object. */
static void print_share(const char *kind, const struct growth_settings *settings, unsigned size,
                        const struct share *share, const struct growth_work *work)
{
    double pairs = share->pairs > 0 ? (double)share->pairs : 1.0;
    double seconds = (double)(share->end_ns - share->start_ns) / 1e9;
    printf("{\"kind\":\"%s\",\"nodes\":%zu,\"size\":%u,\"pairs\":%" PRIu64 ",\"failed\":%" PRIu64
           ",\"violations\":%" PRIu64 ",\"seconds\":%.4f,\"pairs_per_second\":%.1f",
           kind, settings->servers.count, size, share->pairs, share->failed, share->violations,
           seconds, (double)share->pairs / (seconds > 0 ? seconds : 1e-9));
    printf(",\"cpu_us_per_pair\":%.3f,\"switches_per_pair\":%.3f,\"servers_cpu_us_per_pair\":%.3f"
           ",\"commands_per_pair\":%.4f,\"reads_per_pair\":%.4f",
           (double)share->cpu_us / pairs, (double)share->switches / pairs,
           (double)work->cpu_us / pairs, (double)work->commands / pairs,
           (double)work->reads / pairs);
    printf(",\"p50_us\":%.1f,\"p99_us\":%.1f,\"rss\":%" PRIu64 ",\"pss\":%" PRIu64 "}\n",
           (double)share->p50_ns / 1e3, (double)share->p99_ns / 1e3, share->rss, share->pss);
}

/* Returns the exit code: 1 after a violation or if more than one pair in a hundred failed. */
static int exit_code(const struct share *share)
{
    return share->violations == 0 && share->failed * 100 <= share->pairs ? 0 : 1;
}

/* A loop that can run pairs: embedded or threaded mode. */
struct side {
    void *state;
    int (*run)(void *state, uint64_t pairs, struct result *result);
};

/* Runs a side once to warm up and once to measure it. Returns 0, or -1 if a run failed or a server
 * did not reply. */
static int measure(const struct growth_settings *settings, const struct side *side,
                   struct share *share, struct growth_work *work)
{
    struct growth_work before;
    struct result *result = calloc(1, sizeof *result);
    int failed = result == NULL ? -1 : side->run(side->state, settings->pairs / 8 + 1, result);
    if (failed == 0)
        failed = growth_work(&settings->servers, &before);
    if (failed != 0) {
        free(result);
        return -1;
    }
    memset(result, 0, sizeof *result);
    uint64_t cpu_us = growth_cpu_us(), switches = growth_switches();
    failed = side->run(side->state, settings->pairs, result);
    share->cpu_us = growth_cpu_us() - cpu_us;
    share->switches = growth_switches() - switches;
    share->end_ns = result->elapsed_ns;
    fill(share, result);
    if (failed == 0)
        failed = growth_work(&settings->servers, work);
    work->commands -= before.commands;
    work->reads -= before.reads;
    work->cpu_us -= before.cpu_us;
    free(result);
    return failed;
}

/* Prints that a server does not reply. Returns the exit code. */
static int report_no_reply(void)
{
    fprintf(stderr, "redlock-growth: a server does not reply\n");
    return 69;
}

/* Measures one poll loop with settings->depth pairs in flight and prints a JSON object. Returns 0,
 * 1 after a violation or too many failures, or 69 if a server does not reply. */
int growth_loop(const struct growth_settings *settings)
{
    char error[256];
    struct share share = {.pairs = 0};
    struct growth_work work;
    struct client_settings client = client_settings(settings, settings->prefix, settings->depth);
    struct embedded *embedded = embedded_open(&client, error, sizeof error);
    if (embedded == NULL || embedded_wait_votes(embedded) != 0) {
        fprintf(stderr, "redlock-growth: %s\n",
                embedded == NULL ? error : "not all servers are eligible");
        return 69;
    }
    const struct side side = {embedded, embedded_run};
    int failed = measure(settings, &side, &share, &work);
    (void)embedded_settle(embedded);
    embedded_close(embedded);
    if (failed != 0)
        return report_no_reply();
    print_share("loop", settings, settings->depth, &share, &work);
    return exit_code(&share);
}

/* Measures settings->threads blocked threads that share a client. Prints and returns as
 * growth_loop() does. */
int growth_threads(const struct growth_settings *settings)
{
    char error[256];
    struct share share = {.pairs = 0};
    struct growth_work work;
    struct client_settings client = client_settings(settings, settings->prefix, settings->threads);
    struct threaded *threaded = threaded_open(&client, error, sizeof error);
    if (threaded == NULL) {
        fprintf(stderr, "redlock-growth: %s\n", error);
        return 69;
    }
    const struct side side = {threaded, threaded_run};
    int failed = measure(settings, &side, &share, &work);
    threaded_close(threaded);
    if (failed != 0)
        return report_no_reply();
    print_share("threads", settings, settings->threads, &share, &work);
    return exit_code(&share);
}

/* Does the work of one process: connects, writes to the pipe `reports` whether it is ready, waits
 * for the end of the pipe `go`, runs its pairs and writes its struct share to `reports`. Returns an
 * exit code. */
static int work_alone(const struct growth_settings *settings, unsigned index, int go, int reports)
{
    char error[256], prefix[96], byte = 0;
    struct share share = {.pairs = 0};
    snprintf(prefix, sizeof prefix, "%s%u:", settings->prefix, index);
    struct client_settings client = client_settings(settings, prefix, 1);
    struct threaded *threaded = threaded_open(&client, error, sizeof error);
    struct result *result = calloc(1, sizeof *result);
    bool fine = threaded != NULL && result != NULL && threaded_run(threaded, 20, result) == 0;
    if (write(reports, &fine, sizeof fine) != sizeof fine || read(go, &byte, 1) != 0 || !fine)
        return 1;
    memset(result, 0, sizeof *result);
    uint64_t cpu_us = growth_cpu_us(), switches = growth_switches();
    share.start_ns = result_now_ns();
    (void)threaded_run(threaded, settings->pairs, result);
    share.end_ns = result_now_ns();
    share.cpu_us = growth_cpu_us() - cpu_us;
    share.switches = growth_switches() - switches;
    fill(&share, result);
    ssize_t sent = write(reports, &share, sizeof share);
    threaded_close(threaded);
    free(result);
    return sent == sizeof share ? 0 : 1;
}

/* Adds the share of one of `count` processes to the sum. */
static void add(struct share *sum, const struct share *one, unsigned count)
{
    sum->pairs += one->pairs;
    sum->failed += one->failed;
    sum->violations += one->violations;
    sum->cpu_us += one->cpu_us;
    sum->switches += one->switches;
    sum->start_ns =
        sum->start_ns == 0 || one->start_ns < sum->start_ns ? one->start_ns : sum->start_ns;
    sum->end_ns = one->end_ns > sum->end_ns ? one->end_ns : sum->end_ns;
    sum->p50_ns += one->p50_ns / count; /* mean of the medians; worst p99 */
    sum->p99_ns = one->p99_ns > sum->p99_ns ? one->p99_ns : sum->p99_ns;
    sum->rss += one->rss / count;
    sum->pss += one->pss / count;
}

/* Starts all processes when they are ready, and adds up their shares. `go` and `reports` are the
 * parent's ends of the pipes; `go` is closed. Returns false if a process or a server failed. */
static bool collect(const struct growth_settings *settings, int go, int reports, struct share *sum,
                    struct growth_work *work)
{
    struct growth_work before;
    bool fine = true, all = true;
    for (unsigned i = 0; i < settings->processes && all; i++)
        all = read(reports, &fine, sizeof fine) == sizeof fine && fine;
    all = all && growth_work(&settings->servers, &before) == 0;
    close(go);
    for (unsigned i = 0; i < settings->processes && all; i++) {
        struct share one;
        all = read(reports, &one, sizeof one) == sizeof one;
        if (all)
            add(sum, &one, settings->processes);
    }
    all = all && growth_work(&settings->servers, work) == 0;
    if (all) {
        work->commands -= before.commands;
        work->reads -= before.reads;
        work->cpu_us -= before.cpu_us;
    }
    return all;
}

/* Measures settings->processes processes that begin together, and prints their sum. Returns as
 * growth_loop() does, or 71 without pipes. */
int growth_processes(const struct growth_settings *settings)
{
    int go[2], reports[2], status = 0;
    struct share sum = {.pairs = 0};
    struct growth_work work;
    if (pipe(go) != 0 || pipe(reports) != 0)
        return 71;
    pid_t parent = getpid();
    for (unsigned i = 0; i < settings->processes; i++) {
        pid_t pid = fork();
        if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
            _exit(1); /* a parent that ended before prctl() would look like the start signal */
        if (pid < 0)
            perror("redlock-growth: fork"); /* the children end when the pipe closes */
        if (pid != 0)
            continue;
        close(go[1]);
        close(reports[0]);
        _exit(work_alone(settings, i, go[0], reports[1]));
    }
    close(go[0]);
    close(reports[1]);
    bool fine = collect(settings, go[1], reports[0], &sum, &work);
    close(reports[0]);
    while (wait(&status) > 0)
        fine = fine && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!fine) {
        fprintf(stderr, "redlock-growth: a process has failed\n");
        return 69;
    }
    print_share("processes", settings, settings->processes, &sum, &work);
    return exit_code(&sum);
}
