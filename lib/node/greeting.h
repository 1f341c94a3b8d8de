/* SPDX-License-Identifier: MIT
 * The greeting: the commands that are sent on every new first connection before the first request,
 * and their replies. The greeting logs in (AUTH), selects the database, sets the name of the
 * connection, reads INFO and TIME, and loads the scripts. */
#ifndef RL_NODE_GREETING_H
#define RL_NODE_GREETING_H

#include "node/codec.h"
#include "node/eligibility.h"
#include "node/encode.h"

/* The greeting of a connection in state GREETING. Empty in other states, except for `time`. Owner:
 * greeting.c. Invariant: done <= steps <= 16. A step is one command with its reply. */
struct rl_greeting {
    struct rl_encoded encoded;        /* the commands of all steps, one after the other */
    size_t sent;                      /* bytes of `encoded` that the transport has accepted */
    uint8_t steps, done;              /* number of steps, and of steps that have a reply */
    uint8_t kinds[16];                /* for each step: enum step in greeting.c */
    size_t password_at, password_len; /* the password of AUTH: bytes of `encoded`. The node may have
                                       * another one meanwhile */
    struct rl_server_time time;       /* the reply to TIME in the last greeting; received_ns is 0 if
                                       * there was none */
};

/* Returns true if every command of the greeting has a reply. */
static inline bool rl_greeting_is_complete(const struct rl_greeting *greeting)
{
    return greeting->done == greeting->steps;
}

/* Returns true if a command of the greeting has a reply. */
static inline bool rl_greeting_has_begun(const struct rl_greeting *greeting)
{
    return greeting->done > 0;
}

/* Returns what TIME in the last greeting has shown. */
static inline const struct rl_server_time *rl_greeting_time(const struct rl_greeting *greeting)
{
    return &greeting->time;
}

/* Encodes the commands of a new greeting. Returns false without memory. */
bool rl_greeting_prepare(struct rl_node *node);

/* Hands to the transport what it has not accepted yet of the greeting. Closes the connection on an
 * error. */
void rl_greeting_flush(struct rl_node *node, uint64_t now_ns);

/* Sets the limits of the decoder for the reply to the next step. */
void rl_greeting_expect(struct rl_node *node);

/* Judges the reply to the next step, which was read at `now_ns` (boot clock). Returns 0 if the
 * greeting goes on, or the enum redlock_cause for which the connection must be closed. */
int rl_greeting_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Frees the commands of the greeting, because it is complete or the connection has ended. Keeps
 * `time`. */
void rl_greeting_free(struct rl_node *node);

#endif
