/* SPDX-License-Identifier: MIT
 * How a waiting lease uses the line of its resource; lease_line.h explains the line.
 *
 * A waiter has one request to the line in flight at most (struct rl_line). A notification that
 * comes meanwhile is kept and acted on after the reply, because the server may have sent it after
 * it had executed the request. Timers make up for each message that can be lost. */
#include "core/lease_line.h"

#include "core/contention.h"
#include "core/lease_hold.h"
#include "redlock/redlock.h"

/* How often a waiter that is no head looks at the line: between these times. */
#define LOOK_MIN_NS (750 * RL_MS)
#define LOOK_MAX_NS (1250 * RL_MS)
/* When a head asks all nodes although it was not notified: between these times. */
#define HEAD_MIN_NS (100 * RL_MS)
#define HEAD_MAX_NS (300 * RL_MS)
/* How long a node that did not reply in time is not asked again. */
#define SILENT_NS RL_SECOND
/* A client that acquires the resource again and again looks at the line each time it has done so as
 * many times. */
#define ROW_LOOK 4
/* Bound of the pause of a head that got the vote of the node of the line, but no majority. */
#define SPLIT_PAUSE_MAX_NS (200 * RL_MS)
/* A head that sends no request is removed after three round trips (the longer ones of its own, as
 * it says, and the observer's) and this time, if the lock is free. If it is held, after
 * IDLE_HELD_NS instead, because a head sends a request at least every HEAD_MAX_NS. Round trips
 * above TRIP_MAX_NS count as TRIP_MAX_NS. */
#define IDLE_HEAD_NS (10 * RL_MS)
#define IDLE_HELD_NS (700 * RL_MS)
#define TRIP_MAX_NS  (250 * RL_MS)

/* Returns the node whose line the lease can use: the one in whose line it is, as long as that node
 * can be asked and its votes count, else the preferred node. 0: none. */
static rl_nodes usable(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->lines & view->up & view->eligible;

    if (lease->contention == NULL || rl_permit_is(lease) || lease->keys > 1 ||
        rl_attempt_spare_ns(lease, view) == 0)
        return 0;
    const struct rl_line *line = &lease->contention->line;
    if ((line->node & fit) != 0)
        return line->node;
    fit &= ~view->slow & ~line->refused;
    if (line->silent_ns > view->now.boot_ns)
        fit &= ~line->silent;
    return rl_contention_preferred(lease->contention, fit);
}

/* Returns a node that may notify a head of changes beside the node of the line: the first other one
 * of the ranking. 0: none. */
static rl_nodes second_node(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->up & view->eligible & ~view->slow;

    return rl_contention_preferred(lease->contention, fit & ~lease->contention->line.node);
}

/* Returns whether a head pauses, because its last attempt got the vote of the node of the line, but
 * no majority. lease->next is the end of the pause then. */
static bool is_pausing(const struct rl_lease *lease, const struct rl_view *view)
{
    return lease->contention->line.pause_ns > view->now.boot_ns;
}

/* Leaves all lines that may have a record of this client. */
static void leave(struct rl_line *line, struct rl_effects *fx)
{
    fx->line = line->joined != 0 ? RL_VERB_LINE_LEAVE : 0;
    fx->line_node = line->joined;
    *line = (struct rl_line){.refused = line->refused,
                             .silent = line->silent,
                             .silent_ns = line->silent_ns,
                             .stale = line->stale};
}

/* Returns whether the lease waits in a line, or asks to. A single attempt does not, whatever the
 * other locks of the client do. */
bool rl_line_is_in(const struct rl_lease *lease)
{
    return lease->contention != NULL && lease->wait_ns != 0 && lease->contention->line.node != 0;
}

/* Sets the time of the next TICK: a random one between the bounds, and early enough for a last
 * attempt within the wait budget. */
static void plan(struct rl_lease *lease, uint64_t min_ns, uint64_t max_ns,
                 const struct rl_view *view)
{
    uint64_t random = rl_jitter(view->random, lease->salt, lease->attempts);
    uint64_t delay_ns = min_ns + random % (max_ns - min_ns + 1);

    lease->next = rl_later(view->now, rl_min_u64(delay_ns, rl_attempt_spare_ns(lease, view)));
}

