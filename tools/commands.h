/* SPDX-License-Identifier: MIT
 * The subcommands. Each returns its exit code.
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "options.h"
#include "redlock/redlock.h"

int cmd_run(const struct options *options);
int cmd_acquire(const struct options *options);
int cmd_extend(const struct options *options);
int cmd_release(const struct options *options);
int cmd_status(const struct options *options);
int cmd_nodes(const struct options *options);
int nodes_init(const struct options *options); /* nodes --init */
int nodes_acl(const struct options *options);  /* nodes --acl */
struct examination;
struct settings;
/* A name that begins with `stem` and belongs to that set. */
char *nodes_name_in(redlock_t *rl, const struct examination *exam, const char *stem);
/* Takes a lock for a moment on each server that may vote, and notes what it did not do. */
void nodes_probe(const struct settings *settings, struct examination *exam);
/* Looks at the fence records, and takes a fenced lock if all have one; makes none. */
void nodes_fence(redlock_t *rl, const struct settings *settings, struct examination *exam);
int cmd_break(const struct options *options);
int cmd_config(const struct options *options);
int cmd_watch(const struct options *options);
int cmd_sandbox(const struct options *options);

#endif
