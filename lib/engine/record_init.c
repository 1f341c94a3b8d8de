/* SPDX-License-Identifier: MIT
 * The initialization of the fence records by an operator. */
#include "engine/record_init.h"

#include "engine/engine.h"
#include "redlock/redlock.h"

void rl_record_init_begin(struct rl_engine *engine, uint64_t wait_ns)
{
    struct rl_records *records = engine->records;
    uint64_t now_ns = engine->view.now.boot_ns;

    records->init = true;
    records->init_done = false;
    records->seeded = 0;
    records->read_until_ns = rl_add_sat(now_ns, wait_ns / 2);
    records->init_until_ns = rl_add_sat(now_ns, wait_ns);
}

uint64_t rl_record_init_limit_ns(const struct rl_engine *engine)
{
    const struct rl_records *records = engine->records;

    return records->phase == RL_RECORDS_READING ? records->read_until_ns : records->init_until_ns;
}

bool rl_record_init_waits(const struct rl_engine *engine, unsigned node)
{
    const struct rl_records *records = engine->records;

    return records->init && (records->timed_out & RL_NODE(node)) != 0 &&
           rl_connection_is_ready(&engine->nodes[node].conn) &&
           engine->view.now.boot_ns < rl_record_init_limit_ns(engine);
}

rl_nodes rl_record_init_timed_out(const struct rl_engine *engine)
{
    const struct rl_records *records = engine->records;
    bool over = engine->view.now.boot_ns >= rl_record_init_limit_ns(engine);

    return over ? 0 : records->timed_out & (engine->view.up | engine->view.suspect);
}

rl_nodes rl_record_init_choose(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;
    uint64_t wall_us = engine->env.wall_us(engine->env.ctx);
    bool enough = rl_nodes_count(records->answered) >= engine->quorum;

    /* After the limit, the operator was already informed that nothing was changed. */
    if (engine->view.now.boot_ns >= records->init_until_ns || !enough)
        records->answered = 0;
    for (unsigned i = 0; i < RL_FENCE_STRIPES; i++)
        records->fences[i] = rl_max_u64(records->fences[i], rl_fence_propose(0, wall_us));
    return records->answered;
}

bool rl_records_init_is_done(const struct rl_engine *engine, int *ret_status)
{
    const struct rl_records *records = engine->records;
    bool was_read = records->init_done || records->phase == RL_RECORDS_SEEDING;
    bool enough = was_read && rl_nodes_count(records->answered) >= engine->quorum;
    bool written = rl_nodes_count(records->seeded) >= engine->quorum;

    *ret_status = !enough ? REDLOCK_ENOQUORUM : written ? REDLOCK_OK : REDLOCK_EFENCE;
    return records->init_done;
}
