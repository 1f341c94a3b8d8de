/* SPDX-License-Identifier: MIT
 * Puts the parts of a node together: encodes and sends requests, reads replies, and does what is
 * due. */
#include "node/node.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

/* Prepares a node that is down; `index` is its position in the configuration. */
void rl_node_init(struct rl_node *node, struct rl_node_common *common, uint8_t index)
{
    memset(node, 0, sizeof *node);
    node->common = common;
    node->index = index;
    rl_pipeline_init(&node->pipe, common->mem, &common->inbox);
    rl_undos_init(&node->undos, common->mem);
    rl_connection_init(&node->conn);
    rl_tracker_init(node);
    rl_eligibility_init(&node->eligibility, &common->admission, false, false);
}

/* Notes what the operator attests of the server: `durable`, that it loses no key in a restart;
 * `fresh`, that it held no lock at first contact. */
void rl_node_attest(struct rl_node *node, bool durable, bool fresh)
{
    rl_eligibility_init(&node->eligibility, &node->common->admission, durable, fresh);
}

/* Frees all memory of a node whose connection is closed. */
void rl_node_free(struct rl_node *node)
{
    RL_ASSERT(rl_connection_state(&node->conn) == RL_NODE_DOWN);
    rl_undos_free(node);
    rl_greeting_free(node);
    rl_tracker_free(node);
    rl_decoder_close(&node->decoder);
    rl_pipeline_free(&node->pipe);
}

/* Returns true if the node is ready, can send a request, and is no duplicate of another node. */
bool rl_node_is_responsive(const struct rl_node *node)
{
    return rl_connection_is_ready(&node->conn) && rl_node_is_up(node) &&
           !rl_eligibility_is_duplicate(&node->eligibility);
}

/* Reports to the engine that the state or the eligibility of the node has changed. */
void rl_node_notify_changed(struct rl_node *node)
{
    rl_node_replan(node);
    rl_inbox_note(&node->common->inbox, RL_INBOX_CHANGED, node->index);
}

/* Encodes a command of `argc` words in the cache, which is then of no claim. Returns it, valid
 * until the next command is encoded, or NULL without memory. */
const struct rl_encoded *rl_node_encode(struct rl_node *node, size_t argc,
                                        const struct rl_arg *args)
{
    struct rl_node_common *common = node->common;

    common->cache.claim = NULL;
    return rl_encode(common->mem, &common->cache.encoded, argc, args) ? &common->cache.encoded
                                                                      : NULL;
}

/* Encodes a command that has no claim: `verb` in its plain form, with rl_arguments.text. Returns
 * it, or NULL without memory. */
const struct rl_encoded *rl_node_encode_verb(struct rl_node *node, enum rl_verb verb,
                                             struct rl_arg text)
{
    const struct rl_arguments arguments = {.text = text};
    struct rl_command command;

    rl_protocol_format(&command, verb, RL_FORM_PLAIN, &arguments);
    return rl_node_encode(node, command.count, command.args);
}

/* Encodes the command of a request and notes in the cache what it is for. A request to a line is
 * not noted, because it has values of its node. Returns NULL without memory. Not inlined, because
 * most commands come from the cache: see encode(). */
__attribute__((noinline)) static const struct rl_encoded *encode_uncached(
    struct rl_node *node, const struct rl_claim *claim, enum rl_verb verb, enum rl_form form)
{
    struct rl_node_common *common = node->common;
    struct rl_command command;

    rl_node_build_command(node, &command, claim, verb, form);
    if (rl_node_encode(node, command.count, command.args) == NULL)
        return NULL;
    common->cache.claim = rl_verb_is_line(verb) ? NULL : claim;
    common->cache.verb = (uint8_t)verb;
    common->cache.form = (uint8_t)form;
    common->cache.ttl_ms = claim->ttl_ms;
    return &common->cache.encoded;
}

/* Returns the encoded command of a request. Uses the bytes in the cache if they are of the same
 * request, which another node was sent. Returns NULL without memory. */
static const struct rl_encoded *encode(struct rl_node *node, const struct rl_claim *claim,
                                       enum rl_verb verb, enum rl_form form)
{
    struct rl_node_common *common = node->common;

    if (common->cache.claim == claim && common->cache.verb == verb && common->cache.form == form &&
        common->cache.ttl_ms == claim->ttl_ms)
        return &common->cache.encoded;
    return encode_uncached(node, claim, verb, form);
}

