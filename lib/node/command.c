/* SPDX-License-Identifier: MIT
 * Builds the command of a request, from the values of its claim and from those that all nodes of a
 * client share. */
#include "core/line.h"
#include "core/wire_fence.h"
#include "node/node_parts.h"

#include <string.h>

/* The end of the key of a line, after the key of the lock or the name of the semaphore. The
 * shorter one ends the longer one, so that both are refused as names of locks. */
#define LINE_OF_LOCK      RL_LINE_SUFFIX
#define LINE_OF_SEMAPHORE "{#}" RL_LINE_SUFFIX
#define FIRST_SLOT        "{#0}" /* end of the key of a semaphore's first slot, after the name */
static_assert(sizeof LINE_OF_SEMAPHORE <= RL_SUFFIX_MAX, "room for the key of the line");

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

/* Writes the first `len` bytes of `key` and then the suffix to `bytes`. Returns both as one word.
 */
static struct rl_arg with_suffix(char bytes[RL_KEY_MAX + RL_SUFFIX_MAX], struct rl_arg key,
                                 size_t len, const char *suffix)
{
    memcpy(bytes, key.data, len);
    memcpy(bytes + len, suffix, strlen(suffix) + 1);
    return (struct rl_arg){bytes, len + strlen(suffix)};
}

/* Returns the bytes of a semaphore's name: those of the claim's key without the slot. The key of an
 * inspection (LINE_PERMITS) has the first slot; before the first attempt a key has none. */
static size_t name_len(const struct rl_claim *claim, enum rl_verb verb, struct rl_arg key)
{
    size_t len = key.len;

    if (claim->slot == RL_SLOT_ANY && verb != RL_VERB_LINE_PERMITS)
        return len;
    while (len > 0 && key.data[len - 1] != '{')
        len--;
    return len - (len > 0);
}

/* Adds the values of a request to the line of the lock's resource to `arguments`. Writes the keys
 * that are stored nowhere else to `command`. The lock's key in a request to the line of a semaphore
 * is that of the slot of the attempt (LINE_SERVED), else that of the first slot: the client that
 * gets it as a notification finds the semaphore by it. */
static void add_line(const struct rl_node *node, const struct rl_claim *claim, enum rl_verb verb,
                     struct rl_command *command, struct rl_arguments *arguments)
{
    struct rl_arg key = arguments->key;

    if (claim->permits == 0 && verb != RL_VERB_LINE_PERMITS) {
        arguments->line = with_suffix(command->line, key, key.len, LINE_OF_LOCK);
    } else {
        size_t len = name_len(claim, verb, key);
        arguments->line = with_suffix(command->line, key, len, LINE_OF_SEMAPHORE);
        if (verb != RL_VERB_LINE_SERVED)
            arguments->key = with_suffix(command->slot, key, len, FIRST_SLOT);
    }
    arguments->state = (struct rl_arg){rl_tracker_hears_turns(node) ? "w" : "d", 1};
    arguments->waiter_text =
        (struct rl_arg){command->line_text, rl_line_write_text(command->line_text, claim->since_ms,
                                                               node->common->waiter_label)};
    arguments->waiter = node->common->waiter;
    arguments->beat = node->common->beat;
    arguments->trip_us = rl_detector_srtt_ns(&node->detector) / RL_US;
    arguments->heads = claim->permits == 0 ? 1 : rl_min_u64(claim->permits, RL_LINE_HEADS_MAX);
    arguments->victim = claim->victim;
    arguments->victim_beat = claim->victim_beat;
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
    if (rl_verb_is_line(verb) || verb == RL_VERB_LINE_LIST || verb == RL_VERB_LINE_PERMITS)
        add_line(node, claim, verb, command, &arguments);
    rl_protocol_format(command, verb, form, &arguments);
}
