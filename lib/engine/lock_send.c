/* SPDX-License-Identifier: MIT
 * Turns the effects of a lease into requests: undos, the requests of a round, and probes. Also
 * makes the claims of locks, and the tokens and proposals of attempts.
 *
 * A request is handed to the node, which appends it to its pipeline. A request that the node cannot
 * take, because it is not connected or for lack of memory, is put into struct rl_unsent: it counts
 * as a vote, which lock.c passes to the lease after the step. common.cache holds the command that
 * was encoded last, together with the address of its claim; its `claim` is set to NULL whenever a
 * claim is made or changed, because the cached bytes do not hold for it. */
#include "engine/lock_send.h"

#include "engine/engine.h"
#include "engine/slot.h"
#include "platform/hash.h"
#include "redlock/redlock.h"

#include <string.h>

/* Takes the claim from the lock, if it has one, and drops the lock's reference to it. Votes of the
 * claim are dropped from now on. */
void rl_lock_abandon_claim(struct rl_lock *lock)
{
    if (lock->claim == NULL)
        return;
    lock->claim->owner = NULL;
    rl_claim_drop(lock->claim);
    lock->claim = NULL;
}

/* Returns the bytes that a claim needs for the longest token that it may get, with a NUL: either
 * the caller's, of `token_len` bytes, or one that the engine makes (hex digits, then "@owner" if an
 * owner is configured). */
size_t rl_lock_token_room(const struct rl_engine *engine, size_t token_len)
{
    size_t owner_len = engine->params.owner_len;
    size_t own_len = RL_TOKEN_HEX + (owner_len != 0 ? owner_len + 1 : 0);

    return (token_len > own_len ? token_len : own_len) + 1;
}

/* Returns the token of the lock's last attempt as a terminated text; "" if there is none. */
const char *rl_lock_token(const struct rl_lock *lock)
{
    /* The NUL is there: a new claim is zero, and all tokens of the engine have the same length. */
    return lock->claim != NULL ? rl_claim_token(lock->claim).data : "";
}

/* Returns whether an active lock has this token, or a request or a pending undo of a node has it.
 */
bool rl_lock_token_is_used(const struct rl_engine *engine, struct rl_arg token)
{
    for (const struct rl_lock *lock = engine->locks; lock != NULL; lock = lock->next) {
        if (rl_claim_has_token(lock->claim, token))
            return true;
    }
    for (unsigned i = 0; i < engine->count; i++) {
        if (rl_node_uses_token(&engine->nodes[i], token))
            return true;
    }
    return false;
}

/* Returns a new claim on `count` keys, with room for a token of `token_max` bytes; NULL: no memory.
 */
struct rl_claim *rl_lock_new_claim(struct rl_engine *engine, const struct rl_arg *keys,
                                   unsigned count, size_t token_max)
{
    /* The cache compares addresses, and the new claim may have the address of a freed one. */
    engine->common.cache.claim = NULL;
    return rl_claim_new_multi(engine->mem, keys, count, token_max);
}

/* Gives the attempt a proposal for its fencing token, larger than all that this client has seen of
 * the stripe, and starts the choice of the fence. Notes in the claim whether the fence records of a
 * quorum are in use, without which no vote counts. */
static void propose(struct rl_engine *engine, struct rl_lock *lock)
{
    struct rl_claim *claim = lock->claim;
    struct rl_arg key = rl_claim_key(claim);
    unsigned stripe = rl_fence_stripe(rl_hash_bytes(key.data, key.len));
    uint64_t wall_us = engine->env.wall_us(engine->env.ctx);

    claim->fenced = true;
    claim->too_early = !rl_records_may_vote(engine);
    claim->unread = rl_records_are_unread(engine);
    claim->stripe = (uint16_t)stripe;
    claim->proposal = rl_fence_propose(engine->records->hints[stripe], wall_us);
    rl_fence_begin(lock->lease.fence, claim->proposal);
}

