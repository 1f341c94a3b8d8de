/* SPDX-License-Identifier: MIT
 * Opens the first connection of a node, and closes it: ends the requests that were in flight, and
 * plans the next connection.
 *
 * rl_connection_tick() opens, rl_node_opened() sends the greeting, rl_connection_take_greeting()
 * reads the replies to it, and become_ready() makes the connection ready. In the same tick
 * rl_connection_begin_use() starts to use it. Every end of the connection goes through
 * rl_node_close().
 */
#include "node/connection.h"

#include "core/backoff.h"
#include "core/cause.h"
#include "node/greeting.h"
#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <string.h>

/* Bounds of the delay before the next connection: each failure doubles the delay. */
static const struct rl_backoff delays = {.min_ns = 50 * RL_MS, .max_ns = 2 * RL_SECOND};
#define HANDSHAKE_MAX_NS (16 * RL_SECOND) /* longest time limit of a TLS handshake */
/* Factor of the next limit after a slow one. A server finishes handshakes that were given up, so
 * the number of tries counts more than the length of the last one. */
#define HANDSHAKE_GROWTH 4
/* The delay after a cause with `retry_slowly`, whatever came before. */
static const struct rl_backoff slow_delay = {.min_ns = RL_SECOND, .max_ns = RL_SECOND};

/* Keeps the text as the last error: cut to the size of conn->text, with '?' for each byte that is
 * not printable ASCII. */
void rl_connection_set_text(struct rl_connection *conn, const char *text, size_t len)
{
    rl_wire_copy_printable(conn->text, sizeof conn->text, text, len);
}

/* Prepares a connection that is down and for which nothing is planned. */
void rl_connection_init(struct rl_connection *conn)
{
    *conn = (struct rl_connection){.due_ns = RL_NEVER};
}

/* Makes an open connection count as down without closing it, because its socket is closed already.
 */
void rl_connection_abandon(struct rl_connection *conn)
{
    conn->state = RL_NODE_DOWN;
}

/* Makes the first connection due now: the next rl_node_tick() opens it. */
void rl_node_start(struct rl_node *node, uint64_t now_ns)
{
    node->conn.due_ns = now_ns;
    rl_node_replan(node);
}

/* Returns the time limit of a TLS handshake, and of the greeting after it. */
uint64_t rl_connection_handshake_ns(const struct rl_node *node, unsigned slow_handshakes)
{
    uint64_t limit_ns = node->common->connect_timeout_ns;

    for (unsigned i = 0; i < slow_handshakes && limit_ns < HANDSHAKE_MAX_NS; i++)
        limit_ns = rl_min_u64(HANDSHAKE_GROWTH * limit_ns, HANDSHAKE_MAX_NS);
    return limit_ns;
}

/* Handles that the socket is connected, and the TLS handshake begins. */
void rl_node_connected(struct rl_node *node, uint64_t now_ns)
{
    if (node->conn.state != RL_NODE_CONNECTING)
        return;
    node->conn.securing = node->conn.tls = true;
    node->conn.due_ns =
        rl_add_sat(now_ns, rl_connection_handshake_ns(node, node->conn.slow_handshakes));
    rl_node_replan(node);
}

/* Handles that the TLS handshake has failed, and the server is tried at its next address. A reason
 * that is TLS itself is kept: a person has to repair that one. */
void rl_node_next_address(struct rl_node *node, int cause, const char *text, uint64_t now_ns)
{
    if (node->conn.state != RL_NODE_CONNECTING)
        return;
    if (cause == REDLOCK_CAUSE_TLS) {
        node->conn.refused = true;
        rl_connection_set_text(&node->conn, text, strlen(text));
    }
    node->conn.securing = false;
    node->conn.due_ns = rl_add_sat(now_ns, node->common->connect_timeout_ns);
    rl_node_replan(node);
}

/* Closes the connection of an attempt that has failed. If another address was refused because of
 * TLS, that is the reason, in place of `cause` and `text`. */
