/* SPDX-License-Identifier: MIT
 * Checks whether a server sends a notification when a lock is released. A second client waits
 * for a lock that the first one holds on that server alone.
 */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "examination.h"
#include "nodes_notify.h"
#include "say.h"

/* Time limit for the notification. */
#define TIME_LIMIT_MS 1000
#define STEP_MS       5 /* pause between two looks at the state */

/* How the acquisition of the second client, the waiter, has ended. The library's thread sets both
 * fields, `ended` last. */
struct waiter_end {
    atomic_bool ended;
    redlock_lock_t *lock; /* NULL if it was not acquired */
};

/* Records the end of the waiter's acquisition in the struct waiter_end `userdata`. Runs on the
 * library's thread. */
static void on_end(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
                   void *userdata)
{
    struct waiter_end *wait = userdata;

    (void)rl;
    (void)report;
    say(SAY_DEBUG, "wait for a notification: %s", redlock_strerror(status));
    wait->lock = lock;
    atomic_store(&wait->ended, true);
}

/* Returns the state of the client's only node; if it cannot be read, a state without
 * notifications. */
static redlock_node_stats_t stats_of(redlock_t *rl)
{
    redlock_node_stats_t stats = {.notify_state = REDLOCK_NOTIFY_IDLE};

    if (redlock_get_node_stats(rl, 0, &stats, sizeof stats) != REDLOCK_OK)
        stats.notify_state = REDLOCK_NOTIFY_IDLE;
    return stats;
}

/* Returns the word for a result in JSON: "unknown", "on", "refused", "not_received" or
 * "not_connected". */
const char *notify_result_name(enum notify_result state)
{
    static const char *const names[] = {"unknown", "on", "refused", "not_received",
                                        "not_connected"};

    return names[state];
}

/* Returns the word for the lines of a server in JSON: "off", "on", "refused", or "unknown" if
 * nothing was found out. */
const char *notify_line_name(const struct notify_check *check)
{
    static const char *const names[] = {"off", "unknown", "on", "refused"};
    bool known = check->state == NOTIFY_ON || check->state == NOTIFY_NOT_RECEIVED;

    return known && check->line_state >= 0 && check->line_state <= REDLOCK_LINE_REFUSED
               ? names[check->line_state]
               : "unknown";
}

/* Records in `check` what the state of the waiter's node says about notifications. */
static void keep_result(struct notify_check *check, const redlock_node_stats_t *stats)
{
    if (stats->notify_state == REDLOCK_NOTIFY_REFUSED) {
        check->state = NOTIFY_REFUSED;
        check->cause = stats->notify_cause;
        snprintf(check->text, sizeof check->text, "%s", stats->notify_text);
    } else if (stats->notify_state == REDLOCK_NOTIFY_ON) {
        check->state = stats->notifications > 0 ? NOTIFY_ON : NOTIFY_NOT_RECEIVED;
        check->line_state = stats->line_state;
        check->line_cause = stats->line_cause;
        snprintf(check->line_text, sizeof check->line_text, "%s", stats->line_text);
    }
}

/* Records in `check`, at the end of the time limit, that a connection is missing: the waiter's node
 * still makes the one for notifications, or has failed to make its first one. */
static void keep_missing(struct notify_check *check, const redlock_node_stats_t *stats)
{
    bool failed = !stats->eligible && stats->cause != REDLOCK_CAUSE_NONE &&
                  stats->cause != REDLOCK_CAUSE_TIMEOUT;

    if (check->state == NOTIFY_UNKNOWN && (stats->notify_state == REDLOCK_NOTIFY_PENDING || failed))
        check->state = NOTIFY_NOT_CONNECTED;
}

/* Waits until the waiter's node has received a notification or was refused, at most for
 * TIME_LIMIT_MS, and records the result. Extends the held lock meanwhile, because that changes the
 * key and so causes a notification. Ends early if the waiter's acquisition ends. */
static void wait_for_notification(redlock_t *waiter, redlock_lock_t *held,
                                  const struct waiter_end *wait, struct notify_check *check)
{
    uint64_t end_ns = boottime_ns() + TIME_LIMIT_MS * NS_PER_MS;

    while (!atomic_load(&wait->ended) && boottime_ns() < end_ns) {
        redlock_node_stats_t stats = stats_of(waiter);
        keep_result(check, &stats);
        if (check->state == NOTIFY_ON || check->state == NOTIFY_REFUSED)
            return;
        if (check->state == NOTIFY_NOT_RECEIVED && redlock_extend(held, 0, NULL) != REDLOCK_OK)
            return;
        poll(NULL, 0, STEP_MS);
    }
    if (!atomic_load(&wait->ended)) {
        redlock_node_stats_t stats = stats_of(waiter);
        keep_missing(check, &stats);
    }
}

/* Acquires a lock with `holder`, starts an acquisition with `waiter`, and records in `check`
 * whether a notification arrives. Then releases both. */
void nodes_probe_notifications(redlock_t *holder, redlock_t *waiter, const char *name,
                               uint64_t ttl_ms, struct notify_check *check)
{
    redlock_opts_t opts = redlock_opts(ttl_ms);
    struct waiter_end wait = {.ended = false};
    redlock_lock_t *held = NULL;

    if (redlock_acquire(holder, name, &opts, &held, NULL) != REDLOCK_OK)
        return;
    opts.wait_ms = 2 * TIME_LIMIT_MS;
    if (redlock_acquire_start(waiter, name, &opts, on_end, &wait) == REDLOCK_OK) {
        wait_for_notification(waiter, held, &wait, check);
        redlock_release(held, NULL);
        while (!atomic_load(&wait.ended))
            poll(NULL, 0, STEP_MS);
        if (wait.lock)
            redlock_release(wait.lock, NULL);
    }
    say(SAY_DEBUG, "notifications: %s", notify_result_name(check->state));
    redlock_lock_free(wait.lock);
    redlock_lock_free(held);
}
