/* SPDX-License-Identifier: MIT
 * The disk of a modelled server that syncs its append-only file once in a while. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "server.h"

/* The process has started: from now on it syncs. */
void sim_disk_start(struct sim_world *world, unsigned node);
/* SIM_SYNC: a sync begins (which 0) or has ended (which 1). */
void sim_disk_sync(struct sim_world *world, unsigned node, unsigned which, uint32_t stamp);
/* The machine has died: memory becomes what the disk has. */
void sim_disk_restore(struct sim_world *world, unsigned node);
/* What is in memory was not written by commands (it is another process): it is on disk. */
void sim_disk_adopt(struct sim_world *world, unsigned node);

/* This connection has written something. */
struct sim_call;
void sim_disk_wrote(struct sim_call *call);
/* WAITAOF 1 0 ms: answers, or stops the connection. */
void sim_disk_wait(struct sim_call *call);
/* Answers a connection that waits for the disk, if it is time; true: it goes on waiting. */
bool sim_disk_holds(struct sim_world *world, struct sim_conn *conn, struct sim_answer *answer);

#endif
