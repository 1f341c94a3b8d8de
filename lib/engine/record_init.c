/* SPDX-License-Identifier: MIT
 * The initialization of the fence records by an operator; record_init.h has the rules. record.c
 * sends the requests and takes the replies, and calls these functions for what differs from its
 * ordinary work. rl_records.init is true while the initialization is in progress. */
#include "engine/record_init.h"

#include "engine/engine.h"
#include "redlock/redlock.h"

/* Begins the initialization. `wait_ns`: time limit in nanoseconds; the reading has the first half
 * of it. */
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

/* Returns the boot time until which late replies of the present phase, reading or seeding, are
 * awaited. */
uint64_t rl_record_init_limit_ns(const struct rl_engine *engine)
{
    const struct rl_records *records = engine->records;

    return records->phase == RL_RECORDS_READING ? records->read_until_ns : records->init_until_ns;
}

/* Returns whether the late reply of this node is still awaited: an initialization is in progress,
 * its limit has not passed, and the request has timed out on a connection that is still open. */
bool rl_record_init_waits(const struct rl_engine *engine, unsigned node)
{
    const struct rl_records *records = engine->records;

    return records->init && (records->timed_out & RL_NODE(node)) != 0 &&
           rl_connection_is_ready(&engine->nodes[node].conn) &&
           engine->view.now.boot_ns < rl_record_init_limit_ns(engine);
}

/* Returns the nodes whose request has timed out and that can be asked again; none after the limit.
 */
rl_nodes rl_record_init_timed_out(const struct rl_engine *engine)
{
    const struct rl_records *records = engine->records;
    bool over = engine->view.now.boot_ns >= rl_record_init_limit_ns(engine);

    return over ? 0 : records->timed_out & (engine->view.up | engine->view.suspect);
}

/* Returns the nodes that get SEED after the reading: all that have replied. Returns 0, and forgets
 * the replies, if fewer than a quorum have replied or the time limit has passed. Raises each number
 * to be written at least to the wall clock in microseconds. */
rl_nodes rl_record_init_choose(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;
    uint64_t wall_us = engine->env.wall_us(engine->env.ctx);
    bool enough = rl_nodes_count(records->answered) >= engine->quorum;

    /* After the limit the operator was already informed that nothing was changed, so nothing may be
     * changed any more. */
    if (engine->view.now.boot_ns >= records->init_until_ns || !enough)
        records->answered = 0;
    for (unsigned i = 0; i < RL_FENCE_STRIPES; i++)
        records->fences[i] = rl_max_u64(records->fences[i], rl_fence_propose(0, wall_us));
    return records->answered;
}

/* Returns whether the initialization has ended. Sets `*ret_status`: ENOQUORUM if fewer than a
 * quorum have replied to the reading, or it has not ended; EFENCE if fewer than a quorum have taken
 * their records into use; else REDLOCK_OK. */
bool rl_records_init_is_done(const struct rl_engine *engine, int *ret_status)
{
    const struct rl_records *records = engine->records;
    bool was_read = records->init_done || records->phase == RL_RECORDS_SEEDING;
    bool enough = was_read && rl_nodes_count(records->answered) >= engine->quorum;
    bool written = rl_nodes_count(records->seeded) >= engine->quorum;

    *ret_status = !enough ? REDLOCK_ENOQUORUM : written ? REDLOCK_OK : REDLOCK_EFENCE;
    return records->init_done;
}
