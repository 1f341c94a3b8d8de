/* SPDX-License-Identifier: MIT
 * The tracker of a node: a second connection, on which the server sends notifications of keys.
 *
 * Uses CLIENT TRACKING with REDIRECT and OPTIN. The first connection, which carries the requests,
 * sends CLIENT CACHING YES in front of the PTTL of a key that a waiter waits for: that registers
 * the key. Other keys leave no entry in the server's tracking table. The second connection is
 * opened when a lock waits for the first time. If the server or the user's permissions do not allow
 * it, waiters poll by their timers. */
#ifndef RL_NODE_TRACKER_H
#define RL_NODE_TRACKER_H

#include "node/codec.h"
#include "node/encode.h"

/* The states of the second connection. */
enum rl_tracker_state {
    RL_TRACKER_OFF = 0,        /* closed: not requested yet, or the next one is planned */
    RL_TRACKER_CONNECTING = 1, /* waits for rl_tracker_opened() */
    RL_TRACKER_GREETING = 2,   /* open; waits for replies to AUTH, CLIENT and SUBSCRIBE */
    RL_TRACKER_LISTENING = 3,  /* subscribed */
    RL_TRACKER_REFUSED = 4 /* closed: the server refuses it. Not opened again before the next first
                            * connection */
};

/* The second connection of a node. Owner: tracker.c. All instants are on the boot clock. `on` is
 * set in state LISTENING only. */
struct rl_tracker {
    uint8_t state;     /* enum rl_tracker_state */
    uint8_t step;      /* GREETING: enum step in tracker.c, of the command whose reply comes next */
    bool wanted;       /* a lock has waited for a key on this node */
    bool on;           /* the server sends notifications of registered keys */
    bool harmful;      /* the server broke the first connection, or replied with nonsense, when
                        * tracking was requested: the next try is delayed */
    unsigned pending;  /* replies to TRACK and its REGISTER that the first connection awaits; the
                        * last two belong to this second connection, others to earlier ones */
    unsigned failures; /* second connections in a row that failed or did not last */
    uint64_t due_ns;   /* OFF: when to connect; CONNECTING, GREETING: when to give up; RL_NEVER:
                        * neither */
    uint64_t on_ns;    /* when `on` was set last */
    uint64_t id;       /* CLIENT ID of the second connection; 0: unknown */
    struct rl_encoded encoded; /* the commands of the greeting */
    size_t sent;               /* bytes of `encoded` that the transport has taken */
    uint8_t cause;             /* enum redlock_cause: why the server refused it last */
    char text[96];             /* the same in words */
    struct rl_decoder decoder;
    struct rl_texts texts; /* elements of the notification that was read last; from the third on
                            * they are keys */
    unsigned next_key;     /* index in `texts` of the key that is reported next; 0: none is left */
};

struct rl_claim;
struct rl_node;

/* Prepares a tracker that is off. */
void rl_tracker_init(struct rl_node *node);
/* Notes that a lock waits for a key on this node. The first call opens the second connection, if
 * notifications are configured. */
void rl_tracker_request(struct rl_node *node, uint64_t now_ns);
/* Returns true if the server sends notifications of registered keys. */
bool rl_tracker_is_on(const struct rl_node *node);
/* Returns true if a lock has waited for a key on this node. */
bool rl_tracker_is_wanted(const struct rl_node *node);
/* Returns the state of the second connection. */
enum rl_tracker_state rl_tracker_state(const struct rl_node *node);
/* Returns enum redlock_cause: why the server refused the second connection last. */
uint8_t rl_tracker_cause(const struct rl_node *node);
/* Returns the same in words, as an array of 96 bytes. */
const char *rl_tracker_text(const struct rl_node *node);
/* Returns when rl_tracker_tick() has something to do; RL_NEVER: it has not. */
uint64_t rl_tracker_due_ns(const struct rl_node *node);

/* Notes that the first connection is in use: a second one is due, if it is wanted. */
void rl_tracker_node_ready(struct rl_node *node, uint64_t now_ns);
/* Closes the second connection, because the first one is closed. `retry` false: none follows. */
void rl_tracker_node_lost(struct rl_node *node, bool retry);
/* Frees all memory. Does not close the connection, which was closed or belongs to another process.
 */
void rl_tracker_free(struct rl_node *node);
/* Takes a reply on the first connection to TRACK, or to the REGISTER that follows it as a test. */
void rl_tracker_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Sends REGISTER on the first connection, if notifications are on: the server then tracks the key
 * that the next request reads, which must be that of the claim. */
void rl_tracker_register(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns);
/* Takes the reply to rl_tracker_register(). Closes the second connection if the server refuses. */
void rl_tracker_registered(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Takes the end of a connection attempt of the second connection. Sends the greeting if `ok`. */
void rl_tracker_opened(struct rl_node *node, bool ok, uint64_t now_ns);
/* Takes bytes that have arrived on the second connection, and adds the node to
 * RL_INBOX_PUSH_UNREAD: they must stay valid until rl_tracker_next() has removed it. */
void rl_tracker_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns);
/* Takes the next reply of those bytes, or reports the next key of a notification. Removes the node
 * from RL_INBOX_PUSH_UNREAD when nothing is left. */
void rl_tracker_next(struct rl_node *node, uint64_t now_ns);
/* Takes the end of the second connection, and plans the next one. */
void rl_tracker_closed(struct rl_node *node, uint64_t now_ns);
/* Hands the rest of the greeting to the transport. */
void rl_tracker_flush(struct rl_node *node, uint64_t now_ns);

/* Opens the second connection or gives it up, if that is due. */
void rl_tracker_tick(struct rl_node *node, uint64_t now_ns);

#endif