/* Notes the fence that the lock has got as the largest one that this client has seen of the stripe,
 * so that the next proposal is larger. */
void rl_lock_note_fence(struct rl_engine *engine, const struct rl_lock *lock)
{
    uint64_t *hint = &engine->records->hints[lock->claim->stripe];

    *hint = rl_max_u64(*hint, rl_lease_fence_chosen(&lock->lease));
}

/* Prepares the claim for a new attempt and gives it a new token, because a SET with the old token
 * may still be on its way. Makes a new claim if requests or undos refer to the old one, or if the
 * attempt is for another slot of the semaphore. A token of the caller is kept, because there is
 * only one attempt with it. Returns false without memory; then the lock keeps its old claim. */
static bool renew_claim(struct rl_engine *engine, struct rl_lock *lock)
{
    char token[RL_TOKEN_MAX + 1], key[RL_SLOT_KEY_MAX];
    uint16_t slot = rl_lease_slot(&lock->lease);
    bool other_key = rl_slot_is(lock) && lock->claim->slot != slot;
    size_t room = rl_lock_token_room(engine, 0);

    if (lock->claim->refs > 1 || lock->claim->owner != lock || other_key) {
        struct rl_arg words = rl_slot_is(lock) ? rl_slot_key(key, rl_slot_name(lock), slot)
                                               : rl_claim_key(lock->claim);
        struct rl_claim *claim = rl_slot_is(lock) ? rl_lock_new_claim(engine, &words, 1, room)
                                                  : rl_claim_new_like(lock->claim, room);
        if (claim == NULL)
            return false;
        claim->slot = slot;
        rl_lock_abandon_claim(lock);
        lock->claim = claim;
    }
    struct rl_claim *claim = lock->claim;
    engine->common.cache.claim = NULL;
    RL_ASSERT(!lock->own_token || lock->lease.attempts == 1);
    if (!lock->own_token) {
        size_t len =
            rl_token_make(&engine->random, engine->params.owner, engine->params.owner_len, token);
        rl_claim_set_token(claim, (struct rl_arg){token, len});
    }
    claim->owner = lock;
    if (lock->lease.terms->fence)
        propose(engine, lock);
    claim->undo_verb = RL_VERB_RELEASE;
    claim->maybe_executed = 0;
    claim->renewed_ns = 0;
    claim->ttl_ms = lock->lease.terms->ttl_ns / RL_MS;
    claim->ttl_max_ms = claim->ttl_ms;
    return true;
}

/* Undoes the present attempt on these nodes. A node that cannot send the undo now keeps it as a
 * pending undo. */
void rl_lock_send_undo(struct rl_engine *engine, struct rl_lock *lock, rl_nodes nodes)
{
    int cause = 0;

    /* Without memory for a token, no request was sent. */
    if (lock->claim->token_len == 0)
        return;
    for (; nodes != 0; nodes &= nodes - 1) {
        struct rl_node *node = &engine->nodes[__builtin_ctz(nodes)];
        (void)rl_node_undo(node, lock->claim, 0, engine->view.now.boot_ns, &cause);
    }
}

/* Adds one request to those that could not be sent, with the vote that counts instead: DENIED or
 * FAILED. `cause`: enum redlock_cause of a failure. */
static void add_unsent(struct rl_unsent *unsent, unsigned node, enum rl_verb verb,
                       enum rl_vote vote, int cause)
{
    unsigned at = unsent->count++;

    RL_ASSERT(at < sizeof unsent->list / sizeof unsent->list[0]);
    unsent->list[at].node = (uint8_t)node;
    unsent->list[at].verb = (uint8_t)verb;
    unsent->list[at].vote = (uint8_t)vote;
    unsent->list[at].cause = (uint8_t)cause;
}

/* Sends the requests for the line of the resource that an inspection reads, to a node that was sent
 * GET. For the first slot of a semaphore it also reads the line of the semaphore. A request that
 * cannot be sent is left out: who waits is then not known. */
