/* SPDX-License-Identifier: MIT
 * Measures many locks in one loop: acquired, held with automatic extension for a while,
 * released. */
#include "growth.h"

#include "result.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT     256u                         /* acquisitions at a time */
#define READY_NS      (UINT64_C(10) * 1000000000)  /* for the servers to be eligible */
#define TIME_LIMIT_NS (UINT64_C(120) * 1000000000) /* for one phase */
#define QUIET_NS      (UINT64_C(50) * 1000000)     /* for late replies after a phase */
#define SLICE_NS      (UINT64_C(10) * 1000000)     /* unit in which extensions are counted */
#define SHUTDOWN_MS   5000                         /* for the client to shut down */
#define TURN_MS       20                           /* longest wait of one turn of the loop */
#define RESOURCE_MAX  96                           /* bytes of a resource's name, with the NUL */

/* The client and its locks. */
struct held {
    const struct growth_settings *settings;
    redlock_t *client;
    redlock_opts_t opts;
    redlock_lock_t **locks; /* `have` locks; the array is owned */
    unsigned started;       /* acquisitions that have begun */
    unsigned have;          /* locks acquired */
    unsigned failed;        /* acquisitions that failed */
    unsigned released;      /* releases that have ended, with those that failed */
    unsigned unreleased;    /* releases that failed */
    uint64_t turns;         /* calls of redlock_process() */
    bool ready;             /* the operation of on_ready() has ended */
    bool broken;            /* the client cannot be used any more */
};

/* Cost of one phase. */
struct phase {
    uint64_t wall_ns;        /* duration */
    uint64_t cpu_us;         /* processor time of this process */
    uint64_t turns;          /* calls of redlock_process() */
    uint64_t extended;       /* extensions in the hold phase */
    uint64_t slices;         /* time slices of SLICE_NS in the hold phase */
    uint64_t slices_used;    /* of these, slices with an extension */
    uint64_t slice_most;     /* extensions in the busiest slice */
    struct growth_work work; /* of the servers */
};

/* Runs the application's loop once. */
static void turn(struct held *held)
{
    struct pollfd pollfd = {.fd = redlock_get_fd(held->client), .events = POLLIN};
    if (poll(&pollfd, 1, TURN_MS) > 0) {
        held->turns++;
        held->broken = held->broken || redlock_process(held->client) != REDLOCK_OK;
    }
}

/* Ends waiting for the client to be ready, or to be shut down. */
static void on_ready(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct held *held = userdata;
    (void)client;
    (void)lock;
    (void)report;
    held->ready = true;
    held->broken = held->broken || status != REDLOCK_OK;
}

static void on_acquired(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata);

/* Starts the acquisition of the next lock. */
static void start_next(struct held *held)
{
    char resource[RESOURCE_MAX];
    snprintf(resource, sizeof resource, "%s%06u", held->settings->prefix, held->started++);
    if (redlock_acquire_start(held->client, resource, &held->opts, on_acquired, held) != REDLOCK_OK)
        held->failed++;
}

/* Counts an acquisition that has ended, and starts the next one. */
static void on_acquired(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct held *held = userdata;
    (void)client;
    (void)report;
    if (status == REDLOCK_OK)
        held->locks[held->have++] = lock;
    else
        held->failed++;
    if (held->started < held->settings->held)
        start_next(held);
}

/* Counts a release that has ended. */
static void on_released(redlock_t *client, int status, redlock_lock_t *lock,
                        const redlock_report_t *report, void *userdata)
{
    struct held *held = userdata;
    (void)client;
    (void)report;
    held->released++;
    held->unreleased += status != REDLOCK_OK;
    redlock_lock_free(lock);
}

/* Returns true while an undo is pending on any node. */
static bool has_pending_undos(struct held *held)
{
    for (size_t i = 0; i < redlock_node_count(held->client); i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(held->client, i, &stats, sizeof stats) == REDLOCK_OK &&
            stats.undos_pending > 0)
            return true;
    }
    return false;
}

/* Runs the loop until late replies have arrived and no undo is pending. */
static void rest(struct held *held)
{
    uint64_t now_ns = result_now_ns(), until = now_ns + QUIET_NS, latest = now_ns + READY_NS;
    while ((now_ns < until || (now_ns < latest && has_pending_undos(held))) && !held->broken) {
        turn(held);
        now_ns = result_now_ns();
    }
}

