/* SPDX-License-Identifier: MIT
 * How a waiting lease uses the line of its resource; lease_line.h explains the line.
 *
 * A waiter has one request that it waits for in flight at most (struct rl_line). A notification
 * that comes meanwhile is kept and acted on after the reply, because the server may have sent it
 * after it had executed the request. Timers make up for each message that can be lost. */
#include "core/lease_line.h"

#include "core/contention.h"
#include "core/lease_head.h"
#include "core/lease_hold.h"
#include "redlock/redlock.h"

/* How often a waiter that is no head looks at the line: between these times. */
#define LOOK_MIN_NS (750 * RL_MS)
#define LOOK_MAX_NS (1250 * RL_MS)
/* How long a node that did not reply in time is not asked again. */
#define SILENT_NS RL_SECOND
/* How long a node is not asked again after it has refused. */
#define REFUSED_NS (10 * RL_SECOND)
/* A head that makes no attempt although the lock is free is removed after three round trips and
 * this time. The round trip is the longer of two: the one in the head's record, at most
 * TRIP_MAX_NS, and that of this client. */
#define IDLE_HEAD_NS (10 * RL_MS)
#define TRIP_MAX_NS  (250 * RL_MS)
/* The same while the lock is held: a head then looks or asks all nodes every RL_HEAD_MAX_NS. */
#define IDLE_HELD_NS (700 * RL_MS)

/* Returns the node whose line the lease can use: the preferred one of those that can be asked and
 * whose votes count. Nodes that are slow or avoided are left out, except the one in whose line the
 * lease is. A lease in the line of another node moves to the one that is returned, so that all
 * contenders that can use the same node stand in one line. 0: none. */
static rl_nodes usable(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->lines & view->up & view->eligible;
    rl_nodes current = fit & lease->line.node;

    if (lease->contention == NULL || rl_attempt_spare_ns(lease, view) == 0)
        return 0;
    if (rl_line_memory_of(lease)->avoid_until_ns > view->now.boot_ns)
        fit &= ~rl_line_memory_of(lease)->avoid;
    return rl_contention_preferred(lease->contention, current | (fit & ~view->slow));
}

/* Has the locks of this client on the resource avoid the line of this node for a time. */
static void avoid(struct rl_lease *lease, rl_nodes node, uint64_t time_ns,
                  const struct rl_view *view)
{
    struct rl_line_memory *memory = rl_line_memory_of(lease);
    uint64_t now_ns = view->now.boot_ns;

    memory->avoid = memory->avoid_until_ns > now_ns ? memory->avoid | node : node;
    memory->avoid_until_ns = rl_max_u64(memory->avoid_until_ns, rl_add_sat(now_ns, time_ns));
}

/* Returns whether the key on the node of the line does not show whether the lock is held. */
bool rl_line_is_stale(const struct rl_lease *lease)
{
    return (rl_line_memory_of(lease)->stale & lease->line.node) != 0;
}

/* Notes whether the key on the node of the line shows whether the lock is held. A semaphore's line
 * says nothing about its slots. */
static void note_stale(struct rl_lease *lease, bool stale)
{
    struct rl_line_memory *memory = rl_line_memory_of(lease);
    rl_nodes node = rl_permit_is(lease) ? 0 : lease->line.node;

    memory->stale = stale ? memory->stale | node : memory->stale & ~node;
}

/* Returns whether the lease uses a line: it has asked to join one. */
bool rl_line_is_in(const struct rl_lease *lease)
{
    return lease->line.node != 0;
}

/* Returns whether the lease must make no attempt now: it is in a line and no head. A search for a
 * permit that has begun goes on. */
bool rl_line_blocks(const struct rl_lease *lease)
{
    bool searches = rl_permit_is(lease) && lease->permit->searching;

    return rl_line_is_in(lease) && !lease->line.head && !searches;
}

/* Sets the time of the next TICK: a random one between the bounds, and early enough for a last
 * attempt within the wait budget. */
void rl_line_plan(struct rl_lease *lease, uint64_t min_ns, uint64_t max_ns,
                  const struct rl_view *view)
{
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts);
    uint64_t delay_ns = min_ns + random % (max_ns - min_ns + 1);

    lease->next = rl_later(view->now, rl_min_u64(delay_ns, rl_attempt_spare_ns(lease, view)));
}

/* Has the engine send the request `verb` to the lines of these nodes, for the key that the lease
 * waits for. */
