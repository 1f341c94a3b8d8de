/* SPDX-License-Identifier: MIT
 * Walks all answers of the nodes to an acquisition, in every order. At each point it tries silence
 * until the time is up, cancellation, a caller that learns of the grant too late, release, loss,
 * extension, and votes of other rounds. */
#include "walk.h"

struct branch {
    struct rig rig;
    struct truth truth;
};

/* The replies in the largest walks. More than three kinds for each set of eligible nodes would take
 * too long, and the cause of a failure does not matter there. */
static const enum answer FEW[] = {GRANTED, DENIED, TIMED_OUT};
static const enum answer ALL[] = {GRANTED, DENIED, TIMED_OUT, ERROR_REPLY, UNSENT};
static const enum answer *kinds;
static unsigned kind_count;

/* Returns the nodes on which the key is or may come to be. */
static rl_nodes may_be_set(const struct truth *truth)
{
    return truth->asked & ~truth_with(truth, DENIED) & ~truth_with(truth, UNSENT);
}

/* Returns a copy of the branch and counts a step. */
static struct branch copy_branch(const struct branch *branch)
{
    struct branch copy;

    memcpy(&copy, branch, sizeof copy);
    walk_tally.steps++;
    return copy;
}

/* Checks that the attempt has ended: `status` was reported once, and everything is undone. */
static void check_failed(const struct branch *after, int status)
{
    const struct rl_effects *fx = &after->rig.fx;
    rl_nodes undos = may_be_set(&after->truth);
    bool waits = after->rig.lease.state == RL_STATE_WAITING;

    MUST(fx->undo == undos, "undo %x, may be set on %x", fx->undo, undos);
    MUST(fx->request == 0 && fx->heal == 0, "asks %x heals %x", fx->request, fx->heal);
    MUST(fx->status == status, "status %d, expected %d", fx->status, status);
    MUST(fx->flags == (waits ? RL_FX_WAITING : RL_FX_DONE | RL_FX_ENDED), "flags %x", fx->flags);
    MUST(waits || after->rig.lease.state == RL_STATE_ENDED, "state %u", after->rig.lease.state);
    MUST(after->rig.lease.ours == 0, "ours %x", after->rig.lease.ours);
    MUST(rig_remaining_ns(&after->rig) == 0, "something is held");
    walk_check_wake(&after->rig);
}

/* Checks that nothing has an effect after the end of the lease. */
static void probe_ended(const struct branch *branch)
{
    static const uint8_t events[] = {RL_EVENT_TICK, RL_EVENT_CANCEL, RL_EVENT_CONFIRM};

    walk_noise(&branch->rig, &branch->truth);
    for (unsigned i = 0; i < sizeof events; i++) {
        struct branch copy = copy_branch(branch);
        rig_pass(&copy.rig, RIG_TTL_NS);
        rig_event(&copy.rig, events[i]);
        walk_check_no_effect(&copy.rig);
        MUST(copy.rig.lease.state == RL_STATE_ENDED, "state %u", copy.rig.lease.state);
    }
}

/* Checks that between two attempts votes of the old one have no effect. */
static void probe_waiting(const struct branch *branch)
{
    struct rl_now next = branch->rig.lease.next;

    walk_noise(&branch->rig, &branch->truth);
    struct branch copy = copy_branch(branch);
    rig_event(&copy.rig, RL_EVENT_CANCEL);
    MUST(copy.rig.fx.flags == (RL_FX_DONE | RL_FX_ENDED) && copy.rig.fx.undo == 0 &&
             copy.rig.fx.status == REDLOCK_ECANCELED,
         "flags %x undo %x", copy.rig.fx.flags, copy.rig.fx.undo);
    copy = copy_branch(branch);
    copy.rig.view.now = (struct rl_now){next.boot_ns - 1, next.raw_ns - 1};
    rig_tick(&copy.rig);
    walk_check_no_effect(&copy.rig);
    copy.rig.view.now = next;
    rig_tick(&copy.rig);
    MUST(copy.rig.fx.flags == RL_FX_ATTEMPT && copy.rig.fx.request == branch->truth.asked &&
             copy.rig.fx.undo == 0,
         "flags %x ask %x", copy.rig.fx.flags, copy.rig.fx.request);
    MUST(copy.rig.lease.round.number == branch->rig.lease.round.number + 1, "same round");
    for (unsigned i = 0; i < copy.truth.nodes; i++)
        copy.truth.answer[i] = SILENT;
    walk_noise(&copy.rig, &copy.truth);
}

