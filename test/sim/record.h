/* SPDX-License-Identifier: MIT
 * The fence record of a server: what the scripts of fences do there. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "command.h"

/* What the library is told. */
#define SIM_RECORD_KEY "redlock:fence"
#define SIM_RECORD_CFG "v1 sim;"

/* Runs the script of this EVAL or EVALSHA; false: it is none of them. */
bool sim_record_script(struct sim_call *call, bool by_sha);
/* SCRIPT LOAD of one of them. NULL: it is none. */
const char *sim_record_load(struct sim_call *call, struct sim_word text);

uint64_t sim_record_number(const struct sim_record *record, unsigned stripe);

#endif
