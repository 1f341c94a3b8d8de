/* SPDX-License-Identifier: MIT
 * Builds the command of a request, from the values of its claim and from those that all nodes of a
 * client share. */
#include "core/line.h"
#include "core/wire_fence.h"
#include "node/node_parts.h"

#include <string.h>

/* Adds the values of a request about a fence record (READ or SEED) to `arguments`. The token of
 * such a claim is not a lock's: its first RL_RECORD_MARK_LEN bytes are the mark, the rest are the
 * registers for SEED. A claim with `forced` sends "*" as the mark, which fits any mark. */
static void add_record(const struct rl_node *node, const struct rl_claim *claim,
                       struct rl_arguments *arguments)
{
    const char *run =
        node->common->fence_run_bound ? rl_eligibility_run_id(&node->eligibility) : "";
    struct rl_arg token = arguments->token;

    arguments->mark =
        claim->forced ? (struct rl_arg){"*", 1} : (struct rl_arg){token.data, RL_RECORD_MARK_LEN};
    arguments->run = (struct rl_arg){run, strlen(run)};
    arguments->fences =
        (struct rl_arg){token.data + RL_RECORD_MARK_LEN, token.len - RL_RECORD_MARK_LEN};
}

/* Adds the values of a request to the line of the lock's resource to `arguments`. Writes the key of
 * the line and the text of the waiter to `command`, because they are stored nowhere else. */
static void add_line(const struct rl_node *node, struct rl_command *command,
                     struct rl_arguments *arguments)
{
    size_t len = arguments->key.len;

    RL_ASSERT(len <= RL_KEY_MAX);
    static_assert(sizeof RL_LINE_SUFFIX - 1 <= RL_SUFFIX_MAX, "room for the key of the line");
    memcpy(command->line, arguments->key.data, len);
    memcpy(command->line + len, RL_LINE_SUFFIX, sizeof RL_LINE_SUFFIX - 1);
    arguments->line = (struct rl_arg){command->line, len + sizeof RL_LINE_SUFFIX - 1};
    arguments->state = (struct rl_arg){rl_tracker_hears_turns(node) ? "w" : "d", 1};
    arguments->waiter_text = (struct rl_arg){
        command->line_text, rl_line_write_text(command->line_text, node->common->line.since_ms,
                                               node->common->line.owner)};
    arguments->waiter = node->common->line.waiter;
    arguments->trip_us = rl_detector_srtt_ns(&node->detector) / RL_US;
    arguments->victim = node->common->line.victim;
    arguments->victim_beat = node->common->line.victim_beat;
}

/* Fills in the words of `command`: `verb` in `form`, with the values of `claim` and those that all
 * nodes share. The words borrow from the node, the claim and `command`. */
void rl_node_build_command(const struct rl_node *node, struct rl_command *command,
                           const struct rl_claim *claim, enum rl_verb verb, enum rl_form form)
{
    struct rl_arg keys[RL_KEYS_MAX];
    struct rl_arguments arguments = {
        .key = rl_claim_key(claim),
        .token = rl_claim_token(claim),
        .ttl_ms = claim->ttl_ms,
        .record = node->common->fence_record,
        .config = node->common->fence_config,
        .stripe = claim->stripe,
        .fence = verb == RL_VERB_ACQUIRE ? claim->proposal : claim->fence,
    };

    if (claim->more_keys != 0) {
        arguments.key_count = rl_claim_keys(claim, keys);
        arguments.keys = keys;
        arguments.key = keys[claim->probed_key]; /* for PTTL, which reads one key */
    }
    if (claim->is_record)
        add_record(node, claim, &arguments);
    if (rl_verb_is_line(verb) || verb == RL_VERB_LINE_LIST)
        add_line(node, command, &arguments);
    rl_protocol_format(command, verb, form, &arguments);
}
