/* SPDX-License-Identifier: MIT
 * The pending undos of one node: keeps each until it can be sent, or until its key has expired. */
#ifndef RL_NODE_UNDO_H
#define RL_NODE_UNDO_H

#include "node/undo_heap.h"

struct rl_node;

/* Undos that wait to be sent to one node. Owner: undo.c. They survive connections. The bit of the
 * node in claim->undo_pending is set exactly for the claims in `heap`, each of which holds a
 * reference. All instants are on the boot clock. */
struct rl_undos {
    struct rl_undo_heap heap;
    uint64_t retry_ns;         /* when pending undos are sent if the connection is ready; RL_NEVER:
                                * no retry is planned */
    uint64_t dropped_until_ns; /* until then a key may exist whose undo was dropped for lack of
                                * memory; RL_NEVER: until max_ttl after the next greeting */
};

/* Prepares an empty set. It must not be moved afterwards. */
void rl_undos_init(struct rl_undos *undos, const struct rl_mem *mem);

/* Drops all pending undos, sends none of them, and frees their memory. */
void rl_undos_free(struct rl_node *node);

/* Returns true if an undo of this claim waits to be sent to the node with this index. */
static inline bool rl_undos_has(const struct rl_claim *claim, unsigned node)
{
    return (claim->undo_pending & RL_NODE(node)) != 0;
}

/* Returns true if a key may exist at `now_ns` whose undo was dropped for lack of memory. */
static inline bool rl_undos_has_dropped(const struct rl_undos *undos, uint64_t now_ns)
{
    return undos->dropped_until_ns > now_ns;
}

/* Returns true if an undo with this token waits to be sent. */
bool rl_undos_use_token(const struct rl_undos *undos, struct rl_arg token);

/* Makes room for the undos of all requests in flight, and for one more. Returns false without
 * memory. */
bool rl_undos_reserve(struct rl_node *node);

/* Keeps an undo until it can be sent, or ends it if its key has expired already. Without memory,
 * counts it as dropped. */
void rl_undos_add(struct rl_node *node, struct rl_claim *claim, uint64_t now_ns);

/* As rl_undos_add(). Also makes a retry due in `delay_ns`, unless one is due earlier. */
void rl_undos_retry(struct rl_node *node, struct rl_claim *claim, uint64_t delay_ns,
                    uint64_t now_ns);

/* Notes that the server will not execute requests of earlier connections for the claim any more: it
 * has executed or dropped them at the last greeting at the latest, because it has replied since. */
void rl_undos_note_read(const struct rl_node *node, struct rl_claim *claim);

/* Computes expiry times again after a connection has ended, because the server may still execute
 * what was sent on it. */
void rl_undos_review(struct rl_node *node);

/* Sends pending undos on a connection that has become ready. The server will not execute requests
 * of earlier connections any more. */
void rl_undos_greeted(struct rl_node *node, uint64_t now_ns);

/* Ends undos whose keys have expired. Called on every tick, whatever the connection's state. */
void rl_undos_expire(struct rl_node *node, uint64_t now_ns);

/* Sends pending undos if a retry is due and the connection is ready. */
void rl_undos_tick(struct rl_node *node, uint64_t now_ns);

/* Frees the memory of a large set if it is empty and no request is in flight. */
void rl_undos_free_unused(struct rl_node *node);
/* As rl_undos_free_unused(), without a call for a small set. `undos` are those of the node. */
static inline void rl_undos_trim(struct rl_node *node, const struct rl_undos *undos)
{
    if (undos->heap.cap > RL_UNDOS_INLINE)
        rl_undos_free_unused(node);
}

/* Returns when rl_undos_expire() or rl_undos_tick() has something to do on the boot clock;
 * RL_NEVER: neither has. */
uint64_t rl_undos_first_due_ns(const struct rl_node *node);
/* As rl_undos_first_due_ns(), without a call if no undo is pending. `undos` are those of the node.
 */
static inline uint64_t rl_undos_wake_ns(const struct rl_node *node, const struct rl_undos *undos)
{
    return undos->heap.count == 0 ? RL_NEVER : rl_undos_first_due_ns(node);
}

#endif
