/* SPDX-License-Identifier: MIT
 * The record of a round and its verdicts, by brute force; votes of other rounds; the path to a
 * failure. */
#include "walk.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>

struct tally walk_tally;

static struct {
    char what;
    uint8_t node, detail;
} path[64];
static unsigned path_len;

/* Adds a step to the path, which a failure prints as `what`, `node`, "." and `detail`. */
void walk_enter(char what, unsigned node, unsigned detail)
{
    if (path_len < sizeof path / sizeof path[0]) {
        path[path_len].what = what;
        path[path_len].node = (uint8_t)node;
        path[path_len].detail = (uint8_t)detail;
    }
    path_len++;
}

/* Removes the last step from the path. */
void walk_leave(void)
{
    path_len--;
}

/* Prints the failed condition with the path and ends the program. */
_Noreturn void walk_wrong(const char *file, int line, const char *condition, const char *format,
                          ...)
{
    char text[1600];
    size_t at = 0;
    va_list args;

    va_start(args, format);
    at += (size_t)vsnprintf(text, 400, format, args);
    va_end(args);
    if (at > 399)
        at = 399;
    at += (size_t)snprintf(text + at, sizeof text - at, "; path:");
    for (unsigned i = 0; i < path_len && i < sizeof path / sizeof path[0]; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " %c%u.%u", path[i].what, path[i].node,
                               path[i].detail);
    ck_abort_msg("%s:%d: '%s' does not hold: %s", file, line, condition, text);
}

/* Returns the nodes that got the request and gave that answer. */
rl_nodes truth_with(const struct truth *truth, enum answer answer)
{
    rl_nodes set = 0;

    for (unsigned i = 0; i < truth->nodes; i++)
        if ((truth->asked & RL_NODE(i)) != 0 && truth->answer[i] == answer)
            set |= RL_NODE(i);
    return set;
}

/* Returns the nodes that failed: timeout, error reply, or request not sent. */
rl_nodes truth_failed(const struct truth *truth)
{
    return truth_with(truth, TIMED_OUT) | truth_with(truth, ERROR_REPLY) |
           truth_with(truth, UNSENT);
}

/* Returns the nodes that got the request and have not answered yet. */
rl_nodes truth_silent(const struct truth *truth)
{
    return truth_with(truth, SILENT);
}

/* Returns whether a majority of grants (acquire, extend) is certain or impossible, whatever the
 * silent nodes answer. Tries every set of further grants. */
enum verdict truth_majority(const struct truth *truth)
{
    rl_nodes open = truth_silent(truth);
    bool can_win = false, can_fail = false;

    for (rl_nodes more = 0; more < RL_NODE(truth->nodes); more++) {
        if ((more & ~open) != 0)
            continue;
        unsigned grants = 0;
        for (unsigned i = 0; i < truth->nodes; i++) {
            bool granted = truth->answer[i] == GRANTED || (more & RL_NODE(i)) != 0;
            grants += granted && (truth->counts & truth->asked & RL_NODE(i)) != 0;
        }
        if (grants >= truth->quorum)
            can_win = true;
        else
            can_fail = true;
    }
    if (can_win && can_fail)
        return UNDECIDED;
    return can_win ? CERTAIN : IMPOSSIBLE;
}

/* Returns whether a release has certainly succeeded, can no longer succeed, or has proven that
 * the key was gone: compares the nodes that may have had the key with those that certainly do
 * not have it any more. */
enum verdict truth_release(const struct truth *truth)
{
    unsigned may_have_had = 0, free = 0, may_become_free = 0;

    for (unsigned i = 0; i < truth->nodes; i++) {
        bool absent = (truth->absent & RL_NODE(i)) != 0;
        bool asked = (truth->asked & RL_NODE(i)) != 0;
        uint8_t answer = truth->answer[i];
        bool silent = asked && answer == SILENT;
        bool gone = absent || (asked && answer == DENIED);
        bool deleted = asked && answer == GRANTED;
        may_have_had += !gone;
        free += gone || deleted;
        may_become_free += gone || deleted || silent;
    }
    if (may_have_had < truth->quorum)
        return PROVEN_GONE;
    if (free >= truth->quorum)
        return CERTAIN;
    return may_become_free < truth->quorum ? IMPOSSIBLE : UNDECIDED;
}

/* Returns the REDLOCK_E* for a round that failed without a majority. */
int truth_status(const struct truth *truth)
{
    unsigned replied = 0;

    for (unsigned i = 0; i < truth->nodes; i++) {
        if ((truth->asked & RL_NODE(i)) == 0)
            continue;
        uint8_t answer = truth->answer[i];
        bool counts = (truth->counts & RL_NODE(i)) != 0;
        replied += answer == DENIED || (counts && (answer == GRANTED || answer == SILENT));
    }
    return replied < truth->quorum ? REDLOCK_ENOQUORUM : REDLOCK_ECONTENDED;
}

