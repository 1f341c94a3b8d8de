/* SPDX-License-Identifier: MIT
 * Functions that the files of a node share beyond its parts' headers. Only files of lib/node
 * include this. */
#ifndef RL_NODE_NODE_PARTS_H
#define RL_NODE_NODE_PARTS_H

#include "node/node.h"

/* reply.c: handles the reply to the oldest request in flight: reports its vote, learns from it, and
 * sends the request again in another form if the server does not know this one. May close
 * the connection. */
void rl_node_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);
/* reply.c: sets the decoder's limits for the reply to the oldest request in flight. */
void rl_reply_expect(struct rl_node *node);
/* reply.c: adds a vote without a reply to the inbox: what `result` says about the request. Adds
 * none if the claim of the request has no owner, or its round is 0. */
void rl_node_deliver_vote(struct rl_node *node, const struct rl_request *request,
                          const struct rl_result *result);

/* Notes that the node has output: the engine calls rl_node_flush() before the tick ends. */
static inline void rl_node_note_dirty(const struct rl_node *node)
{
    node->common->inbox.dirty |= RL_NODE(node->index);
}

/* Returns the boot clock as it is now. The time at which the tick has begun may be older if this
 * process was stopped, and the server may have lost its keys between the two. */
static inline uint64_t rl_node_clock_ns(const struct rl_node *node)
{
    const struct rl_clocks *clocks = &node->common->clocks;

    return clocks->now(clocks->ctx).boot_ns;
}

/* Notes that rl_node_wake_ns() may have become earlier, so that the engine computes it again.
 * After requests and replies, rl_detector_replan() is called instead, which does the same only when
 * it is needed. */
static inline void rl_node_replan(struct rl_node *node)
{
    node->common->wake_known = false;
}

/* node.c: encodes a command of `argc` words. Returns it, valid until the next one is encoded, or
 * NULL without memory. */
const struct rl_encoded *rl_node_encode(struct rl_node *node, size_t argc,
                                        const struct rl_arg *args);
/* node.c: encodes a command without a claim: `verb` in its plain form. `text` is rl_arguments.text.
 * Returns as rl_node_encode(). */
const struct rl_encoded *rl_node_encode_verb(struct rl_node *node, enum rl_verb verb,
                                             struct rl_arg text);
/* node.c: appends a request of `claim` in this form to the pipeline. Its vote belongs to the round
 * with number `round`; 0: no vote is reported. Returns false without memory. */
bool rl_node_send_request(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          enum rl_verb verb, enum rl_form form, uint64_t now_ns);
/* node.c: reports to the engine that the state or the eligibility of the node has changed. */
void rl_node_notify_changed(struct rl_node *node);

/* command.c: fills in the words of `command` for a request of `claim`. The words borrow from the
 * node and the claim. */
void rl_node_build_command(const struct rl_node *node, struct rl_command *command,
                           const struct rl_claim *claim, enum rl_verb verb, enum rl_form form);

/* request.c. Returns the enum redlock_cause for which no request can be sent to the node: that of
 * its connection, or else REDLOCK_CAUSE_DISCONNECT. */
int rl_node_failure_cause(const struct rl_node *node);

#endif