/* Hands the output to the transport if the last request, of `len` bytes, has made it reach another
 * multiple of RL_FLUSH_BYTES. A tick that releases thousands of
 * locks then does not fill the pipeline. Ignores an error of the transport, because the caller
 * still uses the pipeline: rl_node_flush() meets it again and closes the connection. */
RL_RARE static void flush_early(struct rl_node *node, size_t len)
{
    const struct rl_transport *transport = &node->common->transport;
    struct rl_arg output = rl_pipeline_output(&node->pipe);

    if ((output.len - len) / RL_FLUSH_BYTES == output.len / RL_FLUSH_BYTES ||
        rl_pipeline_is_full(&node->pipe) || !rl_connection_is_ready(&node->conn))
        return;
    ssize_t sent = transport->send(transport->ctx, node->index, output.data, output.len);
    if (sent > 0)
        rl_pipeline_sent(&node->pipe, (size_t)sent);
}

/* Appends a request of `claim` in this form to the pipeline. Returns false without memory. */
bool rl_node_send_request(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          enum rl_verb verb, enum rl_form form, uint64_t now_ns)
{
    const struct rl_encoded *encoded = encode(node, claim, verb, form);
    struct rl_request request = {
        .claim = claim,
        .sent_ns = now_ns,
        .round = round,
        .verb = (uint8_t)verb,
        .form = (uint8_t)form,
    };

    if (encoded == NULL || !rl_pipeline_push(&node->pipe, &request, encoded->bytes, encoded->len))
        return false;
    if (rl_protocol[verb].resets_ttl)
        claim->renewed_ns = now_ns;
    node->counters.requests++;
    if (rl_connection_is_ready(&node->conn))
        rl_node_note_dirty(node);
    if (rl_pipeline_output(&node->pipe).len >= RL_FLUSH_BYTES)
        flush_early(node, encoded->len);
    return true;
}

/* Hands the greeting or the output to the transport, as much as it accepts. Closes the connection
 * on an error. Reports a change of the node if the pipeline is no longer full. Plans the next tick
 * for the requests that were appended. */
void rl_node_flush(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_transport *transport = &node->common->transport;

    if (rl_connection_state(&node->conn) == RL_NODE_GREETING) {
        rl_greeting_flush(node, now_ns);
        return;
    }
    if (!rl_connection_is_ready(&node->conn))
        return;
    bool was_full = rl_pipeline_is_full(&node->pipe);
    for (;;) {
        struct rl_arg output = rl_pipeline_output(&node->pipe);
        if (output.len == 0)
            break;
        ssize_t sent = transport->send(transport->ctx, node->index, output.data, output.len);
        if (sent < 0) {
            rl_node_close(node, REDLOCK_CAUSE_DISCONNECT,
                          rl_transport_reason(transport, node->index), true, now_ns);
            return;
        }
        if (sent == 0)
            break;
        rl_pipeline_sent(&node->pipe, (size_t)sent);
    }
    if (was_full != rl_pipeline_is_full(&node->pipe))
        rl_node_notify_changed(node);
    rl_detector_replan(node, now_ns);
}

/* Closes the connection because the decoder has failed: without memory, or because of bytes that it
 * cannot parse. */
static void close_unreadable(struct rl_node *node, uint64_t now_ns)
{
    bool memory = rl_decoder_lacks_memory(&node->decoder);

    rl_node_close(node, memory ? REDLOCK_CAUSE_NO_MEMORY : REDLOCK_CAUSE_PROTOCOL,
                  memory ? "out of memory" : "not the Redis protocol, or too long", true, now_ns);
}

/* Removes a node whose received bytes have all been read from the set RL_INBOX_UNREAD. Plans the
 * next tick if requests are in flight; else frees memory that only a burst of requests needed. */
static void end_receiving(struct rl_node *node, uint64_t now_ns)
{
    rl_inbox_forget(&node->common->inbox, RL_INBOX_UNREAD, node->index);
    if (rl_pipeline_count(&node->pipe) != 0) {
        rl_detector_replan(node, now_ns);
        return;
    }
    rl_detector_note_idle(&node->detector);
    rl_pipeline_trim(&node->pipe);
    rl_undos_trim(node, &node->undos);
}

/* Reads the next reply and handles it, if it is complete. Adds the node to the set RL_INBOX_UNREAD
 * if there may be another reply, and removes the node from the set if not. */
