/* SPDX-License-Identifier: MIT
 * Handles the replies to requests. A reply always belongs to the oldest request of the pipeline.
 *
 * rl_node_reply() removes that request and classifies the reply. The reply to a heartbeat, TRACK or
 * REGISTER goes to the file that sent the request. All others are votes. A vote RESEND sends the
 * request again in another form. Any other vote is counted and added to the inbox; a failed undo
 * becomes pending again. */
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

#define UNDO_RETRY_NS RL_SECOND /* delay before an undo is sent again after its vote has failed */
/* Bytes of the token's beginning that are looked for in an error text. If they are found, the text
 * repeats the token. */
#define REPEATED_MIN 4

/* Sets the decoder's limits for the reply to the oldest request in flight, by the row of its verb.
 */
void rl_reply_expect(struct rl_node *node)
{
    const struct rl_protocol_row *row = &rl_protocol[rl_pipeline_next_verb(&node->pipe)];

    rl_decoder_expect(&node->decoder, row->has_long_reply ? RL_INFO_MAX : RL_BULK_MAX,
                      row->elements);
}

/* Measures the round trip of a request whose reply was just read, for the failure detector and the
 * statistics. Returns the round trip in microseconds. */
static uint64_t note_round_trip(struct rl_node *node, const struct rl_request *request,
                                uint64_t now_ns)
{
    uint64_t rtt_ns = rl_sub_sat(now_ns, request->sent_ns);
    uint64_t rtt_us = rtt_ns / RL_US;

    rl_detector_note_trip(node, rtt_ns, now_ns);
    rl_count_us(node->counters.rtt_us_hist, rtt_us);
    node->counters.rtt_us_sum += rtt_us;
    return rtt_us;
}

/* Returns true if a vote on the request is to be reported. Its claim must not be NULL. */
static bool reports_vote(const struct rl_request *request)
{
    return request->round != 0 && request->claim->owner != NULL;
}

/* Fills in the ballot of a request. `rtt_us`: round trip in microseconds; 0: there was no reply. */
static inline void fill_ballot(const struct rl_node *node, const struct rl_request *request,
                               const struct rl_result *result, uint64_t rtt_us,
                               struct rl_ballot *ballot)
{
    *ballot = (struct rl_ballot){
        .node = node->index,
        .vote = (uint8_t)result->vote,
        .cause = (uint8_t)result->cause,
        .verb = request->verb,
        .round = request->round,
        .unsent = request->unsent,
        .slot = request->claim->slot,
        .accepted = result->accepted,
        .record = result->record,
        .key = result->key,
        .register_value = result->register_value,
        .pttl_ms = result->pttl_ms,
        .rtt_us = (uint32_t)rl_min_u64(rtt_us, UINT32_MAX),
    };
}

/* Adds a vote without a reply to the inbox: what `result` says about the request. Adds none if no
 * vote is to be reported. */
void rl_node_deliver_vote(struct rl_node *node, const struct rl_request *request,
                          const struct rl_result *result)
{
    struct rl_ballot ballot;

    if (!reports_vote(request))
        return;
    fill_ballot(node, request, result, 0, &ballot);
    rl_inbox_add_vote(&node->common->inbox, request->claim, &ballot);
}

/* Adds the vote of a reply to the inbox, if a vote is to be reported, together with the reply.
 * Leaves the reply out if the vote failed: the connection may then be closed before the engine
 * takes the vote, which frees the reply. */
static void report_reply(struct rl_node *node, const struct rl_request *request,
                         const struct rl_result *result, const struct rl_reply *reply,
                         uint64_t rtt_us)
{
    if (result->vote == RL_VOTE_FAILED)
        reply = NULL;
    if (reports_vote(request))
        fill_ballot(node, request, result, rtt_us,
                    rl_inbox_add_replied(&node->common->inbox, request->claim, reply));
}

/* Counts the vote of a reply for the statistics. A grant or denial also ends the series of failures
 * that delays the next connection. */
static void count_reply(struct rl_node *node, const struct rl_request *request,
                        const struct rl_result *result)
{
    node->counters.replies_late += request->reported;
    if (result->vote == RL_VOTE_FAILED) {
        node->counters.errors += !rl_verb_is_line((enum rl_verb)request->verb);
        return;
    }
    *(result->vote == RL_VOTE_GRANTED ? &node->counters.granted : &node->counters.denied) += 1;
    rl_connection_note_answer(&node->conn);
}

/* Returns true if a request that can create a key must not be executed any more: its vote is not
 * awaited, or a later request of the same claim that can change keys is in flight, or its
 * undo is pending. The later
 * request may be an undo, or an extension, which finds no key. */
static bool is_superseded(const struct rl_node *node, const struct rl_request *request)
{
    return request->reported || request->claim->owner == NULL ||
           rl_undos_has(request->claim, node->index) ||
           rl_pipeline_has_change(&node->pipe, request->claim);
}

