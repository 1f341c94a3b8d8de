/* SPDX-License-Identifier: MIT
 * Measures round trips and makes nodes suspect. A node becomes suspect when its server has not
 * replied for the node timeout. Votes SUSPECT then report that the replies may not come. The votes
 * fail only later, at the time limit of each reply: on a busy machine a late reply is better than
 * none. */
#include "node/failure_detector.h"

#include "node/node_parts.h"
#include "redlock/redlock.h"

/* Bounds of a node timeout that is derived from round trips. Without a configured node timeout, the
 * upper one is also the time limit of a reply. */
#define TIMEOUT_MIN_NS (10 * RL_MS)
#define TIMEOUT_MAX_NS (250 * RL_MS)
/* The connection of a node that is suspect for this time is closed, and a new one is tried. */
#define SUSPECT_MAX_NS (2 * RL_SECOND)
/* After each such time the longest recent round trip is halved. */
#define WORST_HALF_NS RL_SECOND

/* Returns the node timeout in nanoseconds: the configured one, or the larger of 8 smoothed round
 * trips and 2 longest recent ones, within the bounds. Without a measurement, returns the upper
 * bound. */
uint64_t rl_node_timeout_ns(const struct rl_node *node)
{
    uint64_t fixed = node->common->node_timeout_ns;

    if (fixed != 0)
        return fixed;
    if (node->detector.srtt_ns == 0)
        return TIMEOUT_MAX_NS;
    uint64_t limit_ns = rl_max_u64(8 * node->detector.srtt_ns, 2 * node->detector.worst_ns);
    return rl_min_u64(rl_max_u64(limit_ns, TIMEOUT_MIN_NS), TIMEOUT_MAX_NS);
}

/* Updates the longest recent round trip after a round trip of `trip_ns`. The smoothed one is not
 * enough: on a busy machine single replies are late, and a mean over eight round trips forgets them
 * within milliseconds. */
static void note_worst(struct rl_node *node, uint64_t trip_ns, uint64_t now_ns)
{
    uint64_t halves = rl_sub_sat(now_ns, node->detector.worst_at_ns) / WORST_HALF_NS;

    if (halves > 0) {
        node->detector.worst_ns >>= rl_min_u64(halves, 63);
        node->detector.worst_at_ns += halves * WORST_HALF_NS;
    }
    if (trip_ns >= node->detector.worst_ns) {
        node->detector.worst_ns = trip_ns;
        node->detector.worst_at_ns = now_ns;
    }
}

/* Returns the round trip, but at most the time limit of a reply. */
static uint64_t limited(const struct rl_node *node, uint64_t trip_ns)
{
    uint64_t fixed = node->common->node_timeout_ns;

    return rl_min_u64(trip_ns, fixed != 0 ? fixed : TIMEOUT_MAX_NS);
}

/* Updates the longest recent round trip after a heartbeat of `trip_ns`. */
void rl_detector_note_heartbeat(struct rl_node *node, uint64_t trip_ns, uint64_t now_ns)
{
    note_worst(node, limited(node, trip_ns), now_ns);
}

/* Updates the smoothed and the longest recent round trip after a round trip of `trip_ns`. The
 * smoothed one moves by an eighth of the difference. */
void rl_detector_note_trip(struct rl_node *node, uint64_t trip_ns, uint64_t now_ns)
{
    trip_ns = limited(node, trip_ns);
    note_worst(node, trip_ns, now_ns);
    node->detector.srtt_ns =
        node->detector.srtt_ns == 0
            ? trip_ns
            : node->detector.srtt_ns - node->detector.srtt_ns / 8 + trip_ns / 8;
}

/* Returns the time limit of the reply to the request with index `at` in the pipeline: the instant
 * (boot clock) at which the vote of the request fails. */
static uint64_t reply_limit_ns(const struct rl_node *node, uint64_t at)
{
    uint64_t fixed = node->common->node_timeout_ns;

    return rl_add_sat(rl_pipeline_at(&node->pipe, at)->sent_ns,
                      fixed != 0 ? fixed : TIMEOUT_MAX_NS);
}

/* Returns when the node becomes suspect (boot clock) if no reply comes; `at`: index of the oldest
 * request that awaits one. A derived node timeout runs from the last reply, because a server that
 * keeps replying only has much to do. A configured node timeout holds for each reply. */
static uint64_t suspect_limit_ns(const struct rl_node *node, uint64_t at)
{
    uint64_t since_ns =
        rl_max_u64(rl_pipeline_at(&node->pipe, at)->sent_ns, node->detector.last_reply_ns);

    return rl_min_u64(rl_add_sat(since_ns, rl_node_timeout_ns(node)), reply_limit_ns(node, at));
}

/* Reports a vote on the request with index `at`: FAILED if the time limit of its reply has passed
 * (`is_late`), else SUSPECT. A request without a claim is only marked. */
static void suspect_vote(struct rl_node *node, uint64_t at, bool is_late)
{
    static const struct rl_result late = {.vote = RL_VOTE_FAILED, .cause = REDLOCK_CAUSE_TIMEOUT};
    static const struct rl_result suspect = {.vote = RL_VOTE_SUSPECT,
                                             .cause = REDLOCK_CAUSE_TIMEOUT};
    struct rl_request *request = rl_pipeline_at(&node->pipe, at);

    request->reported = is_late;
    request->suspected = true;
    if (request->claim == NULL) /* heartbeats, PING and TRACK have no vote */
        return;
    rl_node_deliver_vote(node, request, is_late ? &late : &suspect);
}