/* Checks a lease that has ended or waits for its next attempt. */
static void probe_not_asking(const struct branch *branch)
{
    if (branch->rig.lease.state == RL_STATE_ENDED)
        probe_ended(branch);
    else
        probe_waiting(branch);
}

/* Lets the time limit pass for the nodes without a reply. */
static void end_by_timeout(struct branch *branch)
{
    for (unsigned i = 0; i < WALK_NODES_MAX; i++)
        if ((branch->truth.asked & RL_NODE(i)) != 0 && branch->truth.answer[i] == SILENT)
            branch->truth.answer[i] = TIMED_OUT;
}

/* Reports the silent nodes in `chosen` as suspect, one by one. That has no effect, and their later
 * votes count, unless another client has denied the attempt and waits for its votes. */
static void probe_doubt(const struct branch *branch, rl_nodes chosen)
{
    const struct truth *truth = &branch->truth;
    bool contended = truth_with(truth, DENIED) != 0;
    struct branch copy = copy_branch(branch);

    for (rl_nodes rest = chosen; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        copy.truth.answer[node] = TIMED_OUT;
        rig_vote(&copy.rig, node, RL_VOTE_SUSPECT);
        if (contended && truth_majority(&copy.truth) == IMPOSSIBLE) {
            MUST(copy.rig.fx.undo == may_be_set(truth), "undo %x", copy.rig.fx.undo);
            MUST(copy.rig.fx.status == truth_status(&copy.truth), "status %d", copy.rig.fx.status);
            MUST(copy.rig.lease.state != RL_STATE_ACQUIRING, "waits for those who are silent");
            return;
        }
        walk_check_no_effect(&copy.rig);
        MUST(copy.rig.lease.state == RL_STATE_ACQUIRING, "state %u", copy.rig.lease.state);
    }
    copy.truth = *truth;
    for (rl_nodes rest = truth_silent(truth) & truth->counts; rest != 0; rest &= rest - 1) {
        unsigned node = (unsigned)__builtin_ctz(rest);
        copy.truth.answer[node] = GRANTED;
        rig_vote(&copy.rig, node, RL_VOTE_GRANTED);
        if (truth_majority(&copy.truth) == CERTAIN)
            break;
    }
    if (truth_majority(&copy.truth) == CERTAIN)
        MUST(copy.rig.lease.state == RL_STATE_HELD, "state %u", copy.rig.lease.state);
}

/* Checks timeouts, cancellation and the end of the budget during an attempt. */
static void probe_asking(const struct branch *branch)
{
    const struct rl_lease *lease = &branch->rig.lease;
    struct rl_now t1 = lease->round.t1;
    uint64_t last_ns = RIG_USABLE_NS - lease->terms->validity_min_ns;

    walk_noise(&branch->rig, &branch->truth);
    walk_check_wake(&branch->rig);
    rl_nodes silent = truth_silent(&branch->truth) & branch->truth.asked;
    for (rl_nodes chosen = silent; chosen != 0; chosen = (chosen - 1) & silent)
        probe_doubt(branch, chosen);
    struct branch copy = copy_branch(branch);
    rig_event(&copy.rig, RL_EVENT_CANCEL);
    check_failed(&copy, REDLOCK_ECANCELED);
    MUST(copy.rig.lease.state == RL_STATE_ENDED, "canceled, and goes on");

    /* Silence until a grant would come too late, on either clock. */
    bool ends_before = lease->wait_ns != 0 && lease->wait_ns < last_ns;
    for (unsigned clock = 0; clock < 2 && !ends_before; clock++) {
        copy = copy_branch(branch);
        uint64_t *reading = clock == 0 ? &copy.rig.view.now.boot_ns : &copy.rig.view.now.raw_ns;
        *reading = (clock == 0 ? t1.boot_ns : t1.raw_ns) + last_ns;
        rig_tick(&copy.rig);
        walk_check_no_effect(&copy.rig);
        ++*reading;
        rig_tick(&copy.rig);
        check_failed(&copy, REDLOCK_ETOOSLOW);
    }
    if (!ends_before)
        return;
    /* Silence until the caller's wait budget ends. */
    copy = copy_branch(branch);
    copy.rig.view.now =
        (struct rl_now){rl_later(lease->begun, lease->wait_ns).boot_ns - 1, t1.raw_ns};
    rig_tick(&copy.rig);
    walk_check_no_effect(&copy.rig);
    copy.rig.view.now.boot_ns++;
    rig_tick(&copy.rig);
    rl_nodes undos = may_be_set(&copy.truth);
    end_by_timeout(&copy);
    MUST(undos == may_be_set(&copy.truth), "silence proves nothing");
    check_failed(&copy, truth_status(&copy.truth));
}

