/* SPDX-License-Identifier: MIT
 * The subcommands: one function for each, which main.c calls. Also the parts of `redlock nodes`
 * that are in files of their own.
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "options.h"
#include "redlock/redlock.h"

/* Each of these functions runs one subcommand with the options that were parsed for it. It prints
 * results to stdout and messages to stderr, and returns the exit code of the program (exits.h). */
int cmd_run(const struct options *options);     /* runs a command while it holds a lock */
int cmd_acquire(const struct options *options); /* acquires a lock and prints its token */
int cmd_extend(const struct options *options);  /* gives a lock a new TTL, by its token */
int cmd_release(const struct options *options); /* releases a lock, by its token */
int cmd_status(const struct options *options);  /* prints the holders of locks */
int cmd_nodes(const struct options *options);   /* checks whether the servers are fit for locks */
int cmd_break(const struct options *options);   /* deletes the key of a lock */
int cmd_config(const struct options *options);  /* prints the settings in effect */
int cmd_watch(const struct options *options);   /* prints each change of holder */
int cmd_top(const struct options *options);     /* a live view of servers and locks */
int cmd_sandbox(const struct options *options); /* starts temporary servers */

/* Runs `nodes --init`: takes the fence records of all servers into use. Returns the exit code. */
int nodes_init(const struct options *options);
/* Runs `nodes --acl`: prints the rights that a user of the servers needs. Returns the exit code. */
int nodes_acl(const struct options *options);

struct examination;
struct settings;

/* Acquires, extends and releases a lock on each eligible server of the shard alone. Records in
 * exam->troubles which step failed first, and in exam->notify whether the server sends
 * notifications. */
void nodes_probe(const struct settings *settings, struct examination *exam);

/* Looks at the files with which this client connects to servers with TLS. Records the results in
 * exam->files. */
void nodes_tls(const struct settings *settings, struct examination *exam);

/* Reads the fence records of the servers without a write. If no server lacks its record,
 * acquires a fenced lock as well. Records the results in exam->records and exam->fence_troubles.
 * `rl` is a client of all servers. */
void nodes_fence(redlock_t *rl, const struct settings *settings, struct examination *exam);

#endif
