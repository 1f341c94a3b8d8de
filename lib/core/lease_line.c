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
/* How long no node is asked after one has refused. */
#define REFUSED_NS (10 * RL_SECOND)
/* Bound of the pause of a head after an attempt that others have denied. */
#define PAUSE_MAX_NS (200 * RL_MS)
/* A head that does not ask although the lock is free is removed after three round trips (the longer
 * ones of its own, as it says, and the observer's) and this time. Round trips above TRIP_MAX_NS
 * count as TRIP_MAX_NS. */
#define IDLE_HEAD_NS (10 * RL_MS)
#define TRIP_MAX_NS  (250 * RL_MS)
/* The same while the lock is held. A head makes an attempt at least every HEAD_MAX_NS. */
#define IDLE_HELD_NS (700 * RL_MS)

/* Returns the node whose line the lease can use: the one in whose line it is, as long as that node
 * can be asked and its votes count, else the preferred node. 0: none. */
static rl_nodes usable(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->lines & view->up & view->eligible;

    if (lease->contention == NULL || rl_attempt_spare_ns(lease, view) == 0)
        return 0;
    if ((lease->line.node & fit) != 0)
        return lease->line.node;
    if (lease->contention->avoid_until_ns > view->now.boot_ns)
        fit &= ~lease->contention->avoid;
    return rl_contention_preferred(lease->contention, fit & ~view->slow);
}

/* Has the locks of this client on the resource avoid the lines of these nodes for a time. */
static void avoid(struct rl_lease *lease, rl_nodes nodes, uint64_t time_ns,
                  const struct rl_view *view)
{
    struct rl_contention *contention = lease->contention;
    uint64_t now_ns = view->now.boot_ns;

    contention->avoid = contention->avoid_until_ns > now_ns ? contention->avoid | nodes : nodes;
    contention->avoid_until_ns =
        rl_max_u64(contention->avoid_until_ns, rl_add_sat(now_ns, time_ns));
}

/* Returns a node beside that of the line that shows whether the lock is held: the most preferred
 * one of those that denied the last attempt, or of all if there was none. 0: there is none. */
static rl_nodes second_node(const struct rl_lease *lease, const struct rl_view *view)
{
    rl_nodes fit = view->up & view->eligible & ~view->slow & ~lease->line.node;

    if (lease->round.denied != 0)
        fit &= lease->round.denied;
    return rl_contention_preferred(lease->contention, fit);
}

/* Returns whether a head pauses, because its last attempt got the vote of the node of the line, but
 * no majority. lease->next is the end of the pause then. */
static bool is_pausing(const struct rl_lease *lease, const struct rl_view *view)
{
    return lease->line.pause_ns > view->now.boot_ns;
}

/* Returns whether the lease waits in a line, or asks to. */
bool rl_line_is_in(const struct rl_lease *lease)
{
    return lease->line.node != 0;
}

/* Returns whether the lease must make no attempt now: it is in a line and no head, or it asks
 * whether it is one. A search for a permit that has begun goes on. */
bool rl_line_blocks(const struct rl_lease *lease)
{
    bool searches = rl_permit_is(lease) && lease->permit->searching;

    return rl_line_is_in(lease) && (!lease->line.head || lease->line.asking) && !searches;
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
    struct rl_line *line = &lease->line;

    plan(lease, HEAD_MIN_NS, HEAD_MAX_NS, view);
    fx->line = (uint8_t)verb;
    fx->line_node = line->node;
    if ((line->joined & line->node) == 0)
        fx->counts |= RL_COUNT_JOIN;
    line->joined |= line->node;
    lease->contention->waiter_salt = lease->salt;
    line->asking = true;
    line->turn = line->change = false;
}

/* Has the attempt that begins now leave the line if the node of the line grants. Does nothing if
 * the lease is not in a line, or if that node is not asked now. */
void rl_line_go(struct rl_lease *lease, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;

    line->went = lease->state == RL_STATE_ACQUIRING && (fx->request & line->node) != 0;
    line->left = line->answered = false;
    if (!line->went)
        return;
    fx->line = RL_VERB_LINE_GO;
    fx->line_node = line->node;
}

/* Asks all nodes for the lock. For a permit, searches for a free slot instead. */
static void go(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    lease->line.pause_ns = 0;
    if (rl_permit_is(lease)) {
        rl_permit_search(lease, view, fx);
        return;
    }
    lease->wait.tracked = 0;
    rl_attempt_begin(lease, 0, view, fx);
    rl_line_go(lease, fx);
}

/* Leaves all lines that may have a record of this client, unless another of its locks on the
 * resource has joined one since. */
