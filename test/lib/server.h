/* SPDX-License-Identifier: MIT
 * One redis-server process of a test cluster: find the program, start it, signal it, see it gone.
 */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include "clockshim.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SERVER_PATH_MAX 96 /* a unix socket path must stay below 108 bytes */

struct server_opts {
    bool unix_socket;
    bool keep_data;
    const char *host;
    const char *password;
    const char *const *args;
};

struct server {
    char dir[SERVER_PATH_MAX]; /* its own, below the cluster's: log, data, socket */
    char host[48];
    int port;                             /* 0: unix socket only */
    int port_fd;                          /* what keeps it ours; -1: nothing does */
    pid_t pid;                            /* 0: not running */
    char clock_path[SERVER_PATH_MAX + 8]; /* settings of its clocks; "": none */
    int network; /* namespace to run in; 0: that of the test; else it listens on the socket, too */
};

/* Path of the program, or NULL. REDLOCK_TEST_SERVER overrides the search in PATH. */
const char *server_program(void);

/* A server could listen there: the machine has IPv6, for example. */
bool server_host_works(const char *host);

/* Takes a TCP port that nobody has, below the range from which the kernel takes source ports: a
 * client that connects to a dead server there can never meet itself. Nor will it meet a server of
 * another program: the port is ours, whether the server runs or not, until it is given back. */
bool server_take_port(struct server *server);
void server_give_port(struct server *server);

void server_socket_path(const struct server *server, char *ret_path, size_t size);

/* Starts the process; says nothing about readiness. False if it could not be started. */
bool server_spawn(struct server *server, const struct server_opts *opts);

/* True if the process has ended; it is reaped and pid becomes 0. */
bool server_reap(struct server *server);

/* SIGKILL and wait until it is gone. Works on stopped processes too. */
void server_kill(struct server *server);

/* SIGSTOP, returns once the kernel has stopped it; SIGCONT. */
void server_pause(struct server *server);
void server_resume(struct server *server);

#endif
