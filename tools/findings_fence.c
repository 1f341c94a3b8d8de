/* SPDX-License-Identifier: MIT
 * Makes the findings of `redlock nodes --fence`: about the fence record of each server, and whether
 * enough servers take part in fenced locks.
 */
#include "findings.h"

/* Returns true if durable fence records are configured but server `i` is not listed with
 * ?durable=1. Its fence record then does not count. */
static bool is_unattested(const struct examination *exam, size_t i)
{
    uint32_t facts = exam->nodes[i].facts;

    return exam->durable_records && !(facts & REDLOCK_FACT_DURABLE);
}

/* Returns the number of servers for which the inspection gave the result `seen`. */
static size_t count_records(const struct examination *exam, enum record_seen seen)
{
    size_t count = 0;

    for (size_t i = 0; i < exam->count; i++)
        count += exam->records[i] == seen;
    return count;
}

/* Returns true if the fence record of server `i` is a gap. If a fenced lock was tried on it, its
 * reply decides. Else a missing record is a gap only if another server has one: if no server has
 * one, the first fenced lock creates them all. */
static bool is_gap(const struct examination *exam, size_t i)
{
    const struct trouble *trouble = &exam->fence_troubles[i];

    if (trouble->cause == REDLOCK_CAUSE_FENCE_RECORD)
        return trouble->record == REDLOCK_RECORD_MISSING;
    return !trouble->cause && exam->records[i] == RECORD_MISSING &&
           count_records(exam, RECORD_THERE) > 0;
}

/* Returns true if the fence record of server `i` may be in use: nothing is known against it, or too
 * few other records are in use. */
static bool may_have_record(const struct examination *exam, size_t i)
{
    const struct trouble *trouble = &exam->fence_troubles[i];

    return !is_gap(exam, i) && (!trouble->cause || trouble->record == REDLOCK_RECORD_IN_USE);
}

/* Returns the advice for a fence record that is a gap. If a quorum of the servers has a record, a
 * client that holds a fenced lock restores the gap; else only an operator can. */
static const char *advice_for_gap(const struct examination *exam)
{
    size_t usable = 0;

    for (size_t i = 0; i < exam->count; i++)
        usable += may_have_record(exam, i);
    return usable < exam->quorum
               ? "stop all clients that use fencing tokens, then: redlock nodes --init"
               : "hold a fenced lock for longer than max-ttl, which writes it: redlock run --fence "
                 "NAME -- sleep SECONDS";
}

/* Adds a finding if server `i` is eligible, but takes no part in fenced locks. */
static void check_fence(struct examination *exam, size_t i)
{
    const struct trouble *trouble = &exam->fence_troubles[i];

    if (!exam->nodes[i].eligible)
        return;
    if (is_unattested(exam, i))
        finding_add(exam, FINDING_WARN, (int)i, "fence_unattested",
                    "list it with ?durable=1, or set fence-records = volatile for all clients",
                    "its fence record is not attested as durable");
    else if (trouble->unchecked || trouble->cause == REDLOCK_CAUSE_NO_SOCKET)
        finding_add(exam, FINDING_WARN, (int)i, remedy_of(trouble->cause, trouble->text)->code,
                    remedy_of(trouble->cause, trouble->text)->advice, "%s", trouble->text);
    else if (trouble->cause == REDLOCK_CAUSE_NOPERM)
        finding_add(exam, FINDING_WARN, (int)i, "noperm",
                    "give the user the rights that redlock nodes --acl --fence prints", "%s",
                    trouble->text);
    else if (is_gap(exam, i))
        finding_add(exam, FINDING_WARN, (int)i, "fence_missing", advice_for_gap(exam), "%s",
                    trouble->cause ? trouble->text : "has no fence record, or has lost it");
    else if (trouble->cause == REDLOCK_CAUSE_FENCE_RECORD &&
             trouble->record == REDLOCK_RECORD_IN_USE)
        finding_add(exam, FINDING_WARN, (int)i, "fence_record",
                    "see the findings about the other servers", "%s", trouble->text);
    else if (trouble->cause == REDLOCK_CAUSE_ERROR_REPLY)
        finding_add(exam, FINDING_WARN, (int)i, "fence_record",
                    "look at its fence-key (TYPE, HGETALL), and at the rights that redlock nodes "
                    "--acl --fence prints",
                    "%s", trouble->text);
    else if (trouble->cause)
        finding_add(
            exam, FINDING_WARN, (int)i, "fence_record",
            "give all clients the same servers, prefix, max-ttl, fence-key and fence-records; if "
            "they have them: redlock nodes --init",
            "%s", trouble->text);
}

/* Adds the findings about fences: for each server, and for the shard if fewer servers than a quorum
 * take part in fenced locks (`fit` of them do) or if no server has a fence record yet. */
void findings_of_fences(struct examination *exam)
{
    bool any = count_records(exam, RECORD_THERE) > 0;
    size_t fit = 0;

    for (size_t i = 0; i < exam->count; i++) {
        check_fence(exam, i);
        fit += exam->nodes[i].eligible && !exam->troubles[i].cause &&
               !exam->fence_troubles[i].cause && !is_unattested(exam, i) && !is_gap(exam, i);
    }
    if (exam->incomplete)
        return;
    if (fit < exam->quorum)
        finding_add(exam, FINDING_CRIT, -1, "no_fences", "see the findings about the servers",
                    "%zu of %zu servers take part in fenced locks, %zu required", fit, exam->count,
                    exam->quorum);
    else if (!any && count_records(exam, RECORD_MISSING) > 0)
        finding_add(exam, FINDING_NOTE, -1, "fence_new",
                    "nothing: the first fenced lock creates them, if all servers reply",
                    "no server has a fence record yet, so the right to write one was not tested");
}
