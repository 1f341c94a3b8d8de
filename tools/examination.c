/* SPDX-License-Identifier: MIT
 * Makes the findings of `redlock nodes` about one shard, and the verdict. examination_judge() is
 * called once all servers have been probed. It calls findings_of_server(), findings_of_shard() and
 * findings_of_fences(), which are in files of their own and add findings to exam->findings. Then
 * the findings are sorted, worst first, and the health follows from the worst one.
 */
#include "examination.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"

/* Returns true if this process lacked descriptors to check one of the servers. */
static bool lacks_descriptors(const struct examination *exam)
{
    bool lacks = false;

    for (size_t i = 0; i < exam->count; i++)
        lacks = lacks || exam->troubles[i].cause == REDLOCK_CAUSE_NO_SOCKET ||
                exam->fence_troubles[i].cause == REDLOCK_CAUSE_NO_SOCKET ||
                (!exam->nodes[i].eligible && exam->nodes[i].cause == REDLOCK_CAUSE_NO_SOCKET);
    return lacks;
}

/* Returns true if this process could not check one of the servers. */
static bool is_incomplete(const struct examination *exam)
{
    bool incomplete = lacks_descriptors(exam);

    for (size_t i = 0; i < exam->count; i++)
        incomplete = incomplete || exam->troubles[i].unchecked || exam->fence_troubles[i].unchecked;
    return incomplete;
}

/* Sets exam->duplicate_of[] for all servers: the index of the first earlier server with the same
 * run id, or -1. Two addresses with the same run id lead to one server. */
static void find_duplicates(struct examination *exam)
{
    for (size_t i = 0; i < exam->count; i++) {
        exam->duplicate_of[i] = -1;
        for (size_t j = 0; j < i && exam->duplicate_of[i] < 0; j++)
            if (*exam->nodes[i].run_id && !strcmp(exam->nodes[i].run_id, exam->nodes[j].run_id))
                exam->duplicate_of[i] = (int)j;
    }
}

/* Searches the shard `other` for the server with this run id, and stores its address and shard in
 * *ret. Leaves *ret unchanged if it is not found, if `run_id` is empty, or if *ret is set already.
 */
static void find_elsewhere(const struct examination *other, const char *run_id,
                           struct elsewhere *ret)
{
    for (size_t i = 0; *run_id && !ret->node && i < other->count; i++)
        if (!strcmp(run_id, other->nodes[i].run_id))
            *ret = (struct elsewhere){other->nodes[i].node, other->shard_name};
}

/* Sets `elsewhere` of each server: the first server of another shard that has the same run id. */
void examination_compare(struct examination *exams, size_t shards)
{
    for (size_t shard = 0; shard < shards; shard++)
        for (size_t i = 0; i < exams[shard].count; i++)
            for (size_t other = 0; other < shards; other++)
                if (other != shard)
                    find_elsewhere(&exams[other], exams[shard].nodes[i].run_id,
                                   &exams[shard].elsewhere[i]);
}

/* Compares two uint64_t, for qsort(), so that the smaller one comes first. */
static int by_size(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* Sorts the values and returns the middle one, of an even number the upper of the two in the
 * middle; 0 if there are none. */
uint64_t median_of(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof values[0], by_size);
    return count ? values[count / 2] : 0;
}

/* Returns the median of the round trips of the servers that replied, in us; 0 if none did. */
static uint64_t median_rtt_us(const struct examination *exam)
{
    uint64_t times[REDLOCK_NODES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < exam->count; i++)
        if (exam->rtt_us[i])
            times[count++] = exam->rtt_us[i];
    return median_of(times, count);
}

/* Compares two findings, for qsort(): the worse one comes first; of two equally bad ones, the one
 * about the whole shard (node -1), and then the one about the earlier server. */
static int worst_first(const void *a, const void *b)
{
    const struct finding *left = a, *right = b;

    if (left->severity != right->severity)
        return left->severity > right->severity ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

/* Computes quorum, duplicates and the numbers of eligible and useful servers, makes all findings,
 * sorts them, worst first, and sets the health: UNKNOWN if the check is incomplete; OK if there are
 * only notes, else WARN or CRIT. */
void examination_judge(struct examination *exam)
{
    exam->quorum = exam->count / 2 + 1;
    exam->eligible = exam->useful = 0;
    exam->finding_count = 0;
    exam->health = HEALTH_OK;
    exam->incomplete = is_incomplete(exam);
    find_duplicates(exam);
    uint64_t median_us = median_rtt_us(exam);
    for (size_t i = 0; i < exam->count; i++) {
        exam->eligible += exam->nodes[i].eligible != 0;
        exam->useful += exam->nodes[i].eligible && !exam->troubles[i].cause;
        findings_of_server(exam, i, median_us);
    }
    findings_of_shard(exam);
    if (exam->fences)
        findings_of_fences(exam);
    qsort(exam->findings, exam->finding_count, sizeof exam->findings[0], worst_first);
    if (exam->incomplete)
        exam->health = HEALTH_UNKNOWN;
    else if (exam->finding_count > 0 && exam->findings[0].severity != FINDING_NOTE)
        exam->health = exam->findings[0].severity == FINDING_CRIT ? HEALTH_CRIT : HEALTH_WARN;
}

/* Returns the first critical finding about the whole shard; NULL if there is none, or if the check
 * is incomplete. */
const struct finding *examination_verdict_finding(const struct examination *exam)
{
    for (size_t i = 0; i < exam->finding_count && !exam->incomplete; i++)
        if (exam->findings[i].node < 0 && exam->findings[i].severity == FINDING_CRIT)
            return &exam->findings[i];
    return NULL;
}

/* Writes that the check is incomplete, or the text of the first critical finding about the whole
 * shard; if there is none, how many servers are eligible. */
void examination_verdict(const struct examination *exam, char *text, size_t size)
{
    const struct finding *finding = examination_verdict_finding(exam);

    if (exam->incomplete)
        snprintf(text, size, "the check is incomplete: %s",
                 lacks_descriptors(exam) ? "this process has too few descriptors or threads"
                                         : "this process could not start a client");
    else if (finding)
        snprintf(text, size, "%s", finding->text);
    else
        snprintf(text, size, "%zu of %zu servers are eligible, %zu required", exam->eligible,
                 exam->count, exam->quorum);
}

/* Returns the word for a severity: "note", "warn" or "crit". */
const char *severity_name(enum severity severity)
{
    static const char *const names[] = {"note", "warn", "crit"};

    return names[severity];
}
