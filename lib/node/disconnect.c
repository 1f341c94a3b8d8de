/* SPDX-License-Identifier: MIT
 * The end of a connection: how it is closed, what becomes of the requests that were under way, and
 * when the next one is tried. */
#include "core/cause.h"
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

#define RECONNECT_MIN_NS (50 * RL_MS)
#define RECONNECT_MAX_NS (2 * RL_SECOND)

/* True if the connection that ends now was a good one: greeted, ready for long enough, and
 * answering to the end. */
static bool has_lasted(const struct rl_node *node, uint64_t now_ns)
{
    return node->state == RL_NODE_READY && !rl_detector_is_suspect(&node->detector) &&
           node->greeted_ns >= node->opened_ns &&
           rl_sub_sat(now_ns, node->greeted_ns) >= RL_LASTING_NS;
}

static void plan_reconnect(struct rl_node *node, bool was_ready, int cause, uint64_t now_ns)
{
    bool at_once = was_ready && node->failures == 0 && node->brief_connections <= 1;
    unsigned doublings = was_ready && node->brief_connections > node->failures
                             ? node->brief_connections
                             : node->failures;
    uint64_t delay_ns = RECONNECT_MIN_NS << (doublings < 6 ? doublings : 6);

    if (at_once) {
        delay_ns = 0;
    } else {
        delay_ns = rl_min_u64(delay_ns, RECONNECT_MAX_NS);
        if (rl_cause_of(cause)->retry_slowly)
            delay_ns = RECONNECT_MAX_NS / 2;
        /* Clients that lost the same server do not come back together. */
        delay_ns -= (node->common->random >> 7) % (delay_ns / 4 + 1);
    }
    node->failures++;
    node->connect_failed = delay_ns != 0;
    node->due_ns = rl_add_sat(now_ns, delay_ns);
}

/* Ends the requests of a connection that is gone: their votes fail, and their undos are kept for
 * the next connection. */
static void end_requests(struct rl_node *node, int cause, uint64_t now_ns)
{
    struct rl_pipeline *pipe = &node->pipe;
    uint64_t end = pipe->tail;

    for (uint64_t i = pipe->head; i != end; i++) {
        struct rl_request *request = rl_pipeline_at(pipe, i);
        request->unsent = rl_request_is_unsent(pipe, request);
        if (request->claim != NULL && !request->unsent && rl_protocol[request->verb].resets_ttl)
            request->claim->maybe_executed |= RL_NODE(node->index);
    }
    pipe->sent = 0;
    rl_undos_review(node);
    while (pipe->head != end) {
        struct rl_request request = rl_pipeline_pop(pipe);
        struct rl_claim *claim = request.claim;
        if (claim == NULL)
            continue;
        if (rl_protocol[request.verb].is_undo)
            rl_undos_add(node, claim, now_ns);
        const struct rl_ballot ballot = {
            .node = node->index,
            .vote = RL_VOTE_FAILED,
            .cause = (uint8_t)cause,
            .verb = request.verb,
            .round = request.round,
            .unsent = request.unsent,
        };
        if (!request.reported && request.round != 0 && claim->owner != NULL)
            rl_inbox_add_vote(&node->common->inbox, claim, &ballot);
        rl_claim_drop(claim);
    }
}

/* Who leaves for good lets the kernel deliver what it has, a SET and the undo behind it. Who comes
 * back takes back what was not delivered: his kernel would try for minutes, maybe only after the
 * undo has gone out on the next connection, and a server that answers on a connection that its
 * client has left reads no more of it: the SET would be executed, and the undo behind it would
 * not. */
static bool is_abortive(const struct rl_node *node, bool retry)
{
    return retry ? rl_pipeline_has_set(&node->pipe) : rl_pipeline_has_bare_set(&node->pipe);
}

void rl_node_close(struct rl_node *node, int cause, const char *text, bool retry, uint64_t now_ns)
{
    const struct rl_transport *transport = &node->common->transport;
    /* Whoever was silent before is known to be down, not worth waiting for once more. */
    bool was_ready = node->state == RL_NODE_READY && !rl_detector_is_suspect(&node->detector);

    if (has_lasted(node, now_ns))
        node->brief_connections = node->failures = 0;
    else if (node->state == RL_NODE_READY)
        node->brief_connections++;
    if (node->state != RL_NODE_DOWN)
        transport->close(transport->ctx, node->index, is_abortive(node, retry));
    node->pipe.out_len = 0;
    node->state = RL_NODE_DOWN;
    rl_detector_closed(&node->detector);
    node->is_new = false;
    rl_inbox_forget(&node->common->inbox, RL_INBOX_UNREAD, node->index);
    node->cause = (uint8_t)cause;
    if (text != NULL)
        rl_node_set_text(node, text, strlen(text));
    rl_decoder_close(&node->decoder);
    rl_greeting_free(node);
    rl_tracker_node_lost(node, retry);
    if (retry) {
        plan_reconnect(node, was_ready && !rl_cause_of(cause)->retry_slowly, cause, now_ns);
    } else {
        node->connect_failed = true;
        node->due_ns = RL_NEVER;
    }
    rl_node_notify_changed(node);
    end_requests(node, cause, now_ns);
}

void rl_node_closed(struct rl_node *node, int cause, const char *text, uint64_t now_ns)
{
    rl_node_close(node, cause, text, true, now_ns);
}
