/* SPDX-License-Identifier: MIT
 * Taking back what was set. An undo goes out behind its own SET on the same connection, where it
 * cannot overtake it; what cannot be sent, or is not known to have been executed when a connection
 * ends, is owed and sent on the next one. Repeating is safe: every attempt has its own token. */
#include "node/undo.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

/* How soon what found no memory, or no room in the output, is tried again. */
#define SOON_NS (100 * RL_MS)

void rl_undos_init(struct rl_undos *undos, const struct rl_mem *mem)
{
    rl_undo_heap_init(&undos->heap, mem);
    undos->retry_ns = RL_NEVER;
    undos->dropped_until_ns = 0;
}

bool rl_undos_use_token(const struct rl_undos *undos, struct rl_arg token)
{
    for (size_t i = 0; i < undos->heap.count; i++) {
        if (rl_claim_has_token(undos->heap.list[i].claim, token))
            return true;
    }
    return false;
}

bool rl_undos_reserve(struct rl_node *node)
{
    uint64_t in_flight = rl_pipeline_count(&node->pipe);

    return rl_undo_heap_reserve(&node->undos.heap, node->undos.heap.count + (size_t)in_flight + 1);
}

/* True while the node may still execute a request of an earlier connection that creates or prolongs
 * the key: a stopped server reads it when it goes on, be that days later. A server that was greeted
 * since has read it, or has given it up. */
static bool may_be_executed(const struct rl_node *node, const struct rl_claim *claim)
{
    return (claim->maybe_executed & RL_NODE(node->index)) != 0 &&
           claim->renewed_ns >= rl_connection_greeted_ns(&node->conn);
}

void rl_undos_note_read(const struct rl_node *node, struct rl_claim *claim)
{
    if ((claim->maybe_executed & RL_NODE(node->index)) == 0)
        return;
    claim->maybe_executed &= ~RL_NODE(node->index);
    claim->renewed_ns = rl_max_u64(claim->renewed_ns, rl_connection_greeted_ns(&node->conn));
}

static uint64_t ttl_ns_of(const struct rl_node *node, uint64_t ttl_ns)
{
    return rl_add_sat(ttl_ns, rl_drift_ns(ttl_ns, &node->common->admission.drift));
}

/* Returns when the key has expired on this node, or RL_NEVER if that is not known. It depends on
 * when the key was last created or prolonged, and not on when, or how often, its undo is tried. */
static uint64_t expiry_ns(const struct rl_node *node, struct rl_claim *claim)
{
    if (may_be_executed(node, claim))
        return RL_NEVER;
    rl_undos_note_read(node, claim);
    return rl_add_sat(claim->renewed_ns, ttl_ns_of(node, claim->ttl_max_ms * RL_MS));
}

/* The caller of a release has had his answer; the owner of the client hears of it from the
 * statistics, and when he shuts it down. */
static void drop_undo(struct rl_node *node, uint64_t expires_ns, uint64_t now_ns)
{
    if (node->undos.dropped_until_ns <= now_ns)
        rl_logf(node->common->log, REDLOCK_LOG_WARN,
                "%s: out of memory for pending undos; their keys stay until they expire",
                node->name);
    node->undos.dropped_until_ns = rl_max_u64(node->undos.dropped_until_ns, expires_ns);
    node->common->inbox.undos[RL_UNDO_DROPPED]++;
}

void rl_undos_add(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns)
{
    rl_node_replan(node);
    if (rl_undos_has(claim, node->index))
        return;
    uint64_t expires_ns = expiry_ns(node, claim);
    if (expires_ns <= now_ns) {
        node->common->inbox.undos[RL_UNDO_EXPIRED]++;
        return;
    }
    if (!rl_undo_heap_reserve(&node->undos.heap, node->undos.heap.count + 1)) {
        drop_undo(node, expires_ns, now_ns);
        return;
    }
    claim->undo_pending |= RL_NODE(node->index);
    rl_undo_heap_push(&node->undos.heap, rl_claim_ref(claim), expires_ns);
}

void rl_undos_retry(struct rl_node *node, struct rl_claim *claim, uint64_t delay_ns,
                    uint64_t now_ns)
{
    rl_undos_add(node, claim, now_ns);
    node->undos.retry_ns = rl_min_u64(node->undos.retry_ns, rl_add_sat(now_ns, delay_ns));
}

static void settle(const struct rl_node *node, struct rl_claim *claim)
{
    claim->undo_pending &= ~RL_NODE(node->index);
    rl_claim_drop(claim);
}

