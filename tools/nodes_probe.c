/* SPDX-License-Identifier: MIT
 * `redlock nodes`: checks whether each server does what a lock needs. The state of the
 * connection does not show a missing right or a full memory. So a lock with a key of its own is
 * acquired, extended and released on each server alone. Then the notifications are checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "commands.h"
#include "examination.h"
#include "nodes_notify.h"
#include "reports.h"
#include "say.h"
#include "shards.h"

/* TTLs of the probe's locks: of the first part, and of the part for notifications. CLOSE_BUDGET_MS:
 * time limit for closing a client. */
#define TTL_MS          1000
#define WAIT_TTL_MS     5000
#define CLOSE_BUDGET_MS 200

/* Records in `trouble` that the only server of the report has failed in `step` ("grant", "extend"
 * or "release"), unless a failure was recorded before. A server that was not reached counts as no
 * failure here, unless this process has no socket left for it. `report` may be NULL. */
static void note_failure(struct trouble *trouble, const char *step, redlock_report_t *report)
{
    redlock_node_report_t node;

    if (!report || trouble->cause != REDLOCK_CAUSE_NONE ||
        redlock_report_get_node(report, 0, &node, sizeof node) != REDLOCK_OK)
        return;
    if (node.vote != REDLOCK_VOTE_FAILED || node.cause == REDLOCK_CAUSE_NONE ||
        (cause_is_unreachable(node.cause) && node.cause != REDLOCK_CAUSE_NO_SOCKET))
        return;
    trouble->cause = node.cause;
    snprintf(trouble->text, sizeof trouble->text, "does not %s a lock: %s", step, node.text);
}

/* Starts a client for a probe of one server. Returns false if this process lacks descriptors, a
 * thread or memory for it, or cannot read its certificates again, and records that in `trouble`; it
 * says nothing about the server. */
static bool start(redlock_config_t *config, redlock_t **ret_rl, struct trouble *trouble)
{
    int error = redlock_new(ret_rl, config);

    if (error == REDLOCK_OK)
        return true;
    say(SAY_DEBUG, "probe: %s", redlock_config_error(config));
    trouble_incomplete(trouble, error, redlock_config_error(config));
    return false;
}

/* Acquires, extends and releases a lock with a client of one server, and records the first
 * failure. */
static void probe(redlock_t *rl, uint64_t max_ttl_ms, struct trouble *trouble)
{
    char *name = text_format("redlock-nodes/%s", client_owner());
    redlock_opts_t opts = redlock_opts(max_ttl_ms < TTL_MS ? max_ttl_ms : TTL_MS);
    redlock_lock_t *lock = NULL;
    redlock_report_t *report = NULL;

    int error = redlock_acquire(rl, name, &opts, &lock, &report);
    note_failure(trouble, "grant", report);
    redlock_report_free(report);
    if (error == REDLOCK_OK) {
        error = redlock_extend(lock, 0, &report);
        note_failure(trouble, "extend", report);
        redlock_report_free(report);
        error = redlock_release(lock, &report);
        note_failure(trouble, "release", report);
        redlock_report_free(report);
    }
    say(SAY_DEBUG, "probe: %s", redlock_strerror(error));
    redlock_lock_free(lock);
    free(name);
}

/* Starts a second client with the same configuration, and checks whether the server sends it a
 * notification when `rl` releases a lock. */
static void probe_notifications(redlock_t *rl, redlock_config_t *config, uint64_t max_ttl_ms,
                                struct trouble *trouble, struct notify_check *check)
{
    char *name = text_format("redlock-nodes/%s/wait", client_owner());
    redlock_t *waiter;

    if (start(config, &waiter, trouble)) {
        nodes_probe_notifications(rl, waiter, name,
                                  max_ttl_ms < WAIT_TTL_MS ? max_ttl_ms : WAIT_TTL_MS, check);
        client_close(waiter, CLOSE_BUDGET_MS);
    }
    free(name);
}

/* Runs both checks with a client of the server at `address` alone: locks, and if they work,
 * notifications. */
static void probe_alone(const struct settings *settings, const char *address,
                        struct trouble *trouble, struct notify_check *check)
{
    struct settings one = *settings; /* borrows: nothing of it is freed */
    redlock_config_t *config;
    redlock_t *rl;

    char *text = text_copy(address);
    one.values[SET_SERVERS].text = text;
    if (client_configure(&one, &config) < 0) {
        if (start(config, &rl, trouble)) {
            probe(rl, one.max_ttl_ms, trouble);
            if (trouble->cause == REDLOCK_CAUSE_NONE)
                probe_notifications(rl, config, one.max_ttl_ms, trouble, check);
            client_close(rl, CLOSE_BUDGET_MS);
        }
        redlock_config_free(config);
    }
    free(text);
}

/* Returns true if this process had no socket left for one of the servers. */
static bool lacks_sockets(const struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        if (!exam->nodes[i].eligible && exam->nodes[i].cause == REDLOCK_CAUSE_NO_SOCKET)
            return true;
    return false;
}

/* Runs probe_alone() for each eligible server of the shard. The results are in exam->troubles and
 * exam->notify. Does nothing if this process lacks sockets already. A server after one that could
 * not be probed is not probed either, because it would meet the same shortage. */
void nodes_probe(const struct settings *settings, struct examination *exam)
{
    char *list = shards_addresses(settings->values[SET_SERVERS].text, exam->shard);
    size_t len = strlen(list), count = lacks_sockets(exam) ? 0 : exam->count;
    char *rest = list, *address;
    const struct trouble *lacking = NULL;
    size_t i = 0;

    /* The addresses are in the order of the nodes. */
    while ((address = strsep(&rest, ",")) && i < count) {
        if (!*address)
            continue;
        if (exam->nodes[i].eligible && lacking)
            exam->troubles[i] = *lacking;
        else if (exam->nodes[i].eligible)
            probe_alone(settings, address, &exam->troubles[i], &exam->notify[i]);
        if (exam->troubles[i].unchecked || exam->troubles[i].cause == REDLOCK_CAUSE_NO_SOCKET)
            lacking = &exam->troubles[i];
        i++;
    }
    explicit_bzero(list, len);
    free(list);
}
