/* SPDX-License-Identifier: MIT
 * The engine: opening and closing, the tick, the inbox of the nodes, and the view of the nodes that
 * all leases of a tick read. The clocks are read at the start of a tick. A tick decides; what it
 * has decided is sent afterwards. */
#include "engine/engine.h"

#include "engine/slot.h"
#include "platform/hash.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node is slow if its round trip exceeds this multiple of the quorum-th fastest one, plus 1 ms.
 */
#define SLOW_FACTOR 4
/* Interval at which the view's round trips are computed again. */
#define TIMES_NS (100 * RL_MS)
/* Most additional readings of the wall clock when it seems to have been set. */
#define WALL_TRIES 3
/* If two readings of the wall clock differ by less than this in microseconds, they count as
 * simultaneous with the other clocks, which were read in between. */
#define WALL_NEAR_US 1000
/* A difference to the last reading below this in microseconds is no jump of the wall clock. */
#define WALL_SAME_US 100
/* Jumps of the wall clock that add up to no more than this in microseconds are not checked: no lock
 * has a smaller wall_slack_us. */
#define WALL_CHECK_US 1000
/* A server reads up to this number of bytes at once. It executes them all, even if the connection
 * has ended. */
#define READ_AT_ONCE ((uint64_t)16 << 10)

/* Compares two uint64_t for qsort(). */
static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Computes the view's round trip, which is that of the quorum-th fastest node because an attempt
 * needs at least that long, and the set of slow nodes. */
static void update_times(struct rl_engine *engine)
{
    uint64_t list[RL_NODES_MAX];
    unsigned count = 0;
    rl_nodes slow = 0;

    engine->times_ns = engine->view.now.boot_ns;
    engine->view.round_trip_ns = 0;
    for (unsigned i = 0; i < engine->count; i++) {
        uint64_t srtt_ns = rl_detector_srtt_ns(&engine->nodes[i].detector);
        if (srtt_ns != 0)
            list[count++] = srtt_ns;
    }
    if (count == 0)
        return;
    qsort(list, count, sizeof list[0], compare_u64);
    uint64_t trip_ns = list[count < engine->quorum ? count - 1 : engine->quorum - 1];
    engine->view.round_trip_ns = trip_ns;
    for (unsigned i = 0; i < engine->count; i++) {
        if (rl_detector_srtt_ns(&engine->nodes[i].detector) > SLOW_FACTOR * trip_ns + RL_MS)
            slow |= RL_NODE(i);
    }
    engine->view.slow = slow;
}

/* Marks duplicates: of two nodes with one run_id, which are one server, only the first counts. */
static void find_duplicates(struct rl_engine *engine)
{
    engine->view.duplicate = false;
    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_node *node = &engine->nodes[i], *first = NULL;
        const char *run_id = rl_eligibility_run_id(&node->eligibility);
        for (unsigned j = 0; j < i && first == NULL; j++) {
            const struct rl_node *other = &engine->nodes[j];
            const char *other_id = rl_eligibility_run_id(&other->eligibility);
            if (other_id[0] != '\0' && strcmp(other_id, run_id) == 0)
                first = other;
        }
        rl_node_set_duplicate(&engine->nodes[i], first);
        engine->view.duplicate = engine->view.duplicate || first != NULL;
    }
}

/* Returns `set` with the bits of `bit` set or cleared. */
static rl_nodes set_bit(rl_nodes set, rl_nodes bit, bool on)
{
    return on ? set | bit : set & ~bit;
}

/* Updates what the view says about one node. */
static void update_node(struct rl_engine *engine, struct rl_node *node)
{
    rl_nodes bit = RL_NODE(node->index);
    const struct rl_eligibility *eligibility = &node->eligibility;
    bool duplicate = rl_eligibility_is_duplicate(eligibility);
    bool up = rl_node_is_up(node) && !duplicate;

    engine->view.up = set_bit(engine->view.up, bit, up);
    engine->view.eligible =
        set_bit(engine->view.eligible, bit, rl_eligibility_may_grant(eligibility));
    engine->view.excluded =
        set_bit(engine->view.excluded, bit, !rl_eligibility_may_extend(eligibility));
    engine->view.notifying = set_bit(engine->view.notifying, bit, up && rl_tracker_is_on(node));
    engine->view.suspect =
        set_bit(engine->view.suspect, bit, rl_detector_is_suspect(&node->detector) && !duplicate);
    engine->view.cause[node->index] = duplicate
                                          ? REDLOCK_CAUSE_DUPLICATE
                                          : (uint8_t)(up ? rl_eligibility_cause(eligibility)
                                                         : (rl_connection_cause(&node->conn) != 0
                                                                ? rl_connection_cause(&node->conn)
                                                                : REDLOCK_CAUSE_CONNECT));
}

