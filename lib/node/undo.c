/* SPDX-License-Identifier: MIT
 * Taking back what was set. An undo goes out behind its own SET on the same connection, where it
 * cannot overtake it; what cannot be sent, or is not known to have been executed when a connection
 * ends, is owed and sent on the next one. Repeating is safe: every attempt has its own token. */
#include "core/rule.h"
#include "node/node_parts.h"
#include "redlock/redlock.h"

/* How soon an undo that was answered with an error (loading, busy) is tried again. */
#define RETRY_NS RL_SECOND

static bool is_pointless(const struct rl_debt *debt, uint64_t now_ns)
{
    return debt->expires_ns <= now_ns;
}

static void forget_debt(struct rl_node *node, unsigned at)
{
    rl_claim_drop(node->debts[at].claim);
    node->debts[at] = node->debts[--node->debt_count];
}

bool rl_debts_has(const struct rl_node *node, const struct rl_claim *claim)
{
    for (unsigned i = 0; i < node->debt_count; i++) {
        if (node->debts[i].claim == claim)
            return true;
    }
    return false;
}

void rl_debts_add(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns)
{
    uint64_t ttl_ns = claim->ttl_max_ms * RL_MS;

    if (rl_debts_has(node, claim))
        return;
    if (node->debt_count == RL_DEBTS_MAX) {
        /* The one that expires first matters least. */
        unsigned oldest = 0;
        for (unsigned i = 1; i < node->debt_count; i++) {
            if (node->debts[i].expires_ns < node->debts[oldest].expires_ns)
                oldest = i;
        }
        rl_logf(node->common->log, REDLOCK_LOG_WARN,
                "%s: more than %d undos are waiting for this node; one key will stay until it "
                "expires",
                node->name, RL_DEBTS_MAX);
        node->common->listener.undone(node->common->listener.ctx, node, false);
        forget_debt(node, oldest);
    }
    uint64_t life_ns = rl_add_sat(ttl_ns, rl_drift_ns(ttl_ns, &node->common->admission.drift));
    node->debts[node->debt_count++] = (struct rl_debt){
        .claim = rl_claim_ref(claim),
        .expires_ns = rl_add_sat(now_ns, life_ns),
    };
}

void rl_debts_expire(struct rl_node *node, uint64_t now_ns)
{
    for (unsigned i = 0; i < node->debt_count;) {
        if (is_pointless(&node->debts[i], now_ns)) {
            node->common->listener.undone(node->common->listener.ctx, node, false);
            forget_debt(node, i);
        } else {
            i++;
        }
    }
}

/* After release_after the key shall stay until a fixed time: what is left of it by now. */
static enum rl_verb undo_verb(struct rl_claim *claim, uint64_t now_ns)
{
    if (claim->undo_verb != RL_VERB_SHORTEN)
        return RL_VERB_RELEASE;
    uint64_t left_ms = rl_sub_sat(claim->keep_until_ns, now_ns) / RL_MS;
    if (left_ms == 0)
        return RL_VERB_RELEASE;
    claim->ttl_ms = left_ms;
    return RL_VERB_SHORTEN;
}

static bool send_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round, uint64_t now_ns)
{
    enum rl_verb verb = undo_verb(claim, now_ns);
    enum rl_form form = claim->more != 0 ? RL_FORM_EVAL : RL_FORM_SHA;

    if (verb == RL_VERB_RELEASE && claim->more == 0) {
        unsigned wanted = RL_FEATURE_DELEX | RL_FEATURE_DELIFEQ;
        unsigned known = node->features & wanted;
        unsigned likely = rl_info_features(&node->info) & wanted & ~node->missing & ~node->trying;
        /* A command that the server has not shown to know is tried where somebody waits for the
         * answer, so that the fallback follows in the same round. */
        unsigned use = known != 0 ? known : round != 0 ? likely : 0;
        node->trying |= known != 0 ? 0 : use;
        if (use != 0)
            form = use == RL_FEATURE_DELEX ? RL_FORM_DELEX : RL_FORM_DELIFEQ;
    }
    return rl_node_send_request(node, claim, round, verb, form, now_ns);
}

void rl_debts_flush(struct rl_node *node, uint64_t now_ns)
{
    while (node->debt_count > 0 && node->state == RL_NODE_READY &&
           node->pipe.out_len < RL_UNSENT_MAX) {
        struct rl_claim *claim = node->debts[node->debt_count - 1].claim;
        if (!send_undo(node, claim, 0, now_ns)) {
            node->debts_due_ns = now_ns + RETRY_NS / 10; /* no memory: soon again */
            return;
        }
        forget_debt(node, node->debt_count - 1);
    }
    /* What is left waits for room in the output. */
    node->debts_due_ns = node->debt_count == 0 ? RL_NEVER : now_ns + RETRY_NS / 10;
}

uint64_t rl_debts_wake_ns(const struct rl_node *node)
{
    if (node->debt_count == 0)
        return RL_NEVER;
    if (node->state == RL_NODE_READY)
        return node->debts_due_ns;
    uint64_t wake = RL_NEVER;
    for (unsigned i = 0; i < node->debt_count; i++)
        wake = rl_min_u64(wake, node->debts[i].expires_ns);
    return wake;
}

enum rl_vote rl_node_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          uint64_t now_ns, int *ret_cause)
{
    rl_pipeline_forget(&node->pipe, claim); /* a vote that was kept is of no use any more */
    bool maybe_unsent = node->pipe.out_len > 0 && claim->asked_ns >= node->pipe.unsent_since_ns;
    if (maybe_unsent) {
        bool unheard_of = rl_pipeline_cut(&node->pipe, claim);
        node->trying = 0; /* what was to be tried may have been cut: try again */
        if (unheard_of)
            return RL_VOTE_DENIED;
    }
    /* While a connection is being made, a release waits in its pipeline like any request. */
    bool connecting = node->state != RL_NODE_READY && rl_node_is_up(node);
    if ((node->state != RL_NODE_READY && !connecting) || node->pipe.out_len >= RL_UNSENT_MAX) {
        rl_debts_add(node, claim, now_ns);
        if (node->state == RL_NODE_READY)
            node->debts_due_ns = now_ns + RETRY_NS / 10;
        *ret_cause = node->cause != REDLOCK_CAUSE_NONE ? node->cause : REDLOCK_CAUSE_DISCONNECT;
        return RL_VOTE_FAILED;
    }
    if (!RL_RULE(UNDO_SAME_CONNECTION) && node->state == RL_NODE_READY) {
        rl_debts_add(node, claim, now_ns);
        node->due_ns = now_ns; /* closes, and the undo goes out on the next connection */
        *ret_cause = REDLOCK_CAUSE_DISCONNECT;
        return RL_VOTE_FAILED;
    }
    if (!send_undo(node, claim, round, now_ns)) {
        rl_debts_add(node, claim, now_ns);
        node->debts_due_ns = now_ns + RETRY_NS / 10;
        *ret_cause = REDLOCK_CAUSE_NO_MEMORY;
        return RL_VOTE_FAILED;
    }
    return RL_VOTE_NONE;
}

unsigned rl_node_undos_pending(const struct rl_node *node)
{
    unsigned pending = node->debt_count;

    for (uint64_t i = node->pipe.head; i != node->pipe.tail; i++) {
        const struct rl_request *request = rl_pipeline_at(&node->pipe, i);
        pending += request->verb == RL_VERB_RELEASE || request->verb == RL_VERB_SHORTEN;
    }
    return pending;
}
