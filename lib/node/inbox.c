/* SPDX-License-Identifier: MIT
 * Keeps what the nodes report, above all the list of votes without a reply. Its memory grows when a
 * pipeline grows; votes are taken from its front. */
#include "node/inbox.h"

#include <string.h>

/* Reallocates the list of votes for `cap` votes, which is at least inbox->count. Returns false
 * without memory; the list is unchanged then. */
static bool resize(struct rl_inbox *inbox, uint32_t cap)
{
    struct rl_inbox_unreplied *votes = rl_realloc_array(inbox->mem, NULL, cap, sizeof *votes);

    if (votes == NULL)
        return false;
    if (inbox->count != 0)
        memcpy(votes, inbox->votes, inbox->count * sizeof *votes);
    rl_free(inbox->mem, inbox->votes);
    inbox->votes = votes;
    inbox->cap = cap;
    return true;
}

/* Reserves room for `count` more votes without a reply. Returns false without memory. */
bool rl_inbox_reserve(struct rl_inbox *inbox, uint32_t count)
{
    uint32_t room = inbox->room + count;

    if (room > inbox->cap && !resize(inbox, room))
        return false;
    inbox->room = room;
    return true;
}

/* Ends the reservation of room for `count` votes. Shrinks the list if no vote is in it; keeps the
 * larger list without memory. */
void rl_inbox_release(struct rl_inbox *inbox, uint32_t count)
{
    RL_ASSERT(count <= inbox->room);
    inbox->room -= count;
    if (inbox->count == 0 && inbox->room != 0 && inbox->room < inbox->cap)
        (void)resize(inbox, inbox->room);
}

/* Adds a vote without a reply to the list, with a reference to its claim. */
void rl_inbox_add_vote(struct rl_inbox *inbox, struct rl_claim *claim,
                       const struct rl_ballot *ballot)
{
    RL_ASSERT(inbox->count < inbox->room);
    inbox->votes[inbox->count++] = (struct rl_inbox_unreplied){
        .claim = rl_claim_ref(claim),
        .round = ballot->round,
        .slot = ballot->slot,
        .node = ballot->node,
        .vote = ballot->vote,
        .cause = ballot->cause,
        .verb = ballot->verb,
        .unsent = ballot->unsent,
    };
    inbox->waiting |= 1u << RL_INBOX_VOTES;
}

/* Removes and returns the oldest vote of the list. Its claim reference passes to the caller. */
struct rl_inbox_vote rl_inbox_take_vote(struct rl_inbox *inbox)
{
    RL_ASSERT(inbox->taken < inbox->count);
    const struct rl_inbox_unreplied *from = &inbox->votes[inbox->taken++];
    const struct rl_inbox_vote vote = {
        .claim = from->claim,
        .ballot =
            {
                .round = from->round,
                .slot = from->slot,
                .node = from->node,
                .vote = from->vote,
                .cause = from->cause,
                .verb = from->verb,
                .unsent = from->unsent,
            },
    };
    if (inbox->taken == inbox->count) {
        inbox->taken = inbox->count = 0;
        inbox->waiting &= ~(1u << RL_INBOX_VOTES);
    }
    return vote;
}

/* Adds the notification of a change of `key`, which is borrowed. */
void rl_inbox_add_key(struct rl_inbox *inbox, unsigned node, struct rl_arg key)
{
    inbox->is_turn = false;
    RL_ASSERT((inbox->waiting & 1u << RL_INBOX_NOTIFIED) == 0);
    rl_inbox_note(inbox, RL_INBOX_NOTIFIED, node);
    inbox->key = key;
}

/* Adds the entry of kind NOTIFIED for a turn in the line of the resource with this key. */
void rl_inbox_add_turn(struct rl_inbox *inbox, unsigned node, struct rl_arg key)
{
    rl_inbox_add_key(inbox, node, key);
    inbox->is_turn = true;
}

/* Removes the notification. Stores its key, and returns the index of its node. */
unsigned rl_inbox_take_key(struct rl_inbox *inbox, struct rl_arg *ret_key)
{
    *ret_key = inbox->key;
    return rl_inbox_take_node(inbox, RL_INBOX_NOTIFIED);
}

/* Drops all entries with their claim references, and frees the memory. */
void rl_inbox_free(struct rl_inbox *inbox)
{
    if ((inbox->waiting & 1u << RL_INBOX_REPLIED) != 0)
        rl_claim_drop(inbox->replied.claim);
    while (inbox->count != 0)
        rl_claim_drop(rl_inbox_take_vote(inbox).claim);
    rl_free(inbox->mem, inbox->votes);
    *inbox = (struct rl_inbox){.mem = inbox->mem};
}
