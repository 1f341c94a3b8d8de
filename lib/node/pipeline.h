/* SPDX-License-Identifier: MIT
 * The two ends of one connection: bytes that wait to be sent, and requests that wait for their
 * answers, in the order in which both are due.
 *
 * Places in the stream are counted from the start of the connection, so that it is known of every
 * request whether it was sent in full, in part or not at all. An answered request leaves at the
 * head; a request whose answer nobody waits for any more stays as a tombstone, so that a late
 * answer is never read as the answer to a later question. */
#ifndef RL_NODE_PIPELINE_H
#define RL_NODE_PIPELINE_H

#include "node/claim.h"
#include "node/inbox.h"

struct rl_request {
    struct rl_claim *claim; /* NULL: a probe or a heartbeat */
    uint64_t start;         /* place of its first byte in the stream */
    uint64_t sent_ns;       /* boot time at which the clock of its answer started */
    uint32_t len;
    uint32_t round; /* 0: nobody counts the answer */
    uint8_t verb;   /* enum rl_verb */
    uint8_t form;   /* enum rl_form; of INFO: which section */
    bool suspected; /* its owner knows that the answer may not come */
    bool reported;  /* its vote was given already (time-out): tombstone */
    bool unsent;    /* at the close: no byte of it had been sent */
    bool removed;   /* taken out of the stream before a byte of it was sent, or over */
};

struct rl_pipeline {
    const struct rl_mem *mem;
    struct rl_inbox *inbox; /* has room for a vote for each place of the ring */
    char *out;              /* bytes not taken by the transport yet */
    size_t out_len, out_cap;
    uint64_t sent;            /* bytes taken so far: place of out[0] */
    uint64_t unsent_since_ns; /* boot time at which `out` stopped being empty */
    struct rl_request *ring;
    uint32_t ring_cap;         /* a power of two, or 0 */
    uint64_t head, tail;       /* request i is ring[i % ring_cap] */
    uint64_t first_unreported; /* those between head and this one are waited for by nobody */
};

static inline uint64_t rl_pipeline_count(const struct rl_pipeline *pipe)
{
    return pipe->tail - pipe->head;
}

static inline struct rl_request *rl_pipeline_at(const struct rl_pipeline *pipe, uint64_t index)
{
    return &pipe->ring[index & (pipe->ring_cap - 1)];
}

static inline bool rl_request_is_unsent(const struct rl_pipeline *pipe,
                                        const struct rl_request *req)
{
    return req->start >= pipe->sent;
}

static inline bool rl_request_is_whole(const struct rl_pipeline *pipe, const struct rl_request *req)
{
    return req->start + req->len <= pipe->sent;
}

/* Makes room for one more request of `bytes` bytes and for its undo, so that taking back what is
 * asked now will not fail for want of memory. false: no memory. */
bool rl_pipeline_reserve(struct rl_pipeline *pipe, size_t bytes, size_t undo_bytes);

/* Appends a request and its bytes. Takes a reference to the claim. false: no memory. */
bool rl_pipeline_push(struct rl_pipeline *pipe, const struct rl_request *request, const char *bytes,
                      size_t len);

/* Takes the request at the head out; its claim reference passes to the caller. */
struct rl_request rl_pipeline_pop(struct rl_pipeline *pipe);

/* The oldest request with a vote that was not given yet; `tail`: there is none. A server that is
 * silent leaves tombstones by the thousands; they are passed over once, not in each turn. */
uint64_t rl_pipeline_oldest_unreported(struct rl_pipeline *pipe);

/* Skips requests that were removed from the stream. */
static inline void rl_pipeline_drop_removed(struct rl_pipeline *pipe)
{
    while (pipe->head != pipe->tail && rl_pipeline_at(pipe, pipe->head)->removed)
        pipe->head++;
}

/* The transport took `len` bytes. */
void rl_pipeline_sent(struct rl_pipeline *pipe, size_t len);

/* Removes all requests of `claim` of which no byte was sent. true: an acquire SET was among them,
 * that is, this node never heard of the claim. */
bool rl_pipeline_cut(struct rl_pipeline *pipe, const struct rl_claim *claim);

/* The kernel holds a SET without its whole undo behind it: the connection must not be closed
 * gracefully, or the SET may be delivered after all. */
bool rl_pipeline_has_bare_set(const struct rl_pipeline *pipe);

/* The kernel holds a SET that was not answered. */
bool rl_pipeline_has_set(const struct rl_pipeline *pipe);

/* Bytes that were sent and may not have been read yet: nothing behind them was answered. */
uint64_t rl_pipeline_unread(const struct rl_pipeline *pipe);

/* So much is kept: a few hundred locks in flight shall not allocate anew each time. */
#define RL_RING_KEPT 512
#define RL_OUT_KEPT  ((size_t)64 << 10)

/* Gives the memory of a burst back when nothing is under way any more. */
void rl_pipeline_free_burst(struct rl_pipeline *pipe);
static inline void rl_pipeline_trim(struct rl_pipeline *pipe)
{
    if (pipe->ring_cap > RL_RING_KEPT || pipe->out_cap > RL_OUT_KEPT)
        rl_pipeline_free_burst(pipe);
}

void rl_pipeline_free(struct rl_pipeline *pipe);

#endif
