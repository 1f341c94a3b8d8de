/* SPDX-License-Identifier: MIT
 * Votes that count when they are on disk: for a node that is listed with waitaof=1. What it granted
 * is kept until a WAITAOF that was sent behind it has been answered with "yes".
 *
 * WAITAOF stops the connection: whatever is sent behind it waits, with `appendfsync everysec` up to
 * a second. So there is one at a time for all grants together, it goes out only when something was
 * granted, and behind all else that the tick has to say: it vouches for every command before it.
 * For the same reason all grants that are kept when it is answered were asked before it: the
 * answers to what came behind it have not come yet. */
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <string.h>

/* How long a node's disk may take: with everysec a second and the time of the sync. */
#define DISK_MS 2000

/* A node that may take longer for any answer may take as long for its disk. */
static uint64_t disk_ms(const struct rl_node *node)
{
    return rl_max_u64(DISK_MS, node->common->node_timeout_ns / RL_MS);
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
        request->round == 0 || request->claim->owner == NULL)
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
    char ms[24], bytes[96];

    if (node->waitaof.sent)
        return;
    /* What asks for the time waits for no disk. */
    if (rl_watch_due_ns(node) <= now_ns)
        rl_watch_send(node, now_ns);
    int ms_len = snprintf(ms, sizeof ms, "%llu", (unsigned long long)disk_ms(node));
    int len = snprintf(bytes, sizeof bytes,
                       "*4\r\n$7\r\nWAITAOF\r\n$1\r\n1\r\n$1\r\n0\r\n$%d\r\n%s\r\n", ms_len, ms);
    node->waitaof.place = node->pipe.tail;
    node->waitaof.sent_ns = now_ns;
    node->waitaof.sent = rl_pipeline_push(&node->pipe, &request, bytes, (size_t)len);
    if (!node->waitaof.sent)
        rl_waitaof_fail(node, REDLOCK_CAUSE_NO_MEMORY, now_ns);
}

static void set_text(struct rl_node *node, const struct rl_reply *reply)
{
    char text[RL_TEXT_MAX];

    if (reply->kind == RL_REPLY_ERROR) {
        rl_node_set_text(node, reply->text, reply->len);
        return;
    }
    int len = snprintf(text, sizeof text,
                       "granted, but not on disk after %llu ms: is appendfsync everysec or always?",
                       (unsigned long long)disk_ms(node));
    rl_node_set_text(node, text, (size_t)len);
}

void rl_waitaof_answer(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    int cause = rl_wire_waitaof_cause(reply);

    node->waitaof.sent = false;
    node->waitaof.answered_ns = now_ns;
    if (cause == REDLOCK_CAUSE_PROTOCOL) {
        rl_node_close(node, REDLOCK_CAUSE_PROTOCOL, "reply of the wrong type", true, now_ns);
        return;
    }
    if (cause == REDLOCK_CAUSE_NONE) {
        struct rl_request request;
        while (rl_pipeline_take(&node->pipe, &request))
            tell(node, &request, RL_VOTE_GRANTED, REDLOCK_CAUSE_NONE, now_ns);
    } else {
        set_text(node, reply);
        if (cause == REDLOCK_CAUSE_NO_AOF)
            rl_watch_hurry(node);
        rl_waitaof_fail(node, cause, now_ns);
    }
    if (node->state == RL_NODE_READY)
        rl_silence_review(node, now_ns);
}

uint64_t rl_waitaof_clock_ns(const struct rl_node *node, uint64_t at)
{
    uint64_t sent_ns = rl_pipeline_at(&node->pipe, at)->sent_ns;
    bool waits = node->waitaof.sent && (at >= node->waitaof.place || at < node->pipe.head);

    if (waits)
        return rl_max_u64(sent_ns, rl_add_sat(node->waitaof.sent_ns, disk_ms(node) * RL_MS));
    return rl_max_u64(sent_ns, node->waitaof.answered_ns);
}
