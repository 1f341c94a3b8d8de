/* SPDX-License-Identifier: MIT
 * The subcommands. Each function runs one, prints its messages and returns the exit code.
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "options.h"
#include "redlock/redlock.h"

/* Each of these functions runs the subcommand of its name. */
int cmd_run(const struct options *options);
int cmd_acquire(const struct options *options);
int cmd_extend(const struct options *options);
int cmd_release(const struct options *options);
int cmd_status(const struct options *options);
int cmd_nodes(const struct options *options);
int cmd_break(const struct options *options);
int cmd_config(const struct options *options);
int cmd_watch(const struct options *options);
int cmd_sandbox(const struct options *options);

/* Run `nodes --init` and `nodes --acl`. */
int nodes_init(const struct options *options);
int nodes_acl(const struct options *options);

struct examination;
struct settings;

/* Returns a name that begins with `stem` and belongs to the shard of `exam`. To be freed. */
char *nodes_name_in(redlock_t *rl, const struct examination *exam, const char *stem);

/* Acquires, extends and releases a lock on each eligible server, and records in `exam` which
 * step failed, and whether the server sends notifications. */
void nodes_probe(const struct settings *settings, struct examination *exam);

/* Reads the fence records of the servers without a write. If no server lacks its record,
 * acquires a fenced lock as well. Records the result in `exam`. */
void nodes_fence(redlock_t *rl, const struct settings *settings, struct examination *exam);

#endif