static void fail_attempt(struct rl_node *node, int cause, const char *text, uint64_t now_ns)
{
    bool refused = node->conn.refused;

    rl_node_close(node, refused ? REDLOCK_CAUSE_TLS : cause, refused ? NULL : text, true, now_ns);
}

/* Closes a connection that was not made, or not greeted, within its time limit. */
static void give_up(struct rl_node *node, uint64_t now_ns)
{
    const char *text = "no reply to the greeting";

    if (node->conn.state == RL_NODE_CONNECTING)
        text = node->conn.securing
                   ? "no end of the TLS handshake in time; does this port speak TLS?"
                   : "no connection in time";
    node->conn.slow_handshakes +=
        node->conn.securing || (node->conn.tls && node->conn.state == RL_NODE_GREETING);
    fail_attempt(node, REDLOCK_CAUSE_TIMEOUT, text, now_ns);
}

/* Opens the connection if that is due. Closes one that was not made, or not greeted, within its
 * time limit; the next attempt is then planned. */
void rl_connection_tick(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_transport *transport = &node->common->transport;

    if (node->conn.due_ns > now_ns)
        return;
    if (node->conn.state == RL_NODE_DOWN) {
        node->conn.state = RL_NODE_CONNECTING;
        node->conn.tls = false;
        node->conn.due_ns = rl_add_sat(now_ns, node->common->connect_timeout_ns);
        transport->open(transport->ctx, node->index);
    } else {
        give_up(node, now_ns);
    }
}

/* Handles the end of an attempt to connect. Sends the greeting if the attempt has succeeded (`ok`).
 * Else closes the connection with `cause` (enum redlock_cause) and `text` (NULL: none). */
void rl_node_opened(struct rl_node *node, bool ok, int cause, const char *text, uint64_t now_ns)
{
    if (node->conn.state != RL_NODE_CONNECTING)
        return;
    if (!ok) {
        fail_attempt(node, cause, text, now_ns);
        return;
    }
    node->conn.securing = node->conn.refused = false;
    node->counters.reconnects += node->conn.connected_once;
    node->conn.connected_once = true;
    rl_eligibility_opened(&node->eligibility);
    rl_features_reset(&node->features);
    rl_detector_opened(&node->detector);
    rl_heartbeat_opened(&node->heartbeat);
    if (!rl_decoder_open(&node->decoder, node->common->text) || !rl_greeting_prepare(node)) {
        rl_node_close(node, REDLOCK_CAUSE_NO_MEMORY, "out of memory", true, now_ns);
        return;
    }
    node->conn.state = RL_NODE_GREETING;
    node->conn.opened_ns = now_ns;
    node->conn.due_ns =
        rl_add_sat(now_ns, rl_connection_handshake_ns(node, node->conn.slow_handshakes));
    rl_node_replan(node);
    rl_node_flush(node, now_ns);
}

/* Makes the connection ready after a complete greeting. Requests that have waited for the
 * connection count as sent now. Closes the connection again if the greeting shows that the server
 * cannot be used.
 */
static void become_ready(struct rl_node *node, uint64_t now_ns)
{
    const char *text = NULL;
    bool stepped = false;
    int cause = rl_eligibility_greeted(node, rl_greeting_time(&node->greeting),
                                       node->conn.opened_ns, &text, &stepped, now_ns);

    node->conn.state = RL_NODE_READY;
    node->conn.due_ns = RL_NEVER;
    node->conn.connect_failed = false;
    node->conn.text[0] = '\0';
    node->conn.cause = REDLOCK_CAUSE_NONE;
    rl_greeting_free(node);
    for (uint64_t i = rl_pipeline_first(&node->pipe); i != rl_pipeline_end(&node->pipe); i++) {
        struct rl_request *request = rl_pipeline_at(&node->pipe, i);
        request->sent_ns = now_ns;
        if (request->claim == NULL)
            continue;
        request->claim->requested_ns = now_ns;
        if (rl_protocol[request->verb].resets_ttl)
            request->claim->renewed_ns = now_ns;
    }
    if (cause != REDLOCK_CAUSE_NONE) {
        rl_node_close(node, cause, text, true, now_ns);
        return;
    }
    rl_heartbeat_greeted(&node->heartbeat, now_ns);
    rl_node_notify_changed(node);
    node->conn.is_new = true;
    node->conn.stepped = stepped;
}