static void send(const struct rl_lease *lease, enum rl_verb verb, rl_nodes nodes,
                 struct rl_effects *fx)
{
    fx->line = (uint8_t)verb;
    fx->line_node = nodes;
    fx->line_key = lease->wait.key;
}

/* Sends the request `verb` to the line. A reply is expected before lease->next. */
static void ask(struct rl_lease *lease, enum rl_verb verb, const struct rl_view *view,
                struct rl_effects *fx)
{
    struct rl_line_memory *memory = rl_line_memory_of(lease);
    struct rl_line *line = &lease->line;
    uint64_t trips_ns = 4 * view->round_trip_ns;

    rl_line_plan(lease, RL_HEAD_MIN_NS + trips_ns, RL_HEAD_MAX_NS + trips_ns, view);
    send(lease, verb, line->node, fx);
    if ((memory->joined & line->node) == 0)
        fx->counts |= RL_COUNT_JOIN;
    memory->joined |= line->node;
    memory->former &= ~line->node;
    memory->waiter_salt = lease->salt;
    line->asking = true;
    line->woken = line->changed = line->pauses = line->expires = false;
}

/* Has the attempt that begins now leave the line if the node of the line grants. Does nothing if
 * the lease is not in a line, or if that node is not asked now. */
void rl_line_leave_if_granted(struct rl_lease *lease, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;

    line->out = RL_LINE_OUT_NONE;
    if ((fx->request & line->node) == 0)
        return;
    line->out = RL_LINE_OUT_OPEN;
    send(lease, RL_VERB_LINE_SERVED, line->node, fx);
}

/* Returns whether the records of this client in lines are those of this lease, or of one that has
 * ended: no other lock of the client on the resource has joined a line since. */
static bool owns_records(const struct rl_lease *lease)
{
    uint64_t salt = rl_line_memory_of(lease)->waiter_salt;

    return salt == lease->salt || salt == 0;
}

/* Leaves all lines that may have a record of this client, unless another of its locks on the
 * resource has joined one since. With `again`, the end of the call leaves the same lines again. */
static void leave(struct rl_lease *lease, bool again, struct rl_effects *fx)
{
    struct rl_line_memory *memory = rl_line_memory_of(lease);

    lease->line = (struct rl_line){0};
    if (!owns_records(lease) || memory->joined == 0)
        return;
    send(lease, RL_VERB_LINE_LEAVE, memory->joined, fx);
    memory->former = 0;
    if (!again)
        memory->joined = 0;
}

/* Leaves the lines after an attempt that has won, except the line that LINE_SERVED has left. If
 * LINE_SERVED has not left it, the node of the line was not asked, or has the key of another
 * client, which has ended or ends soon: then its key does not show whether the lock is held
 * (stale). */
static void leave_as_holder(struct rl_lease *lease, struct rl_effects *fx)
{
    bool left = lease->line.out == RL_LINE_OUT_LEFT;

    note_stale(lease, !left);
    if (left && owns_records(lease))
        rl_line_memory_of(lease)->joined &= ~lease->line.node;
    leave(lease, false, fx);
}

/* Returns whether LINE_SERVED has left the line although the attempt was not won: the node of the
 * line has granted it. Without a reply yet, returns whether that node may have granted. */
static bool left_without_winning(const struct rl_lease *lease)
{
    const struct rl_line *line = &lease->line;

    return line->front ||
           (line->out == RL_LINE_OUT_OPEN && (lease->round.denied & line->node) == 0);
}

/* Moves the lease to the line of `node`. Notes the lines that are to be left when that node has
 * replied: that which it was in, unless its node cannot be asked, and those of less preferred
 * nodes, to which it does not come back. */
static void move_to(struct rl_lease *lease, rl_nodes node, const struct rl_view *view)
{
    struct rl_line_memory *memory = rl_line_memory_of(lease);

    memory->former |= lease->line.node & view->up;
    for (rl_nodes rest = memory->joined & ~node; rest != 0; rest &= rest - 1) {
        rl_nodes other = rest & -rest;
        if (rl_contention_preferred(lease->contention, other | node) == node)
            memory->former |= other;
    }
    lease->line = (struct rl_line){.node = node};
}

/* Joins the line, or looks at it again, before the first attempt of a call or after a denied one.
 * A head whose attempt got the vote of the node of the line has left it; without a majority it
 * joins in front. A head that has searched for a permit stays a head. Returns false if no line can
 * be used. */
