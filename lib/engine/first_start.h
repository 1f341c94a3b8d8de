/* SPDX-License-Identifier: MIT
 * The first start of the fence records: no node has a record in use, and this client has never seen
 * one in use. Then the gaps of all nodes are filled without a wait. (A gap is a record that is not
 * in use and may be filled; record.h. A record is empty if it has no fencing token in it.) The
 * functions here only decide; record.c reads and fills the records.
 *
 * The first start requires that all nodes are read twice, and that both readings find the same
 * empty gap on each: the mark from before the second reading, on the same run of the server. So
 * there was an instant at which all records were empty, and no vote from before that instant can
 * count. A node that still has its mark later has not been in use since that instant, so a first
 * start that was interrupted can go on.
 *
 * Attempts count grants only once their client has seen a quorum of records in use. Otherwise a
 * node could be used and lose its record before the second reading finds it empty.
 *
 * test/model checks each of these rules, and shows what happens without it (rows first-start and
 * start-*). */
#ifndef RL_ENGINE_FIRST_START_H
#define RL_ENGINE_FIRST_START_H

#include "core/types.h"

struct rl_engine;

/* Returns whether each node whose record was read has an empty gap, and this client has never seen
 * a record in use. */
bool rl_first_start_seems_new(const struct rl_engine *engine);
/* Returns whether all nodes have replied in this reading and are empty, and this client has never
 * seen a record in use. Then a second reading can begin the first start. */
bool rl_first_start_is_near(const struct rl_engine *engine);
/* Begins the first start if this was the second reading and has found the same gaps as the first
 * one: sets rl_record.first of all nodes. Returns whether it has begun. */
bool rl_first_start_begin(struct rl_engine *engine);
/* Returns the nodes that have replied in this reading and whose gap is still that of the first
 * start which this client has begun. */
rl_nodes rl_first_start_unchanged(const struct rl_engine *engine);
/* Returns whether some records are in use, but fewer than a quorum, and the others are empty:
 * another client may be in the middle of the first start. */
bool rl_first_start_is_elsewhere(const struct rl_engine *engine);

#endif
