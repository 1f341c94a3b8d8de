/* SPDX-License-Identifier: MIT
 * Walks all answers of the nodes to an acquisition with a fence, votes and second round in every
 * order. The expectation is computed by counting, without the code under test: a fencing token is
 * reported as soon as, and only if, a majority has stored it, and each of those nodes had a smaller
 * one before. */
#include "walk.h"

#define P UINT64_C(1000) /* the proposal */

enum vote { NO_VOTE = 0, LOW, MIDDLE, HIGH, REFUSED, BROKEN, VOTES };
enum raise { NOT_RAISED = 0, RAISING, ACKED, KEY_GONE, RAISE_BROKEN };

static const uint64_t previous[VOTES] = {[LOW] = 10, [MIDDLE] = 2000, [HIGH] = 3000};

struct place {
    struct rig rig;
    unsigned nodes, quorum;
    uint8_t vote[WALK_NODES_MAX], raise[WALK_NODES_MAX];
    uint64_t number; /* the chosen fencing token; 0: none yet */
    bool slow;
};

/* Returns true if this vote is a grant. */
static bool grants(unsigned vote)
{
    return vote == LOW || vote == MIDDLE || vote == HIGH;
}

/* Returns whether this node, according to its replies, can store the number. */
static bool fits(const struct place *at, unsigned i)
{
    return !at->slow ? at->vote[i] == LOW
                     : grants(at->vote[i]) && previous[at->vote[i]] < at->number;
}

/* Counts the nodes that have stored the number; with `possible`, also those that still may. */
static unsigned count(const struct place *at, bool possible)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < at->nodes; i++) {
        bool open = at->vote[i] == NO_VOTE || (fits(at, i) && at->raise[i] == RAISING);
        bool supports = fits(at, i) && (!at->slow || at->raise[i] == ACKED);
        sum += supports || (possible && open);
    }
    return sum;
}

/* Counts the nodes that have granted; with `possible`, also those that still may. */
static unsigned count_grants(const struct place *at, bool possible)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < at->nodes; i++)
        sum += grants(at->vote[i]) || (possible && at->vote[i] == NO_VOTE);
    return sum;
}

/* Returns the nodes on which the key may be. */
static rl_nodes may_be_set(const struct place *at)
{
    rl_nodes set = 0;

    for (unsigned i = 0; i < at->nodes; i++)
        set |= at->vote[i] == REFUSED || at->raise[i] == KEY_GONE ? 0 : RL_NODE(i);
    return set;
}

/* Chooses the number with the q-th grant: the proposal if a majority stored it, otherwise one above
 * all that were reported. */
static void choose(struct place *at)
{
    uint64_t top = 0;

    if (at->number != 0 || count_grants(at, false) < at->quorum)
        return;
    unsigned stored = 0;
    for (unsigned i = 0; i < at->nodes; i++) {
        stored += at->vote[i] == LOW;
        if (grants(at->vote[i]))
            top = rl_max_u64(top, at->vote[i] == LOW ? P : previous[at->vote[i]]);
    }
    at->slow = stored < at->quorum;
    at->number = at->slow ? top + 1 : P;
}

/* Returns the nodes that must get a RAISE in this step: exactly those that can store the number. */
static rl_nodes expected_raise(struct place *at)
{
    rl_nodes set = 0;

    for (unsigned i = 0; at->slow && i < at->nodes; i++) {
        if (!fits(at, i) || at->raise[i] != NOT_RAISED)
            continue;
        at->raise[i] = RAISING;
        set |= RL_NODE(i);
    }
    return set;
}

/* Checks that the lock is held with the expected fencing token. */
static void check_held(const struct place *at)
{
    const struct rl_effects *fx = &at->rig.fx;

    MUST(fx->flags == (RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE), "flags %x", fx->flags);
    MUST(fx->raise == 0 && fx->undo == 0, "raise %x undo %x", fx->raise, fx->undo);
    MUST(at->rig.lease.fence->chosen == at->number, "fence %llu, expected %llu",
         (unsigned long long)at->rig.lease.fence->chosen, (unsigned long long)at->number);
    MUST(at->rig.lease.ours == may_be_set(at), "ours %x", at->rig.lease.ours);
    walk_tally.sequences++;
}

