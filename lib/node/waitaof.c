/* SPDX-License-Identifier: MIT
 * Votes that count when they are on disk: for a node that is listed with waitaof=1. What it granted
 * is kept until a WAITAOF that was sent behind it has been answered with "yes".
 *
 * WAITAOF stops the connection: whatever is sent behind it waits, with `appendfsync everysec` up to
 * a second. So it is asked in short pieces: what is sent meanwhile runs between two of them, and is
 * covered by the same sync. There is one at a time for all grants together, it goes out only when
 * something was granted, and behind all else that the tick has to say: it vouches for every command
 * before it. Answers come in order, so all that is kept when one is answered was asked before it.
 */
#include "core/rule.h"
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <string.h>

/* How long a node's disk may take: with everysec a second and the time of two syncs, the one that
 * was under way and the next. */
#define DISK_MS 3000
/* One piece. A server looks at its time limits when it wakes up, at the latest with its own timer,
 * ten times a second unless `hz` is set, and once a second at the least. */
#define PIECE        "*4\r\n$7\r\nWAITAOF\r\n$1\r\n1\r\n$1\r\n0\r\n$2\r\n20\r\n"
#define PIECE_NS     (20 * RL_MS)
#define PIECE_MAX_NS RL_SECOND

/* A node that may take longer for any answer may take as long for its disk. */
static uint64_t disk_ns(const struct rl_node *node)
{
    return rl_max_u64(DISK_MS * RL_MS, node->common->node_timeout_ns);
}

/* Whoever relies on the answer relies on it after a restart, too. What is given back may come
 * again: it expires. */
static bool must_survive(const struct rl_request *request)
{
    switch (request->verb) {
    case RL_VERB_ACQUIRE:
    case RL_VERB_EXTEND:
    case RL_VERB_SHORTEN: /* it may as well lengthen */
    case RL_VERB_HEAL:
    case RL_VERB_RAISE:
    case RL_VERB_SEED:
        return true;
    default:
        return false;
    }
}

bool rl_waitaof_keep(struct rl_node *node, const struct rl_request *request,
                     const struct rl_answer *answer)
{
    if (answer->vote != RL_VOTE_GRANTED || !must_survive(request) || request->told ||
        request->round == 0 || request->claim->owner == NULL || !RL_RULE(COUNT_ON_DISK))
        return false;
    struct rl_request kept = *request;
    kept.number = answer->number;
    kept.accepted = answer->accepted;
    kept.record = answer->record;
    rl_pipeline_keep(&node->pipe, &kept);
    node->failures = 0;
    node->common->listener.dirty(node->common->listener.ctx, node);
    return true;
}

static void tell(struct rl_node *node, const struct rl_request *request, enum rl_vote vote,
                 int cause, uint64_t now_ns)
{
    const struct rl_answer answer = {
        .vote = vote,
        .cause = cause,
        .accepted = request->accepted,
        .record = request->record,
        .number = request->number,
    };

    node->counters.granted += vote == RL_VOTE_GRANTED;
    node->counters.errors += vote == RL_VOTE_FAILED;
    uint64_t rtt_us = rl_sub_sat(now_ns, request->sent_ns) / RL_US;
    rl_node_give_vote(node, request, &answer, NULL, rl_max_u64(rtt_us, 1));
    rl_claim_drop(request->claim);
}

void rl_waitaof_fail(struct rl_node *node, int cause, uint64_t now_ns)
{
    struct rl_request request;

    while (rl_pipeline_take(&node->pipe, &request))
        tell(node, &request, RL_VOTE_FAILED, cause, now_ns);
}

