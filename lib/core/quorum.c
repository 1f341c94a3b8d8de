/* SPDX-License-Identifier: MIT
 * Counts the votes of a round, judges the round, and finds the error of a round that failed.
 *
 * A round is one request to the nodes of a shard. rl_round_open() says which nodes are asked.
 * rl_round_count() records each vote: a node that was requested is pending until it is in
 * `granted`, `denied` or `failed`. rl_round_judge() finds the outcome, by rules that depend on the
 * verb of the request. The outcome stays once it is decided, but later votes are still recorded.
 * The grants of excluded nodes are recorded, too, but do not count.
 *
 * In a round for a lock that asks the preferred node first, the other nodes are deferred: they are
 * asked later, by rl_round_take_deferred(), or never. */
#include "core/quorum.h"

#include "core/cause.h"
#include "redlock/redlock.h"

#include <string.h>

/* Aborts if an invariant of struct rl_round is broken. */
static void check_invariants(const struct rl_round *round)
{
    rl_nodes all = rl_nodes_all(round->nodes);

    RL_ASSERT((round->granted & round->denied) == 0);
    RL_ASSERT(((round->granted | round->denied) & round->failed) == 0);
    RL_ASSERT(((round->granted | round->denied) & ~round->requested) == 0);
    RL_ASSERT(((round->requested | round->failed | round->absent) & ~all) == 0);
    RL_ASSERT((round->deferred & (round->requested | round->failed | ~all)) == 0);
}

/* Makes a round for `nodes` nodes that needs `quorum` votes; no request was sent yet. The round
 * uses the two arrays from now on, for the round trip and the cause of each node. Each has `nodes`
 * elements and belongs to the caller. */
void rl_round_init(struct rl_round *round, unsigned nodes, unsigned quorum, uint32_t *rtt_us,
                   uint8_t *cause)
{
    memset(round, 0, sizeof *round);
    round->nodes = (uint8_t)nodes;
    round->quorum = (uint8_t)quorum;
    round->rtt_us = rtt_us;
    round->cause = cause;
}

/* Copies the contents of `from` to `round`. Each keeps its own arrays; their elements are copied.
 */
void rl_round_copy(struct rl_round *round, const struct rl_round *from)
{
    uint32_t *rtt_us = round->rtt_us;
    uint8_t *cause = round->cause;

    RL_ASSERT(round->nodes == from->nodes);
    *round = *from;
    round->rtt_us = rtt_us;
    round->cause = cause;
    memcpy(rtt_us, from->rtt_us, from->nodes * sizeof *rtt_us);
    memcpy(cause, from->cause, from->nodes * sizeof *cause);
}

/* Returns all nodes that may be asked in this round, in `targets` or not. These are the nodes that
 * are up. Suspect nodes may be asked as well, in two cases: the request is RELEASE or SHORTEN,
 * which should reach every key; or without them, the nodes of `targets` that can be asked and are
 * not excluded would be fewer than the quorum. */
static rl_nodes reachable(const struct rl_round *round, rl_nodes targets,
                          const struct rl_view *view)
{
    bool removes_keys = round->verb == RL_VERB_RELEASE || round->verb == RL_VERB_SHORTEN;
    unsigned without = rl_nodes_count(targets & view->up & ~round->excluded);

    return view->up | (removes_keys || without < round->quorum ? view->suspect : 0);
}

/* Opens the next round of a lease, for a request `verb` to the nodes of `targets`: empties the
 * votes, sets T1 and the number, and sets `requested` to the nodes of `targets` that can be asked.
 * The others of `targets` fail at once. Nodes that are not in `targets` become `absent`. Grants of
 * `excluded` do not count. */
void rl_round_open(struct rl_round *round, enum rl_verb verb, rl_nodes targets, rl_nodes excluded,
                   const struct rl_view *view)
{
    RL_ASSERT(round->nodes >= 1 && round->nodes <= RL_NODES_MAX);
    RL_ASSERT(round->quorum > round->nodes / 2 && round->quorum <= round->nodes);

    rl_nodes all = rl_nodes_all(round->nodes);
    round->number++;
    round->verb = (uint8_t)verb;
    round->outcome = RL_OUTCOME_OPEN;
    round->excluded = excluded & all;
    rl_nodes up = reachable(round, targets & all, view);
    round->requested = targets & up & all;
    round->failed = targets & ~up & all;
    round->suspect = round->requested & view->suspect;
    round->deferred = 0;
    round->absent = all & ~targets;
    round->granted = 0;
    round->denied = 0;
    round->t1 = view->now;
    round->t1_wall_us = view->wall_us;
    memset(round->rtt_us, 0, round->nodes * sizeof *round->rtt_us);
    memset(round->cause, 0, round->nodes * sizeof *round->cause);
    for (rl_nodes rest = round->failed | round->excluded | round->suspect; rest != 0;
         rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        round->cause[node] = view->cause[node];
    }
    check_invariants(round);
}

