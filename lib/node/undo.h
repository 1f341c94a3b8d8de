/* SPDX-License-Identifier: MIT
 * The pending undos of one node: keeps each until it can be sent, or until its key has expired.
 *
 * A claim becomes a pending undo if its undo cannot be sent, fails, or gets no reply before the
 * connection ends. A pending undo is removed from the set when it is sent again, or when its key
 * has expired on the server. Until when the key can exist follows from claim->renewed_ns, the
 * longest TTL and the drift. */
#ifndef RL_NODE_UNDO_H
#define RL_NODE_UNDO_H

#include "node/undo_heap.h"

struct rl_node;

/* The undos that wait to be sent to one node. Owner: undo.c. The set is kept from one connection to
 * the next. Invariant: the bit of the node in claim->undo_pending is set exactly for the claims in
 * `heap`. The heap holds a reference to each of these claims. All instants are on the boot clock.
 */
struct rl_undos {
    struct rl_undo_heap heap; /* the pending undos, ordered by when their keys expire */
    uint64_t retry_ns;        /* when pending undos are sent at the earliest, once the connection is
                               * ready; RL_NEVER: no retry is planned */
    uint64_t dropped_until_ns; /* until this instant a key may exist whose undo was dropped for lack
                                * of memory; 0: none. RL_NEVER: not known before the next greeting,
                                * which sets it to max_ttl with drift after itself */
};

/* Prepares an empty set, which must not be moved afterwards. `mem` is borrowed. */
void rl_undos_init(struct rl_undos *undos, const struct rl_mem *mem);

/* Drops all pending undos, sends none of them, and frees their memory. */
void rl_undos_free(struct rl_node *node);

/* Returns true if an undo of this claim is pending on the node with this index. */
static inline bool rl_undos_has(const struct rl_claim *claim, unsigned node)
{
    return (claim->undo_pending & RL_NODE(node)) != 0;
}

/* Returns true if a key may exist at `now_ns` whose undo was dropped for lack of memory. */
static inline bool rl_undos_has_dropped(const struct rl_undos *undos, uint64_t now_ns)
{
    return undos->dropped_until_ns > now_ns;
}

/* Returns true if an undo whose claim has this token is pending. */
bool rl_undos_use_token(const struct rl_undos *undos, struct rl_arg token);

/* Makes room for one pending undo for each request in flight, and for one more, so that
 * rl_undos_add() does not lack memory when the connection ends. Returns false without memory. */
bool rl_undos_reserve(struct rl_node *node);

/* Makes the undo of `claim` pending, with a reference to the claim. Only counts the undo as expired
 * if its key has expired already, and as dropped without memory. Does nothing if it is pending
 * already. */
void rl_undos_add(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns);

/* Makes the undo of `claim` pending, as rl_undos_add(), and plans to send pending undos again in
 * `delay_ns`, unless that is planned earlier. */
void rl_undos_retry(struct rl_node *node, struct rl_claim *claim, uint64_t delay_ns,
                    uint64_t now_ns);

/* Notes that the server will not execute requests of earlier connections for the claim any more:
 * the server has replied since the last greeting, so it executed or dropped them before that
 * greeting. */
void rl_undos_note_read(const struct rl_node *node, struct rl_claim *claim);

/* Returns when the key of the claim has expired on this node (boot clock), even if no undo reaches
 * it; RL_NEVER: not known, because the server may still execute a request that creates the key or
 * resets its TTL. */
uint64_t rl_undos_key_expiry_ns(const struct rl_node *node, struct rl_claim *claim);

/* Computes the expiry times of pending undos again after a connection has ended, because the server
 * may still execute requests that were sent on that connection. */
void rl_undos_review(struct rl_node *node);

/* Sends pending undos on a connection that has become ready, after computing their expiry times
 * again: the server will not execute requests of earlier connections any more. */
void rl_undos_greeted(struct rl_node *node, uint64_t now_ns);

/* Removes the pending undos whose keys have expired from the set. Called in every tick, in any
 * state of the connection. */
void rl_undos_expire(struct rl_node *node, uint64_t now_ns);

/* Sends pending undos if a retry is due and the connection is ready. */
void rl_undos_tick(struct rl_node *node, uint64_t now_ns);

/* Frees the memory of a large set if no undo is pending and no request is in flight. */
void rl_undos_free_unused(struct rl_node *node);
/* Does what rl_undos_free_unused() does; costs no call for a small set. `undos` are those of the
 * node. */
static inline void rl_undos_trim(struct rl_node *node, const struct rl_undos *undos)
{
    if (undos->heap.cap > RL_UNDOS_INLINE)
        rl_undos_free_unused(node);
}

/* Returns when rl_undos_expire() or rl_undos_tick() has something to do (boot clock); RL_NEVER:
 * nothing is planned. */
uint64_t rl_undos_first_due_ns(const struct rl_node *node);
/* Returns what rl_undos_first_due_ns() returns; costs no call if no undo is pending. `undos` are
 * those of the node. */
static inline uint64_t rl_undos_wake_ns(const struct rl_node *node, const struct rl_undos *undos)
{
    return undos->heap.count == 0 ? RL_NEVER : rl_undos_first_due_ns(node);
}

#endif
