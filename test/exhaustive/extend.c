/* SPDX-License-Identifier: MIT
 * Walks all answers of the nodes to an extension, in every order, from every state in which an
 * acquisition can leave them. At each point it tries silence until the end, release, and votes of
 * other rounds. */
#include "walk.h"

struct branch {
    struct rig rig;
    struct truth truth; /* of the extension */
    rl_nodes ours;      /* nodes that may have the key, by the record of the walk */
    bool in_call;       /* the caller waits for the extension */
};

static const enum answer KINDS[] = {GRANTED, DENIED, TIMED_OUT};

/* Returns a copy of the branch and counts a step. */
static struct branch copy_branch(const struct branch *branch)
{
    struct branch copy;

    memcpy(&copy, branch, sizeof copy);
    walk_tally.steps++;
    return copy;
}

/* Checks that the lock was lost and everything is undone. */
static void check_lost(const struct branch *after, uint32_t also)
{
    const struct rl_effects *fx = &after->rig.fx;
    uint32_t done = after->in_call ? RL_FX_DONE : 0;

    MUST(fx->flags == (RL_FX_LOST | RL_FX_ENDED | RL_FX_DEADLINE | done | also), "flags %x",
         fx->flags);
    MUST(fx->undo == after->ours && fx->request == 0 && fx->heal == 0, "undo %x of %x", fx->undo,
         after->ours);
    MUST(fx->status == REDLOCK_ELOST && after->rig.lease.state == RL_STATE_ENDED, "status %d",
         fx->status);
    walk_noise(&after->rig, &after->truth);
}

/* Checks the end of time, a release and a second request at this point. */
static void probe(const struct branch *branch)
{
    const struct rl_lease *lease = &branch->rig.lease;
    bool extending = lease->state == RL_STATE_EXTENDING;

    walk_noise(&branch->rig, &branch->truth);
    walk_check_wake(&branch->rig);
    MUST(rig_remaining_ns(&branch->rig) > 0, "nothing is left");
    MUST(lease->ours == branch->ours, "ours %x, may be ours %x", lease->ours, branch->ours);
    for (unsigned clock = 0; clock < 2; clock++) {
        struct branch copy = copy_branch(branch);
        if (clock == 0)
            copy.rig.view.now.boot_ns = lease->deadline.boot_ns;
        else
            copy.rig.view.now.raw_ns = lease->deadline.raw_ns;
        rig_tick(&copy.rig);
        check_lost(&copy, 0);
    }
    struct branch copy = copy_branch(branch);
    rig_event(&copy.rig, RL_EVENT_RELEASE);
    MUST((copy.rig.fx.request | copy.rig.fx.undo) == branch->ours, "ask %x undo %x of %x",
         copy.rig.fx.request, copy.rig.fx.undo, branch->ours);
    MUST((copy.rig.fx.request & copy.rig.fx.undo) == 0, "twice");
    copy = copy_branch(branch);
    rig_event(&copy.rig, RL_EVENT_CANCEL);
    walk_check_no_effect(&copy.rig);
    if (!extending)
        return;
    copy = copy_branch(branch); /* a second extension: replies to the first one do not count */
    rig_extend(&copy.rig, 0);
    MUST(copy.rig.lease.round.number == lease->round.number + 1, "the same round");
    for (unsigned i = 0; i < copy.truth.nodes; i++)
        copy.truth.answer[i] = SILENT;
    walk_noise(&copy.rig, &copy.truth);
}

/* Checks that the extension has succeeded, and that the last vote would not count too late. */
static void check_extended(const struct branch *before, struct branch *after, unsigned node)
{
    const struct rl_lease *lease = &after->rig.lease;
    const struct rl_effects *fx = &after->rig.fx;
    rl_nodes heal = truth_with(&after->truth, DENIED);
    uint32_t done = after->in_call ? RL_FX_DONE : 0;

    MUST(fx->flags == (RL_FX_EXTENDED | RL_FX_DEADLINE | done), "flags %x", fx->flags);
    MUST(fx->undo == 0 && fx->request == 0 && fx->heal == heal, "undo %x heal %x, missing on %x",
         fx->undo, fx->heal, heal);
    MUST(lease->deadline.boot_ns == lease->round.t1.boot_ns + RIG_USABLE_NS, "deadline");
    MUST(lease->state == RL_STATE_HELD, "state %u", lease->state);
    after->ours |= heal;
    after->in_call = false;

    /* The same vote after the old validity has ended: another client may have held the lock in
     * between. */
    struct branch late = copy_branch(before);
    late.rig.view.now.raw_ns = before->rig.lease.deadline.raw_ns;
    walk_answer(&late.rig, &late.truth, node, GRANTED);
    check_lost(&late, 0);
}

/* Returns whether the failure must not be reported yet: a node has denied, and with the missing
 * votes the lock may turn out to be lost. */
static bool may_be_lost(const struct branch *after)
{
    rl_nodes sure = after->ours & ~truth_silent(&after->truth);

    return after->in_call && truth_with(&after->truth, DENIED) != 0 &&
           rl_nodes_count(after->ours) >= after->truth.quorum &&
           rl_nodes_count(sure) < after->truth.quorum;
}