bool rl_line_enter(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes node = usable(lease, view);
    struct rl_line *line = &lease->line;

    if (node == 0) {
        if (rl_attempt_spare_ns(lease, view) != 0) {
            rl_line_leave(lease, fx);
            fx->counts |= lease->attempts > 0 ? RL_COUNT_ALONE : 0;
        }
        *line = (struct rl_line){0};
        return false;
    }
    bool left = line->node == node && left_without_winning(lease);
    if (rl_permit_is(lease) && line->head && line->node == node && line->out != RL_LINE_OUT_LEFT)
        return true;
    if (line->node != node)
        move_to(lease, node, view);
    line->out = RL_LINE_OUT_NONE;
    line->front = false;
    if (lease->state != RL_STATE_WAITING) {
        rl_round_open(&lease->round, RL_VERB_ACQUIRE, 0, ~view->eligible, view);
        rl_lease_move(lease, RL_STATE_WAITING);
        lease->status = REDLOCK_ECONTENDED;
    }
    fx->track |= node;
    ask(lease, left ? RL_VERB_LINE_FRONT : RL_VERB_LINE_JOIN, view, fx);
    /* If a quorum has denied, others hold the lock, and the node of the line lacks their key. */
    if (left && rl_nodes_count(lease->round.denied) >= lease->round.quorum)
        note_stale(lease, true);
    return true;
}

/* Asks the line how many wait there, with a request to leave it, which does nothing else if this
 * client is not in it. Does nothing if no line can be used. */
void rl_line_count_waiters(struct rl_lease *lease, const struct rl_view *view,
                           struct rl_effects *fx)
{
    rl_nodes node = usable(lease, view);

    if (node == 0)
        return;
    send(lease, RL_VERB_LINE_LEAVE, node, fx);
}

/* Leaves all lines, and waits without one. The requests may be lost, because an attempt has failed
 * for another reason than a denial, so the end of the call leaves the same lines again. A lock of
 * several keys may wait for another key from now on, so it leaves them now, also if it has lost its
 * place. */
void rl_line_leave(struct rl_lease *lease, struct rl_effects *fx)
{
    bool several = lease->memories != NULL;

    if (lease->contention == NULL)
        return;
    if ((lease->line.node | rl_line_memory_of(lease)->former) != 0 || several)
        leave(lease, !several, fx);
}

/* Leaves the line of the present key. The reply leads to the line of the other key: a lock of
 * several keys stands in one line at a time, so that no two of them wait for each other. */
void rl_line_move(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    ask(lease, RL_VERB_LINE_LEAVE, view, fx);
    fx->line_node = rl_line_memory_of(lease)->joined;
    lease->line.moves = true;
}

/* Returns whether the ballot comes from a reply of the server. */
static bool is_reply(const struct rl_ballot *ballot)
{
    return ballot->rtt_us != 0; /* measured with each reply */
}

/* Notes which head the reply names. Returns how long that head has made no request, as far as this
 * client knows, in nanoseconds. */
static uint64_t idle_time_ns(struct rl_line *line, const struct rl_line_reply *reply,
                             const struct rl_view *view)
{
    if (line->idle_head != reply->head || line->idle_beat != reply->head_beat) {
        line->idle_head = reply->head;
        line->idle_beat = reply->head_beat;
        line->idle_since_ns = view->now.boot_ns;
    }
    return rl_sub_sat(view->now.boot_ns, line->idle_since_ns);
}

/* Processes the reply to a look of a waiter that is no head. Has a head removed that has sent no
 * request for too long: it has ended or stands still. If the lock is free, that is a few round
 * trips, and the second waiter looks again by then. A semaphore never counts as free. */
static void look(struct rl_lease *lease, const struct rl_line_reply *reply,
                 const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    bool is_free =
        !reply->exists && reply->place == 2 && !rl_line_is_stale(lease) && !rl_permit_is(lease);
    uint64_t trip_ns = rl_min_u64(reply->head_trip_us, TRIP_MAX_NS / RL_US) * RL_US;
    uint64_t patience_ns =
        3 * rl_max_u64(trip_ns, view->round_trip_ns) + (is_free ? IDLE_HEAD_NS : IDLE_HELD_NS);
    uint64_t idle_ns = idle_time_ns(line, reply, view);

    rl_line_plan(lease, LOOK_MIN_NS, LOOK_MAX_NS, view);
    if (rl_permit_is(lease))
        rl_permit_stand_by(lease);
    if (line->woken) {
        ask(lease, RL_VERB_LINE_JOIN, view, fx);
    } else if (idle_ns >= patience_ns && reply->head != 0) {
        fx->line_victim = reply->head;
        fx->line_victim_beat = reply->head_beat;
        ask(lease, RL_VERB_LINE_DROP, view, fx);
    } else if (is_free && reply->head != 0) {
        uint64_t left_ns = patience_ns - idle_ns;
        rl_line_plan(lease, left_ns, left_ns + patience_ns / 4, view);
    }
}

