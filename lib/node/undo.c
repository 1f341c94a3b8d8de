/* SPDX-License-Identifier: MIT
 * Sends undos, and keeps those that cannot be sent or were not confirmed. An undo is sent after its
 * SET on the same connection, so it cannot overtake the SET. If the connection ends before the
 * reply, the undo is sent again on the next connection. That is safe, because every attempt has its
 * own token.
 *
 * claim->maybe_executed has the bit of a node whose connection ended while a request for the claim
 * was unanswered. As long as the server may still execute that request, it is not known when the
 * key expires (RL_NEVER). Once a later greeting is complete, the server has executed or dropped the
 * request. claim->renewed_ns is the latest instant at which the key can have been created or its
 * TTL reset; from it follows when the key expires. */
#include "node/undo.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

/* Delay before pending undos are sent again after there was no memory, or the pipeline was full. */
#define SOON_NS (100 * RL_MS)

/* Prepares an empty set of pending undos. */
void rl_undos_init(struct rl_undos *undos, const struct rl_mem *mem)
{
    rl_undo_heap_init(&undos->heap, mem);
    undos->retry_ns = RL_NEVER;
    undos->dropped_until_ns = 0;
}

/* Returns true if an undo whose claim has this token is pending. */
bool rl_undos_use_token(const struct rl_undos *undos, struct rl_arg token)
{
    for (size_t i = 0; i < undos->heap.count; i++) {
        if (rl_claim_has_token(undos->heap.list[i].claim, token))
            return true;
    }
    return false;
}

/* Makes room for one pending undo for each request in flight, and for one more. Returns false
 * without memory. */
bool rl_undos_reserve(struct rl_node *node)
{
    uint64_t in_flight = rl_pipeline_count(&node->pipe);

    return rl_undo_heap_reserve(&node->undos.heap, node->undos.heap.count + (size_t)in_flight + 1);
}

/* Returns true while the server may still execute a request of an earlier connection that creates
 * the key or resets its TTL. A stopped server reads such a request when it is resumed, even days
 * later. A server that has completed a greeting since then has executed or dropped the
 * request. */
static bool may_be_executed(const struct rl_node *node, const struct rl_claim *claim)
{
    return (claim->maybe_executed & RL_NODE(node->index)) != 0 &&
           claim->renewed_ns >= rl_connection_greeted_ns(&node->conn);
}

/* Notes that the server will not execute requests of earlier connections for the claim any more:
 * the last greeting is the latest instant at which it can have executed one. */
void rl_undos_note_read(const struct rl_node *node, struct rl_claim *claim)
{
    if ((claim->maybe_executed & RL_NODE(node->index)) == 0)
        return;
    claim->maybe_executed &= ~RL_NODE(node->index);
    claim->renewed_ns = rl_max_u64(claim->renewed_ns, rl_connection_greeted_ns(&node->conn));
}

/* Returns how long a key with a TTL of `ttl_ns` can exist by our clock, in nanoseconds: the TTL and
 * the drift. */
static uint64_t ttl_ns_of(const struct rl_node *node, uint64_t ttl_ns)
{
    return rl_add_sat(ttl_ns, rl_drift_ns(ttl_ns, &node->common->admission.drift));
}

/* Returns when the key of the claim has expired on this node (boot clock); RL_NEVER: not known.
 * That instant depends on when the key was created or its TTL was reset last. Sending the undo does
 * not change it. */
static uint64_t expiry_ns(const struct rl_node *node, struct rl_claim *claim)
{
    if (may_be_executed(node, claim))
        return RL_NEVER;
    rl_undos_note_read(node, claim);
    return rl_add_sat(claim->renewed_ns, ttl_ns_of(node, claim->ttl_max_ms * RL_MS));
}

/* Returns when the key of the claim has expired on this node (boot clock), even if no undo reaches
 * it; RL_NEVER: not known, because the server may still execute a request that creates the key or
 * resets its TTL. */
uint64_t rl_undos_key_expiry_ns(const struct rl_node *node, struct rl_claim *claim)
{
    return rl_pipeline_resets_ttl(&node->pipe, claim) ? RL_NEVER : expiry_ns(node, claim);
}

/* Counts an undo as dropped, because there is no memory to keep it, and logs a warning unless an
 * earlier dropped undo still counts. `expires_ns`: when its key expires. The result of a release
 * was returned to the caller before. The statistics and redlock_shutdown() report the dropped undo.
 */
static void drop_undo(struct rl_node *node, uint64_t expires_ns, uint64_t now_ns)
{
    if (node->undos.dropped_until_ns <= now_ns)
        rl_logf(node->common->log, REDLOCK_LOG_WARN,
                "%s: out of memory for pending undos; their keys stay until they expire",
                node->name);
    node->undos.dropped_until_ns = rl_max_u64(node->undos.dropped_until_ns, expires_ns);
    node->common->inbox.undos[RL_UNDO_DROPPED]++;
}

/* Makes the undo of `claim` pending on this node. Only counts it as expired or dropped if its key
 * has expired already, or there is no memory. */
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

