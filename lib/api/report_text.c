/* SPDX-License-Identifier: MIT
 * The texts of a report: one for each node, and the line with the result. See report.c for what a
 * report contains. The client's mutex is held in all functions. */
#include "api/report_text.h"

#include "api/break.h"
#include "api/stats.h"
#include "core/cause.h"
#include "engine/seen.h"
#include "engine/status.h"

#include <stdio.h>
#include <string.h>

/* Writes to `text` (RL_TEXT_MAX bytes) what an inspection has found on a node. */
static void describe_seen(char *text, const struct rl_seen *seen, uint64_t max_ttl_ms)
{
    if (!seen->present)
        snprintf(text, RL_TEXT_MAX, "free");
    else if (seen->foreign_kind)
        snprintf(text, RL_TEXT_MAX, "key is not a string, so it is not a lock");
    else if (seen->pttl_ms < 0)
        snprintf(text, RL_TEXT_MAX, "held, never expires");
    else
        snprintf(text, RL_TEXT_MAX, "held, expires in %lld s%s",
                 ((long long)seen->pttl_ms + 999) / 1000,
                 (uint64_t)seen->pttl_ms > max_ttl_ms
                     ? ", longer than max_ttl: it is stuck, or another client's max_ttl is larger"
                     : "");
}

/* Writes to `text` (RL_TEXT_MAX bytes) what a verification has found on a node. */
static void describe_verified(char *text, const struct rl_seen *seen)
{
    if (!seen->ours)
        snprintf(text, RL_TEXT_MAX, "%s", seen->present ? "held by another client" : "key is gone");
    else if (seen->pttl_ms < 0)
        snprintf(text, RL_TEXT_MAX, "held with this token");
    else
        snprintf(text, RL_TEXT_MAX, "held with this token, expires in %lld ms",
                 (long long)seen->pttl_ms);
}

/* Returns whether the vote of node `i` does not count because the node is excluded: its grant was
 * not counted, or it was not asked. A denial counts in any case. */
bool rl_report_is_uncounted(const struct rl_round *round, unsigned i)
{
    rl_nodes bit = RL_NODE(i);

    return (round->excluded & bit) != 0 && (round->denied & bit) == 0 && round->cause[i] != 0;
}

/* Returns the nodes that were asked and whose reply is missing: of a round that the other replies
 * have decided, only the suspect ones. */
static rl_nodes awaited(const struct rl_round *round)
{
    bool removes = round->verb == RL_VERB_RELEASE || round->verb == RL_VERB_SHORTEN;
    rl_nodes without = round->failed | (removes ? 0 : round->denied | round->excluded);
    bool is_decided = rl_nodes_count(without) > (unsigned)(round->nodes - round->quorum) ||
                      rl_nodes_count(rl_round_counted(round)) >= round->quorum;
    rl_nodes pending = rl_round_pending(round);

    return is_decided ? pending & round->suspect : pending;
}

/* Returns the text for node `i`, which has given no vote. A reply that was not waited for says
 * nothing about the server. */
const char *rl_report_unanswered_text(const struct rl_round *round, unsigned i)
{
    if ((round->requested & RL_NODE(i)) == 0)
        return "not asked";
    return (awaited(round) & RL_NODE(i)) != 0 ? "no reply yet" : "decided without its reply";
}

/* Writes to `text` (RL_TEXT_MAX bytes) why node `i` was excluded, and to report->quarantine_ms[i]
 * for how long its quarantine still lasts. Returns false, with nothing written, if the node was not
 * excluded, if the reason has changed since, or if the client is closed. */
static bool describe_exclusion(char *text, struct redlock_report *report, unsigned i)
{
    const struct rl_round *round = &report->round;

    if (report->rl->closed || (round->failed & RL_NODE(i)) != 0 ||
        !rl_report_is_uncounted(round, i))
        return false;
    return rl_engine_exclusion_text(&report->shard->engine, i, round->cause[i], text, RL_TEXT_MAX,
                                    &report->quarantine_ms[i]);
}

/* Replaces `text` (RL_TEXT_MAX bytes), the reply of a server that the user may not access a key, by
 * one that names the key and the pattern that the user needs. Leaves other texts as they are. */
