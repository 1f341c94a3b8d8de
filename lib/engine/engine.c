/* SPDX-License-Identifier: MIT
 * The engine of one shard: opening and closing, the tick, the inbox of the nodes, and the view of
 * the nodes that all leases of a tick read.
 *
 * The clocks are read at the start of a tick, into the view. Nodes report to the inbox
 * (common.inbox): votes, changes of their state, notifications, bytes that they have not decoded
 * yet. The function rl_engine_drain_all() takes these entries and passes them to the locks, the
 * fence records and the view. A tick also sends events to the nodes and locks whose timer has
 * ended. Requests are only queued at first: rl_engine_send() hands them to the transport after the
 * tick, and rl_engine_flush() also sets the timer for the next tick. News for the api layer is
 * added to the announcements, which the api layer takes. */
#include "engine/engine.h"

#include "engine/seen.h"
#include "engine/slot.h"
#include "platform/hash.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node is slow if its smoothed round trip and its longest recent one both exceed this multiple of
 * the smoothed one of the quorum-th fastest node, plus 1 ms. */
#define SLOW_FACTOR 4
/* Interval at which the view's round trips are computed again. */
#define TIMES_NS (100 * RL_MS)
/* Most additional readings of the wall clock when it seems to have been set. */
#define WALL_TRIES 3
/* If two readings of the wall clock differ by less than this in microseconds, the wall clock counts
 * as read at the same instant as the other clocks, which were read between the two. */
#define WALL_NEAR_US 1000
/* If wall clock minus boot clock has changed by less than this in microseconds since the last
 * reading, the wall clock was not set. */
#define WALL_SAME_US 100
/* The locks are not informed while the wall clock was set ahead by no more than this in
 * microseconds altogether, because no lock has a smaller limit (rl_lease_terms.wall_slack_us). */
#define WALL_CHECK_US 1000

/* Compares two uint64_t for qsort(), in ascending order. */
static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Computes the view's round trip and the set of slow nodes, from the round trips of each node. The
 * view's round trip is that of the quorum-th fastest node, because an attempt needs at
 * least that long. If fewer nodes have one, it is that of the slowest of these. If none has one, it
 * is 0, and the set of slow nodes stays as it is. */
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
        if (rl_detector_shorter_trip_ns(&engine->nodes[i].detector) > SLOW_FACTOR * trip_ns + RL_MS)
            slow |= RL_NODE(i);
    }
    engine->view.slow = slow;
}

/* Finds duplicates, which are nodes that lead to the same server: of several nodes with the same
 * run id, only the first may vote. Informs each node whether it is a duplicate, and sets
 * view.duplicate. */
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

/* Returns `set` with the one node of `bit` added (`on`) or removed. */
static rl_nodes set_bit(rl_nodes set, rl_nodes bit, bool on)
{
    return on ? set | bit : set & ~bit;
}

/* Returns why the votes of a node do not count (enum redlock_cause); REDLOCK_CAUSE_NONE: they
 * count. `up`: the node is connected and replies. */
static int cause_of(const struct rl_node *node, bool up)
{
    int cause = rl_connection_cause(&node->conn);

    if (rl_eligibility_is_duplicate(&node->eligibility))
        return REDLOCK_CAUSE_DUPLICATE;
    if (up)
        return rl_eligibility_cause(&node->eligibility);
    return cause != REDLOCK_CAUSE_NONE ? cause : REDLOCK_CAUSE_CONNECT;
}

/* Updates the bits and the cause that the view has for one node. A duplicate counts neither as up
 * nor as suspect. */
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
    engine->view.lines = set_bit(engine->view.lines, bit, up && rl_tracker_may_hear_turns(node));
    engine->view.suspect =
        set_bit(engine->view.suspect, bit, rl_detector_is_suspect(&node->detector) && !duplicate);
    engine->view.cause[node->index] = (uint8_t)cause_of(node, up);
}

