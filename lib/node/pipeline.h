/* SPDX-License-Identifier: MIT
 * The pipeline of one connection: the bytes that wait to be sent, and the requests that wait for
 * their replies, in the order in which they are sent. */
#ifndef RL_NODE_PIPELINE_H
#define RL_NODE_PIPELINE_H

#include "node/claim.h"
#include "node/inbox.h"

#include <string.h>

/* One request of a pipeline, from the call that appends it until its reply or the end of the
 * connection. A request whose vote has timed out stays in the pipeline, so that its late reply is
 * not read as the reply to a later request.
 *
 * The caller of rl_pipeline_push() sets claim, sent_ns, round, verb, form and `reported`.
 * pipeline.c sets start, len and unsent. The failure detector sets `reported` and
 * `suspected`; request.c also sets `suspected`. connection.c sets sent_ns again when the connection
 * becomes ready. reply.c copies sent_ns and `reported` to the new request of a resend. */
struct rl_request {
    struct rl_claim *claim; /* the claim that the request sets, reads or removes; the request holds
                             * a reference. NULL: PING, a heartbeat or TRACK */
    uint64_t start;         /* number of the request's first byte among all bytes of the connection,
                             * counted from 0 */
    uint64_t sent_ns; /* boot clock: when the request was appended, or when the connection that
                       * it had to wait for became ready; the time limit of the reply begins */
    uint32_t len;     /* number of the request's bytes */
    uint32_t round;   /* rl_round.number that its vote belongs to; 0: no vote is reported */
    uint8_t verb;     /* enum rl_verb */
    uint8_t form;     /* enum rl_form; INFO: index of the section (heartbeat.c) */
    bool suspected;   /* no vote SUSPECT is reported any more: it was reported, or the node was
                       * suspect when the request was appended */
    bool reported;    /* no vote is reported when the reply comes: the time limit has passed and a
                       * vote FAILED was reported, or the request is a REGISTER, whose claim
                       * gets the vote of the request behind it */
    bool unsent; /* no byte of the request was sent; set by rl_pipeline_disconnect(). reply.c sets
                  * it for a request that the server has not executed and that is not resent */
};

/* Bytes of output with which a pipeline is full: its users append no new request then, except a
 * resend. */
#define RL_UNSENT_MAX ((size_t)1 << 20)

/* The requests in flight on one connection, and the output. Owner: pipeline.c. The struct and its
 * memory are used for one connection after another. Invariants: head <= tail <= head + ring_cap;
 * the requests are in the order of their bytes; the inbox has room for one vote per element of
 * `ring`. */
struct rl_pipeline {
    const struct rl_mem *mem; /* borrowed: allocates `out` and `ring` */
    struct rl_inbox *inbox;   /* borrowed: has room for the votes of the requests */
    char *out;      /* the output: bytes that the transport has not accepted yet. They contain
                     * tokens, so the memory is wiped before it is freed */
    size_t out_len; /* bytes in `out` */
    size_t out_cap; /* bytes allocated for `out` */
    uint64_t sent;  /* bytes that the transport has accepted on this connection; also the number of
                     * the byte out[0], counted as rl_request.start */
    uint64_t unsent_since_ns;  /* boot clock: when `out` stopped being empty; valid while
                                * out_len > 0 */
    struct rl_request *ring;   /* the requests in flight; NULL: ring_cap is 0 */
    uint32_t ring_cap;         /* elements of `ring`: a power of two, or 0 */
    uint64_t head, tail;       /* indices of the oldest request and of the next one to be appended.
                                * Request i is ring[i % ring_cap] */
    uint64_t first_unreported; /* every request before this index is `reported` */
};

/* Prepares an empty pipeline. Borrows `mem` and `inbox` as long as the pipeline is used. */
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

/* Returns the number of requests in flight. */
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

/* Returns the output: the bytes that the transport has not accepted yet. Valid until the next
 * change of the pipeline. */
static inline struct rl_arg rl_pipeline_output(const struct rl_pipeline *pipe)
{
    return (struct rl_arg){pipe->out, pipe->out_len};
}

/* Returns true if the output has at least RL_UNSENT_MAX bytes. */
static inline bool rl_pipeline_is_full(const struct rl_pipeline *pipe)
{
    return pipe->out_len >= RL_UNSENT_MAX;
}

/* Returns true if a request that was appended at `appended_ns` (boot clock) may still be in the
 * output. */
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

/* Returns true if all bytes of the request were sent and are not among the last `held` bytes that
 * were sent (rl_transport.held). */
static inline bool rl_request_is_whole(const struct rl_pipeline *pipe, const struct rl_request *req,
                                       uint64_t held)
{
    return req->start + req->len + held <= pipe->sent;
}

/* Grows the ring and the output for `requests` more requests with `bytes` bytes in all. Returns
 * false without memory. */
RL_RARE bool rl_pipeline_grow(struct rl_pipeline *pipe, uint64_t requests, size_t bytes);
/* Makes room for `requests` more requests with `bytes` bytes in all, so that appending them does
 * not fail for lack of memory. Returns false without memory. */
static inline bool rl_pipeline_reserve(struct rl_pipeline *pipe, uint64_t requests, size_t bytes)
{
    return (rl_pipeline_count(pipe) + requests <= pipe->ring_cap &&
            pipe->out_len + bytes <= pipe->out_cap) ||
           rl_pipeline_grow(pipe, requests, bytes);
}

