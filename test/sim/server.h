/* SPDX-License-Identifier: MIT
 * A modelled Redis server: it parses requests, sends replies, and has keys that expire by its own
 * clock.
 *
 * `world` is one simulated run (world.h). Parameters of type unsigned named client, node, user,
 * resource or key are indexes; a user is one caller in a client process. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "world.h"

/* One word of a command. It is not terminated, and points into the bytes of the connection. */
struct sim_word {
    const char *text;
    size_t len;
};

/* Sets up a server and starts it. */
void sim_server_init(struct sim_world *world, unsigned node);
/* Appends bytes that have arrived on a connection, and executes the complete commands. */
void sim_server_input(struct sim_world *world, struct sim_conn *conn, const char *bytes,
                      size_t len);
/* Has the server keep the connection, because it executes bytes of it later (`on`), or not. */
void sim_server_keep(struct sim_world *world, struct sim_conn *conn, bool on);
/* Handles SIM_SERVE: executes the commands that have waited. */
void sim_server_serve(struct sim_world *world, unsigned node);

/* Returns whether the server executes nothing now: it is down, stopped, or busy with a script. */
bool sim_server_stands_still(const struct sim_world *world, unsigned node);

/* Starts the server as a new process. */
void sim_server_start(struct sim_world *world, unsigned node);
/* Removes all keys, or one key, other than by their owner. Their states are remembered. */
void sim_server_lose_keys(struct sim_world *world, unsigned node);
void sim_server_lose_key(struct sim_world *world, unsigned node, unsigned resource);
/* Notifies the connections that track the key that it was set, changed or deleted. `by` is the
 * connection that did it, or NULL. */
void sim_server_changed(struct sim_world *world, unsigned node, unsigned resource,
                        const struct sim_conn *by);
/* Notifies this connection that the key has changed, although it has not: a server does so to
 * forget a key that it tracks. */
void sim_server_forget_tracked(struct sim_world *world, struct sim_conn *conn, unsigned resource);
/* Execute SET NX PX and compare-and-delete for a foreign client. The first one returns whether the
 * key was set. */
bool sim_server_set(struct sim_world *world, unsigned node, unsigned resource,
                    struct sim_word token, int64_t ttl_ms);
void sim_server_delete(struct sim_world *world, unsigned node, unsigned resource,
                       struct sim_word token);
/* Removes the fence record. */
void sim_server_lose_record(struct sim_world *world, unsigned node);
/* Returns whether the key is present and has not expired, with any token. */
bool sim_server_holds(const struct sim_world *world, unsigned node, unsigned key);

/* Returns the same for a key with this token. */
bool sim_server_has(const struct sim_world *world, unsigned node, unsigned resource,
                    const struct sim_token *token);
/* Returns the same for the earlier states of a key: it was lost, or shortened by a third party,
 * before it expired. */
bool sim_server_had(const struct sim_world *world, unsigned node, unsigned resource,
                    const struct sim_token *token);
/* Returns the true time at which the key with this token expires on the node, or would have expired
 * if it had not been lost or shortened; 0: there is no such key. */
uint64_t sim_server_expires_ns(const struct sim_world *world, unsigned node, unsigned resource,
                               const struct sim_token *token);
/* Forgets the earlier states of the key, because its owner has set or extended it. */
void sim_server_forget_former(struct sim_world *world, unsigned node, unsigned resource);
/* Makes the key expire after ttl_ms, if that is earlier, as a third party with PEXPIRE. */
void sim_server_shorten_key(struct sim_world *world, unsigned node, unsigned resource,
                            int64_t ttl_ms);

/* The replies to commands that a server executes one after the other. They are sent together. */
struct sim_reply {
    char bytes[2048];
    size_t len;
    struct sim_outcome outcomes[SIM_OUTCOMES_MAX];
    unsigned outcome_count;
};
/* Executes one command and appends its reply (command.c). */
void sim_command(struct sim_world *world, struct sim_conn *conn, unsigned count,
                 const struct sim_word *words, struct sim_reply *reply);
/* Returns what the server's clock shows. */
int64_t sim_server_now_ms(const struct sim_world *world, unsigned node);

#endif
