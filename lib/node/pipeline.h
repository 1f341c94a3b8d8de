/* SPDX-License-Identifier: MIT
 * The pipeline of one connection: the bytes that wait to be sent, and the requests that wait for
 * their replies, in the order in which they are sent. */
#ifndef RL_NODE_PIPELINE_H
#define RL_NODE_PIPELINE_H

#include "node/claim.h"
#include "node/inbox.h"

/* One request of a pipeline, from the call that appends it until its reply or the end of the
 * connection. A request whose vote has timed out stays in the pipeline, so that its late reply is
 * not read as the reply to a later request.
 *
 * The caller of rl_pipeline_push() sets claim, sent_ns, round, verb, form and `reported`.
 * pipeline.c sets start, len, unsent and removed. The failure detector sets `reported` and
 * `suspected`; request.c also sets `suspected`. The connection sets sent_ns again when it becomes
 * ready. reply.c passes sent_ns and `reported` on to a request that it sends again. */
struct rl_request {
    struct rl_claim *claim; /* what the request is about; the request holds a reference. NULL: a
                             * probe, a heartbeat or TRACK, or the request was removed */
    uint64_t start;         /* place of its first byte, counted from the start of the connection */
    uint64_t sent_ns;       /* boot clock: when the time limit of its reply begins */
    uint32_t len;           /* its bytes; 0: it was removed */
    uint32_t round;         /* rl_round.number that its vote belongs to; 0: it has no vote */
    uint8_t verb;           /* enum rl_verb */
    uint8_t form;           /* enum rl_form; INFO: index of the section (heartbeat.c) */
    bool suspected; /* a vote SUSPECT was reported, or the node was suspect from the start */
    bool reported;  /* no vote is reported when the reply comes: the time limit has passed
                     * and a vote FAILED was reported, or nothing ever awaits a vote */
    bool unsent;    /* valid after rl_pipeline_disconnect(): no byte of it was sent */
    bool removed;   /* its bytes were removed before any was sent; no reply will come */
};

/* Unsent bytes from which on a pipeline is full: its users append no new request. One that is sent
 * again in another form is appended all the same. */
#define RL_UNSENT_MAX ((size_t)1 << 20)

/* The requests in flight on one connection, and the output. Owner: pipeline.c. Its memory survives
 * connections. Invariants: head <= tail <= head + ring_cap; the requests are in the order of their
 * bytes; the inbox has room for one vote per element of `ring`. */
struct rl_pipeline {
    const struct rl_mem *mem;
    struct rl_inbox *inbox;
    char *out;      /* bytes that the transport has not taken yet; it holds tokens */
    size_t out_len; /* bytes in `out` */
    size_t out_cap; /* bytes allocated for `out` */
    uint64_t sent;  /* bytes that the transport has taken on this connection: the place of out[0] */
    uint64_t unsent_since_ns; /* boot clock: when `out` stopped being empty; valid while
                               * out_len > 0 */
    struct rl_request *ring;
    uint32_t ring_cap;   /* elements of `ring`: a power of two, or 0 */
    uint64_t head, tail; /* indices of the oldest request and of the next one to be appended; they
                          * only grow. Request i is ring[i % ring_cap] */
    uint64_t first_unreported; /* every request before this index is `reported` or `removed` */
};

/* Prepares an empty pipeline. Both pointers are borrowed. */
static inline void rl_pipeline_init(struct rl_pipeline *pipe, const struct rl_mem *mem,
                                    struct rl_inbox *inbox)
{
    *pipe = (struct rl_pipeline){.mem = mem, .inbox = inbox};
}

/* Returns the index of the oldest request; rl_pipeline_end() if there is none. */
static inline uint64_t rl_pipeline_first(const struct rl_pipeline *pipe)
{
    return pipe->head;
}

/* Returns the index that the next appended request gets. */
static inline uint64_t rl_pipeline_end(const struct rl_pipeline *pipe)
{
    return pipe->tail;
}

/* Returns the number of requests in flight, removed ones included. */
static inline uint64_t rl_pipeline_count(const struct rl_pipeline *pipe)
{
    return pipe->tail - pipe->head;
}

/* Returns the request with this index: at least rl_pipeline_first(), less than rl_pipeline_end().
 */
static inline struct rl_request *rl_pipeline_at(const struct rl_pipeline *pipe, uint64_t index)
{
    return &pipe->ring[index & (pipe->ring_cap - 1)];
}

/* Returns the oldest request. The pipeline must not be empty. */
static inline struct rl_request *rl_pipeline_oldest(const struct rl_pipeline *pipe)
{
    return rl_pipeline_at(pipe, pipe->head);
}

/* Returns the newest request. The pipeline must not be empty. */
static inline struct rl_request *rl_pipeline_newest(const struct rl_pipeline *pipe)
{
    return rl_pipeline_at(pipe, pipe->tail - 1);
}

/* Returns the bytes that the transport has not taken yet. Valid until the next change of the
 * pipeline. */
static inline struct rl_arg rl_pipeline_output(const struct rl_pipeline *pipe)
{
    return (struct rl_arg){pipe->out, pipe->out_len};
}