static void take_reply(struct rl_node *node, uint64_t now_ns)
{
    bool greeting = rl_connection_state(&node->conn) == RL_NODE_GREETING;

    int got = rl_decoder_next_plain(&node->decoder);
    if (got == 0) {
        if (greeting)
            rl_greeting_expect(node);
        else
            rl_reply_expect(node);
        got = rl_decoder_next(&node->decoder);
    }
    if (got < 0)
        close_unreadable(node, now_ns);
    else if (got > 0 && greeting)
        rl_connection_take_greeting(node, now_ns);
    else if (got > 0)
        rl_node_reply(node, rl_decoder_reply(&node->decoder), now_ns);
    if (!rl_decoder_is_open(&node->decoder))
        return; /* closed */
    if (got == 0 || (!greeting && rl_decoder_is_done(&node->decoder)))
        end_receiving(node, now_ns);
    else
        rl_inbox_note(&node->common->inbox, RL_INBOX_UNREAD, node->index);
}

/* Hands received bytes to the decoder, and reads the first reply. Closes the connection if the
 * decoder fails. */
void rl_node_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns)
{
    if (rl_connection_state(&node->conn) != RL_NODE_GREETING &&
        !rl_connection_is_ready(&node->conn))
        return;
    if (rl_decoder_feed(&node->decoder, bytes, len))
        take_reply(node, now_ns);
    else
        close_unreadable(node, now_ns);
}

/* Makes the node a duplicate of `first`, or no duplicate (NULL). Has rl_node_next() called, which
 * closes the connection of a duplicate. */
void rl_node_set_duplicate(struct rl_node *node, const struct rl_node *first)
{
    if (first == NULL) {
        rl_eligibility_clear_duplicate(&node->eligibility);
        return;
    }
    rl_eligibility_set_duplicate(&node->eligibility, first->index);
    if (rl_connection_is_ready(&node->conn))
        rl_inbox_note(&node->common->inbox, RL_INBOX_UNREAD, node->index);
}

/* Does one step for a node in the set RL_INBOX_UNREAD: closes the connection of a duplicate, begins
 * to use a new connection, or reads the next reply. */
void rl_node_next(struct rl_node *node, uint64_t now_ns)
{
    if (rl_eligibility_is_duplicate(&node->eligibility) && rl_connection_is_ready(&node->conn))
        rl_node_close(node, REDLOCK_CAUSE_DUPLICATE, "same server as another address", true,
                      now_ns);
    else if (rl_connection_is_new(&node->conn))
        rl_connection_begin_use(node, now_ns);
    else
        take_reply(node, now_ns);
}

/* Does all that is due. Undos expire in any state of the connection. */
void rl_node_tick(struct rl_node *node, uint64_t now_ns)
{
    rl_undos_expire(node, now_ns);
    if (rl_connection_is_ready(&node->conn))
        rl_eligibility_review(node, now_ns);
    rl_trial_tick(node, now_ns);
    rl_connection_tick(node, now_ns);
    rl_detector_tick(node, now_ns);
    rl_undos_tick(node, now_ns);
    if (rl_heartbeat_due_ns(node) <= now_ns)
        rl_heartbeat_send(node, now_ns);
    rl_tracker_tick(node, now_ns);
}

/* Returns when rl_node_tick() has something to do (boot clock): the earliest instant of all parts;
 * RL_NEVER: none of them has. */
uint64_t rl_node_wake_ns(struct rl_node *node)
{
    uint64_t wake = rl_min_u64(rl_connection_due_ns(&node->conn), rl_detector_wake_ns(node));

    wake = rl_min_u64(wake, rl_trial_due_ns(node));
    wake = rl_min_u64(wake, rl_heartbeat_due_ns(node));
    wake = rl_min_u64(wake, rl_tracker_due_ns(node));
    if (rl_connection_is_ready(&node->conn))
        wake = rl_min_u64(wake, rl_eligibility_due_ns(&node->eligibility));
    return rl_min_u64(wake, rl_undos_wake_ns(node, &node->undos));
}

/* Returns true if an undo with this token is pending, or a request with it is in flight. */
bool rl_node_uses_token(const struct rl_node *node, struct rl_arg token)
{
    return rl_undos_use_token(&node->undos, token) || rl_pipeline_uses_token(&node->pipe, token);
}
