/* SPDX-License-Identifier: MIT
 * The tracker of a node: a second connection, on which the server sends notifications of keys.
 *
 * The second connection is opened when a lock waits for a key of the node for the first time. Its
 * greeting is AUTH, CLIENT SETNAME, CLIENT ID and SUBSCRIBE, and another SUBSCRIBE to the channel
 * of this client's turns if lines are used (core/line.h). Then the first connection, which carries
 * the requests, sends the request TRACK (CLIENT TRACKING ON with REDIRECT to the second connection,
 * and OPTIN). From then on notifications are "on". OPTIN means that the server tracks no key by
 * itself. The request REGISTER (CLIENT CACHING YES) in front of the PTTL of a key makes the server
 * track that one key. If the server or the user's permissions do not allow a second connection,
 * waiters poll by their timers. */
#ifndef RL_NODE_TRACKER_H
#define RL_NODE_TRACKER_H

#include "node/codec.h"
#include "node/encode.h"

/* The states of the second connection. */
enum rl_tracker_state {
    RL_TRACKER_OFF = 0, /* closed: no lock has waited yet, the next try is planned, or it is planned
                           once the first connection is ready */
    RL_TRACKER_CONNECTING = 1, /* is being opened; rl_tracker_opened() reports the result */
    RL_TRACKER_GREETING = 2,   /* open; replies to the greeting are missing */
    RL_TRACKER_LISTENING = 3,  /* the greeting is complete; the server can send notifications */
    RL_TRACKER_REFUSED = 4     /* closed: the server has refused the greeting or tracking. The next
                                * try follows once another first connection is ready */
};

/* The second connection of a node. Owner: tracker.c. All instants are on the boot clock. Invariant:
 * `on` is set in state LISTENING only. */
struct rl_tracker {
    uint8_t state;     /* enum rl_tracker_state */
    uint8_t step;      /* GREETING: enum step in tracker.c, of the command whose reply comes next */
    bool wanted;       /* a lock has waited for a key on this node while notifications were
                        * configured; cleared when the node is closed and does not connect again */
    bool line;         /* the server has accepted the channel of this client's turns in lines */
    bool on;           /* the server sends notifications of tracked keys */
    bool harmful;      /* the first connection broke before the replies to TRACK and its test came,
                        * or the reply to a REGISTER was neither OK nor an error: the next try after
                        * a new first connection is delayed by HARMFUL_NS */
    unsigned pending;  /* replies still to come on the first connection to TRACK, and to the one
                        * REGISTER that is sent after each TRACK as a test. In state LISTENING the
                        * last two belong to this second connection, all others to earlier ones */
    unsigned failures; /* tries in a row, for the delay before the next one. A second connection
                        * that was on for RL_LASTING_NS (connection.h: one second) starts the count
                        * anew at 1, and the loss of the first connection at 0 */
    bool tls; /* CONNECTING, from the TLS handshake on, and later: the connection uses TLS */
    unsigned slow_handshakes; /* as that of the first connection (connection.h) */
    uint64_t due_ns; /* OFF: when to connect; CONNECTING, GREETING: when to give up; RL_NEVER:
                      * nothing is planned */
    uint64_t on_ns;  /* when `on` was set last; 0: never */
    uint64_t id;     /* CLIENT ID of the second connection, or of an earlier one until the reply to
                      * CLIENT ID has come; 0: there was none */
    struct rl_encoded encoded; /* the commands of the greeting */
    size_t sent;               /* bytes of `encoded` that the transport has accepted */
    uint8_t cause;             /* enum redlock_cause: why the server refused the second connection
                                * last; REDLOCK_CAUSE_NONE: it never did */
    char text[96];             /* the reason in words; empty: never refused */
    struct rl_decoder decoder; /* parses what arrives on the second connection */
    struct rl_texts texts; /* elements of the array that was read last. In a notification they are
                            * "message", the channel, and the keys that have changed; of a turn, the
                            * key of the lock */
    unsigned next_key;     /* index in `texts` of the key that is reported next; 0: none is left */
};

struct rl_claim;
struct rl_node;

/* Prepares a tracker that is off. */
void rl_tracker_init(struct rl_node *node);
/* Notes that a lock waits for a key on this node. If notifications are configured, the first call
 * makes the second connection due: at once, or when the first connection is ready. */
