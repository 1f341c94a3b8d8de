/* SPDX-License-Identifier: MIT
 * Effects of the core to requests: claims, tokens, what is sent to whom. Shared by lock.c and
 * lock_send.c only. */
#ifndef RL_ENGINE_LOCK_SEND_H
#define RL_ENGINE_LOCK_SEND_H

#include "engine/lock.h"

/* Requests of one round that could not be sent, and what that means as a vote. */
struct rl_unsent {
    uint32_t round;
    uint8_t taken, count; /* list[taken] to list[count - 1] were not counted yet */
    struct {
        uint8_t node, verb, vote, cause; /* as in struct rl_ballot */
    } list[3 * RL_NODES_MAX];            /* of each node: the question, HEAL and RAISE */
};

/* lock.c: carries out one event and its effects, then those of the votes for requests that could
 * not be sent. */
void rl_lock_step(struct rl_engine *engine, struct rl_lock *lock, const struct rl_event *event);

/* Of a token that is made here, or of one that is brought along, with a NUL behind it. */
size_t rl_lock_token_room(const struct rl_engine *engine, size_t token_len);
struct rl_claim *rl_lock_new_claim(struct rl_engine *engine, const struct rl_arg *keys,
                                   unsigned count, size_t token_max);
/* Nobody counts votes for this claim any more; nodes that owe its undo keep it. */
void rl_lock_abandon_claim(struct rl_lock *lock);
/* The next proposal for this stripe is above what was just granted. */
void rl_lock_note_fence(struct rl_engine *engine, const struct rl_lock *lock);

void rl_lock_send_undo(struct rl_engine *engine, struct rl_lock *lock, rl_nodes nodes);
/* Sends what the effects ask for, and adds to `unsent` each request that could not be sent. Drops
 * those of an earlier round from there. */
void rl_lock_send_round(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx,
                        struct rl_unsent *unsent);
/* Takes the vote for the first request that could not be sent, of which there is one. */
void rl_lock_next_unsent_vote(struct rl_unsent *unsent, struct rl_event *ret);
void rl_lock_send_probe(struct rl_engine *engine, struct rl_lock *lock,
                        const struct rl_effects *fx);

#endif