/* Makes the undo of `claim` pending, and plans to send pending undos in `delay_ns` at the latest.
 */
void rl_undos_retry(struct rl_node *node, struct rl_claim *claim, uint64_t delay_ns,
                    uint64_t now_ns)
{
    rl_undos_add(node, claim, now_ns);
    node->undos.retry_ns = rl_min_u64(node->undos.retry_ns, rl_add_sat(now_ns, delay_ns));
}

/* Ends a pending undo that was removed from the heap, because it was sent or its key has expired:
 * clears its bit, and drops the claim reference of the heap. */
static void end_pending(const struct rl_node *node, struct rl_claim *claim)
{
    claim->undo_pending &= ~RL_NODE(node->index);
    rl_claim_drop(claim);
}

/* Computes the expiry times of pending undos again that are not known, or no longer known, after a
 * connection has ended or a new one is ready. */
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

/* Returns the verb of the undo: RELEASE, but SHORTEN while a delayed release still has to keep the
 * key. For SHORTEN, sets claim->ttl_ms to the time for which the key shall stay. */
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

/* Appends the undo of `claim` to the pipeline, in the form that suits the server. Its vote belongs
 * to the round with number `round`; 0: no vote is reported. Returns false without memory. */
static bool send_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round, uint64_t now_ns)
{
    enum rl_verb verb = undo_verb(claim, now_ns);
    enum rl_form form = claim->more_keys != 0 ? RL_FORM_MANY : RL_FORM_SHA;

    if (verb == RL_VERB_RELEASE && claim->more_keys == 0)
        form = rl_features_release_form(&node->features, rl_eligibility_info(&node->eligibility),
                                        round != 0);
    if (!rl_node_send_request(node, claim, round, verb, form, now_ns))
        return false;
    rl_features_note_sent(&node->features, form);
    return true;
}

/* Appends pending undos to the pipeline while the connection is ready and the pipeline is not full.
 * Plans a retry for those that are left. */
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

/* Sends pending undos on a connection that has become ready. Also learns until when keys of dropped
 * undos may exist. */
void rl_undos_greeted(struct rl_node *node, uint64_t now_ns)
{
    if (node->undos.dropped_until_ns == RL_NEVER)
        node->undos.dropped_until_ns =
            rl_add_sat(now_ns, ttl_ns_of(node, node->common->admission.max_ttl_ns));
    rl_undos_review(node);
    send_pending(node, now_ns);
}

/* Removes the pending undos whose keys have expired, and counts them as expired. */
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

/* Frees the memory of a large set if no undo is pending and no request is in flight. */
void rl_undos_free_unused(struct rl_node *node)
{
    if (node->undos.heap.count == 0 && rl_pipeline_count(&node->pipe) == 0)
        rl_undo_heap_trim(&node->undos.heap);
}

/* Drops all pending undos without sending them, and frees their memory. */
void rl_undos_free(struct rl_node *node)
{
    while (node->undos.heap.count > 0)
        end_pending(node, rl_undo_heap_pop_last(&node->undos.heap));
    rl_undo_heap_free(&node->undos.heap);
}

/* Sends pending undos if a retry is due and the connection is ready. */
void rl_undos_tick(struct rl_node *node, uint64_t now_ns)
{
    if (rl_connection_is_ready(&node->conn) && node->undos.retry_ns <= now_ns)
        send_pending(node, now_ns);
}

/* Returns when a retry is due or the first key expires (boot clock); RL_NEVER: neither is planned.
 */
uint64_t rl_undos_first_due_ns(const struct rl_node *node)
{
    uint64_t first_ns = rl_undo_heap_first_ns(&node->undos.heap);

    return rl_connection_is_ready(&node->conn) ? rl_min_u64(node->undos.retry_ns, first_ns)
                                               : first_ns;
}

/* Undoes the claim on this node. Returns RL_VOTE_NONE if the undo was appended, so that its vote
 * follows. Else returns the vote: DENIED if the server has not seen the claim; FAILED, with
 * `*ret_cause`, if the undo is pending. */
enum rl_vote rl_node_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          uint64_t now_ns, int *ret_cause)
{
    if (claim->renewed_ns == 0) /* adopted: another client has set the key; now is the latest
                                 * instant at which it can have done so */
        claim->renewed_ns = now_ns;
    if (rl_pipeline_may_hold(&node->pipe, claim->requested_ns)) {
        bool never_sent = rl_pipeline_cut(&node->pipe, claim);
        rl_features_retry(&node->features);
        if (never_sent)
            return RL_VOTE_DENIED;
    }
    /* While a connection is being made, a release waits in its pipeline like any request. */
    bool ready = rl_connection_is_ready(&node->conn);
    if ((!ready && !rl_node_is_up(node)) || rl_pipeline_is_full(&node->pipe)) {
        rl_undos_retry(node, claim, SOON_NS, now_ns);
        *ret_cause = rl_node_failure_cause(node);
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

/* Returns the number of undos that are pending or in flight. */
unsigned rl_node_undos_pending(const struct rl_node *node)
{
    return (unsigned)node->undos.heap.count + rl_pipeline_count_undos(&node->pipe);
}