/* Returns the number of extensions until now. */
static uint64_t extended(struct held *held)
{
    redlock_stats_t stats;
    return redlock_get_stats(held->client, &stats, sizeof stats) == REDLOCK_OK ? stats.extended : 0;
}

/* Returns the number of eligible nodes. */
static size_t eligible_nodes(struct held *held)
{
    size_t count = 0;
    for (size_t i = 0; i < redlock_node_count(held->client); i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(held->client, i, &stats, sizeof stats) == REDLOCK_OK)
            count += stats.eligible == 1;
    }
    return count;
}

/* Waits until all nodes are eligible. Returns false on failure. */
static bool make_ready(struct held *held)
{
    uint64_t until = result_now_ns() + READY_NS;
    if (redlock_wait_ready_start(held->client, READY_NS / 1000000, NULL, on_ready, held) !=
        REDLOCK_OK)
        return false;
    while (!held->broken && result_now_ns() < until &&
           (!held->ready || eligible_nodes(held) < redlock_node_count(held->client)))
        turn(held);
    rest(held);
    return held->ready && !held->broken;
}

/* Runs the loop while all locks are held, for settings->hold_ms. A function of its own, so that
 * valgrind can count in it alone: --toggle-collect=growth_hold. */
__attribute__((noinline)) void growth_hold(struct held *held, struct phase *phase);
/* See the declaration above. Counts the extensions in slices of SLICE_NS. */
void growth_hold(struct held *held, struct phase *phase)
{
    uint64_t start_ns = result_now_ns(), turns = held->turns;
    uint64_t before = extended(held), slice_count = before, slice_ns = start_ns + SLICE_NS;
    uint64_t until = start_ns + held->settings->hold_ms * 1000000, now_ns = start_ns;
    while (now_ns < until && !held->broken) {
        turn(held);
        now_ns = result_now_ns();
        if (now_ns < slice_ns)
            continue;
        uint64_t count = extended(held);
        if (count - slice_count > phase->slice_most)
            phase->slice_most = count - slice_count;
        phase->slices_used += count != slice_count;
        phase->slices++;
        slice_count = count;
        slice_ns = now_ns + SLICE_NS;
    }
    phase->extended = extended(held) - before;
    phase->turns = held->turns - turns;
    phase->wall_ns = now_ns - start_ns;
}

/* Runs one phase and measures the work of client and servers. Returns 0 or -1. */
static int measure(struct held *held, void (*run)(struct held *, struct phase *),
                   struct phase *phase)
{
    struct growth_work before, after;
    memset(phase, 0, sizeof *phase);
    if (growth_work(&held->settings->servers, &before) != 0)
        return -1;
    uint64_t cpu_us = growth_cpu_us(), turns = held->turns, start_ns = result_now_ns();
    run(held, phase);
    phase->wall_ns = result_now_ns() - start_ns;
    phase->turns = held->turns - turns;
    phase->cpu_us = growth_cpu_us() - cpu_us;
    if (growth_work(&held->settings->servers, &after) != 0)
        return -1;
    phase->work.commands = after.commands - before.commands;
    phase->work.reads = after.reads - before.reads;
    phase->work.cpu_us = after.cpu_us - before.cpu_us;
    return 0;
}

/* Acquires all locks, at most IN_FLIGHT at a time. */
static void acquire_all(struct held *held, struct phase *phase)
{
    uint64_t until = result_now_ns() + TIME_LIMIT_NS;
    (void)phase;
    while (held->started < held->settings->held && held->started < IN_FLIGHT)
        start_next(held);
    while (held->have + held->failed < held->settings->held && !held->broken &&
           result_now_ns() < until)
        turn(held);
    rest(held);
}

/* Starts the release of all locks at once, as a process does at its end, and waits for it. */
static void release_all(struct held *held, struct phase *phase)
{
    uint64_t until = result_now_ns() + TIME_LIMIT_NS;
    (void)phase;
    for (unsigned i = 0; i < held->have; i++) {
        if (redlock_release_start(held->locks[i], on_released, held) == REDLOCK_OK)
            continue;
        held->unreleased++;
        held->released++;
        redlock_lock_free(held->locks[i]);
    }
    while (held->released < held->have && !held->broken && result_now_ns() < until)
        turn(held);
    rest(held);
}