static void name_key(char *text, const struct redlock_report *report,
                     const struct redlock_lock *handle)
{
    const struct redlock_config *config = report->rl->config;
    bool fenced = rl_lock_terms(&handle->lock)->fence;
    const char *fence = fenced ? config->fence_key : "";

    if (strstr(text, " key") == NULL)
        return;
    int len =
        snprintf(text, RL_TEXT_MAX, "NOPERM the user may not access the key %.24s%.24s%s%.20s",
                 config->prefix, redlock_lock_resource(handle, 0), fenced ? " or " : "", fence);
    if (strpbrk(config->prefix, "*?[\\") == NULL) /* else a pattern would need escapes */
        snprintf(text + len, RL_TEXT_MAX - (size_t)len, ": allow ~%.24s*%s%.20s", config->prefix,
                 fenced ? " ~" : "", fence);
}

/* Writes to `text` (RL_TEXT_MAX bytes) what the vote of node `i` was. */
static void describe_vote(char *text, struct redlock_report *report,
                          const struct redlock_lock *handle, unsigned i)
{
    const struct rl_round *round = &report->round;
    rl_nodes bit = RL_NODE(i);
    bool denied = (round->denied & bit) != 0;

    if (describe_exclusion(text, report, i))
        return;
    if (round->failed & bit || rl_report_is_uncounted(round, i)) {
        if (report->rl->closed)
            snprintf(text, RL_TEXT_MAX, "%s", rl_cause_of(round->cause[i])->text);
        else
            rl_engine_failure_text(&report->shard->engine, i, round->cause[i], text, RL_TEXT_MAX);
        if (round->cause[i] == REDLOCK_CAUSE_NOPERM)
            name_key(text, report, handle);
    } else if (denied) {
        snprintf(text, RL_TEXT_MAX, "%s",
                 round->verb == RL_VERB_ACQUIRE ? "held by another client"
                                                : "not held with this token any more");
    } else if (round->granted & bit) {
        snprintf(text, RL_TEXT_MAX, "granted");
    } else {
        snprintf(text, RL_TEXT_MAX, "%s", rl_report_unanswered_text(round, i));
    }
}

/* Allocates report->texts, writes the text of each node, and sets report->quarantine_ms. Without
 * memory report->texts stays NULL. */
void rl_report_fill_texts(struct redlock_report *report, const struct redlock_lock *handle)
{
    unsigned nodes = report->round.nodes;
    const struct rl_seen *seen = rl_lock_seen(&handle->lock);

    report->texts = rl_alloc(&report->mem, (size_t)nodes * RL_TEXT_MAX);
    if (report->texts == NULL)
        return;
    memset(report->quarantine_ms, 0, sizeof report->quarantine_ms);
    for (unsigned i = 0; i < nodes; i++) {
        char *text = report->texts + (size_t)i * RL_TEXT_MAX;
        bool probed = seen != NULL && report->round.verb == RL_VERB_GET &&
                      ((report->round.granted | report->round.denied) & RL_NODE(i)) != 0;
        if (probed && handle->subject != NULL && !rl_report_is_uncounted(&report->round, i))
            describe_verified(text, &seen[i]);
        else if (probed && handle->subject == NULL)
            describe_seen(text, &seen[i], report->rl->config->max_ttl_ms);
        else
            describe_vote(text, report, handle, i);
    }
}

/* Returns whether the operation is a release that is sent to the servers. */
static bool removes_keys(const struct redlock_lock *handle)
{
    return handle->op.kind == RL_OP_RELEASE || handle->op.kind == RL_OP_RELEASE_TOKEN;
}

/* Returns the text for the operation of the handle, which has succeeded, such as "acquired". */
const char *rl_report_success_text(const struct redlock_report *report,
                                   const struct redlock_lock *handle)
{
    switch (handle->op.kind) {
    case RL_OP_ACQUIRE:
        return "acquired";
    case RL_OP_ADOPT:
        return "adopted";
    case RL_OP_EXTEND:
        return "extended";
    case RL_OP_UNRETAIN:
        return "still held";
    case RL_OP_VERIFY:
        return "verified";
    case RL_OP_INSPECT:
        return report->info.state == REDLOCK_STATE_HELD   ? "held"
               : report->info.state == REDLOCK_STATE_FREE ? "free"
                                                          : "unknown";
    case RL_OP_BREAK:
        return report->info.granted > 0 ? "broken" : "free";
    default:
        return "released";
    }
}

