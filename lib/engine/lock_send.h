/* SPDX-License-Identifier: MIT
 * Makes the claims of locks, and turns the effects of a lease into requests, undos and probes. For
 * lock.c, lock_send.c and slot.c only. */
#ifndef RL_ENGINE_LOCK_SEND_H
#define RL_ENGINE_LOCK_SEND_H

#include "engine/lock.h"

/* The requests of one round that could not be sent. Each request counts as a vote, which is passed
 * to the lease after the step that tried to send it. Exists during one call of rl_lock_step().
 * Owner: lock_send.c. */
struct rl_unsent {
    uint32_t round; /* rl_round.number of the requests; 0: none yet */
    uint8_t taken;  /* list[0] to list[taken - 1] were passed to the lease */
    uint8_t count;  /* used elements of `list`, at least `taken` */
    struct {
        uint8_t node, verb, vote, cause; /* as in struct rl_ballot */
    } list[3 * RL_NODES_MAX]; /* at most the round's request, HEAL and RAISE for each node */
};

/* Passes one event to the lease and carries out its effects; then does the same with the votes of
 * the requests that could not be sent. In lock.c. */
void rl_lock_step(struct rl_engine *engine, struct rl_lock *lock, const struct rl_event *event);

/* Returns the bytes that a claim needs for its token with a NUL: for a token of `token_len` bytes
 * from the caller, and for one that the engine makes. */
size_t rl_lock_token_room(const struct rl_engine *engine, size_t token_len);
/* Returns a new claim on these keys with room for a token of `token_max` bytes; NULL: no memory. */
struct rl_claim *rl_lock_new_claim(struct rl_engine *engine, const struct rl_arg *keys,
                                   unsigned count, size_t token_max);
/* Takes the claim from the lock, if it has one. Votes of the claim are dropped from now on.
 * Requests and pending undos keep their references to it. */
void rl_lock_abandon_claim(struct rl_lock *lock);
/* Notes the fence that the lock has got, so that the client's next proposal for the same stripe is
 * larger. */
void rl_lock_note_fence(struct rl_engine *engine, const struct rl_lock *lock);

/* Undoes the present attempt on these nodes: sends the undo, or keeps it as a pending undo. */
void rl_lock_send_undo(struct rl_engine *engine, struct rl_lock *lock, rl_nodes nodes);
/* Sends the requests of a step, HEAL and RAISE included. For a new attempt, first gives the claim a
 * new token. Adds the requests that could not be sent to `unsent`, and removes those of an earlier
 * round from it. */
void rl_lock_send_round(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx,
                        struct rl_unsent *unsent);
/* Takes the first request out of `unsent`, which is not empty, and returns its vote as an event. */
void rl_lock_next_unsent_vote(struct rl_unsent *unsent, struct rl_event *ret);
/* Probes and tracks the key, or the slots, that a waiter waits for, as `fx` says. A probe that
 * cannot be sent is left out: the waiter's timer makes up for it. */
void rl_lock_send_probe(struct rl_engine *engine, struct rl_lock *lock,
                        const struct rl_effects *fx);
/* Sends the request of fx->line to the line of the lock's resource. */
void rl_lock_send_line(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx);

#endif
