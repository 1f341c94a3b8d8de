/* SPDX-License-Identifier: MIT
 * A lease that waits in a line, in virtual time: requests to the line, and their replies.
 *
 * Uses contention_rig.h: one lease on five nodes, in the order of preference 2, 4, 0, 3, 1, with
 * the contention state of its resource. begin() passes the first event to a new lease, rig_grant()
 * and rig_deny() a vote. rig.fx holds the effects of the last step. */
#ifndef TEST_LINE_RIG_H
#define TEST_LINE_RIG_H

#include "contention_rig.h"

#define BUDGET_NS (100 * RL_MS)

static unsigned joined; /* the node whose line the lease has joined last */

/* Fixture: all nodes keep lines, and the call waits for BUDGET_NS. */
static inline void setup_lines(void)
{
    setup();
    rig.params.wait_ns = BUDGET_NS;
    rig.params.salt = 1;
    rig.view.lines = ALL;
}

/* Checks that the last step has sent `verb` to the lines of these nodes. */
static inline void check_sent(enum rl_verb verb, rl_nodes nodes)
{
    ck_assert_uint_eq(rig.fx.line, verb);
    ck_assert_uint_eq(rig.fx.line_node, nodes);
}

/* Passes the reply of a node to a request to its line. */
static inline void reply_to(enum rl_verb verb, unsigned node, const struct rl_line_reply *reply)
{
    const struct rl_event event = {
        .kind = RL_EVENT_VOTE,
        .ballot = {.node = (uint8_t)node,
                   .vote = reply == NULL ? RL_VOTE_FAILED : RL_VOTE_GRANTED,
                   .cause = reply == NULL ? REDLOCK_CAUSE_DISCONNECT : 0,
                   .verb = (uint8_t)verb,
                   .round = rig.lease.round.number},
        .line = reply,
    };

    rig_step(&rig, &event);
}

/* Begins a call that joins the line of the preferred node. */
static inline void join(void)
{
    begin_hot();
    joined = FIRST;
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(FIRST));
}

/* Begins a call with a wait budget of a minute, in the line of the preferred node. */
static inline void join_for_long(void)
{
    rig.params.wait_ns = 60 * RL_SECOND;
    join();
}

/* The node of the line replies that the lease is the head and the lock is free: it asks all nodes,
 * and the node of the line to leave the line. */
static inline void attempt(void)
{
    const struct rl_line_reply reply = {.place = 1, .length = 1, .is_head = true, .head = 1};

    reply_to(RL_VERB_LINE_JOIN, joined, &reply);
    ck_assert_uint_eq(rig.fx.request, ALL);
    check_sent(RL_VERB_LINE_SERVED, RL_NODE(joined));
}

/* Returns the time until the timer of the lease, in nanoseconds. */
static inline uint64_t due_in_ns(void)
{
    return rl_remaining_ns(rig.lease.next, rig.view.now);
}

/* Passes the time until the timer of the lease. */
static inline void look_again(void)
{
    rig_pass(&rig, due_in_ns());
    rig_tick(&rig);
}

/* Has the preferred node not be asked (0), keep no lines (1) or be slow (2). */
static inline void without_preferred(int how)
{
    if (how == 0)
        rig.view.up &= ~RL_NODE(FIRST);
    else if (how == 1)
        rig.view.lines &= ~RL_NODE(FIRST);
    else
        rig.view.slow |= RL_NODE(FIRST);
}

/* Ends that. */
static inline void with_preferred(void)
{
    rig.view.up |= RL_NODE(FIRST);
    rig.view.lines |= RL_NODE(FIRST);
    rig.view.slow &= ~RL_NODE(FIRST);
}

/* Passes the reply of a node that refuses a request to its line with an error. */
static inline void refuse(enum rl_verb verb, unsigned node)
{
    const struct rl_event refusal = {
        .kind = RL_EVENT_VOTE,
        .ballot = {.node = (uint8_t)node,
                   .vote = RL_VOTE_FAILED,
                   .cause = REDLOCK_CAUSE_OOM,
                   .verb = (uint8_t)verb,
                   .rtt_us = 100,
                   .round = rig.lease.round.number},
    };

    rig_step(&rig, &refusal);
}

/* Passes the refusal of a node that the lease has asked to join its line. */
static inline void refuse_to_join(unsigned node)
{
    check_sent(RL_VERB_LINE_JOIN, RL_NODE(node));
    refuse(RL_VERB_LINE_JOIN, node);
}

#endif
