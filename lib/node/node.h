/* SPDX-License-Identifier: MIT
 * The client's object for one server. Its parts have files of their own (connection.h, pipeline.h,
 * failure_detector.h, heartbeat.h, eligibility.h, features.h, undo.h, tracker.h); this one puts
 * them together. No socket in here: bytes go through a transport and come back through
 * rl_node_received(), time is an argument.
 *
 * A READY node that is silent for the node timeout while it owes an answer, or owes one for too
 * long, is *suspect*: it gets no new requests but undos, one probe, and what cannot do without it
 * (rl_node_request_suspect()), until it has caught up. */
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
#include "node/handshake.h"
#include "node/heartbeat.h"
#include "node/inbox.h"
#include "node/info.h"
#include "node/pipeline.h"
#include "node/tracker.h"
#include "node/transport.h"
#include "node/undo.h"
#include "platform/log.h"

/* Unsent bytes after which a node writes before the tick ends. */
#define RL_FLUSH_BYTES ((size_t)60 << 10)

struct rl_node;

/* What all nodes of a client have in common; outlives them. */
struct rl_node_common {
    const struct rl_mem *mem;
    const struct rl_log *log;
    struct rl_transport transport;
    struct rl_clocks clocks;
    struct rl_inbox inbox; /* what the nodes report */
    struct rl_reply_text *text;
    /* Fences: the same words in every vote. */
    struct rl_arg fence_record, fence_config;
    bool fence_run_bound;                /* a record is good for one run of its server only */
    struct rl_admission_rules admission; /* with the drift that all times are lengthened by */
    uint64_t connect_timeout_ns;
    uint64_t node_timeout_ns; /* 0: measured */
    uint64_t heartbeat_ns;
    bool notifications; /* servers may be asked to tell of changes */
    bool active;        /* locks are held or wanted: heartbeats are worth their while */
    uint64_t random;    /* fresh in every tick */
    /* Nothing is due at any node before `wake_ns`, unless that is no longer known: kept by the
     * engine, which asks all nodes only then, and when the time has come. */
    uint64_t wake_ns;
    bool wake_known;
    /* The last command formatted: the same bytes go to every node of a round. */
    struct {
        const struct rl_claim *claim;
        uint64_t ttl_ms;
        uint8_t verb, form;
        struct rl_encoded encoded;
    } cache;
};

/* What has happened at a node since it was initialized, for statistics. Each counter is counted in
 * the file that its comment names; the engine reads them. */
struct rl_node_counters {
    uint64_t requests;     /* node.c: requests with a claim that were queued, undos included */
    uint64_t granted;      /* reply.c: replies that are grants */
    uint64_t denied;       /* reply.c: replies that are denials */
    uint64_t errors;       /* reply.c: replies that failed, which are all others */
    uint64_t replies_late; /* reply.c: of these, replies whose request had timed out before */
    uint64_t rtt_us_hist[RL_BUCKETS]; /* reply.c: round trips in microseconds; rl_count_us() */
    uint64_t timeouts;                /* failure_detector.c: times that the node became suspect */
    uint64_t reconnects;              /* connection.c: connections opened, without the first */
    uint64_t notifications;           /* tracker.c: notifications that have arrived */
};

/* One server. node.c keeps what is declared here; each part below belongs to the file that its
 * header names, and other files call its functions. */
struct rl_node {
    struct rl_node_common *common;
    const char *name;     /* borrowed */
    const char *user;     /* borrowed, may be NULL */
    const char *password; /* borrowed, may be NULL */
    unsigned db;
    uint8_t index;
    struct rl_connection conn;
    struct rl_greeting greeting;
    struct rl_pipeline pipe;
    struct rl_detector detector;
    struct rl_heartbeat heartbeat;
    struct rl_eligibility eligibility;
    struct rl_features features;
    struct rl_undos undos;
    struct rl_tracker tracker; /* the connection on which the server tells of changes */
    struct rl_decoder decoder;
    struct rl_node_counters counters;
};

