/* SPDX-License-Identifier: MIT
 * Reports: fills them with the votes of an operation, and hands them out. report_text.c formats the
 * texts. A report is a copy: of the last round (struct rl_round), in which each bit of `granted`,
 * `denied` and `failed` stands for the vote of one node; and, for an inspection or verification, of
 * what was seen on each node (struct rl_seen: whether there is a key, its value and its time to
 * live). handle->subject is set for a verification only, and handle->breaking for a break only. */
#include "api/report.h"

#include "api/break.h"
#include "api/report_line.h"
#include "api/report_text.h"
#include "api/stats.h"
#include "core/cause.h"
#include "engine/seen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Returns the time to live, in ms, of the key that was seen on a node; UINT64_MAX: no key, or it
 * never expires. */
static uint64_t pttl_of(const struct rl_seen *seen)
{
    return seen->present && seen->pttl_ms >= 0 ? (uint64_t)seen->pttl_ms : UINT64_MAX;
}

/* Returns the enum redlock_key of what was seen on a node. */
static uint8_t key_of(const struct rl_seen *seen)
{
    if (!seen->present)
        return REDLOCK_KEY_ABSENT;
    if (seen->foreign_kind)
        return REDLOCK_KEY_FOREIGN;
    return seen->pttl_ms < 0 ? REDLOCK_KEY_PERSISTENT : REDLOCK_KEY_EXPIRES;
}

/* Returns the enum redlock_record for the state of a fence record. */
static uint8_t record_of(enum rl_record_state state)
{
    switch (state) {
    case RL_RECORD_ADMITTED:
        return REDLOCK_RECORD_IN_USE;
    case RL_RECORD_MISSING:
    case RL_RECORD_OLD_RUN:
        return REDLOCK_RECORD_MISSING;
    case RL_RECORD_FOREIGN:
        return REDLOCK_RECORD_FOREIGN;
    case RL_RECORD_CORRUPT:
        return REDLOCK_RECORD_CORRUPT;
    case RL_RECORD_UNATTESTED:
        return REDLOCK_RECORD_UNATTESTED;
    case RL_RECORD_UNKNOWN:
        break;
    }
    return REDLOCK_RECORD_UNKNOWN;
}

/* Copies the owner label of the token that was seen on a node to `to`, which has RL_OWNER_MAX + 1
 * bytes. The label follows the '@' behind the RL_TOKEN_HEX hex digits of a token. Copies "" if the
 * token was not made by this library, so that nothing of it is shown. */
static void copy_owner(char *to, const struct rl_seen *seen)
{
    size_t at = RL_TOKEN_HEX + 1;
    bool ours = seen->value != NULL && seen->len >= at && seen->value[at - 1] == '@';

    (void)rl_report_copy_owner(to, ours ? (struct rl_arg){seen->value + at, seen->len - at}
                                        : (struct rl_arg){NULL, 0});
}

/* Returns the enum redlock_state that an inspection has found. `seen`: what each node has,
 * round->nodes elements. Held: a quorum of nodes has the same value. Free: no value can be on a
 * quorum, whatever the nodes without a reply have. Otherwise unknown. */
static int32_t judge_state(const struct rl_round *round, const struct rl_seen *seen)
{
    unsigned best = 0;
    unsigned answered = rl_nodes_count(round->granted | round->denied);

    for (unsigned i = 0; i < round->nodes; i++) {
        unsigned same = 0;
        for (unsigned j = 0; j < round->nodes; j++)
            same += seen[i].foreign_kind ? seen[j].foreign_kind : rl_seen_same(&seen[i], &seen[j]);
        best = same > best ? same : best;
    }
    if (best >= round->quorum)
        return REDLOCK_STATE_HELD;
    return best + (round->nodes - answered) < round->quorum ? REDLOCK_STATE_FREE
                                                            : REDLOCK_STATE_UNKNOWN;
}

/* Fills in report->record: the states of the fence records, for each node whose vote failed because
 * of its record. */
static void fill_records(struct redlock_report *report)
{
    const struct rl_round *round = &report->round;

    for (rl_nodes rest = report->rl->closed ? 0 : round->failed; rest != 0; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctz(rest);
        if (round->cause[i] == REDLOCK_CAUSE_FENCE_RECORD)
            report->record[i] = record_of(rl_records_state(&report->shard->engine, i));
    }
}

/* Fills in what an inspection or a verification has seen on each node: the kind of the key and its
 * time to live. For an inspection also allocates and fills report->owners and report->waiters, and
 * judges the state of the lock. */
