/* SPDX-License-Identifier: MIT
 * The first start of the fence records: no node has one, and this client has never seen any in use.
 *
 * All nodes are read twice. Found empty both times, with the mark that was there before the second
 * look began and on the same run of their servers, they were all empty at one time, and no vote of
 * before can count. What has its mark still, whenever that is, has not been in use since, and comes
 * into use as if it had been on that day: so a first start that breaks off goes on.
 *
 * It takes all nodes, and two looks, and votes only by clients that have seen a majority in use:
 * else a node may have been used by somebody, and have forgotten it, before it was found empty.
 * test/model has each of these rules, and what happens without it (rows first-start, start-*). */
#ifndef RL_ENGINE_FIRST_START_H
#define RL_ENGINE_FIRST_START_H

#include "core/types.h"

struct rl_engine;

/* Nobody who answers has ever stored a number, as far as we know. */
bool rl_first_start_seems_new(const struct rl_engine *engine);
/* All have answered and look new: what is missing is a second look. */
bool rl_first_start_is_near(const struct rl_engine *engine);
/* This was the second look: the first start begins. */
bool rl_first_start_begin(struct rl_engine *engine);
/* Nodes that answered, and may be taken into use because they still are as they were when the first
 * start began. */
rl_nodes rl_first_start_unchanged(const struct rl_engine *engine);
/* Some nodes came into use and the others look new: somebody else may be at it. */
bool rl_first_start_is_elsewhere(const struct rl_engine *engine);

#endif