/* Sends the request `verb` to the line. A reply is expected before lease->next. */
static void ask(struct rl_lease *lease, enum rl_verb verb, const struct rl_view *view,
                struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;

    plan(lease, HEAD_MIN_NS, HEAD_MAX_NS, view);
    fx->line = verb;
    fx->line_node = line->node;
    line->joined |= line->node;
    line->asking = true;
    line->turn = line->change = false;
}

/* Asks all nodes for the lock, and the node of the line to leave the line if it grants. */
static void go(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;

    lease->wait.tracked = 0;
    line->pause_ns = 0;
    rl_attempt_begin(lease, 0, view, fx);
    if (lease->state != RL_STATE_ACQUIRING || (fx->request & line->node) == 0)
        return;
    fx->line = RL_VERB_LINE_GO;
    fx->line_node = line->node;
    line->went = true;
    line->left = line->answered = false;
}

/* Leaves the line after an attempt that has won, unless LINE_GO has done that (`left`). The node of
 * the line did not grant then: its key is that of a client that has ended, or is about to. */
static void leave_as_holder(struct rl_line *line, bool left, struct rl_effects *fx)
{
    if (left)
        line->joined &= ~line->node;
    leave(line, fx);
    line->stale = !left;
}

/* Looks whether there is a line, together with the first attempt of a client that has acquired the
 * resource several times in a row: nobody denies it, so it does not notice others. */
void rl_line_look_in_row(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes node = usable(lease, view) & fx->request;

    if (lease->contention == NULL || lease->contention->in_a_row % ROW_LOOK != ROW_LOOK - 1 ||
        node == 0)
        return;
    fx->line = RL_VERB_LINE_GO;
    fx->line_node = node;
}

/* Joins the line, or looks at it again, before the first attempt of a call or after a denied one.
 * A head whose attempt got the vote of the node of the line has left it; without a majority it
 * joins in front, and pauses, because somebody else got the other votes. Returns false if no line
 * can be used. */
bool rl_line_enter(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes node = usable(lease, view);

    if (lease->contention == NULL)
        return false;
    struct rl_line *line = &lease->contention->line;
    bool left = lease->attempts > 0 && line->went && line->node == node &&
                (lease->round.denied & node) == 0;
    if (line->node != node)
        line->head = false;
    line->node = node;
    line->went = line->left = line->answered = false;
    if (node == 0)
        return false;
    if (lease->state != RL_STATE_WAITING) {
        rl_round_open(&lease->round, RL_VERB_ACQUIRE, 0, ~view->eligible, view);
        rl_lease_move(lease, RL_STATE_WAITING);
        lease->status = REDLOCK_ECONTENDED;
    }
    fx->track |= node;
    ask(lease, left ? RL_VERB_LINE_FRONT : RL_VERB_LINE_JOIN, view, fx);
    /* Others hold the lock, and the node of the line does not have their key. */
    bool missed = left && rl_nodes_count(lease->round.denied) >= lease->round.quorum;
    line->stale = line->stale || missed;
    left = left && !missed;
    line->splits = left ? (uint8_t)rl_min_u64(line->splits + 1u, 8) : 0;
    if (left) {
        uint64_t trip_ns = rl_max_u64(view->round_trip_ns, 50 * RL_US) << (line->splits - 1);
        trip_ns = rl_min_u64(trip_ns, SPLIT_PAUSE_MAX_NS * 2 / 3);
        plan(lease, trip_ns / 2, trip_ns + trip_ns / 2, view);
        line->pause_ns = lease->next.boot_ns;
    }
    return true;
}

/* Returns whether the head is idle: for longer than a head needs, it has neither asked for the lock
 * nor sent any other request to the line. It has ended, stands still or cannot reach the node.
 * Plans the next look. */