/* Reports votes on all requests in flight: FAILED once the time limit of the reply has passed,
 * before that SUSPECT. Reports each of the two once. The requests stay in the pipeline until their
 * replies come. */
static void suspect_votes(struct rl_node *node, uint64_t now_ns)
{
    uint64_t end = rl_pipeline_end(&node->pipe);

    for (uint64_t i = rl_pipeline_oldest_unreported(&node->pipe); i < end; i++) {
        const struct rl_request *request = rl_pipeline_at(&node->pipe, i);
        bool is_late = reply_limit_ns(node, i) <= now_ns;
        if (!request->reported && (is_late || !request->suspected))
            suspect_vote(node, i, is_late);
    }
}

/* Appends PING as a probe, unless a probe is in flight or the pipeline is full. Its own reply may
 * be missing although late ones have ended the suspicion; then the node becomes suspect again. */
static void send_probe(struct rl_node *node, uint64_t now_ns)
{
    struct rl_request request = {.sent_ns = now_ns, .verb = RL_VERB_PING};

    if (node->detector.probing || rl_pipeline_is_full(&node->pipe))
        return;
    const struct rl_encoded *ping = rl_node_encode_verb(node, RL_VERB_PING, (struct rl_arg){"", 0});
    node->detector.probing =
        ping != NULL && rl_pipeline_push(&node->pipe, &request, ping->bytes, ping->len);
    if (node->detector.probing)
        rl_node_note_dirty(node);
}

/* Makes the node suspect, reports that as a change of the node, sends a probe, and reports votes on
 * all requests in flight. If the connection was idle, a trial finds out whether it is dead. */
static void become_suspect(struct rl_node *node, uint64_t now_ns)
{
    node->detector.suspect = true;
    node->detector.suspect_since_ns = now_ns;
    rl_connection_set_cause(&node->conn, REDLOCK_CAUSE_TIMEOUT);
    node->counters.timeouts++;
    rl_connection_set_text(&node->conn, "no reply in time", 16);
    rl_node_notify_changed(node);
    send_probe(node, now_ns);
    suspect_votes(node, now_ns);
    rl_trial_begin(node, now_ns);
}

/* Has the engine plan the next tick again if requests or replies make it due earlier than planned.
 *
 * A reply cannot be late sooner than `least_ns` after now. If the planned tick is earlier than
 * that, the plan stays, and that tick computes the exact time. A tick that comes too early costs
 * less than computing the time again. */
void rl_detector_replan(struct rl_node *node, uint64_t now_ns)
{
    const struct rl_node_common *common = node->common;
    uint64_t fixed = common->node_timeout_ns;
    uint64_t least_ns = fixed != 0 ? fixed : TIMEOUT_MIN_NS;

    if (!common->wake_known)
        return;
    bool is_usual = !node->detector.suspect && !node->detector.resent;
    if (is_usual && common->wake_ns <= rl_add_sat(now_ns, least_ns))
        return;
    if (!is_usual || common->wake_ns > rl_add_sat(now_ns, rl_node_timeout_ns(node)))
        rl_node_replan(node);
}

/* Returns when rl_detector_tick() has something to do (boot clock): when the node becomes suspect,
 * when a vote fails, or when the connection is closed. RL_NEVER: no reply is due. */
uint64_t rl_detector_wake_ns(struct rl_node *node)
{
    if (!rl_connection_is_ready(&node->conn))
        return RL_NEVER;
    uint64_t oldest = rl_pipeline_oldest_unreported(&node->pipe);
    bool waits = oldest != rl_pipeline_end(&node->pipe);
    if (node->detector.suspect) {
        uint64_t close_ns = rl_add_sat(node->detector.suspect_since_ns, SUSPECT_MAX_NS);
        return waits ? rl_min_u64(close_ns, reply_limit_ns(node, oldest)) : close_ns;
    }
    return waits ? suspect_limit_ns(node, oldest) : RL_NEVER;
}

/* Does what is due: makes the node suspect, closes the connection of a node that has been suspect
 * for SUSPECT_MAX_NS, or reports votes that are late. */
void rl_detector_tick(struct rl_node *node, uint64_t now_ns)
{
    if (rl_detector_wake_ns(node) > now_ns)
        return;
    if (!node->detector.suspect)
        become_suspect(node, now_ns);
    else if (rl_add_sat(node->detector.suspect_since_ns, SUSPECT_MAX_NS) <= now_ns)
        rl_node_close(node, REDLOCK_CAUSE_TIMEOUT, "no reply in time", true, now_ns);
    else
        suspect_votes(node, now_ns);
}

/* Makes a suspect node not suspect, and reports that, unless the oldest request in flight is still
 * late. */
void rl_detector_review(struct rl_node *node, uint64_t now_ns)
{
    RL_ASSERT(node->detector.suspect);
    if (rl_pipeline_count(&node->pipe) > 0) {
        uint64_t oldest = rl_pipeline_first(&node->pipe);
        if (rl_pipeline_at(&node->pipe, oldest)->reported ||
            suspect_limit_ns(node, oldest) <= now_ns)
            return;
    }
    node->detector.suspect = false;
    rl_trial_end(node);
    rl_connection_set_cause(&node->conn, REDLOCK_CAUSE_NONE);
    rl_node_notify_changed(node);
}
