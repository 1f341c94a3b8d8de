/* SPDX-License-Identifier: MIT
 * The fence record of a server: executes the library's scripts for fencing tokens.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "command.h"

/* The key and the configuration fingerprint that the clients use. */
#define SIM_RECORD_KEY "redlock:fence"
#define SIM_RECORD_CFG "v1 sim;"

/* Executes the script of this EVAL or EVALSHA. Returns false if it is not one for fencing tokens.
 */
bool sim_record_script(struct sim_call *call, bool by_sha);
/* Executes SCRIPT LOAD of a script for fencing tokens. Returns its SHA1 hash, or NULL if it is
 * another script. */
const char *sim_record_load(struct sim_call *call, struct sim_word text);

/* Returns the largest fencing token in a register; 0: none. */
uint64_t sim_record_number(const struct sim_record *record, unsigned stripe);

#endif