void rl_tracker_request(struct rl_node *node, uint64_t now_ns);
/* Returns true if the server notifies this client when it is its turn in a line. */
bool rl_tracker_hears_turns(const struct rl_node *node);
/* Returns true if the server does so, or may do so once the second connection is there. */
bool rl_tracker_may_hear_turns(const struct rl_node *node);
/* Returns true if the server sends notifications of tracked keys. */
bool rl_tracker_is_on(const struct rl_node *node);
/* Returns true if a lock has waited for a key on this node. */
bool rl_tracker_is_wanted(const struct rl_node *node);
/* Returns the state of the second connection. */
enum rl_tracker_state rl_tracker_state(const struct rl_node *node);
/* Returns enum redlock_cause: why the server refused the second connection last;
 * REDLOCK_CAUSE_NONE: it never did. */
uint8_t rl_tracker_cause(const struct rl_node *node);
/* Returns in words why the server refused the second connection last, as a terminated string in an
 * array of 96 bytes; "": it never did. */
const char *rl_tracker_text(const struct rl_node *node);
/* Returns when rl_tracker_tick() has something to do (boot clock); RL_NEVER: nothing is planned. */
uint64_t rl_tracker_due_ns(const struct rl_node *node);

/* Notes that the node has another login. If the server has refused the last one, makes the second
 * connection due now, as rl_tracker_node_ready() does. */
void rl_tracker_login_changed(struct rl_node *node, uint64_t now_ns);
/* Notes that the first connection has become ready. Makes the second connection due if a lock has
 * waited for a key: now, or after HARMFUL_NS if the last try was harmful. */
void rl_tracker_node_ready(struct rl_node *node, uint64_t now_ns);
/* Closes the second connection, because the first one is closed. With `retry`, the node connects
 * again, and rl_tracker_node_ready() then makes the second connection due again. Without, the node
 * stays closed, and the wish of locks for notifications is forgotten. Notes whether the first
 * connection broke while tracking was being requested (`harmful`). */
void rl_tracker_node_lost(struct rl_node *node, bool retry);
/* Frees all memory. Does not close the connection, which was closed or belongs to another process.
 */
void rl_tracker_free(struct rl_node *node);
/* Handles a reply on the first connection to TRACK, or to the REGISTER that follows TRACK as a
 * test. Turns notifications on after both replies are OK. A reply that is not OK closes the second
 * connection. Replies that belong to an earlier second connection are ignored. */
void rl_tracker_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Appends REGISTER for `claim` to the pipeline of the first connection, if notifications are on:
 * the server then tracks the key that the next request reads. The caller appends that request, a
 * PTTL of the claim's key, right afterwards. Without memory no REGISTER is sent. */
void rl_tracker_register(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns);
/* Handles the reply to the REGISTER of rl_tracker_register(). A reply that is not OK closes the
 * second connection: after BUSY another try is planned; after anything else the server counts as
 * refusing until the first connection is made anew. Ignores the reply if notifications are off
 * already. */
void rl_tracker_registered(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Handles that the socket is connected and the TLS handshake begins, whose end rl_tracker_opened()
 * reports: the handshake gets a time limit of its own. */
void rl_tracker_connected(struct rl_node *node, uint64_t now_ns);
/* Handles that the TLS handshake has failed, and the server is tried at its next address: the
 * attempt has the time limit of a connect again. */
void rl_tracker_next_address(struct rl_node *node, uint64_t now_ns);
/* Handles the end of an attempt to open the second connection. If it has succeeded (`ok`), sends
 * the greeting; else plans the next try. */
void rl_tracker_opened(struct rl_node *node, bool ok, uint64_t now_ns);
/* Gives the decoder `len` bytes that have arrived on the second connection, and adds the node to
 * the set RL_INBOX_PUSH_UNREAD. The bytes must stay valid until rl_tracker_next() has removed the
 * node from that set. */
void rl_tracker_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns);
/* Does one step for a node in the set RL_INBOX_PUSH_UNREAD: adds the next key of the notification
 * that was read last to the inbox, or reads the next reply or notification from the received bytes.
 * Removes the node from the set when nothing is left. */
void rl_tracker_next(struct rl_node *node, uint64_t now_ns);
/* Handles the end of the second connection, which the server or the network has closed: plans the
 * next one. */
void rl_tracker_closed(struct rl_node *node, uint64_t now_ns);
/* Hands to the transport what it has not accepted yet of the greeting. On an error, closes the
 * second connection and plans the next one. */
void rl_tracker_flush(struct rl_node *node, uint64_t now_ns);

/* If `due_ns` has come: opens the second connection, or gives up an attempt whose time limit has
 * passed. */
void rl_tracker_tick(struct rl_node *node, uint64_t now_ns);

#endif