/* Moves those of `nodes` that are requested to `deferred`: they are asked later. */
void rl_round_defer(struct rl_round *round, rl_nodes nodes)
{
    round->deferred = round->requested & nodes;
    round->requested &= ~nodes;
    round->suspect &= ~nodes;
    check_invariants(round);
}

/* Ends the deferral: moves the deferred nodes that can still be asked to `requested` and returns
 * them. The caller sends them the request. The other deferred nodes fail, with the cause in `view`.
 */
rl_nodes rl_round_take_deferred(struct rl_round *round, const struct rl_view *view)
{
    rl_nodes later = round->deferred;
    rl_nodes up = reachable(round, (round->requested | later) & ~round->failed, view);
    rl_nodes unreachable = later & ~up;

    round->deferred = 0;
    round->requested |= later & up;
    round->suspect |= later & up & view->suspect;
    round->failed |= unreachable;
    for (; unreachable != 0; unreachable &= unreachable - 1)
        round->cause[__builtin_ctz(unreachable)] = view->cause[__builtin_ctz(unreachable)];
    check_invariants(round);
    return later & up;
}

/* Completes `round`, for the report, by a later round of the same lease: for each node that is
 * deferred in `round` and was asked in `later`, copies what `later` knows about that node. */
void rl_round_complete(struct rl_round *round, const struct rl_round *later)
{
    rl_nodes nodes = round->deferred & (later->requested | later->failed);

    round->deferred &= ~nodes;
    round->requested |= nodes & later->requested;
    round->granted |= nodes & later->granted;
    round->denied |= nodes & later->denied;
    round->failed |= nodes & later->failed;
    round->suspect |= nodes & later->suspect;
    for (; nodes != 0; nodes &= nodes - 1) {
        unsigned node = (unsigned)__builtin_ctz(nodes);
        round->rtt_us[node] = later->rtt_us[node];
        round->cause[node] = later->cause[node];
    }
    check_invariants(round);
}

/* Counts all deferred nodes as failed with `cause` (enum redlock_cause), without asking them. */
void rl_round_fail_deferred(struct rl_round *round, uint8_t cause)
{
    round->failed |= round->deferred;
    for (; round->deferred != 0; round->deferred &= round->deferred - 1)
        round->cause[__builtin_ctz(round->deferred)] = cause;
}

/* Records one vote, with its cause and round trip. Returns false, and does nothing, if the vote
 * belongs to another round or its node is not pending. A SUSPECT vote only marks the node, which
 * stays pending. The cause why a node is excluded is not overwritten, unless the node fails. */
bool rl_round_count(struct rl_round *round, const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);

    RL_ASSERT(ballot->node < round->nodes);
    if (ballot->round != round->number || (rl_round_pending(round) & bit) == 0)
        return false;
    switch (ballot->vote) {
    case RL_VOTE_GRANTED:
        round->granted |= bit;
        break;
    case RL_VOTE_DENIED:
        round->denied |= bit;
        break;
    case RL_VOTE_SUSPECT:
        round->suspect |= bit;
        break;
    default:
        RL_ASSERT(ballot->vote == RL_VOTE_FAILED);
        round->failed |= bit;
        break;
    }
    if (ballot->vote == RL_VOTE_FAILED || (round->excluded & bit) == 0)
        round->cause[ballot->node] = ballot->cause;
    round->rtt_us[ballot->node] = ballot->rtt_us;
    check_invariants(round);
    return true;
}

/* Adds `nodes` to the excluded ones: none of their grants counts any more, earlier ones included.
 * Takes the cause of each from `view`, except for nodes that have failed. Does not judge the round.
 */
void rl_round_exclude(struct rl_round *round, rl_nodes nodes, const struct rl_view *view)
{
    nodes &= rl_nodes_all(round->nodes) & ~round->excluded;
    round->excluded |= nodes;
    for (nodes &= ~round->failed; nodes != 0; nodes &= nodes - 1) {
        unsigned node = (unsigned)__builtin_ctz(nodes);
        round->cause[node] = view->cause[node];
    }
}

