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

#define MS_NS       UINT64_C(1000000)
#define READY_MS    5000
#define SHUTDOWN_MS 20000
#define TURN_MS     100                           /* longest wait of one turn of the loop */
#define FILL_NS     (UINT64_C(60) * 1000 * MS_NS) /* for all acquisitions */

/* One lock. */
struct holder {
    struct crowd *holders_state;
    redlock_lock_t *lock; /* owned; NULL: not acquired */
    uint64_t start_ns;    /* call of redlock_acquire_start() */
    uint64_t reported_ns; /* when the library last reported the remaining validity */
    uint64_t deadline_ns; /* end of the validity, by that report */
};

/* The client and all its locks. */
struct crowd {
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
    struct crowd *crowd = holder->holders_state;
    uint64_t due_ns = holder->reported_ns + (holder->deadline_ns - holder->reported_ns) / 3;
    uint64_t left_ms = holder->deadline_ns > now_ns ? (holder->deadline_ns - now_ns) / MS_NS : 0;
    if (crowd->counting) {
        crowd->result->pairs++;
        histogram_record(&crowd->result->pair, now_ns > due_ns ? now_ns - due_ns : 0);
        if (left_ms < crowd->renewals->least_left_ms)
            crowd->renewals->least_left_ms = left_ms;
    }
    holder->reported_ns = now_ns;
    holder->deadline_ns = now_ns + remaining_ms * MS_NS;
}

/* Receives the events of one lock. */
static void event(redlock_t *client, const redlock_event_t *event, void *userdata)
{
    struct holder *holder = userdata;
    struct crowd *crowd = holder->holders_state;
    (void)client;
    if (event->kind == REDLOCK_EVENT_EXTENDED)
        renewed(holder, result_now_ns(), event->remaining_ms);
    else if (event->kind == REDLOCK_EVENT_EXTEND_FAILED)
        crowd->renewals->failed_rounds += crowd->counting;
    else if (event->kind == REDLOCK_EVENT_LOST)
        crowd->renewals->lost++;
}

/* Ends the acquisition of a lock and counts it. */
static void acquired(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct holder *holder = userdata;
    struct crowd *crowd = holder->holders_state;
    uint64_t now_ns = result_now_ns();
    (void)client;
    (void)report;
    crowd->ended++;
    if (status != REDLOCK_OK) {
        crowd->result->failed++;
        crowd->result->last_error = status;
        return;
    }
    crowd->held++;
    holder->lock = lock;
    holder->reported_ns = now_ns;
    holder->deadline_ns = now_ns + redlock_lock_remaining_ms(lock) * MS_NS;
    histogram_record(&crowd->result->acquire, now_ns - holder->start_ns);
}

/* Runs the application's loop once. */
static void turn(struct crowd *crowd)
{
    struct pollfd pollfd = {.fd = redlock_get_fd(crowd->client), .events = POLLIN};
    int status = poll(&pollfd, 1, TURN_MS) > 0 ? redlock_process(crowd->client) : REDLOCK_OK;
    if (status != REDLOCK_OK && crowd->broken == 0)
        crowd->broken = status;
}