/* Checks that an extension needs a majority of proven keys. */
static void probe_extension(const struct branch *branch)
{
    const struct truth *truth = &branch->truth;
    struct branch copy = copy_branch(branch);
    rl_nodes all = rl_nodes_all(truth->nodes);
    /* Only keys whose SET was certainly executed in time are proof, even if their grant did not
     * count. */
    rl_nodes proven = truth_with(truth, GRANTED) & ~copy.rig.view.excluded;

    rig_extend(&copy.rig, 0);
    MUST(copy.rig.fx.request == copy.rig.view.up, "asks %x", copy.rig.fx.request);
    MUST(copy.rig.lease.round.excluded == (all & ~proven), "excluded %x, but only %x counts",
         copy.rig.lease.round.excluded, proven);
    walk_noise(branch->rig.lease.state == RL_STATE_HELD ? &branch->rig : &copy.rig, truth);
}

/* Checks cancellation, loss, release and extension of a held lease. */
static void probe_held(const struct branch *branch)
{
    const struct truth *truth = &branch->truth;
    struct rl_now deadline = branch->rig.lease.deadline;
    rl_nodes undos = may_be_set(truth);

    walk_noise(&branch->rig, truth);
    walk_check_wake(&branch->rig);
    struct branch copy = copy_branch(branch);
    rig_event(&copy.rig, RL_EVENT_CANCEL);
    walk_check_no_effect(&copy.rig);
    rig_event(&copy.rig, RL_EVENT_CONFIRM);
    walk_check_no_effect(&copy.rig);
    copy.rig.view.now.raw_ns = deadline.raw_ns - branch->rig.params.terms.validity_min_ns + 1;
    rig_event(&copy.rig, RL_EVENT_CONFIRM);
    check_failed(&copy, REDLOCK_ETOOSLOW);

    copy = copy_branch(branch);
    rig_event(&copy.rig, RL_EVENT_RELEASE);
    MUST((copy.rig.fx.request | copy.rig.fx.undo) == undos &&
             (copy.rig.fx.request & copy.rig.fx.undo) == 0,
         "ask %x undo %x, may be set on %x", copy.rig.fx.request, copy.rig.fx.undo, undos);
    copy = copy_branch(branch);
    rig_event(&copy.rig, RL_EVENT_DETACH);
    MUST((copy.rig.fx.request | copy.rig.fx.undo) == 0 && copy.rig.lease.state == RL_STATE_ENDED,
         "given away, and touched");

    for (unsigned clock = 0; clock < 2; clock++) {
        copy = copy_branch(branch);
        *(clock == 0 ? &copy.rig.view.now.boot_ns : &copy.rig.view.now.raw_ns) =
            clock == 0 ? deadline.boot_ns : deadline.raw_ns;
        rig_tick(&copy.rig);
        MUST(copy.rig.fx.flags == (RL_FX_LOST | RL_FX_ENDED | RL_FX_DEADLINE), "flags %x",
             copy.rig.fx.flags);
        MUST(copy.rig.fx.undo == undos, "undo %x of %x", copy.rig.fx.undo, undos);
        probe_ended(&copy);
    }
    probe_extension(branch);
}

/* Checks that the last reply has made the lease held, and that it would not with less validity. */
static void check_won(const struct branch *before, const struct branch *after, unsigned node,
                      enum answer answer)
{
    const struct rl_lease *lease = &after->rig.lease;
    const struct rl_effects *fx = &after->rig.fx;

