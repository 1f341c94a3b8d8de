/* SPDX-License-Identifier: MIT
 * Which words a request to a node has: of a claim, and of what all nodes of a client have in
 * common.
 */
#include "core/wire_fence.h"
#include "core/wire_many.h"
#include "node/node_parts.h"

#include <string.h>

static void say_record(const struct rl_node *node, struct rl_command *command,
                       const struct rl_claim *claim, enum rl_verb verb, enum rl_form form)
{
    const struct rl_node_common *common = node->common;
    struct rl_arg words = rl_claim_token(claim);
    const char *run = common->fence_run_bound ? node->run_id : "";
    const struct rl_record_words record = {
        .record = common->fence_record,
        .config = common->fence_config,
        .mark = claim->forced ? (struct rl_arg){"*", 1}
                              : (struct rl_arg){words.data, RL_RECORD_MARK_LEN},
        .run = {run, strlen(run)},
        .numbers = {words.data + RL_RECORD_MARK_LEN, words.len - RL_RECORD_MARK_LEN},
    };

    rl_wire_record_command(command, verb, form, &record);
}

static void say_many(struct rl_command *command, const struct rl_claim *claim, enum rl_verb verb)
{
    struct rl_arg keys[RL_KEYS_MAX];
    unsigned count = rl_claim_keys(claim, keys);

    if (verb == RL_VERB_PTTL)
        rl_wire_command(command, verb, RL_FORM_PLAIN, keys[claim->watched], (struct rl_arg){"", 0},
                        0);
    else
        rl_wire_many_command(command, verb, keys, count, rl_claim_token(claim), claim->ttl_ms);
}

void rl_node_words(const struct rl_node *node, struct rl_command *command,
                   const struct rl_claim *claim, enum rl_verb verb, enum rl_form form)
{
    const struct rl_node_common *common = node->common;
    bool vote = verb == RL_VERB_ACQUIRE && form != RL_FORM_PLAIN;
    const struct rl_fence_words words = {
        .record = common->fence_record,
        .config = common->fence_config,
        .stripe = claim->stripe,
        .number = vote ? claim->proposal : claim->number,
    };

    if (verb == RL_VERB_READ || verb == RL_VERB_SEED)
        say_record(node, command, claim, verb, form);
    else if (claim->more != 0)
        say_many(command, claim, verb);
    else if (vote || verb == RL_VERB_RAISE)
        rl_wire_vote_command(command, verb, form, rl_claim_key(claim), rl_claim_token(claim),
                             claim->ttl_ms, &words);
    else
        rl_wire_command(command, verb, form, rl_claim_key(claim), rl_claim_token(claim),
                        claim->ttl_ms);
}