/* Acquires all locks, `depth` at a time. Returns 0, or -1 if that fails or takes too long. */
static int fill(struct crowd *crowd, unsigned depth)
{
    uint64_t start_ns = result_now_ns();
    while (crowd->ended < crowd->count && crowd->broken == 0) {
        while (crowd->begun < crowd->count && crowd->begun - crowd->ended < depth) {
            struct holder *holder = &crowd->holders[crowd->begun];
            redlock_opts_t opts = crowd->opts;
            holder->holders_state = crowd;
            holder->start_ns = result_now_ns();
            opts.event_userdata = holder;
            int status = redlock_acquire_start(
                crowd->client, crowd->holdings[crowd->begun].resource, &opts, acquired, holder);
            if (status != REDLOCK_OK) {
                crowd->broken = status;
                return -1;
            }
            crowd->begun++;
        }
        turn(crowd);
        progress_show(crowd->ended, 2 * crowd->count);
        if (result_now_ns() - start_ns > FILL_NS)
            return -1;
    }
    crowd->renewals->fill_per_s =
        (uint64_t)result_divide((double)crowd->held * 1e9, (double)(result_now_ns() - start_ns));
    return crowd->broken == 0 && crowd->held > 0 ? 0 : -1;
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
static void hold(struct crowd *crowd, const struct servers *servers, uint64_t duration_ms)
{
    uint64_t commands = count_sent(servers), cpu_us = servers_cpu_us(servers);
    uint64_t start_ns = result_now_ns(), elapsed_ns = 0;
    crowd->counting = true;
    usage_add(crowd->result, -1);
    while (elapsed_ns < duration_ms * MS_NS && crowd->broken == 0) {
        turn(crowd);
        elapsed_ns = result_now_ns() - start_ns;
        progress_show(duration_ms * MS_NS + elapsed_ns, 2 * duration_ms * MS_NS);
    }
    usage_add(crowd->result, 1);
    crowd->counting = false;
    crowd->result->elapsed_ns = elapsed_ns;
    uint64_t after_us = servers_cpu_us(servers);
    if (cpu_us != 0 && after_us > cpu_us)
        crowd->result->servers_us = after_us - cpu_us;
    crowd->renewals->commands_per_renewal =
        result_divide((double)(count_sent(servers) - commands), (double)crowd->result->pairs);
}

/* Runs the loop until an operation has ended. `started` is the status of its start. Returns the
 * status of the operation. */
static int wait_for(struct crowd *crowd, const struct wait *wait, int started)
{
    while (started == REDLOCK_OK && !wait->done && crowd->broken == 0)
        turn(crowd);
    return started != REDLOCK_OK ? started : wait->status;
}

/* Allocates everything and connects. Returns 0, or -1 and a text in `error`; close_holders() must
 * follow in both cases. */
static int open_holders(struct crowd *crowd, const struct client_settings *settings, char *error,
                        size_t error_size)
{
    struct wait wait = {.done = false};
    snprintf(error, error_size, "no memory");
    crowd->count = settings->resources;
    crowd->holdings = client_holdings(settings);
    crowd->holders = calloc(crowd->count, sizeof *crowd->holders);
    crowd->opts = client_opts(settings);
    crowd->opts.flags |= REDLOCK_FLAG_AUTO_EXTEND;
    crowd->opts.event_fn = event;
    if (crowd->holdings == NULL || crowd->holders == NULL)
        return -1;
    crowd->client = client_new(settings, REDLOCK_MODE_EMBEDDED, error, error_size);
    if (crowd->client == NULL)
        return -1;
    int started = redlock_wait_ready_start(crowd->client, READY_MS, NULL, waited, &wait);
    int status = wait_for(crowd, &wait, started);
    if (status != REDLOCK_OK)
        snprintf(error, error_size, "the servers are not ready: %s", redlock_strerror(status));
    return status == REDLOCK_OK ? 0 : -1;
}

/* Adds the time limits that requests have exceeded and the reconnects of all nodes to the
 * renewals. */
static void note_nodes(struct crowd *crowd)
{
    for (size_t i = 0; i < redlock_node_count(crowd->client); i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(crowd->client, i, &stats, sizeof stats) != REDLOCK_OK)
            continue;
        crowd->renewals->timeouts += stats.timeouts;
        crowd->renewals->reconnects += stats.reconnects;
    }
}

/* Shuts the client down, which releases the locks, and frees everything. */
static void close_holders(struct crowd *crowd, const struct client_settings *settings)
{
    if (crowd->client != NULL) {
        struct wait wait = {.done = false};
        crowd->broken = 0;
        int started = redlock_shutdown_start(crowd->client, SHUTDOWN_MS, waited, &wait);
        int status = wait_for(crowd, &wait, started);
        if (status != REDLOCK_OK)
            fprintf(stderr, "redlock-bench: shutdown: %s\n", redlock_strerror(status));
        note_nodes(crowd);
        (void)redlock_free(crowd->client);
    }
    for (size_t i = 0; crowd->holders != NULL && i < crowd->count; i++)
        redlock_lock_free(crowd->holders[i].lock);
    free(crowd->holders);
    client_free_holdings(crowd->holdings, settings);
}

int renewals_run(const struct client_settings *settings, const struct servers *servers,
                 uint64_t duration_ms, struct result *result, struct renewals *ret_renewals,
                 char *error, size_t error_size)
{
    struct crowd crowd = {.result = result, .renewals = ret_renewals};
    memset(ret_renewals, 0, sizeof *ret_renewals);
    ret_renewals->least_left_ms = UINT64_MAX;
    int failed = open_holders(&crowd, settings, error, error_size);
    if (failed == 0) {
        client_add_stats(crowd.client, -1, result);
        failed = fill(&crowd, settings->depth);
        client_add_stats(crowd.client, 1, result);
        snprintf(error, error_size, "the locks could not be acquired: %s",
                 redlock_strerror(crowd.broken));
    }
    if (failed == 0)
        hold(&crowd, servers, duration_ms);
    if (failed == 0 && crowd.broken != 0) {
        snprintf(error, error_size, "%s", redlock_strerror(crowd.broken));
        failed = -1;
    }
    close_holders(&crowd, settings);
    if (ret_renewals->least_left_ms == UINT64_MAX)
        ret_renewals->least_left_ms = 0;
    return failed;
}