/* Begins to use a connection that is new: reports a clock step of its server, sends pending undos,
 * makes the tracker's connection due, and has the output flushed. */
void rl_connection_begin_use(struct rl_node *node, uint64_t now_ns)
{
    node->conn.is_new = false;
    if (node->conn.stepped)
        rl_eligibility_note_step(node);
    node->conn.greeted_ns = now_ns;
    node->conn.attempts_failed = 0;
    rl_undos_greeted(node, now_ns);
    rl_tracker_node_ready(node, now_ns);
    rl_node_note_dirty(node);
}

/* Handles the reply that the decoder has just read as the next one of the greeting. May close the
 * connection, or make it ready. */
void rl_connection_take_greeting(struct rl_node *node, uint64_t now_ns)
{
    /* A first estimate of the round trip, until votes measure it. */
    if (rl_detector_srtt_ns(&node->detector) == 0)
        rl_detector_note_trip(node, rl_sub_sat(now_ns, node->conn.opened_ns), now_ns);
    int cause = rl_greeting_reply(node, rl_decoder_reply(&node->decoder), rl_node_clock_ns(node));
    if (cause == REDLOCK_CAUSE_NONE && !rl_greeting_is_complete(&node->greeting))
        return;
    node->conn.slow_handshakes = 0;
    if (cause != REDLOCK_CAUSE_NONE)
        rl_node_close(node, cause, NULL, true, now_ns);
    else
        become_ready(node, now_ns);
}

/* Returns true if the connection that ends now was in use. */
static bool was_in_use(const struct rl_node *node)
{
    return node->conn.state == RL_NODE_READY && !node->conn.is_new &&
           node->conn.greeted_ns >= node->conn.opened_ns;
}

/* Returns true if the connection that ends now was in use for at least RL_LASTING_NS, and the node
 * is not suspect. */
static bool has_lasted(const struct rl_node *node, uint64_t now_ns)
{
    return was_in_use(node) && !rl_detector_is_suspect(&node->detector) &&
           rl_sub_sat(now_ns, node->conn.greeted_ns) >= RL_LASTING_NS;
}

/* Plans the next connection after a disconnect with this cause (enum redlock_cause). `was_ready`:
 * the connection was ready, and the cause allows another one at once. The first loss of a ready
 * connection has no delay. */
static void plan_reconnect(struct rl_node *node, bool was_ready, int cause, uint64_t now_ns)
{
    bool at_once = was_ready && node->conn.failures == 0 && node->conn.brief <= 1;
    unsigned doublings = was_ready && node->conn.brief > node->conn.failures ? node->conn.brief
                                                                             : node->conn.failures;
    const struct rl_backoff *bounds = rl_cause_of(cause)->retry_slowly ? &slow_delay : &delays;
    uint64_t delay_ns = 0;

    if (!at_once)
        delay_ns = rl_backoff_connect_ns(bounds, doublings, node->common->random >> 7);
    node->conn.failures++;
    node->conn.connect_failed = delay_ns != 0;
    node->conn.due_ns = rl_add_sat(now_ns, delay_ns);
}

/* Ends all requests in flight, because the connection is closed. Reports votes FAILED with this
 * cause (enum redlock_cause), and keeps the undos among the requests for the next connection. */
static void end_requests(struct rl_node *node, int cause, uint64_t now_ns)
{
    struct rl_pipeline *pipe = &node->pipe;
    uint64_t end = rl_pipeline_end(pipe);

    rl_pipeline_disconnect(pipe);
    for (uint64_t i = rl_pipeline_first(pipe); i != end; i++) {
        const struct rl_request *request = rl_pipeline_at(pipe, i);
        if (request->claim != NULL && !request->unsent && rl_protocol[request->verb].resets_ttl)
            request->claim->maybe_executed |= RL_NODE(node->index);
    }
    rl_undos_review(node);
    while (rl_pipeline_first(pipe) != end) {
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
            .slot = claim->slot,
            .unsent = request.unsent,
        };
        if (!request.reported && request.round != 0 && claim->owner != NULL)
            rl_inbox_add_vote(&node->common->inbox, claim, &ballot);
        rl_claim_drop(claim);
    }
}

