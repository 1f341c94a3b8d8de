/* SPDX-License-Identifier: MIT
 * What the nodes of an engine report to the engine, as data. A node writes here and calls no
 * function of an upper floor. The engine owns the inbox and empties it after every call into a node
 * that may have written here (rl_engine_drain()). */
#ifndef RL_NODE_INBOX_H
#define RL_NODE_INBOX_H

#include "core/quorum.h"
#include "core/wire.h"
#include "node/claim.h"

/* The kinds of entries. The engine takes entries of a lower kind first. */
enum rl_inbox_kind {
    RL_INBOX_REPLIED = 0,    /* the vote of the reply that a node has read last */
    RL_INBOX_CHANGED = 1,    /* nodes whose state has changed: whether they can be asked, whether
                              * they are eligible, or why not */
    RL_INBOX_STEPPED = 2,    /* nodes whose server's clock has jumped forward: keys may have expired
                              * there, or will expire early */
    RL_INBOX_VOTES = 3,      /* votes without a reply: after a time limit or a disconnect */
    RL_INBOX_NOTIFIED = 4,   /* the node that was notified of a change of `key` */
    RL_INBOX_UNREAD = 5,     /* nodes for which rl_node_next() must be called */
    RL_INBOX_PUSH_UNREAD = 6 /* nodes for which rl_tracker_next() must be called */
};
#define RL_INBOX_KINDS 7

/* How a pending undo, or one that was sent, has ended. */
enum rl_undo_outcome {
    RL_UNDO_DONE = 0,    /* the server has replied to it */
    RL_UNDO_EXPIRED = 1, /* its key expired before it was confirmed */
    RL_UNDO_DROPPED = 2  /* there was no memory to keep it; its key stays until it expires */
};
#define RL_UNDO_ENDS 3

/* The vote of one request. When it is added, its claim has an owner and its round is not 0. Holds a
 * reference to the claim. */
struct rl_inbox_vote {
    struct rl_claim *claim;
    struct rl_ballot ballot;
};

/* A vote without a reply, as it is stored: the fields of a struct rl_ballot that such a vote can
 * set. The struct is small, because there is room for one per place in all pipelines. Holds a
 * reference to the claim. The fields have the meaning of those of struct rl_ballot. */
struct rl_inbox_unreplied {
    struct rl_claim *claim;
    uint32_t round;
    uint16_t slot;
    uint8_t node, vote, cause, verb;
    bool unsent;
};

/* Entries that the engine has not taken yet. Owner: inbox.c, but for `dirty` and `undos`: nodes
 * write these two, and the engine resets them.
 *
 * No vote is lost for lack of memory: `room` is the number of places in the pipelines of all nodes.
 * A pipeline reserves room before it grows, and a request adds at most one vote without a reply
 * between two calls of rl_engine_drain(). Invariants: taken <= count <= cap, room <= cap. */
struct rl_inbox {
    const struct rl_mem *mem;
    uint32_t waiting; /* bit i is set while an entry of kind i (enum rl_inbox_kind) is
                       * here */
    rl_nodes dirty;   /* nodes for which rl_node_flush() must be called before the tick
                       * ends */
    rl_nodes nodes[RL_INBOX_KINDS]; /* for each kind that is a set of nodes: the nodes */
    struct rl_inbox_vote replied;   /* the entry of kind REPLIED */
    const struct rl_reply *reply; /* the reply of `replied`, valid until the next rl_node_next() of
                                   * any node; NULL: the vote failed */
    struct rl_inbox_unreplied *votes; /* entries of kind VOTES; `cap` elements */
    uint32_t taken, count; /* votes[taken] to votes[count - 1] are here; both 0: none is */
    uint32_t room;         /* votes that the pipelines have reserved room for */
    uint32_t cap;
    struct rl_arg key; /* entry of kind NOTIFIED: the key that has changed; empty: any key may
                        * have changed. Valid until the next rl_tracker_next() of the node */
    uint64_t undos[RL_UNDO_ENDS]; /* undos that have ended since the engine reset the counts, by
                                   * enum rl_undo_outcome */
};

/* Adds a node to the set of `kind`. */
static inline void rl_inbox_note(struct rl_inbox *inbox, enum rl_inbox_kind kind, unsigned node)
{
    inbox->nodes[kind] |= RL_NODE(node);
    inbox->waiting |= 1u << kind;
}

/* Removes a node from the set of `kind`, if it is there. */
static inline void rl_inbox_forget(struct rl_inbox *inbox, enum rl_inbox_kind kind, unsigned node)
{
    inbox->nodes[kind] &= ~RL_NODE(node);
    if (inbox->nodes[kind] == 0)
        inbox->waiting &= ~(1u << kind);
}

/* Returns the lowest node of the set of `kind`, which must not be empty. */
static inline unsigned rl_inbox_first(const struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    return (unsigned)__builtin_ctz(inbox->nodes[kind]);
}

/* Removes the lowest node from the set of `kind`, which must not be empty, and returns it. */
static inline unsigned rl_inbox_take_node(struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    unsigned node = rl_inbox_first(inbox, kind);

    rl_inbox_forget(inbox, kind, node);
    return node;
}

/* Returns true if an entry of `kind` is here, and none of a lower kind. */
static inline bool rl_inbox_is_first(const struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    return (inbox->waiting & ((2u << kind) - 1)) == 1u << kind;
}

/* Adds the vote of a reply. The last one must have been taken. `reply` is NULL if it may become
 * invalid before the vote is taken. Takes a reference to the claim. Returns the ballot, which the
 * caller fills in. */
static inline struct rl_ballot *rl_inbox_add_replied(struct rl_inbox *inbox, struct rl_claim *claim,
                                                     const struct rl_reply *reply)
{
    RL_ASSERT((inbox->waiting & 1u << RL_INBOX_REPLIED) == 0);
    inbox->waiting |= 1u << RL_INBOX_REPLIED;
    inbox->replied.claim = rl_claim_ref(claim);
    inbox->reply = reply;
    return &inbox->replied.ballot;
}

/* Takes the vote of a reply, which must be here. It is valid until the next one is added. Its claim
 * reference passes to the caller. */
static inline const struct rl_inbox_vote *rl_inbox_take_replied(struct rl_inbox *inbox)
{
    inbox->waiting &= ~(1u << RL_INBOX_REPLIED);
    return &inbox->replied;
}

/* Reserves room for `count` more votes without a reply. Returns false without memory. */
bool rl_inbox_reserve(struct rl_inbox *inbox, uint32_t count);
/* Ends the reservation of room for `count` votes, which cannot come any more. */
void rl_inbox_release(struct rl_inbox *inbox, uint32_t count);
/* Adds a vote without a reply, for which room was reserved. Takes a reference to the claim. Fields
 * of the ballot that struct rl_inbox_unreplied does not have must be 0. */
void rl_inbox_add_vote(struct rl_inbox *inbox, struct rl_claim *claim,
                       const struct rl_ballot *ballot);
/* Takes the oldest vote without a reply; there must be one. Its claim reference passes to the
 * caller.
 */
struct rl_inbox_vote rl_inbox_take_vote(struct rl_inbox *inbox);

/* Adds a notification of `node` for `key`, which is borrowed. The last one must have been taken. */
void rl_inbox_add_key(struct rl_inbox *inbox, unsigned node, struct rl_arg key);
/* Takes the notification. Stores its key and returns its node. */
unsigned rl_inbox_take_key(struct rl_inbox *inbox, struct rl_arg *ret_key);

/* Drops all entries with their references, and frees the memory. */
void rl_inbox_free(struct rl_inbox *inbox);

#endif
