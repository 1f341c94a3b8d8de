/* SPDX-License-Identifier: MIT
 * One redis-server process of a test cluster: finds the program, starts it, signals it, and waits
 * for its end. */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include "clockshim.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SERVER_PATH_MAX 96 /* a unix socket path must stay below 108 bytes */

/* How the servers of a cluster are started. Strings are borrowed. */
struct server_opts {
    bool unix_socket;        /* listen on a unix socket only */
    bool keep_data;          /* write an append-only file */
    const char *host;        /* unused by server.c: cluster.c copies it into each server */
    const char *password;    /* NULL: none */
    const char *cacert;      /* file of the issuers of clients that a server with TLS trusts */
    const char *const *args; /* more arguments, ended by NULL; or NULL */
};

/* One server process and its address. server.c changes pid, port and port_fd; cluster.c sets the
 * rest before the start. */
struct server {
    char dir[SERVER_PATH_MAX]; /* its own directory, below the cluster's: log, data, socket */
    char host[48];             /* the numeric address to listen on */
    int port;                  /* 0: unix socket only */
    int port_fd;               /* socket that reserves the port; -1: none */
    pid_t pid;                 /* 0: not running */
    char clock_path[SERVER_PATH_MAX + 8]; /* file with the settings of its clocks; "": none */
    int network; /* descriptor of the namespace to run in, where it listens on a unix socket as
                  * well; 0: that of the test */
    char certificate[SERVER_PATH_MAX + 8]; /* path of its certificate without ".pem", and of its key
                                            * without ".key": the port has TLS, and a unix socket is
                                            * there as well; "": no TLS */
};

/* Returns the path of the server program, or NULL. REDLOCK_TEST_SERVER overrides the search in
 * PATH. */
const char *server_program(void);

/* Returns the major version of the server program: 6 or more of Redis, 7 or more of Valkey. Returns
 * 0 if there is none, or if it does not print its version. */
int server_major(void);

/* Returns whether the server program was built with TLS. */
bool server_is_tls_built(void);

/* Returns whether a server could listen at that address: false for ::1 on a machine without IPv6.
 */
bool server_host_works(const char *host);

/* Reserves a free TCP port below the range from which the kernel takes source ports, so that a
 * client that connects to a dead server there cannot connect to itself. No other program can take
 * the port, whether the server runs or not, until server_give_port() is called. Returns false if
 * none is free. */
bool server_take_port(struct server *server);
void server_give_port(struct server *server);

void server_socket_path(const struct server *server, char *ret_path, size_t size);
/* Returns whether the server listens on the unix socket. */
bool server_has_socket(const struct server *server, const struct server_opts *opts);

/* Starts the process and returns before it is ready. Returns false if it could not be started. */
bool server_spawn(struct server *server, const struct server_opts *opts);

/* Returns true if the process has ended; then it is reaped and pid becomes 0. */
bool server_reap(struct server *server);

/* Sends SIGKILL and waits until the process is gone. Stopped processes die as well. */
void server_kill(struct server *server);

/* Stop the process with SIGSTOP (returns once the kernel has stopped it), and continue it with
 * SIGCONT. */
void server_pause(struct server *server);
void server_resume(struct server *server);

#endif
