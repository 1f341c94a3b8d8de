/* SPDX-License-Identifier: MIT
 * Effects to requests, answers to events. */
#include "engine/lock.h"

#include "core/rule.h"
#include "engine/engine.h"
#include "platform/hash.h"
#include "redlock/redlock.h"

#include <string.h>

static void step(struct rl_engine *engine, struct rl_lock *lock, const struct rl_event *event);

static void link_lock(struct rl_engine *engine, struct rl_lock *lock)
{
    lock->prev = NULL;
    lock->next = engine->locks;
    if (engine->locks != NULL)
        engine->locks->prev = lock;
    engine->locks = lock;
    engine->common.wanted = ++engine->lock_count > 0;
    lock->active = true;
}

static void unlink_lock(struct rl_engine *engine, struct rl_lock *lock)
{
    if (lock->prev != NULL)
        lock->prev->next = lock->next;
    else
        engine->locks = lock->next;
    if (lock->next != NULL)
        lock->next->prev = lock->prev;
    engine->common.wanted = --engine->lock_count > 0;
    lock->active = false;
}

/* Nobody counts votes for this claim any more; nodes that owe its undo keep it. */
static void abandon_claim(struct rl_lock *lock)
{
    if (lock->claim == NULL)
        return;
    lock->claim->owner = NULL;
    rl_claim_drop(lock->claim);
    lock->claim = NULL;
}

static struct rl_claim *new_claim(struct rl_engine *engine, struct rl_arg key, size_t token_max)
{
    /* Another claim may have lived at this address. */
    engine->common.cache.claim = NULL;
    return rl_claim_new(engine->mem, key, token_max);
}

/* The number that the votes of this attempt carry. */
static void propose(struct rl_engine *engine, struct rl_lock *lock)
{
    struct rl_claim *claim = lock->claim;
    struct rl_arg key = rl_claim_key(claim);
    unsigned stripe = rl_fence_stripe(rl_hash_word(key.data, key.len));
    uint64_t wall_us = engine->outside.wall_us(engine->outside.ctx);

    claim->fenced = true;
    claim->stripe = (uint16_t)stripe;
    claim->proposal = rl_fence_propose(engine->records->hints[stripe], wall_us);
    rl_fence_begin(&lock->lease.fence, claim->proposal);
}

/* The next proposal for this stripe is above what was just granted. */
static void note_number(struct rl_engine *engine, const struct rl_lock *lock)
{
    uint64_t *hint = &engine->records->hints[lock->claim->stripe];

    *hint = rl_max_u64(*hint, lock->lease.fence.number);
}

/* A fresh token for a fresh attempt: an old one may still be on its way to some node. */
static bool renew_claim(struct rl_engine *engine, struct rl_lock *lock)
{
    char token[RL_TOKEN_MAX + 1];

    if (lock->claim->refs > 1 || lock->claim->owner != lock) {
        struct rl_claim *claim = new_claim(engine, rl_claim_key(lock->claim), RL_TOKEN_MAX);
        if (claim == NULL)
            return false;
        if (!RL_RULE(FRESH_TOKEN))
            rl_claim_set_token(claim, rl_claim_token(lock->claim));
        abandon_claim(lock);
        lock->claim = claim;
    }
    struct rl_claim *claim = lock->claim;
    engine->common.cache.claim = NULL;
    if (RL_RULE(FRESH_TOKEN) || claim->token_len == 0) {
        size_t len =
            rl_token_make(&engine->random, engine->params.owner, engine->params.owner_len, token);
        rl_claim_set_token(claim, (struct rl_arg){token, len});
    }
    claim->owner = lock;
    if (lock->lease.params.fence)
        propose(engine, lock);
    claim->undo_verb = RL_VERB_RELEASE;
    claim->no_shorter = false;
    claim->ttl_ms = lock->lease.params.ttl_ns / RL_MS;
    claim->ttl_max_ms = claim->ttl_ms;
    return true;
}

