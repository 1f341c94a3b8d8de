/* SPDX-License-Identifier: MIT
 * Checks what a client that was closed in order leaves on the servers.
 *
 * A client that closes a connection without a reset has sent an undo behind each SET without a
 * reply. A server that reads all of it leaves no key. The same holds for keys that were set before,
 * if the network has taken their undos. After a shutdown that has succeeded every server does, even
 * one that has stopped meanwhile. Without a shutdown, a server that has much to read stops reading
 * when it replies to the client that has gone (rl_transport.reach), and keys may be left. */
#include "oracle_close.h"

#include "records.h"
#include "server.h"
#include "token.h"

/* Notes that the client, which ends, closes a connection for requests without a reset, and what
 * must not be left of it. Undos that were not sent, or that found no memory, are not promised. */
void sim_oracle_closes(const struct sim_client *client, struct sim_conn *conn)
{
    const struct rl_engine *engine = &client->engine;
    const struct rl_node *node = &engine->nodes[conn->node];
    uint64_t reach =
        rl_transport_reach(&engine->env.transport, conn->node, rl_pipeline_unread(&node->pipe));
    bool lacks_memory =
        client->fail_of_1000 != 0 || rl_undos_has_dropped(&node->undos, engine->view.now.boot_ns);

    if (conn->push || conn->trial || lacks_memory || !rl_connection_is_ready(&node->conn))
        return;
    conn->left = client->settled || node->undos.heap.count == 0;
    conn->whole = client->settled || (rl_pipeline_output(&node->pipe).len == 0 &&
                                      rl_transport_held(&engine->env.transport, conn->node) == 0);
    conn->promised = client->settled || rl_pipeline_unread_undos(&node->pipe) <= reach;
}

/* Returns whether the key may be left, because the server may have refused the undo: since it has
 * set the key, it lacked the script, was busy with one, or was a replica. */
static bool is_refused(const struct sim_server *server, const struct sim_key *key)
{
    return server->noscript_ns >= key->set_ns || server->busy_ns >= key->set_ns ||
           server->replica || server->demoted_ns >= key->set_ns;
}

/* Returns whether the server has not read all that has arrived. */
static bool has_unread(const struct sim_conn *conn)
{
    return conn->records != NULL ? sim_records_wait(conn) : conn->in_len > 0;
}

/* Checks that no key is left that was set on this connection, because the server reads no more from
 * it. If the end of the connection has not arrived, some undos have not arrived either. */
void sim_oracle_closed(struct sim_world *world, const struct sim_conn *conn)
{
    const struct sim_server *server = &world->servers[conn->node];

    if (!conn->left || !conn->fin || (!conn->promised && has_unread(conn)) ||
        (world->plan.env_faults & (SIM_OUTSIDE_STEP | SIM_OUTSIDE_RATE | SIM_OUTSIDE_FREEZE)) != 0)
        return;
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++) {
        const struct sim_key *key = &server->keys[i];
        uint32_t number = key->present ? sim_token_find(world, key->token, key->token_len) : 0;
        if (number == 0 || key->set_conn != conn->number || (!conn->whole && !key->late) ||
            is_refused(server, key) || !sim_server_holds(world, conn->node, i))
            continue;
        const struct sim_token *token = sim_token_at(world, number);
        if (!token->excused)
            sim_violate(world, "client %u has left a key of token %u on node %u when it was closed",
                        conn->client, number, conn->node);
    }
}
