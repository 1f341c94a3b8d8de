/* SPDX-License-Identifier: MIT
 * One throw-away server of the sandbox.
 */
#ifndef TOOLS_SANDBOX_NODE_H
#define TOOLS_SANDBOX_NODE_H

#include <stdbool.h>
#include <sys/types.h>

struct sandbox_node {
    unsigned number; /* from 1 */
    char *directory;
    int port, port_fd; /* the descriptor keeps the port ours, whether the server runs or not */
    unsigned tries;
    pid_t pid; /* 0: not started */
    bool ready;
};

/* Makes the directory and, with a fresh free port, the configuration. 0, or -1 with errno. */
int sandbox_node_prepare(struct sandbox_node *node, const char *sandbox_directory, unsigned number);
int sandbox_node_choose_port(struct sandbox_node *node);
void sandbox_node_clear(struct sandbox_node *node); /* also if all of it is zero */

/* Does exactly this process answer on the port? Another server may have taken it. */
bool sandbox_node_answers(const struct sandbox_node *node);

/* The last lines of its log go to stderr. */
void sandbox_node_show_log(const struct sandbox_node *node);

#endif