/* Returns the nodes that were asked and have not voted. */
rl_nodes rl_round_pending(const struct rl_round *round)
{
    return round->requested & ~(round->granted | round->denied | round->failed);
}

/* Returns whether a round of EXTEND in which a node has denied may still show that no quorum has
 * the key: the nodes of `gone`, which do not have it, are too few for that, but would be enough
 * together with those that may still deny. Suspect nodes are not waited for. */
bool rl_round_may_show_loss(const struct rl_round *round, rl_nodes gone)
{
    unsigned spare = (unsigned)(round->nodes - round->quorum);
    rl_nodes may_deny = rl_round_pending(round) & ~round->suspect;

    return round->denied != 0 && rl_nodes_count(gone) <= spare &&
           rl_nodes_count(gone | may_deny) > spare;
}

/* Returns the nodes whose grants count: they have granted and are not excluded. */
rl_nodes rl_round_counted(const struct rl_round *round)
{
    return round->granted & ~round->excluded;
}

/* Judges a round of ACQUIRE or EXTEND. It is won by a quorum of grants that count. It fails as soon
 * as the missing votes cannot complete a quorum, or if the preferred node denies while the others
 * are deferred. Votes of excluded nodes are not waited for. Once a node has denied an ACQUIRE,
 * votes of suspect nodes are not waited for either: another contender needs the votes of this
 * attempt. */
static enum rl_outcome judge_majority(const struct rl_round *round)
{
    bool contended = round->verb == RL_VERB_ACQUIRE && round->denied != 0;
    rl_nodes not_awaited = round->excluded | (contended ? round->suspect : 0);
    unsigned granted = rl_nodes_count(rl_round_counted(round));
    unsigned open = rl_nodes_count((rl_round_pending(round) | round->deferred) & ~not_awaited);

    if (round->deferred != 0 && round->denied != 0)
        return RL_OUTCOME_FAILED; /* the preferred node's denial decides the attempt */
    if (granted >= round->quorum)
        return RL_OUTCOME_WON;
    if (granted + open >= round->quorum)
        return RL_OUTCOME_OPEN;
    return RL_OUTCOME_FAILED;
}

/* Judges a round of RELEASE or SHORTEN. It is won once a quorum is known not to have the key any
 * more (after SHORTEN: to have shortened it). Granted: the server has removed the key now. Denied
 * or absent: the key was not there before. If that is true of so many nodes that no quorum can have
 * had the key, the lock had been lost before: LOST. Suspect nodes are waited for like the others.
 */
static enum rl_outcome judge_release(const struct rl_round *round)
{
    unsigned gone = rl_nodes_count(round->denied | round->absent);
    unsigned confirmed = gone + rl_nodes_count(round->granted);
    unsigned open = rl_nodes_count(rl_round_pending(round));

    if (gone + round->quorum > round->nodes)
        return RL_OUTCOME_LOST;
    if (confirmed >= round->quorum)
        return RL_OUTCOME_WON;
    return confirmed + open < round->quorum ? RL_OUTCOME_FAILED : RL_OUTCOME_OPEN;
}

/* Judges a round of GET for an inspection. It is won if a quorum has replied, with a key or without
 * one. It waits for all nodes that are not suspect, and for the suspect ones only as long as fewer
 * nodes than the quorum have replied. */
static enum rl_outcome judge_inspection(const struct rl_round *round)
{
    rl_nodes pending = rl_round_pending(round);
    unsigned replied = rl_nodes_count(round->granted | round->denied);

    if ((pending & ~round->suspect) != 0)
        return RL_OUTCOME_OPEN;
    if (replied >= round->quorum)
        return RL_OUTCOME_WON;
    return pending != 0 ? RL_OUTCOME_OPEN : RL_OUTCOME_FAILED;
}

/* Judges a round of GET for a verification, in which a grant means that the node has our key. It is
 * won by a quorum of grants that count. It is LOST if so many nodes denied that no quorum can have
 * the key. It fails once the missing votes can lead to neither. */
static enum rl_outcome judge_ours(const struct rl_round *round)
{
    rl_nodes pending = rl_round_pending(round);
    unsigned ours = rl_nodes_count(rl_round_counted(round));
    unsigned gone = rl_nodes_count(round->denied);
    unsigned spare = (unsigned)(round->nodes - round->quorum);

