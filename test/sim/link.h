/* SPDX-License-Identifier: MIT
 * The network: connections between clients and servers, whose bytes arrive late, in order, or not
 * at all. It behaves as TCP does. A blocked direction keeps what it was given and delivers it when
 * it opens again. A broken connection delivers a prefix. What a gracefully closing client has sent
 * still arrives; an abortive close discards what has not arrived. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "world.h"

/* Returns the transport of a client's engine. */
struct rl_transport sim_link_transport(struct sim_client *client);

struct sim_reply;

/* Sends a server's reply on one of its connections. */
void sim_link_reply(struct sim_world *world, struct sim_conn *conn, const struct sim_reply *answer);
/* Closes the connection on the side of the server. */
void sim_link_hang_up(struct sim_world *world, struct sim_conn *conn);

/* Handles SIM_ARRIVE, whose data is the segment. */
void sim_link_arrive(struct sim_world *world, struct sim_segment *segment);

/* Handles SIM_THAW: a direction continues after a block. */
void sim_link_thaw(struct sim_world *world, struct sim_conn *conn, enum sim_way way);
/* Returns whether bytes are under way on a connection that its client has closed. */
bool sim_link_holds(const struct sim_world *world);

/* Blocks one direction of a link for one more fault (`by` 1), or for one less (-1). */
void sim_link_block(struct sim_world *world, unsigned client, unsigned node, enum sim_way way,
                    int by);
/* Breaks the link's present connection; a prefix of what is under way arrives. */
void sim_link_break(struct sim_world *world, unsigned client, unsigned node);

/* Breaks all connections of a client whose process died, or of a server that died. */
void sim_link_client_died(struct sim_world *world, unsigned client);
void sim_link_server_died(struct sim_world *world, unsigned node, bool silent);

/* Returns whether this is still the client's connection: neither closed nor replaced. */
bool sim_conn_is_present(const struct sim_world *world, const struct sim_conn *conn);
void sim_conn_drop(struct sim_world *world, struct sim_conn *conn);
void sim_link_free(struct sim_world *world);

#endif