RL_RARE static void send_line_lists(struct rl_engine *engine, struct rl_lock *lock,
                                    struct rl_node *node)
{
    uint32_t round = lock->lease.round.number;
    uint64_t now_ns = engine->view.now.boot_ns;
    struct rl_arg name;

    (void)rl_node_request_suspect(node, lock->claim, round, RL_VERB_LINE_LIST, now_ns);
    if (rl_slot_is_first(rl_claim_key(lock->claim), &name))
        (void)rl_node_request_suspect(node, lock->claim, round, RL_VERB_LINE_PERMITS, now_ns);
}

/* Sends the round's request `verb` to the node `index`. For an inspection or verification, sends
 * GET and PTTL, and for an inspection by a client with lines also the requests for the line of the
 * resource. A release goes to the node as the undo of the claim. A request that cannot be sent is
 * added to `unsent`. */
static void send_requests(struct rl_engine *engine, struct rl_lock *lock, unsigned index,
                          enum rl_verb verb, struct rl_unsent *unsent)
{
    struct rl_node *node = &engine->nodes[index];
    uint32_t round = lock->lease.round.number;
    uint64_t now_ns = engine->view.now.boot_ns;
    int cause = 0;
    enum rl_vote vote = RL_VOTE_NONE;

    if (verb == RL_VERB_RELEASE || verb == RL_VERB_SHORTEN) {
        vote = rl_node_undo(node, lock->claim, round, now_ns, &cause);
    } else {
        /* `late`: the lease asks this node although it is suspect. */
        bool late = (lock->lease.round.suspect & RL_NODE(index)) != 0;
        cause = (late ? rl_node_request_suspect : rl_node_request)(node, lock->claim, round, verb,
                                                                   now_ns);
        /* Before PTTL, whose reply completes the vote. Who waits is not part of it. */
        if (cause == 0 && lock->lease.terms->kind == RL_LEASE_INSPECT && engine->params.lines)
            send_line_lists(engine, lock, node);
        /* With several keys, the reply to GET is the whole vote. */
        if (cause == 0 && verb == RL_VERB_GET && lock->claim->more_keys == 0)
            cause = rl_node_request_suspect(node, lock->claim, round, RL_VERB_PTTL, now_ns);
        vote = cause == 0 ? RL_VOTE_NONE : RL_VOTE_FAILED;
    }
    if (vote != RL_VOTE_NONE)
        add_unsent(unsent, index, verb, vote, cause);
}

/* Takes the oldest request out of `unsent`, which must not be empty, and sets `*ret` to the event
 * that passes its vote to the lease. */
void rl_lock_next_unsent_vote(struct rl_unsent *unsent, struct rl_event *ret)
{
    unsigned at = unsent->taken++;
    *ret = (struct rl_event){
        .kind = RL_EVENT_VOTE,
        .ballot =
            {
                .node = unsent->list[at].node,
                .vote = unsent->list[at].vote,
                .cause = unsent->list[at].cause,
                .verb = unsent->list[at].verb,
                .round = unsent->round,
                .unsent = true,
            },
    };
}

/* Sets in the claim what the requests of the new round need: the TTL of an extension, or how a
 * release removes the key. */
static void prepare_claim(struct rl_lock *lock)
{
    const struct rl_lease *lease = &lock->lease;
    struct rl_claim *claim = lock->claim;

    switch (lease->round.verb) {
    case RL_VERB_EXTEND:
        claim->ttl_ms = lease->extend_ttl_ns / RL_MS;
        claim->ttl_max_ms = rl_max_u64(claim->ttl_max_ms, claim->ttl_ms);
        break;
    case RL_VERB_RELEASE:
    case RL_VERB_SHORTEN:
        claim->undo_verb = lease->round.verb;
        break;
    default:
        break;
    }
}

/* Sends the requests of a step to the nodes that `fx` names: those of the round, HEAL and RAISE.
 * For a new attempt, first gives the claim a new token; without memory for that, each request
 * counts as failed. Adds the requests that could not be sent to `unsent`, after removing those of
 * an earlier round. */