/* Returns what the servers that print_votes() counts have done or have, after "servers ". */
static const char *counted_text(const struct redlock_report *report,
                                const struct redlock_lock *handle)
{
    unsigned verb = report->round.verb;

    switch (handle->op.kind) {
    case RL_OP_INSPECT:
    case RL_OP_BREAK:
        return "replied";
    case RL_OP_VERIFY:
        return "have the lock";
    case RL_OP_ACQUIRE:
        if (verb == RL_VERB_NONE) /* in the queue: no server was asked yet */
            return "granted the lock";
        break;
    default:
        break;
    }
    switch (verb) {
    case RL_VERB_ACQUIRE:
        return "granted the lock";
    case RL_VERB_EXTEND:
        return "extended the lock";
    case RL_VERB_SHORTEN:
        return report->info.status == REDLOCK_OK ? "let the lock expire or do not have it"
                                                 : "released the lock";
    default:
        return report->info.status == REDLOCK_OK          ? "do not have the lock any more"
               : report->info.status == REDLOCK_ENOQUORUM ? "released the lock or do not have it"
                                                          : "released the lock";
    }
}

/* Returns how many servers have done what the operation needs, as counted_text() says. Of a release
 * these are all that are known not to have the key: those that have removed it now, those that did
 * not have it, and those that were known to be without it before; a repeated request finds no key
 * on a server that has removed it. */
static unsigned count_votes(const struct redlock_report *report, const struct redlock_lock *handle)
{
    const struct rl_round *round = &report->round;

    if (handle->op.kind == RL_OP_INSPECT || handle->op.kind == RL_OP_BREAK)
        return rl_nodes_count(round->granted | round->denied);
    if (report->info.status != REDLOCK_ELOST && removes_keys(handle))
        return rl_nodes_count(round->granted | round->denied | round->absent);
    return report->info.granted;
}

/* Writes to `to` (`size` bytes) how many servers have done what the operation needs, and how many
 * are required. Writes nothing about a success that the last round does not show: another round
 * has begun since, or a server was excluded. Returns the length that the whole text needs, as
 * snprintf() does. */
static int print_votes(char *to, size_t size, const struct redlock_report *report,
                       const struct redlock_lock *handle)
{
    unsigned count = count_votes(report, handle);
    bool settled = report->info.status == REDLOCK_OK;

    if (settled && handle->op.kind == RL_OP_UNRETAIN)
        return snprintf(to, size, ": released for one of its %llu users", handle->retained + 2ull);
    if (settled && handle->op.kind == RL_OP_BREAK) {
        bool deleted = report->info.granted > 0;
        return snprintf(to, size, ": %s %u of %u servers",
                        deleted ? "deleted on" : "nothing to delete on",
                        deleted ? report->info.granted : count, report->info.nodes);
    }
    bool shown = report->round.outcome == RL_OUTCOME_WON && count >= report->info.quorum;
    if (settled && !shown)
        return 0;
    int len = snprintf(to, size, ": %u of %u servers %s", count, report->info.nodes,
                       counted_text(report, handle));
    bool inspected = settled && handle->op.kind == RL_OP_INSPECT;
    if (inspected || len < 0 || (size_t)len >= size)
        return len;
    return len + snprintf(to + len, size - (size_t)len, ", %u required", report->info.quorum);
}

/* Writes to `to` (`size` bytes) what becomes of the keys on the servers that a release has not
 * heard from: nothing if there is no such server. Returns the length that the whole text needs, as
 * snprintf() does. */
static int print_left_keys(char *to, size_t size, const struct redlock_report *report,
                           const struct redlock_lock *handle)
{
    const struct rl_round *round = &report->round;
    rl_nodes left = rl_nodes_all(round->nodes) & ~(round->granted | round->denied | round->absent);

    if (left == 0)
        return 0;
    if (round->verb == RL_VERB_SHORTEN)
        return snprintf(to, size, "; on %u more it expires later", rl_nodes_count(left));
    uint64_t left_ms = report->rl->closed
                           ? RL_NEVER
                           : rl_engine_keys_left_ms(&report->shard->engine, &handle->lock, left);
    if (left_ms == RL_NEVER)
        return snprintf(to, size, "; on %u more it is deleted later", rl_nodes_count(left));
    return snprintf(to, size, "; on %u more it is deleted later, or expires within %llu ms",
                    rl_nodes_count(left), (unsigned long long)left_ms);
}

/* Writes the first part of the line to `to` (`size` bytes): the result, and which resource or slot
 * it is about. Returns the length that the whole text needs, as snprintf() does. */
