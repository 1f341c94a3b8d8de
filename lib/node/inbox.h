/* SPDX-License-Identifier: MIT
 * What the nodes of an engine report to the engine, as data. A node adds an entry to the inbox, and
 * calls no function of an upper layer. The engine has one inbox for all nodes, and takes all
 * entries out of it (rl_engine_drain()) after every call into a node that may have added one. */
#ifndef RL_NODE_INBOX_H
#define RL_NODE_INBOX_H

#include "core/quorum.h"
#include "core/wire.h"
#include "node/claim.h"

/* The kinds of entries. The engine takes entries of a lower kind first. REPLIED is at most one
 * vote, VOTES is a list of votes, and the other kinds are sets of nodes. */
enum rl_inbox_kind {
    RL_INBOX_REPLIED = 0,    /* the vote of the reply that was read last */
    RL_INBOX_CHANGED = 1,    /* nodes whose state has changed: whether requests can be sent to
                              * the node, whether it is eligible, or the cause why not */
    RL_INBOX_STEPPED = 2,    /* nodes whose server's clock has jumped forward: keys may have expired
                              * there, or will expire early */
    RL_INBOX_VOTES = 3,      /* votes without a reply: after a time limit or a disconnect */
    RL_INBOX_NOTIFIED = 4,   /* one node, whose server has notified a change of rl_inbox.key */
    RL_INBOX_UNREAD = 5,     /* nodes for which rl_node_next() must be called */
    RL_INBOX_PUSH_UNREAD = 6 /* nodes for which rl_tracker_next() must be called */
};
#define RL_INBOX_KINDS 7 /* number of kinds */

/* How a pending undo, or one that was sent, has ended. */
enum rl_undo_outcome {
    RL_UNDO_DONE = 0,    /* the server has replied to the undo */
    RL_UNDO_EXPIRED = 1, /* the key expired before the undo was confirmed */
    RL_UNDO_DROPPED = 2  /* there was no memory to keep the undo; the key stays until it expires */
};
#define RL_UNDO_ENDS 3 /* number of outcomes */

/* The vote of one request, as the engine takes it. Holds a reference to the claim. When a vote is
 * added, its claim has an owner and its round is not 0. */
struct rl_inbox_vote {
    struct rl_claim *claim;  /* what the request was about */
    struct rl_ballot ballot; /* the vote */
};

/* A vote without a reply, as it is stored: the fields of a struct rl_ballot that such a vote can
 * set. The struct is small, because the inbox has room for one per element of all pipelines'
 * rings. Holds a reference to the claim. */
struct rl_inbox_unreplied {
    struct rl_claim *claim; /* what the request was about */
    uint32_t round;         /* number of the round that the vote belongs to; not 0 */
    uint16_t slot;          /* semaphore: number of the slot that the request was about */
    uint8_t node;           /* index of the node */
    uint8_t vote;           /* enum rl_vote: FAILED or SUSPECT */
    uint8_t cause;          /* enum redlock_cause: why there is no reply */
    uint8_t verb;           /* enum rl_verb of the request */
    bool unsent;            /* no byte of the request was sent */
};

/* The entries that the engine has not taken yet. Owner: inbox.c, except for `dirty` and `undos`:
 * the files of a node change these two fields, and the engine resets them.
 *
 * No vote is lost for lack of memory: `room` is the number of elements of the rings of all
 * pipelines. A pipeline reserves room before its ring grows, and a request adds at most one vote
 * without a reply between two calls of rl_engine_drain(). Invariants: taken <= count <= cap, room
 * <= cap. */
struct rl_inbox {
    const struct rl_mem *mem; /* borrowed: allocates `votes` */
    uint32_t waiting;         /* set of kinds: bit i is set while an entry of kind i (enum
                               * rl_inbox_kind) is in the inbox */
    rl_nodes dirty;           /* nodes for which rl_node_flush() must be called before the tick
                               * ends */
    rl_nodes nodes[RL_INBOX_KINDS]; /* indexed by kind: the set, for kinds that are sets of nodes */
    struct rl_inbox_vote replied; /* entry of kind REPLIED; valid while that kind is in `waiting` */
    const struct rl_reply *reply; /* the reply of `replied`, valid until the next rl_node_next() of
                                   * any node; NULL: the vote failed */
    struct rl_inbox_unreplied *votes; /* entries of kind VOTES; `cap` elements */
    uint32_t taken, count; /* votes[taken] to votes[count - 1] are in the inbox. Both are 0 if there
                            * are none */
    uint32_t room;         /* number of votes that the pipelines have reserved room for */
    uint32_t cap;          /* elements of `votes` */
    struct rl_arg key;     /* entry of kind NOTIFIED: the key that has changed; empty: any key may
                            * have changed. Valid until the next rl_tracker_next() of the node */
    bool is_turn;          /* the same entry: not a change, but this client's turn in a line */
    uint64_t undos[RL_UNDO_ENDS]; /* undos that have ended since the engine reset the counts, by
                                   * enum rl_undo_outcome */
};