/* Creates the client with the counting allocator. Returns a status. */
static int open_client(struct held *held, struct growth_memory *memory)
{
    const redlock_allocator_t allocator = growth_allocator(memory);
    redlock_config_t *config = NULL;
    int status = redlock_config_new(&config, &allocator);
    if (status == REDLOCK_OK) /* tokens without a label, whose length depends on the machine */
        status = redlock_config_set_owner(config, "");
    if (status == REDLOCK_OK)
        status = redlock_config_add_nodes(config, held->settings->list);
    if (status == REDLOCK_OK)
        status = redlock_config_set_mode(config, REDLOCK_MODE_EMBEDDED);
    if (status == REDLOCK_OK)
        status = redlock_config_set_node_timeout_ms(config, held->settings->node_timeout_ms);
    if (status == REDLOCK_OK)
        status = redlock_new(&held->client, config);
    redlock_config_free(config);
    return status;
}

/* Prints the cost of a phase as fields of the JSON object, with `name` as their prefix. */
static void print_phase(const char *name, const struct phase *phase)
{
    printf(",\"%s_ms\":%.3f,\"%s_cpu_ms\":%.3f,\"%s_turns\":%" PRIu64 ",\"%s_commands\":%" PRIu64
           ",\"%s_reads\":%" PRIu64 ",\"%s_servers_cpu_ms\":%.3f",
           name, (double)phase->wall_ns / 1e6, name, (double)phase->cpu_us / 1e3, name,
           phase->turns, name, phase->work.commands, name, phase->work.reads, name,
           (double)phase->work.cpu_us / 1e3);
}

/* Shuts the client down and frees it. */
static void shut_down(struct held *held)
{
    held->ready = false;
    if (redlock_shutdown_start(held->client, SHUTDOWN_MS, on_ready, held) == REDLOCK_OK) {
        uint64_t until = result_now_ns() + TIME_LIMIT_NS;
        while (!held->ready && result_now_ns() < until)
            turn(held);
    }
    (void)redlock_free(held->client);
}

/* Measures acquiring, holding and releasing settings->held locks, and prints one JSON object.
 * Returns 0, 69 if the servers are not ready, or 1 if any lock failed, was lost or left memory. */
int growth_held(const struct growth_settings *settings)
{
    struct growth_memory memory = {.live = 0};
    struct phase acquiring, holding, releasing;
    struct held held = {.settings = settings, .opts = redlock_opts(settings->ttl_ms)};
    redlock_stats_t stats = {.lost = 0};
    held.opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    held.opts.wait_ms = 5000;
    held.locks = calloc(settings->held, sizeof(redlock_lock_t *));
    if (held.locks == NULL || open_client(&held, &memory) != REDLOCK_OK || !make_ready(&held)) {
        fprintf(stderr, "redlock-growth: the servers are not ready\n");
        return 69;
    }
    size_t client = memory.live, rss = growth_rss(), blocks = memory.blocks;
    int failed = measure(&held, acquire_all, &acquiring);
    size_t live = memory.live - client, rss_live = growth_rss() - rss;
    blocks = memory.blocks - blocks;
    size_t peak = memory.peak;
    failed |= measure(&held, growth_hold, &holding);
    failed |= measure(&held, release_all, &releasing);
    (void)redlock_get_stats(held.client, &stats, sizeof stats);
    size_t after = memory.live;
    size_t nodes = redlock_node_count(held.client);
    shut_down(&held);
    free(held.locks);
    printf("{\"kind\":\"held\",\"nodes\":%zu,\"held\":%u,\"ttl_ms\":%" PRIu64 ",\"failed\":%u"
           ",\"lost\":%" PRIu64 ",\"unreleased\":%u",
           nodes, held.have, settings->ttl_ms, held.failed, stats.lost, held.unreleased);
    printf(",\"client_bytes\":%zu,\"held_bytes\":%zu,\"held_blocks\":%zu,\"held_rss\":%zu"
           ",\"peak_bytes\":%zu,\"after_bytes\":%zu,\"left_bytes\":%zu",
           client, live, blocks, rss_live, peak, after, memory.live);
    printf(",\"renewed\":%" PRIu64 ",\"slices\":%" PRIu64 ",\"slices_used\":%" PRIu64
           ",\"slice_most\":%" PRIu64,
           holding.extended, holding.slices, holding.slices_used, holding.slice_most);
    print_phase("acquire", &acquiring);
    print_phase("hold", &holding);
    print_phase("release", &releasing);
    printf("}\n");
    bool good = failed == 0 && held.have == settings->held && stats.lost == 0 &&
                held.unreleased == 0 && !held.broken && memory.live == 0;
    return good ? 0 : 1;
}