static bool is_head_idle(struct rl_lease *lease, const struct rl_line_reply *reply,
                         const struct rl_view *view)
{
    struct rl_line *line = &lease->contention->line;
    bool held = reply->exists;
    bool same = line->idle_head == reply->head && line->idle_beat == reply->head_beat &&
                line->idle_held == held;
    uint64_t trip_ns = rl_min_u64(reply->head_trip_us, TRIP_MAX_NS / RL_US) * RL_US;
    uint64_t patience_ns = 3 * rl_max_u64(trip_ns, view->round_trip_ns);

    patience_ns += held ? IDLE_HELD_NS : IDLE_HEAD_NS;
    plan(lease, held ? rl_max_u64(LOOK_MIN_NS, patience_ns) : patience_ns,
         held ? rl_max_u64(LOOK_MAX_NS, patience_ns) : patience_ns + patience_ns / 4, view);
    if (same)
        return reply->head != 0 && rl_sub_sat(view->now.boot_ns, line->idle_ns) >= patience_ns;
    line->idle_head = reply->head;
    line->idle_beat = reply->head_beat;
    line->idle_held = held;
    line->idle_ns = view->now.boot_ns;
    return false;
}

/* Processes the look of a waiter that is no head. Has an idle head removed. */
static void look(struct rl_lease *lease, const struct rl_line_reply *reply,
                 const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;

    if (line->turn || line->change) {
        ask(lease, RL_VERB_LINE_JOIN, view, fx);
    } else if (!reply->exists && reply->head == 0) {
        go(lease, view, fx); /* none in the line can be notified */
    } else if (is_head_idle(lease, reply, view)) {
        fx->line_victim = reply->head;
        fx->line_victim_beat = reply->head_beat;
        line->idle_head = 0;
        ask(lease, RL_VERB_LINE_DROP, view, fx);
    }
}

/* Processes the look of a head: goes if the lock is free or has changed meanwhile, else waits for a
 * change, until the key expires or the timer of heads. A head that pauses after a split vote goes
 * at the end of its pause. */
static void look_as_head(struct rl_lease *lease, const struct rl_line_reply *reply,
                         const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;

    if (is_pausing(lease, view))
        return;
    rl_nodes second = line->stale ? second_node(lease, view) & view->notifying : 0;
    if (second == 0 && (!reply->exists || line->change)) {
        go(lease, view, fx);
        return;
    }
    plan(lease, HEAD_MIN_NS, HEAD_MAX_NS, view);
    /* The node of the line may have the key of a client that has ended, or lack that of the holder:
     * another node says whether the lock is held. */
    if (line->stale)
        fx->track = second_node(lease, view);
    lease->wait.tracked = fx->probe = second;
    if (second != 0)
        return;
    struct rl_now expired = rl_later(view->now, reply->pttl_ms * RL_MS + RL_MS);
    if (reply->pttl_ms != 0 && expired.boot_ns < lease->next.boot_ns)
        lease->next = expired;
}

/* Processes the reply to a request to a line. After LINE_GO of an attempt that has won, leaves the
 * line if the node of the line did not grant. Without a reply, or after an error, the lease waits
 * without a line. */
void rl_line_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_line_reply *reply, const struct rl_view *view,
                  struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;
    bool waits = lease->state == RL_STATE_WAITING;

    if (reply != NULL && reply->length > 0)
        rl_contention_note(lease->contention, view->now.boot_ns);
    if ((line->node & RL_NODE(ballot->node)) == 0)
        return;
    if (ballot->verb != RL_VERB_LINE_GO)
        line->asking = false;
    if (reply == NULL) {
        if (ballot->cause != REDLOCK_CAUSE_NONE && ballot->rtt_us != 0)
            line->refused |= line->node;
        line->node = 0;
        line->head = false;
        if (waits)
            rl_wait_begin(lease, lease->status, view, fx);
        return;
    }
    line->head = reply->is_head;
    line->place = reply->place;
    line->length = reply->length;
    if (ballot->verb == RL_VERB_LINE_GO && lease->state == RL_STATE_ACQUIRING) {
        line->answered = true;
        line->left = reply->place == 0;
    } else if (ballot->verb == RL_VERB_LINE_GO && !waits) {
        leave_as_holder(line, reply->place == 0, fx);
    } else if (ballot->verb != RL_VERB_LINE_GO && waits && line->head) {
        look_as_head(lease, reply, view, fx);
    } else if (ballot->verb != RL_VERB_LINE_GO && waits) {
        look(lease, reply, view, fx);
    }
    if (lease->state == RL_STATE_WAITING && line->place != 0) {
        fx->status = lease->status; /* for the caller, who may be shown the place */
        fx->flags |= RL_FX_WAITING;
    }
}

