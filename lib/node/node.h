/* SPDX-License-Identifier: MIT
 * The client's object for one server. Its parts have files of their own (connection.h, greeting.h,
 * pipeline.h, failure_detector.h, trial.h, heartbeat.h, eligibility.h, features.h, undo.h,
 * tracker.h, line_access.h); this one puts them together. A node knows no socket and no clock:
 * bytes go to a transport and arrive through rl_node_received(), and the time is an argument.
 * `now_ns` is the boot clock at the start of the tick in all functions. */
#ifndef RL_NODE_NODE_H
#define RL_NODE_NODE_H

#include "core/drift.h"
#include "core/quorum.h"
#include "node/admission.h"
#include "node/codec.h"
#include "node/connection.h"
#include "node/eligibility.h"
#include "node/encode.h"
#include "node/failure_detector.h"
#include "node/features.h"
#include "node/greeting.h"
#include "node/heartbeat.h"
#include "node/inbox.h"
#include "node/info.h"
#include "node/line_access.h"
#include "node/pipeline.h"
#include "node/tracker.h"
#include "node/transport.h"
#include "node/trial.h"
#include "node/undo.h"
#include "platform/log.h"

/* A node hands its output to the transport each time it grows by this many bytes, without waiting
 * for the end of the tick. */
#define RL_FLUSH_BYTES ((size_t)60 << 10)

struct rl_node;

/* What all nodes of an engine share. The engine sets it before the first node is initialized, keeps
 * it until all are freed, and changes `active`, `random`, wake_ns and wake_known later. node.c owns
 * `cache`; inbox.h and admission.h say who changes the parts that they declare. */
struct rl_node_common {
    const struct rl_mem *mem;      /* borrowed: the allocator of the client */
    const struct rl_log *log;      /* borrowed: takes messages for the log of the caller */
    struct rl_transport transport; /* opens and closes connections, and sends bytes */
    struct rl_clocks clocks;       /* read where the start of the tick is too old an instant */
    struct rl_inbox inbox;         /* what the nodes report to the engine */
    struct rl_reply_text *text; /* borrowed: where the decoders of all nodes store the text of the
                                 * reply that is read */
    struct rl_arg fence_record; /* key of the fence record; empty: no fences are used */
    struct rl_arg fence_config; /* identifies the configuration that a fence record holds for */
    bool fence_run_bound; /* fence records hold for one run of their server; false: they survive
                           * restarts, and need a server that is attested as durable */
    struct rl_admission_rules admission; /* also has the drift that undos use */
    uint64_t connect_timeout_ns; /* time limit of an attempt to connect, and of a greeting */
    uint64_t node_timeout_ns;    /* node timeout as configured; 0: derived from round trips */
    uint64_t heartbeat_ns;       /* time between two heartbeats */
    bool notifications;          /* as configured: trackers may open second connections */
    uint64_t waiter;             /* random: id of this client as a waiter; 0: lines are not used */
    uint64_t beat;               /* of the latest requests to lines: grows each time */
    struct rl_arg waiter_label;  /* owner label, for people who look at a line; borrowed */
    bool active; /* the engine has locks that are held or wait; false: heartbeats are not needed */
    uint64_t random;  /* a new random word in each tick */
    uint64_t wake_ns; /* boot clock: the earliest rl_node_wake_ns() of all nodes; valid while
                       * wake_known */
    bool wake_known;  /* false: rl_node_wake_ns() of a node may have become earlier than wake_ns */
    /* The command that was encoded last. It is kept because all nodes of a round are sent the same
     * bytes. */
    struct {
        const struct rl_claim *claim; /* what the command was encoded for; NULL: the command cannot
                                       * be used again */
        uint64_t ttl_ms;              /* claim->ttl_ms at that time */
        uint8_t verb, form;           /* enum rl_verb, enum rl_form */
        struct rl_encoded encoded;    /* the bytes of that command */
    } cache;
};

/* What has happened at a node since it was initialized, for statistics. Each counter is counted in
 * the file that its comment names; the engine reads them. */
