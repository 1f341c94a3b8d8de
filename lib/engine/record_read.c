/* SPDX-License-Identifier: MIT
 * Interprets a fence record that was read: its state, and which gap it is if it is not in use. */
#include "engine/engine.h"
#include "engine/record.h"

#include <string.h>

/* Returns whether `arg` is equal to the first `len` bytes of `text`. */
static bool same(struct rl_arg arg, const char *text, size_t len)
{
    return arg.len == len && memcmp(arg.data, text, len) == 0;
}

bool rl_record_is_unattested(const struct rl_engine *engine, unsigned index)
{
    return !engine->params.fence_run_bound &&
           !rl_eligibility_is_durable(&engine->nodes[index].eligibility);
}

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

void rl_record_note_gap(const struct rl_engine *engine, unsigned index, struct rl_arg mark)
{
    struct rl_record *record = &engine->records->nodes[index];
    const char *run = rl_eligibility_run_id(&engine->nodes[index].eligibility);

    if (mark.len != RL_RECORD_MARK_LEN)
        mark = (struct rl_arg){"----------------",
                               RL_RECORD_MARK_LEN}; /* SEED with this mark is denied */
    record->unchanged =
        same(mark, record->mark, RL_RECORD_MARK_LEN) && strcmp(run, record->run) == 0;
    if (record->unchanged)
        return;
    record->first = false;
    memcpy(record->mark, mark.data, RL_RECORD_MARK_LEN);
    memcpy(record->run, run, sizeof record->run);
    record->since = engine->view.now;
}
