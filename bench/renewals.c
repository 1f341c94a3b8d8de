/* SPDX-License-Identifier: MIT
 * Measures locks with automatic extension in embedded mode. The events of the locks show when each
 * was extended. */
#include "renewals.h"

#include "progress.h"
#include "servers_commands.h"
#include "usage.h"
#include "waited.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS       UINT64_C(1000000) /* nanoseconds of a millisecond */
#define READY_MS    5000              /* for the client to be ready */
#define SHUTDOWN_MS 20000             /* to release all locks and shut the client down */
#define TURN_MS     100               /* longest wait of one turn of the loop */
#define FILL_NS     (UINT64_C(60) * 1000 * MS_NS) /* for all acquisitions */

/* One lock that is held. */
struct holder {
    struct held_locks *owner;
    redlock_lock_t *lock; /* owned; NULL: not acquired */
    uint64_t start_ns;    /* call of redlock_acquire_start() */
    uint64_t reported_ns; /* when the library last reported the remaining validity */
    uint64_t deadline_ns; /* end of the validity, by that report */
};

/* The client and all its locks. */
struct held_locks {
    redlock_t *client;
    redlock_opts_t opts;
    struct holding *holdings; /* resources; owned */
    struct holder *holders;   /* `count` of them; owned */
    size_t count;             /* locks to acquire */
    size_t begun, ended;      /* acquisitions that have begun, that have ended */
    size_t held;              /* locks acquired */
    bool counting;            /* extensions count; false while the locks are acquired or released */
    int broken;               /* status of the call that made the client unusable; 0: none */
    struct result *result;
    struct renewals *renewals;
};

/* Records an extension, and how late it was: the library extends when a third of the validity is
 * used up. */
static void renewed(struct holder *holder, uint64_t now_ns, uint64_t remaining_ms)
{
    struct held_locks *held_locks = holder->owner;
    uint64_t due_ns = holder->reported_ns + (holder->deadline_ns - holder->reported_ns) / 3;
    uint64_t left_ms = holder->deadline_ns > now_ns ? (holder->deadline_ns - now_ns) / MS_NS : 0;
    if (held_locks->counting) {
        held_locks->result->pairs++;
        histogram_record(&held_locks->result->pair, now_ns > due_ns ? now_ns - due_ns : 0);
        if (left_ms < held_locks->renewals->least_left_ms)
            held_locks->renewals->least_left_ms = left_ms;
    }
    holder->reported_ns = now_ns;
    holder->deadline_ns = now_ns + remaining_ms * MS_NS;
}

/* Receives the events of one lock. */
static void event(redlock_t *client, const redlock_event_t *event, void *userdata)
{
    struct holder *holder = userdata;
    struct held_locks *held_locks = holder->owner;
    (void)client;
    if (event->kind == REDLOCK_EVENT_EXTENDED)
        renewed(holder, result_now_ns(), event->remaining_ms);
    else if (event->kind == REDLOCK_EVENT_EXTEND_FAILED)
        held_locks->renewals->failed_rounds += held_locks->counting;
    else if (event->kind == REDLOCK_EVENT_LOST)
        held_locks->renewals->lost++;
}

/* Ends the acquisition of a lock and counts it. */
static void acquired(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct holder *holder = userdata;
    struct held_locks *held_locks = holder->owner;
    uint64_t now_ns = result_now_ns();
    (void)client;
    (void)report;
    held_locks->ended++;
    if (status != REDLOCK_OK) {
        held_locks->result->failed++;
        held_locks->result->last_error = status;
        return;
    }
    held_locks->held++;
    holder->lock = lock;
    holder->reported_ns = now_ns;
    holder->deadline_ns = now_ns + redlock_lock_remaining_ms(lock) * MS_NS;
    histogram_record(&held_locks->result->acquire, now_ns - holder->start_ns);
}

