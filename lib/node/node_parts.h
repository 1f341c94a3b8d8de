/* SPDX-License-Identifier: MIT
 * Functions that the files of a node share beyond its parts' headers. Only files of lib/node
 * include this. */
#ifndef RL_NODE_NODE_PARTS_H
#define RL_NODE_NODE_PARTS_H

#include "node/node.h"

/* reply.c */
void rl_node_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);
/* Tells the decoder what the next answer may be. */
void rl_reply_expect(struct rl_node *node);
/* Puts a vote without a reply in the inbox, if the claim has an owner and it belongs to a round. */
void rl_node_deliver_vote(struct rl_node *node, const struct rl_request *request,
                          const struct rl_result *result);

static inline void rl_node_note_dirty(const struct rl_node *node)
{
    node->common->inbox.dirty |= RL_NODE(node->index);
}

/* Something has changed that rl_node_wake_ns() depends on; all but what rl_detector_note() knows.
 */
static inline void rl_node_replan(struct rl_node *node)
{
    node->common->wake_known = false;
}

/* node.c: a command of these words, good until the next one; NULL: no memory. */
const struct rl_encoded *rl_node_encode(struct rl_node *node, size_t argc,
                                        const struct rl_arg *args);
/* The same for a verb without a claim, in its plain form; `text` is rl_arguments.text. */
const struct rl_encoded *rl_node_encode_verb(struct rl_node *node, enum rl_verb verb,
                                             struct rl_arg word);
bool rl_node_send_request(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          enum rl_verb verb, enum rl_form form, uint64_t now_ns);
void rl_node_notify_changed(struct rl_node *node);

/* command.c: fills `command`; it borrows from the node and the claim. */
void rl_node_build_command(const struct rl_node *node, struct rl_command *command,
                           const struct rl_claim *claim, enum rl_verb verb, enum rl_form form);

#endif