/* Processes an entry CHANGED of the inbox, which says that the connection or the eligibility of
 * `node` has changed. Looks for duplicates if the node is connected, because its server may be
 * another one than before. Updates the view of all nodes and the fence records, and announces the
 * change. */
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
 * reference to the claim. A vote is ignored if its claim has no owner any more. A fenced vote (one
 * that carries a proposal) also shows the largest fencing token of its stripe, and the state of the
 * node's fence record. `reply`: the reply that the vote follows from; NULL: there is none. */
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
 * its own, so that the compiler keeps the variables of the frequent cases in registers. `now_ns`:
 * boot clock. */
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
        rl_lock_wake(engine, node, key, inbox->is_turn);
        break;
    case RL_INBOX_CHANGED:
        take_change(engine, &engine->nodes[rl_inbox_take_node(inbox, kind)]);
        break;
    case RL_INBOX_STEPPED: /* the server's clock has jumped: keys set before may expire early */
        rl_lock_invalidate(engine, RL_NODE(rl_inbox_take_node(inbox, kind)));
        break;
    default:
        /* The node's second connection, for notifications, has unread bytes. */
        RL_ASSERT(kind == RL_INBOX_PUSH_UNREAD);
        rl_tracker_next(&engine->nodes[rl_inbox_first(inbox, kind)], now_ns);
        break;
    }
}

/* Processes entries of the inbox until it is empty, in the order of their kinds. Nodes with unread
 * bytes decode one reply at a time, and the vote of each reply is processed before the next one is
 * decoded. */
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

/* Adds the counts of ended undos, which the nodes keep in the inbox, to the statistics, and sets
 * them to 0 there. */
static void count_undos(struct rl_engine *engine)
{
    uint64_t *undos = engine->common.inbox.undos;

    engine->stats.undone += undos[RL_UNDO_DONE];
    engine->stats.undo_expired += undos[RL_UNDO_EXPIRED];
    engine->stats.undo_dropped += undos[RL_UNDO_DROPPED];
    undos[RL_UNDO_DONE] = undos[RL_UNDO_EXPIRED] = undos[RL_UNDO_DROPPED] = 0;
}

void rl_engine_set_login(struct rl_engine *engine, const char *user, const char *password)
{
    engine->params.user = user;
    engine->params.password = password;
    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_node_spec *spec = &engine->params.specs[i];
        struct rl_node *node = &engine->nodes[i];
        if (spec->user != NULL || spec->password != NULL)
            continue; /* its own login */
        node->user = user;
        node->password = password;
        rl_tracker_login_changed(node, engine->view.now.boot_ns);
    }
}

/* Allocates the nodes and prepares them, so that the first tick opens their connections. Returns
 * REDLOCK_OK or ENOMEM. */
static int open_nodes(struct rl_engine *engine)
{
    const struct rl_engine_params *params = &engine->params;

    engine->nodes = rl_alloc(engine->mem, engine->count * sizeof *engine->nodes);
    if (engine->nodes == NULL)
        return REDLOCK_ENOMEM;
    for (unsigned i = 0; i < engine->count; i++) {
        const struct rl_node_spec *spec = &params->specs[i];
        struct rl_node *node = &engine->nodes[i];
        rl_node_init(node, &engine->common, (uint8_t)i);
        node->name = spec->name;
        node->user = spec->user;
        node->password = spec->password;
        node->db = spec->db;
        engine->node_hashes[i] =
            rl_hash_bytes(rl_node_spec_id(spec), strlen(rl_node_spec_id(spec)));
        rl_node_attest(node, spec->durable, spec->fresh);
        rl_node_start(node, engine->view.now.boot_ns);
        update_node(engine, node);
    }
    rl_engine_set_login(engine, params->user, params->password);
    engine->common.wake_ns = engine->view.now.boot_ns;
    return REDLOCK_OK;
}

/* Opens an engine: copies `params` and `env`, reads the clocks and prepares the nodes, which
 * connect with the first tick. Returns REDLOCK_OK or ENOMEM; on failure nothing is left to close.
 */
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
        .waiter_label = {params->owner, params->owner_len},
    };
    if (params->lines) /* a number that the scripts' numbers can express */
        engine->common.waiter = rl_random_u64(&engine->random) >> 12 | 1;
    engine->common.admission.quorum = engine->quorum;
    rl_engine_refresh(engine);
    engine->wall_seen_us = engine->view.wall_us;
    return open_nodes(engine);
}