void rl_undos_review(struct rl_node *node)
{
    struct rl_undo_heap *undos = &node->undos.heap;

    for (size_t i = 0; i < undos->count; i++) {
        struct rl_undo *undo = &undos->list[i];
        if (undo->expires_ns == RL_NEVER || may_be_executed(node, undo->claim))
            undo->expires_ns = expiry_ns(node, undo->claim);
    }
    rl_undo_heap_sort(undos);
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
    enum rl_form form = claim->more_keys != 0 ? RL_FORM_MANY : RL_FORM_SHA;

    if (verb == RL_VERB_RELEASE && claim->more_keys == 0)
        form = rl_features_release_form(&node->features, rl_eligibility_info(&node->eligibility),
                                        round != 0);
    return rl_node_send_request(node, claim, round, verb, form, now_ns);
}

static void send_pending(struct rl_node *node, uint64_t now_ns)
{
    struct rl_undo_heap *undos = &node->undos.heap;

    rl_node_replan(node);
    while (undos->count > 0 && rl_connection_is_ready(&node->conn) &&
           !rl_pipeline_is_full(&node->pipe)) {
        if (!send_undo(node, undos->list[undos->count - 1].claim, 0, now_ns))
            break;
        settle(node, rl_undo_heap_pop_last(undos));
    }
    /* What is left waits for memory, or for room in the output. */
    node->undos.retry_ns = undos->count == 0 ? RL_NEVER : rl_add_sat(now_ns, SOON_NS);
}

void rl_undos_greeted(struct rl_node *node, uint64_t now_ns)
{
    if (node->undos.dropped_until_ns == RL_NEVER)
        node->undos.dropped_until_ns =
            rl_add_sat(now_ns, ttl_ns_of(node, node->common->admission.max_ttl_ns));
    rl_undos_review(node);
    send_pending(node, now_ns);
}

void rl_undos_expire(struct rl_node *node, uint64_t now_ns)
{
    if (rl_undo_heap_first_ns(&node->undos.heap) > now_ns)
        return;
    while (rl_undo_heap_first_ns(&node->undos.heap) <= now_ns) {
        settle(node, rl_undo_heap_pop_first(&node->undos.heap));
        node->common->inbox.undos[RL_UNDO_EXPIRED]++;
    }
    rl_undos_free_unused(node);
}

void rl_undos_free_unused(struct rl_node *node)
{
    if (node->undos.heap.count == 0 && rl_pipeline_count(&node->pipe) == 0)
        rl_undo_heap_trim(&node->undos.heap);
}

void rl_undos_free(struct rl_node *node)
{
    while (node->undos.heap.count > 0)
        settle(node, rl_undo_heap_pop_last(&node->undos.heap));
    rl_undo_heap_free(&node->undos.heap);
}

void rl_undos_tick(struct rl_node *node, uint64_t now_ns)
{
    if (rl_connection_is_ready(&node->conn) && node->undos.retry_ns <= now_ns)
        send_pending(node, now_ns);
}

uint64_t rl_undos_first_due_ns(const struct rl_node *node)
{
    uint64_t first_ns = rl_undo_heap_first_ns(&node->undos.heap);

    return rl_connection_is_ready(&node->conn) ? rl_min_u64(node->undos.retry_ns, first_ns)
                                               : first_ns;
}

enum rl_vote rl_node_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          uint64_t now_ns, int *ret_cause)
{
    if (claim->renewed_ns == 0) /* another client set the key, at the latest now */
        claim->renewed_ns = now_ns;
    if (rl_pipeline_may_hold(&node->pipe, claim->requested_ns)) {
        bool unheard_of = rl_pipeline_cut(&node->pipe, claim);
        rl_features_retry(&node->features);
        if (unheard_of)
            return RL_VOTE_DENIED;
    }
    /* While a connection is being made, a release waits in its pipeline like any request. */
    bool connecting = !rl_connection_is_ready(&node->conn) && rl_node_is_up(node);
    if ((!rl_connection_is_ready(&node->conn) && !connecting) || rl_pipeline_is_full(&node->pipe)) {
        rl_undos_retry(node, claim, SOON_NS, now_ns);
        *ret_cause = rl_connection_cause(&node->conn) != REDLOCK_CAUSE_NONE
                         ? rl_connection_cause(&node->conn)
                         : REDLOCK_CAUSE_DISCONNECT;
        return RL_VOTE_FAILED;
    }
    (void)rl_undos_reserve(node); /* if the answer does not come; without memory it is sent, too */
    if (!send_undo(node, claim, round, now_ns)) {
        rl_undos_retry(node, claim, SOON_NS, now_ns);
        *ret_cause = REDLOCK_CAUSE_NO_MEMORY;
        return RL_VOTE_FAILED;
    }
    return RL_VOTE_NONE;
}

unsigned rl_node_undos_pending(const struct rl_node *node)
{
    return (unsigned)node->undos.heap.count + rl_pipeline_count_undos(&node->pipe);
}
