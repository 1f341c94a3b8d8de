/* SPDX-License-Identifier: MIT
 * The first start of the fence records; first_start.h has the rules. */
#include "engine/first_start.h"

#include "engine/engine.h"

/* Returns whether the record is missing and had no number at the last reading. */
static bool is_new(const struct rl_record *record)
{
    return record->state == RL_RECORD_MISSING && record->empty;
}

bool rl_first_start_seems_new(const struct rl_engine *engine)
{
    if (engine->records->used != 0)
        return false;
    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_record *record = &engine->records->nodes[i];
        if (!is_new(record) && record->state != RL_RECORD_UNKNOWN)
            return false;
    }
    return true;
}

bool rl_first_start_is_near(const struct rl_engine *engine)
{
    for (unsigned i = 0; i < engine->count; i++)
        if (!is_new(&engine->records->nodes[i]))
            return false;
    return engine->records->used == 0 && engine->records->answered == rl_nodes_all(engine->count);
}

bool rl_first_start_begin(struct rl_engine *engine)
{
    struct rl_record *nodes = engine->records->nodes;

    if (!rl_first_start_is_near(engine))
        return false;
    for (unsigned i = 0; i < engine->count; i++)
        if (!nodes[i].unchanged)
            return false;
    for (unsigned i = 0; i < engine->count; i++)
        nodes[i].first = true;
    return true;
}

rl_nodes rl_first_start_unchanged(const struct rl_engine *engine)
{
    const struct rl_records *records = engine->records;
    rl_nodes rest = 0;

    for (unsigned i = 0; i < engine->count; i++)
        rest |= records->nodes[i].first && is_new(&records->nodes[i]) ? RL_NODE(i) : 0;
    return rest & records->answered;
}

bool rl_first_start_is_elsewhere(const struct rl_engine *engine)
{
    bool any = false;

    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_record *record = &engine->records->nodes[i];
        any |= is_new(record);
        if (!is_new(record) && record->state != RL_RECORD_ADMITTED &&
            record->state != RL_RECORD_UNKNOWN)
            return false;
    }
    return any && engine->records->used != 0 &&
           rl_nodes_count(engine->records->used) < engine->quorum;
}
