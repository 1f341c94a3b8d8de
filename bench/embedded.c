/* SPDX-License-Identifier: MIT
 * The library in embedded mode: each slot acquires its lock, releases it and starts again from the
 * callbacks. The loop is one poll on the client's descriptor. */
#include "client.h"
#include "waited.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define READY_WAIT_MS 10000 /* for the client to be ready */
#define SHUTDOWN_MS   2000  /* for the client to shut down */
#define SILENCE_MS    5000  /* without any callback for this time the run has failed */
#define VOTES_NS      (UINT64_C(10) * 1000 * 1000 * 1000) /* for all nodes to be eligible */
#define QUIET_MS      4 /* without activity for this time nothing more is expected */
#define SETTLE_NS     (UINT64_C(1) * 1000 * 1000 * 1000) /* longest embedded_settle() */

/* One of the `depth` operations in flight. */
struct embedded_slot {
    struct embedded *embedded;
    struct holding *holding; /* resource of the current pair */
    unsigned at;             /* index of the resource of the next pair */
    redlock_lock_t *lock;    /* NULL: not held */
    uint64_t start_ns;       /* of the current pair */
};

/* The client and its slots. Lives for all runs. */
struct embedded {
    redlock_t *client;
    redlock_opts_t opts;             /* of the next acquisition */
    struct client_settings settings; /* only its numbers are valid: it borrows its texts */
    struct holding *holdings;        /* one for each resource; owned */
    struct embedded_slot *slots;     /* `depth` of them; owned */
    unsigned depth;
    uint64_t todo;         /* pairs of this run that have not started */
    uint64_t running;      /* pairs in flight */
    uint64_t called;       /* callbacks until now */
    int broken;            /* status of the call that made the client unusable; 0: none */
    struct result *result; /* of this run; borrowed */
};

static void acquired(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata);

/* Starts the next pair of the slot, if any is left. */
static void start_next(struct embedded_slot *slot)
{
    struct embedded *embedded = slot->embedded;
    if (embedded->todo == 0)
        return;
    embedded->todo--;
    embedded->running++;
    slot->holding = &embedded->holdings[slot->at];
    slot->at = (slot->at + embedded->depth) % embedded->settings.resources;
    embedded->opts.also = slot->holding->also;
    slot->start_ns = result_now_ns();
    int status = redlock_acquire_start(embedded->client, slot->holding->resource, &embedded->opts,
                                       acquired, slot);
    if (status != REDLOCK_OK) {
        embedded->running--;
        embedded->broken = status;
    }
}

/* Counts the pair of the slot with its status, and starts the next one. */
static void finish_pair(struct embedded_slot *slot, int status)
{
    struct embedded *embedded = slot->embedded;
    embedded->result->pairs++;
    embedded->running--;
    if (status == REDLOCK_OK) {
        histogram_record(&embedded->result->pair, result_now_ns() - slot->start_ns);
    } else {
        embedded->result->failed++;
        embedded->result->last_error = status;
    }
    start_next(slot);
}

/* Ends the release of a slot, and with it the pair. */
static void released(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct embedded_slot *slot = userdata;
    (void)client;
    (void)report;
    slot->embedded->called++;
    redlock_lock_free(lock);
    slot->lock = NULL;
    finish_pair(slot, status);
}

/* Ends an acquisition: records it and starts the release, or ends the pair after a failure. */
static void acquired(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct embedded_slot *slot = userdata;
    struct embedded *embedded = slot->embedded;
    (void)client;
    (void)report;
    embedded->called++;
    if (status != REDLOCK_OK) {
        finish_pair(slot, status);
        return;
    }
    histogram_record(&embedded->result->acquire, result_now_ns() - slot->start_ns);
    holding_acquired(slot->holding, embedded->result);
    slot->lock = lock;
    holding_released(slot->holding);
    status = redlock_release_start(lock, released, slot);
    if (status != REDLOCK_OK) {
        redlock_lock_free(lock);
        slot->lock = NULL;
        finish_pair(slot, status);
    }
}

/* Runs the application's loop once. Returns 1 if there was something to do, 0 after timeout_ms
 * without any. */
static int turn(struct embedded *embedded, int timeout_ms)
{
    struct pollfd pollfd = {.fd = redlock_get_fd(embedded->client), .events = POLLIN};
    int count = poll(&pollfd, 1, timeout_ms);
    int status = count > 0 ? redlock_process(embedded->client) : REDLOCK_OK;
    if (status != REDLOCK_OK && embedded->broken == 0)
        embedded->broken = status;
    return count > 0;
}

/* Runs `pairs` pairs with `depth` in flight and adds the measurements to `result`. Returns 0, or -1
 * after a line on stderr if the client failed or no callback came for SILENCE_MS. */