void rl_node_init(struct rl_node *node, struct rl_node_common *common, uint8_t index);
/* Notes what the operator attests of the server; call it before rl_node_start(). */
void rl_node_attest(struct rl_node *node, bool durable, bool fresh);
/* Frees memory; the connection must have been closed. */
void rl_node_free(struct rl_node *node);

/* Starts the first connection. */
void rl_node_start(struct rl_node *node, uint64_t now_ns);

/* May be asked now: connected, or connecting for the first time or right after a loss. */
bool rl_node_is_up(const struct rl_node *node);
/* Connected and greeted, not suspect, and not a second address of a server: whether its votes count
 * is decided by its eligibility. */
bool rl_node_is_responsive(const struct rl_node *node);

/* Queues a request for `claim`, whose ttl_ms is set. 0, or an enum redlock_cause: it was not sent.
 */
int rl_node_request(struct rl_node *node, struct rl_claim *claim, uint32_t round, enum rl_verb verb,
                    uint64_t now_ns);
/* Queues a PTTL, and has the node notify of changes of the key (RL_INBOX_NOTIFIED), if it can. */
int rl_node_probe_and_track(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                            uint64_t now_ns);
/* As rl_node_request(), and a suspect node is asked, too: for what must not be left out because it
 * is late. */
int rl_node_request_suspect(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                            enum rl_verb verb, uint64_t now_ns);

/* Takes the claim back from this node: its unsent requests are removed, and, unless that shows that
 * the node never heard of it, claim->undo_verb is sent; now, or as soon as the node can be
 * reached, and again after a lost connection. With a round other than 0 the answer is a vote.
 * Returns RL_VOTE_NONE if a vote will follow, or the vote itself: DENIED (never sent), FAILED (not
 * reachable now; `*ret_cause` says why). */
enum rl_vote rl_node_undo(struct rl_node *node, struct rl_claim *claim, uint32_t round,
                          uint64_t now_ns, int *ret_cause);

/* Hands waiting bytes to the transport. */
void rl_node_flush(struct rl_node *node, uint64_t now_ns);

/* Events of the transport. `cause` and `text` (may be NULL) say why it failed. */
void rl_node_opened(struct rl_node *node, bool ok, int cause, const char *text, uint64_t now_ns);
/* Takes the first reply of these bytes. If there may be more, adds the node to RL_INBOX_UNREAD; the
 * bytes stay valid until rl_node_next() has removed it. */
void rl_node_received(struct rl_node *node, const char *bytes, size_t len, uint64_t now_ns);
/* Takes the next reply of those bytes, begins to use a connection that has become ready, or closes
 * that of a duplicate. Removes the node from RL_INBOX_UNREAD when nothing is left to do. */
void rl_node_next(struct rl_node *node, uint64_t now_ns);
/* Notes that the node `first`, or none (NULL), shows the same server. The connection of a duplicate
 * is closed by rl_node_next(). */
void rl_node_set_duplicate(struct rl_node *node, const struct rl_node *first);
void rl_node_closed(struct rl_node *node, int cause, const char *text, uint64_t now_ns);

/* Does what is due; rl_node_wake_ns() says when (boot clock, RL_NEVER: nothing is due). */
void rl_node_tick(struct rl_node *node, uint64_t now_ns);
uint64_t rl_node_wake_ns(struct rl_node *node);

/* Closes the connection so that no SET of it is executed behind its undo (connection.c). Requests
 * in flight fail with `cause`; undos among them are owed again. `retry` false: for good. */
void rl_node_close(struct rl_node *node, int cause, const char *text, bool retry, uint64_t now_ns);

/* Undos that are owed or in flight. */
unsigned rl_node_undos_pending(const struct rl_node *node);

/* A request with this token is under way to the node, or an undo with it is pending. */
bool rl_node_uses_token(const struct rl_node *node, struct rl_arg token);

#endif