/* Frees all memory of the engine. The announcements of nodes are dropped. Those of locks stay,
 * because they are stored in the locks. The sockets are closed already, or the caller closes them
 * afterwards. */
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

/* Ends all active locks: a held lock is released, and any other operation ends with ECLOSED. Sends
 * the releases and undos, without a wait for the replies. */
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

/* Ends all locks, closes the connections so that releases and undos are still delivered, and frees
 * all memory. */
void rl_engine_close(struct rl_engine *engine)
{
    rl_engine_end_locks(engine);
    for (unsigned i = 0; i < engine->count; i++)
        rl_node_close(&engine->nodes[i], REDLOCK_CAUSE_NONE, "client was closed", false,
                      engine->view.now.boot_ns);
    free_all(engine);
}

/* Frees all memory in a forked child and sends nothing. Adds an announcement with RL_FX_ENDED for
 * each active lock. */
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
        rl_seen_free(engine, lock);
        rl_announcements_add(&engine->announcements, lock, RL_FX_ENDED, REDLOCK_OK);
    }
    free_all(engine);
}

/* Returns the wall clock (`wall_us`, microseconds since 1970) minus the boot clock of `now`, in
 * microseconds. */
static int64_t wall_ahead_us(uint64_t wall_us, struct rl_now now)
{
    return (int64_t)wall_us - (int64_t)(now.boot_ns / RL_US);
}

/* Reads all clocks into the view.
 *
 * If the wall clock seems to have been set, reads the wall clock again after the other clocks. If
 * these two readings are not close to each other, reads the other clocks and then the wall clock
 * once more, up to WALL_TRIES times. Without this check, a process that was stopped between two
 * readings would take the stop for a jump of the wall clock. If all tries fail, view.wall_us keeps
 * its old value. */
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

/* Draws a new random word, for the leases and for the nodes. */
static void draw(struct rl_engine *engine)
{
    engine->view.random = rl_random_u64(&engine->random);
    engine->common.random = engine->view.random;
}

/* Reads the clocks into the view and draws a new random word. */
void rl_engine_refresh(struct rl_engine *engine)
{
    read_clocks(engine);
    draw(engine);
}

/* Does the work of rl_engine_refresh() without a reading: copies the clocks that the engine `other`
 * has just read, and draws a new random word. */
void rl_engine_refresh_from(struct rl_engine *engine, const struct rl_engine *other)
{
    engine->view.now = other->view.now;
    engine->view.wall_us = other->view.wall_us;
    draw(engine);
}

/* Sends a TICK to all locks if the wall clock was set ahead, by more than WALL_CHECK_US since the
 * last time. In that step each lock compares the jump with its own limit. */
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

/* Sends a TICK to each lock whose timer has ended. */
static void tick_locks(struct rl_engine *engine)
{
    struct rl_lock *lock;

    while ((lock = rl_heap_first(&engine->timers)) != NULL &&
           lock->due_ns <= engine->view.now.boot_ns)
        rl_lock_tick(engine, lock);
}

/* Lets the next locks of the queues begin. Then hands the output of all nodes to the transport,
 * until no node has any: an entry of the inbox may cause more requests. */
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

/* Does what is due at the time of the view: processes the inbox, lets the nodes and locks handle
 * their timers, and goes on with the fence records. If a node's timer has ended, first receives the
 * bytes that have arrived (env.catch_up()), because the reply that seems late may be among them. */
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
    /* A vote in this tick may have had the clocks read again: times_ns is later than now_ns then.
     */
    if (rl_sub_sat(now_ns, engine->times_ns) >= TIMES_NS)
        update_times(engine);
    review_wall(engine);
    tick_locks(engine);
    rl_records_tick(engine);
}

