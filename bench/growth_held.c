/* SPDX-License-Identifier: MIT
 * So many locks in one loop: taken, held and renewed for a while, given back. */
#include "growth.h"

#include "result.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT     256u
#define READY_NS      (UINT64_C(10) * 1000000000)
#define TIME_LIMIT_NS (UINT64_C(120) * 1000000000)
#define QUIET_NS      (UINT64_C(50) * 1000000)
#define SLICE_NS      (UINT64_C(10) * 1000000)
#define SHUTDOWN_MS   5000
#define TURN_MS       20
#define RESOURCE_MAX  96

struct held {
    const struct growth_settings *settings;
    redlock_t *client;
    redlock_opts_t opts;
    redlock_lock_t **locks;
    unsigned started, have, failed, released, unreleased;
    uint64_t turns;
    bool ready, broken;
};

struct phase {
    uint64_t wall_ns, cpu_us, turns, extended, slice_most, slices, slices_used;
    struct growth_work work;
};

static void turn(struct held *held)
{
    struct pollfd pollfd = {.fd = redlock_get_fd(held->client), .events = POLLIN};
    if (poll(&pollfd, 1, TURN_MS) > 0) {
        held->turns++;
        held->broken = held->broken || redlock_process(held->client) != REDLOCK_OK;
    }
}

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

static void start_next(struct held *held)
{
    char resource[RESOURCE_MAX];
    snprintf(resource, sizeof resource, "%s%06u", held->settings->prefix, held->started++);
    if (redlock_acquire_start(held->client, resource, &held->opts, on_acquired, held) != REDLOCK_OK)
        held->failed++;
}

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

/* Until the slowest nodes have answered, too. */
static void rest(struct held *held)
{
    uint64_t now_ns = result_now_ns(), until = now_ns + QUIET_NS, latest = now_ns + READY_NS;
    while ((now_ns < until || (now_ns < latest && has_pending_undos(held))) && !held->broken) {
        turn(held);
        now_ns = result_now_ns();
    }
}

static uint64_t extended(struct held *held)
{
    redlock_stats_t stats;
    return redlock_get_stats(held->client, &stats, sizeof stats) == REDLOCK_OK ? stats.extended : 0;
}

static size_t voting(struct held *held)
{
    size_t count = 0;
    for (size_t i = 0; i < redlock_node_count(held->client); i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(held->client, i, &stats, sizeof stats) == REDLOCK_OK)
            count += stats.eligible == 1;
    }
    return count;
}

static bool make_ready(struct held *held)
{
    uint64_t until = result_now_ns() + READY_NS;
    if (redlock_wait_ready_start(held->client, READY_NS / 1000000, NULL, on_ready, held) !=
        REDLOCK_OK)
        return false;
    while (!held->broken && result_now_ns() < until &&
           (!held->ready || voting(held) < redlock_node_count(held->client)))
        turn(held);
    rest(held);
    return held->ready && !held->broken;
}

/* Apart, so that valgrind can be told to count in here alone: --toggle-collect=growth_hold. */
__attribute__((noinline)) void growth_hold(struct held *held, struct phase *phase);
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

/* One phase, with the work of client and servers around it. */
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

static void take(struct held *held, struct phase *phase)
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

/* All at once: the release of a process that ends its work. */
static void release_one(struct held *held, struct phase *phase)
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

static int open_client(struct held *held, struct growth_memory *memory)
{
    const redlock_allocator_t allocator = growth_allocator(memory);
    redlock_config_t *config = NULL;
    int status = redlock_config_new(&config, &allocator);
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

static void print_phase(const char *name, const struct phase *phase)
{
    printf(",\"%s_ms\":%.3f,\"%s_cpu_ms\":%.3f,\"%s_turns\":%" PRIu64 ",\"%s_commands\":%" PRIu64
           ",\"%s_reads\":%" PRIu64 ",\"%s_servers_cpu_ms\":%.3f",
           name, (double)phase->wall_ns / 1e6, name, (double)phase->cpu_us / 1e3, name,
           phase->turns, name, phase->work.commands, name, phase->work.reads, name,
           (double)phase->work.cpu_us / 1e3);
}

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

int growth_held(const struct growth_settings *settings)
{
    struct growth_memory memory = {.live = 0};
    struct phase taking, holding, giving;
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
    int failed = measure(&held, take, &taking);
    size_t live = memory.live - client, rss_live = growth_rss() - rss;
    blocks = memory.blocks - blocks;
    size_t peak = memory.peak;
    failed |= measure(&held, growth_hold, &holding);
    failed |= measure(&held, release_one, &giving);
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
    print_phase("take", &taking);
    print_phase("hold", &holding);
    print_phase("give", &giving);
    printf("}\n");
    bool good = failed == 0 && held.have == settings->held && stats.lost == 0 &&
                held.unreleased == 0 && !held.broken && memory.live == 0;
    return good ? 0 : 1;
}