/* Returns true if the connection must be closed with a reset, which drops bytes that the kernel has
 * not delivered. Else the connection is closed with FIN, and the kernel delivers those bytes.
 * `retry`: another connection follows; false: this is the final close.
 *
 * On the final close, FIN is right if each SET is followed by its undo: the kernel delivers both.
 * Before a reconnect, any SET requires a reset. The kernel might deliver the SET minutes later,
 * after the undo on the next connection. A server that meets the closed connection when it replies
 * stops reading from it: it would execute the SET, and not the undo that follows. */
static bool is_abortive(const struct rl_node *node, bool retry)
{
    uint64_t held = rl_transport_held(&node->common->transport, node->index);

    return retry ? rl_pipeline_has_set(&node->pipe) : rl_pipeline_has_bare_set(&node->pipe, held);
}

/* Closes the first connection, and with it the second one. Votes of requests in flight fail with
 * `cause` (enum redlock_cause), and undos become pending. Keeps `text` (NULL: none) as the last
 * error. Plans the next connection if `retry`. */
void rl_node_close(struct rl_node *node, int cause, const char *text, bool retry, uint64_t now_ns)
{
    const struct rl_transport *transport = &node->common->transport;
    /* A suspect node gets no connection at once: requests should not wait for that server again. */
    bool was_ready = node->conn.state == RL_NODE_READY && !rl_detector_is_suspect(&node->detector);

    if (has_lasted(node, now_ns))
        node->conn.brief = node->conn.failures = 0;
    else if (node->conn.state == RL_NODE_READY)
        node->conn.brief++;
    if (!was_in_use(node))
        node->conn.attempts_failed++;
    if (node->conn.state != RL_NODE_DOWN)
        transport->close(transport->ctx, node->index, is_abortive(node, retry));
    node->conn.state = RL_NODE_DOWN;
    node->conn.securing = node->conn.refused = false;
    rl_trial_end(node);
    rl_detector_closed(&node->detector);
    node->conn.is_new = false;
    rl_inbox_forget(&node->common->inbox, RL_INBOX_UNREAD, node->index);
    node->conn.cause = (uint8_t)cause;
    if (text != NULL)
        rl_connection_set_text(&node->conn, text, strlen(text));
    rl_decoder_close(&node->decoder);
    rl_greeting_free(node);
    rl_tracker_node_lost(node, retry);
    if (retry) {
        plan_reconnect(node, was_ready && !rl_cause_of(cause)->retry_slowly, cause, now_ns);
    } else {
        node->conn.connect_failed = true;
        node->conn.due_ns = RL_NEVER;
    }
    rl_node_notify_changed(node);
    end_requests(node, cause, now_ns);
}

/* Handles the end of a connection, or that it cannot be used any more: plans the next one. A server
 * that expects TLS, or a certificate of the client, closes the connection without a reply. */
void rl_node_closed(struct rl_node *node, int cause, const char *text, uint64_t now_ns)
{
    bool unanswered =
        node->conn.state == RL_NODE_GREETING && !rl_greeting_has_begun(&node->greeting);
    char hint[RL_TEXT_MAX];

    if (unanswered && cause == REDLOCK_CAUSE_DISCONNECT &&
        (strcmp(text, RL_TEXT_CLOSED) == 0 || strcmp(text, RL_TEXT_RESET) == 0)) {
        snprintf(hint, sizeof hint, "%s before the first reply; does %s?", text,
                 node->conn.tls ? "the server require a certificate of the client"
                                : "this port expect TLS (rediss://)");
        text = hint;
    }
    rl_node_close(node, cause, text, true, now_ns);
}
