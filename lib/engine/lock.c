/* SPDX-License-Identifier: MIT
 * Passes events to the lease of a lock, and carries out its effects inside the client: timers,
 * statistics, queues and announcements. lock_send.c carries out those that send requests.
 *
 * All events of a lock go through rl_lock_step(), with an event (struct rl_event) as input. The
 * functions that follow it make the events: a start, a call of the api layer, a vote, a
 * notification, a timer. A lock is active from its start until the step whose effects have
 * RL_FX_ENDED. RL_FX_* are the bits of the effects' flags, and RL_STATE_* the states of a lease. */
#include "engine/lock.h"

#include "engine/engine.h"
#include "engine/lock_send.h"
#include "engine/seen.h"
#include "engine/slot.h"
#include "platform/probe.h"
#include "redlock/redlock.h"

#include <string.h>

/* Adds a lock to the front of the list of active locks, and marks the lock as active. */
static void link_lock(struct rl_engine *engine, struct rl_lock *lock)
{
    lock->prev = NULL;
    lock->next = engine->locks;
    if (engine->locks != NULL)
        engine->locks->prev = lock;
    engine->locks = lock;
    engine->common.active = ++engine->lock_count > 0;
    lock->active = true;
}

/* Removes a lock from the list of active locks. The lock is not active any more. */
static void unlink_lock(struct rl_engine *engine, struct rl_lock *lock)
{
    if (lock->prev != NULL)
        lock->prev->next = lock->next;
    else
        engine->locks = lock->next;
    if (lock->next != NULL)
        lock->next->prev = lock->prev;
    engine->common.active = --engine->lock_count > 0;
    lock->active = false;
}

/* Returns whether a lease in this state (RL_STATE_*) has begun its operation and has no result yet:
 * it asks nodes, pauses between attempts, or is queued. */
static bool is_waiting(uint8_t state)
{
    return state == RL_STATE_ACQUIRING || state == RL_STATE_WAITING || state == RL_STATE_QUEUED;
}

/* Counts in the statistics what the effects `fx` of a step report: an extension, a loss, a split
 * vote, the end of a release or of an acquisition. Most of these have a probe. `before`: the state
 * before the step. */
static void count_outcome(struct rl_engine *engine, const struct rl_lock *lock,
                          const struct rl_effects *fx, uint8_t before)
{
    struct rl_engine_stats *stats = &engine->stats;
    const struct rl_lease *lease = &lock->lease;
    const struct rl_arg key = rl_claim_key(lock->claim);

    stats->extended += (fx->flags & RL_FX_EXTENDED) != 0;
    stats->extend_failed += (fx->flags & RL_FX_EXTEND_FAILED) != 0;
    stats->endangered += (fx->flags & RL_FX_ENDANGERED) != 0;
    stats->lost += (fx->flags & RL_FX_LOST) != 0;
    if (fx->flags & RL_FX_LOST)
        rl_probe_loss(key.data, key.len, rl_elapsed_ns(lease->begun, engine->view.now) / RL_MS);
    bool failed_attempt = (fx->flags & (RL_FX_WAITING | RL_FX_SKIPPED)) != 0 ||
                          ((fx->flags & RL_FX_DONE) != 0 && fx->status != REDLOCK_OK);
    if (before == RL_STATE_ACQUIRING && failed_attempt) {
        stats->split_votes += lease->round.granted != 0 && fx->status == REDLOCK_ECONTENDED;
        rl_probe_attempt_failed(key.data, key.len, fx->status, rl_nodes_count(lease->round.granted),
                                rl_nodes_count(lease->round.denied));
    }
    if ((fx->flags & RL_FX_DONE) == 0)
        return;
    /* The end of a release: of a held lock, or of a lock that is only known by its token. */
    if (before == RL_STATE_RELEASING || lease->round.verb == RL_VERB_RELEASE ||
        lease->round.verb == RL_VERB_SHORTEN) {
        stats->released += fx->status == REDLOCK_OK;
        stats->release_failed += fx->status != REDLOCK_OK;
        rl_probe_release(key.data, key.len, fx->status);
        return;
    }
    /* All that follows counts the end of an acquisition only. */
    if (lease->terms->kind != RL_LEASE_ACQUIRE || !(before == RL_STATE_NEW || is_waiting(before)))
        return;
    uint64_t wait_us = rl_elapsed_ns(lease->begun, engine->view.now) / RL_US;
    rl_count_us(stats->wait_us_hist, wait_us);
    stats->wait_us_sum += wait_us;
    stats->acquired += fx->status == REDLOCK_OK;
    if (fx->status == REDLOCK_OK)
        rl_probe_grant(key.data, key.len, rl_lease_remaining_ns(lease, engine->view.now) / RL_MS,
                       lease->attempts, wait_us);
    if (fx->status == REDLOCK_OK && lease->terms->fence)
        *(lease->fence->raising ? &stats->fence_two_rounds : &stats->fence_one_round) += 1;
    stats->contended += fx->status == REDLOCK_ECONTENDED;
    stats->no_quorum += fx->status == REDLOCK_ENOQUORUM;
    stats->too_slow += fx->status == REDLOCK_ETOOSLOW;
    stats->refused += fx->status == REDLOCK_EEXCLUDED || fx->status == REDLOCK_EAUTH ||
                      fx->status == REDLOCK_EDUPLICATE;
    stats->canceled += fx->status == REDLOCK_ECANCELED || fx->status == REDLOCK_ECLOSED;
}

