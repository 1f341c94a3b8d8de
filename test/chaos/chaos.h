/* SPDX-License-Identifier: MIT
 * The parts of a chaos run: servers with clocks and links, client processes, faults. A link is the
 * simulated cable between a server and the clients; it can be cut in each direction. A client here
 * is a process that acquires and releases locks; it has a number, which stays, and a name. The
 * functions chaos.c needs of clients.c and faults.c are declared below. */
#ifndef CHAOS_CHAOS_H
#define CHAOS_CHAOS_H

#include "cluster.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NODES       5    /* number of servers */
#define CLIENTS_MAX 9    /* number of clients if node-redlock is installed */
#define OURS        8    /* number of this library's clients; the last one uses node-redlock */
#define MAX_TTL_MS  1000 /* the max_ttl of all clients: no lock has a longer TTL */
#define URLS_LEN    4096 /* bytes for a list of addresses */

/* The chaos run of this process. */
struct chaos {
    struct cluster *cluster; /* the servers */
    bool network;            /* the servers have links that can be cut */
    uint64_t random;         /* state of chance() */
    const char *dir;         /* directory of the logs */
    const char *fences;      /* "plain" or "fenced" */
    bool tls;                /* every second client of this library uses TLS */
    /* The addresses of the servers for the clients of this library, without and with TLS. */
    char urls[URLS_LEN], tls_urls[URLS_LEN];
    const char *programs; /* directory of the programs chaos-client, chaos-command and chaos-hold */
    const char *redlock;  /* path of the command */
    const char *foreign;  /* script of the node-redlock client; NULL: none, it is not installed */
};
extern struct chaos chaos;

/* Returns a random number below `below`, from the seed of the run. */
unsigned chance(unsigned below);

/* Clients. Each is a process, named NAME.COUNT; a restarted one has a larger COUNT. All functions
 * with a number take it below clients_count(). */
/* Returns the number of clients: CLIENTS_MAX, or OURS without node-redlock. */
unsigned clients_count(void);
/* Starts the process of each client and logs that. */
void clients_start_all(void);
/* Logs the clients that ended by themselves and starts them again. */
void clients_check(void);
/* Kills the process and logs it. The client stays down until client_start(). */
void client_kill(unsigned client);
/* Starts a new process of the client, with COUNT one larger, and logs that. */
void client_start(unsigned client);
/* Stop the process with SIGSTOP; continue it. */
void client_stop(unsigned client);
void client_continue(unsigned client);
/* Returns whether the client has a process, running or stopped. */
bool client_runs(unsigned client);
/* Returns NAME, without the count. */
const char *client_name(unsigned client);
/* Steps the wall clock of one of this library's clients by up to an hour in either direction. */
void client_step_clock(unsigned client);
/* Marks the present end of all clients' logs. */
void clients_mark(void);
/* Returns whether each client has acquired a lock since clients_mark(). */
bool clients_served(void);
/* Sends SIGTERM to all clients and waits for their end. Logs and kills those that do not end. */
void clients_end_all(void);

/* Faults: each kind as often as the others, of random length, several at a time. */
/* Begins one fault, unless too many are in effect. */
void faults_begin_one(void);
/* Ends the faults whose time has passed. */
void faults_end_due(void);
/* Ends all faults. */
void faults_end_all(void);

#endif
