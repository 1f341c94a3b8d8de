/* SPDX-License-Identifier: MIT
 * `redlock nodes`: does each server do what a lock needs? A greeting does not tell: the user may
 * lack a right, the memory may be full. So a lock is taken on each server alone, extended and
 * released: a key of its own, for a moment. Then it is looked whether who waits is told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "commands.h"
#include "doctor.h"
#include "nodes_notify.h"
#include "reports.h"
#include "say.h"
#include "shards.h"

#define TTL_MS          1000
#define WAIT_TTL_MS     5000
#define CLOSE_BUDGET_MS 200

/* What the only server of a report did not do, unless it was merely out of reach. */
static void note_failure(struct trouble *trouble, const char *step, redlock_report_t *report)
{
    redlock_node_report_t node;

    if (!report || trouble->cause != REDLOCK_CAUSE_NONE ||
        redlock_report_get_node(report, 0, &node, sizeof node) != REDLOCK_OK)
        return;
    if (node.vote != REDLOCK_VOTE_FAILED || node.cause == REDLOCK_CAUSE_NONE ||
        cause_is_unreachable(node.cause))
        return;
    trouble->cause = node.cause;
    snprintf(trouble->text, sizeof trouble->text, "does not %s a lock: %s", step, node.text);
}

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
    say(SAY_DEBUG, "a lock for a moment: %s", redlock_strerror(error));
    redlock_lock_free(lock);
    free(name);
}

static void probe_wakeups(redlock_t *rl, redlock_config_t *config, uint64_t max_ttl_ms,
                          struct notify_check *wake)
{
    char *name = text_format("redlock-nodes/%s/wait", client_owner());
    redlock_t *waiter;

    if (client_start(config, &waiter) < 0) {
        nodes_probe_notifications(rl, waiter, name,
                                  max_ttl_ms < WAIT_TTL_MS ? max_ttl_ms : WAIT_TTL_MS, wake);
        client_close(waiter, CLOSE_BUDGET_MS);
    }
    free(name);
}

static void probe_alone(const struct settings *settings, const char *address,
                        struct trouble *trouble, struct notify_check *wake)
{
    struct settings one = *settings; /* with one server, else the same: nothing of it is freed */
    redlock_config_t *config;
    redlock_t *rl;

    char *text = text_copy(address);
    one.values[SET_SERVERS].text = text;
    if (client_configure(&one, &config) < 0) {
        if (client_start(config, &rl) < 0) {
            probe(rl, one.max_ttl_ms, trouble);
            if (trouble->cause == REDLOCK_CAUSE_NONE)
                probe_wakeups(rl, config, one.max_ttl_ms, wake);
            client_close(rl, CLOSE_BUDGET_MS);
        }
        redlock_config_free(config);
    }
    free(text);
}

/* The addresses stand in the list in the order of the nodes. */
void nodes_probe(const struct settings *settings, struct examination *exam)
{
    char *list = shards_addresses(settings->values[SET_SERVERS].text, exam->shard);
    size_t len = strlen(list);
    char *rest = list, *address;
    size_t i = 0;

    while ((address = strsep(&rest, ",")) && i < exam->count) {
        if (!*address)
            continue;
        if (exam->nodes[i].eligible)
            probe_alone(settings, address, &exam->troubles[i], &exam->notify[i]);
        i++;
    }
    explicit_bzero(list, len);
    free(list);
}
