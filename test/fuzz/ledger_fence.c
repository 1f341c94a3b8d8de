/* SPDX-License-Identifier: MIT
 * The record of a fenced attempt. */
#include "ledger_fence.h"

#include <redlock/redlock.h>
#include <string.h>

/* Begins the record of a new attempt, chooses its proposal at random and gives it to the lease.
 * What the record knows of earlier locks (held, highest) stays. */
void ledger_fence_begin(struct ledger_fence *fence, struct rl_lease *lease, uint64_t random)
{
    static const uint64_t walls_us[] = {1, 1000, UINT64_C(1700000000000000), RL_FENCE_END,
                                        UINT64_MAX};
    /* The proposal of a client that knows the largest fencing token, or of one that does not. */
    uint64_t hint = (random & 1) != 0 ? fence->highest : 0;
    uint64_t held = fence->held, highest = fence->highest;

    memset(fence, 0, sizeof *fence);
    fence->held = held;
    fence->highest = highest;
    fence->proposal = rl_fence_propose(hint, walls_us[random / 2 % 5]);
    MUST(fence->proposal > 0 && fence->proposal < RL_FENCE_CORRUPT);
    MUST(fence->proposal > hint || fence->proposal == RL_FENCE_CORRUPT - 1);
    rl_fence_begin(lease->fence, fence->proposal);
}

/* Returns a fencing token near a limit: none, the proposal and its neighbours, the ends of the
 * range. Numbers that a record cannot hold are refused before they reach the lease. */
static uint64_t draw_number(const struct ledger_fence *fence, unsigned from)
{
    const uint64_t numbers[] = {
        0,
        1,
        fence->proposal - 1,
        fence->proposal,
        fence->proposal + 1,
        RL_FENCE_CORRUPT - 1,
        RL_FENCE_CORRUPT - 2,
        fence->number,
        fence->number - (fence->number != 0),
        fence->number + 1,
        fence->highest,
        from * UINT64_C(0x123456789),
    };
    uint64_t number = numbers[from % 12];

    return rl_min_u64(number, RL_FENCE_CORRUPT - 1);
}

/* Turns a ballot into one of a fenced attempt: a vote with a fencing token, or a reply to a
 * RAISE. */
void ledger_fence_draw(struct ledger_fence *fence, struct fuzz_input *input,
                       const struct rl_lease *lease, struct rl_ballot *ballot)
{
    unsigned from = fuzz_byte(input), what = fuzz_byte(input);
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->verb == RL_VERB_ACQUIRE && ballot->vote != RL_VOTE_FAILED) {
        ballot->register_value = draw_number(fence, from);
        /* Some servers report that they stored a number that they did not; the returned register
         * value shows it. */
        ballot->accepted = (what & 2) != 0 || ballot->register_value < fence->proposal;
        ballot->accepted = ballot->accepted && (what & 4) == 0;
        fence->highest = rl_max_u64(fence->highest, ballot->register_value);
    }
    if (ballot->vote == RL_VOTE_FAILED && (what & 8) != 0)
        ballot->cause = REDLOCK_CAUSE_FENCE_RECORD;
    /* A RAISE has one reply; a second one must have no effect. */
    bool may_answer = (fence->raised & ~fence->answered & bit) != 0 ||
                      ((fence->acked & bit) != 0 && ballot->vote == RL_VOTE_GRANTED);
    if ((what & 1) != 0 && may_answer && lease->round.verb == RL_VERB_ACQUIRE)
        ballot->verb = RL_VERB_RAISE;
}

/* Records the first grant of a node in this round: whether the node has stored the proposal,
 * and what its register holds. */
void ledger_fence_granted(struct ledger_fence *fence, const struct rl_ballot *ballot)
{
    bool stored = ballot->accepted && fence->proposal > ballot->register_value;

    fence->stored |= stored ? RL_NODE(ballot->node) : 0;
    fence->holds[ballot->node] = stored ? fence->proposal : ballot->register_value;
}

/* Records a reply to a RAISE. Returns false if the node has replied before. */
bool ledger_fence_raised(struct ledger_fence *fence, const struct rl_ballot *ballot)
{
    rl_nodes bit = RL_NODE(ballot->node);

    if ((fence->raised & ~fence->answered & bit) == 0)
        return false;
    fence->answered |= bit;
    fence->acked |= ballot->vote == RL_VOTE_GRANTED ? bit : 0;
    return true;
}

/* Returns those of the nodes whose register held less than `number`. */
static rl_nodes holding_less(const struct ledger_fence *fence, rl_nodes nodes, uint64_t number)
{
    rl_nodes less = 0;

    for (; nodes != 0; nodes &= nodes - 1) {
        unsigned node = (unsigned)__builtin_ctz(nodes);
        less |= fence->holds[node] < number ? RL_NODE(node) : 0;
    }
    return less;
}

/* Checks, after each step of the lease, the RAISEs that it requested, and records them.
 * `counted`: nodes whose grants count. */
void ledger_fence_step(struct ledger_fence *fence, const struct rl_lease *lease,
                       const struct rl_effects *fx, rl_nodes counted)
{
    uint64_t number = rl_lease_fence_chosen(lease);

    if (lease->state == RL_STATE_ACQUIRING || lease->state == RL_STATE_WAITING)
        fence->held = 0; /* it was not reported, because too little time was left */
    if (fence->held != 0)
        MUST(number == fence->held); /* extending, healing and losing keep it */
    if (fx->raise == 0)
        return;
    MUST(lease->state == RL_STATE_ACQUIRING && fx->flags == 0);
    MUST(number != 0 && number <= RL_FENCE_CORRUPT);
    MUST(fence->number == 0 || fence->number == number); /* it is chosen once */
    if (fence->number == 0)
        MUST(rl_nodes_count(counted) >= lease->terms->quorum);
    fence->number = number;
    MUST((fx->raise & fence->raised) == 0);
    MUST(holding_less(fence, fx->raise, number) == fx->raise);
    fence->raised |= fx->raise;
}

/* Checks that the lock may be held from this step on: a quorum has stored its fencing token. */
void ledger_fence_won(struct ledger_fence *fence, const struct rl_lease *lease, rl_nodes counted)
{
    uint64_t number = rl_lease_fence_chosen(lease);
    unsigned quorum = lease->terms->quorum;
    rl_nodes stored = fence->stored & counted;
    rl_nodes acked = holding_less(fence, fence->acked & counted, number);

    MUST(number != 0 && number <= RL_FENCE_CORRUPT);
    if (fence->raised == 0)
        MUST(number == fence->proposal && rl_nodes_count(stored) >= quorum);
    else
        MUST(number == fence->number && rl_nodes_count(acked) >= quorum);
    fence->held = number;
}