struct rl_node_counters {
    uint64_t requests;     /* node.c: requests with a claim that were appended, undos included */
    uint64_t granted;      /* reply.c: replies that are grants */
    uint64_t denied;       /* reply.c: replies that are denials */
    uint64_t errors;       /* reply.c: replies that are votes FAILED */
    uint64_t replies_late; /* reply.c: replies that came after the time limit of their request */
    uint64_t rtt_us_hist[RL_BUCKETS]; /* reply.c: histogram of round trips in microseconds, as
                                       * rl_count_us() fills it */
    uint64_t rtt_us_sum;              /* reply.c: sum of these round trips */
    uint64_t timeouts;      /* failure_detector.c: how often the node has become suspect */
    uint64_t reconnects;    /* connection.c: connections opened after the first one */
    uint64_t notifications; /* tracker.c: notifications that have arrived */
};

/* The client's object for one server. node.c owns the fields from `common` to `index`; the engine
 * sets name, login and db once, between rl_node_init() and rl_node_start(). Each part below belongs
 * to the file that its header names, and other files call its functions. */
struct rl_node {
    struct rl_node_common *common; /* borrowed */
    const char *name;     /* borrowed: the address of the server without secrets, for messages */
    const char *user;     /* borrowed; NULL: AUTH is sent without a user */
    const char *password; /* borrowed; NULL: no AUTH is sent */
    unsigned db;          /* database for SELECT */
    uint8_t index;        /* position in the configuration; less than RL_NODES_MAX */
    struct rl_connection conn;         /* state of the first connection, and its history */
    struct rl_greeting greeting;       /* the greeting of the first connection */
    struct rl_pipeline pipe;           /* requests in flight and output of the first connection */
    struct rl_detector detector;       /* round trips; whether the node is suspect */
    struct rl_trial trial;             /* another connection, while the first one is silent */
    struct rl_heartbeat heartbeat;     /* when TIME and INFO are requested next */
    struct rl_eligibility eligibility; /* which server this is; whether its votes count */
    struct rl_features features;       /* which optional commands the server supports */
    struct rl_undos undos;             /* the pending undos */
    struct rl_tracker tracker;         /* the second connection, for notifications */
    struct rl_line_access line_access; /* whether the server lets this client use lines */
    struct rl_decoder decoder;         /* parses what arrives on the first connection */
    struct rl_node_counters counters;  /* for statistics */
};

/* Prepares a node that is down, with this position in the configuration. The node must not be moved
 * afterwards, and `common` must outlive the node. */
void rl_node_init(struct rl_node *node, struct rl_node_common *common, uint8_t index);
/* Notes what the operator attests of the server: that the server loses no key in a restart
 * (`durable`), and that it held no lock at first contact (`fresh`). Called before rl_node_start().
 */
void rl_node_attest(struct rl_node *node, bool durable, bool fresh);
/* Frees all memory. The connection must have been closed. */
void rl_node_free(struct rl_node *node);

/* Makes the first connection due: the next rl_node_tick() opens it. */
void rl_node_start(struct rl_node *node, uint64_t now_ns);

/* Returns true if rl_node_request() can send a request now: the node is ready and not suspect, or a
 * connection is being made for the first time or right after a loss; and the pipeline is not full.
 */
static inline bool rl_node_is_up(const struct rl_node *node)
{
    if (rl_pipeline_is_full(&node->pipe))
        return false;
    if (rl_connection_is_ready(&node->conn))
        return !rl_detector_is_suspect(&node->detector);
    return rl_connection_is_expected(&node->conn);
}
/* Returns true if the node is ready, can send a request, and is no duplicate of another node. Its
 * votes may be excluded all the same. */
bool rl_node_is_responsive(const struct rl_node *node);

/* Appends a request for `claim`, whose ttl_ms must be set, to the pipeline. Its vote is reported in
 * the inbox with `round`; 0: no vote is reported. Returns 0, or the enum redlock_cause for which
 * nothing was appended; no vote follows then. */
int rl_node_request(struct rl_node *node, struct rl_claim *claim, uint32_t round, enum rl_verb verb,
                    uint64_t now_ns);
/* Requests the remaining TTL of the claim's key (PTTL); else as rl_node_request(). Also has the
 * server track the key, if notifications are on: a change is then reported as RL_INBOX_NOTIFIED. */
