/* SPDX-License-Identifier: MIT
 * The first connection of a node, which carries the requests: its states, how it ends, and when the
 * next connection is tried.
 *
 *   DOWN --due--> CONNECTING --opened--> GREETING --all replies--> READY
 *     ^________________|____________________|________________________|  closed, time limit
 *
 * With TLS the handshake is a part of CONNECTING, with a time limit of its own. */
#ifndef RL_NODE_CONNECTION_H
#define RL_NODE_CONNECTION_H

#include "core/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RL_TEXT_MAX 160 /* bytes of the text of an error, with the terminating NUL */

/* Texts of connections that the server has ended. */
#define RL_TEXT_CLOSED "connection closed by the server"
#define RL_TEXT_RESET  "connection reset"

/* A connection that was ready for at least this time resets the delay before the next connection. A
 * connection that was ready for less does not, even if the server has replied on it. */
#define RL_LASTING_NS RL_SECOND

/* The states of the first connection. */
enum rl_node_state {
    RL_NODE_DOWN = 0,       /* no connection; the next one is planned, unless due_ns is RL_NEVER */
    RL_NODE_CONNECTING = 1, /* is being opened; rl_node_opened() reports the result */
    RL_NODE_GREETING = 2,   /* open; replies to the greeting (greeting.h) are missing */
    RL_NODE_READY = 3       /* the greeting is complete; requests are sent */
};

struct rl_node;

/* The state of a node's connection, and the history that decides when the next one is tried. Owner:
 * connection.c. All instants are on the boot clock. Invariant: `is_new` is set in state READY only.
 */
struct rl_connection {
    uint8_t state; /* enum rl_node_state */
    uint8_t cause; /* enum redlock_cause: why the node is down or suspect; REDLOCK_CAUSE_NONE: the
                    * node is neither, or no attempt to connect has ended yet */
    bool connected_once; /* a connection was opened before */
    bool tls;            /* the present or last connection uses TLS */
    bool securing;       /* CONNECTING: the socket is connected, and the TLS handshake runs */
    bool refused;        /* CONNECTING: `text` says why another address of the server was refused
                          * because of TLS */
    bool is_new;  /* ready since the reply that was read last: rl_connection_begin_use() must still
                   * be called */
    bool stepped; /* the server's clock has jumped since the last connection; valid with `is_new` */
    bool connect_failed; /* requests do not wait for the next connection: it is delayed, or none is
                          * planned */
    unsigned failures; /* disconnects and failed attempts to connect, since the server voted last or
                        * a connection ended that had been ready for RL_LASTING_NS */
    unsigned attempts_failed; /* attempts to connect that failed in a row: each connection ended
                               * before rl_connection_begin_use() */
    unsigned slow_handshakes; /* connections in a row whose TLS handshake, or the greeting after it,
                               * did not end in time; 0 without TLS */
    int64_t expiry_s;    /* when the certificate of the server or of an issuer expires first, in
                          * seconds of Unix time; 0: not known, or no TLS */
    unsigned brief;      /* connections in a row that were ready for less than RL_LASTING_NS, or
                          * ended while the node was suspect */
    uint64_t due_ns;     /* DOWN: when to connect; CONNECTING, GREETING: when to give up; RL_NEVER:
                          * nothing is planned */
    uint64_t opened_ns;  /* when the greeting of the last connection was sent; 0: never */
    uint64_t greeted_ns; /* when a connection began to be used last; 0: never */
    char text[RL_TEXT_MAX]; /* the last error in words; empty: none */
};

/* Returns the state of the first connection, an enum rl_node_state. */
static inline unsigned rl_connection_state(const struct rl_connection *conn)
{
    return conn->state;
}

/* Returns true if the greeting is complete and the connection is open. */
static inline bool rl_connection_is_ready(const struct rl_connection *conn)
{
    return conn->state == RL_NODE_READY;
}

/* Returns true if the connection has become ready with the reply that was read last, and
 * rl_connection_begin_use() must still be called. */