static int print_status(char *to, size_t size, const struct redlock_report *report,
                        const struct redlock_lock *handle)
{
    int status = report->info.status;
    unsigned permits = rl_lock_terms(&handle->lock)->permits;
    const char *taken = status == REDLOCK_ECONTENDED ? rl_names_taken(handle) : NULL;
    const char *text =
        status == REDLOCK_OK ? rl_report_success_text(report, handle) : redlock_strerror(status);
    char which[128] = "";

    if (taken != NULL)
        snprintf(which, sizeof which, " ('%.80s')", taken);
    if (permits != 0 && status == REDLOCK_ECONTENDED)
        snprintf(which, sizeof which, ": all %u permits are taken; the slot tried last, %u",
                 permits, (unsigned)rl_lock_slot(&handle->lock));
    if (rl_lock_queue_end(&handle->lock) == RL_QUEUE_END_HOLDER && status == REDLOCK_ECONTENDED)
        return snprintf(to, size, "held by another lock of this client%s", which);
    if (rl_lock_queue_end(&handle->lock) == RL_QUEUE_END_WAITER)
        snprintf(which, sizeof which, "; for the lock ahead in the queue of this client");
    return snprintf(to, size, "%s%s", text, which);
}

/* Returns the nodes among `nodes`, from node `first` on, that have the text of node `first`. */
static rl_nodes same_text(const struct redlock_report *report, rl_nodes nodes, unsigned first)
{
    const char *text = report->texts + (size_t)first * RL_TEXT_MAX;
    rl_nodes same = 0;

    for (unsigned i = first; i < report->round.nodes; i++) {
        if ((nodes & RL_NODE(i)) != 0 && !strcmp(report->texts + (size_t)i * RL_TEXT_MAX, text))
            same |= RL_NODE(i);
    }
    return same;
}

/* Writes to `to` (`size` bytes) the names of the nodes, or how many they are if these are all, and
 * their common text. Returns the length that the whole text needs. */
static int print_group(char *to, int size, const struct redlock_report *report, rl_nodes nodes)
{
    unsigned first = (unsigned)__builtin_ctz(nodes);
    const char *text = report->texts + (size_t)first * RL_TEXT_MAX;
    int at = 0;

    if (report->round.nodes > 1 && nodes == rl_nodes_all(report->round.nodes))
        return snprintf(to, (size_t)size, "; all %u servers: %s", report->round.nodes, text);
    for (; nodes != 0 && at < size; nodes &= nodes - 1) {
        unsigned i = (unsigned)__builtin_ctz(nodes);
        at += snprintf(to + at, (size_t)(size - at), "%s%s", i == first ? "; " : ", ",
                       rl_shard_node_name(report->shard, i));
    }
    return at < size ? at + snprintf(to + at, (size_t)(size - at), ": %s", text) : at;
}

/* Appends to report->line, which has `at` bytes, the texts of `nodes`, each text once, as many as
 * fit. Notes the named nodes in report->in_line. */
static void append_texts(struct redlock_report *report, rl_nodes nodes, int at)
{
    int size = (int)sizeof report->line;

    while (nodes != 0 && at < size) {
        rl_nodes group = same_text(report, nodes, (unsigned)__builtin_ctz(nodes));
        int len = print_group(report->line + at, size - at, report, group);
        nodes &= ~group;
        if (len >= size - at) {
            report->line[at] = '\0'; /* this text does not fit: a shorter one may */
            continue;
        }
        at += len;
        report->in_line |= group;
    }
}

/* Writes report->line: the result and the count of votes; of a failure also the texts of the nodes
 * whose votes are missing, as many as fit. Notes these nodes in report->in_line. */
void rl_report_fill_line(struct redlock_report *report, const struct redlock_lock *handle)
{
    const struct rl_round *round = &report->round;
    int size = (int)sizeof report->line;

    int at = print_status(report->line, sizeof report->line, report, handle);
    if (rl_lock_queue_end(&handle->lock) == RL_QUEUE_END_HOLDER) {
        snprintf(report->line + at, (size_t)(size - at), "%s",
                 report->info.status == REDLOCK_ECONTENDED
                     ? "; no request was sent"
                     : ": a lock of this client holds it; no request was sent");
        return;
    }
    rl_nodes missing = round->failed;
    if (report->info.status == REDLOCK_ENOQUORUM || report->info.status == REDLOCK_ETOOSLOW)
        missing |= awaited(round);
    at += print_votes(report->line + at, (size_t)(size - at), report, handle);
    if (report->info.status == REDLOCK_OK && removes_keys(handle) && at < size)
        at += print_left_keys(report->line + at, (size_t)(size - at), report, handle);
    for (unsigned i = 0; i < round->nodes; i++)
        missing |= rl_report_is_uncounted(round, i) ? RL_NODE(i) : 0;
    if (report->texts != NULL && report->info.status != REDLOCK_OK)
        append_texts(report, missing, at);
}
