/* SPDX-License-Identifier: MIT
 * Sends undos, and keeps those that cannot be sent or were not confirmed. An undo is sent after its
 * SET on the same connection, so it cannot overtake the SET. If the connection ends before the
 * reply, the undo is sent again on the next one. That is safe, because every attempt has its own
 * token. */
#include "node/undo.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

/* Delay of the next try after there was no memory, or no room in the output. */
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

/* Returns true while the server may still execute a request of an earlier connection that creates
 * the key or resets its TTL. A stopped server reads such a request when it is resumed, even days
 * later. A server that was greeted since then has executed or dropped it. */
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

/* Returns how long a key with this TTL can exist, as measured here: the TTL and the drift. */
static uint64_t ttl_ns_of(const struct rl_node *node, uint64_t ttl_ns)
{
    return rl_add_sat(ttl_ns, rl_drift_ns(ttl_ns, &node->common->admission.drift));
}

/* Returns when the key has expired on this node (boot clock), or RL_NEVER if that is not known. It
 * depends on when the key was created or its TTL was reset last. Tries of its undo do not move it.
 */
static uint64_t expiry_ns(const struct rl_node *node, struct rl_claim *claim)
{
    if (may_be_executed(node, claim))
        return RL_NEVER;
    rl_undos_note_read(node, claim);
    return rl_add_sat(claim->renewed_ns, ttl_ns_of(node, claim->ttl_max_ms * RL_MS));
}

/* Counts an undo that there is no memory for, and logs it once until `dropped_until_ns`. The result
 * of a release was returned to the caller before. The statistics and redlock_shutdown() report the
 * dropped undo. */
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

/* Ends a pending undo that was taken out of the heap: it was sent, or its key has expired. Drops
 * the claim reference of the heap. */
static void end_pending(const struct rl_node *node, struct rl_claim *claim)
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

/* Returns the verb of the undo. After a delayed release that is SHORTEN, with the time that is left
 * as claim->ttl_ms; once no time is left, it is RELEASE. */
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

/* Appends the undo to the pipeline, in the form that suits the server. Returns false without
 * memory.
 */
static bool send_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round, uint64_t now_ns)
{
    enum rl_verb verb = undo_verb(claim, now_ns);
    enum rl_form form = claim->more_keys != 0 ? RL_FORM_MANY : RL_FORM_SHA;

    if (verb == RL_VERB_RELEASE && claim->more_keys == 0)
        form = rl_features_release_form(&node->features, rl_eligibility_info(&node->eligibility),
                                        round != 0);
    return rl_node_send_request(node, claim, round, verb, form, now_ns);
}

/* Sends pending undos while the connection is ready and the output is not full. */
static void send_pending(struct rl_node *node, uint64_t now_ns)
{
    struct rl_undo_heap *undos = &node->undos.heap;

    rl_node_replan(node);
    while (undos->count > 0 && rl_connection_is_ready(&node->conn) &&
           !rl_pipeline_is_full(&node->pipe)) {
        if (!send_undo(node, undos->list[undos->count - 1].claim, 0, now_ns))
            break;
        end_pending(node, rl_undo_heap_pop_last(undos));
    }
    /* Undos that are left wait for memory, or for room in the output. */
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
        end_pending(node, rl_undo_heap_pop_first(&node->undos.heap));
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
        end_pending(node, rl_undo_heap_pop_last(&node->undos.heap));
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
    if (claim->renewed_ns == 0) /* adopted: another client has set the key, at the latest now */
        claim->renewed_ns = now_ns;
    if (rl_pipeline_may_hold(&node->pipe, claim->requested_ns)) {
        bool never_sent = rl_pipeline_cut(&node->pipe, claim);
        rl_features_retry(&node->features);
        if (never_sent)
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
    (void)rl_undos_reserve(node); /* in case no reply comes; without memory the undo is sent, too */
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
