/* SPDX-License-Identifier: MIT
 * Interprets a fence record that was read from a node: its state, and which gap it is if it is not
 * in use. A gap is a record that is not in use and may be taken into use. Two readings have found
 * the same gap if the mark in it (a random text that the first reader leaves there) and the run id
 * of its server are the same. */
#include "engine/engine.h"
#include "engine/record.h"

#include <string.h>

/* Returns whether `arg` is equal to the `len` bytes at `text`. */
static bool same(struct rl_arg arg, const char *text, size_t len)
{
    return arg.len == len && memcmp(arg.data, text, len) == 0;
}

/* Returns whether fence records must be durable (fence_run_bound is false), and the operator has
 * not attested in the address that the server of this node is durable. `index`: index of the node.
 */
bool rl_record_is_unattested(const struct rl_engine *engine, unsigned index)
{
    return !engine->params.fence_run_bound &&
           !rl_eligibility_is_durable(&engine->nodes[index].eligibility);
}

/* Returns the state of a node's record. `config`: what the record says of its configuration: the
 * fingerprint and, if records are volatile, the run id of the server run that it holds for; empty:
 * the record is not in use. */
enum rl_record_state rl_record_classify(const struct rl_engine *engine, unsigned index,
                                        struct rl_arg config)
{
    struct rl_arg ours = engine->params.fence_config;
    /* Run id of the server that the node is connected to. */
    const char *run = rl_eligibility_run_id(&engine->nodes[index].eligibility);

    if (rl_record_is_unattested(engine, index))
        return RL_RECORD_UNATTESTED;
    if (config.len == 0)
        return RL_RECORD_MISSING;
    if (config.len < ours.len || memcmp(config.data, ours.data, ours.len) != 0)
        return RL_RECORD_FOREIGN;
    if (!engine->params.fence_run_bound)
        return RL_RECORD_ADMITTED;
    struct rl_arg rest = {config.data + ours.len, config.len - ours.len};
    return rest.len != 0 && same(rest, run, strlen(run)) ? RL_RECORD_ADMITTED : RL_RECORD_OLD_RUN;
}

/* Notes in the node's struct rl_record that it has a gap with this mark. If the gap is not the one
 * that was seen before, its wait starts anew, and it does not belong to a first start of this
 * client. */
void rl_record_note_gap(const struct rl_engine *engine, unsigned index, struct rl_arg mark)
{
    struct rl_record *record = &engine->records->nodes[index];
    const char *run = rl_eligibility_run_id(&engine->nodes[index].eligibility);

    if (mark.len != RL_RECORD_MARK_LEN)
        /* The record has no valid mark. No record has this one either, so SEED is denied. */
        mark = (struct rl_arg){"----------------", RL_RECORD_MARK_LEN};
    record->unchanged =
        same(mark, record->mark, RL_RECORD_MARK_LEN) && strcmp(run, record->run) == 0;
    if (record->unchanged)
        return;
    record->first = false;
    memcpy(record->mark, mark.data, RL_RECORD_MARK_LEN);
    memcpy(record->run, run, sizeof record->run);
    record->since = engine->view.now;
}
