/* SPDX-License-Identifier: MIT
 * `redlock nodes --fence`: checks whether the servers are fit for fences. Inspects the fence
 * records first, which writes nothing. Acquires a fenced lock only if no record is missing,
 * because that would leave a mark on a server without a record.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "commands.h"
#include "examination.h"
#include "reports.h"
#include "say.h"
#include "shards.h"

/* Time limit for closing a client; time limit for each of the two checks; pause between two
 * requests. */
#define CLOSE_BUDGET_MS 200
#define TIME_LIMIT_MS   2000
#define PAUSE_MS        10
/* So many error replies prove that a server refuses the scripts of fenced locks. */
#define ERRORS_ENOUGH 5
#define TTL_MS        1000 /* TTL of the fenced locks, unless max_ttl is shorter */

/* Records why a server takes no part in fenced locks. `node` is what the report says about it. */
static void note_trouble(struct trouble *trouble, const redlock_node_report_t *node)
{
    trouble->cause = node->cause;
    trouble->record = node->record;
    snprintf(trouble->text, sizeof trouble->text, "takes no part in fenced locks: %s", node->text);
}

/* Records whether server `i` has a fence record. `node` is what the inspection of the record's key
 * says about that server. */
static void see_record(struct examination *exam, size_t i, const redlock_node_report_t *node)
{
    bool failed = node->vote == REDLOCK_VOTE_FAILED;

    if (node->vote == REDLOCK_VOTE_DENIED)
        exam->records[i] = RECORD_MISSING;
    /* A fence record is a hash, but an inspection expects a string. */
    else if (node->vote == REDLOCK_VOTE_GRANTED ||
             (failed && node->cause == REDLOCK_CAUSE_WRONGTYPE))
        exam->records[i] = RECORD_THERE;
    else if (failed && node->cause == REDLOCK_CAUSE_NOPERM)
        note_trouble(&exam->fence_troubles[i], node);
}

/* Records the vote of server `i` for a fenced lock, in exam->fence_troubles if the server refuses.
 * Sets *answered once the reply shows whether the server takes part. */
static void see_fenced_vote(struct examination *exam, bool *answered, size_t i,
                            const redlock_node_report_t *node)
{
    /* A denial proves nothing: it may come from our own key of the previous round, which a refused
     * script has not removed. */
    *answered = *answered || node->vote == REDLOCK_VOTE_GRANTED;
    if (node->cause == REDLOCK_CAUSE_FENCE_RECORD)
        *answered = true;
    else if (node->vote != REDLOCK_VOTE_FAILED)
        return;
    /* A server that was not reached is reported elsewhere. FENCE_RECORDS_UNREAD says that other
     * servers' records could not be read. */
    if (cause_is_unreachable(node->cause) || node->cause == REDLOCK_CAUSE_FENCE_RECORDS_UNREAD)
        return;
    *answered = true;
    note_trouble(&exam->fence_troubles[i], node);
}

/* Returns true if, for all eligible servers, it is known whether they have a fence record or why
 * that cannot be known. */
static bool all_seen(const struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++)
        if (exam->nodes[i].eligible && exam->records[i] == RECORD_UNKNOWN &&
            !exam->fence_troubles[i].cause)
            return false;
    return true;
}

/* Inspects the fence records of one shard until all_seen(), at most for TIME_LIMIT_MS, and records
 * the results in `exam`. The key of a record, under an empty prefix, is inspected like any other
 * resource. */
static void read_records(const struct settings *settings, struct examination *exam)
{
    struct settings bare = *settings; /* borrows: nothing of it is freed */
    char empty[] = "";
    char *servers = shards_addresses(settings->values[SET_SERVERS].text, exam->shard);
    uint64_t give_up_ns = boottime_ns() + TIME_LIMIT_MS * NS_PER_MS;
    redlock_config_t *config;
    redlock_node_report_t node;
    redlock_t *rl;

    bare.values[SET_PREFIX].text = empty;
    bare.line = false; /* a record has no line, and the user has no right to the key of one */
    /* The client gets this shard only: by its name, the key might belong to another shard. */
    bare.values[SET_SERVERS].text = servers;
    int result = client_configure(&bare, &config);
    explicit_bzero(servers, strlen(servers));
    free(servers);
    if (result >= 0)
        return;
    int error = redlock_new(&rl, config);
    if (error != REDLOCK_OK) {
        say(SAY_DEBUG, "fence records: %s", redlock_config_error(config));
        for (size_t i = 0; i < exam->count; i++)
            trouble_incomplete(&exam->fence_troubles[i], error, redlock_config_error(config));
    } else {
        while (!all_seen(exam) && boottime_ns() < give_up_ns) {
            redlock_report_t *report = NULL;
            error = redlock_inspect(rl, settings->values[SET_FENCE_KEY].text, &report);
            say(SAY_DEBUG, "fence records: %s", redlock_strerror(error));
            for (size_t i = 0; report && i < exam->count; i++)
                if (redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK)
                    see_record(exam, i, &node);
            redlock_report_free(report);
            poll(NULL, 0, PAUSE_MS);
        }
        client_close(rl, CLOSE_BUDGET_MS);
    }
    redlock_config_free(config);
}

