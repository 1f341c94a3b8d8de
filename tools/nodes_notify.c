/* SPDX-License-Identifier: MIT
 * `redlock nodes`: does a server tell when a lock is given back? A second client waits for what the
 * first one holds on that server alone, and is told or not. Nobody else knows the name.
 */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "doctor.h"
#include "nodes_notify.h"
#include "say.h"

#define TIME_LIMIT_MS 1000
#define STEP_MS       5

struct wait {
    atomic_bool ended;
    redlock_lock_t *lock;
};

static void on_end(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                   void *userdata)
{
    struct wait *wait = userdata;

    (void)rl;
    (void)report;
    say(SAY_DEBUG, "waiting for a word: %s", redlock_strerror(status));
    wait->lock = lock;
    atomic_store(&wait->ended, true);
}

static redlock_node_stats_t stats_of(redlock_t *rl)
{
    redlock_node_stats_t stats = {.notify_state = REDLOCK_NOTIFY_IDLE};

    if (redlock_get_node_stats(rl, 0, &stats, sizeof stats) != REDLOCK_OK)
        stats.notify_state = REDLOCK_NOTIFY_IDLE;
    return stats;
}

const char *notify_result_name(enum notify_result state)
{
    static const char *const names[] = {"unknown", "on", "refused", "not_received"};

    return names[state];
}

static void note(struct notify_check *wake, const redlock_node_stats_t *stats)
{
    if (stats->notify_state == REDLOCK_NOTIFY_REFUSED) {
        wake->state = NOTIFY_REFUSED;
        wake->cause = stats->wakeups_cause;
        snprintf(wake->text, sizeof wake->text, "%s", stats->notify_text);
    } else if (stats->notify_state == REDLOCK_NOTIFY_ON) {
        wake->state = stats->notifications > 0 ? NOTIFY_ON : NOTIFY_NOT_RECEIVED;
    }
}

/* It listens, or will not; a renewal is a change, too. */
static void wait_for_notification(redlock_t *waiter, redlock_lock_t *held, const struct wait *wait,
                                  struct notify_check *wake)
{
    uint64_t end_ns = boottime_ns() + TIME_LIMIT_MS * NS_PER_MS;

    while (!atomic_load(&wait->ended) && boottime_ns() < end_ns) {
        redlock_node_stats_t stats = stats_of(waiter);
        note(wake, &stats);
        if (wake->state == NOTIFY_ON || wake->state == NOTIFY_REFUSED)
            return;
        if (wake->state == NOTIFY_NOT_RECEIVED && redlock_extend(held, 0, NULL) != REDLOCK_OK)
            return;
        poll(NULL, 0, STEP_MS);
    }
}

void nodes_probe_notifications(redlock_t *holder, redlock_t *waiter, const char *name,
                               uint64_t ttl_ms, struct notify_check *wake)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    struct wait wait = {.ended = false};
    redlock_lock_t *held = NULL;

    if (redlock_acquire(holder, name, &opts, &held, NULL) != REDLOCK_OK)
        return;
    opts.wait_ms = 2 * TIME_LIMIT_MS;
    if (redlock_acquire_start(waiter, name, &opts, on_end, &wait) == REDLOCK_OK) {
        wait_for_notification(waiter, held, &wait, wake);
        redlock_release(held, NULL);
        while (!atomic_load(&wait.ended))
            poll(NULL, 0, STEP_MS);
        if (wait.lock)
            redlock_release(wait.lock, NULL);
    }
    say(SAY_DEBUG, "told of changes: %s", notify_result_name(wake->state));
    redlock_lock_free(wait.lock);
    redlock_lock_free(held);
}
