/* SPDX-License-Identifier: MIT
 * Stores the requests in a ring and the output in a buffer. Both grow by doubling. A pipeline
 * without requests in flight frees what only a burst of requests needed.
 *
 * The bytes of a connection are numbered from 0. rl_pipeline.sent is the number of the first byte
 * of the output, rl_request.start that of the first byte of a request. So a request with start >=
 * sent is still in the output as a whole. */
#include "node/pipeline.h"

#define RING_MIN 32   /* requests that the first ring holds */
#define OUT_MIN  4096 /* bytes that the first output buffer holds */

/* Grows the ring to at least `needed` requests, and reserves room in the inbox for their votes.
 * Returns false without memory; the pipeline is unchanged then. */
static bool grow_ring(struct rl_pipeline *pipe, uint64_t needed)
{
    uint32_t cap = pipe->ring_cap != 0 ? pipe->ring_cap : RING_MIN;

    while (cap < needed)
        cap *= 2;
    uint32_t more = cap - pipe->ring_cap;
    if (!rl_inbox_reserve(pipe->inbox, more))
        return false;
    struct rl_request *ring = rl_realloc_array(pipe->mem, NULL, cap, sizeof *ring);
    if (ring == NULL) {
        rl_inbox_release(pipe->inbox, more);
        return false;
    }
    for (uint64_t i = pipe->head; i != pipe->tail; i++)
        ring[i & (cap - 1)] = *rl_pipeline_at(pipe, i);
    rl_free(pipe->mem, pipe->ring);
    pipe->ring = ring;
    pipe->ring_cap = cap;
    return true;
}

/* Grows the output buffer to at least `needed` bytes. Returns false without memory; the pipeline is
 * unchanged then. Allocates and copies, so that the old buffer with its tokens can be wiped. */
static bool grow_out(struct rl_pipeline *pipe, size_t needed)
{
    size_t cap = pipe->out_cap != 0 ? pipe->out_cap : OUT_MIN;

    while (cap < needed)
        cap *= 2;
    char *out = rl_realloc_array(pipe->mem, NULL, cap, 1);
    if (out == NULL)
        return false;
    if (pipe->out_len != 0)
        memcpy(out, pipe->out, pipe->out_len);
    rl_free_wiped(pipe->mem, pipe->out, pipe->out_cap);
    pipe->out = out;
    pipe->out_cap = cap;
    return true;
}

/* Grows the ring and the output for `requests` more requests with `bytes` bytes in all. Returns
 * false without memory. */
bool rl_pipeline_grow(struct rl_pipeline *pipe, uint64_t requests, size_t bytes)
{
    uint64_t slots = rl_pipeline_count(pipe) + requests;

    return (slots <= pipe->ring_cap || grow_ring(pipe, slots)) &&
           (pipe->out_len + bytes <= pipe->out_cap || grow_out(pipe, pipe->out_len + bytes));
}

/* Returns the index of the oldest request that is not `reported`; rl_pipeline_end(): there is none.
 */
uint64_t rl_pipeline_oldest_unreported(struct rl_pipeline *pipe)
{
    /* `reported` is never reset, so earlier requests need no second look. */
    if (pipe->first_unreported < pipe->head)
        pipe->first_unreported = pipe->head;
    while (pipe->first_unreported != pipe->tail &&
           rl_pipeline_at(pipe, pipe->first_unreported)->reported)
        pipe->first_unreported++;
    return pipe->first_unreported;
}

/* Returns true if a request of `claim` is in flight that can change a key. */
bool rl_pipeline_has_change(const struct rl_pipeline *pipe, const struct rl_claim *claim)
{
    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        const struct rl_request *request = rl_pipeline_at(pipe, i);
        if (request->claim == claim && !rl_protocol[request->verb].only_reads)
            return true;
    }
    return false;
}

/* Returns true if a request of `claim` is in flight that creates a key or resets its TTL. */
bool rl_pipeline_resets_ttl(const struct rl_pipeline *pipe, const struct rl_claim *claim)
{
    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        const struct rl_request *request = rl_pipeline_at(pipe, i);
        if (request->claim == claim && rl_protocol[request->verb].resets_ttl)
            return true;
    }
    return false;
}

/* Returns true if a request whose claim has this token is in flight. */
bool rl_pipeline_uses_token(const struct rl_pipeline *pipe, struct rl_arg token)
{
    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        const struct rl_request *request = rl_pipeline_at(pipe, i);
        if (request->claim != NULL && rl_claim_has_token(request->claim, token))
            return true;
    }
    return false;
}

/* Returns the number of undos in flight. */
unsigned rl_pipeline_count_undos(const struct rl_pipeline *pipe)
{
    unsigned count = 0;

    for (uint64_t i = pipe->head; i != pipe->tail; i++)
        count += rl_protocol[rl_pipeline_at(pipe, i)->verb].is_undo;
    return count;
}

/* Returns true if a request to leave a line is in flight. */
bool rl_pipeline_leaves_line(const struct rl_pipeline *pipe)
{
    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        if (rl_pipeline_at(pipe, i)->verb == RL_VERB_LINE_LEAVE)
            return true;
    }
    return false;
}

/* Drops the first `len` bytes of the output, because the transport has accepted them. */
void rl_pipeline_sent(struct rl_pipeline *pipe, size_t len)
{
    RL_ASSERT(len <= pipe->out_len);
    pipe->out_len -= len;
    pipe->sent += len;
    if (pipe->out_len != 0)
        memmove(pipe->out, pipe->out + len, pipe->out_len);
}