/* Updates the view and the fence records after a change of this node, and announces the change. */
static void take_change(struct rl_engine *engine, struct rl_node *node)
{
    if (rl_connection_is_ready(&node->conn))
        find_duplicates(engine);
    for (unsigned i = 0; i < engine->count; i++)
        update_node(engine, &engine->nodes[i]);
    update_times(engine);
    rl_records_changed(engine, node);
    rl_announcements_add_node(&engine->announcements, node->index);
}

/* Passes a vote to the owner of its claim, a lock or the fence records, and drops the inbox's
 * reference to the claim. A claim without an owner gets no votes. */
static inline void take_vote(struct rl_engine *engine, const struct rl_inbox_vote *vote,
                             const struct rl_reply *reply)
{
    struct rl_claim *claim = vote->claim;
    const struct rl_ballot *ballot = &vote->ballot;

    if (claim->owner != NULL && claim->is_record) {
        rl_records_vote(engine, ballot, reply);
    } else if (claim->owner != NULL) {
        if (claim->fenced) {
            uint64_t *hint = &engine->records->hints[claim->stripe];
            *hint = rl_max_u64(*hint, ballot->register_value);
            rl_records_note(engine, ballot);
        }
        rl_lock_vote(engine, claim->owner, ballot, reply);
    }
    rl_claim_drop(claim);
}

/* Processes the first entry of the inbox, if it is neither a reply nor unread bytes. A function of
 * its own, so that the compiler keeps the variables of the frequent cases in registers. */
__attribute__((noinline)) static void take_other(struct rl_engine *engine, uint64_t now_ns)
{
    struct rl_inbox *inbox = &engine->common.inbox;
    enum rl_inbox_kind kind = (enum rl_inbox_kind)__builtin_ctz(inbox->waiting);
    struct rl_inbox_vote vote;
    struct rl_arg key;
    unsigned node;

    switch (kind) {
    case RL_INBOX_VOTES:
        vote = rl_inbox_take_vote(inbox);
        take_vote(engine, &vote, NULL);
        break;
    case RL_INBOX_NOTIFIED:
        node = rl_inbox_take_key(inbox, &key);
        rl_lock_wake(engine, node, key);
        break;
    case RL_INBOX_CHANGED:
        take_change(engine, &engine->nodes[rl_inbox_take_node(inbox, kind)]);
        break;
    case RL_INBOX_STEPPED:
        rl_lock_invalidate(engine, RL_NODE(rl_inbox_take_node(inbox, kind)));
        break;
    default:
        RL_ASSERT(kind == RL_INBOX_PUSH_UNREAD);
        rl_tracker_next(&engine->nodes[rl_inbox_first(inbox, kind)], now_ns);
        break;
    }
}

void rl_engine_drain_all(struct rl_engine *engine)
{
    struct rl_inbox *inbox = &engine->common.inbox;
    const uint64_t now_ns = engine->view.now.boot_ns;

    while (inbox->waiting != 0) {
        if (rl_inbox_is_first(inbox, RL_INBOX_REPLIED))
            take_vote(engine, rl_inbox_take_replied(inbox), inbox->reply);
        else if (rl_inbox_is_first(inbox, RL_INBOX_UNREAD))
            rl_node_next(&engine->nodes[rl_inbox_first(inbox, RL_INBOX_UNREAD)], now_ns);
        else
            take_other(engine, now_ns);
    }
}

/* Moves the inbox's counters of ended undos to the statistics. */
static void count_undos(struct rl_engine *engine)
{
    uint64_t *undos = engine->common.inbox.undos;

    engine->stats.undone += undos[RL_UNDO_DONE];
    engine->stats.undo_expired += undos[RL_UNDO_EXPIRED];
    engine->stats.undo_dropped += undos[RL_UNDO_DROPPED];
    undos[RL_UNDO_DONE] = undos[RL_UNDO_EXPIRED] = undos[RL_UNDO_DROPPED] = 0;
}