/* Returns true if the server has replied with enough errors since `before` was read, and with no
 * grant. A round ends with the quorum. So the vote of a server that is slower than a quorum is in
 * no report, but its errors are counted. A server that takes part may also reply with errors, for
 * example while it does not know a script yet, but then it grants. */
static bool refuses_unreported(redlock_t *rl, size_t node, const redlock_node_stats_t *before)
{
    redlock_node_stats_t stats;

    return redlock_get_node_stats(rl, node, &stats, sizeof stats) == REDLOCK_OK &&
           stats.errors >= before->errors + ERRORS_ENOUGH && stats.granted == before->granted;
}

/* Records that server `i` refuses fenced locks. Its vote was in no report, so the reason is not
 * known. */
static void note_unreported(struct examination *exam, size_t i)
{
    struct trouble *trouble = &exam->fence_troubles[i];

    trouble->cause = REDLOCK_CAUSE_ERROR_REPLY;
    snprintf(trouble->text, sizeof trouble->text,
             "takes no part in fenced locks: replies to their scripts with errors");
}

/* Stores the statistics of each server in ret_before; all 0 for a server that has none. */
static void read_statistics(redlock_t *rl, const struct examination *exam,
                            redlock_node_stats_t ret_before[REDLOCK_NODES_MAX])
{
    for (size_t i = 0; i < exam->count; i++)
        if (redlock_get_node_stats(rl, exam->first + i, &ret_before[i], sizeof ret_before[i]) !=
            REDLOCK_OK)
            memset(&ret_before[i], 0, sizeof ret_before[i]);
}

/* Acquires and releases fenced locks until it is clear for every eligible server whether it takes
 * part, at most for TIME_LIMIT_MS. Records the results in exam->fence_troubles. */
static void acquire_fenced_locks(redlock_t *rl, uint64_t max_ttl_ms, struct examination *exam)
{
    char *stem = text_format("redlock-nodes/%s", client_owner());
    char *name = client_name_in(rl, exam->shard, stem);
    redlock_opts_t opts = redlock_opts(max_ttl_ms < TTL_MS ? max_ttl_ms : TTL_MS);
    uint64_t give_up_ns = boottime_ns() + TIME_LIMIT_MS * NS_PER_MS;
    bool answered[REDLOCK_NODES_MAX] = {false}, all;
    redlock_node_stats_t before[REDLOCK_NODES_MAX];
    redlock_node_report_t node;

    opts.flags = REDLOCK_FLAG_FENCE;
    read_statistics(rl, exam, before);
    do {
        redlock_lock_t *lock = NULL;
        redlock_report_t *report = NULL;
        int error = redlock_acquire(rl, name, &opts, &lock, &report);
        say(SAY_DEBUG, "fenced probe: %s", redlock_strerror(error));
        all = true;
        for (size_t i = 0; report && i < exam->count; i++) {
            if (redlock_report_get_node(report, i, &node, sizeof node) == REDLOCK_OK)
                see_fenced_vote(exam, &answered[i], i, &node);
            all = all && (answered[i] || !exam->nodes[i].eligible);
        }
        redlock_report_free(report);
        if (lock)
            redlock_release(lock, NULL);
        redlock_lock_free(lock);
        if (!all)
            poll(NULL, 0, PAUSE_MS);
    } while (!all && boottime_ns() < give_up_ns);
    for (size_t i = 0; i < exam->count; i++)
        if (!answered[i] && refuses_unreported(rl, exam->first + i, &before[i]))
            note_unreported(exam, i);
    free(name);
    free(stem);
}

/* Inspects the fence records of one shard, and acquires fenced locks if a record was found and none
 * is missing. Records the results in `exam`. */
void nodes_fence(redlock_t *rl, const struct settings *settings, struct examination *exam)
{
    bool there = false, missing = false;

    exam->fences = true;
    exam->durable_records = settings->fence_records == REDLOCK_FENCE_RECORDS_DURABLE;
    read_records(settings, exam);
    for (size_t i = 0; i < exam->count; i++) {
        there = there || exam->records[i] == RECORD_THERE;
        missing = missing || exam->records[i] == RECORD_MISSING;
    }
    if (there && !missing)
        acquire_fenced_locks(rl, settings->max_ttl_ms, exam);
}
