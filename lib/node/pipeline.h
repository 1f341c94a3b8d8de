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

/* Unsent bytes from which on a pipeline is full: no further request should be appended. */
#define RL_UNSENT_MAX ((size_t)1 << 20)

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

/* Returns the index behind the newest request: that of the next one to be appended. */
static inline uint64_t rl_pipeline_end(const struct rl_pipeline *pipe)
{
    return pipe->tail;
}

static inline uint64_t rl_pipeline_count(const struct rl_pipeline *pipe)
{
    return pipe->tail - pipe->head;
}

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

/* Returns enum rl_verb of the request whose reply comes next; RL_VERB_NONE: no reply is due. */
unsigned rl_pipeline_next_verb(const struct rl_pipeline *pipe);

/* Returns true if a request of `claim` is in flight that does more than read. */
bool rl_pipeline_has_change(const struct rl_pipeline *pipe, const struct rl_claim *claim);

/* Returns true if a request with this token is in flight. */
bool rl_pipeline_uses_token(const struct rl_pipeline *pipe, struct rl_arg token);

/* Returns the number of undos in flight. */
unsigned rl_pipeline_count_undos(const struct rl_pipeline *pipe);

/* Skips requests that were removed from the stream. */
static inline void rl_pipeline_drop_removed(struct rl_pipeline *pipe)
{
    while (pipe->head != pipe->tail && rl_pipeline_at(pipe, pipe->head)->removed)
        pipe->head++;
}

/* The transport took `len` bytes. */
void rl_pipeline_sent(struct rl_pipeline *pipe, size_t len);

/* Ends the stream of a connection that is closed. Sets `unsent` of each request, drops the bytes
 * that were not sent, and counts places from 0 again. The requests stay until they are popped. */
void rl_pipeline_disconnect(struct rl_pipeline *pipe);

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
