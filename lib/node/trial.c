/* SPDX-License-Identifier: MIT
 * Opens the connection of a trial, sends PING on it, and judges the reply.
 *
 * Nothing else is sent on that connection, and it is not used for requests. The pending undos must
 * follow the reset of the old connection: they are sent after a greeting that begins after the
 * reset, as after any other loss of a connection. */
#include "node/trial.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

#include <string.h>

/* A connection was idle if it had neither requests in flight nor replies for this time. Requests
 * for one held lock of a second are further apart, those of a client in use are not. */
#define IDLE_NS (100 * RL_MS)
/* The shortest time between two trials of a node, unless the first one showed a dead connection. */
#define AGAIN_NS (30 * RL_SECOND)

/* How much later than the reply to PING an earlier one of the first connection may arrive: the
 * network delays two connections differently. Without it, clients of a server that was stopped for
 * a moment replace connections that are fine, and waiters lose their turns. */
#define GRACE_NS (10 * RL_MS)

#define PING     "*1\r\n$4\r\nPING\r\n"

/* Returns the number of the connection, which the functions of the transport expect. */
static unsigned connection_number(const struct rl_node *node)
{
    return node->index | RL_TRIAL_CONNECTION;
}

bool rl_trial_is_connecting(const struct rl_node *node)
{
    return node->trial.state == RL_TRIAL_CONNECTING;
}

/* Returns true if the first connection was idle before the oldest request in flight. */
static bool was_idle(const struct rl_node *node)
{
    uint64_t used_ns = rl_max_u64(rl_detector_last_reply_ns(&node->detector),
                                  rl_connection_greeted_ns(&node->conn));

    return rl_pipeline_count(&node->pipe) > 0 &&
           rl_sub_sat(rl_pipeline_oldest(&node->pipe)->sent_ns, used_ns) >= IDLE_NS;
}

void rl_trial_begin(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_transport *transport = &node->common->transport;
    uint64_t allowed_ns =
        node->trial.begun_ns != 0 ? rl_add_sat(node->trial.begun_ns, AGAIN_NS) : 0;

    if (node->trial.state != RL_TRIAL_OFF || now_ns < allowed_ns || !was_idle(node))
        return;
    node->trial.state = RL_TRIAL_CONNECTING;
    node->trial.begun_ns = now_ns;
    transport->open(transport->ctx, connection_number(node));
}

void rl_trial_end(struct rl_node *node)
{
    const struct rl_transport *transport = &node->common->transport;

    if (node->trial.state == RL_TRIAL_OFF)
        return;
    node->trial.state = RL_TRIAL_OFF;
    transport->close(transport->ctx, connection_number(node), false);
}

void rl_trial_opened(struct rl_node *node, bool ok)
{
    const struct rl_transport *transport = &node->common->transport;
    const size_t len = sizeof PING - 1;

    if (node->trial.state != RL_TRIAL_CONNECTING)
        return;
    node->trial.state = RL_TRIAL_WAITING;
    /* A new connection takes these few bytes at once. */
    if (!ok || transport->send(transport->ctx, connection_number(node), PING, len) != (ssize_t)len)
        rl_trial_end(node);
}

/* Returns true if the server would serve the node on a new connection: it has replied to PING, or
 * only wants a login. It would not if it has too many clients, is protected, loading or busy. */
static bool is_served(const char *bytes, size_t len)
{
    return bytes[0] == '+' || (len >= 3 && memcmp(bytes, "-NO", 3) == 0);
}

void rl_trial_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns)
{
    if (node->trial.state != RL_TRIAL_WAITING)
        return;
    if (!is_served(bytes, len)) {
        rl_trial_end(node);
        return;
    }
    node->trial.state = RL_TRIAL_REPLIED;
    node->trial.replied_ns = now_ns;
    rl_node_replan(node);
}

uint64_t rl_trial_due_ns(const struct rl_node *node)
{
    return node->trial.state == RL_TRIAL_REPLIED ? rl_add_sat(node->trial.replied_ns, GRACE_NS)
                                                 : RL_NEVER;
}

void rl_trial_tick(struct rl_node *node, uint64_t now_ns)
{
    if (now_ns < rl_trial_due_ns(node))
        return;
    node->trial.begun_ns = 0;
    /* Requests may wait for the next connection, because the server replies: the node does not
     * count as suspect any more. */
    rl_detector_closed(&node->detector);
    rl_node_close(node, REDLOCK_CAUSE_TIMEOUT, "no reply, but one on a new connection", true,
                  now_ns);
}