/* Processes a WAKE: a turn, a change of the key, or that a node can send notifications from now on.
 * A head goes after a change. Anything else is a reason to look. */
void rl_line_wake(struct rl_lease *lease, rl_nodes nodes, bool turn, const struct rl_view *view,
                  struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;

    rl_nodes tracked = lease->wait.tracked != 0 ? lease->wait.tracked : line->node;
    rl_nodes second = line->stale ? second_node(lease, view) : 0;
    if (nodes != 0 && (nodes & (line->node | second)) == 0) {
        if (turn && (nodes & line->joined) != 0) { /* the client has waited there before */
            fx->line = RL_VERB_LINE_LEAVE;
            fx->line_node = nodes;
            line->joined &= ~nodes;
        }
        return;
    }
    if (!turn)
        rl_contention_note(lease->contention, view->now.boot_ns);
    if (line->asking) {
        line->turn = line->turn || turn;
        line->change = line->change || !turn;
    } else if (line->head && !turn && !is_pausing(lease, view) &&
               (nodes == 0 || (nodes & tracked) != 0)) {
        go(lease, view, fx);
    } else if (!is_pausing(lease, view)) {
        ask(lease, RL_VERB_LINE_JOIN, view, fx);
    }
}

/* Processes the reply to a probe of a head, from a node beside that of the line: a head goes if
 * there is no key. */
void rl_line_probed(struct rl_lease *lease, const struct rl_ballot *ballot,
                    const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;

    if ((lease->wait.tracked & RL_NODE(ballot->node)) != 0 && ballot->vote == RL_VOTE_DENIED &&
        line->head && !line->asking && !is_pausing(lease, view))
        go(lease, view, fx);
}

/* Processes the TICK at lease->next: a head goes, and so does a lease whose call is about to end.
 * Others look. Without a node for the line any more, the lease waits without one. */
void rl_line_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->contention->line;

    bool last = rl_attempt_spare_ns(lease, view) == 0;
    bool unanswered = line->asking && line->pause_ns == 0 && !last;
    /* No notification has come for long: perhaps the other node shows whether the lock is held. */
    if (line->head && !unanswered && !last && line->pause_ns == 0)
        line->stale = !line->stale;
    line->pause_ns = 0;
    if (unanswered) { /* another node keeps the line, as long as contention is recent */
        if (line->silent_ns <= view->now.boot_ns)
            line->silent = 0;
        line->silent |= line->node;
        line->silent_ns = rl_add_sat(view->now.boot_ns, SILENT_NS);
        line->node = 0;
    }
    if ((line->head && !unanswered) || last)
        go(lease, view, fx);
    else if (!rl_line_enter(lease, view, fx))
        rl_wait_begin(lease, lease->status, view, fx);
}

/* Leaves the lines after a step that has decided the call: the attempt has won, or the lease has
 * ended. If LINE_GO was sent and has no reply yet, the node of the line may have denied: a winner
 * leaves when that reply comes, or at the end of the lease if it has not come by then. */
void rl_line_settle(struct rl_lease *lease, uint8_t before, struct rl_effects *fx)
{
    if (lease->contention == NULL || lease->contention->line.joined == 0 || lease->wait_ns == 0 ||
        lease->state == before || before == RL_STATE_QUEUED)
        return;
    struct rl_line *line = &lease->contention->line;
    bool waited = before == RL_STATE_WAITING || before == RL_STATE_ACQUIRING;
    bool open = line->went && !line->answered;

    if (lease->state == RL_STATE_HELD && before == RL_STATE_ACQUIRING && !open)
        leave_as_holder(line, line->left, fx);
    else if (lease->state == RL_STATE_ENDED && (waited || open))
        leave(line, fx);
}