/* Checks that the extension has failed, and that the lock is lost without a majority of keys. */
static void check_failed(struct branch *after)
{
    const struct rl_effects *fx = &after->rig.fx;

    if (may_be_lost(after)) {
        walk_check_no_effect(&after->rig);
        MUST(after->rig.lease.state == RL_STATE_EXTENDING, "state %u", after->rig.lease.state);
        return;
    }
    if (rl_nodes_count(after->ours) < after->truth.quorum) {
        check_lost(after, RL_FX_EXTEND_FAILED);
        return;
    }
    uint32_t done = after->in_call ? RL_FX_DONE : 0;
    after->in_call = false;
    MUST(fx->flags == (RL_FX_EXTEND_FAILED | done), "flags %x", fx->flags);
    MUST(fx->undo == 0 && fx->heal == 0 && fx->status == REDLOCK_ENOQUORUM,
         "undo %x heal %x status %d", fx->undo, fx->heal, fx->status);
    MUST(after->rig.lease.state == RL_STATE_HELD, "state %u", after->rig.lease.state);
}

/* Passes a vote after the decision. Returns false if the lock is lost by it. */
static bool check_afterwards(struct branch *after, unsigned node, enum answer answer)
{
    bool won = after->rig.lease.round.outcome == RL_OUTCOME_WON;

    if (answer != DENIED) {
        walk_check_no_effect(&after->rig);
    } else if (won) {
        after->ours |= RL_NODE(node);
        MUST(after->rig.fx.heal == RL_NODE(node) && after->rig.fx.flags == 0 &&
                 after->rig.fx.undo == 0,
             "heal %x flags %x", after->rig.fx.heal, after->rig.fx.flags);
    } else if (rl_nodes_count(after->ours) < after->truth.quorum) {
        check_lost(after, 0);
        return false;
    } else {
        walk_check_no_effect(&after->rig);
    }
    return true;
}

/* Walks everything that can still happen from here. */
static void walk(const struct branch *before)
{
    probe(before);
    for (unsigned node = 0; node < before->truth.nodes; node++) {
        if ((truth_silent(&before->truth) & RL_NODE(node)) == 0)
            continue;
        for (unsigned i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
            /* A key that is known to be missing cannot be extended. */
            if (KINDS[i] == GRANTED && (before->ours & RL_NODE(node)) == 0)
                continue;
            struct branch after = copy_branch(before);
            walk_enter('e', node, KINDS[i]);
            walk_answer(&after.rig, &after.truth, node, KINDS[i]);
            walk_tally.sequences++;
            walk_check_round(&after.rig, &after.truth);
            if (KINDS[i] == DENIED)
                after.ours &= ~RL_NODE(node);
            bool goes_on = true;
            if (before->rig.lease.state == RL_STATE_HELD) {
                goes_on = check_afterwards(&after, node, KINDS[i]);
            } else {
                enum verdict verdict = truth_majority(&after.truth);
                if (verdict == UNDECIDED)
                    walk_check_no_effect(&after.rig);
                else if (verdict == CERTAIN)
                    check_extended(before, &after, node);
                else
                    check_failed(&after);
            }
            if (goes_on && after.rig.lease.state != RL_STATE_ENDED)
                walk(&after);
            walk_leave();
        }
    }
}

/* Sets up an acquisition with these answers, then an extension that only the nodes in `up` can get.
 */
static void start(unsigned nodes, const enum answer *answers, rl_nodes up, bool manual)
{
    struct branch branch;

    memset(&branch, 0, sizeof branch);
    rig_init(&branch.rig, nodes);
    branch.rig.params.terms.auto_extend = !manual;
    branch.in_call = manual;
    rig_start(&branch.rig);
    for (unsigned i = 0; i < nodes; i++) {
        struct truth acquisition = {.nodes = nodes};
        if (answers[i] != SILENT)
            walk_answer(&branch.rig, &acquisition, i, answers[i]);
        if (answers[i] != DENIED)
            branch.ours |= RL_NODE(i);
        if (answers[i] == GRANTED)
            branch.truth.counts |= RL_NODE(i);
        branch.truth.answer[i] = SILENT;
    }
    branch.truth.nodes = nodes;
    branch.truth.quorum = nodes / 2 + 1;
    branch.truth.asked = up;
    branch.rig.view.up = up;
    walk_enter('x', branch.truth.counts, up);
    if (manual) {
        rig_extend(&branch.rig, 0);
    } else {
        branch.rig.view.now = branch.rig.lease.next;
        rig_tick(&branch.rig);
    }
    MUST(branch.rig.fx.request == up, "asks %x", branch.rig.fx.request);
    if (truth_majority(&branch.truth) == IMPOSSIBLE)
        check_failed(&branch);
    else
        MUST(branch.rig.fx.flags == 0, "flags %x", branch.rig.fx.flags);
    walk(&branch);
    walk_leave();
}

/* Chooses all answers to a successful acquisition, up to the order of the nodes. */
static void choose(unsigned nodes, enum answer *answers, unsigned at, unsigned grants)
{
    static const enum answer kinds[] = {GRANTED, DENIED, TIMED_OUT, SILENT};

    if (at >= nodes || at >= WALK_NODES_MAX) {
        for (rl_nodes up = 0; grants >= nodes / 2 + 1 && up < RL_NODE(nodes); up++) {
            start(nodes, answers, up, up % 2 == 0);
            if (nodes < 5)
                start(nodes, answers, up, up % 2 != 0);
        }
        return;
    }
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (at > 0 && answers[at - 1] != GRANTED && kinds[i] == GRANTED)
            continue; /* sorted: the nodes that granted come first */
        answers[at] = kinds[i];
        choose(nodes, answers, at + 1, grants + (kinds[i] == GRANTED));
    }
}

/* Walks through extensions with that many nodes. */
void walk_extend(unsigned nodes)
{
    enum answer answers[WALK_NODES_MAX];

    choose(nodes, answers, 0, 0);
}