static void fill_seen(struct redlock_report *report, const struct redlock_lock *handle)
{
    const struct rl_seen *seen = rl_lock_seen(&handle->lock);
    unsigned nodes = report->round.nodes;

    report->has_seen = seen != NULL;
    if (seen == NULL)
        return;
    for (unsigned i = 0; i < nodes; i++) {
        bool answered = ((report->round.granted | report->round.denied) & RL_NODE(i)) != 0;
        report->pttl_ms[i] = pttl_of(&seen[i]);
        report->key[i] = answered ? key_of(&seen[i]) : REDLOCK_KEY_UNKNOWN;
        report->info.line_servers += seen[i].knows_line;
    }
    if (handle->subject != NULL)
        return;
    if (report->info.status == REDLOCK_OK)
        report->info.state = judge_state(&report->round, seen);
    report->owners = rl_alloc(&report->mem, (size_t)nodes * (RL_OWNER_MAX + 1));
    for (unsigned i = 0; report->owners != NULL && i < nodes; i++)
        copy_owner(report->owners + (size_t)i * (RL_OWNER_MAX + 1), &seen[i]);
    rl_report_fill_waiters(report, rl_seen_line(&handle->shard->engine, &handle->lock));
}

/* Fills a report, usually on the caller's stack, with the evidence of the operation that ended on
 * `handle` with `status`. `success`: the text of a report on an event with REDLOCK_OK, a constant;
 * NULL: the report is on the operation, which handle->op still describes. The report has no
 * references. rl_report_done() frees what this function allocates. Without memory the texts or
 * owners are missing. Mutex held. */
void rl_report_fill(struct redlock_report *report, struct redlock_client *rl,
                    const struct redlock_lock *handle, int status, const char *success)
{
    const struct rl_lock *lock = &handle->lock;
    struct rl_now now = rl_engine_now(&handle->shard->engine);
    const struct rl_progress progress = rl_lock_progress(lock, now);

    memset(&report->info, 0, sizeof report->info);
    report->rl = rl;
    report->shard = handle->shard;
    report->mem = rl->mem;
    atomic_init(&report->refs, 0);
    report->texts = report->owners = NULL;
    report->waiters = NULL;
    report->success = NULL;
    report->line[0] = '\0';
    report->in_line = 0;
    memset(report->record, 0, sizeof report->record);
    const struct rl_round *round =
        handle->breaking != NULL ? &handle->breaking->merged : rl_lock_evidence(lock);
    rl_round_init(&report->round, round->nodes, round->quorum, report->rtt_us, report->cause);
    rl_round_copy(&report->round, round);
    report->info.status = status;
    report->info.shard = handle->shard->config->name;
    report->info.node_first = handle->shard->config->first;
    report->info.nodes = round->nodes;
    report->info.quorum = round->quorum;
    report->info.granted = rl_nodes_count(rl_round_counted(&report->round));
    report->info.attempts = progress.attempts;
    report->info.rounds = progress.rounds;
    report->info.waited_us = progress.waited_ns / RL_US;
    report->info.elapsed_us = progress.elapsed_ns / RL_US;
    report->info.line_place = progress.line_place;
    report->info.line_length = progress.line_length;
    uint64_t remaining_ns = handle->subject != NULL
                                ? rl_lock_remaining_ns(&handle->subject->lock, now)
                                : progress.remaining_ns;
    report->info.validity_ms = remaining_ns / RL_MS;
    fill_seen(report, handle);
    fill_records(report);
    /* A success gets a short line: formatting the whole one would cost a quarter of the time that
     * an acquire and a release need. */
    if (status == REDLOCK_OK && rl_lock_seen(&handle->lock) == NULL && handle->breaking == NULL) {
        report->success = success != NULL ? success : rl_report_success_text(report, handle);
        return;
    }
    rl_report_fill_texts(report, handle);
    rl_report_fill_line(report, handle);
}

/* Frees what rl_report_fill() has allocated, but not the report. */
void rl_report_done(struct redlock_report *report)
{
    rl_free(&report->mem, report->texts);
    rl_free(&report->mem, report->owners);
    rl_free(&report->mem, report->waiters);
    report->texts = report->owners = NULL;
    report->waiters = NULL;
}

/* Creates a report with one reference, which the user owns, for the operation that ended on
 * `handle` with `status`. Returns NULL without memory. Mutex held. */