static void leave(struct rl_lease *lease, struct rl_effects *fx)
{
    bool ours = lease->contention->waiter_salt == lease->salt;

    fx->line = ours && lease->line.joined != 0 ? RL_VERB_LINE_LEAVE : 0;
    fx->line_node = fx->line != 0 ? lease->line.joined : 0;
    lease->line = (struct rl_line){0};
}

/* Leaves the line after an attempt that has won, unless LINE_GO has done that (`left`). The node of
 * the line did not grant then: its key is that of a client that has ended, or is about to. */
static void leave_as_holder(struct rl_lease *lease, bool left, struct rl_effects *fx)
{
    if (left)
        lease->line.joined &= ~lease->line.node;
    leave(lease, fx);
    if (!rl_permit_is(lease))
        lease->contention->stale = !left;
}

/* Pauses before the next attempt of a head. The pause is random, about one round trip, and twice as
 * long for each of the `before` pauses of the same kind before it. */
static void pause_head(struct rl_lease *lease, unsigned before, const struct rl_view *view)
{
    uint64_t trip_ns = rl_max_u64(view->round_trip_ns, 50 * RL_US) << rl_min_u64(before, 8);

    trip_ns = rl_min_u64(trip_ns, PAUSE_MAX_NS * 2 / 3);
    plan(lease, trip_ns / 2, trip_ns + trip_ns / 2, view);
    lease->line.pause_ns = lease->next.boot_ns;
}

/* Returns whether the last attempt has left the line although it was not won: the node of the line
 * has granted it. */
static bool left_for_nothing(const struct rl_lease *lease, rl_nodes node)
{
    const struct rl_line *line = &lease->line;

    if (rl_permit_is(lease)) /* the search may have made further attempts since */
        return line->left && (lease->round.denied & node) == 0;
    return lease->attempts > 0 && line->went && (lease->round.denied & node) == 0;
}

/* Joins the line, or looks at it again, before the first attempt of a call or after a denied one.
 * A head whose attempt got the vote of the node of the line has left it; without a majority it
 * joins in front, and pauses. A head that has searched for a permit stays a head. Returns false if
 * no line can be used. */
bool rl_line_enter(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    rl_nodes node = usable(lease, view);
    struct rl_line *line = &lease->line;
    bool left = line->node == node && left_for_nothing(lease, node);

    if (rl_permit_is(lease) && line->head && line->node == node && !line->left)
        return true;
    if (line->node != node)
        *line = (struct rl_line){.node = node, .joined = line->joined};
    line->went = line->left = line->answered = false;
    if (node == 0) {
        if (lease->attempts > 0 && rl_attempt_spare_ns(lease, view) != 0)
            fx->counts |= RL_COUNT_ALONE;
        return false;
    }
    if (lease->state != RL_STATE_WAITING) {
        rl_round_open(&lease->round, RL_VERB_ACQUIRE, 0, ~view->eligible, view);
        rl_lease_move(lease, RL_STATE_WAITING);
        lease->status = REDLOCK_ECONTENDED;
    }
    fx->track |= node;
    ask(lease, left ? RL_VERB_LINE_FRONT : RL_VERB_LINE_JOIN, view, fx);
    /* Others hold the lock, and the node of the line does not have their key. */
    bool missed = left && rl_nodes_count(lease->round.denied) >= lease->round.quorum;
    lease->contention->stale = lease->contention->stale || missed;
    line->splits = left && !missed ? (uint8_t)rl_min_u64(line->splits + 1u, UINT8_MAX) : 0;
    if (line->splits != 0) /* another client got the other votes */
        pause_head(lease, line->splits - 1u, view);
    return true;
}

/* Stands in no line any more. `joined`: nodes whose line may have a record of this client. */
static void forget(struct rl_lease *lease, rl_nodes joined)
{
    lease->line = (struct rl_line){.joined = joined};
}

/* Leaves all lines, and waits without one. The requests may be lost, because an attempt has failed
 * for another reason than a denial, so the end of the call leaves the same lines again. */
void rl_line_leave(struct rl_lease *lease, struct rl_effects *fx)
{
    rl_nodes joined = lease->line.joined;

    if (lease->line.node == 0)
        return;
    leave(lease, fx);
    forget(lease, joined);
}

/* Leaves the line of the present key. The reply leads to the line of the other key: a lock of
 * several keys stands in one line at a time, so that no two of them wait for each other. */
void rl_line_move(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    ask(lease, RL_VERB_LINE_LEAVE, view, fx);
    lease->line.moves = true;
}

/* Notes which head the reply names. Returns how long that head has made no request, as far as this
 * client knows, in nanoseconds. */