static void undo(struct rl_engine *engine, struct rl_lock *lock, rl_nodes nodes)
{
    int cause = 0;

    for (; nodes != 0; nodes &= nodes - 1) {
        struct rl_node *node = &engine->nodes[__builtin_ctz(nodes)];
        (void)rl_node_undo(node, lock->claim, 0, engine->view.now.boot_ns, &cause);
    }
}

/* One request of the round to one node; false if it could not be sent, then the ballot says what
 * that means. */
static bool ask(struct rl_engine *engine, struct rl_lock *lock, unsigned index, enum rl_verb verb,
                struct rl_ballot *ballot)
{
    struct rl_node *node = &engine->nodes[index];
    uint32_t round = lock->lease.round.number;
    uint64_t now_ns = engine->view.now.boot_ns;
    int cause = 0;
    enum rl_vote vote = RL_VOTE_NONE;

    if (verb == RL_VERB_RELEASE || verb == RL_VERB_SHORTEN) {
        vote = rl_node_undo(node, lock->claim, round, now_ns, &cause);
    } else {
        cause = rl_node_ask(node, lock->claim, round, verb, now_ns);
        if (cause == 0 && verb == RL_VERB_GET)
            cause = rl_node_ask(node, lock->claim, round, RL_VERB_PTTL, now_ns);
        vote = cause == 0 ? RL_VOTE_NONE : RL_VOTE_FAILED;
    }
    *ballot = (struct rl_ballot){
        .node = (uint8_t)index,
        .vote = (uint8_t)vote,
        .cause = (uint8_t)cause,
        .verb = (uint8_t)verb,
        .round = round,
        .unsent = true,
    };
    return vote == RL_VOTE_NONE;
}

static void feed(struct rl_engine *engine, struct rl_lock *lock, const struct rl_ballot *ballots,
                 unsigned count)
{
    for (unsigned i = 0; i < count && lock->lease.state != RL_STATE_ENDED; i++) {
        struct rl_event event = {.kind = RL_EVENT_VOTE, .ballot = ballots[i]};
        step(engine, lock, &event);
    }
}

static void prepare_claim(struct rl_lock *lock, const struct rl_effects *fx)
{
    const struct rl_lease *lease = &lock->lease;
    struct rl_claim *claim = lock->claim;

    switch (lease->round.verb) {
    case RL_VERB_EXTEND:
        claim->ttl_ms = lease->extend_ttl_ns / RL_MS;
        claim->ttl_max_ms = rl_max_u64(claim->ttl_max_ms, claim->ttl_ms);
        claim->no_shorter = (fx->flags & RL_FX_NO_SHORTER) != 0;
        break;
    case RL_VERB_RELEASE:
    case RL_VERB_SHORTEN:
        claim->undo_verb = lease->round.verb;
        break;
    default:
        break;
    }
}

/* Sends what the effects ask for. What could not be sent is counted as a vote afterwards, when all
 * requests of the round are out. */
static void send_round(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx)
{
    struct rl_ballot unsent[3 * RL_NODES_MAX];
    unsigned count = 0;
    bool ready = true;

    if (fx->flags & RL_FX_ATTEMPT) {
        engine->stats.attempts++;
        ready = renew_claim(engine, lock);
    }
    if (ready)
        prepare_claim(lock, fx);
    for (rl_nodes rest = fx->ask; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        struct rl_ballot *ballot = &unsent[count];
        if (!ready)
            *ballot = (struct rl_ballot){
                .node = (uint8_t)node,
                .vote = RL_VOTE_FAILED,
                .cause = REDLOCK_CAUSE_NO_MEMORY,
                .verb = lock->lease.round.verb,
                .round = lock->lease.round.number,
                .unsent = true,
            };
        else if (ask(engine, lock, node, (enum rl_verb)lock->lease.round.verb, ballot))
            continue;
        count++;
    }
    for (rl_nodes rest = fx->heal; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        if (!ask(engine, lock, node, RL_VERB_HEAL, &unsent[count]))
            count++;
    }
    if (fx->raise != 0)
        lock->claim->number = lock->lease.fence.number;
    for (rl_nodes rest = fx->raise; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        if (!ask(engine, lock, node, RL_VERB_RAISE, &unsent[count]))
            count++;
    }
    feed(engine, lock, unsent, count);
}