static inline bool rl_connection_is_new(const struct rl_connection *conn)
{
    return conn->is_new;
}

/* Returns true if a connection is planned or being made for the first time, or at once after the
 * loss of a ready one, so that requests may wait for the new connection. */
static inline bool rl_connection_is_expected(const struct rl_connection *conn)
{
    return !conn->connect_failed && conn->due_ns != RL_NEVER;
}

/* Returns true if at least two attempts to connect in a row have failed. A connection that was in
 * use and then ended is no failed attempt: its server was reached. */
static inline bool rl_connection_has_failed_twice(const struct rl_connection *conn)
{
    return conn->attempts_failed > 1;
}

/* Returns true if the connection is closed and no other will be tried. */
static inline bool rl_connection_is_closed(const struct rl_connection *conn)
{
    return conn->state == RL_NODE_DOWN && conn->due_ns == RL_NEVER;
}

/* Returns enum redlock_cause: why the node is down or suspect; REDLOCK_CAUSE_NONE: it is neither.
 */
static inline uint8_t rl_connection_cause(const struct rl_connection *conn)
{
    return conn->cause;
}

/* Returns the last error in words; empty: none. */
static inline const char *rl_connection_text(const struct rl_connection *conn)
{
    return conn->text;
}

/* Returns when the connection is to be opened or given up (boot clock); RL_NEVER: nothing is
 * planned. */
static inline uint64_t rl_connection_due_ns(const struct rl_connection *conn)
{
    return conn->due_ns;
}

/* Returns when a connection began to be used last (boot clock); 0: never. */
static inline uint64_t rl_connection_greeted_ns(const struct rl_connection *conn)
{
    return conn->greeted_ns;
}

/* Notes when the certificate of the server expires, in seconds of Unix time. */
static inline void rl_connection_set_expiry(struct rl_connection *conn, int64_t expiry_s)
{
    conn->expiry_s = expiry_s;
}

/* Returns when the certificate of the server expires, in seconds of Unix time; 0: not known. */
static inline int64_t rl_connection_expiry_s(const struct rl_connection *conn)
{
    return conn->expiry_s;
}

/* Sets why the node is suspect; REDLOCK_CAUSE_NONE: the node is not suspect any more. */
static inline void rl_connection_set_cause(struct rl_connection *conn, uint8_t cause)
{
    conn->cause = cause;
}

/* Notes that the server has voted: failures before now do not delay the next connection. */
static inline void rl_connection_note_answer(struct rl_connection *conn)
{
    conn->failures = 0;
}

/* Keeps the first RL_TEXT_MAX - 1 of the `len` bytes at `text` as the last error, terminated.
 * Replaces bytes that are not printable ASCII by '?'. */
void rl_connection_set_text(struct rl_connection *conn, const char *text, size_t len);

/* Prepares a connection that is down. rl_node_start() plans the first attempt. */
void rl_connection_init(struct rl_connection *conn);

/* Forgets an open connection without closing it, because its socket is closed already. */
void rl_connection_abandon(struct rl_connection *conn);

/* If `due_ns` has come: opens the connection, or gives up one that was not made or greeted in time.
 */
void rl_connection_tick(struct rl_node *node, uint64_t now_ns);

/* Returns the time limit of a TLS handshake, and again of the greeting after it, where this number
 * of connections in a row has exceeded one of them: that of a connect, times four for each of them,
 * and at most 16 s. Many clients that connect at once make a server slow, because each handshake
 * costs it processor time; without growing limits none would succeed. A greeting that is given up
 * costs one more handshake. */
uint64_t rl_connection_handshake_ns(const struct rl_node *node, unsigned slow_handshakes);

/* Handles the reply that the decoder has just read as the next one of the greeting. May close the
 * connection, or make it ready. */
void rl_connection_take_greeting(struct rl_node *node, uint64_t now_ns);

/* Begins to use a connection that is new: sends pending undos, and has the requests sent that
 * waited for the connection. */
void rl_connection_begin_use(struct rl_node *node, uint64_t now_ns);

#endif