/* Runs the application's loop once. */
static void turn(struct held_locks *held_locks)
{
    struct pollfd pollfd = {.fd = redlock_get_fd(held_locks->client), .events = POLLIN};
    int status = poll(&pollfd, 1, TURN_MS) > 0 ? redlock_process(held_locks->client) : REDLOCK_OK;
    if (status != REDLOCK_OK && held_locks->broken == 0)
        held_locks->broken = status;
}

/* Acquires all locks, `depth` at a time. Returns 0, or -1 if that fails or takes too long. */
static int fill(struct held_locks *held_locks, unsigned depth)
{
    uint64_t start_ns = result_now_ns();
    while (held_locks->ended < held_locks->count && held_locks->broken == 0) {
        while (held_locks->begun < held_locks->count &&
               held_locks->begun - held_locks->ended < depth) {
            struct holder *holder = &held_locks->holders[held_locks->begun];
            redlock_opts_t opts = held_locks->opts;
            holder->owner = held_locks;
            holder->start_ns = result_now_ns();
            opts.event_userdata = holder;
            int status = redlock_acquire_start(held_locks->client,
                                               held_locks->holdings[held_locks->begun].resource,
                                               &opts, acquired, holder);
            if (status != REDLOCK_OK) {
                held_locks->broken = status;
                return -1;
            }
            held_locks->begun++;
        }
        turn(held_locks);
        progress_show(held_locks->ended, 2 * held_locks->count);
        if (result_now_ns() - start_ns > FILL_NS)
            return -1;
    }
    held_locks->renewals->fill_per_s = (uint64_t)result_divide(
        (double)held_locks->held * 1e9, (double)(result_now_ns() - start_ns));
    return held_locks->broken == 0 && held_locks->held > 0 ? 0 : -1;
}

/* Returns how many commands the servers have received that a client sends about locks. Commands
 * that scripts call are not among them. 0: a server does not reply. */
static uint64_t count_sent(const struct servers *servers)
{
    static const char *const names[] = {"set", "eval", "evalsha", "delex", "delifeq"};
    struct commands commands;
    uint64_t sum = 0;
    if (servers_commands(servers, &commands) != 0)
        return 0;
    for (size_t i = 0; i < commands.count; i++) {
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
            sum += strcmp(commands.list[i].name, names[j]) == 0 ? commands.list[i].calls : 0;
    }
    return sum;
}

/* Holds the locks for duration_ms and measures what that costs. */
static void hold(struct held_locks *held_locks, const struct servers *servers, uint64_t duration_ms)
{
    uint64_t commands = count_sent(servers), cpu_us = servers_cpu_us(servers);
    uint64_t start_ns = result_now_ns(), elapsed_ns = 0;
    held_locks->counting = true;
    usage_add(held_locks->result, -1);
    while (elapsed_ns < duration_ms * MS_NS && held_locks->broken == 0) {
        turn(held_locks);
        elapsed_ns = result_now_ns() - start_ns;
        progress_show(duration_ms * MS_NS + elapsed_ns, 2 * duration_ms * MS_NS);
    }
    usage_add(held_locks->result, 1);
    held_locks->counting = false;
    held_locks->result->elapsed_ns = elapsed_ns;
    uint64_t after_us = servers_cpu_us(servers);
    if (cpu_us != 0 && after_us > cpu_us)
        held_locks->result->servers_us = after_us - cpu_us;
    held_locks->renewals->commands_per_renewal =
        result_divide((double)(count_sent(servers) - commands), (double)held_locks->result->pairs);
}

/* Runs the loop until an operation has ended. `started` is the status of its start. Returns the
 * status of the operation. */
static int wait_for(struct held_locks *held_locks, const struct wait *wait, int started)
{
    while (started == REDLOCK_OK && !wait->done && held_locks->broken == 0)
        turn(held_locks);
    return started != REDLOCK_OK ? started : wait->status;
}