/* Updates the resource state of a semaphore after a lock for a permit of it has changed its state.
 * Notes in the contention memory whether this client holds the slot. A held permit does not block
 * the queue: the next lock of this client may get another slot. `before`: the state before the
 * step. */
static void note_permit(struct rl_engine *engine, struct rl_lock *lock, uint8_t before)
{
    struct rl_resource *resource = lock->queue_entry.resource;
    uint8_t state = lock->lease.state;

    if (rl_state_is_held(before) != rl_state_is_held(state))
        rl_contention_slot_held(&resource->contention, rl_lease_slot(&lock->lease),
                                rl_state_is_held(state));
    if (rl_state_is_held(state))
        rl_queue_pass(engine, lock);
    /* A lock whose grant was not confirmed was held before, and acquires again now. */
    if (state == RL_STATE_WAITING && resource->queue_first == NULL)
        rl_queue_move_to_front(engine, lock);
}

/* Notes why a lock that has ended in the client's queue had to wait there. `rival`: the lock in
 * front; NULL: none, then there is nothing to note. If the rival was acquiring, copies its round as
 * the evidence for the report. */
static void note_queue_end(struct rl_lock *lock, const struct rl_lock *rival)
{
    if (rival == NULL)
        return;
    lock->queue_end = is_waiting(rival->lease.state) ? RL_QUEUE_END_WAITER : RL_QUEUE_END_HOLDER;
    if (lock->queue_end == RL_QUEUE_END_WAITER)
        rl_round_copy(&lock->lease.round, &rival->lease.round); /* for the report */
}

/* Updates the queues of the lock's resources after a change of its state: a held lock comes to the
 * front, a lock that is being released makes room for the next one, and a lock that has ended
 * leaves the queues. `before`: the state before the step. */
static void note_resource(struct rl_engine *engine, struct rl_lock *lock, uint8_t before)
{
    uint8_t state = lock->lease.state;

    if (state == RL_STATE_ENDED && before == RL_STATE_QUEUED)
        note_queue_end(lock, rl_queue_lock_ahead(lock));
    if (rl_slot_is(lock))
        note_permit(engine, lock, before);
    else if (state == RL_STATE_HELD)
        rl_queue_move_to_front(engine, lock);
    if (rl_state_is_held(before) && !rl_state_is_held(state))
        rl_queue_note_release(engine, lock);
    if (state == RL_STATE_RELEASING)
        rl_queue_pass(engine, lock);
    if (state == RL_STATE_ENDED)
        rl_queue_leave(engine, lock);
}

