/* SPDX-License-Identifier: MIT
 * One throw-away server of the sandbox: its directory, port and configuration.
 */
#ifndef TOOLS_SANDBOX_NODE_H
#define TOOLS_SANDBOX_NODE_H

#include <stdbool.h>
#include <sys/types.h>

/* Owned by the sandbox. sandbox_node.c fills it in; sandbox.c changes `pid` and `ready`. */
struct sandbox_node {
    unsigned number; /* from 1 */
    char *directory; /* owned */
    /* port: 0: none; port_fd: reserves the port, whether the server runs or not */
    int port, port_fd;
    unsigned tries; /* how many ports were chosen so far */
    pid_t pid;      /* 0: not started */
    bool ready;     /* the server has replied */
};

/* Makes the directory and the configuration, with a free port. Returns 0, or -1 with errno. */
int sandbox_node_prepare(struct sandbox_node *node, const char *sandbox_directory, unsigned number);
/* Chooses another free port and writes the configuration. Returns 0, or -1 with errno. */
int sandbox_node_choose_port(struct sandbox_node *node);
/* Frees what the node owns. All fields may be zero. */
void sandbox_node_clear(struct sandbox_node *node);

/* Returns true if exactly this process replies on the port. Another server may have taken the
 * port. */
bool sandbox_node_answers(const struct sandbox_node *node);

/* Prints the last lines of the server's log to stderr. */
void sandbox_node_show_log(const struct sandbox_node *node);

#endif
