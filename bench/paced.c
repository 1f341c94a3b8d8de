/* SPDX-License-Identifier: MIT
 * The open loop: the library in embedded mode, and one poll that ends at the time of the next
 * start. */
#include "paced.h"

#include "progress.h"
#include "usage.h"
#include "waited.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define SECOND_NS   UINT64_C(1000000000) /* nanoseconds of a second */
#define READY_MS    10000                /* for the client to be ready */
#define SHUTDOWN_MS 5000                 /* for the client to shut down */
/* Time after the last start in which all operations must end. */
#define STRAGGLER_NS (15 * SECOND_NS)
#define SILENCE_NS   (SECOND_NS / 2) /* longest wait of one turn of the loop */
#define WARM         200             /* operations before the measurement */
#define CLOSED_MAX   1000000         /* samples of a closed loop */

struct paced;

/* One operation in flight, or a free place for one. */
struct paced_slot {
    struct paced *paced;
    struct paced_slot *next_free; /* valid in the list of free slots */
    struct holding *holding;      /* the slot's resource, which no other slot uses */
    uint64_t due_ns;              /* intended start */
    uint64_t sent_ns;             /* call of redlock_acquire_start() */
};

/* The client, its slots and the state of the current run. */
struct paced {
    const struct paced_plan *plan;
    redlock_t *client;
    redlock_opts_t opts;
    struct holding *holdings;      /* owned */
    struct paced_slot *slots;      /* owned */
    struct paced_slot *free_slots; /* list of slots without an operation */
    struct result *intended;       /* times from the intended start */
    struct result *sent;           /* times from the call */
    struct timeline *timeline;
    uint64_t start_ns; /* of the run */
    uint64_t begun;    /* operations that have begun */
    uint64_t total;    /* operations of the run */
    uint64_t running;  /* operations in flight */
    uint64_t step_ns;  /* time of the next plan->step(), since start_ns */
    bool warming;      /* nothing is recorded */
    int broken;        /* status of the call that made the client unusable; 0: none */
};

/* Returns the slot to the list of free slots. */
static void free_slot(struct paced_slot *slot)
{
    slot->next_free = slot->paced->free_slots;
    slot->paced->free_slots = slot;
    slot->paced->running--;
}

/* Records the end of the slot's operation. */
static void finish(struct paced_slot *slot, int status)
{
    struct paced *paced = slot->paced;
    uint64_t now_ns = result_now_ns();
    if (!paced->warming) {
        paced->intended->pairs++;
        paced->sent->pairs++;
        if (status == REDLOCK_OK) {
            histogram_record(&paced->intended->pair, now_ns - slot->due_ns);
            histogram_record(&paced->sent->pair, now_ns - slot->sent_ns);
        } else {
            paced->intended->failed++;
            paced->sent->failed++;
            paced->intended->last_error = paced->sent->last_error = status;
        }
        timeline_add(paced->timeline, slot->due_ns - paced->start_ns, now_ns - slot->due_ns,
                     status != REDLOCK_OK);
    }
    free_slot(slot);
}

/* Ends the release of a slot, and with it the operation. */
static void released(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    (void)client;
    (void)report;
    redlock_lock_free(lock);
    finish(userdata, status);
}

/* Ends an acquisition: records it and starts the release, or ends the operation after a failure. */
static void acquired(redlock_t *client, int status, redlock_lock_t *lock,
                     const redlock_report_t *report, void *userdata)
{
    struct paced_slot *slot = userdata;
    struct paced *paced = slot->paced;
    uint64_t now_ns = result_now_ns();
    (void)client;
    (void)report;
    if (status != REDLOCK_OK) {
        finish(slot, status);
        return;
    }
    if (!paced->warming) {
        histogram_record(&paced->intended->acquire, now_ns - slot->due_ns);
        histogram_record(&paced->sent->acquire, now_ns - slot->sent_ns);
    }
    holding_acquired(slot->holding, paced->intended);
    holding_released(slot->holding);
    status = redlock_release_start(lock, released, slot);
    if (status != REDLOCK_OK) {
        redlock_lock_free(lock);
        finish(slot, status);
    }
}