/* Carries out the effects `fx` of a step, and what follows from the change of the state. Adds the
 * requests of the round that could not be sent to `unsent`. `before`: the state before the step.
 *
 * The order matters. Undos come before the new round, because a new attempt replaces the token that
 * is undone. A lock leaves the engine's list before its end is announced, because its memory may be
 * freed once the announcement is taken. */
static void carry_out(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx,
                      uint8_t before, struct rl_unsent *unsent)
{
    uint8_t after = lock->lease.state;

    if (before != after) {
        engine->stats.held +=
            (uint64_t)rl_state_is_held(after) - (uint64_t)rl_state_is_held(before);
        engine->stats.waiting += (uint64_t)is_waiting(after) - (uint64_t)is_waiting(before);
        engine->stats.queued +=
            (uint64_t)(after == RL_STATE_QUEUED) - (uint64_t)(before == RL_STATE_QUEUED);
    }
    if (fx->undo != 0)
        rl_lock_send_undo(engine, lock, fx->undo);
    if (fx->flags != 0)
        count_outcome(engine, lock, fx, before);
    if ((fx->flags & RL_FX_HELD) != 0 && lock->claim->fenced)
        rl_lock_note_fence(engine, lock);
    if (lock->queue_entry.resource != NULL && before != after)
        note_resource(engine, lock, before);
    if (lock->probes != NULL && !is_waiting(after))
        rl_slot_forget(engine, lock);
    if (fx->flags & RL_FX_ENDED) {
        unlink_lock(engine, lock);
        lock->claim->owner = NULL; /* votes that still come are dropped */
    }
    uint32_t pending = fx->flags & ~(uint32_t)(RL_FX_ATTEMPT | RL_FX_SKIPPED);
    if (pending != 0)
        rl_announcements_add(&engine->announcements, lock, pending, fx->status);
    if (after != RL_STATE_ENDED && (fx->request | fx->heal | fx->raise) != 0)
        rl_lock_send_round(engine, lock, fx, unsent);
    for (rl_nodes rest = fx->track; rest != 0; rest &= rest - 1)
        rl_tracker_request(&engine->nodes[__builtin_ctz(rest)], engine->view.now.boot_ns);
    if (fx->probe != 0 && is_waiting(lock->lease.state))
        rl_lock_send_probe(engine, lock, fx);
    if (fx->line != 0)
        rl_lock_send_line(engine, lock, fx);
}

/* Counts what a step has done with the line of the resource. */
static void count_line(struct rl_engine *engine, struct rl_lock *lock, const struct rl_effects *fx)
{
    bool alone = (fx->counts & RL_COUNT_ALONE) != 0 && engine->params.lines;

    engine->stats.line_joins += (fx->counts & RL_COUNT_JOIN) != 0;
    engine->stats.line_missed += fx->line == RL_VERB_LINE_DROP;
    engine->stats.line_fallbacks += alone && !lock->alone;
    lock->alone = lock->alone || alone;
}

/* Passes one event to the lease, sets the timer of the lock, and carries out the effects. Adds the
 * requests of the round that could not be sent to `unsent`. Most votes have no effect. */
static void step(struct rl_engine *engine, struct rl_lock *lock, const struct rl_event *event,
                 struct rl_unsent *unsent)
{
    struct rl_effects fx;
    uint8_t before = lock->lease.state;

    rl_lease_step(&lock->lease, event, &engine->view, &fx);
    if (lock->lease.wake_ns != lock->due_ns || lock->heap_at == RL_HEAP_NONE)
        rl_heap_set(&engine->timers, lock);
    if ((fx.counts | fx.line) != 0)
        count_line(engine, lock, &fx);
    if (before != lock->lease.state || rl_effects_exist(&fx))
        carry_out(engine, lock, &fx, before, unsent);
}

/* Passes an event to the lease and carries out the effects. A request that could not be sent counts
 * as a vote, which is passed to the lease in a step of its own, until none is left or the lease has
 * ended. */
