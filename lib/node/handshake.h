/* SPDX-License-Identifier: MIT
 * The greeting: the commands that are sent on every new connection before the first vote. */
#ifndef RL_NODE_HANDSHAKE_H
#define RL_NODE_HANDSHAKE_H

#include "node/codec.h"
#include "node/eligibility.h"
#include "node/encode.h"

/* The greeting of a connection that is in state GREETING; empty in other states, but for `time`.
 * Owner: handshake.c. Invariant: done <= steps. */
struct rl_greeting {
    struct rl_encoded encoded;  /* all commands */
    size_t sent;                /* bytes of `encoded` that the transport has taken */
    uint8_t steps, done;        /* commands in all, and those that were answered */
    uint8_t kinds[16];          /* for each step: enum step in handshake.c */
    struct rl_server_time time; /* the reply to TIME */
};

/* Returns true if every command was answered. */
static inline bool rl_greeting_is_complete(const struct rl_greeting *greeting)
{
    return greeting->done == greeting->steps;
}

/* Returns the clock of the server in the last greeting. */
static inline const struct rl_server_time *rl_greeting_time(const struct rl_greeting *greeting)
{
    return &greeting->time;
}

/* Builds the greeting of a new connection. Returns false without memory. */
bool rl_greeting_prepare(struct rl_node *node);

/* Hands the rest of the greeting to the transport. Closes the connection if that fails. */
void rl_greeting_flush(struct rl_node *node, uint64_t now_ns);

/* Tells the decoder how long the next reply may be. */
void rl_greeting_expect(struct rl_node *node);

/* Takes the reply to the next step. Returns 0, or the enum redlock_cause for which the connection
 * must be closed. */
int rl_greeting_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Frees the greeting, because it was answered or its connection has ended. */
void rl_greeting_free(struct rl_node *node);

#endif