/* Sends a request again in the form result->form, because the server has not executed it in the
 * form of the first try. The vote then comes from the new request. Returns false, and makes
 * `result` a failed vote, if that is not allowed or there is no memory. */
RL_RARE static bool resend(struct rl_node *node, struct rl_request *request,
                           struct rl_result *result, uint64_t now_ns)
{
    struct rl_claim *claim = request->claim;

    /* After its own undo, the request would leave a key that is never undone. After an extension,
     * the request would set a key that the lease counts as absent. */
    if (rl_protocol[request->verb].creates_key && is_superseded(node, request)) {
        result->vote = RL_VOTE_FAILED;
        result->cause = REDLOCK_CAUSE_ERROR_REPLY;
        request->unsent = true;
        return false;
    }
    /* After a delayed release, an extension would reset the TTL that the release has shortened. */
    if (request->verb == RL_VERB_EXTEND && claim->undo_verb == RL_VERB_SHORTEN) {
        result->vote = RL_VOTE_FAILED;
        result->cause = REDLOCK_CAUSE_NONE;
        return false;
    }
    /* The values of LINE_DROP may be those of a later one by now: look only. The failed request has
     * used up the REGISTER in front of it. */
    if (request->verb == RL_VERB_LINE_DROP)
        request->verb = RL_VERB_LINE_JOIN;
    if (rl_verb_looks_at_line((enum rl_verb)request->verb))
        rl_tracker_register(node, claim, now_ns);
    if (rl_node_send_request(node, claim, request->round, (enum rl_verb)request->verb,
                             (enum rl_form)result->form, now_ns)) {
        struct rl_request *again = rl_pipeline_newest(&node->pipe);
        claim->requested_ns = now_ns; /* the new request may be unsent, too */
        again->reported = request->reported;
        /* All forms of a request share one time limit. */
        again->sent_ns = request->reported ? now_ns : request->sent_ns;
        rl_detector_note_resent(&node->detector);
        return true;
    }
    result->vote = RL_VOTE_FAILED;
    result->cause = REDLOCK_CAUSE_NO_MEMORY;
    return false;
}

/* Turns the grant of a fenced request (RAISE, or ACQUIRE of a claim with `fenced`) into a failed
 * vote if the node's fence record does not count. The record counts if it survives restarts, as the
 * operator attests, or if it is bound to the current run of its server. After a restart a bound
 * record may lack tokens that it had before. A connection does not outlive the run, so the current
 * run is that of the greeting. The grant of an ACQUIRE also fails while claim->too_early. */
static void check_fence_record(struct rl_node *node, const struct rl_request *request,
                               struct rl_result *result)
{
    bool fenced = request->verb == RL_VERB_RAISE ||
                  (request->verb == RL_VERB_ACQUIRE && request->claim->fenced);

    if (!fenced || result->vote != RL_VOTE_GRANTED)
        return;
    bool bound = node->common->fence_run_bound;
    const char *run_id = rl_eligibility_run_id(&node->eligibility);
    size_t len = strlen(run_id);
    bool same_run =
        len != 0 && result->run.len == len && memcmp(result->run.data, run_id, len) == 0;
    bool in_use = bound ? same_run : rl_eligibility_is_durable(&node->eligibility);
    if (in_use && (request->verb == RL_VERB_RAISE || !request->claim->too_early))
        return;
    result->vote = RL_VOTE_FAILED;
    result->cause = in_use && request->claim->unread ? REDLOCK_CAUSE_FENCE_RECORDS_UNREAD
                                                     : REDLOCK_CAUSE_FENCE_RECORD;
    if (!in_use)
        result->record = bound ? RL_RECORD_OLD_RUN : RL_RECORD_UNATTESTED;
}

/* Keeps the text of an error reply as the last error of the connection, up to where the text begins
 * to repeat the token. The error for an unknown command repeats its arguments, and the token is the
 * right to delete the key.
 */
static void keep_error_text(struct rl_node *node, const struct rl_reply *reply,
                            const struct rl_claim *claim)
{
    struct rl_arg token = rl_claim_token(claim);
    const char *at =
        token.len < REPEATED_MIN ? NULL : memmem(reply->text, reply->len, token.data, REPEATED_MIN);
    size_t len = at != NULL ? (size_t)(at - reply->text) : reply->len;

    while (at != NULL && len > 0 && strchr(" '`\"", reply->text[len - 1]) != NULL)
        len--;
    rl_connection_set_text(&node->conn, reply->text, len);
}

/* Keeps the text of an error, and makes an undo pending again, after a failed vote on the request.
 * An error of a request to a line is kept apart: it fails no lock. */