redlock_report_t *rl_report_new(struct redlock_client *rl, const struct redlock_lock *handle,
                                int status)
{
    struct redlock_report *report = rl_alloc(&rl->mem, sizeof *report);

    if (report == NULL)
        return NULL;
    rl_report_fill(report, rl, handle, status, NULL);
    if (report->texts == NULL)
        rl_report_fill_texts(report, handle);
    report->success = NULL;
    rl_report_fill_line(report, handle);
    atomic_init(&report->refs, 1);
    rl_client_ref(rl);
    return report;
}

/* Returns the constant report of a call that could not enter the client because of `error`; NULL if
 * there is none for this error. */
redlock_report_t *rl_report_of_entry(int error)
{
    static const struct redlock_report reports[] = {
        {.info.status = REDLOCK_EFORKED,
         .line = "handle is from before fork(): create a new client in the child"},
        {.info.status = REDLOCK_EMODE, .line = "not available in this mode"},
        {.info.status = REDLOCK_EDEADLK, .line = "blocking call in a callback"},
        {.info.status = REDLOCK_ECLOSED, .line = "client is shutting down"},
    };

    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
        if (reports[i].info.status == error)
            return (redlock_report_t *)(uintptr_t)&reports[i]; /* no call writes to it */
    return NULL;
}

/* Refuses a call with `status` and a text in the form of printf(). Stores a report with the text,
 * which the user owns, in *ret; NULL without memory. If `ret` is NULL, logs the text of an EINVAL
 * instead, on this thread. Returns `status`. Mutex held, but released while the log function runs.
 */
int rl_report_refuse(struct redlock_client *rl, redlock_report_t **ret, int status, const char *fmt,
                     ...)
{
    va_list args;

    if (ret == NULL) {
        /* An asynchronous call returns no report, so the reason goes to the log, before the call
         * returns: callers connect the two. */
        char line[sizeof((struct redlock_report *)0)->line];
        va_start(args, fmt);
        vsnprintf(line, sizeof line, fmt, args);
        va_end(args);
        if (status != REDLOCK_EINVAL)
            return status;
        rl_client_unlock(rl); /* the log function may be slow */
        rl_log_now(&rl->log, REDLOCK_LOG_ERROR, "refused: %s", line);
        pthread_mutex_lock(&rl->mutex);
        return status;
    }
    struct redlock_report *report = rl_alloc(&rl->mem, sizeof *report);
    *ret = report;
    if (report == NULL)
        return status;
    report->mem = rl->mem;
    report->info.status = status;
    report->rl = rl_client_ref(rl);
    atomic_init(&report->refs, 1);
    va_start(args, fmt);
    vsnprintf(report->line, sizeof report->line, fmt, args);
    va_end(args);
    return status;
}

/* Public function: copies the outcome of the operation to *ret_info of `size` bytes. Returns
 * REDLOCK_OK, or REDLOCK_EINVAL if an argument is NULL or `size` is 0. */
REDLOCK_API int redlock_report_get_info(const redlock_report_t *report,
                                        redlock_report_info_t *ret_info, size_t size)
{
    if (report == NULL)
        return REDLOCK_EINVAL;
    return rl_copy_out(ret_info, size, &report->info, sizeof report->info);
}

/* Returns the enum redlock_vote of node `i`. */
static int32_t vote_of(const struct rl_round *round, unsigned i)
{
    rl_nodes bit = RL_NODE(i);

    if (round->granted & bit)
        return round->excluded & bit ? REDLOCK_VOTE_UNCOUNTED : REDLOCK_VOTE_GRANTED;
    if (round->denied & bit)
        return REDLOCK_VOTE_DENIED;
    return (round->failed | round->suspect) & bit ? REDLOCK_VOTE_FAILED : REDLOCK_VOTE_NONE;
}

/* Public function: copies what was learned of node `index` to *ret_node of `size` bytes. Without
 * memory for texts the strings are constants. Returns REDLOCK_OK; or REDLOCK_EINVAL if an argument
 * is NULL, `size` is 0 or there is no such node. */