/* Allocates everything and connects. Returns 0, or -1 and a text in `error`; close_holders() must
 * follow in both cases. */
static int open_holders(struct held_locks *held_locks, const struct client_settings *settings,
                        char *error, size_t error_size)
{
    struct wait wait = {.done = false};
    snprintf(error, error_size, "no memory");
    held_locks->count = settings->resources;
    held_locks->holdings = client_holdings(settings);
    held_locks->holders = calloc(held_locks->count, sizeof *held_locks->holders);
    held_locks->opts = client_opts(settings);
    held_locks->opts.flags |= REDLOCK_FLAG_AUTO_EXTEND;
    held_locks->opts.event_fn = event;
    if (held_locks->holdings == NULL || held_locks->holders == NULL)
        return -1;
    held_locks->client = client_new(settings, REDLOCK_MODE_EMBEDDED, error, error_size);
    if (held_locks->client == NULL)
        return -1;
    int started = redlock_wait_ready_start(held_locks->client, READY_MS, NULL, waited, &wait);
    int status = wait_for(held_locks, &wait, started);
    if (status != REDLOCK_OK)
        snprintf(error, error_size, "the servers are not ready: %s", redlock_strerror(status));
    return status == REDLOCK_OK ? 0 : -1;
}

/* Adds the time limits that requests have exceeded and the reconnects of all nodes to the
 * renewals. */
static void note_nodes(struct held_locks *held_locks)
{
    for (size_t i = 0; i < redlock_node_count(held_locks->client); i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(held_locks->client, i, &stats, sizeof stats) != REDLOCK_OK)
            continue;
        held_locks->renewals->timeouts += stats.timeouts;
        held_locks->renewals->reconnects += stats.reconnects;
    }
}

/* Shuts the client down, which releases the locks, and frees everything. */
static void close_holders(struct held_locks *held_locks, const struct client_settings *settings)
{
    if (held_locks->client != NULL) {
        struct wait wait = {.done = false};
        held_locks->broken = 0;
        int started = redlock_shutdown_start(held_locks->client, SHUTDOWN_MS, waited, &wait);
        int status = wait_for(held_locks, &wait, started);
        if (status != REDLOCK_OK)
            fprintf(stderr, "redlock-bench: shutdown: %s\n", redlock_strerror(status));
        note_nodes(held_locks);
        (void)redlock_free(held_locks->client);
    }
    for (size_t i = 0; held_locks->holders != NULL && i < held_locks->count; i++)
        redlock_lock_free(held_locks->holders[i].lock);
    free(held_locks->holders);
    client_free_holdings(held_locks->holdings, settings);
}

/* Acquires all locks, measures duration_ms of automatic extension, and releases them. Returns 0, or
 * -1 and a text in `error`. */
int renewals_run(const struct client_settings *settings, const struct servers *servers,
                 uint64_t duration_ms, struct result *result, struct renewals *ret_renewals,
                 char *error, size_t error_size)
{
    struct held_locks held_locks = {.result = result, .renewals = ret_renewals};
    memset(ret_renewals, 0, sizeof *ret_renewals);
    ret_renewals->least_left_ms = UINT64_MAX;
    int failed = open_holders(&held_locks, settings, error, error_size);
    if (failed == 0) {
        client_add_stats(held_locks.client, -1, result);
        failed = fill(&held_locks, settings->depth);
        client_add_stats(held_locks.client, 1, result);
        snprintf(error, error_size, "the locks could not be acquired: %s",
                 redlock_strerror(held_locks.broken));
    }
    if (failed == 0)
        hold(&held_locks, servers, duration_ms);
    if (failed == 0 && held_locks.broken != 0) {
        snprintf(error, error_size, "%s", redlock_strerror(held_locks.broken));
        failed = -1;
    }
    close_holders(&held_locks, settings);
    if (ret_renewals->least_left_ms == UINT64_MAX)
        ret_renewals->least_left_ms = 0;
    return failed;
}
