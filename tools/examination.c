/* SPDX-License-Identifier: MIT
 * Makes the findings of `redlock nodes` about one shard, and the verdict. examination_judge() is
 * called once all servers have been probed. It calls one check_...() function for each subject.
 * Each of them adds findings to exam->findings. Then the findings are sorted, worst first, and the
 * health follows from the worst one. Where a function has a parameter `i`, that is the index of one
 * server in the arrays of struct examination. exam->troubles[i] is set if that server failed to
 * grant, extend or release the probe's lock; exam->fence_troubles[i] if it took no part in a fenced
 * lock.
 */
#include "examination.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A server whose clock differs by more than this from the clock of this machine is a finding. */
#define CLOCK_APART_US INT64_C(60000000)
/* A server is slow if its round trip exceeds both SLOW_FROM_US and SLOW_FACTOR times the median of
 * the shard. */
#define SLOW_FACTOR  10
#define SLOW_FROM_US 5000

/* Adds a finding to exam->findings; drops it if the array is full. `node` is the index of the
 * server, or -1 for the whole shard. `code` and `advice` are constants that live for ever. `format`
 * and what follows make the text of the finding, as with printf(). */
static void __attribute__((format(printf, 6, 7)))
add_finding(struct examination *exam, enum severity severity, int node, const char *code,
            const char *advice, const char *format, ...)
{
    va_list values;

    if (exam->finding_count == FINDINGS_MAX)
        return;
    struct finding *finding = &exam->findings[exam->finding_count++];
    *finding = (struct finding){.severity = severity, .node = node, .code = code, .advice = advice};
    va_start(values, format);
    vsnprintf(finding->text, sizeof finding->text, format, values);
    va_end(values);
}

/* What to do about one cause why the votes of a server do not count. */
struct remedy {
    int cause;                 /* enum redlock_cause */
    const char *code, *advice; /* code and advice of the finding, as in struct finding */
};

/* Returns the remedy for a cause; for a cause without one of its own, the remedy "no_vote". Never
 * NULL. The text of the finding, which explains the cause, comes from the library. */
static const struct remedy *remedy_of(int cause)
{
    static const struct remedy remedies[] = {
        {REDLOCK_CAUSE_TIMEOUT, "unresponsive",
         "check whether the server hangs or its machine is overloaded"},
        {REDLOCK_CAUSE_RESOLVE, "resolve",
         "check the name in the list of servers, and the name service"},
        {REDLOCK_CAUSE_CONNECT, "connect", "start the server, or check address and firewall"},
        {REDLOCK_CAUSE_DISCONNECT, "disconnect", "read the server's log: it closed the connection"},
        {REDLOCK_CAUSE_PROTOCOL, "protocol",
         "make sure that a Redis or Valkey server is at that address, without TLS"},
        {REDLOCK_CAUSE_AUTH, "auth", "check user and password"},
        {REDLOCK_CAUSE_NOPERM, "noperm",
         "give the user the rights that redlock nodes --acl prints"},
        {REDLOCK_CAUSE_READONLY, "readonly", "list its master instead"},
        {REDLOCK_CAUSE_REPLICA, "replica",
         "list its master instead; a replica may lack the newest keys"},
        {REDLOCK_CAUSE_LOADING, "loading", "wait until the server has loaded its data"},
        {REDLOCK_CAUSE_RESTARTED, "restarted",
         "wait (redlock nodes --wait); a server that loses no keys in a restart (appendfsync "
         "always) may be listed with ?durable=1"},
        {REDLOCK_CAUSE_PROMOTED, "promoted",
         "restart it without its data, and use no fail-over: until then each new client begins the "
         "quarantine anew"},
        {REDLOCK_CAUSE_EVICTING, "evicting",
         "set maxmemory-policy to noeviction: eviction removes locks"},
        {REDLOCK_CAUSE_DUPLICATE, "duplicate", "remove one of the two addresses"},
        {REDLOCK_CAUSE_CLOCK_STEP, "clock_step", "wait, and have the clock slewed, not stepped"},
        {REDLOCK_CAUSE_NO_INFO, "no_info", "allow the user +info (redlock nodes --acl)"},
        {REDLOCK_CAUSE_OOM, "memory_full", "raise maxmemory, or use a server for locks alone"},
        {REDLOCK_CAUSE_CLUSTER, "cluster", "use servers without cluster mode"},
        {REDLOCK_CAUSE_NO_SOCKET, "descriptors", "raise ulimit -n of this process"},
    };
    static const struct remedy other = {0, "no_vote", "read the server's log"};

    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (remedies[i].cause == cause)
            return &remedies[i];
    return &other;
}