RL_RARE static void note_failure(struct rl_node *node, const struct rl_request *request,
                                 const struct rl_reply *reply, uint64_t now_ns)
{
    if (reply->kind == RL_REPLY_ERROR && rl_verb_is_line((enum rl_verb)request->verb))
        rl_line_access_note_error(node, reply);
    else if (reply->kind == RL_REPLY_ERROR)
        keep_error_text(node, reply, request->claim);
    if (rl_protocol[request->verb].is_undo)
        rl_undos_retry(node, request->claim, UNDO_RETRY_NS, now_ns);
}

/* Returns what the reply to the request means as a vote. */
static struct rl_result classify(const struct rl_request *request, const struct rl_reply *reply)
{
    unsigned keys = request->claim != NULL ? rl_claim_key_count(request->claim) : 0;

    return rl_protocol_classify((enum rl_verb)request->verb, (enum rl_form)request->form, keys,
                                reply);
}

/* Passes a reply that is not a vote to the file that sent the request: the tracker (TRACK,
 * REGISTER) or the heartbeat (TIME, INFO). Drops the claim reference of the request. */
RL_RARE static void take_information(struct rl_node *node, const struct rl_request *request,
                                     const struct rl_reply *reply, uint64_t now_ns)
{
    if (request->verb == RL_VERB_TRACK)
        rl_tracker_reply(node, reply, now_ns);
    else if (request->verb == RL_VERB_REGISTER)
        rl_tracker_registered(node, reply, now_ns);
    else
        rl_heartbeat_reply(node, request, reply, now_ns);
    rl_claim_drop(request->claim);
    if (rl_connection_is_ready(&node->conn) && rl_detector_is_suspect(&node->detector))
        rl_detector_review(node, now_ns);
}

/* Handles the reply to a request with a claim: reports the vote `result`, keeps a failed undo, or
 * sends the request again in another form. Drops the claim reference of the request. */
static void take_vote(struct rl_node *node, struct rl_request *request, struct rl_result *result,
                      const struct rl_reply *reply, uint64_t rtt_us, uint64_t now_ns)
{
    struct rl_claim *claim = request->claim;

    if (result->vote != RL_VOTE_RESEND || !resend(node, request, result, now_ns)) {
        count_reply(node, request, result);
        if (result->vote == RL_VOTE_FAILED)
            note_failure(node, request, reply, now_ns);
        else if (rl_protocol[request->verb].is_undo)
            node->common->inbox.undos[RL_UNDO_DONE]++;
        /* The engine takes late replies about fence records, too. */
        if (!request->reported || claim->is_record)
            report_reply(node, request, result, reply, rtt_us);
    }
    rl_claim_drop(claim);
}

/* Closes the connection after a failed vote that shows that it cannot be used any more: a reply of
 * the wrong type, or one of a replica. Returns false if the vote has another cause. */
RL_RARE static bool close_failed(struct rl_node *node, int cause, uint64_t now_ns)
{
    if (cause == REDLOCK_CAUSE_PROTOCOL)
        rl_node_close(node, REDLOCK_CAUSE_PROTOCOL, "reply of the wrong type", true, now_ns);
    else if (cause == REDLOCK_CAUSE_READONLY)
        rl_node_close(node, REDLOCK_CAUSE_READONLY, "server became a replica", true, now_ns);
    else
        return false;
    return true;
}

/* Handles the reply to the oldest request in flight: reports its vote, learns from it, or sends the
 * request again in another form. Closes the connection after a reply that no request awaits, a
 * reply of the wrong type, and one that shows a replica. */
void rl_node_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns)
{
    if (rl_pipeline_count(&node->pipe) == 0 ||
        rl_request_is_unsent(&node->pipe, rl_pipeline_oldest(&node->pipe))) {
        rl_node_close(node, REDLOCK_CAUSE_PROTOCOL, "reply without a request", true, now_ns);
        return;
    }
    struct rl_request request = rl_pipeline_pop(&node->pipe);
    struct rl_claim *claim = request.claim;
    const struct rl_protocol_row *row = &rl_protocol[request.verb];
    rl_detector_note_reply(&node->detector, now_ns);
    if (row->informs) {
        take_information(node, &request, reply, now_ns);
        return;
    }
    struct rl_result result = classify(&request, reply);
    rl_features_learn(&node->features, (enum rl_form)request.form, &result);
    uint64_t rtt_us = note_round_trip(node, &request, now_ns);
    if (claim == NULL) {
        rl_detector_note_probe(&node->detector);
    } else {
        if (claim->maybe_executed != 0)
            rl_undos_note_read(node, claim);
        if (row->resets_ttl)
            claim->renewed_ns = now_ns; /* the server has executed the request by now */
        check_fence_record(node, &request, &result);
        take_vote(node, &request, &result, reply, rl_max_u64(rtt_us, 1), now_ns);
    }
    if (result.vote == RL_VOTE_FAILED && close_failed(node, result.cause, now_ns))
        return;
    if (rl_detector_is_suspect(&node->detector))
        rl_detector_review(node, now_ns);
}
