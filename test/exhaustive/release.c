/* SPDX-License-Identifier: MIT
 * Walks all answers of the nodes to a release, in every order, from every set of nodes that may
 * have the key and every set that can be requested. */
#include "walk.h"

struct branch {
    struct rig rig;
    struct truth truth;
};

/* Returns a copy of the branch and counts a step. */
static struct branch copy_branch(const struct branch *branch)
{
    struct branch copy;

    memcpy(&copy, branch, sizeof copy);
    walk_tally.steps++;
    return copy;
}

static const enum answer KINDS[] = {GRANTED, DENIED, TIMED_OUT, UNSENT};
static unsigned kind_count;

/* Returns the status that the verdict causes. */
static int expected_status(enum verdict verdict)
{
    if (verdict == CERTAIN)
        return REDLOCK_OK;
    return verdict == PROVEN_GONE ? REDLOCK_ELOST : REDLOCK_ENOQUORUM;
}

/* Checks that nothing has an effect after the outcome. */
static void probe_ended(const struct branch *branch)
{
    static const uint8_t events[] = {RL_EVENT_TICK, RL_EVENT_CANCEL, RL_EVENT_CONFIRM};

    walk_noise(&branch->rig, &branch->truth);
    walk_check_wake(&branch->rig);
    for (unsigned i = 0; i < sizeof events; i++) {
        struct branch copy = copy_branch(branch);
        rig_event(&copy.rig, events[i]);
        walk_check_no_effect(&copy.rig);
    }
}

/* Checks that a release in progress is not lost, and can be cancelled. */
static void probe_open(const struct branch *branch)
{
    walk_noise(&branch->rig, &branch->truth);
    walk_check_wake(&branch->rig);
    MUST(rig_remaining_ns(&branch->rig) == 0, "still held");
    struct branch copy = copy_branch(branch);
    rig_pass(&copy.rig, RIG_TTL_NS);
    rig_tick(&copy.rig); /* a release is not reported as a loss */
    walk_check_no_effect(&copy.rig);
    rig_event(&copy.rig, RL_EVENT_CANCEL);
    MUST(copy.rig.fx.flags == (RL_FX_DONE | RL_FX_ENDED) &&
             copy.rig.fx.status == REDLOCK_ECANCELED && copy.rig.fx.undo == 0,
         "flags %x status %d undo %x", copy.rig.fx.flags, copy.rig.fx.status, copy.rig.fx.undo);
    probe_ended(&copy);
}

/* Walks everything that can still happen from here. */
static void walk(const struct branch *before)
{
    probe_open(before);
    for (unsigned node = 0; node < before->truth.nodes; node++) {
        if ((truth_silent(&before->truth) & RL_NODE(node)) == 0)
            continue;
        for (unsigned i = 0; i < kind_count; i++) {
            struct branch after = copy_branch(before);
            walk_enter('r', node, KINDS[i]);
            walk_answer(&after.rig, &after.truth, node, KINDS[i]);
            walk_tally.sequences++;
            walk_check_round(&after.rig, &after.truth);
            enum verdict verdict = truth_release(&after.truth);
            if (verdict == UNDECIDED) {
                walk_check_no_effect(&after.rig);
                walk(&after);
            } else {
                const struct rl_effects *fx = &after.rig.fx;
                MUST(fx->flags == (RL_FX_DONE | RL_FX_ENDED) && fx->undo == 0 && fx->request == 0,
                     "flags %x undo %x", fx->flags, fx->undo);
                MUST(fx->status == expected_status(verdict), "status %d, expected %d", fx->status,
                     expected_status(verdict));
                probe_ended(&after);
            }
            walk_leave();
        }
    }
}

/* Starts the release and checks its requests and undos. */
static void begin(struct branch *branch, rl_nodes ours, rl_nodes up, uint8_t event)
{
    const struct rl_effects *fx = &branch->rig.fx;
    rl_nodes all = rl_nodes_all(branch->truth.nodes);

    branch->truth.asked = ours & up;
    branch->truth.absent = all & ~ours;
    branch->rig.view.up = up;
    walk_enter('b', ours, up);
    rig_event(&branch->rig, event);
    MUST((fx->request | fx->undo) == ours && (fx->request & fx->undo) == 0, "ask %x undo %x of %x",
         fx->request, fx->undo, ours);
    enum verdict verdict = truth_release(&branch->truth);
    if (verdict == UNDECIDED) {
        MUST(fx->request == (ours & up) && fx->flags == RL_FX_DEADLINE, "ask %x flags %x",
             fx->request, fx->flags);
        walk(branch);
    } else {
        MUST(fx->undo == ours && fx->flags == (RL_FX_DEADLINE | RL_FX_DONE | RL_FX_ENDED) &&
                 fx->status == expected_status(verdict),
             "undo %x flags %x status %d", fx->undo, fx->flags, fx->status);
        for (unsigned i = 0; i < branch->truth.nodes; i++)
            branch->truth.answer[i] = TIMED_OUT;
        probe_ended(branch);
    }
    walk_leave();
}

/* Sets up a held lock whose key is on `ours`: a quorum granted, the others denied or did not get
 * the request. Then starts a release, now or at a later time. */
static void start_held(unsigned nodes, rl_nodes ours, rl_nodes up, uint8_t event)
{
    struct branch branch;

    memset(&branch, 0, sizeof branch);
    rig_init(&branch.rig, nodes);
    rig_start(&branch.rig);
    for (unsigned i = 0; i < nodes; i++) {
        struct truth acquisition = {.nodes = nodes};
        walk_answer(&branch.rig, &acquisition, i, (ours & RL_NODE(i)) != 0 ? GRANTED : DENIED);
    }
    branch.truth = (struct truth){.nodes = nodes, .quorum = nodes / 2 + 1};
    begin(&branch, ours, up, event);
}

/* Sets up a release by token: nothing is known about where the key is. */
static void start_by_token(unsigned nodes, rl_nodes up)
{
    struct branch branch;

    memset(&branch, 0, sizeof branch);
    rig_init(&branch.rig, nodes);
    branch.rig.params.terms.kind = RL_LEASE_RELEASE;
    rig_new_lease(&branch.rig);
    branch.truth = (struct truth){.nodes = nodes, .quorum = nodes / 2 + 1};
    begin(&branch, rl_nodes_all(nodes), up, RL_EVENT_START);
}

/* Walks through releases with that many nodes. */
void walk_release(unsigned nodes)
{
    rl_nodes all = rl_nodes_all(nodes);

    kind_count = nodes == 5 ? 3 : sizeof KINDS / sizeof KINDS[0];
    for (rl_nodes up = 0; up <= all; up++) {
        start_by_token(nodes, up);
        for (rl_nodes ours = 0; ours <= all; ours++) {
            if (rl_nodes_count(ours) < nodes / 2 + 1)
                continue;
            start_held(nodes, ours, up, RL_EVENT_RELEASE);
            start_held(nodes, ours, up, RL_EVENT_SHORTEN);
        }
    }
}
