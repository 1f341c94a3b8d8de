/* SPDX-License-Identifier: MIT
 * Appends the requests of a round to the pipeline of a node, in the form that suits the claim. The
 * public functions differ in when and what they send: rl_node_request() not to a suspect node,
 * rl_node_request_suspect() to a suspect node, too, rl_node_probe_and_track() always PTTL, and
 * rl_node_request_line() a request to the line. */
#include "node/node_parts.h"
#include "redlock/redlock.h"

/* Returns why no request can be sent; see node_parts.h. */
int rl_node_failure_cause(const struct rl_node *node)
{
    return rl_connection_cause(&node->conn) != REDLOCK_CAUSE_NONE ? rl_connection_cause(&node->conn)
                                                                  : REDLOCK_CAUSE_DISCONNECT;
}

/* Appends the request to the pipeline; in front of an ACQUIRE, a heartbeat if one is due. Makes
 * room for the undo first, so that the undo cannot fail for lack of memory. Returns 0 or
 * REDLOCK_CAUSE_NO_MEMORY. */
static int append_request(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          enum rl_verb verb, uint64_t now_ns)
{
    /* Upper bounds in bytes. The undo: 192 for words and lengths, the keys (up to token_at) and
     * the token. With several keys: the script, and 16 per key for its length. The request
     * itself: 64 more for the TTL and options. To a line: its key, the text for people, and 192 for
     * numbers and lengths. With a fence: the record's key, the configuration, and 96 for numbers
     * and lengths. */
    size_t undo_bytes = 192 + (size_t)claim->token_at + claim->token_len;
    if (claim->more_keys != 0)
        undo_bytes += RL_SCRIPT_MULTI_MAX + claim->more_keys * (size_t)16;
    size_t bytes = undo_bytes + 64;

    if (verb == RL_VERB_ACQUIRE && rl_heartbeat_due_ns(node) <= now_ns)
        rl_heartbeat_send(node, now_ns);
    if (rl_verb_is_line(verb))
        bytes += claim->key_len + RL_LINE_TEXT_MAX + 192;
    if (claim->fenced)
        bytes += node->common->fence_record.len + node->common->fence_config.len + 96;
    /* Two requests: this one and its undo. */
    if (!rl_pipeline_reserve(&node->pipe, 2, bytes + undo_bytes) || !rl_undos_reserve(node))
        return REDLOCK_CAUSE_NO_MEMORY;
    claim->requested_ns = now_ns;
    enum rl_form form = rl_protocol_first_form(verb, claim->fenced, claim->more_keys != 0);
    if (!rl_node_send_request(node, claim, round, verb, form, now_ns))
        return REDLOCK_CAUSE_NO_MEMORY;
    /* No vote SUSPECT is reported for this request: the engine knows that the node is suspect. */
    rl_pipeline_newest(&node->pipe)->suspected = rl_detector_is_suspect(&node->detector);
    return REDLOCK_CAUSE_NONE;
}

/* Appends a request for `claim` to the pipeline; its vote belongs to the round with number `round`.
 * Returns 0, or the enum redlock_cause for which nothing was appended. */
int rl_node_request(struct rl_node *node, struct rl_claim *claim, uint32_t round, enum rl_verb verb,
                    uint64_t now_ns)
{
    return rl_node_is_up(node) ? append_request(node, claim, round, verb, now_ns)
                               : rl_node_failure_cause(node);
}

/* Requests the remaining TTL of the claim's key, and has the server track the key if notifications
 * are on. Returns as rl_node_request(). */
int rl_node_probe_and_track(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                            uint64_t now_ns)
{
    if (rl_node_is_up(node))
        rl_tracker_register(node, claim, now_ns);
    return rl_node_request(node, claim, round, RL_VERB_PTTL, now_ns);
}

/* Appends a request to the line of the claim's resource. LINE_LEAVE is sent to a suspect node, too.
 * Returns as rl_node_request(). */
int rl_node_request_line(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                         enum rl_verb verb, uint64_t now_ns)
{
    if (rl_verb_looks_at_line(verb) && rl_node_is_up(node))
        rl_tracker_register(node, claim, now_ns);
    return verb == RL_VERB_LINE_LEAVE ? rl_node_request_suspect(node, claim, round, verb, now_ns)
                                      : rl_node_request(node, claim, round, verb, now_ns);
}

/* Appends a request as rl_node_request(), but to a suspect node, too. */
int rl_node_request_suspect(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                            enum rl_verb verb, uint64_t now_ns)
{
    bool sendable = rl_connection_is_ready(&node->conn) && !rl_pipeline_is_full(&node->pipe);

    return sendable ? append_request(node, claim, round, verb, now_ns)
                    : rl_node_request(node, claim, round, verb, now_ns);
}
