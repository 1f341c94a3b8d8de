/* SPDX-License-Identifier: MIT
 * The script of the line as a command of a modelled server. */
#ifndef SIM_LINE_COMMAND_H
#define SIM_LINE_COMMAND_H

#include "command.h"

/* Executes EVAL or EVALSHA of the script of the line and appends its reply. Returns whether the
 * command is that script. */
bool sim_line_script(struct sim_call *call, bool by_sha);

#endif