/* Allocates the nodes and starts their connections. Returns REDLOCK_OK or ENOMEM. */
static int open_nodes(struct rl_engine *engine)
{
    const struct rl_engine_params *params = &engine->params;

    engine->nodes = rl_alloc(engine->mem, engine->count * sizeof *engine->nodes);
    if (engine->nodes == NULL)
        return REDLOCK_ENOMEM;
    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_node_spec *spec = &params->specs[i];
        struct rl_node *node = &engine->nodes[i];
        bool own = spec->user != NULL || spec->password != NULL;
        rl_node_init(node, &engine->common, (uint8_t)i);
        node->name = spec->name;
        node->user = own ? spec->user : params->user;
        node->password = own ? spec->password : params->password;
        node->db = spec->db;
        engine->node_hashes[i] =
            rl_hash_bytes(rl_node_spec_id(spec), strlen(rl_node_spec_id(spec)));
        rl_node_attest(node, spec->durable, spec->fresh);
        rl_node_start(node, engine->view.now.boot_ns);
        update_node(engine, node);
    }
    engine->common.wake_ns = engine->view.now.boot_ns;
    return REDLOCK_OK;
}

int rl_engine_open(struct rl_engine *engine, const struct rl_engine_params *params,
                   const struct rl_env *env)
{
    memset(engine, 0, sizeof *engine);
    engine->mem = params->mem;
    engine->log = params->log;
    engine->params = *params;
    engine->env = *env;
    engine->count = params->nodes;
    engine->quorum = params->nodes / 2 + 1;
    engine->timers.mem = params->mem;
    rl_random_seed(&engine->random, env->entropy);
    engine->common = (struct rl_node_common){
        .mem = params->mem,
        .log = params->log,
        .clocks = {env->now, env->ctx},
        .inbox = {.mem = params->mem},
        .text = &engine->text,
        .transport = env->transport,
        .fence_record = params->fence_record,
        .fence_config = params->fence_config,
        .fence_run_bound = params->fence_run_bound,
        .admission = params->admission,
        .connect_timeout_ns = params->connect_timeout_ns,
        .node_timeout_ns = params->node_timeout_ns,
        .heartbeat_ns = params->heartbeat_ns,
        .notifications = params->notifications,
    };
    engine->common.admission.quorum = engine->quorum;
    rl_engine_refresh(engine);
    engine->wall_seen_us = engine->view.wall_us;
    return open_nodes(engine);
}

/* Frees all memory but the announcements of locks. The sockets are closed already, or are closed by
 * the caller. */
static void free_all(struct rl_engine *engine)
{
    for (unsigned i = 0; i < engine->count; i++) {
        rl_connection_abandon(&engine->nodes[i].conn);
        rl_node_free(&engine->nodes[i]);
    }
    rl_inbox_free(&engine->common.inbox);
    rl_announcements_drop_nodes(&engine->announcements);
    rl_free(engine->mem, engine->nodes);
    engine->nodes = NULL;
    engine->count = 0;
    rl_heap_free(&engine->timers);
    rl_resources_free(engine);
    rl_free(engine->mem, engine->records);
    engine->records = NULL;
    rl_encoded_free(engine->mem, &engine->common.cache.encoded);
}

void rl_engine_end_locks(struct rl_engine *engine)
{
    rl_engine_refresh(engine);
    while (engine->locks != NULL) {
        struct rl_lock *lock = engine->locks;
        bool held = rl_lease_is_held(&lock->lease);
        rl_lock_event(engine, lock, held ? RL_EVENT_RELEASE : RL_EVENT_CANCEL, 0, REDLOCK_ECLOSED);
        if (engine->locks == lock) /* the release is queued, and its result is not awaited */
            rl_lock_event(engine, lock, RL_EVENT_CANCEL, 0, REDLOCK_ECLOSED);
    }
    rl_engine_flush(engine);
}