void rl_lock_send_round(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx,
                        struct rl_unsent *unsent)
{
    enum rl_verb verb = (enum rl_verb)lock->lease.round.verb;
    bool ready = true;

    if (unsent->round != lock->lease.round.number)
        unsent->taken = unsent->count = 0;
    unsent->round = lock->lease.round.number;
    if (fx->flags & RL_FX_ATTEMPT) {
        engine->stats.attempts++;
        ready = renew_claim(engine, lock);
    }
    if (ready)
        prepare_claim(lock);
    for (rl_nodes rest = fx->request; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        if (ready)
            send_requests(engine, lock, node, verb, unsent);
        else
            add_unsent(unsent, node, verb, RL_VOTE_FAILED, REDLOCK_CAUSE_NO_MEMORY);
    }
    for (rl_nodes rest = fx->heal; rest != 0; rest &= rest - 1)
        send_requests(engine, lock, (unsigned)__builtin_ctz(rest), RL_VERB_HEAL, unsent);
    if (fx->raise != 0)
        lock->claim->fence = rl_lease_fence_chosen(&lock->lease);
    for (rl_nodes rest = fx->raise; rest != 0; rest &= rest - 1)
        send_requests(engine, lock, (unsigned)__builtin_ctz(rest), RL_VERB_RAISE, unsent);
}

/* Selects the key of a lock of several keys that the next PTTL reads, or whose line the next
 * request is for. The encoded PTTL in the cache may be about another key. */
static void select_key(struct rl_engine *engine, struct rl_claim *claim, uint8_t key)
{
    if (claim->probed_key != key)
        engine->common.cache.claim = NULL;
    claim->probed_key = key;
}

/* Sends a probe to the nodes of fx->probe, and has them track the probed key: the key that
 * lease.wait.key selects, or the slots of a semaphore. */
void rl_lock_send_probe(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx)
{
    uint64_t now_ns = engine->view.now.boot_ns;

    if (rl_slot_is(lock)) {
        rl_slot_probe(engine, lock, fx);
        return;
    }
    select_key(engine, lock->claim, lock->lease.wait.key);
    for (rl_nodes nodes = fx->probe; nodes != 0; nodes &= nodes - 1)
        (void)rl_node_probe_and_track(&engine->nodes[__builtin_ctz(nodes)], lock->claim,
                                      lock->lease.round.number, now_ns);
}

/* Returns when the acquisition of the lock began, in ms of Unix time, by the wall clock at the
 * first call for this lock. Every request to the line sends this time, also to join again. */
static uint64_t since_ms(struct rl_engine *engine, struct rl_lock *lock)
{
    if (lock->since_ms == 0) {
        uint64_t waited_us = rl_elapsed_ns(lock->lease.begun, engine->view.now) / RL_US;
        lock->since_ms = rl_sub_sat(engine->env.wall_us(engine->env.ctx), waited_us) / 1000;
    }
    return lock->since_ms;
}

/* Sends the request of fx->line to the line of the lock's resource: that of the key which
 * fx->line_key selects. If it cannot be sent, the timer of the lease makes up for it. */
void rl_lock_send_line(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx)
{
    struct rl_claim *claim = lock->claim;

    if (fx->line == RL_VERB_LINE_SERVED && claim->token_len == 0)
        return; /* there was no memory for the attempt */
    claim->permits = (uint16_t)lock->lease.terms->permits;
    claim->since_ms = since_ms(engine, lock);
    engine->common.beat++;
    claim->victim = fx->line_victim;
    claim->victim_beat = fx->line_victim_beat;
    select_key(engine, claim, fx->line_key);
    for (rl_nodes nodes = fx->line_node; nodes != 0; nodes &= nodes - 1)
        (void)rl_node_request_line(&engine->nodes[__builtin_ctz(nodes)], claim,
                                   lock->lease.round.number, (enum rl_verb)fx->line,
                                   engine->view.now.boot_ns);
}