/* Returns the node's vote in the running round. */
static struct rl_ballot ballot_of(const struct rig *rig, unsigned node, enum answer answer)
{
    static const uint8_t votes[ANSWERS] = {
        0, RL_VOTE_GRANTED, RL_VOTE_DENIED, RL_VOTE_FAILED, RL_VOTE_FAILED, RL_VOTE_FAILED};
    static const uint8_t causes[ANSWERS] = {
        0, 0, 0, REDLOCK_CAUSE_TIMEOUT, REDLOCK_CAUSE_ERROR_REPLY, REDLOCK_CAUSE_CONNECT};

    return (struct rl_ballot){
        .node = (uint8_t)node,
        .vote = votes[answer],
        .cause = causes[answer],
        .verb = rig->lease.round.verb,
        .unsent = answer == UNSENT,
        .round = rig->lease.round.number,
        .rtt_us = 1,
    };
}

/* Passes a node's answer in the running round to the rig and records it in the truth. */
void walk_answer(struct rig *rig, struct truth *truth, unsigned node, enum answer answer)
{
    truth->answer[node] = (uint8_t)answer;
    walk_tally.steps++;
    rig_ballot(rig, ballot_of(rig, node, answer));
}

/* Returns whether two leases are equal, apart from their pointers into their rigs. */
static bool is_same_lease(struct rig *copy, const struct rig *original)
{
    struct rl_lease *lease = &copy->lease;

    lease->terms = original->lease.terms;
    lease->round.rtt_us = original->lease.round.rtt_us;
    lease->round.cause = original->lease.round.cause;
    lease->permit = original->lease.permit;
    lease->fence = original->lease.fence;
    lease->decided = original->lease.decided;
    return memcmp(lease, &original->lease, sizeof *lease) == 0 &&
           memcmp(copy->rtt_us, original->rtt_us, sizeof copy->rtt_us) == 0 &&
           memcmp(copy->cause, original->cause, sizeof copy->cause) == 0 &&
           memcmp(&copy->permit, &original->permit, sizeof copy->permit) == 0 &&
           memcmp(&copy->fence, &original->fence, sizeof copy->fence) == 0;
}

/* Checks that the vote changes no bit of `copy`, which is equal to `original`, and has no effect.
 */
static void check_ignored(struct rig *copy, const struct rig *original,
                          const struct rl_ballot *ballot)
{
    walk_tally.steps++;
    rig_ballot(copy, *ballot);
    MUST(is_same_lease(copy, original), "a vote %u of node %u, round %u, changed the lease",
         ballot->vote, ballot->node, ballot->round);
    walk_check_no_effect(copy);
}

/* Checks that old, duplicate and future votes change no bit of the lease and have no effect. */
void walk_noise(const struct rig *rig, const struct truth *truth)
{
    static const enum answer kinds[] = {GRANTED, DENIED, UNSENT};
    rl_nodes silent = rig->lease.state == RL_STATE_ENDED || rig->lease.state == RL_STATE_WAITING
                          ? 0
                          : truth_silent(truth);
    struct rig copy = *rig; /* one for all votes, because none of them changes it */

    for (unsigned node = 0; node < truth->nodes; node++) {
        for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            struct rl_ballot ballot = ballot_of(rig, node, kinds[i]);
            ballot.round--;
            check_ignored(&copy, rig, &ballot);
            ballot.round += 2;
            check_ignored(&copy, rig, &ballot);
            ballot.round--;
            if ((silent & RL_NODE(node)) == 0) /* a second vote, or one without a request */
                check_ignored(&copy, rig, &ballot);
        }
    }
}

/* Checks that the sets of the round agree with the truth and are disjoint. */
void walk_check_round(const struct rig *rig, const struct truth *truth)
{
    const struct rl_round *round = &rig->lease.round;
    rl_nodes all = rl_nodes_all(truth->nodes);

    MUST((round->granted & round->denied) == 0, "granted and denied");
    MUST(((round->granted | round->denied) & round->failed) == 0, "answered and failed");
    MUST(round->granted == truth_with(truth, GRANTED), "granted %x", round->granted);
    MUST(round->denied == truth_with(truth, DENIED), "denied %x", round->denied);
    MUST(round->failed == (truth_failed(truth) | (all & ~truth->asked & ~truth->absent)),
         "failed %x", round->failed);
}

/* Checks that the last step had no effect. */
void walk_check_no_effect(const struct rig *rig)
{
    const struct rl_effects *fx = &rig->fx;

    MUST(fx->flags == 0 && fx->status == 0 && (fx->request | fx->undo | fx->heal) == 0,
         "flags %x status %d ask %x undo %x heal %x", fx->flags, fx->status, fx->request, fx->undo,
         fx->heal);
}

/* Checks that a pending timer is in the future, and that there is none where none is needed. */
void walk_check_wake(const struct rig *rig)
{
    uint8_t state = rig->lease.state;
    bool timed = state == RL_STATE_ACQUIRING || state == RL_STATE_WAITING ||
                 state == RL_STATE_HELD || state == RL_STATE_EXTENDING;

    if (timed)
        MUST(rig->lease.wake_ns != RL_NEVER && rig->lease.wake_ns > rig->view.now.boot_ns,
             "state %u would sleep until %llu", state, (unsigned long long)rig->lease.wake_ns);
    else
        MUST(rig->lease.wake_ns == RL_NEVER, "state %u has a timer", state);
}