void rl_lock_step(struct rl_engine *engine, struct rl_lock *lock, const struct rl_event *event)
{
    struct rl_unsent unsent;
    struct rl_event vote; /* the next element of `unsent`, as an event */

    unsent.round = 0;
    unsent.taken = unsent.count = 0;
    for (;;) {
        step(engine, lock, event, &unsent);
        if (unsent.taken == unsent.count || lock->lease.state == RL_STATE_ENDED)
            return;
        rl_lock_next_unsent_vote(&unsent, &vote);
        event = &vote;
    }
}

/* Returns whether the lock may make its first attempt: it has no fence, or the fence records were
 * read. */
bool rl_lock_may_start(const struct rl_engine *engine, const struct rl_lock *lock)
{
    return !lock->lease.terms->fence || engine->records->known;
}

/* Starts to work on a lock of one key; see rl_lock_start_multi(). */
int rl_lock_start(struct rl_engine *engine, struct rl_lock *lock,
                  const struct rl_lease_params *params, const struct rl_storage *storage,
                  struct rl_arg key, struct rl_arg token)
{
    return rl_lock_start_multi(engine, lock, params, storage, &key, 1, token);
}

/* Returns the longest time to live in milliseconds of keys that a lease with these terms sets or
 * finds. The keys of an adopted lock may have any TTL up to max_ttl, because another client has set
 * them. */
static uint64_t ttl_max_ms(const struct rl_engine *engine, const struct rl_lease_terms *terms)
{
    uint64_t found_ns = terms->kind == RL_LEASE_ADOPT ? engine->common.admission.max_ttl_ns : 0;

    return rl_max_u64(terms->ttl_ns, found_ns) / RL_MS;
}

/* Starts to work on a lock of `count` keys, with a claim and a lease of its own. `token`: chosen by
 * the caller; empty: the engine makes a new one for each attempt. An acquisition enters the queues
 * of its resources, and begins at once unless it must wait there or for the fence records. Returns
 * REDLOCK_OK, ENOMEM or EQUEUEFULL; on failure the lock is not active. */
int rl_lock_start_multi(struct rl_engine *engine, struct rl_lock *lock,
                        const struct rl_lease_params *params, const struct rl_storage *storage,
                        const struct rl_arg *keys, unsigned count, struct rl_arg token)
{
    const struct rl_lease_terms *terms = &params->terms;
    bool has_seen = terms->kind == RL_LEASE_INSPECT || terms->kind == RL_LEASE_VERIFY;

    lock->heap_at = RL_HEAP_NONE;
    lock->due_ns = RL_NEVER;
    lock->seen = NULL;
    lock->claim = NULL;
    lock->queue_entry.resource = NULL;
    lock->more_entries = NULL;
    lock->more = 0;
    lock->queued = false;
    lock->own_token = terms->kind == RL_LEASE_ACQUIRE && token.len != 0;
    lock->queue_end = RL_QUEUE_END_NONE;
    lock->since_ms = 0;
    lock->probes = NULL;
    lock->pending = (struct rl_pending_announcement){0};
    if (!rl_heap_reserve(&engine->timers, engine->lock_count + 1))
        return REDLOCK_ENOMEM;
    if (terms->fence && !rl_records_start(engine))
        return REDLOCK_ENOMEM;
    lock->claim = rl_lock_new_claim(engine, keys, count, rl_lock_token_room(engine, token.len));
    if (lock->claim == NULL)
        return REDLOCK_ENOMEM;
    if (has_seen)
        lock->seen = rl_alloc(engine->mem, terms->nodes * sizeof *lock->seen);
    if (has_seen && lock->seen == NULL) {
        rl_lock_abandon_claim(lock);
        return REDLOCK_ENOMEM;
    }
    if (token.len != 0)
        rl_claim_set_token(lock->claim, token);
    lock->claim->owner = lock;
    lock->claim->slot = RL_SLOT_ANY;
    lock->claim->ttl_max_ms = ttl_max_ms(engine, terms);
    struct rl_lease_storage parts = rl_storage_parts(storage, params);
    rl_lease_init(&lock->lease, params, &parts);
    lock->lease.keys = (uint8_t)count;
    lock->lease.salt = rl_random_u64(&engine->random);
    lock->lease.begun = engine->view.now;
    int error = REDLOCK_OK;
    char name[RL_SLOT_KEY_MAX];
    const struct rl_arg semaphore = rl_slot_resource_key(name, keys[0]);
    if (rl_slot_is(lock))
        error = rl_queue_enter(engine, lock, &semaphore, 1);
    else if (terms->kind == RL_LEASE_ACQUIRE)
        error = rl_queue_enter(engine, lock, keys, count);
    if (error != REDLOCK_OK) {
        rl_lock_abandon_claim(lock);
        return error;
    }
    link_lock(engine, lock);
    if (terms->kind == RL_LEASE_ACQUIRE)
        rl_probe_acquire(keys[0].data, keys[0].len, count, terms->ttl_ns / RL_MS);
    struct rl_event event = {.kind = lock->queued ? RL_EVENT_QUEUE : RL_EVENT_START};
    if (lock->queued || rl_lock_may_start(engine, lock))
        rl_lock_step(engine, lock, &event);
    return REDLOCK_OK;
}

