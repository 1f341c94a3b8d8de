/* SPDX-License-Identifier: MIT
 * A modelled Redis master: bytes in, bytes out, keys with an expiry on a clock of its own. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "world.h"

/* One word of a command. It is not terminated and is borrowed. */
struct sim_word {
    const char *text;
    size_t len;
};

void sim_server_init(struct sim_world *world, unsigned node);
/* Takes bytes of a connection and executes the complete commands in them. */
void sim_server_input(struct sim_world *world, struct sim_conn *conn, const char *bytes,
                      size_t len);
/* Executes the commands that have waited. */
void sim_server_serve(struct sim_world *world, unsigned node);

/* Returns whether the server executes nothing now: it is down, stopped, or busy with a script. */
bool sim_server_stands_still(const struct sim_world *world, unsigned node);

/* Starts it again as a new process. */
void sim_server_start(struct sim_world *world, unsigned node);
void sim_server_lose_keys(struct sim_world *world, unsigned node);
void sim_server_lose_key(struct sim_world *world, unsigned node, unsigned resource);
/* Notifies the connections that track the key that it was set, changed or deleted. `by` is the
 * connection that did it, or NULL. */
void sim_server_changed(struct sim_world *world, unsigned node, unsigned resource,
                        const struct sim_conn *by);
/* Execute SET NX PX and compare-and-delete for a client without a connection. The first returns
 * whether the key was set. */
bool sim_server_take(struct sim_world *world, unsigned node, unsigned resource,
                     struct sim_word token, int64_t ttl_ms);
void sim_server_drop(struct sim_world *world, unsigned node, unsigned resource,
                     struct sim_word token);
void sim_server_lose_record(struct sim_world *world, unsigned node);
/* Returns whether the key is there, with any token. */
bool sim_server_holds(const struct sim_world *world, unsigned node, unsigned key);

/* Returns whether the key of this resource is there with this token. */
bool sim_server_has(const struct sim_world *world, unsigned node, unsigned resource,
                    const struct sim_token *token);
/* Returns the same of ghosts: keys that were lost, or shortened by a third party, before they
 * expired. */
bool sim_server_had(const struct sim_world *world, unsigned node, unsigned resource,
                    const struct sim_token *token);
/* Returns the true time at which the key of this token expires on the node, or would have expired
 * if it had not been lost or shortened; 0 without such a key. */
uint64_t sim_server_carries_ns(const struct sim_world *world, unsigned node, unsigned resource,
                               const struct sim_token *token);
/* Removes the ghosts of the key: its owner has set or extended it, so that its earlier states no
 * longer count. */
void sim_server_forget_ghosts(struct sim_world *world, unsigned node, unsigned resource);
/* Sets the expiry of the key as a third party does. */
void sim_server_shorten_key(struct sim_world *world, unsigned node, unsigned resource,
                            int64_t ttl_ms);

/* A reply for command.c to fill, which is sent with the other replies of this pass. */
struct sim_reply {
    char bytes[2048];
    size_t len;
    struct sim_sent_text said[SIM_NOTES];
    unsigned said_count;
};
/* Executes one command and adds its reply (command.c). */
void sim_command(struct sim_world *world, struct sim_conn *conn, unsigned count,
                 const struct sim_word *words, struct sim_reply *answer);
int64_t sim_server_now_ms(const struct sim_world *world, unsigned node);

#endif
