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
#define OURS                                                                                       \
    8 /* number of this library's clients; the last client uses another library, if                \
       * there is one */
#define MAX_TTL_MS 1000

/* The running chaos run. */
struct chaos {
    struct cluster *cluster;
    bool network;
    uint64_t random;
    const char *dir;    /* directory of the logs */
    const char *fences; /* "plain" or "fenced" */
    const char *programs, *redlock,
        *node; /* a directory; paths; node: NULL if it is not installed */
};
extern struct chaos chaos;

/* Returns a random number below `below`. */
unsigned chance(unsigned below);

/* Clients. Each is a process; a restarted one has a new name. */
unsigned clients_count(void);
void clients_start_all(void);
/* Records the clients that ended by themselves and starts them anew. */
void clients_check(void);
void client_kill(unsigned client);
void client_start(unsigned client);
void client_stop(unsigned client);
void client_continue(unsigned client);
bool client_runs(unsigned client);
const char *client_name(unsigned client);
/* Steps the wall clock of one of this library's clients by up to an hour in either direction. */
void client_step_clock(unsigned client);
/* Return whether each running client has acquired a lock since clients_mark(). */
void clients_mark(void);
bool clients_served(void);
/* Sends SIGTERM to all clients and waits for their end. */
void clients_end_all(void);

/* Faults: each kind as often as the others, of random length, several at a time. */
void faults_begin_one(void);
void faults_end_due(void);
void faults_end_all(void);

#endif