/* Starts a verification of the lock `held`: `lock` asks the servers for the keys of `held`,
 * compares their values with the token of `held`, and changes nothing there. Returns as
 * rl_lock_start(). */
int rl_lock_start_verify(struct rl_engine *engine, struct rl_lock *lock,
                         const struct rl_lease_params *params, const struct rl_storage *storage,
                         const struct rl_lock *held)
{
    struct rl_lease_params with_unproven = *params;
    struct rl_arg keys[RL_KEYS_MAX];

    with_unproven.unproven = rl_lease_unproven(&held->lease);
    unsigned count = rl_claim_keys(held->claim, keys);
    return rl_lock_start_multi(engine, lock, &with_unproven, storage, keys, count,
                               rl_claim_token(held->claim));
}

/* Starts the locks with fences that have waited for the fence records to be read: those that have
 * not begun (state NEW), and those that are queued but already in front of all their resources. The
 * time since their start is subtracted from the wait budget of the former, of which at least 1 ns
 * stays, because 0 would mean a single attempt. */
void rl_lock_start_deferred(struct rl_engine *engine)
{
    const struct rl_event turn = {.kind = RL_EVENT_TURN};
    const struct rl_event event = {.kind = RL_EVENT_START};
    struct rl_lock *next;

    for (struct rl_lock *lock = engine->locks; lock != NULL; lock = next) {
        uint64_t *wait_ns = &lock->lease.wait_ns;
        next = lock->next;
        if (lock->lease.state == RL_STATE_QUEUED && rl_queue_is_in_front(lock))
            rl_lock_step(engine, lock, &turn);
        if (lock->lease.state != RL_STATE_NEW)
            continue;
        uint64_t waited_ns = rl_elapsed_ns(lock->lease.begun, engine->view.now);
        if (*wait_ns != 0 && *wait_ns != RL_NEVER)
            *wait_ns = rl_max_u64(rl_sub_sat(*wait_ns, waited_ns), 1);
        rl_lock_step(engine, lock, &event);
    }
}

/* Passes an event of the api layer to an active lock. `kind`: enum rl_event_kind. `ttl_ns`: EXTEND:
 * the TTL to ask for; SHORTEN: the delay after which the keys expire. `status`: CANCEL: the result
 * of the operation. With SHORTEN, the claim's undo also shortens the TTL from now on, instead of
 * deleting the keys at once. */
void rl_lock_event(struct rl_engine *engine, struct rl_lock *lock, uint8_t kind, uint64_t ttl_ns,
                   int status)
{
    struct rl_event event = {.kind = kind, .ttl_ns = ttl_ns, .status = status};

    RL_ASSERT(lock->active);
    if (kind == RL_EVENT_SHORTEN) {
        lock->claim->undo_verb = RL_VERB_SHORTEN;
        lock->claim->renewed_ns = engine->view.now.boot_ns;
        lock->claim->keep_until_ns = rl_add_sat(engine->view.now.boot_ns, ttl_ns);
        lock->claim->ttl_max_ms = rl_max_u64(lock->claim->ttl_max_ms, ttl_ns / RL_MS);
    }
    rl_lock_step(engine, lock, &event);
}

