/* SPDX-License-Identifier: MIT
 * The subcommands: one function for each, which main.c calls. Also the parts of `redlock nodes`
 * that are in files of their own.
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "options.h"
#include "redlock/redlock.h"

/* Each of these functions runs the subcommand of its name, with the options that were parsed for
 * it: prints results to stdout and messages to stderr, and returns the exit code of the program. */
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

/* Run `nodes --init` and `nodes --acl`. Return the exit code of the program. */
int nodes_init(const struct options *options);
int nodes_acl(const struct options *options);

struct examination;
struct settings;

/* Returns a name that begins with `stem` and that the client `rl` assigns to the shard of `exam`.
 * To be freed. */
char *nodes_name_in(redlock_t *rl, const struct examination *exam, const char *stem);

/* Acquires, extends and releases a lock on each eligible server of the shard alone. Records in
 * exam->troubles which step failed first, and in exam->notify whether the server sends
 * notifications. */
void nodes_probe(const struct settings *settings, struct examination *exam);

/* Reads the fence records of the servers without a write. If no server lacks its record,
 * acquires a fenced lock as well. Records the results in exam->records and exam->fence_troubles.
 * `rl` is a client of all servers. */
void nodes_fence(redlock_t *rl, const struct settings *settings, struct examination *exam);

#endif