void rl_engine_close(struct rl_engine *engine)
{
    rl_engine_end_locks(engine);
    for (unsigned i = 0; i < engine->count; i++)
        rl_node_close(&engine->nodes[i], REDLOCK_CAUSE_NONE, "client was closed", false,
                      engine->view.now.boot_ns);
    free_all(engine);
}

void rl_engine_abandon(struct rl_engine *engine)
{
    while (engine->locks != NULL) {
        struct rl_lock *lock = engine->locks;
        engine->locks = lock->next;
        lock->active = false;
        rl_queue_abandon(engine, lock);
        if (lock->claim != NULL)
            lock->claim->owner = NULL;
        rl_slot_forget(engine, lock);
        rl_lock_free_seen(engine, lock);
        rl_announcements_add(&engine->announcements, lock, RL_FX_ENDED, REDLOCK_OK);
    }
    free_all(engine);
}

/* Returns the wall clock minus the boot clock, in microseconds. */
static int64_t wall_ahead_us(uint64_t wall_us, struct rl_now now)
{
    return (int64_t)wall_us - (int64_t)(now.boot_ns / RL_US);
}

/* Reads all clocks into the view. If the wall clock seems to have been set, reads it again before
 * and after the other clocks. Otherwise a process that was stopped between two readings would take
 * that for a jump. Keeps the old wall clock if no two readings are close to each other. */
static void read_clocks(struct rl_engine *engine)
{
    const struct rl_env *env = &engine->env;
    uint64_t before_us = env->wall_us(env->ctx);

    engine->view.now = env->now(env->ctx);
    int64_t moved_us = wall_ahead_us(before_us, engine->view.now) - engine->view.wall_us;
    if (moved_us > -WALL_SAME_US && moved_us < WALL_SAME_US)
        return;
    for (unsigned tries = 0; tries < WALL_TRIES; tries++) {
        uint64_t after_us = env->wall_us(env->ctx);
        if (after_us >= before_us && after_us - before_us < WALL_NEAR_US) {
            engine->view.wall_us = wall_ahead_us(before_us, engine->view.now);
            return;
        }
        before_us = after_us;
        engine->view.now = env->now(env->ctx);
    }
}

/* Draws the random word of a tick. */
static void draw(struct rl_engine *engine)
{
    engine->view.random = rl_random_u64(&engine->random);
    engine->common.random = engine->view.random;
}

void rl_engine_refresh(struct rl_engine *engine)
{
    read_clocks(engine);
    draw(engine);
}

void rl_engine_refresh_from(struct rl_engine *engine, const struct rl_engine *other)
{
    engine->view.now = other->view.now;
    engine->view.wall_us = other->view.wall_us;
    draw(engine);
}

/* Sends a TICK to all locks if the wall clock was set ahead, because each lock has its own limit
 * for such a jump. */
static void review_wall(struct rl_engine *engine)
{
    int64_t ahead_us = engine->view.wall_us - engine->wall_seen_us;
    struct rl_lock *next;

    if (ahead_us < 0 || ahead_us > WALL_CHECK_US)
        engine->wall_seen_us = engine->view.wall_us;
    for (struct rl_lock *lock = engine->locks; ahead_us > WALL_CHECK_US && lock != NULL;
         lock = next) {
        next = lock->next;
        rl_lock_tick(engine, lock);
    }
}

/* Sends a TICK to each lock whose time has come. */
static void tick_locks(struct rl_engine *engine)
{
    struct rl_lock *lock;

    while ((lock = rl_heap_first(&engine->timers)) != NULL &&
           lock->due_ns <= engine->view.now.boot_ns)
        rl_lock_tick(engine, lock);
}

void rl_engine_send(struct rl_engine *engine)
{
    uint64_t now_ns = engine->view.now.boot_ns;
    rl_nodes *dirty = &engine->common.inbox.dirty;

    rl_resources_turn(engine);
    while (*dirty != 0) {
        unsigned node = (unsigned)__builtin_ctz(*dirty);
        *dirty &= *dirty - 1;
        rl_node_flush(&engine->nodes[node], now_ns);
        rl_engine_drain(engine);
    }
}