/* Records that a server could not be checked because this process could not start a client. */
void trouble_incomplete(struct trouble *trouble, int error)
{
    trouble->cause = REDLOCK_CAUSE_NO_SOCKET;
    snprintf(trouble->text, sizeof trouble->text, "could not be checked: %s",
             error == REDLOCK_ESYS ? "this process has too few descriptors or threads"
                                   : redlock_strerror(error));
}

/* Returns true if this process lacked descriptors to check one of the servers. */
static bool is_incomplete(const struct examination *exam)
{
    bool lacks = false;

    for (size_t i = 0; i < exam->count; i++)
        lacks = lacks || exam->troubles[i].cause == REDLOCK_CAUSE_NO_SOCKET ||
                exam->fence_troubles[i].cause == REDLOCK_CAUSE_NO_SOCKET ||
                (!exam->nodes[i].eligible && exam->nodes[i].cause == REDLOCK_CAUSE_NO_SOCKET);
    return lacks;
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

/* Adds one finding about server `i` if it is listed twice, is excluded, or failed in the probe (in
 * this order; only the first that applies). */
static void check_vote(struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    const struct trouble *trouble = &exam->troubles[i];
    const struct remedy *remedy = remedy_of(node->cause);

    if (exam->duplicate_of[i] >= 0)
        add_finding(exam, FINDING_CRIT, (int)i, "duplicate", "remove one of the two",
                    "same server as %s", exam->nodes[exam->duplicate_of[i]].node);
    else if (!node->eligible)
        add_finding(exam, node->cause == REDLOCK_CAUSE_DUPLICATE ? FINDING_CRIT : FINDING_WARN,
                    (int)i, remedy->code, remedy->advice, "%s",
                    *node->text ? node->text : "no reply yet");
    else if (trouble->cause)
        add_finding(exam, FINDING_WARN, (int)i, remedy_of(trouble->cause)->code,
                    remedy_of(trouble->cause)->advice, "%s", trouble->text);
}

/* Adds findings about server `i` whose data a restart or a fail-over would lose: append-only file,
 * replicas, and the attributes ?durable=1 and ?fresh=1 of its address. If the server gave no reply
 * to INFO, only that is a finding, because nothing else is known. */
static void check_data(struct examination *exam, size_t i)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    bool durable = node->facts & REDLOCK_FACT_DURABLE, aof = node->facts & REDLOCK_FACT_AOF;

    if (!(node->facts & REDLOCK_FACT_INFO)) {
        if (node->eligible)
            add_finding(
                exam, FINDING_WARN, (int)i, "no_info", "allow the user +info (redlock nodes --acl)",
                "does not report its identity: restarts, evictions and replicas are not detected");
        return;
    }
    if (node->facts & REDLOCK_FACT_AOF_FAILING)
        add_finding(exam, FINDING_WARN, (int)i, "aof_failing", "check its disk and its log",
                    "fails to write its append-only file: a restart loses keys");
    if (durable && !aof)
        add_finding(exam, FINDING_CRIT, (int)i, "not_durable",
                    "remove ?durable=1, or set appendonly yes and appendfsync always",
                    "listed as durable, but keeps no append-only file");
    else if (!durable && !aof)
        add_finding(exam, FINDING_NOTE, (int)i, "no_aof",
                    "optional: appendonly yes with appendfsync always, and ?durable=1",
                    "keeps no append-only file: after a restart it is in quarantine for max_ttl");
    if (node->replicas > 0)
        add_finding(
            exam, FINDING_WARN, (int)i, "replicas",
            "do not fail over to a replica behind this address: it may lack the newest keys",
            "%" PRIu32 " replica%s attached", node->replicas,
            node->replicas == 1 ? " is" : "s are");
    if (node->facts & REDLOCK_FACT_FRESH && node->uptime_s > 3600)
        add_finding(exam, FINDING_NOTE, (int)i, "fresh", "remove ?fresh=1 from its address",
                    "listed as fresh, but up for %" PRIu64 " s", node->uptime_s);
}