/* Checks that the attempt has failed and everything is undone. */
static void check_failed(const struct place *at)
{
    const struct rl_effects *fx = &at->rig.fx;

    MUST(fx->flags == (RL_FX_DONE | RL_FX_ENDED) && fx->status != REDLOCK_OK, "flags %x status %d",
         fx->flags, fx->status);
    MUST(fx->undo == may_be_set(at), "undo %x, may be set on %x", fx->undo, may_be_set(at));
    MUST(fx->raise == 0 && fx->request == 0, "raise %x", fx->raise);
    walk_tally.sequences++;
}

/* Checks the step that was just made. Returns false if the attempt has ended. */
static bool check(struct place *at)
{
    bool possible = count_grants(at, true) >= at->quorum;

    choose(at);
    if (at->number != 0)
        possible = count(at, true) >= at->quorum;
    if (at->number != 0 && count(at, false) >= at->quorum) {
        MUST(at->rig.lease.state == RL_STATE_HELD, "not held");
        check_held(at);
        return false;
    }
    rl_nodes raise = expected_raise(at);
    possible = at->number == 0 ? possible : count(at, true) >= at->quorum;
    if (!possible) {
        MUST(at->rig.lease.state == RL_STATE_ENDED, "goes on without hope");
        check_failed(at);
        return false;
    }
    MUST(at->rig.lease.state == RL_STATE_ACQUIRING, "state %u", at->rig.lease.state);
    MUST(at->rig.fx.raise == raise, "raise %x, expected %x", at->rig.fx.raise, raise);
    MUST(at->rig.fx.flags == 0 && at->rig.fx.undo == 0, "flags %x", at->rig.fx.flags);
    return true;
}

/* Checks that `event`, a cancellation or the end of time, undoes everything. */
static void probe_end(const struct place *before, uint8_t event)
{
    struct place at;

    memcpy(&at, before, sizeof at);
    walk_tally.steps++;
    if (event == RL_EVENT_TICK)
        rig_pass(&at.rig, RIG_TTL_NS);
    rig_event(&at.rig, event);
    MUST(at.rig.lease.state == RL_STATE_ENDED, "state %u", at.rig.lease.state);
    check_failed(&at);
}

/* Passes a vote of the first or the second round. */
static void ballot(struct place *at, unsigned node, enum rl_verb verb, enum rl_vote vote,
                   uint64_t number)
{
    walk_tally.steps++;
    rig_ballot(&at->rig, (struct rl_ballot){
                             .node = (uint8_t)node,
                             .vote = (uint8_t)vote,
                             .cause = vote == RL_VOTE_FAILED ? REDLOCK_CAUSE_TIMEOUT : 0,
                             .verb = (uint8_t)verb,
                             .round = at->rig.lease.round.number,
                             .accepted = P > number,
                             .register_value = number,
                         });
}

/* Walks everything that can still happen from here. */
static void walk(const struct place *before)
{
    static const enum rl_vote raise_votes[] = {
        [ACKED] = RL_VOTE_GRANTED, [KEY_GONE] = RL_VOTE_DENIED, [RAISE_BROKEN] = RL_VOTE_FAILED};

    probe_end(before, RL_EVENT_CANCEL);
    probe_end(before, RL_EVENT_TICK);
    for (unsigned node = 0; node < before->nodes; node++) {
        for (unsigned vote = LOW; before->vote[node] == NO_VOTE && vote < VOTES; vote++) {
            struct place at;
            memcpy(&at, before, sizeof at);
            at.vote[node] = (uint8_t)vote;
            walk_enter('v', node, vote);
            ballot(&at, node, RL_VERB_ACQUIRE,
                   grants(vote)      ? RL_VOTE_GRANTED
                   : vote == REFUSED ? RL_VOTE_DENIED
                                     : RL_VOTE_FAILED,
                   previous[vote]);
            if (check(&at))
                walk(&at);
            walk_leave();
        }
        for (unsigned raise = ACKED; before->raise[node] == RAISING && raise <= RAISE_BROKEN;
             raise++) {
            struct place at;
            memcpy(&at, before, sizeof at);
            at.raise[node] = (uint8_t)raise;
            walk_enter('r', node, raise);
            ballot(&at, node, RL_VERB_RAISE, raise_votes[raise], 0);
            if (check(&at))
                walk(&at);
            walk_leave();
        }
    }
}

/* Walks through acquisitions with a fence with that many nodes. */
void walk_fence(unsigned nodes)
{
    struct place at = {.nodes = nodes, .quorum = nodes / 2 + 1};

    walk_tally = (struct tally){0};
    rig_init(&at.rig, nodes);
    at.rig.params.terms.fence = true;
    rig_start(&at.rig);
    rl_fence_begin(at.rig.lease.fence, P);
    walk(&at);
}