void rl_engine_tick(struct rl_engine *engine)
{
    uint64_t now_ns = engine->view.now.boot_ns;

    rl_engine_drain(engine);
    if (engine->common.wake_ns <= now_ns) {
        engine->common.wake_known = false;
        engine->env.catch_up(engine->env.ctx);
        for (unsigned i = 0; i < engine->count; i++) {
            rl_node_tick(&engine->nodes[i], now_ns);
            rl_engine_drain(engine);
        }
    }
    if (now_ns - engine->times_ns >= TIMES_NS)
        update_times(engine);
    review_wall(engine);
    tick_locks(engine);
    rl_records_tick(engine);
}

/* Returns the earliest boot time at which a node has something to do; RL_NEVER: none has. */
static uint64_t nodes_due_ns(const struct rl_engine *engine)
{
    uint64_t due_ns = RL_NEVER;

    for (unsigned i = 0; i < engine->count; i++)
        due_ns = rl_min_u64(due_ns, rl_node_wake_ns(&engine->nodes[i]));
    return due_ns;
}

/* Returns whether common.wake_ns still holds. It does not if it was computed without active locks
 * and there are some now: heartbeats are needed only while there are. */
static bool is_wake_known(const struct rl_engine *engine)
{
    return engine->common.wake_known && engine->wake_active >= engine->common.active;
}

/* Computes common.wake_ns. */
static void find_wake(struct rl_engine *engine)
{
    engine->common.wake_ns = nodes_due_ns(engine);
    engine->common.wake_known = true;
    engine->wake_active = engine->common.active;
}

bool rl_engine_is_due(struct rl_engine *engine, uint64_t by_ns)
{
    const struct rl_lock *first = rl_heap_first(&engine->timers);

    if (engine->common.wake_ns <= by_ns)
        find_wake(engine); /* the stored time may be too early */
    return engine->common.wake_ns <= by_ns || (first != NULL && first->due_ns <= by_ns);
}

void rl_engine_flush(struct rl_engine *engine)
{
    rl_engine_drain(engine);
    rl_engine_send(engine);
    count_undos(engine);
    if (!is_wake_known(engine))
        find_wake(engine);
    const struct rl_lock *first = rl_heap_first(&engine->timers);
    uint64_t due_ns = first != NULL ? first->due_ns : RL_NEVER;
    due_ns = rl_min_u64(due_ns, rl_records_wake_ns(engine));
    engine->env.wake_at(engine->env.ctx, rl_min_u64(engine->common.wake_ns, due_ns));
}

void rl_engine_set_terms(const struct rl_engine *engine, struct rl_lease_terms *terms)
{
    terms->nodes = (uint8_t)engine->count;
    terms->quorum = (uint8_t)engine->quorum;
    terms->backoff = engine->params.backoff;
}

bool rl_engine_is_ready(const struct rl_engine *engine)
{
    unsigned ready = 0;

    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_node *node = &engine->nodes[i];
        ready += rl_connection_is_ready(&node->conn) &&
                 (engine->view.eligible & engine->view.up & RL_NODE(i)) != 0;
    }
    return ready >= engine->quorum;
}

/* Returns whether the node's undos need no more time: none is pending, or its server has stopped
 * replying but has received them, or its server cannot be reached. */
static bool node_is_settled(const struct rl_node *node)
{
    if (rl_node_undos_pending(node) == 0)
        return true;
    if (rl_connection_is_ready(&node->conn))
        return rl_detector_is_suspect(&node->detector) &&
               rl_pipeline_output(&node->pipe).len == 0 &&
               rl_pipeline_unread(&node->pipe) <= READ_AT_ONCE;
    /* The pipeline of a connection that is being made may contain undos, too. A server that was
     * only too busy to reply is known to be down when a second attempt to connect has failed. */
    return rl_connection_has_failed_twice(&node->conn);
}

bool rl_engine_has_dropped(const struct rl_engine *engine)
{
    bool dropped = false;

    for (unsigned i = 0; i < engine->count; i++)
        dropped =
            dropped || rl_undos_has_dropped(&engine->nodes[i].undos, engine->view.now.boot_ns);
    return dropped;
}

bool rl_engine_is_settled(const struct rl_engine *engine)
{
    bool settled = engine->locks == NULL;

    for (unsigned i = 0; i < engine->count; i++)
        settled = settled && node_is_settled(&engine->nodes[i]);
    return settled;
}