/* Ends the stream of bytes of a closed connection: sets `unsent` of each request and drops the
 * output. The requests stay. */
void rl_pipeline_disconnect(struct rl_pipeline *pipe)
{
    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        struct rl_request *request = rl_pipeline_at(pipe, i);
        request->unsent = rl_request_is_unsent(pipe, request);
    }
    pipe->out_len = 0;
    pipe->sent = 0;
}

/* Removes all requests of `claim` of which no byte was sent, and closes the gaps in the ring and in
 * the output. Keeps LINE_LEAVE, because without it the client stays in the line. Returns true if an
 * ACQUIRE was among the removed requests. */
bool rl_pipeline_cut(struct rl_pipeline *pipe, const struct rl_claim *claim)
{
    bool cut_acquire = false;
    uint64_t removed = 0, removed_reported = 0, removed_len = 0;

    if (pipe->out_len == 0)
        return false;
    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        struct rl_request *request = rl_pipeline_at(pipe, i);
        bool unsent = rl_request_is_unsent(pipe, request);
        request->start -= unsent ? removed_len : 0;
        if (!unsent || request->claim != claim || request->verb == RL_VERB_LINE_LEAVE) {
            if (removed != 0)
                *rl_pipeline_at(pipe, i - removed) = *request;
            continue;
        }
        size_t at = (size_t)(request->start - pipe->sent);
        size_t rest = pipe->out_len - at - request->len;
        memmove(pipe->out + at, pipe->out + at + request->len, rest);
        pipe->out_len -= request->len;
        removed++;
        removed_reported += i < pipe->first_unreported;
        removed_len += request->len;
        cut_acquire |= request->verb == RL_VERB_ACQUIRE;
        rl_claim_drop(request->claim);
    }
    pipe->tail -= removed;
    pipe->first_unreported -= removed_reported;
    return cut_acquire;
}

/* Returns true if at least one byte of a request that creates a key was sent, and its reply has not
 * come. */
bool rl_pipeline_has_set(const struct rl_pipeline *pipe)
{
    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        const struct rl_request *request = rl_pipeline_at(pipe, i);
        if (request->claim != NULL && rl_protocol[request->verb].creates_key &&
            !rl_request_is_unsent(pipe, request))
            return true;
    }
    return false;
}

/* Returns how many bytes were sent that the server may not have read yet: all from the first byte
 * of the oldest request without a reply. */
uint64_t rl_pipeline_unread(const struct rl_pipeline *pipe)
{
    if (pipe->head == pipe->tail)
        return 0;
    return rl_sub_sat(pipe->sent, rl_pipeline_oldest(pipe)->start);
}

/* Returns how many bytes there are from the first byte of the oldest request without a reply to the
 * end of the last undo or request to leave a line. */
uint64_t rl_pipeline_unread_undos(const struct rl_pipeline *pipe)
{
    for (uint64_t i = pipe->tail; i != pipe->head; i--) {
        const struct rl_request *request = rl_pipeline_at(pipe, i - 1);
        if (rl_protocol[request->verb].is_undo || request->verb == RL_VERB_LINE_LEAVE)
            return request->start + request->len - rl_pipeline_oldest(pipe)->start;
    }
    return 0;
}

/* Returns true if at least one byte of a request that creates a key was sent, but not a complete
 * undo of the same claim after it. The last `held` bytes complete no undo. */
bool rl_pipeline_has_bare_set(const struct rl_pipeline *pipe, uint64_t held)
{
    bool bare = false;

    for (uint64_t i = pipe->head; i != pipe->tail; i++) {
        struct rl_request *request = rl_pipeline_at(pipe, i);
        if (request->claim != NULL)
            request->claim->undo_found = false;
    }
    /* From the newest request to the oldest, so that an undo is found before its SET. */
    for (uint64_t i = pipe->tail; i != pipe->head; i--) {
        struct rl_request *request = rl_pipeline_at(pipe, i - 1);
        if (request->claim == NULL || rl_request_is_unsent(pipe, request))
            continue;
        if (rl_protocol[request->verb].is_undo && rl_request_is_whole(pipe, request, held))
            request->claim->undo_found = true;
        else if (rl_protocol[request->verb].creates_key)
            bare |= !request->claim->undo_found;
    }
    return bare;
}

/* Frees the ring, in which no request may be, and ends the reservation of its room in the inbox. */
static void free_ring(struct rl_pipeline *pipe)
{
    rl_inbox_release(pipe->inbox, pipe->ring_cap);
    rl_free(pipe->mem, pipe->ring);
    pipe->ring = NULL;
    pipe->ring_cap = 0;
}

/* If no request is in flight, frees a ring and an output buffer that are larger than the kept
 * capacities. */
void rl_pipeline_free_burst(struct rl_pipeline *pipe)
{
    if (pipe->head != pipe->tail)
        return;
    if (pipe->ring_cap > RL_RING_KEPT)
        free_ring(pipe);
    if (pipe->out_len == 0 && pipe->out_cap > RL_OUT_KEPT) {
        rl_free_wiped(pipe->mem, pipe->out, pipe->out_cap);
        pipe->out = NULL;
        pipe->out_cap = 0;
    }
}

/* Drops all requests with their claim references, and frees all memory. */
void rl_pipeline_free(struct rl_pipeline *pipe)
{
    while (pipe->head != pipe->tail)
        rl_claim_drop(rl_pipeline_pop(pipe).claim);
    rl_free_wiped(pipe->mem, pipe->out, pipe->out_cap);
    free_ring(pipe);
    pipe->out = NULL;
    pipe->out_len = pipe->out_cap = 0;
}