REDLOCK_API int redlock_report_get_node(const redlock_report_t *report, size_t index,
                                        redlock_node_report_t *ret_node, size_t size)
{
    if (report == NULL || index >= report->info.nodes)
        return REDLOCK_EINVAL;
    unsigned i = (unsigned)index;
    const struct rl_round *round = &report->round;
    int32_t vote = vote_of(round, i);
    bool plain = vote == REDLOCK_VOTE_NONE || vote == REDLOCK_VOTE_GRANTED;
    int32_t cause =
        plain && !rl_report_is_uncounted(round, i) ? REDLOCK_CAUSE_NONE : round->cause[i];
    const char *words = vote == REDLOCK_VOTE_GRANTED  ? "granted"
                        : vote == REDLOCK_VOTE_DENIED ? "denied"
                        : vote == REDLOCK_VOTE_NONE && !rl_report_is_uncounted(round, i)
                            ? rl_report_unanswered_text(round, i)
                            : rl_cause_of(cause)->text;
    const redlock_node_report_t node = {
        .node = rl_shard_node_name(report->shard, i),
        .vote = vote,
        .cause = cause,
        .rtt_us = round->rtt_us[i],
        .pttl_ms = report->has_seen ? report->pttl_ms[i] : UINT64_MAX,
        .owner = report->owners != NULL ? report->owners + index * (RL_OWNER_MAX + 1) : "",
        .text = report->texts != NULL ? report->texts + index * RL_TEXT_MAX : words,
        .quarantine_ms = report->texts != NULL ? report->quarantine_ms[i] : 0,
        .key = report->has_seen ? report->key[i] : REDLOCK_KEY_UNKNOWN,
        .record = cause == REDLOCK_CAUSE_FENCE_RECORD ? report->record[i] : REDLOCK_RECORD_UNKNOWN,
        .in_text = (report->in_line & RL_NODE(i)) != 0,
    };
    return rl_copy_out(ret_node, size, &node, sizeof node);
}

/* Public function: returns the report as one line; "" for NULL. The report owns the text. */
REDLOCK_API const char *redlock_report_text(const redlock_report_t *report)
{
    if (report == NULL)
        return "";
    return report->success != NULL ? report->success : report->line;
}

/* Returns a copy of a block of `size` bytes, in new memory; NULL if `from` is NULL. Without memory,
 * returns NULL and sets *failed. */
static void *copy_block(const struct rl_mem *mem, const void *from, size_t size, bool *failed)
{
    void *copy = from != NULL ? rl_alloc(mem, size) : NULL;

    if (copy != NULL)
        memcpy(copy, from, size);
    *failed = *failed || (from != NULL && copy == NULL);
    return copy;
}

/* Copies a report that has no references into a new one with one reference, which the user owns.
 * Returns NULL without memory. */
static struct redlock_report *copy_report(const struct redlock_report *from)
{
    const struct rl_mem *mem = &from->mem;
    struct redlock_report *copy = rl_alloc(mem, sizeof *copy);
    size_t nodes = from->round.nodes;
    bool failed = false;

    if (copy == NULL)
        return NULL;
    memcpy(copy, from, sizeof *copy);
    copy->texts = copy_block(mem, from->texts, nodes * RL_TEXT_MAX, &failed);
    copy->owners = copy_block(mem, from->owners, nodes * (RL_OWNER_MAX + 1), &failed);
    copy->waiters = copy_block(mem, from->waiters, from->waiters_size, &failed);
    if (failed) {
        rl_report_done(copy);
        rl_free(mem, copy);
        return NULL;
    }
    rl_round_init(&copy->round, (unsigned)nodes, from->round.quorum, copy->rtt_us, copy->cause);
    rl_round_copy(&copy->round, &from->round);
    atomic_init(&copy->refs, 1);
    rl_client_ref(copy->rl);
    return copy;
}

/* Public function: returns a further reference to a report. A report that is borrowed in a callback
 * is copied instead; a constant is returned as it is. Returns NULL for NULL or without memory. */
REDLOCK_API redlock_report_t *redlock_report_ref(const redlock_report_t *report)
{
    struct redlock_report *counted = (struct redlock_report *)(uintptr_t)report;

    if (report == NULL || report->rl == NULL)
        return counted; /* a constant is never freed */
    if (atomic_load_explicit(&report->refs, memory_order_relaxed) == 0)
        return copy_report(report);
    atomic_fetch_add_explicit(&counted->refs, 1, memory_order_relaxed);
    return counted;
}

/* Public function: drops a reference to a report; the last one frees the report. Ignores NULL and
 * reports that have no references. */
REDLOCK_API void redlock_report_free(redlock_report_t *report)
{
    if (report == NULL || atomic_load_explicit(&report->refs, memory_order_relaxed) == 0)
        return;
    if (atomic_fetch_sub_explicit(&report->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct redlock_client *rl = report->rl;
    struct rl_mem mem = report->mem;
    rl_report_done(report);
    rl_free(&mem, report);
    rl_client_drop(rl);
}
