/* SPDX-License-Identifier: MIT
 * Heartbeats: periodic TIME and INFO on a ready connection. A heartbeat is one TIME and three or
 * five INFO, one for each section. Heartbeats are sent only while locks are held or wait, or while
 * the node is excluded for a reason that its operator must remove. */
#ifndef RL_NODE_HEARTBEAT_H
#define RL_NODE_HEARTBEAT_H

#include "node/info.h"

struct rl_node;
struct rl_reply;
struct rl_request;

/* The schedule of a node's heartbeats, and the one that is under way. Owner: heartbeat.c. At most
 * one heartbeat is under way: while `pending` is not 0, none is sent. */
struct rl_heartbeat {
    uint64_t last_ns; /* boot clock: when the last heartbeat was sent, or the last greeting was
                       * completed */
    unsigned count;   /* number of heartbeats that were sent; decides which are full ones */
    uint8_t pending;  /* commands of the current heartbeat without a reply; 0: none is under way */
    uint8_t sections; /* number of sections of INFO that the current heartbeat requests: 3 or 5 */
    struct rl_info info; /* what the replies to the current heartbeat have shown until now */
};

/* Forgets the heartbeat of the earlier connection, because a new connection was opened. */
static inline void rl_heartbeat_opened(struct rl_heartbeat *heartbeat)
{
    heartbeat->pending = 0;
}

/* Notes that the greeting was completed. The next heartbeat follows after a whole interval, because
 * the greeting reads all that a heartbeat reads. */
static inline void rl_heartbeat_greeted(struct rl_heartbeat *heartbeat, uint64_t now_ns)
{
    heartbeat->last_ns = now_ns;
}

/* Returns when the next heartbeat is due (boot clock). RL_NEVER: none is needed, one is under way,
 * or the node is not ready or is suspect. */
uint64_t rl_heartbeat_due_ns(const struct rl_node *node);

/* Appends the requests of a heartbeat to the pipeline. Skips the heartbeat if the pipeline is full,
 * and requests without memory; the next heartbeat follows after the usual interval. */
void rl_heartbeat_send(struct rl_node *node, uint64_t now_ns);

/* Handles the reply to one request of a heartbeat, TIME or INFO. May close the connection. */
void rl_heartbeat_reply(struct rl_node *node, const struct rl_request *request,
                        const struct rl_reply *reply, uint64_t now_ns);

#endif