/* Forgets the line of the lease, because a request to it has failed. If the lease was to leave the
 * line of one key for that of another, its record there may stay: it is for the next lock of this
 * client. */
static void forget_line(struct rl_lease *lease)
{
    if (lease->line.moves)
        rl_line_memory_of(lease)->waiter_salt = 0;
    lease->line = (struct rl_line){0};
}

/* Processes the failure of a request to a line: the lease is in no line any more. A node that has
 * refused is not asked again for a time. */
static void fail(struct rl_lease *lease, const struct rl_ballot *ballot, const struct rl_view *view)
{
    if (ballot->cause != REDLOCK_CAUSE_NONE && is_reply(ballot))
        avoid(lease, lease->line.node, REFUSED_NS, view);
    forget_line(lease);
}

/* Processes the reply to LINE_SERVED; NULL: there was none, or it was an error. If the attempt has
 * won meanwhile, leaves the line if LINE_SERVED has not done that. Without a connection the end of
 * the lease does it. */
static void take_reply_to_served(struct rl_lease *lease, const struct rl_ballot *ballot,
                                 const struct rl_line_reply *reply, const struct rl_view *view,
                                 struct rl_effects *fx)
{
    bool tries = lease->state == RL_STATE_ACQUIRING || lease->state == RL_STATE_WAITING;
    struct rl_line *line = &lease->line;

    if (reply == NULL) {
        fail(lease, ballot, view);
        if (!tries && is_reply(ballot))
            leave(lease, false, fx);
        return;
    }
    line->out = reply->place == 0 ? RL_LINE_OUT_LEFT : RL_LINE_OUT_NONE;
    line->front = line->front || (reply->place == 0 && (lease->round.denied & line->node) == 0);
    line->head = reply->is_head;
    if (!tries)
        leave_as_holder(lease, fx);
}

/* Leaves the lines from which the lease has moved, now that it is in another one. Another request
 * to a line goes first. Lines whose node cannot be asked, or does not reply, are left later: after
 * the next look, or at the end of the call. */
static void leave_former(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes nodes = rl_line_memory_of(lease)->former & view->up;

    if (fx->line == 0 && nodes != 0 && owns_records(lease))
        send(lease, RL_VERB_LINE_LEAVE, nodes, fx);
}

/* Processes the reply to a request to a line. `reply`: NULL after an error or without a reply. */
void rl_line_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_line_reply *reply, const struct rl_view *view,
                  struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    bool waits = lease->state == RL_STATE_WAITING;

    if (ballot->verb == RL_VERB_LINE_LEAVE && (reply != NULL || is_reply(ballot)))
        rl_line_memory_of(lease)->former &= ~RL_NODE(ballot->node);
    if (reply != NULL && reply->length > (reply->place != 0)) /* others wait */
        rl_contention_note(lease->contention, view->now.boot_ns);
    if ((line->node & RL_NODE(ballot->node)) == 0)
        return;
    if (ballot->verb == RL_VERB_LINE_SERVED) {
        if (line->out == RL_LINE_OUT_OPEN)
            take_reply_to_served(lease, ballot, reply, view, fx);
        return;
    }
    if (!line->asking || (ballot->verb == RL_VERB_LINE_LEAVE) != line->moves)
        return; /* not the request that lease->next waits for */
    line->asking = false;
    if (reply == NULL) {
        fail(lease, ballot, view);
        if (waits)
            rl_wait_begin(lease, lease->status, view, fx);
    } else if (waits && line->moves) {
        rl_line_memory_of(lease)->joined = rl_line_memory_of(lease)->former = 0;
        *line = (struct rl_line){0};
        rl_wait_begin(lease, lease->status, view, fx);
    } else if (waits) {
        line->place = reply->place;
        line->length = reply->length;
        line->head = reply->is_head;
        if (line->head)
            rl_head_look(lease, reply, ballot->verb == RL_VERB_LINE_FRONT, view, fx);
        else
            look(lease, reply, view, fx);
        leave_former(lease, view, fx);
    }
    if (lease->state == RL_STATE_WAITING && line->place != 0) {
        fx->status = lease->status; /* for the caller, who may be shown the place */
        fx->flags |= RL_FX_WAITING;
    }
}

