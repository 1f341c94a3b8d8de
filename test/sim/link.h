/* SPDX-License-Identifier: MIT
 * The network: connections between clients and servers, which behave as TCP connections do. Bytes
 * arrive late and in order, or not at all. A blocked direction keeps its segments and delivers them
 * after the block. A broken connection delivers a prefix. After a graceful close by the client, all
 * bytes that it sent still arrive; an abortive close discards those that have not arrived.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "world.h"

/* Returns the transport of a client's engine. */
struct rl_transport sim_link_transport(struct sim_client *client);

struct sim_reply;

/* Sends a server's reply on one of its connections. */
void sim_link_reply(struct sim_world *world, struct sim_conn *conn, const struct sim_reply *reply);
/* Closes the connection on the side of the server. */
void sim_link_hang_up(struct sim_world *world, struct sim_conn *conn);

/* Hands bytes of the client to the network, as many as the window takes. Returns their number. */
size_t sim_link_dispatch(struct sim_client *client, struct sim_conn *conn, const char *bytes,
                         size_t len);

/* Handles SIM_ARRIVE, whose data is the segment. */
void sim_link_arrive(struct sim_world *world, struct sim_segment *segment);

/* Handles SIM_THAW: a direction continues after a block. */
void sim_link_thaw(struct sim_world *world, struct sim_conn *conn, enum sim_way way);
/* Returns whether a segment is held back by a block on any connection. */
bool sim_link_holds(const struct sim_world *world);

/* Blocks one direction of a link for one more fault (`by` 1), or for one less (-1). */
void sim_link_block(struct sim_world *world, unsigned client, unsigned node, enum sim_way way,
                    int by);
/* Breaks a present connection of the link; a prefix of the segments under way arrives. */
void sim_link_break(struct sim_world *world, unsigned client, unsigned node);

/* Ends all connections of a client whose process died, or of a server that died. The peers of a
 * `silent` server do not learn of it. */
void sim_link_client_died(struct sim_world *world, unsigned client);
void sim_link_server_died(struct sim_world *world, unsigned node, bool silent);

/* Returns whether the client still uses this connection: it has neither closed nor replaced it. */
bool sim_conn_is_present(const struct sim_world *world, const struct sim_conn *conn);
/* Removes one reference to the connection, and frees it with the last one. */
void sim_conn_drop(struct sim_world *world, struct sim_conn *conn);
/* Frees all connections and segments, and empties the queue of events. */
void sim_link_free(struct sim_world *world);

#endif
