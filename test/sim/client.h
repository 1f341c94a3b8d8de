/* SPDX-License-Identifier: MIT
 * A client process: the library's engine on modelled clocks, memory and connections. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "world.h"

void sim_client_init(struct sim_world *world, unsigned index);
/* A new process in its place. */
void sim_client_start(struct sim_world *world, unsigned index);
/* The process dies (true), or closes its engine in order (false). */
void sim_client_end(struct sim_world *world, unsigned index, bool dies);

/* Something for its loop: a segment, which it keeps, or NULL: there is room in `conn` again. */
void sim_client_inbox(struct sim_world *world, struct sim_conn *conn, struct sim_segment *segment);
/* SIM_TURN */
void sim_client_turn(struct sim_world *world, unsigned index, uint32_t stamp);
/* The process stands still until then; its clocks go on, unless somebody stopped them. */
void sim_client_pause(struct sim_client *client, uint64_t until_ns);

struct rl_now sim_client_clocks(const struct sim_client *client, uint64_t true_ns);
/* true: the process runs now. */
bool sim_client_runs(const struct sim_client *client);

/* user.c: what the users of the process do. */
void sim_user_begin(struct sim_world *world, unsigned client);
void sim_user_act(struct sim_world *world, unsigned client, unsigned slot, uint32_t stamp);
void sim_user_report(struct sim_world *world, unsigned client, unsigned slot, uint32_t stamp);
void sim_user_cancel(struct sim_world *world, unsigned client, unsigned slot, uint32_t stamp);
void sim_user_limit(struct sim_world *world, unsigned client, unsigned slot, uint32_t stamp);
/* Faults are over: finish what was begun. */
void sim_user_finish(struct sim_world *world, unsigned client);
bool sim_user_is_idle(const struct sim_client *client);
/* After whatever touched the engine: locks that it let go of are freed. */
void sim_user_sweep(struct sim_client *client);
/* Listener of the engine. */
void sim_user_lock(void *ctx, struct rl_lock *lock, uint32_t flags, int status);

#endif