/* Appends a copy of `request` and its `len` encoded bytes. Takes a reference to the claim. Returns
 * false without memory; nothing is appended then. */
static inline bool rl_pipeline_push(struct rl_pipeline *pipe, const struct rl_request *request,
                                    const char *bytes, size_t len)
{
    if (!rl_pipeline_reserve(pipe, 1, len))
        return false;
    struct rl_request *slot = rl_pipeline_at(pipe, pipe->tail);
    *slot = *request;
    slot->start = pipe->sent + pipe->out_len;
    slot->len = (uint32_t)len;
    if (slot->claim != NULL)
        rl_claim_ref(slot->claim);
    if (pipe->out_len == 0)
        pipe->unsent_since_ns = request->sent_ns;
    memcpy(pipe->out + pipe->out_len, bytes, len);
    pipe->out_len += len;
    pipe->tail++;
    return true;
}

/* Removes and returns the oldest request; there must be one. Its claim reference passes to the
 * caller. */
static inline struct rl_request rl_pipeline_pop(struct rl_pipeline *pipe)
{
    RL_ASSERT(pipe->head != pipe->tail);
    return *rl_pipeline_at(pipe, pipe->head++);
}

/* Returns the index of the oldest request that is not `reported`; rl_pipeline_end(): there is none.
 * Looks at each request once only, because an unresponsive server can leave thousands of requests
 * that were reported. */
uint64_t rl_pipeline_oldest_unreported(struct rl_pipeline *pipe);

/* Returns enum rl_verb of the request whose reply comes next; RL_VERB_NONE: no reply is due. */
static inline unsigned rl_pipeline_next_verb(const struct rl_pipeline *pipe)
{
    return pipe->head != pipe->tail ? rl_pipeline_oldest(pipe)->verb : RL_VERB_NONE;
}

/* Returns true if a request of `claim` is in flight that can change a key (its verb is not one that
 * only reads). */
bool rl_pipeline_has_change(const struct rl_pipeline *pipe, const struct rl_claim *claim);

/* Returns true if a request of `claim` is in flight that creates a key or resets its TTL. */
bool rl_pipeline_resets_ttl(const struct rl_pipeline *pipe, const struct rl_claim *claim);

/* Returns true if a request whose claim has this token is in flight. */
bool rl_pipeline_uses_token(const struct rl_pipeline *pipe, struct rl_arg token);

/* Returns the number of undos in flight. */
unsigned rl_pipeline_count_undos(const struct rl_pipeline *pipe);
/* Returns true if a request to leave a line is in flight. */
bool rl_pipeline_leaves_line(const struct rl_pipeline *pipe);

/* Drops the first `len` bytes of the output, because the transport has accepted them. */
void rl_pipeline_sent(struct rl_pipeline *pipe, size_t len);

/* Ends the stream of bytes, because the connection is closed. Sets `unsent` of each request, drops
 * the output, and counts the bytes of the next connection from 0. The requests stay until the
 * caller pops them. */
void rl_pipeline_disconnect(struct rl_pipeline *pipe);

/* Removes all requests of `claim` of which no byte was sent, except LINE_LEAVE: drops their bytes
 * and their claim references. Later requests get lower indices. Returns true if an ACQUIRE was
 * among the removed requests: the server has not seen the claim then. */
bool rl_pipeline_cut(struct rl_pipeline *pipe, const struct rl_claim *claim);

/* Returns true if at least one byte of a request that creates a key was sent, but not a complete
 * undo of the same claim after it. An undo among the last `held` bytes that were sent
 * (rl_transport.held) is not complete. Such a connection must be closed abruptly, or the kernel may
 * still deliver the request. */
bool rl_pipeline_has_bare_set(const struct rl_pipeline *pipe, uint64_t held);

/* Returns true if at least one byte of a request that creates a key was sent, and its reply has not
 * come. */
bool rl_pipeline_has_set(const struct rl_pipeline *pipe);

/* Returns how many bytes were sent that the server may not have read yet: all from the first byte
 * of the oldest request without a reply. */
uint64_t rl_pipeline_unread(const struct rl_pipeline *pipe);
/* Returns how many of these bytes, counted from their beginning, reach to the end of the last undo
 * or request to leave a line; 0: none is in flight. */
uint64_t rl_pipeline_unread_undos(const struct rl_pipeline *pipe);

/* Capacities that a pipeline without requests in flight keeps, so that some hundred requests need
 * no allocation. */
#define RL_RING_KEPT 512                /* requests */
#define RL_OUT_KEPT  ((size_t)64 << 10) /* bytes */

/* If no request is in flight, frees a ring and an output buffer that are larger than the kept
 * capacities. */
void rl_pipeline_free_burst(struct rl_pipeline *pipe);
/* Does what rl_pipeline_free_burst() does; costs no call if the capacities are not larger. */
static inline void rl_pipeline_trim(struct rl_pipeline *pipe)
{
    if (pipe->ring_cap > RL_RING_KEPT || pipe->out_cap > RL_OUT_KEPT)
        rl_pipeline_free_burst(pipe);
}

/* Drops all requests with their references, and frees all memory. */
void rl_pipeline_free(struct rl_pipeline *pipe);

#endif