static void count_outcome(struct rl_engine *engine, const struct rl_lock *lock,
                          const struct rl_effects *fx, uint8_t before)
{
    struct rl_engine_stats *stats = &engine->stats;
    const struct rl_lease *lease = &lock->lease;

    stats->extended += (fx->flags & RL_FX_EXTENDED) != 0;
    stats->extend_failed += (fx->flags & RL_FX_EXTEND_FAILED) != 0;
    stats->lost += (fx->flags & RL_FX_LOST) != 0;
    bool failed_attempt = (fx->flags & RL_FX_WAITING) != 0 ||
                          ((fx->flags & RL_FX_DONE) != 0 && fx->status != REDLOCK_OK);
    if (before == RL_STATE_ASKING && failed_attempt && lease->round.granted != 0 &&
        fx->status == REDLOCK_ECONTENDED)
        stats->split_votes++;
    if ((fx->flags & RL_FX_DONE) == 0)
        return;
    if (before == RL_STATE_RELEASING || lease->round.verb == RL_VERB_RELEASE ||
        lease->round.verb == RL_VERB_SHORTEN) {
        stats->released += fx->status == REDLOCK_OK;
        stats->release_failed += fx->status != REDLOCK_OK;
        return;
    }
    if (lease->params.kind != RL_LEASE_ACQUIRE || before > RL_STATE_WAITING)
        return;
    uint64_t wait_us = rl_elapsed_ns(lease->begun, engine->view.now) / RL_US;
    unsigned bucket = wait_us == 0 ? 0 : 63u - (unsigned)__builtin_clzll(wait_us);
    stats->wait_us_hist[bucket < RL_BUCKETS ? bucket : RL_BUCKETS - 1]++;
    stats->acquired += fx->status == REDLOCK_OK;
    if (fx->status == REDLOCK_OK && lease->params.fence)
        *(lease->fence.raising ? &stats->fence_two_rounds : &stats->fence_one_round) += 1;
    stats->contended += fx->status == REDLOCK_ECONTENDED;
    stats->no_quorum += fx->status == REDLOCK_ENOQUORUM;
    stats->too_slow += fx->status == REDLOCK_ETOOSLOW;
    stats->refused += fx->status == REDLOCK_EREFUSED || fx->status == REDLOCK_EAUTH ||
                      fx->status == REDLOCK_EDUPLICATE;
    stats->canceled += fx->status == REDLOCK_ECANCELED || fx->status == REDLOCK_ECLOSED;
}

static bool is_held(uint8_t state)
{
    return state == RL_STATE_HELD || state == RL_STATE_EXTENDING;
}

static bool is_waiting(uint8_t state)
{
    return state == RL_STATE_ASKING || state == RL_STATE_WAITING;
}

static void step(struct rl_engine *engine, struct rl_lock *lock, const struct rl_event *event)
{
    struct rl_effects fx;
    uint8_t before = lock->lease.state;

    rl_lease_step(&lock->lease, event, &engine->view, &fx);
    uint8_t after = lock->lease.state;
    if (lock->lease.wake_ns != lock->due_ns || lock->heap_at == RL_HEAP_NONE)
        rl_heap_set(&engine->timers, lock);
    if (before != after) {
        engine->stats.held += (uint64_t)is_held(after) - (uint64_t)is_held(before);
        engine->stats.waiting += (uint64_t)is_waiting(after) - (uint64_t)is_waiting(before);
    }
    if (fx.undo != 0)
        undo(engine, lock, fx.undo);
    if (fx.flags != 0)
        count_outcome(engine, lock, &fx, before);
    if ((fx.flags & RL_FX_HELD) != 0 && lock->claim->fenced)
        note_number(engine, lock);
    if (fx.flags & RL_FX_ENDED) {
        unlink_lock(engine, lock);
        abandon_claim(lock);
    }
    /* The announcements come first: a request that cannot be sent is a vote, and that may announce
     * more. */
    uint32_t news = fx.flags & ~(uint32_t)(RL_FX_ATTEMPT | RL_FX_NO_SHORTER);
    if (news != 0)
        engine->listener.lock(engine->listener.ctx, lock, news, fx.status);
    if (after != RL_STATE_ENDED && (fx.ask | fx.heal | fx.raise) != 0)
        send_round(engine, lock, &fx);
}