/* Starts an operation that was due at due_ns. There must be a free slot. */
static void start_one(struct paced *paced, uint64_t due_ns)
{
    struct paced_slot *slot = paced->free_slots;
    paced->free_slots = slot->next_free;
    paced->running++;
    paced->begun++;
    slot->due_ns = due_ns;
    slot->sent_ns = result_now_ns();
    int status =
        redlock_acquire_start(paced->client, slot->holding->resource, &paced->opts, acquired, slot);
    if (status != REDLOCK_OK) {
        paced->broken = status;
        free_slot(slot);
    }
}

/* Starts the operations that are due. Returns the time of the next start, UINT64_MAX if that
 * depends on the end of an operation. */
static uint64_t start_due(struct paced *paced, uint64_t now_ns)
{
    const struct paced_plan *plan = paced->plan;
    while (paced->begun < paced->total && paced->free_slots != NULL && paced->broken == 0) {
        uint64_t due_ns = now_ns;
        if (plan->rate_per_s == 0) {
            if (paced->running > 0 || now_ns - paced->start_ns >= plan->duration_ns)
                return UINT64_MAX;
        } else {
            due_ns = paced_due_ns(paced->start_ns, plan->rate_per_s, paced->begun);
            if (due_ns > now_ns)
                return due_ns;
        }
        start_one(paced, due_ns);
    }
    return UINT64_MAX;
}

/* Runs the loop once: waits up to until_ns and processes what the client has received. */
static void wait_until(struct paced *paced, uint64_t now_ns, uint64_t until_ns)
{
    uint64_t wait_ns = until_ns <= now_ns ? 0 : until_ns - now_ns;
    struct pollfd pollfd = {.fd = redlock_get_fd(paced->client), .events = POLLIN};
    if (wait_ns > SILENCE_NS)
        wait_ns = SILENCE_NS;
    const struct timespec timeout = {.tv_sec = 0, .tv_nsec = (long)wait_ns};
    int status =
        ppoll(&pollfd, 1, &timeout, NULL) > 0 ? redlock_process(paced->client) : REDLOCK_OK;
    if (status != REDLOCK_OK && paced->broken == 0)
        paced->broken = status;
}

/* Calls plan->step() if it is due. Returns the time at which it is due next. */
static uint64_t take_steps(struct paced *paced, uint64_t elapsed_ns)
{
    const struct paced_plan *plan = paced->plan;
    if (plan->step == NULL || paced->warming)
        return UINT64_MAX;
    if (elapsed_ns >= paced->step_ns)
        paced->step_ns = plan->step(plan->step_state, elapsed_ns, paced->timeline);
    return paced->step_ns == UINT64_MAX ? UINT64_MAX : paced->start_ns + paced->step_ns;
}

/* Returns true if the run has ended: nothing is in flight and no operation will begin. */
static bool has_ended(const struct paced *paced, uint64_t elapsed_ns)
{
    bool closed = paced->plan->rate_per_s == 0 && !paced->warming;
    return paced->running == 0 &&
           (paced->begun == paced->total || (closed && elapsed_ns >= paced->plan->duration_ns));
}

/* Runs the plan. Returns 0, or -1 if the client failed or operations did not end in time. */
static int run(struct paced *paced)
{
    paced->begun = 0;
    paced->start_ns = result_now_ns();
    uint64_t timeout_ns = paced->plan->duration_ns + STRAGGLER_NS, now_ns = paced->start_ns;
    while (!has_ended(paced, now_ns - paced->start_ns) && paced->broken == 0) {
        if (now_ns - paced->start_ns > timeout_ns)
            return -1;
        uint64_t step_ns = take_steps(paced, now_ns - paced->start_ns);
        uint64_t due_ns = start_due(paced, now_ns);
        wait_until(paced, result_now_ns(), step_ns < due_ns ? step_ns : due_ns);
        if (!paced->warming)
            progress_show(now_ns - paced->start_ns, paced->plan->duration_ns);
        now_ns = result_now_ns();
    }
    return paced->broken == 0 ? 0 : -1;
}

/* Runs WARM operations in a closed loop that are not recorded. Returns 0 or -1. */
static int warm(struct paced *paced, const struct paced_plan *plan)
{
    const struct paced_plan closed = {.rate_per_s = 0, .duration_ns = UINT64_MAX / 2};
    uint64_t total = paced->total;
    paced->plan = &closed;
    paced->total = WARM;
    paced->warming = true;
    int status = run(paced);
    paced->warming = false;
    paced->plan = plan;
    paced->total = total;
    return status;
}

