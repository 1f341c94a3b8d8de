/* SPDX-License-Identifier: MIT
 * What the nodes of a client report to the floor above them, as data. A node writes here and calls
 * nothing above itself. The engine owns the inbox and empties it after every call into a node that
 * may have written here (rl_engine_drain()).
 *
 * No vote is lost for want of memory: there is always room for one vote without a reply for each
 * place in the pipelines of all nodes. A pipeline reserves it before it grows (pipeline.c), and
 * between two calls of rl_engine_drain() a request gives at most one such vote. */
#ifndef RL_NODE_INBOX_H
#define RL_NODE_INBOX_H

#include "core/quorum.h"
#include "core/wire.h"
#include "node/claim.h"

/* What may wait, in the order in which it is taken: that in which a node finds it out. */
enum rl_inbox_kind {
    RL_INBOX_REPLIED = 0,    /* the vote of the reply that was taken last */
    RL_INBOX_CHANGED = 1,    /* nodes: whether they may be asked, may vote, or why not */
    RL_INBOX_STEPPED = 2,    /* nodes whose clock jumped ahead: keys may expire early, or be gone */
    RL_INBOX_VOTES = 3,      /* votes without a reply: time limits and ends of connections */
    RL_INBOX_NOTIFIED = 4,   /* the node on which `key` changed */
    RL_INBOX_UNREAD = 5,     /* nodes with something to do next: rl_node_next() */
    RL_INBOX_PUSH_UNREAD = 6 /* the same of their second connections: rl_tracker_next() */
};
#define RL_INBOX_KINDS 7

/* What became of an undo. */
enum rl_undo_outcome {
    RL_UNDO_DONE = 0,
    RL_UNDO_EXPIRED = 1, /* its key expired before the node executed it */
    RL_UNDO_DROPPED = 2  /* there was no memory to keep it: its key stays until it expires */
};
#define RL_UNDO_ENDS 3

/* The outcome of a request whose claim had an owner, and whose round was not 0, when it was
 * written. The claim is referenced. */
struct rl_inbox_vote {
    struct rl_claim *claim;
    struct rl_ballot ballot;
};

/* A vote without a reply while it waits: what such a vote can say of a struct rl_ballot. There is
 * room for one for each place of all pipelines, so the struct is small. The claim is referenced. */
struct rl_inbox_unreplied {
    struct rl_claim *claim;
    uint32_t round;
    uint16_t slot;
    uint8_t node, vote, cause, verb;
    bool unsent;
};

struct rl_inbox {
    const struct rl_mem *mem;
    uint32_t waiting;               /* a bit for each enum rl_inbox_kind of which something waits */
    rl_nodes dirty;                 /* have bytes to send: rl_node_flush() before the tick ends */
    rl_nodes nodes[RL_INBOX_KINDS]; /* by kind, of those that are sets of nodes */
    struct rl_inbox_vote replied;
    const struct rl_reply *reply; /* of `replied`, valid until the next rl_node_next() of any node;
                                   * NULL if the vote failed */
    struct rl_inbox_unreplied *votes;
    uint32_t taken, count;        /* votes[taken] to votes[count - 1] wait; both 0: none does */
    uint32_t room;                /* votes that the pipelines have reserved room for */
    uint32_t cap;                 /* length of the list: `room` at least */
    struct rl_arg key;            /* empty: any may have changed; valid until the next
                                   * rl_tracker_next() of the node */
    uint64_t undos[RL_UNDO_ENDS]; /* ended since they were counted last, by enum rl_undo_outcome */
};

/* Adds a node to a set. */
static inline void rl_inbox_note(struct rl_inbox *inbox, enum rl_inbox_kind kind, unsigned node)
{
    inbox->nodes[kind] |= RL_NODE(node);
    inbox->waiting |= 1u << kind;
}

/* Removes a node from a set. */
static inline void rl_inbox_forget(struct rl_inbox *inbox, enum rl_inbox_kind kind, unsigned node)
{
    inbox->nodes[kind] &= ~RL_NODE(node);
    if (inbox->nodes[kind] == 0)
        inbox->waiting &= ~(1u << kind);
}

/* The first node of a set that is not empty. */
static inline unsigned rl_inbox_first(const struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    return (unsigned)__builtin_ctz(inbox->nodes[kind]);
}

/* Takes that node out. */
static inline unsigned rl_inbox_take_node(struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    unsigned node = rl_inbox_first(inbox, kind);

    rl_inbox_forget(inbox, kind, node);
    return node;
}

/* True if something of this kind waits, and nothing that is taken before it. */
static inline bool rl_inbox_is_first(const struct rl_inbox *inbox, enum rl_inbox_kind kind)
{
    return (inbox->waiting & ((2u << kind) - 1)) == 1u << kind;
}

/* Adds the vote of a reply, which is NULL if it must not be looked at; the last one was taken.
 * Takes a reference to the claim. The caller fills the ballot that is returned. */
static inline struct rl_ballot *rl_inbox_add_replied(struct rl_inbox *inbox, struct rl_claim *claim,
                                                     const struct rl_reply *reply)
{
    RL_ASSERT((inbox->waiting & 1u << RL_INBOX_REPLIED) == 0);
    inbox->waiting |= 1u << RL_INBOX_REPLIED;
    inbox->replied.claim = rl_claim_ref(claim);
    inbox->reply = reply;
    return &inbox->replied.ballot;
}

/* Takes the vote of a reply: it stays as it is until the next one is added, and its claim reference
 * passes to the caller. */
static inline const struct rl_inbox_vote *rl_inbox_take_replied(struct rl_inbox *inbox)
{
    inbox->waiting &= ~(1u << RL_INBOX_REPLIED);
    return &inbox->replied;
}

/* Makes room for `count` more votes without a reply. false: no memory. */
bool rl_inbox_reserve(struct rl_inbox *inbox, uint32_t count);
/* Gives up room for `count` votes that cannot come any more. */
void rl_inbox_release(struct rl_inbox *inbox, uint32_t count);
/* Adds a vote without a reply; its room was reserved. Takes a reference to the claim. Keeps of the
 * ballot what struct rl_inbox_unreplied has a field for; all else in it is 0. */
void rl_inbox_add_vote(struct rl_inbox *inbox, struct rl_claim *claim,
                       const struct rl_ballot *ballot);
/* Takes the first vote without a reply, of which there is one. Its claim reference passes to the
 * caller. */
struct rl_inbox_vote rl_inbox_take_vote(struct rl_inbox *inbox);

/* Adds a notification; the last one was taken. */
void rl_inbox_add_key(struct rl_inbox *inbox, unsigned node, struct rl_arg key);
/* Takes it; returns the node. */
unsigned rl_inbox_take_key(struct rl_inbox *inbox, struct rl_arg *ret_key);

/* Drops what was not taken, and frees the memory. */
void rl_inbox_free(struct rl_inbox *inbox);

#endif