static uint64_t idle_time_ns(struct rl_line *line, const struct rl_line_reply *reply,
                             const struct rl_view *view)
{
    if (line->idle_head != reply->head || line->idle_beat != reply->head_beat) {
        line->idle_head = reply->head;
        line->idle_beat = reply->head_beat;
        line->idle_ns = view->now.boot_ns;
    }
    return rl_sub_sat(view->now.boot_ns, line->idle_ns);
}

/* Processes the look of a waiter that is no head. Has a head removed that makes no requests: it has
 * ended or stands still. If the lock is free, that shows after a few round trips. Whether a slot of
 * a semaphore is free is unknown. */
static void look(struct rl_lease *lease, const struct rl_line_reply *reply,
                 const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    bool is_free = !reply->exists && !rl_permit_is(lease);
    uint64_t trip_ns = rl_min_u64(reply->head_trip_us, TRIP_MAX_NS / RL_US) * RL_US;
    uint64_t patience_ns =
        3 * rl_max_u64(trip_ns, view->round_trip_ns) + (is_free ? IDLE_HEAD_NS : IDLE_HELD_NS);
    uint64_t idle_ns = idle_time_ns(line, reply, view);

    plan(lease, LOOK_MIN_NS, LOOK_MAX_NS, view);
    if (line->turn || line->change) {
        ask(lease, RL_VERB_LINE_JOIN, view, fx);
    } else if (line->headless) {
        return; /* goes at the next TICK */
    } else if (idle_ns >= patience_ns) {
        fx->line_victim = reply->head;
        fx->line_victim_beat = reply->head_beat;
        ask(lease, RL_VERB_LINE_DROP, view, fx);
    } else if (is_free) {
        uint64_t left_ns = patience_ns - idle_ns;
        plan(lease, left_ns, left_ns + patience_ns / 4, view);
    }
}

/* Has a head go because the lock seems to be free. If the last attempt began for the same reason
 * and was denied, pauses first: the node that shows it may lack the key of the holder. */
static void go_if_free(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    unsigned before = lease->line.absences;

    lease->line.absences = (uint8_t)rl_min_u64(before + 1, UINT8_MAX);
    if (before == 0)
        go(lease, view, fx);
    else
        pause_head(lease, before - 1, view);
}

/* Processes the look of a head: goes if the lock is free or has changed meanwhile, else waits for a
 * change, until the key expires or the timer of heads. A head that pauses after a split vote goes
 * at the end of its pause. The search for a permit has its own timers. */
static void look_as_head(struct rl_lease *lease, const struct rl_line_reply *reply,
                         const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    bool stale = lease->contention->stale && !rl_permit_is(lease);

    if (is_pausing(lease, view))
        return;
    if (rl_permit_is(lease) || (!stale && line->change)) {
        line->absences = 0;
        go(lease, view, fx);
        return;
    }
    if (!stale && !reply->exists) {
        go_if_free(lease, view, fx);
        return;
    }
    plan(lease, HEAD_MIN_NS, HEAD_MAX_NS, view);
    /* The node of the line may have the key of a client that has ended, or lack that of the holder:
     * another node says whether the lock is held. */
    if (stale) {
        fx->track = fx->probe = second_node(lease, view);
        lease->wait.tracked = fx->probe & view->notifying;
        return;
    }
    if (reply->pttl_ms == 0 || reply->pttl_ms >= RL_NEVER / RL_MS)
        return;
    struct rl_now expired = rl_later(view->now, reply->pttl_ms * RL_MS + RL_MS);
    if (expired.boot_ns < lease->next.boot_ns)
        lease->next = expired;
}

/* Processes the reply to LINE_GO. If the attempt has won meanwhile, leaves the line if the node of
 * the line did not grant. */
static void went(struct rl_lease *lease, const struct rl_line_reply *reply, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;

    line->answered = true;
    line->left = reply->place == 0;
    line->head = reply->is_head;
    if (lease->state != RL_STATE_ACQUIRING && lease->state != RL_STATE_WAITING)
        leave_as_holder(lease, line->left, fx);
}

/* Processes the reply to a request to a line. After an error, the lease waits without a line, and
 * so do the next ones as long as contention is recent: other servers are likely to refuse as well.
 * If the request could not be sent, another node keeps the line. */
