/* SPDX-License-Identifier: MIT
 * Whether the server of a node lets this client use lines, and if not, why.
 *
 * A line needs a subscription to the channel of this client's turns, and in its script GETEX (Redis
 * 6.2) and PUBLISH. A missing right or command refuses lines until the next first connection, so
 * that it is noticed once for each connection and not again for each wait. */
#ifndef RL_NODE_LINE_ACCESS_H
#define RL_NODE_LINE_ACCESS_H

#include "node/codec.h"

/* What is known of one node. Owner: line_access.c. */
struct rl_line_access {
    bool refused;  /* a request to a line was refused: the user lacks a right, or the server a
                    * command; cleared with each new first connection */
    bool deaf;     /* the last SUBSCRIBE to the channel of turns was refused */
    uint8_t cause; /* enum redlock_cause: why the server has refused last; REDLOCK_CAUSE_NONE: it
                    * never has */
    char text[96]; /* the reason in words; empty: never refused */
};

struct rl_node;

/* Notes the reply to the SUBSCRIBE to the channel of turns; `ok`: it was accepted. */
void rl_line_access_note_channel(struct rl_node *node, bool ok, const struct rl_reply *reply);
/* Notes an error reply to a request to a line. Refuses lines if its cause lasts: a missing right or
 * command. */
void rl_line_access_note_error(struct rl_node *node, const struct rl_reply *reply);
/* Returns whether the server refuses lines to this client. */
bool rl_line_access_is_refused(const struct rl_node *node);
/* Notes that a new first connection is ready: it may be that of another user or server. */
void rl_line_access_reset(struct rl_node *node);

#endif