void rl_waitaof_send(struct rl_node *node, uint64_t now_ns)
{
    struct rl_request request = {.sent_ns = now_ns, .verb = RL_VERB_WAITAOF};

    if (node->waitaof.sent || node->waitaof.due_ns > now_ns)
        return;
    /* What asks for the time waits for no disk. */
    if (rl_watch_due_ns(node) <= now_ns)
        rl_watch_send(node, now_ns);
    rl_node_replan(node);
    node->waitaof.place = node->pipe.tail;
    node->waitaof.sent_ns = now_ns;
    node->waitaof.sent = rl_pipeline_push(&node->pipe, &request, PIECE, sizeof PIECE - 1);
    if (!node->waitaof.sent)
        rl_waitaof_fail(node, REDLOCK_CAUSE_NO_MEMORY, now_ns);
}

/* All that was kept is on disk; what is granted by the votes that follow from that is not. */
static void tell_all(struct rl_node *node, uint64_t now_ns)
{
    struct rl_request request;

    while (rl_pipeline_take(&node->pipe, &request))
        tell(node, &request, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, now_ns);
}

/* Not yet. The oldest are first; for the others it is asked once more. */
static void tell_late(struct rl_node *node, uint64_t now_ns)
{
    struct rl_request request;
    char text[RL_TEXT_MAX];

    while (node->pipe.kept != node->pipe.head &&
           rl_add_sat(rl_pipeline_at(&node->pipe, node->pipe.kept)->sent_ns, disk_ns(node)) <=
               now_ns) {
        int len = snprintf(text, sizeof text,
                           "granted, but not on disk after %llu ms: is appendfsync everysec or "
                           "always?",
                           (unsigned long long)(disk_ns(node) / RL_MS));
        rl_node_set_text(node, text, (size_t)len);
        (void)rl_pipeline_take(&node->pipe, &request);
        tell(node, &request, RL_VOTE_FAILED, REDLOCK_CAUSE_NOT_ON_DISK, now_ns);
    }
    /* A server that does not wait is not asked the faster for it. */
    node->waitaof.due_ns = rl_add_sat(node->waitaof.sent_ns, PIECE_NS);
    rl_waitaof_tick(node, now_ns);
}

uint64_t rl_waitaof_due_ns(const struct rl_node *node)
{
    bool waits = node->state == RL_NODE_READY && node->pipe.kept != node->pipe.head;

    return waits && !node->waitaof.sent ? node->waitaof.due_ns : RL_NEVER;
}

void rl_waitaof_tick(struct rl_node *node, uint64_t now_ns)
{
    if (rl_waitaof_due_ns(node) <= now_ns)
        node->common->listener.dirty(node->common->listener.ctx, node);
}

void rl_waitaof_answer(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    int cause = rl_wire_waitaof_cause(reply);

    rl_node_replan(node);
    node->waitaof.sent = false;
    node->waitaof.answered_ns = now_ns;
    if (cause == REDLOCK_CAUSE_PROTOCOL) {
        rl_node_close(node, REDLOCK_CAUSE_PROTOCOL, "reply of the wrong type", true, now_ns);
        return;
    }
    if (cause == REDLOCK_CAUSE_NO_AOF)
        rl_watch_hurry(node);
    if (cause == REDLOCK_CAUSE_NONE) {
        tell_all(node, now_ns);
    } else if (cause == REDLOCK_CAUSE_NOT_ON_DISK) {
        tell_late(node, now_ns);
    } else {
        rl_node_set_text(node, reply->text, reply->len);
        rl_waitaof_fail(node, cause, now_ns);
    }
    if (node->state == RL_NODE_READY)
        rl_silence_review(node, now_ns);
}

uint64_t rl_waitaof_clock_ns(const struct rl_node *node, uint64_t at)
{
    uint64_t sent_ns = rl_pipeline_at(&node->pipe, at)->sent_ns;

    if (at < node->pipe.head)
        return rl_add_sat(sent_ns, disk_ns(node));
    if (node->waitaof.sent && at >= node->waitaof.place)
        return rl_max_u64(sent_ns, rl_add_sat(node->waitaof.sent_ns, PIECE_MAX_NS));
    return rl_max_u64(sent_ns, node->waitaof.answered_ns);
}
