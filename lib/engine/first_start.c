/* SPDX-License-Identifier: MIT
 * The first start of the fence records; first_start.h has the rules. A record's state is MISSING if
 * its server has no record in use, ADMITTED if the record is in use, and UNKNOWN if it was not
 * read. rl_records.used has the nodes whose record this client has ever seen in use, and
 * rl_records.answered those that have replied in the last reading. */
#include "engine/first_start.h"

#include "engine/engine.h"

/* Returns whether the node has no record in use, and its server had no number when it was read
 * last. */
static bool is_new(const struct rl_record *record)
{
    return record->state == RL_RECORD_MISSING && record->empty;
}

/* Returns whether the records may never have been used: this client has never seen one in use, and
 * each node that was read has no record and no number. */
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

/* Returns whether all nodes have replied in this reading and are empty, and this client has never
 * seen a record in use. Then a second reading can begin the first start. */
bool rl_first_start_is_near(const struct rl_engine *engine)
{
    for (unsigned i = 0; i < engine->count; i++)
        if (!is_new(&engine->records->nodes[i]))
            return false;
    return engine->records->used == 0 && engine->records->answered == rl_nodes_all(engine->count);
}

/* Begins the first start, if all nodes are empty and each has the same gap as in the reading
 * before: sets rl_record.first of all nodes. Returns whether it has begun. */
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

/* Returns the nodes that have replied in this reading and whose empty gap is still that of the
 * first start which this client has begun. */
rl_nodes rl_first_start_unchanged(const struct rl_engine *engine)
{
    const struct rl_records *records = engine->records;
    rl_nodes rest = 0;

    for (unsigned i = 0; i < engine->count; i++)
        rest |= records->nodes[i].first && is_new(&records->nodes[i]) ? RL_NODE(i) : 0;
    return rest & records->answered;
}

/* Returns whether another client may be in the middle of the first start: this client has seen some
 * records in use, but fewer than a quorum; at least one node is empty; and no node that was read is
 * in another state. */
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