int embedded_run(void *state, uint64_t pairs, struct result *result)
{
    struct embedded *embedded = state;
    uint64_t start_ns = result_now_ns();
    embedded->result = result;
    embedded->todo = pairs;
    client_add_stats(embedded->client, -1, result);
    for (unsigned i = 0; i < embedded->depth; i++)
        start_next(&embedded->slots[i]);
    while (embedded->running > 0 && embedded->broken == 0) {
        uint64_t called = embedded->called;
        uint64_t waited_from = result_now_ns();
        do {
            (void)turn(embedded, SILENCE_MS);
        } while (embedded->called == called && embedded->broken == 0 &&
                 result_now_ns() - waited_from < SILENCE_MS * UINT64_C(1000000));
        if (embedded->called == called && embedded->broken == 0) {
            fprintf(stderr, "redlock-bench: no callback for %d ms\n", SILENCE_MS);
            return -1;
        }
    }
    if (embedded->broken != 0)
        fprintf(stderr, "redlock-bench: %s\n", redlock_strerror(embedded->broken));
    result->elapsed_ns += result_now_ns() - start_ns;
    client_add_stats(embedded->client, 1, result);
    return embedded->broken == 0 ? 0 : -1;
}

/* Returns the number of pending undos on all nodes. */
static uint64_t undos_pending(redlock_t *client)
{
    uint64_t count = 0;
    for (size_t i = 0; i < redlock_node_count(client); i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(client, i, &stats, sizeof stats) == REDLOCK_OK)
            count += stats.undos_pending;
    }
    return count;
}

/* Runs the loop until no activity is left and no undo is pending, at most for SETTLE_NS. Returns 0,
 * or -1 if the client has failed. */
int embedded_settle(void *state)
{
    struct embedded *embedded = state;
    uint64_t start_ns = result_now_ns();
    bool busy;
    do {
        busy = turn(embedded, QUIET_MS) != 0 || undos_pending(embedded->client) > 0;
    } while (busy && embedded->broken == 0 && result_now_ns() - start_ns < SETTLE_NS);
    return embedded->broken == 0 ? 0 : -1;
}

/* Returns the number of eligible nodes. */
static size_t eligible_nodes(redlock_t *client)
{
    size_t count = 0;
    for (size_t i = 0; i < redlock_node_count(client); i++) {
        redlock_node_stats_t stats;
        if (redlock_get_node_stats(client, i, &stats, sizeof stats) == REDLOCK_OK)
            count += stats.eligible == 1;
    }
    return count;
}

/* Runs the loop until all nodes are eligible. Returns 0, or -1 after VOTES_NS or if the client
 * failed. */
int embedded_wait_votes(struct embedded *embedded)
{
    uint64_t start_ns = result_now_ns();
    while (eligible_nodes(embedded->client) < redlock_node_count(embedded->client)) {
        (void)turn(embedded, QUIET_MS);
        if (embedded->broken != 0 || result_now_ns() - start_ns > VOTES_NS)
            return -1;
    }
    return 0;
}

/* Runs the loop until an operation has ended. `started` is the status of its start. Returns the
 * status of the operation. */
static int wait_for(struct embedded *embedded, const struct wait *wait, int started)
{
    while (started == REDLOCK_OK && !wait->done && embedded->broken == 0)
        (void)turn(embedded, SILENCE_MS);
    return started != REDLOCK_OK ? started : wait->status;
}

/* Creates the client and its slots and waits until the client is ready. Returns NULL and a text in
 * `error` on failure. */
struct embedded *embedded_open(const struct client_settings *settings, char *error,
                               size_t error_size)
{
    struct embedded *embedded = calloc(1, sizeof *embedded);
    snprintf(error, error_size, "out of memory"); /* unless another text replaces it */
    if (embedded == NULL)
        return NULL;
    embedded->depth = settings->depth;
    embedded->settings = *settings;
    embedded->opts = client_opts(settings);
    embedded->holdings = client_holdings(settings);
    embedded->slots = calloc(settings->depth, sizeof *embedded->slots);
    if (embedded->holdings != NULL && embedded->slots != NULL)
        embedded->client = client_new(settings, REDLOCK_MODE_EMBEDDED, error, error_size);
    if (embedded->client == NULL) {
        embedded_close(embedded);
        return NULL;
    }
    for (unsigned i = 0; i < settings->depth; i++) {
        embedded->slots[i].embedded = embedded;
        embedded->slots[i].at = i % settings->resources;
    }
    struct wait wait = {.done = false};
    int started = redlock_wait_ready_start(embedded->client, READY_WAIT_MS, NULL, waited, &wait);
    int status = wait_for(embedded, &wait, started);
    if (status != REDLOCK_OK) {
        snprintf(error, error_size, "the servers are not ready: %s", redlock_strerror(status));
        embedded_close(embedded);
        return NULL;
    }
    (void)embedded_settle(embedded);
    return embedded;
}

/* Shuts the client down, if there is one, and frees everything. */
void embedded_close(struct embedded *embedded)
{
    if (embedded->client != NULL) {
        struct wait wait = {.done = false};
        int started = redlock_shutdown_start(embedded->client, SHUTDOWN_MS, waited, &wait);
        int status = wait_for(embedded, &wait, started);
        if (status != REDLOCK_OK)
            fprintf(stderr, "redlock-bench: shutdown: %s\n", redlock_strerror(status));
        (void)redlock_free(embedded->client);
    }
    free(embedded->slots);
    client_free_holdings(embedded->holdings, &embedded->settings);
    free(embedded);
}