int rl_lock_start(struct rl_engine *engine, struct rl_lock *lock,
                  const struct rl_lease_params *params, struct rl_arg key, struct rl_arg token)
{
    struct rl_event event = {.kind = RL_EVENT_START};
    bool inspect = params->kind == RL_LEASE_INSPECT;

    lock->heap_at = RL_HEAP_NONE;
    lock->due_ns = RL_NEVER;
    lock->seen = NULL;
    lock->claim = NULL;
    if (!rl_heap_reserve(&engine->timers, engine->lock_count + 1))
        return REDLOCK_ENOMEM;
    if (params->fence && !rl_records_want(engine))
        return REDLOCK_ENOMEM;
    lock->claim = new_claim(engine, key, token.len > RL_TOKEN_MAX ? token.len : RL_TOKEN_MAX);
    if (lock->claim == NULL)
        return REDLOCK_ENOMEM;
    if (inspect)
        lock->seen = rl_alloc(engine->mem, params->nodes * sizeof *lock->seen);
    if (inspect && lock->seen == NULL) {
        abandon_claim(lock);
        return REDLOCK_ENOMEM;
    }
    if (token.len != 0)
        rl_claim_set_token(lock->claim, token);
    lock->claim->owner = lock;
    lock->claim->ttl_max_ms = params->ttl_ns / RL_MS;
    rl_lease_init(&lock->lease, params);
    lock->lease.params.salt = rl_random_word(&engine->random);
    lock->lease.begun = engine->view.now;
    link_lock(engine, lock);
    if (!params->fence || engine->records->known)
        step(engine, lock, &event);
    return REDLOCK_OK;
}

void rl_lock_start_deferred(struct rl_engine *engine)
{
    struct rl_event event = {.kind = RL_EVENT_START};
    struct rl_lock *next;

    for (struct rl_lock *lock = engine->locks; lock != NULL; lock = next) {
        struct rl_lease_params *params = &lock->lease.params;
        next = lock->next;
        if (lock->lease.state != RL_STATE_NEW)
            continue;
        uint64_t waited_ns = rl_elapsed_ns(lock->lease.begun, engine->view.now);
        if (params->wait_ns != 0 && params->wait_ns != RL_NEVER)
            params->wait_ns = rl_max_u64(rl_sub_sat(params->wait_ns, waited_ns), 1);
        step(engine, lock, &event);
    }
}

void rl_lock_event(struct rl_engine *engine, struct rl_lock *lock, uint8_t kind, uint64_t ttl_ns,
                   int status)
{
    struct rl_event event = {.kind = kind, .ttl_ns = ttl_ns, .status = status};

    RL_ASSERT(lock->active);
    if (kind == RL_EVENT_SHORTEN) {
        lock->claim->undo_verb = RL_VERB_SHORTEN;
        lock->claim->keep_until_ns = rl_add_sat(engine->view.now.boot_ns, ttl_ns);
        lock->claim->ttl_max_ms = rl_max_u64(lock->claim->ttl_max_ms, ttl_ns / RL_MS);
    }
    step(engine, lock, &event);
}

void rl_lock_doubt(struct rl_engine *engine, rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_DOUBT, .nodes = nodes};
    struct rl_lock *next;

    for (struct rl_lock *lock = engine->locks; lock != NULL; lock = next) {
        next = lock->next;
        step(engine, lock, &event);
    }
}