/* Adds a finding if another shard lists server `i`, too. Exclusion is not at risk, because a name
 * belongs to one shard only; but both shards lose a vote together. */
static void check_elsewhere(struct examination *exam, size_t i)
{
    const struct elsewhere *elsewhere = &exam->elsewhere[i];

    if (elsewhere->node)
        add_finding(
            exam, FINDING_WARN, (int)i, "shared",
            "give each shard its own servers: if this one fails, both shards lose a vote, and it "
            "keeps the fence record of one of them only",
            "same server as %s of shard %s", elsewhere->node, elsewhere->shard);
}

/* Adds a finding if server `i` sends no notifications. It is only a note, because locks work
 * without notifications: waiters poll. */
static void check_notifications(struct examination *exam, size_t i)
{
    const struct notify_check *check = &exam->notify[i];
    bool lacks_right = check->cause == REDLOCK_CAUSE_NOPERM;

    if (check->state == NOTIFY_REFUSED)
        add_finding(exam, FINDING_NOTE, (int)i, "no_notifications",
                    lacks_right
                        ? "optional: give the user the rights that redlock nodes --acl prints"
                        : "optional: use a server with CLIENT TRACKING (Redis 6, Valkey)",
                    "sends no notification to waiters when a lock is released: %s", check->text);
    else if (check->state == NOTIFY_NOT_RECEIVED)
        add_finding(
            exam, FINDING_NOTE, (int)i, "no_notifications",
            "check whether a proxy drops the push messages of CLIENT TRACKING",
            "sends no notification to waiters when a lock is released, although it accepted CLIENT "
            "TRACKING");
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

/* Adds findings about server `i`: its clock differs much from ours, or its round trip is long.
 * `median_us` is the median of the shard's round trips. */
static void check_time(struct examination *exam, size_t i, uint64_t median_us)
{
    const redlock_node_stats_t *node = &exam->nodes[i];
    int64_t offset_us = node->clock_offset_us;

    if (offset_us > CLOCK_APART_US || offset_us < -CLOCK_APART_US)
        add_finding(exam, FINDING_WARN, (int)i, "clock_apart",
                    "synchronise the clocks; slew them while locks are held",
                    "its clock is %" PRId64 " s %s the clock of this machine",
                    (offset_us < 0 ? -offset_us : offset_us) / 1000000,
                    offset_us < 0 ? "behind" : "ahead of");
    if (exam->rtt_us[i] > SLOW_FROM_US && exam->rtt_us[i] > SLOW_FACTOR * median_us)
        add_finding(exam, FINDING_NOTE, (int)i, "slow",
                    "nothing: a quorum does not wait for the slowest server",
                    "its round trip is %" PRIu64 " times the median", exam->rtt_us[i] / median_us);
}

/* Adds the findings about the whole shard: a server is listed twice, too few servers are eligible
 * or grant locks, no server is in reserve, or the number of servers is unwise. If the check is
 * incomplete, nothing is known of how many grant locks. */
static void check_shard(struct examination *exam)
{
    bool duplicates = false, known = !exam->incomplete;

    for (size_t i = 0; i < exam->count; i++)
        duplicates = duplicates || exam->duplicate_of[i] >= 0 ||
                     exam->nodes[i].cause == REDLOCK_CAUSE_DUPLICATE;
    if (duplicates)
        add_finding(exam, FINDING_CRIT, -1, "duplicate", "remove one of its addresses",
                    "a server is listed twice: no lock can be acquired until that is repaired");
    if (known && exam->eligible < exam->quorum)
        add_finding(exam, FINDING_CRIT, -1, "no_quorum", "see the findings about the servers",
                    "%zu of %zu servers are eligible, %zu required: no lock can be acquired",
                    exam->eligible, exam->count, exam->quorum);
    else if (known && exam->useful < exam->quorum)
        add_finding(exam, FINDING_CRIT, -1, "no_quorum", "see the findings about the servers",
                    "%zu of %zu servers grant, extend and release locks, %zu required",
                    exam->useful, exam->count, exam->quorum);
    else if (known && exam->useful == exam->quorum && exam->useful < exam->count)
        add_finding(exam, FINDING_WARN, -1, "no_reserve",
                    "repair another server before you stop one",
                    "only a bare majority is eligible: if one more fails, no lock can be acquired");
    if (exam->count == 1)
        add_finding(exam, FINDING_WARN, -1, "one_server", "use three or five",
                    "one server: if it fails, all locks are lost");
    else if (exam->count % 2 == 0)
        add_finding(exam, FINDING_WARN, -1, "even", "use an odd number",
                    "an even number of servers tolerates no more failures than one server less");
}

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
        add_finding(exam, FINDING_WARN, (int)i, "fence_unattested",
                    "list it with ?durable=1, or set fence-records = volatile for all clients",
                    "its fence record is not attested as durable");
    else if (trouble->cause == REDLOCK_CAUSE_NO_SOCKET)
        add_finding(exam, FINDING_WARN, (int)i, remedy_of(trouble->cause)->code,
                    remedy_of(trouble->cause)->advice, "%s", trouble->text);
    else if (trouble->cause == REDLOCK_CAUSE_NOPERM)
        add_finding(exam, FINDING_WARN, (int)i, "noperm",
                    "give the user the rights that redlock nodes --acl --fence prints", "%s",
                    trouble->text);
    else if (is_gap(exam, i))
        add_finding(exam, FINDING_WARN, (int)i, "fence_missing", advice_for_gap(exam), "%s",
                    trouble->cause ? trouble->text : "has no fence record, or has lost it");
    else if (trouble->cause == REDLOCK_CAUSE_FENCE_RECORD &&
             trouble->record == REDLOCK_RECORD_IN_USE)
        add_finding(exam, FINDING_WARN, (int)i, "fence_record",
                    "see the findings about the other servers", "%s", trouble->text);
    else if (trouble->cause)
        add_finding(
            exam, FINDING_WARN, (int)i, "fence_record",
            "give all clients the same servers, prefix, max-ttl, fence-key and fence-records; if "
            "they have them: redlock nodes --init",
            "%s", trouble->text);
}

/* Adds the findings about fences: for each server, and for the shard if fewer servers than a quorum
 * take part in fenced locks (`fit` of them do) or if no server has a fence record yet. */
static void check_fences(struct examination *exam)
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
        add_finding(exam, FINDING_CRIT, -1, "no_fences", "see the findings about the servers",
                    "%zu of %zu servers take part in fenced locks, %zu required", fit, exam->count,
                    exam->quorum);
    else if (!any && count_records(exam, RECORD_MISSING) > 0)
        add_finding(exam, FINDING_NOTE, -1, "fence_new",
                    "nothing: the first fenced lock creates them, if all servers reply",
                    "no server has a fence record yet, so the right to write one was not tested");
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
        check_vote(exam, i);
        check_data(exam, i);
        check_elsewhere(exam, i);
        check_notifications(exam, i);
        check_time(exam, i, median_us);
    }
    check_shard(exam);
    if (exam->fences)
        check_fences(exam);
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
        snprintf(text, size, "the check is incomplete: this process has too few descriptors");
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
