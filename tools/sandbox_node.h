/* SPDX-License-Identifier: MIT
 * One temporary server of `redlock sandbox`: its directory, port and configuration; and the end of
 * all of them.
 */
#ifndef TOOLS_SANDBOX_NODE_H
#define TOOLS_SANDBOX_NODE_H

#include <stdbool.h>
#include <sys/types.h>

/* One server of the sandbox. The sandbox owns it. sandbox_node.c fills it in; sandbox.c changes
 * `pid` and `ready`. */
struct sandbox_node {
    unsigned number; /* number of the server, from 1; the name of its directory */
    char *directory; /* path of the server's directory; owned; NULL: none */
    /* directory with the certificates (sandbox_tls.h), borrowed; NULL: the server speaks plain text
     */
    const char *tls_directory;
    int port;       /* port on 127.0.0.1; 0: none chosen yet */
    int port_fd;    /* socket that reserves the port, whether the server runs or not */
    unsigned tries; /* number of ports that were chosen */
    pid_t pid;      /* process of the server; 0: not started, or ended */
    bool ready;     /* the server has replied once */
};

/* Makes the directory `number` inside `sandbox_directory`, with a configuration and an unused port.
 * With `tls`, the server speaks TLS only, with the certificates in `sandbox_directory`, which must
 * live as long as the node. Returns 0, or -1 with errno. */
int sandbox_node_prepare(struct sandbox_node *node, const char *sandbox_directory, unsigned number,
                         bool tls);
/* Chooses another unused port and writes the configuration. Returns 0, or -1 with errno. */
int sandbox_node_choose_port(struct sandbox_node *node);
/* Frees what the node owns and closes the socket of its port. All fields may be zero. */
void sandbox_node_clear(struct sandbox_node *node);

/* Returns true if the process node->pid replies on the port; false if another server does, or
 * none. */
bool sandbox_node_answers(const struct sandbox_node *node);

/* Prints the last lines of the server's log to stderr. */
void sandbox_node_show_log(const struct sandbox_node *node);

/* Removes the directory of a sandbox. Kills the servers that still run in it first: a server that
 * was started again in another terminal does not descend from the sandbox, so the guardian cannot
 * find it among its descendants. */
void sandbox_remove(const char *sandbox_directory);

#endif