/* Returns true if at least RL_UNSENT_MAX bytes wait to be sent. */
static inline bool rl_pipeline_is_full(const struct rl_pipeline *pipe)
{
    return pipe->out_len >= RL_UNSENT_MAX;
}

/* Returns true if a request that was appended at `appended_ns` (boot clock) may be unsent. */
static inline bool rl_pipeline_may_hold(const struct rl_pipeline *pipe, uint64_t appended_ns)
{
    return pipe->out_len > 0 && appended_ns >= pipe->unsent_since_ns;
}

/* Returns true if no byte of the request was sent. */
static inline bool rl_request_is_unsent(const struct rl_pipeline *pipe,
                                        const struct rl_request *req)
{
    return req->start >= pipe->sent;
}

/* Returns true if all bytes of the request were sent. */
static inline bool rl_request_is_whole(const struct rl_pipeline *pipe, const struct rl_request *req)
{
    return req->start + req->len <= pipe->sent;
}

/* Makes room for a request of `bytes` bytes and for its undo of `undo_bytes` bytes, so that the
 * undo does not fail for lack of memory. Returns false without memory. */
bool rl_pipeline_reserve(struct rl_pipeline *pipe, size_t bytes, size_t undo_bytes);

/* Appends a copy of `request` and its `len` encoded bytes. Takes a reference to the claim. Returns
 * false without memory; nothing is appended then. */
bool rl_pipeline_push(struct rl_pipeline *pipe, const struct rl_request *request, const char *bytes,
                      size_t len);

/* Removes and returns the oldest request; there must be one. Its claim reference passes to the
 * caller. */
struct rl_request rl_pipeline_pop(struct rl_pipeline *pipe);

/* Returns the index of the oldest request that is neither `reported` nor `removed`;
 * rl_pipeline_end(): there is none. Looks at each request once only, because an unresponsive server
 * can leave thousands of requests that were reported. */
uint64_t rl_pipeline_oldest_unreported(struct rl_pipeline *pipe);

/* Returns enum rl_verb of the request whose reply comes next; RL_VERB_NONE: no reply is due. */
static inline unsigned rl_pipeline_next_verb(const struct rl_pipeline *pipe)
{
    uint64_t next = pipe->head;

    while (next != pipe->tail && rl_pipeline_at(pipe, next)->removed)
        next++;
    return next != pipe->tail ? rl_pipeline_at(pipe, next)->verb : RL_VERB_NONE;
}

/* Returns true if a request of `claim` is in flight that does more than read. */
bool rl_pipeline_has_change(const struct rl_pipeline *pipe, const struct rl_claim *claim);

/* Returns true if a request with this token is in flight. */
bool rl_pipeline_uses_token(const struct rl_pipeline *pipe, struct rl_arg token);

/* Returns the number of undos in flight. */
unsigned rl_pipeline_count_undos(const struct rl_pipeline *pipe);

/* Drops removed requests from the front: the oldest request is then one that has a reply. */
static inline void rl_pipeline_drop_removed(struct rl_pipeline *pipe)
{
    while (pipe->head != pipe->tail && rl_pipeline_at(pipe, pipe->head)->removed)
        pipe->head++;
}

/* Drops the first `len` bytes of the output, because the transport has taken them. */
void rl_pipeline_sent(struct rl_pipeline *pipe, size_t len);

/* Ends the stream of bytes, because the connection is closed. Sets `unsent` of each request, drops
 * the output, and counts places from 0 again. The requests stay until they are popped. */
void rl_pipeline_disconnect(struct rl_pipeline *pipe);

/* Removes all requests of `claim` of which no byte was sent: drops their bytes and their claim
 * references, and sets `removed`. Returns true if an ACQUIRE was among them: the server has not
 * seen the claim then. */
bool rl_pipeline_cut(struct rl_pipeline *pipe, const struct rl_claim *claim);

/* Returns true if at least a part of a request that creates a key was sent, but not its complete
 * undo. Such a connection must be closed abruptly, or the kernel may still deliver the request. */
bool rl_pipeline_has_bare_set(const struct rl_pipeline *pipe);

/* Returns true if at least a part of a request that creates a key was sent and has no reply. */
bool rl_pipeline_has_set(const struct rl_pipeline *pipe);

/* Returns how many bytes were sent that the server may not have read yet: those from the oldest
 * request without a reply on. */
uint64_t rl_pipeline_unread(const struct rl_pipeline *pipe);

/* Capacities that an idle pipeline keeps, so that some hundred requests need no allocation. */
#define RL_RING_KEPT 512                /* requests */
#define RL_OUT_KEPT  ((size_t)64 << 10) /* bytes */

/* Frees memory above the kept capacities if no request is in flight. */
void rl_pipeline_free_burst(struct rl_pipeline *pipe);
/* As rl_pipeline_free_burst(), without a call in the usual case. */
static inline void rl_pipeline_trim(struct rl_pipeline *pipe)
{
    if (pipe->ring_cap > RL_RING_KEPT || pipe->out_cap > RL_OUT_KEPT)
        rl_pipeline_free_burst(pipe);
}

/* Drops all requests with their references, and frees all memory. */
void rl_pipeline_free(struct rl_pipeline *pipe);

#endif