/* Returns the boot time of the earliest timer of a node; RL_NEVER: no node has a timer. */
static uint64_t nodes_due_ns(const struct rl_engine *engine)
{
    uint64_t due_ns = RL_NEVER;

    for (unsigned i = 0; i < engine->count; i++)
        due_ns = rl_min_u64(due_ns, rl_node_wake_ns(&engine->nodes[i]));
    return due_ns;
}

/* Returns whether common.wake_ns, the earliest timer of a node, is still right. After it was
 * computed, a node may have got an earlier timer. It is also wrong if there were no active locks
 * then and there are some now, because the nodes send heartbeats only while there are active locks.
 */
static bool is_wake_known(const struct rl_engine *engine)
{
    return engine->common.wake_known && engine->wake_active >= engine->common.active;
}

/* Computes common.wake_ns, the earliest timer of a node, and notes for is_wake_known() when it
 * holds. */
static void find_wake(struct rl_engine *engine)
{
    engine->common.wake_ns = nodes_due_ns(engine);
    engine->common.wake_known = true;
    engine->wake_active = engine->common.active;
}

/* Returns whether a timer of a node, of a lock or of the fence records ends at the boot time
 * `by_ns` or earlier. */
bool rl_engine_is_due(struct rl_engine *engine, uint64_t by_ns)
{
    const struct rl_lock *first = rl_heap_first(&engine->timers);

    if (engine->common.wake_ns <= by_ns)
        find_wake(engine); /* the stored time may be too early */
    return engine->common.wake_ns <= by_ns || (first != NULL && first->due_ns <= by_ns) ||
           rl_records_wake_ns(engine) <= by_ns;
}

/* Processes the inbox, sends what is queued, updates the statistics of undos, and has the next tick
 * called when the first timer of a node, of a lock or of the fence records ends. */
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

/* Sets those terms of a lease that are the same for all locks of the engine. */
void rl_engine_set_terms(const struct rl_engine *engine, struct rl_lease_terms *terms)
{
    terms->nodes = (uint8_t)engine->count;
    terms->quorum = (uint8_t)engine->quorum;
    terms->backoff = engine->params.backoff;
}

/* Returns whether a quorum of nodes is connected and greeted, can be asked now, and is eligible. */
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

/* Returns whether a longer wait does not help the undos of this node, nor the requests to leave a
 * line. So it is if there are none; if the server has stopped replying but has received all that
 * was sent, and will execute them although the connection ends; or if the server cannot be reached.
 */
static bool node_is_settled(const struct rl_node *node)
{
    uint64_t reach =
        rl_transport_reach(&node->common->transport, node->index, rl_pipeline_unread(&node->pipe));

    if (rl_node_undos_pending(node) == 0 && !rl_pipeline_leaves_line(&node->pipe))
        return true;
    if (rl_connection_is_ready(&node->conn))
        return rl_detector_is_suspect(&node->detector) &&
               rl_pipeline_output(&node->pipe).len == 0 &&
               rl_pipeline_unread_undos(&node->pipe) <= reach &&
               rl_transport_held(&node->common->transport, node->index) == 0;
    /* The undos may also be in the pipeline of a connection that is being made. One failed attempt
     * to connect may mean that the server is only busy, two in a row mean that it cannot be
     * reached.
     */
    return rl_connection_has_failed_twice(&node->conn);
}

/* Returns whether a key may be left on some node because there was no memory to keep its undo. */
bool rl_engine_has_dropped(const struct rl_engine *engine)
{
    bool dropped = false;

    for (unsigned i = 0; i < engine->count; i++)
        dropped =
            dropped || rl_undos_has_dropped(&engine->nodes[i].undos, engine->view.now.boot_ns);
    return dropped;
}

/* Returns whether no lock is active, and no undo and no request to leave a line waits for a server
 * that can be reached. */
bool rl_engine_is_settled(const struct rl_engine *engine)
{
    bool settled = engine->locks == NULL;

    for (unsigned i = 0; i < engine->count; i++)
        settled = settled && node_is_settled(&engine->nodes[i]);
    return settled;
}