int rl_node_probe_and_track(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                            uint64_t now_ns);
/* Requests the line of the claim's resource: `verb` is one of LINE_*. Before a request that looks,
 * has the server track the key of the lock if notifications are on; it then does so for a head.
 * Returns as rl_node_request(). */
int rl_node_request_line(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                         enum rl_verb verb, uint64_t now_ns);
/* As rl_node_request(), but sends to a suspect node, too. For requests that must reach all servers.
 */
int rl_node_request_suspect(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                            enum rl_verb verb, uint64_t now_ns);

/* Undoes the claim on this node. Removes requests of the claim of which no byte was sent. Unless
 * that shows that the server has not seen the claim, sends the undo: now, or as soon as the node is
 * ready, and again after a disconnect. Returns RL_VOTE_NONE if the undo was appended: its vote is
 * reported as for rl_node_request(). Else returns the vote: DENIED (the claim was never sent) or
 * FAILED (the undo is pending; `*ret_cause`, an enum redlock_cause, says why). */
enum rl_vote rl_node_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          uint64_t now_ns, int *ret_cause);

/* Hands the greeting or the output to the transport, as much as it accepts. Closes the connection
 * on an error. */
void rl_node_flush(struct rl_node *node, uint64_t now_ns);

/* Handles that the socket is connected and the TLS handshake begins, whose end rl_node_opened()
 * reports: the handshake gets a time limit of its own. */
void rl_node_connected(struct rl_node *node, uint64_t now_ns);
/* Handles that the TLS handshake has failed with `cause` (enum redlock_cause) and `text`, and the
 * server is tried at its next address: the attempt has the time limit of a connect again. */
void rl_node_next_address(struct rl_node *node, int cause, const char *text, uint64_t now_ns);
/* Handles the end of an attempt to connect. If the attempt has succeeded (`ok`), sends the
 * greeting. Else `cause` (enum redlock_cause) and `text` (NULL: none) say why it has failed. */
void rl_node_opened(struct rl_node *node, bool ok, int cause, const char *text, uint64_t now_ns);
/* Handles `len` bytes that have arrived: reads the first reply in them. If there may be more
 * replies, adds the node to the set RL_INBOX_UNREAD. The bytes must then stay valid until
 * rl_node_next() has removed the node from that set. */
void rl_node_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns);
/* Does one step for a node in the set RL_INBOX_UNREAD: reads the next reply from the received
 * bytes, begins to use a connection that has become ready, or closes the connection of a duplicate.
 * Removes the node from the set when nothing is left to do. */
void rl_node_next(struct rl_node *node, uint64_t now_ns);
/* Makes the node a duplicate of the node `first`, which has the same server. NULL: the node is no
 * duplicate. rl_node_next() closes the connection of a duplicate. */
void rl_node_set_duplicate(struct rl_node *node, const struct rl_node *first);
/* Handles the end of the connection, which the server or the network has closed. `cause` is an enum
 * redlock_cause; `text` says why and may be NULL. */
void rl_node_closed(struct rl_node *node, int cause, const char *text, uint64_t now_ns);

/* Does all that is due: opens connections or gives them up, makes the node suspect, ends and sends
 * pending undos, sends heartbeats. */
void rl_node_tick(struct rl_node *node, uint64_t now_ns);
/* Returns when rl_node_tick() has something to do (boot clock); RL_NEVER: nothing is planned. */
uint64_t rl_node_wake_ns(struct rl_node *node);

/* Closes the connection, in a way that the server cannot execute a SET after its undo. Requests in
 * flight fail with `cause` (enum redlock_cause), and undos among them become pending again. `text`
 * (may be NULL) is kept as the last error. Plans the next connection if `retry`. */
void rl_node_close(struct rl_node *node, int cause, const char *text, bool retry, uint64_t now_ns);

/* Returns the number of undos that are pending or in flight. */
unsigned rl_node_undos_pending(const struct rl_node *node);

/* Returns true if a request with this token is in flight, or an undo with it is pending. */
bool rl_node_uses_token(const struct rl_node *node, struct rl_arg token);

#endif
