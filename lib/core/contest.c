/* SPDX-License-Identifier: MIT
 * Ranks, and the memory of having met others. */
#include "core/contest.h"

#include <string.h>

/* Below one in a hundred, so that the ninety-ninth percentile of a client that is alone does not
 * know of it. */
#define IN_A_ROW_MAX 128
/* Where a lock is held for long, so many of them are too many; but so many round trips go by at
 * least: a pause is three or four, and far from the servers they would be a tenth of the time. */
#define ROW_MAX_NS    RL_SECOND
#define ROW_TRIPS_MIN 128
#define MISLED_MAX    3
/* Weight of the latest number of wakes: one in so many. */
#define CROWD_SHARE 4
#define CROWD_UNIT  8u
#define TIMID_MAX   5
/* After so many wakes without the resource, half of the lag that depends on them is left. */
#define LAG_WAKES    32
#define PAUSE_MAX_NS (16 * RL_MS)
/* A split weighs as much as so many denials: see rl_contest_denied(). */
#define SPLIT_WEIGHT 4u
#define SPLITS_MAX   (5 * SPLIT_WEIGHT)
#define SLOTS_KNOWN  64 /* as many as a word has bits */
/* A round trip that nobody has measured yet. */
#define ROUND_TRIP_MIN_NS (50 * RL_US)

void rl_contest_init(struct rl_contest *contest, uint8_t *order, unsigned nodes,
                     const uint64_t *scores)
{
    RL_ASSERT(nodes >= 1 && nodes <= RL_NODES_MAX);
    memset(contest, 0, sizeof *contest);
    contest->order = order;
    contest->nodes = (uint8_t)nodes;
    for (unsigned i = 0; i < nodes; i++) {
        unsigned at = i;
        for (; at > 0 && scores[order[at - 1]] < scores[i]; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

static uint8_t one_more(uint8_t number)
{
    return (uint8_t)(number + (number < UINT8_MAX));
}

bool rl_contest_is_hot(const struct rl_contest *contest, uint64_t now_ns)
{
    return contest->hot_until_ns > now_ns;
}

static void heat(struct rl_contest *contest, uint64_t now_ns)
{
    contest->hot_until_ns = rl_add_sat(now_ns, RL_CONTEST_HOT_NS);
}

static void pass_over(struct rl_contest *contest, rl_nodes first)
{
    contest->passed |= first;
    if (contest->passed == rl_nodes_all(contest->nodes))
        contest->passed = first; /* they cannot all be wrong */
    contest->misled = contest->stale = 0;
}

void rl_contest_denied(struct rl_contest *contest, bool split, rl_nodes first, uint64_t now_ns)
{
    heat(contest, now_ns);
    contest->met_in_a_row = 0;
    contest->divided = contest->divided || split;
    /* Two that take each other's votes may be denied by turns, and are to stay longer away from
     * each other each time. But who is only denied since then is in nobody's way. */
    if (split)
        contest->splits = (uint8_t)rl_min_u64(contest->splits + SPLIT_WEIGHT, SPLITS_MAX);
    else if (contest->splits > 0)
        contest->splits--;
    if (first == RL_CONTEST_UNKNOWN)
        return;
    contest->misled =
        first != 0 && first == contest->first ? one_more(contest->misled) : first != 0;
    contest->first = first;
    if (contest->misled >= MISLED_MAX)
        pass_over(contest, first);
}

bool rl_contest_doubts_first(const struct rl_contest *contest)
{
    return contest->misled >= MISLED_MAX - 1;
}

void rl_contest_heard_first(struct rl_contest *contest, rl_nodes first, bool granted)
{
    contest->stale = granted ? 0 : one_more(contest->stale);
    if (granted)
        contest->misled = 0;
    else if (contest->stale >= MISLED_MAX)
        pass_over(contest, first);
}

void rl_contest_woken(struct rl_contest *contest, uint64_t now_ns)
{
    heat(contest, now_ns);
    if (contest->wakes < UINT16_MAX)
        contest->wakes++;
}

void rl_contest_begun(struct rl_contest *contest, uint64_t round_trip_ns, uint64_t now_ns)
{
    uint64_t soon_ns = 2 * rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contest->released_ns == 0 || rl_sub_sat(now_ns, contest->released_ns) > soon_ns)
        contest->in_a_row = 0;
    else
        contest->in_a_row = one_more(contest->in_a_row);
    if (contest->in_a_row == 0)
        contest->row_ns = now_ns;
    if (!rl_contest_is_hot(contest, now_ns)) {
        contest->passed = 0;
        contest->splits = 0;
        contest->divided = false;
        contest->stale = 0;
    }
}

void rl_contest_won(struct rl_contest *contest)
{
    uint32_t wakes = contest->wakes * CROWD_UNIT;

    contest->splits = 0;
    contest->divided = false;
    contest->wakes = 0;
    if (wakes == 0)
        return;
    if (contest->crowd == 0)
        contest->crowd = wakes;
    else if (wakes > contest->crowd)
        contest->crowd += (wakes - contest->crowd + CROWD_SHARE - 1) / CROWD_SHARE;
    else
        contest->crowd -= (contest->crowd - wakes + CROWD_SHARE - 1) / CROWD_SHARE;
}

void rl_contest_met(struct rl_contest *contest)
{
    contest->met = true;
}

void rl_contest_released(struct rl_contest *contest, uint64_t round_trip_ns, uint64_t random,
                         uint64_t now_ns)
{
    uint64_t unit_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);
    bool hot = rl_contest_is_hot(contest, now_ns);
    uint32_t limit = contest->met ? contest->met_in_a_row : IN_A_ROW_MAX;

    uint64_t row_max_ns = rl_max_u64(ROW_MAX_NS, ROW_TRIPS_MIN * unit_ns);
    bool for_long = contest->in_a_row > 0 && rl_sub_sat(now_ns, contest->row_ns) >= row_max_ns;

    contest->released_ns = now_ns;
    if (!hot && contest->in_a_row < limit && !for_long)
        return;
    /* What denied us may be left by a client that is dead: then nobody comes. */
    if (!hot && contest->met)
        contest->met_in_a_row = contest->met_in_a_row == 0
                                    ? 1
                                    : (uint8_t)rl_min_u64(2u * contest->met_in_a_row, IN_A_ROW_MAX);
    contest->in_a_row = 0;
    contest->row_ns = now_ns;
    contest->met = false;
    /* Whoever is told now reaches the first node in one and a half round trips, and the others in
     * two and a half. We ask the first node first, too, if we are hot. */
    contest->yield_until_ns = rl_add_sat(now_ns, (hot ? 2 : 3) * unit_ns + random % unit_ns);
}

static uint32_t square_root(uint64_t value)
{
    uint32_t root = 0;

    for (uint32_t bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
        uint64_t next = root | bit;
        if (next * next <= value)
            root |= bit;
    }
    return root;
}

/* With a crowd of c, at 1 in c^(3/4), more so the longer ago it got it last. Not 1 in c: each
 * client knows only how often it wins itself, and those that happened to win would go ahead more
 * often, and win more often. */
bool rl_contest_goes_ahead(const struct rl_contest *contest, uint64_t random)
{
    uint64_t crowd = contest->crowd;

    /* A node that misleads is one less that can grant. */
    if (crowd == 0 || contest->divided || contest->passed != 0 || contest->misled != 0)
        return false;
    /* Nobody else, it seems. If it always went ahead, it would never see that there are others. */
    if (crowd == CROWD_UNIT)
        return random % (UINT64_C(4) << contest->timid) < 3;
    uint64_t root = square_root(crowd * square_root(crowd * CROWD_UNIT));
    uint64_t patience = rl_min_u64(CROWD_UNIT * contest->wakes, 2 * crowd);
    uint64_t range = root * crowd * crowd << contest->timid;
    return random % range < CROWD_UNIT * patience * patience;
}

void rl_contest_went_ahead(struct rl_contest *contest, bool won)
{
    if (!won && contest->timid < TIMID_MAX)
        contest->timid++;
    else if (won && contest->timid > 0)
        contest->timid--;
}

/* By the number of wakes, not by its ratio to the crowd: this one cannot be taken for another by
 * those who win often. And never for nothing, however long ago: among those who have waited for
 * long the same one would be last each time, as it is farther away, or told later. */
uint64_t rl_contest_lag_ns(const struct rl_contest *contest, uint64_t round_trip_ns,
                           uint64_t random)
{
    uint64_t unit_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contest->crowd == 0 && contest->wakes <= 1)
        return 0;
    return unit_ns / 16 + random % (unit_ns / 16) +
           unit_ns * LAG_WAKES / 2 / (LAG_WAKES + contest->wakes);
}