void rl_lock_tick(struct rl_engine *engine, struct rl_lock *lock)
{
    struct rl_event event = {.kind = RL_EVENT_TICK};

    step(engine, lock, &event);
}

static void forget_seen(struct rl_engine *engine, struct rl_seen *seen)
{
    rl_free_wiped(engine->mem, seen->value, seen->len);
    seen->value = NULL;
    seen->len = 0;
    seen->present = seen->foreign_kind = false;
}

/* The two halves of an inspection: the value is kept, the vote comes with the time to live. */
static bool note_seen(struct rl_engine *engine, struct rl_lock *lock, struct rl_ballot *ballot,
                      const struct rl_reply *reply)
{
    struct rl_seen *seen = &lock->seen[ballot->node];

    if (ballot->vote == RL_VOTE_FAILED || ballot->vote == RL_VOTE_SILENT) {
        ballot->verb = RL_VERB_GET;
        return true;
    }
    if (ballot->verb == RL_VERB_GET) {
        seen->present = ballot->vote == RL_VOTE_GRANTED;
        bool is_token = reply->kind == RL_REPLY_BULK && reply->len <= RL_BULK_MAX;
        seen->foreign_kind = seen->present && !is_token;
        if (seen->present && !seen->foreign_kind) {
            seen->value = rl_strdup_len(engine->mem, reply->text, reply->len);
            seen->len = reply->len;
            if (seen->value == NULL) {
                ballot->vote = RL_VOTE_FAILED;
                ballot->cause = REDLOCK_CAUSE_NO_MEMORY;
                return true;
            }
        }
        return false;
    }
    seen->pttl_ms = reply->integer;
    if (seen->pttl_ms == -2)
        forget_seen(engine, seen); /* expired between the two questions */
    ballot->verb = RL_VERB_GET;
    ballot->vote = seen->present ? RL_VOTE_GRANTED : RL_VOTE_DENIED;
    return true;
}

/* Who is denied may learn why it lasts: the key was made with another max_ttl, or a clock was set
 * back. A key is told of once: it gets shorter from then on. */
static void note_pttl(struct rl_engine *engine, const struct rl_ballot *ballot)
{
    struct rl_admission_rules *rules = &engine->common.admission;
    uint64_t before_ns = rules->ttl_shown_ns[ballot->node];

    if (ballot->pttl_ms == 0 ||
        !rl_admission_saw_ttl(rules, ballot->node, (int64_t)ballot->pttl_ms))
        return;
    if (rules->ttl_shown_ns[ballot->node] > before_ns && engine->listener.long_ttl != NULL)
        engine->listener.long_ttl(engine->listener.ctx, ballot->node, ballot->pttl_ms);
}

void rl_lock_vote(struct rl_engine *engine, struct rl_lock *lock, const struct rl_ballot *ballot,
                  const struct rl_reply *reply)
{
    struct rl_event event = {.kind = RL_EVENT_VOTE, .ballot = *ballot};

    if (!lock->active || lock->lease.round.number != ballot->round)
        return;
    note_pttl(engine, ballot);
    if (lock->seen != NULL && !note_seen(engine, lock, &event.ballot, reply))
        return;
    /* The vote that decides an extension must have come before the old deadline: not the time of
     * the tick, now. */
    if (lock->lease.state == RL_STATE_EXTENDING && RL_RULE(FRESH_CLOCK))
        rl_engine_refresh(engine);
    step(engine, lock, &event);
}

bool rl_seen_same(const struct rl_seen *a, const struct rl_seen *b)
{
    return a->value != NULL && b->value != NULL && a->len == b->len &&
           memcmp(a->value, b->value, a->len) == 0;
}

void rl_lock_free_seen(struct rl_engine *engine, struct rl_lock *lock)
{
    if (lock->seen == NULL)
        return;
    for (unsigned i = 0; i < lock->lease.params.nodes; i++)
        forget_seen(engine, &lock->seen[i]);
    rl_free(engine->mem, lock->seen);
    lock->seen = NULL;
}
