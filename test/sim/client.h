/* SPDX-License-Identifier: MIT
 * A client process: the library's engine on modelled clocks, memory and connections.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "world.h"

/* Sets up the clocks and settings of client `index`, before its first process starts. */
void sim_client_init(struct sim_world *world, unsigned index);
/* Starts a new process of client `index`, and its users. */
void sim_client_start(struct sim_world *world, unsigned index);
/* Ends the process: it dies if `dies`, and otherwise closes its engine. Checks that all its memory
 * was freed. */
void sim_client_end(struct sim_world *world, unsigned index, bool dies);

/* Appends to the client's inbox: a segment, which the client then owns, or NULL if `conn` has room
 * again. */
void sim_client_inbox(struct sim_world *world, struct sim_conn *conn, struct sim_segment *segment);
/* Handles SIM_TURN: turns the client's loop. */
void sim_client_turn(struct sim_world *world, unsigned index, uint32_t stamp);
/* Stops the process until then. Its clocks run on unless a fault has stopped them. */
void sim_client_pause(struct sim_client *client, uint64_t until_ns);

/* Returns what the client's clocks show at that true time. */
struct rl_now sim_client_clocks(const struct sim_client *client, uint64_t true_ns);
/* Reads the clocks for what the engine does next, and notes the reading for the oracle. */
void sim_client_refresh(struct sim_client *client);
/* Returns whether the process runs now. */
bool sim_client_runs(const struct sim_client *client);

/* user.c: the users of the process. sim_user_begin() starts them; each function with a `stamp`
 * handles the event of its name (SIM_USER, SIM_REPORT, SIM_CANCEL, SIM_DIE, SIM_LIMIT), and does
 * nothing if the event belongs to an earlier operation. */
void sim_user_begin(struct sim_world *world, unsigned client);
void sim_user_act(struct sim_world *world, unsigned client, unsigned user, uint32_t stamp);
void sim_user_report(struct sim_world *world, unsigned client, unsigned user, uint32_t stamp);
void sim_user_cancel(struct sim_world *world, unsigned client, unsigned user, uint32_t stamp);
void sim_user_die(struct sim_world *world, unsigned client, unsigned user, uint32_t stamp);
void sim_user_limit(struct sim_world *world, unsigned client, unsigned user, uint32_t stamp);
/* In a supervised run, plans the death of the process during an attempt that has begun. */
void sim_user_risk(struct sim_client *client);
/* In a supervised run, offers a token of the process, which dies, for another user to adopt. */
void sim_user_bequeath(struct sim_client *client);
/* Has the holders release their locks soon, after the last fault. */
void sim_user_finish(struct sim_world *world, unsigned client);
/* Returns whether all users of the client are idle. */
bool sim_user_is_idle(const struct sim_client *client);
/* Frees the locks that the engine has freed. Called after everything that touches the engine. */
void sim_user_sweep(struct sim_client *client);
/* Takes what the engine has announced. */
void sim_user_take(struct sim_client *client);

#endif