/* Adds the node with index `node` to the set of `kind`. */
static inline void rl_inbox_note(struct rl_inbox *inbox, enum rl_inbox_kind kind, unsigned node)
{
    inbox->nodes[kind] |= RL_NODE(node);
    inbox->waiting |= 1u << kind;
}

/* Removes the node with index `node` from the set of `kind`, if it is in the set. */
static inline void rl_inbox_forget(struct rl_inbox *inbox, enum rl_inbox_kind kind, unsigned node)
{
    inbox->nodes[kind] &= ~RL_NODE(node);
    if (inbox->nodes[kind] == 0)
        inbox->waiting &= ~(1u << kind);
}

/* Returns the lowest index of a node in the set of `kind`, which must not be empty. */
static inline unsigned rl_inbox_first(const struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    return (unsigned)__builtin_ctz(inbox->nodes[kind]);
}

/* Removes the node with the lowest index from the set of `kind`, which must not be empty. Returns
 * that index. */
static inline unsigned rl_inbox_take_node(struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    unsigned node = rl_inbox_first(inbox, kind);

    rl_inbox_forget(inbox, kind, node);
    return node;
}

/* Returns true if an entry of `kind` is in the inbox, and none of a lower kind. */
static inline bool rl_inbox_is_first(const struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    return (inbox->waiting & ((2u << kind) - 1)) == 1u << kind;
}

/* Adds the vote of a reply, as the entry of kind REPLIED; the entry before must have been taken.
 * `reply` (borrowed) is the reply, or NULL if it may become invalid before the vote is taken. Takes
 * a reference to the claim. Returns the ballot, which the caller fills in. */
static inline struct rl_ballot *rl_inbox_add_replied(struct rl_inbox *inbox, struct rl_claim *claim,
                                                     const struct rl_reply *reply)
{
    RL_ASSERT((inbox->waiting & 1u << RL_INBOX_REPLIED) == 0);
    inbox->waiting |= 1u << RL_INBOX_REPLIED;
    inbox->replied.claim = rl_claim_ref(claim);
    inbox->reply = reply;
    return &inbox->replied.ballot;
}

/* Removes and returns the entry of kind REPLIED; there must be one. It is valid until the next one
 * is added. Its claim reference passes to the caller. */
static inline const struct rl_inbox_vote *rl_inbox_take_replied(struct rl_inbox *inbox)
{
    inbox->waiting &= ~(1u << RL_INBOX_REPLIED);
    return &inbox->replied;
}

/* Reserves room for `count` more votes without a reply. Returns false without memory. */
bool rl_inbox_reserve(struct rl_inbox *inbox, uint32_t count);
/* Ends the reservation of room for `count` votes, and frees memory if no vote is in the inbox. */
void rl_inbox_release(struct rl_inbox *inbox, uint32_t count);
/* Adds a vote without a reply to the entries of kind VOTES; room for it must have been reserved.
 * Takes a reference to the claim. Fields of the ballot that struct rl_inbox_unreplied does not have
 * must be 0. */
void rl_inbox_add_vote(struct rl_inbox *inbox, struct rl_claim *claim,
                       const struct rl_ballot *ballot);
/* Removes and returns the oldest entry of kind VOTES; there must be one. Its claim reference passes
 * to the caller. */
struct rl_inbox_vote rl_inbox_take_vote(struct rl_inbox *inbox);

/* Adds the entry of kind NOTIFIED: the server of the node with index `node` has notified a change
 * of `key` (borrowed; empty: any key may have changed). The entry before must have been taken. */
void rl_inbox_add_key(struct rl_inbox *inbox, unsigned node, struct rl_arg key);
/* Removes the entry of kind NOTIFIED; there must be one. Stores its key in `*ret_key`, and returns
 * the index of its node. */
unsigned rl_inbox_take_key(struct rl_inbox *inbox, struct rl_arg *ret_key);
/* Adds the entry of kind NOTIFIED as rl_inbox_add_key(): it is this client's turn in the line of
 * the resource with this key. rl_inbox.is_turn is then true until the entry is taken. */
void rl_inbox_add_turn(struct rl_inbox *inbox, unsigned node, struct rl_arg key);

/* Drops all entries with their claim references, and frees the memory. */
void rl_inbox_free(struct rl_inbox *inbox);

#endif