/* Processes a WAKE: a turn, a change of the key, or that a node can send notifications from now on.
 * A head begins an attempt after any but a turn, which it ignores. Other waiters look. */
void rl_line_wake(struct rl_lease *lease, rl_nodes nodes, bool turn, const struct rl_view *view,
                  struct rl_effects *fx)
{
    struct rl_line_memory *memory = rl_line_memory_of(lease);
    struct rl_line *line = &lease->line;
    /* While a second node shows whether the lock is held, the keys that change on the node of the
     * line are those of other waiters, which it has granted and a quorum has denied. */
    rl_nodes watched = line->second != 0 && !turn ? line->second : line->node;

    if (turn && (nodes & memory->joined & ~line->node) != 0) { /* it has waited there before */
        send(lease, RL_VERB_LINE_LEAVE, nodes, fx);
        memory->joined &= ~nodes;
        memory->former &= ~nodes;
        return;
    }
    if (nodes != 0 && (nodes & watched) == 0)
        return;
    if (!turn && nodes != 0)
        rl_contention_note(lease->contention, view->now.boot_ns);
    if (line->asking) {
        line->woken = true;
        line->changed = line->changed || !turn;
        return;
    }
    if ((turn && line->head) || line->pauses)
        return; /* it knows, or makes an attempt soon */
    if (line->head)
        rl_head_attempt_after_change(lease, view, fx);
    else
        ask(lease, RL_VERB_LINE_JOIN, view, fx);
}

/* Processes the TICK at lease->next: a head begins an attempt, and so does a lease whose call is
 * about to end. Others look. If the node of the line has not replied, avoids it for SILENT_NS, and
 * joins the line of another node, or waits without one. */
void rl_line_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    bool last = rl_attempt_spare_ns(lease, view) == 0;
    bool waited = !line->pauses && !line->expires; /* for a notification */

    if (line->asking && !last) {
        avoid(lease, line->node, SILENT_NS, view);
        forget_line(lease);
    }
    if (!line->head && !last) {
        rl_wait_begin(lease, lease->status, view, fx);
        return;
    }
    if (rl_permit_is(lease)) {
        rl_permit_tick(lease, view, fx);
        return;
    }
    /* No notification has come for long: watches a second node as well, or no longer. */
    if (line->head && !last && waited)
        note_stale(lease, !rl_line_is_stale(lease));
    rl_head_attempt(lease, view, fx);
}

/* Returns whether the lease has ended without the lock, and another lock of this client is in the
 * queue. Locks of several keys do not count, because they may wait in the line of another key. A
 * lease that ends in the queue counts there until after this step. */
static bool is_followed(const struct rl_lease *lease, uint8_t before)
{
    bool waited = before == RL_STATE_WAITING || before == RL_STATE_ACQUIRING;
    bool queued = before == RL_STATE_QUEUED && lease->keys <= 1;

    return (waited || queued) && lease->contention->followers > (queued ? 1u : 0u);
}

/* Leaves the lines after a step that has decided the call: the attempt has won, or the lease has
 * ended. A call that ends without the lock leaves its place to the next lock in the queue of this
 * client: else a process whose callers have less patience than the line is long would never come
 * to its front. If LINE_SERVED was sent and has no reply yet, the node of the line may have denied:
 * a winner leaves when that reply comes, or at the end of the lease if it has not come by then. */
void rl_line_after_step(struct rl_lease *lease, uint8_t before, struct rl_effects *fx)
{
    if (lease->contention == NULL || lease->state == before ||
        rl_line_memory_of(lease)->joined == 0)
        return;
    if (lease->state == RL_STATE_HELD && before == RL_STATE_ACQUIRING &&
        lease->line.out != RL_LINE_OUT_OPEN)
        leave_as_holder(lease, fx);
    else if (lease->state == RL_STATE_ENDED && !is_followed(lease, before))
        leave(lease, false, fx);
    else if (lease->state == RL_STATE_ENDED && owns_records(lease))
        rl_line_memory_of(lease)->waiter_salt = 0;
}