unsigned rl_contest_splits(const struct rl_contest *contest)
{
    return (contest->splits + SPLIT_WEIGHT - 1) / SPLIT_WEIGHT;
}

uint64_t rl_contest_pause_ns(const struct rl_contest *contest, uint64_t round_trip_ns,
                             uint64_t random)
{
    uint64_t most_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contest->splits == 0)
        return 0;
    for (uint32_t i = 0; i < rl_contest_splits(contest) && most_ns < PAUSE_MAX_NS; i++)
        most_ns *= 2;
    return random % rl_min_u64(most_ns, PAUSE_MAX_NS);
}

/* The n-th one of a set that is not empty. */
static unsigned nth(uint64_t set, uint64_t n)
{
    for (n %= (unsigned)__builtin_popcountll(set); n > 0; n--)
        set &= set - 1;
    return (unsigned)__builtin_ctzll(set);
}

unsigned rl_contest_slot(struct rl_contest *contest, unsigned count, uint64_t random,
                         uint64_t now_ns)
{
    uint64_t all = count < SLOTS_KNOWN ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
    uint64_t left = contest->slots_left & all, free = all & ~contest->slots_held;

    if (left != 0 && !rl_contest_is_hot(contest, now_ns)) {
        unsigned slot = nth(left, random);
        contest->slots_left &= ~(UINT64_C(1) << slot);
        return slot;
    }
    if (count > SLOTS_KNOWN || free == 0)
        return (unsigned)(random % count);
    return nth(free, random);
}

void rl_contest_slot_held(struct rl_contest *contest, unsigned slot, bool held)
{
    if (slot >= SLOTS_KNOWN)
        return;
    uint64_t bit = UINT64_C(1) << slot;
    contest->slots_held = held ? contest->slots_held | bit : contest->slots_held & ~bit;
    contest->slots_left = held ? contest->slots_left & ~bit : contest->slots_left | bit;
}

rl_nodes rl_contest_first(const struct rl_contest *contest, rl_nodes candidates)
{
    if ((candidates & ~contest->passed) != 0)
        candidates &= ~contest->passed;
    for (unsigned i = 0; i < contest->nodes; i++) {
        if ((candidates & RL_NODE(contest->order[i])) != 0)
            return RL_NODE(contest->order[i]);
    }
    return 0;
}
