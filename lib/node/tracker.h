/* SPDX-License-Identifier: MIT
 * Being told instead of asking: a second connection to a node, on which the server says that a key
 * has changed which the first one has registered (CLIENT TRACKING with REDIRECT and OPTIN; CLIENT
 * CACHING YES in front of the PTTL of a key that a lock waits for). Keys of other requests are not
 * registered, and leave no entry in the server's tracking table. The second connection is opened
 * when a lock waits for the first time. A server or a user that lacks it costs nothing but the
 * pleasure: there is always a timer. */
#ifndef RL_NODE_TRACKER_H
#define RL_NODE_TRACKER_H

#include "node/codec.h"
#include "node/encode.h"

enum rl_tracker_state {
    RL_TRACKER_OFF = 0, /* not wanted yet, or between two connections */
    RL_TRACKER_CONNECTING = 1,
    RL_TRACKER_GREETING = 2,
    RL_TRACKER_LISTENING = 3,
    RL_TRACKER_REFUSED = 4 /* by this server or for this user, until the first connection is new */
};

struct rl_tracker {
    uint8_t state; /* enum rl_tracker_state */
    uint8_t step;  /* of the greeting, that is answered next */
    bool wanted;
    bool on;      /* changes of keys that the first connection registers are sent here */
    bool harmful; /* the first connection ended while TRACK was unanswered: not soon again */
    unsigned
        pending; /* TRACKs that the first connection has not answered: the last two are meant */
    unsigned failures; /* connections that failed or did not last, in a row */
    uint64_t due_ns;   /* OFF: connect; CONNECTING, GREETING: give up */
    uint64_t on_ns;    /* when `on` was set last */
    uint64_t id;       /* how the server calls this connection */
    struct rl_encoded encoded;
    size_t sent;
    uint8_t cause; /* REFUSED: why, enum redlock_cause; and ... */
    char text[96]; /* ... for people */
    struct rl_decoder decoder;
    struct rl_texts texts;
    unsigned next_key; /* in `texts`: reported next; 0: all were */
};

struct rl_claim;
struct rl_node;

void rl_tracker_init(struct rl_node *node);
/* Somebody waits for a key on this node. */
void rl_tracker_request(struct rl_node *node, uint64_t now_ns);
/* Returns true if the server sends notifications of the keys that are registered. */
bool rl_tracker_is_on(const struct rl_node *node);
/* Returns true if rl_tracker_request() was called since the node was started. */
bool rl_tracker_is_wanted(const struct rl_node *node);
enum rl_tracker_state rl_tracker_state(const struct rl_node *node);
/* Returns enum redlock_cause: why notifications were refused last. */
uint8_t rl_tracker_cause(const struct rl_node *node);
/* Returns the same in words: RL_TEXT_MAX bytes, terminated. */
const char *rl_tracker_text(const struct rl_node *node);
/* Returns when rl_tracker_tick() has something to do on the boot clock; RL_NEVER: it has not. */
uint64_t rl_tracker_due_ns(const struct rl_node *node);

/* The first connection was made, or is gone. */
void rl_tracker_node_ready(struct rl_node *node, uint64_t now_ns);
void rl_tracker_node_lost(struct rl_node *node, bool retry);
/* Memory only; the connection was closed, or belongs to another process. */
void rl_tracker_free(struct rl_node *node);
/* The answer of the first connection to TRACK. */
void rl_tracker_reply(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Sends on the first connection that the key of the claim, which must be read by the next request,
 * is registered; and takes the answer to that. */
void rl_tracker_register(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns);
void rl_tracker_registered(struct rl_node *node, const struct rl_reply *reply, uint64_t now_ns);

/* Events of its own transport. */
void rl_tracker_opened(struct rl_node *node, bool ok, uint64_t now_ns);
/* Takes bytes, and adds the node to RL_INBOX_PUSH_UNREAD: they stay valid until rl_tracker_next()
 * has removed it. */
void rl_tracker_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns);
/* Takes the next reply of those bytes, or the next key of a notification. Removes the node from
 * RL_INBOX_PUSH_UNREAD when there is none. */
void rl_tracker_next(struct rl_node *node, uint64_t now_ns);
void rl_tracker_closed(struct rl_node *node, uint64_t now_ns);
void rl_tracker_flush(struct rl_node *node, uint64_t now_ns);

/* When tracker->due_ns has come. */
void rl_tracker_tick(struct rl_node *node, uint64_t now_ns);

#endif
