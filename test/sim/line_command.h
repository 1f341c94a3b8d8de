/* SPDX-License-Identifier: MIT
 * The script of the line as a command of a modelled server. */
#ifndef SIM_LINE_COMMAND_H
#define SIM_LINE_COMMAND_H

#include "command.h"

/* Executes SUBSCRIBE: the connection receives notifications of changes, or of the turns of one
 * waiter. */
void sim_line_subscribe(struct sim_call *call);
/* Executes the request J of a waiter without a connection, with this id, to the line of a resource.
 * It counts as listening. */
void sim_line_join_foreign(struct sim_world *world, unsigned node, unsigned resource,
                           const char *id);

/* Executes EVAL or EVALSHA of the script of the line and appends its reply. Returns whether the
 * command is that script. */
bool sim_line_script(struct sim_call *call, bool by_sha);

#endif