/* Loses a held lock if its deadline has passed by the clocks of the engine, or if the wall clock
 * was set ahead too far: passes the TICK that the timer would. */
void rl_lock_expire(struct rl_engine *engine, struct rl_lock *lock)
{
    const struct rl_event event = {.kind = RL_EVENT_TICK};

    if (rl_lease_is_expired(&lock->lease, &engine->view))
        rl_lock_step(engine, lock, &event);
}

/* Passes INVALIDATE for these nodes to one lock, because a verification has found no key of the
 * lock there. */
void rl_lock_note_absent(struct rl_engine *engine, struct rl_lock *lock, rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_INVALIDATE, .nodes = nodes};

    RL_ASSERT(lock->active);
    rl_lock_step(engine, lock, &event);
}

/* Passes INVALIDATE for these nodes to all active locks: keys that were set there before now may be
 * gone before their TTL ends. */
void rl_lock_invalidate(struct rl_engine *engine, rl_nodes nodes)
{
    const struct rl_event event = {.kind = RL_EVENT_INVALIDATE, .nodes = nodes};
    struct rl_lock *next;

    for (struct rl_lock *lock = engine->locks; lock != NULL; lock = next) {
        next = lock->next;
        rl_lock_step(engine, lock, &event);
    }
}

/* Passes a TICK to an active lock. If the lock is queued, also looks whether other locks may now
 * begin before it. */
void rl_lock_tick(struct rl_engine *engine, struct rl_lock *lock)
{
    struct rl_event event = {.kind = RL_EVENT_TICK};

    rl_lock_step(engine, lock, &event);
    if (lock->queued)
        rl_queue_review(engine, lock);
}

/* Notes the time to live (not 0) of another client's key, which a denial reports. Announces a time
 * that exceeds max_ttl and all that were announced for the node before. It means that the clients
 * disagree about max_ttl, or that a clock was set back. */
RL_RARE static void note_pttl(struct rl_engine *engine, const struct rl_ballot *ballot)
{
    struct rl_admission_rules *rules = &engine->common.admission;
    int64_t pttl_ms = (int64_t)ballot->pttl_ms;
    uint64_t now_ns = engine->view.now.boot_ns;

    if (!rl_admission_saw_ttl(rules, ballot->node, pttl_ms, now_ns))
        return;
    if (rl_admission_reports_ttl(rules, ballot->node, pttl_ms))
        rl_announcements_add_long_ttl(&engine->announcements, ballot->node, ballot->pttl_ms);
}

/* Passes a vote to the lease, unless the lock has ended or the vote belongs to an earlier round.
 * The reply to a request that leaves the line is passed on to a holder during later rounds, too.
 * The two replies of a node to an inspection or a verification become one vote. `reply`: what the
 * vote follows from; NULL: there is none. */
void rl_lock_vote(struct rl_engine *engine, struct rl_lock *lock, const struct rl_ballot *ballot,
                  const struct rl_reply *reply)
{
    /* A holder may have been granted before the reply to LINE_SERVED, or to the LINE_LEAVE that
     * counts the waiters, and begin another round before it. */
    bool leaves = ballot->verb == RL_VERB_LINE_SERVED || ballot->verb == RL_VERB_LINE_LEAVE;
    bool late = leaves && !is_waiting(lock->lease.state);

    if (!lock->active || (lock->lease.round.number != ballot->round && !late))
        return;
    struct rl_event event = {.kind = RL_EVENT_VOTE, .ballot = *ballot};
    /* The times of an inspection are noted by rl_engine_note_ttls(). */
    if (lock->seen == NULL && ballot->pttl_ms != 0)
        note_pttl(engine, ballot);
    if (ballot->verb == RL_VERB_LINE_LIST || ballot->verb == RL_VERB_LINE_PERMITS) {
        rl_seen_note_line(engine, lock, ballot->node, (enum rl_verb)ballot->verb, reply);
        return;
    }
    if (lock->seen != NULL && !rl_seen_note_key(engine, lock, &event.ballot, reply))
        return;
    struct rl_line_reply line;
    if (rl_verb_is_line((enum rl_verb)ballot->verb) && reply != NULL &&
        rl_line_parse(reply->text, reply->len, &line))
        event.line = &line;
    /* The vote that decides an extension must come before the old deadline. The time of the tick
     * may be too early for that comparison. */
    if (lock->lease.state == RL_STATE_EXTENDING)
        rl_engine_refresh(engine);
    rl_lock_step(engine, lock, &event);
}