    if (gone > spare)
        return RL_OUTCOME_LOST;
    if (ours >= round->quorum)
        return RL_OUTCOME_WON;
    bool may_be_ours = ours + rl_nodes_count(pending & ~round->excluded) >= round->quorum;
    bool may_be_gone = gone + rl_nodes_count(pending) > spare;
    return may_be_ours || may_be_gone ? RL_OUTCOME_OPEN : RL_OUTCOME_FAILED;
}

/* Judges a verification, unless its outcome is decided. Stores and returns the outcome. */
enum rl_outcome rl_round_judge_verify(struct rl_round *round)
{
    if (round->outcome == RL_OUTCOME_OPEN)
        round->outcome = (uint8_t)judge_ours(round);
    return (enum rl_outcome)round->outcome;
}

/* Judges any other round by its verb, unless its outcome is decided. Stores and returns the
 * outcome. */
enum rl_outcome rl_round_judge(struct rl_round *round)
{
    if (round->outcome != RL_OUTCOME_OPEN)
        return (enum rl_outcome)round->outcome;
    enum rl_outcome outcome;
    switch (round->verb) {
    case RL_VERB_ACQUIRE:
    case RL_VERB_EXTEND:
        outcome = judge_majority(round);
        break;
    case RL_VERB_RELEASE:
    case RL_VERB_SHORTEN:
        outcome = judge_release(round);
        break;
    default:
        RL_ASSERT(round->verb == RL_VERB_GET);
        outcome = judge_inspection(round);
        break;
    }
    round->outcome = (uint8_t)outcome;
    return outcome;
}

/* Returns the error (enum redlock_error) of a round that has failed or is abandoned. `spare` is the
 * number of nodes that a quorum does not need. A node has no usable vote if it has failed, if it is
 * excluded and has not denied, or if it is suspect and pending; if the round is still open, every
 * pending or deferred node has none, either. More than `spare` nodes without a usable vote make a
 * quorum impossible. The first error in this order applies: ENOMEM, EAUTH or EEXCLUDED, if one of
 * them alone accounts for more than `spare` nodes; EFENCE or EEXCLUDED, if there would have been a
 * quorum without the nodes whose record is unusable or that are excluded; ENOQUORUM, if more than
 * `spare` nodes gave no usable vote; else ECONTENDED. */
int rl_round_status(const struct rl_round *round)
{
    unsigned spare = (unsigned)(round->nodes - round->quorum);
    /* Numbers of nodes without a usable vote: `failed` counts all of them, `memory`, `auth` and
     * `refused` those whose cause stands for ENOMEM, EAUTH and EEXCLUDED, `fence` those whose fence
     * record is unusable, and `excluded` those that did not fail and whose cause is a reason for
     * exclusion. */
    unsigned failed = 0, refused = 0, auth = 0, memory = 0, fence = 0, excluded = 0;
    unsigned denied = rl_nodes_count(round->denied);

    rl_nodes without = round->failed | (round->excluded & ~round->denied) |
                       (round->suspect & rl_round_pending(round));
    if (round->outcome == RL_OUTCOME_OPEN)
        without |= rl_round_pending(round) | round->deferred;
    for (; without != 0; without &= without - 1) {
        unsigned node = (unsigned)__builtin_ctz(without);
        uint8_t cause = round->cause[node];
        failed++;
        int status = rl_cause_of(cause)->status;
        excluded += (round->failed & RL_NODE(node)) == 0 && rl_cause_of(cause)->excludes;
        fence += cause == REDLOCK_CAUSE_FENCE_RECORD;
        memory += status == REDLOCK_ENOMEM;
        auth += status == REDLOCK_EAUTH;
        refused += status == REDLOCK_EEXCLUDED;
    }
    if (memory > spare)
        return REDLOCK_ENOMEM;
    if (auth > spare)
        return REDLOCK_EAUTH;
    if (refused > spare)
        return REDLOCK_EEXCLUDED;
    /* With usable fence records there would have been a quorum. */
    if (fence > 0 && failed - fence + rl_nodes_count(round->denied) <= spare)
        return REDLOCK_EFENCE;
    /* A denial means that the lock is contended. The exclusions are the reason only if no node
     * denied, if no client can reach a quorum without the excluded nodes, or if a quorum granted,
     * the excluded nodes included. */
    bool decisive =
        denied == 0 || excluded > spare || rl_nodes_count(round->granted) >= round->quorum;
    if (excluded > 0 && decisive && failed - excluded + denied <= spare)
        return REDLOCK_EEXCLUDED;
    return failed > spare ? REDLOCK_ENOQUORUM : REDLOCK_ECONTENDED;
}
