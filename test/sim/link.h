/* SPDX-License-Identifier: MIT
 * The network: connections between clients and servers, whose bytes arrive late, in order, or not
 * at all. It behaves as TCP does: a blocked way keeps what it was given and delivers it when it
 * opens again; a broken connection delivers a prefix; what was accepted from a client that closed
 * gracefully still arrives; an abortive close takes back what has not arrived. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "world.h"

/* The transport of a client's engine. */
struct rl_transport sim_link_transport(struct sim_client *client);

struct sim_reply;

/* What a server says on one of its connections. */
void sim_link_reply(struct sim_world *world, struct sim_conn *conn, const struct sim_reply *answer);
/* The server is done with the connection: its client will see it closed. */
void sim_link_hang_up(struct sim_world *world, struct sim_conn *conn);

/* SIM_ARRIVE: data is the segment. */
void sim_link_arrive(struct sim_world *world, struct sim_segment *segment);

/* SIM_THAW */
void sim_link_thaw(struct sim_world *world, struct sim_conn *conn, enum sim_way way);
/* Something waits in the network that its sender has forgotten. */
bool sim_link_holds(const struct sim_world *world);

/* A fault holds back one direction of a link (1), or no longer does (-1). */
void sim_link_block(struct sim_world *world, unsigned client, unsigned node, enum sim_way way,
                    int by);
/* Breaks the link's present connection; a prefix of what is under way arrives. */
void sim_link_break(struct sim_world *world, unsigned client, unsigned node);

/* All connections of a client whose process died, or of a server that died. */
void sim_link_client_died(struct sim_world *world, unsigned client);
void sim_link_server_died(struct sim_world *world, unsigned node, bool silent);

/* The client has not closed it, nor made another one. */
bool sim_conn_is_present(const struct sim_world *world, const struct sim_conn *conn);
void sim_conn_drop(struct sim_world *world, struct sim_conn *conn);
void sim_link_free(struct sim_world *world);

#endif