/* Wakes the lock in front of a resource, because `node` has sent a notification for its key. Only a
 * lock that is acquiring and that probes this resource is woken. `slot`: the slot of a semaphore
 * that has changed; RL_SLOT_ANY: unknown, or no semaphore. Counts a wake-up if it has ended or
 * shortened the pause of the lock. */
static void wake_front(struct rl_engine *engine, struct rl_resource *resource, unsigned node,
                       uint16_t slot, bool turn)
{
    const struct rl_event event = {
        .kind = RL_EVENT_WAKE, .nodes = RL_NODE(node), .slot = slot, .turn = turn};

    struct rl_lock *lock = resource->front;

    if (lock == NULL || rl_queue_probed(lock) != resource || !is_waiting(lock->lease.state))
        return;
    const struct rl_lease *lease = &lock->lease;
    uint8_t state = lease->state;
    bool was_free = lease->wait.free;

    rl_lock_step(engine, lock, &event);
    /* A waiter in a line keeps what comes while a request of it has no reply. */
    bool kept = lease->line.woken;
    engine->stats.wakeups += state == RL_STATE_WAITING &&
                             (lease->state != state || (lease->wait.free && !was_free) || kept);
}

/* Wakes a waiter because another lock of this client has released the resource. `slot`: the slot of
 * the semaphore that was released; RL_SLOT_ANY: any. */
void rl_lock_wake_local(struct rl_engine *engine, struct rl_lock *lock, uint16_t slot)
{
    const struct rl_event event = {.kind = RL_EVENT_WAKE, .slot = slot};

    rl_lock_step(engine, lock, &event);
}

/* Wakes the lock in front of the resource with this key, if this client has a state of that
 * resource. `node`, `slot`: as in wake_front(). */
static void wake_key(struct rl_engine *engine, struct rl_arg key, unsigned node, uint16_t slot,
                     bool turn)
{
    struct rl_resource *resource = rl_resource_find(engine, key);

    if (resource != NULL)
        wake_front(engine, resource, node, slot, turn);
}

/* Processes the notification of a node that `key` has changed there. Wakes the lock in front of the
 * resource with this key. If the key is that of a slot, also wakes the lock in front of the
 * semaphore. An empty key means that any key may have changed: wakes all waiters that are in front.
 */
void rl_lock_wake(struct rl_engine *engine, unsigned node, struct rl_arg key, bool turn)
{
    struct rl_lock *next;
    struct rl_arg name;
    char semaphore[RL_SLOT_KEY_MAX];
    uint16_t slot;

    rl_probe_notification(engine->nodes[node].name, key.data, key.len);
    engine->stats.line_turns += turn;
    if (key.len != 0) {
        wake_key(engine, key, node, RL_SLOT_ANY, turn);
        if (rl_slot_of(key, &name, &slot))
            wake_key(engine, rl_slot_resource_key(semaphore, name), node, slot, turn);
        return;
    }
    for (struct rl_lock *lock = engine->locks; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->queue_entry.resource != NULL && rl_queue_is_in_front(lock))
            wake_front(engine, rl_queue_probed(lock), node, RL_SLOT_ANY, false);
    }
}

/* Frees what a lock has allocated, apart from the memory of struct rl_lock itself. The announcement
 * of the lock's end must have been taken. */
void rl_lock_dispose(struct rl_engine *engine, struct rl_lock *lock)
{
    RL_ASSERT(lock->pending.announcement.flags == 0);
    rl_seen_free(engine, lock);
    rl_lock_abandon_claim(lock);
}