    MUST(lease->state == RL_STATE_HELD, "state %u", lease->state);
    MUST(fx->flags == (RL_FX_DONE | RL_FX_HELD | RL_FX_DEADLINE), "flags %x", fx->flags);
    MUST(fx->status == REDLOCK_OK && (fx->request | fx->undo | fx->heal) == 0, "status %d undo %x",
         fx->status, fx->undo);
    MUST(rl_nodes_count(rl_round_counted(&lease->round)) >= lease->terms->quorum, "too few");
    MUST(lease->deadline.boot_ns == lease->round.t1.boot_ns + RIG_USABLE_NS, "deadline");
    MUST(lease->deadline.raw_ns == lease->round.t1.raw_ns + RIG_USABLE_NS, "deadline");
    MUST(rig_remaining_ns(&after->rig) >= lease->terms->validity_min_ns, "too little is left");

    /* The same vote when too little validity is left. */
    struct branch late = copy_branch(before);
    late.rig.view.now.boot_ns = lease->deadline.boot_ns - lease->terms->validity_min_ns + 1;
    walk_answer(&late.rig, &late.truth, node, answer);
    check_failed(&late, REDLOCK_ETOOSLOW);
}

/* Walks everything that can still happen from here. */
static void walk(const struct branch *before)
{
    bool asking = before->rig.lease.state == RL_STATE_ACQUIRING;

    if (asking)
        probe_asking(before);
    else
        probe_held(before);
    for (unsigned node = 0; node < before->truth.nodes; node++) {
        if ((truth_silent(&before->truth) & RL_NODE(node)) == 0)
            continue;
        for (unsigned i = 0; i < kind_count; i++) {
            struct branch after = copy_branch(before);
            walk_enter('v', node, kinds[i]);
            walk_answer(&after.rig, &after.truth, node, kinds[i]);
            walk_tally.sequences++;
            walk_check_round(&after.rig, &after.truth);
            enum verdict verdict = truth_majority(&after.truth);
            if (!asking || verdict == UNDECIDED)
                walk_check_no_effect(&after.rig);
            else if (verdict == CERTAIN)
                check_won(before, &after, node, kinds[i]);
            else
                check_failed(&after, truth_status(&after.truth));
            if (asking && verdict == IMPOSSIBLE)
                probe_not_asking(&after);
            else
                walk(&after);
            walk_leave();
        }
    }
}

/* Starts a walk: the nodes `up` are connected, the nodes `voters` are eligible. */
static void start(unsigned nodes, rl_nodes up, rl_nodes voters, uint64_t wait_ns)
{
    struct branch branch;

    memset(&branch, 0, sizeof branch);
    rig_init(&branch.rig, nodes);
    branch.rig.view.up = up;
    branch.rig.view.eligible = voters;
    branch.rig.view.excluded = ~voters & 0x15; /* every other one of those */
    branch.rig.params.wait_ns = wait_ns;
    branch.truth =
        (struct truth){.nodes = nodes, .quorum = nodes / 2 + 1, .asked = up, .counts = voters};
    walk_enter('s', up, voters);
    rig_start(&branch.rig);
    if (truth_majority(&branch.truth) == IMPOSSIBLE) {
        branch.truth.asked = 0; /* no request is sent, because it could not help */
        int status = truth_status(&branch.truth);
        check_failed(&branch, status);
    } else {
        MUST(branch.rig.fx.request == up && branch.rig.fx.flags == RL_FX_ATTEMPT, "ask %x flags %x",
             branch.rig.fx.request, branch.rig.fx.flags);
        walk(&branch);
    }
    walk_leave();
}

/* Walks through acquisitions with that many nodes. */
void walk_acquire(unsigned nodes)
{
    static const uint64_t waits[] = {0, 5 * RL_SECOND, RL_NEVER};
    rl_nodes all = rl_nodes_all(nodes);

    kinds = ALL;
    kind_count = sizeof ALL / sizeof ALL[0];
    for (unsigned i = 0; i < 3; i++)
        start(nodes, all, all, waits[i]);
    kinds = FEW;
    kind_count = sizeof FEW / sizeof FEW[0];
    for (rl_nodes up = 0; up <= all; up++)
        for (rl_nodes voters = 0; voters <= all; voters++)
            if ((voters & ~up) == 0)
                start(nodes, up, voters, up == all ? 0 : RL_NEVER);
}