/* Runs the loop until an operation has ended. `started` is the status of its start. Returns the
 * status of the operation. */
static int wait_for(struct paced *paced, const struct wait *wait, int started)
{
    while (started == REDLOCK_OK && !wait->done && paced->broken == 0)
        wait_until(paced, 0, SILENCE_NS);
    return started != REDLOCK_OK ? started : wait->status;
}

/* Allocates everything and connects. Returns 0, or -1 and a text in `error`; close_paced() must
 * follow in both cases. */
static int open_paced(struct paced *paced, const struct client_settings *settings, char *error,
                      size_t error_size)
{
    struct wait wait = {.done = false};
    paced->opts = client_opts(settings);
    paced->holdings = client_holdings(settings);
    paced->slots = calloc(settings->depth, sizeof *paced->slots);
    uint64_t size = paced->total < CLOSED_MAX ? paced->total : CLOSED_MAX;
    paced->timeline = timeline_new(size);
    snprintf(error, error_size, "no memory");
    if (paced->holdings == NULL || paced->slots == NULL || paced->timeline == NULL)
        return -1;
    for (unsigned i = settings->depth; i-- > 0;) {
        paced->slots[i] = (struct paced_slot){
            .paced = paced, .next_free = paced->free_slots, .holding = &paced->holdings[i]};
        paced->free_slots = &paced->slots[i];
    }
    paced->client = client_new(settings, REDLOCK_MODE_EMBEDDED, error, error_size);
    if (paced->client == NULL)
        return -1;
    int started = redlock_wait_ready_start(paced->client, READY_MS, NULL, waited, &wait);
    int status = wait_for(paced, &wait, started);
    if (status != REDLOCK_OK)
        snprintf(error, error_size, "the servers are not ready: %s", redlock_strerror(status));
    return status == REDLOCK_OK ? 0 : -1;
}

/* Shuts the client down and frees everything except the timeline. */
static void close_paced(struct paced *paced, const struct client_settings *settings)
{
    if (paced->client != NULL) {
        struct wait wait = {.done = false};
        int started = redlock_shutdown_start(paced->client, SHUTDOWN_MS, waited, &wait);
        paced->broken = 0;
        /* The undos for a killed server cannot be delivered. Its keys are gone, so the status does
         * not matter. */
        (void)wait_for(paced, &wait, started);
        (void)redlock_free(paced->client);
    }
    free(paced->slots);
    client_free_holdings(paced->holdings, settings);
}

/* Opens a client, warms it up, runs the plan and closes the client. The caller frees *ret_timeline
 * in both cases. Returns 0, or -1 and a text in `error`. */
int paced_run(const struct client_settings *settings, const struct paced_plan *plan,
              struct result *intended, struct result *sent, struct timeline **ret_timeline,
              char *error, size_t error_size)
{
    struct result *scratch = calloc(1, sizeof *scratch);
    struct paced paced = {.plan = plan, .intended = intended, .sent = sent};
    uint64_t total = plan->rate_per_s == 0
                         ? UINT64_MAX
                         : plan->rate_per_s * (plan->duration_ns / 1000) / 1000000;
    paced.total = plan->count_max != 0 && plan->count_max < total ? plan->count_max : total;
    if (sent == NULL)
        paced.sent = scratch;
    /* so that the kernel does not delay the next start to join other timers */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    int failed = scratch == NULL ? -1 : open_paced(&paced, settings, error, error_size);
    if (failed == 0) {
        snprintf(error, error_size, "operations did not end in time");
        failed = warm(&paced, plan);
    }
    if (failed == 0) {
        client_add_stats(paced.client, -1, intended);
        usage_add(intended, -1);
        failed = run(&paced);
        usage_add(intended, 1);
        client_add_stats(paced.client, 1, intended);
        intended->elapsed_ns = paced.sent->elapsed_ns = result_now_ns() - paced.start_ns;
        paced.sent->attempts = intended->attempts;
        paced.sent->user_us = intended->user_us;
        paced.sent->sys_us = intended->sys_us;
    }
    if (paced.broken != 0)
        snprintf(error, error_size, "%s", redlock_strerror(paced.broken));
    close_paced(&paced, settings);
    free(scratch);
    *ret_timeline = paced.timeline;
    return failed;
}