void rl_line_vote(struct rl_lease *lease, const struct rl_ballot *ballot,
                  const struct rl_line_reply *reply, const struct rl_view *view,
                  struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    bool waits = lease->state == RL_STATE_WAITING;

    if (reply != NULL && reply->length > 0)
        rl_contention_note(lease->contention, view->now.boot_ns);
    if ((line->node & RL_NODE(ballot->node)) == 0)
        return;
    if (ballot->verb != RL_VERB_LINE_GO)
        line->asking = false;
    if (reply == NULL) {
        if (ballot->cause != REDLOCK_CAUSE_NONE && ballot->rtt_us != 0)
            avoid(lease, ~(rl_nodes)0, REFUSED_NS, view);
        forget(lease, line->joined);
        if (waits)
            rl_wait_begin(lease, lease->status, view, fx);
    } else if (ballot->verb == RL_VERB_LINE_GO) {
        if (line->went)
            went(lease, reply, fx);
    } else if (waits && line->moves) {
        forget(lease, 0); /* `joined` would mean the line of the other key from now on */
        rl_wait_begin(lease, lease->status, view, fx);
    } else if (waits) {
        line->place = reply->place;
        line->length = reply->length;
        line->headless = reply->head == 0;
        line->head = reply->is_head || (line->headless && reply->place == 1);
        if (line->head)
            look_as_head(lease, reply, view, fx);
        else
            look(lease, reply, view, fx);
    }
    if (lease->state == RL_STATE_WAITING && line->place != 0) {
        fx->status = lease->status; /* for the caller, who may be shown the place */
        fx->flags |= RL_FX_WAITING;
    }
}

/* Processes a WAKE: a turn, a change of the key, or that a node can send notifications from now on.
 * A head goes after a change. Anything else is a reason to look. Only turns concern a waiter for a
 * permit that is no head. */
void rl_line_wake(struct rl_lease *lease, rl_nodes nodes, bool turn, const struct rl_view *view,
                  struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;

    rl_nodes tracked = lease->wait.tracked != 0 ? lease->wait.tracked : line->node;
    rl_nodes second = lease->contention->stale ? second_node(lease, view) : 0;

    if (turn &&
        (nodes & line->joined & ~line->node) != 0) { /* the client has waited there before */
        fx->line = RL_VERB_LINE_LEAVE;
        fx->line_node = nodes;
        line->joined &= ~nodes;
        return;
    }
    if ((nodes != 0 && (nodes & (line->node | second)) == 0) || (rl_permit_is(lease) && !turn))
        return;
    if (!turn)
        rl_contention_note(lease->contention, view->now.boot_ns);
    if (line->asking) {
        line->turn = line->turn || turn;
        line->change = line->change || !turn;
    } else if (line->head && !turn && !is_pausing(lease, view) &&
               (nodes == 0 || (nodes & tracked) != 0)) {
        line->absences = 0;
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
    struct rl_line *line = &lease->line;

    if ((second_node(lease, view) & RL_NODE(ballot->node)) != 0 && ballot->vote == RL_VOTE_DENIED &&
        line->head && !line->asking && !is_pausing(lease, view))
        go_if_free(lease, view, fx);
}

/* Processes the TICK at lease->next: a head goes. So does a lease whose call is about to end, and
 * one in a line without a head: the waiter in front may have ended, and nobody would notice.
 * Others look. If the node of the line did not reply, another one keeps the line, as long as
 * contention is recent. Without a node for it, the lease waits without a line. */
void rl_line_tick(struct rl_lease *lease, const struct rl_view *view, struct rl_effects *fx)
{
    struct rl_line *line = &lease->line;
    bool last = rl_attempt_spare_ns(lease, view) == 0;
    bool unanswered = line->asking && line->pause_ns == 0 && !last;

    /* No notification has come for long: perhaps the other node shows whether the lock is held. */
    if (line->head && !unanswered && !last && line->pause_ns == 0 && !rl_permit_is(lease))
        lease->contention->stale = !lease->contention->stale;
    line->pause_ns = 0;
    if (unanswered) {
        avoid(lease, line->node, SILENT_NS, view);
        forget(lease, line->moves ? 0 : line->joined);
        rl_wait_begin(lease, lease->status, view, fx);
    } else if (line->head || line->headless || last) {
        if (rl_permit_is(lease))
            rl_permit_tick(lease, view, fx);
        else
            go(lease, view, fx);
    } else if (!rl_line_enter(lease, view, fx)) {
        rl_wait_begin(lease, lease->status, view, fx);
    }
}

/* Leaves the lines after a step that has decided the call: the attempt has won, or the lease has
 * ended. If LINE_GO was sent and has no reply yet, the node of the line may have denied: a winner
 * leaves when that reply comes, or at the end of the lease if it has not come by then. */
void rl_line_settle(struct rl_lease *lease, uint8_t before, struct rl_effects *fx)
{
    if (lease->line.joined == 0 || lease->state == before)
        return;
    bool waited = before == RL_STATE_WAITING || before == RL_STATE_ACQUIRING;
    bool open = lease->line.went && !lease->line.answered;

    if (lease->state == RL_STATE_HELD && before == RL_STATE_ACQUIRING && !open)
        leave_as_holder(lease, lease->line.left, fx);
    else if (lease->state == RL_STATE_ENDED && (waited || open))
        leave(lease, fx);
}
