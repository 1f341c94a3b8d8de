/* SPDX-License-Identifier: MIT
 * The parts of a chaos run: servers with clocks and links, client processes, faults. */
#ifndef CHAOS_CHAOS_H
#define CHAOS_CHAOS_H

#include "cluster.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NODES       5
#define CLIENTS_MAX 9
#define OURS        8 /* the first so many; the last one is foreign, if there is one */
#define MAX_TTL_MS  1000

struct chaos {
    struct cluster *cluster;
    bool network;
    uint64_t random;
    const char *dir;                       /* for the logs */
    const char *fences;                    /* "plain" or "fenced" */
    const char *programs, *redlock, *node; /* a directory; paths; node: NULL if there is none */
};
extern struct chaos chaos;

unsigned chance(unsigned below);

/* Clients: each a process, with a new name for each new one. */
unsigned clients_count(void);
void clients_start_all(void);
/* Those that ended although nobody told them to are written down and started anew. */
void clients_check(void);
void client_kill(unsigned client);
void client_start(unsigned client);
void client_stop(unsigned client);
void client_continue(unsigned client);
bool client_runs(unsigned client);
const char *client_name(unsigned client);
/* The wall clock of one of ours, by up to an hour in either direction. */
void client_step_clock(unsigned client);
/* From clients_mark() on: has each that runs got a lock? */
void clients_mark(void);
bool clients_served(void);
/* SIGTERM, and waits for them. */
void clients_end_all(void);

/* Faults: each kind as often as the others, of chosen length, several at a time. */
void faults_begin_one(void);
void faults_end_due(void);
void faults_end_all(void);

#endif
